/** The chat view's page: shows what the extension host says (chatMessages.ts) and sends it what the user wants. */
import type { Strings, ToHost, ToPage, Turn } from '../chat/chatMessages.ts';
import { Composer } from './composer.ts';
import { button, element, fill, keepingFocus } from './dom.ts';
import { mark } from './icons.ts';
import { scrollToEnd, TurnList } from './turns.ts';

interface Saved {
  turns: Turn[];
  draft: string;
}

declare function acquireVsCodeApi(): { postMessage(message: ToHost): void; getState(): Saved | undefined; setState(state: Saved): void };

const vscode = acquireVsCodeApi();
const strings = JSON.parse(document.body.dataset.strings ?? '{}') as Strings;
const send = (message: ToHost) => vscode.postMessage(message);

const list = element('div', { class: 'turns' });
const empty = element('section', { class: 'empty' });
const log = element('main', { id: 'log' }, empty, list);
const status = element('div', { class: 'status', 'data-part': 'status' });
const live = element('div', { class: 'live', role: 'status', 'aria-live': 'polite' });
const turnList = new TurnList(list, strings, {
  copy: (text) => send({ type: 'copy', text }),
  insert: (text) => send({ type: 'insert', text }),
  showLog: () => send({ type: 'showLog' }),
  restart: () => send({ type: 'restart' }),
  focusLost: () => composer.focus(),
});
const composer = new Composer(strings, {
  ask: (text) => send({ type: 'ask', text }),
  stop: () => send({ type: 'stop' }),
  attach: (attached) => send({ type: 'attach', attached }),
  openFile: () => send({ type: 'openFile' }),
});
document.body.append(log, status, composer.root, live);

const saved = vscode.getState();
/** Between two savings while an answer streams. */
const SAVE_MS = 1000;
let saveSoon: ReturnType<typeof setTimeout> | undefined;
let turns: Turn[] = saved?.turns ?? [];
let questions: string[] = [];
let model = { name: '', note: '' };
composer.draft = saved?.draft ?? '';

window.addEventListener('message', ({ data }: MessageEvent<ToPage>) => receive(data));
composer.root.addEventListener('input', save);
send({ type: 'ready', turns });

function receive(message: ToPage): void {
  switch (message.type) {
    case 'turns': {
      const more = message.turns.length > turns.length;
      turns = message.turns;
      turnList.show(turns);
      scrollToEnd();
      if (more && isBusy()) live.textContent = strings.answering;
      changed();
      break;
    }
    case 'append': {
      const turn = turns.find((each) => each.id === message.id);
      if (turn?.role !== 'assistant') break;
      turn.text += message.text;
      turnList.update(turn);
      // A reload in the middle of an answer keeps what there is of it.
      saveSoon ??= setTimeout(save, SAVE_MS);
      break;
    }
    case 'turn': {
      const { turn } = message;
      turns = turns.map((old) => (old.id === turn.id ? turn : old));
      if (turn.role === 'assistant') {
        turnList.update(turn);
        // Once, when it is complete: a reader that is told each piece never finishes a sentence.
        const { error } = turn;
        live.textContent = error === undefined ? strings.answered.replace('{0}', () => turn.text) : strings.failed.replace('{0}', () => error);
      }
      changed();
      break;
    }
    case 'context':
      questions = message.questions;
      composer.showChip(message.chip);
      showEmpty();
      break;
    case 'model':
      model = message;
      status.textContent = message.status;
      showEmpty();
      break;
    case 'focus':
      composer.focus();
  }
}

function changed(): void {
  composer.busy = isBusy();
  showEmpty();
  save();
}

function save(): void {
  clearTimeout(saveSoon);
  saveSoon = undefined;
  vscode.setState({ turns, draft: composer.draft });
}

function isBusy(): boolean {
  return turns.some((turn) => turn.role === 'assistant' && turn.state === 'streaming');
}

/** What there is to see before the first question: what this is, what the model says of itself, and what to ask. */
function showEmpty(): void {
  keepingFocus(empty, fillEmpty, () => composer.focus());
}

function fillEmpty(): void {
  empty.hidden = turns.length > 0;
  document.body.classList.toggle('fresh', turns.length === 0);
  if (turns.length) return;
  const examples = questions.map((question) => button(question, { class: 'example' }, () => send({ type: 'ask', text: question })));
  fill(
    empty,
    element('div', { class: 'mark' }, mark()),
    element('h1', {}, strings.title),
    element('p', { class: 'tagline' }, strings.tagline),
    ...(model.note ? [element('div', { class: 'about' }, element('strong', {}, model.name), element('p', { 'data-part': 'note' }, model.note))] : []),
    ...(examples.length ? [element('div', { class: 'examples' }, element('h2', {}, strings.examples), ...examples)] : []),
  );
}
