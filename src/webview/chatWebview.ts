/**
 * The chat view's page: shows what the extension host sends (chatMessages.ts) and sends back the user's actions. Keeps
 * only the scroll position and earlier questions that are being edited.
 */
import type { Strings, ToHost, ToPage, Turn } from '../chat/chatMessages.ts';
import { Composer } from './composer.ts';
import { element, fitHeight, keepingFocus, button, fill } from './dom.ts';
import { PageDraft } from './pageDraft.ts';
import { isAtEnd, scrollToEnd, TurnList } from './turns.ts';
import { mark } from './icons.ts';

interface Saved {
  /** Earlier questions that are being edited, by conversation and turn. */
  edits?: Record<string, string>;
  conversation: string;
  /** Pixels from the top; null is the end. */
  scroll: number | null;
}

interface EmptyState {
  model: { name: string; note: string };
  questions: readonly string[];
}

declare function acquireVsCodeApi(): {
  postMessage(message: ToHost): void;
  getState(): Saved | undefined;
  setState(state: Saved): void;
};

const MAX_EDITS = 20;

const vscode = acquireVsCodeApi();
const strings = JSON.parse(document.body.dataset.strings ?? '{}') as Strings;
const send = (message: ToHost) => vscode.postMessage(message);

const list = element('div', { class: 'turns', role: 'group', 'aria-label': strings.conversation });
const empty = element('section', { class: 'empty', hidden: '' });
const log = element('main', { id: 'log' }, empty, list);
const status = element('div', { class: 'status', 'data-part': 'status' });
const live = element('div', { class: 'live', role: 'status', 'aria-live': 'polite' });

const chooseModel = () => send({ type: 'chooseModel' });
const ask = (text: string) => send({ type: 'ask', text });
const turnList = new TurnList(list, strings, {
  copy: (text) => send({ type: 'copy', text }),
  code: (action, text, language) => send({ type: 'code', action, text, language }),
  resend: (id, text) => send({ type: 'resend', id, text }),
  editing: (id, text) => {
    const key = editKey(id);
    edits.delete(key);
    if (text !== undefined) edits.set(key, text);
    save();
  },
  edited: (id) => edits.get(editKey(id)),
  openRef: (ref) => send({ type: 'openRef', ref }),
  regenerate: (anyway) => send({ type: 'regenerate', anyway }),
  attachAndAsk: (ref) => send({ type: 'attachAndAsk', ref }),
  chooseModel,
  downloadModel: () => send({ type: 'downloadModel' }),
  remedy: (remedy) => send({ type: 'remedy', remedy }),
  showLog: () => send({ type: 'showLog' }),
  restart: () => send({ type: 'restart' }),
  focusLost: () => composer.focus(),
});
const pageDraft = new PageDraft((text) => send({ type: 'draft', text }));
const composer = new Composer(strings, {
  ask,
  stop: () => send({ type: 'stop' }),
  draft: (text) => pageDraft.typed(text),
  editLast: () => turnList.editLast(),
  attach: (id, attached) => send({ type: 'attach', id, attached }),
  openContext: (id) => send({ type: 'openContext', id }),
  addContext: () => send({ type: 'addContext' }),
  find: (query) => send({ type: 'find', query }),
  findNames: (query) => send({ type: 'findNames', query }),
  pick: (item) => send({ type: 'pick', item }),
  announce: (text) => {
    live.textContent = text;
  },
});
document.body.append(log, status, composer.root, live);

const saved = vscode.getState();
/** The most recently edited one is last. Those of conversations that are no longer shown are dropped first. */
const edits = new Map(Object.entries(saved?.edits ?? {}).slice(-MAX_EDITS));
let turns: Turn[] = [];
let conversation = '';
let emptyShown = '';
const emptyState: EmptyState = { model: { name: '', note: '' }, questions: [] };
let scrolled: ReturnType<typeof setTimeout> | undefined;
/** Whether the end was visible when the page last scrolled. */
let following = true;
log.addEventListener('scroll', () => {
  following = isAtEnd();
  clearTimeout(scrolled);
  scrolled = setTimeout(save, 300);
});

// The text and the placeholder wrap at different places.
window.addEventListener('resize', () => {
  for (const area of document.querySelectorAll('textarea')) fitHeight(area);
});

// The input and its chips grow and shrink. Before the first question, the beginning stays visible.
new ResizeObserver(() => {
  if (following && turns.length) scrollToEnd();
}).observe(log);

window.addEventListener('message', ({ data }: MessageEvent<ToPage>) => receive(data));
send({ type: 'ready' });

function receive(message: ToPage): void {
  switch (message.type) {
    case 'conversation':
      showConversation(message.id, message.turns);
      break;
    case 'append': {
      const turn = turns.find((each) => each.id === message.id);
      if (turn?.role !== 'assistant') break;
      if (message.reasoning) turn.reasoning = { text: (turn.reasoning?.text ?? '') + message.text };
      else turn.text += message.text;
      turnList.update(turn);
      break;
    }
    case 'turn': {
      const { turn } = message;
      turns = turns.map((old) => (old.id === turn.id ? turn : old));
      turnList.update(turn);
      // Announced once when complete, because a screen reader would not finish a sentence if it were told each piece.
      const { error, refused } = turn;
      if (error !== undefined) live.textContent = strings.failed.replace('{0}', () => error);
      else if (refused !== undefined) live.textContent = strings.refused.replace('{0}', () => refused);
      else if (turn.state === 'done')
        live.textContent = strings.answered.replace('{0}', () => turn.text || turn.notes.join(' '));
      composer.busy = isBusy();
      break;
    }
    case 'context':
      emptyState.questions = message.questions;
      composer.chips.show(message.chips, () => composer.focus());
      showEmpty();
      break;
    case 'meter':
      composer.meter.show(message.meter);
      break;
    case 'found':
      composer.suggest.show(message.query, message.items);
      break;
    case 'foundNames':
      composer.suggest.showNames(message.query, message.names);
      break;
    case 'model':
      emptyState.model = { name: message.name, note: message.note };
      status.textContent = message.status;
      showEmpty();
      break;
    case 'draft':
      if (message.text) composer.draft = pageDraft.given(message.text, composer.draft);
      else pageDraft.given('', composer.draft);
      break;
    case 'focus':
      if (message.draft !== undefined) composer.draft = message.draft;
      composer.focus();
  }
}

function showConversation(id: string, shown: Turn[]): void {
  const more = id === conversation && shown.length > turns.length;
  const first = !conversation;
  conversation = id;
  turns = shown;
  const editable = new Set(turns.map((turn) => editKey(turn.id)));
  for (const key of edits.keys()) if (key.startsWith(editKey('')) && !editable.has(key)) edits.delete(key);
  turnList.show(turns);
  if (first && saved?.conversation === id && saved.scroll !== null) log.scrollTop = saved.scroll;
  else scrollToEnd();
  if (more && isBusy()) live.textContent = strings.answering;
  composer.busy = isBusy();
  showEmpty();
  save();
}

function save(): void {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 4;
  vscode.setState({ edits: Object.fromEntries(edits), conversation, scroll: atEnd ? null : log.scrollTop });
}

function editKey(turnId: string): string {
  return `${conversation} ${turnId}`;
}

function isBusy(): boolean {
  return turns.some((turn) => turn.role === 'assistant' && turn.state === 'streaming');
}

function showEmpty(): void {
  keepingFocus(
    empty,
    () => {
      empty.hidden = turns.length > 0;
      document.body.classList.toggle('fresh', turns.length === 0);
      const state = JSON.stringify(emptyState);
      if (turns.length || state === emptyShown) return;
      emptyShown = state;
      showEmptyState(empty, emptyState, strings, { ask, chooseModel });
    },
    () => composer.focus(),
  );
}

/** Shown before the first question: what Kvasir is, the model's note, and example questions. */
function showEmptyState(
  root: HTMLElement,
  { model, questions }: EmptyState,
  strings: Strings,
  actions: { ask(text: string): void; chooseModel(): void },
): void {
  const examples = questions.map((question) => button(question, { class: 'example' }, () => actions.ask(question)));
  const about = element(
    'div',
    { class: 'about' },
    element('strong', {}, model.name),
    element('p', { 'data-part': 'note' }, model.note),
    button(strings.chooseModel, { class: 'link' }, actions.chooseModel),
  );
  fill(
    root,
    element('div', { class: 'mark' }, mark()),
    element('h1', {}, strings.title),
    element('p', { class: 'tagline' }, strings.tagline),
    ...(model.note ? [about] : []),
    ...(examples.length
      ? [element('div', { class: 'examples' }, element('h2', {}, strings.examples), ...examples)]
      : []),
  );
}
