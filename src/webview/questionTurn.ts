/** One question: its text and attachments, and editing it to ask again. */
import type { ContextRef, Strings, UserTurn } from '../chat/chatMessages.ts';
import { type CodeActions, frameCode, renderCode } from './markdown.ts';
import { button, element, fill, fitHeight, iconButton } from './dom.ts';
import { icon } from './icons.ts';
import { questionParts } from './questionText.ts';

export interface QuestionActions extends CodeActions {
  resend(id: string, text: string): void;
  /** The edited text; undefined when editing has ended. */
  editing(id: string, text: string | undefined): void;
  /** What was last passed to `editing`, also for a page that was hidden since. */
  edited(id: string): string | undefined;
  openRef(ref: ContextRef): void;
}

/** Further names are only counted. */
const MAX_NAMES = 4;

export function questionTurn(turn: UserTurn, strings: Strings, actions: QuestionActions): HTMLElement {
  const root = element('article', { class: 'turn user', 'data-role': 'user', 'aria-label': strings.you });
  const edited = actions.edited(turn.id);
  if (edited === undefined) showQuestion(root, turn, strings, actions);
  else showEditor(root, turn, strings, actions, edited);
  return root;
}

/** Opens the input in place of the question. */
export function editQuestion(root: HTMLElement): void {
  root.querySelector<HTMLElement>('.edit')?.click();
}

function showQuestion(root: HTMLElement, turn: UserTurn, strings: Strings, actions: QuestionActions): void {
  const bubble = element(
    'div',
    { class: 'question' },
    ...questionParts(turn.text).map((part) => {
      if (part.kind === 'text') return part.text;
      if (part.kind === 'code') return element('code', {}, part.text);
      const holder = element('div', { class: 'body' });
      holder.innerHTML = renderCode(part.text, part.language);
      for (const block of holder.querySelectorAll('pre')) frameCode(block, strings, actions);
      return holder;
    }),
  );
  const edit = iconButton('edit', strings.edit, 'edit', () => {
    const input = showEditor(root, turn, strings, actions, turn.text);
    fitHeight(input);
    input.focus();
    input.setSelectionRange(input.value.length, input.value.length);
  });
  fill(root, element('div', { class: 'row' }, edit, bubble), ...aboutLine(turn, actions));
}

/** What the question was about. */
function aboutLine({ context }: UserTurn, actions: QuestionActions): HTMLElement[] {
  if (!context.length) return [];
  const names = context.slice(0, MAX_NAMES).map((ref) => {
    const name = button('', { class: 'file', title: ref.path }, () => actions.openRef(ref));
    name.append(icon(ref.kind), ref.name);
    return name;
  });
  const more = context.length > MAX_NAMES ? [element('span', { class: 'file' }, `+${context.length - MAX_NAMES}`)] : [];
  return [element('div', { class: 'about-line' }, ...names, ...more)];
}

/** The caller, who puts it into the page, sets focus and height. */
function showEditor(
  root: HTMLElement,
  turn: UserTurn,
  strings: Strings,
  actions: QuestionActions,
  text: string,
): HTMLTextAreaElement {
  const input = element('textarea', { rows: '1', 'aria-label': strings.editing, spellcheck: 'false' });
  input.value = text;
  const close = () => {
    actions.editing(turn.id, undefined);
    showQuestion(root, turn, strings, actions);
    root.querySelector<HTMLElement>('.edit')?.focus();
  };
  const submit = () => {
    // The text stays until the host has accepted it and replaced this turn.
    if (input.value.trim()) actions.resend(turn.id, input.value);
  };
  input.addEventListener('input', () => {
    fitHeight(input);
    actions.editing(turn.id, input.value);
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      close();
    }
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  const buttons = element(
    'div',
    { class: 'buttons' },
    button(strings.cancel, { class: 'secondary' }, close),
    button(strings.send, { class: 'primary' }, submit),
  );
  fill(root, element('div', { class: 'editor' }, input, element('p', { class: 'small' }, strings.editing), buttons));
  return input;
}
