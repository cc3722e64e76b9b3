/** One answer: its blocks, updated in place while it streams, its notes and its footer. "line 12" becomes a link. */
import type { AssistantTurn, ContextRef, Strings } from '../chat/chatMessages.ts';
import { type CodeActions, frameCode, toBlocks } from './markdown.ts';
import { button, confirmCopy, element, iconButton, sentence } from './dom.ts';
import { icon, ring } from './icons.ts';
import { reasoningDisclosure } from './reasoningFold.ts';

export interface AnswerActions extends CodeActions {
  openRef(ref: ContextRef): void;
  regenerate(anyway: boolean): void;
  attachAndAsk(ref: ContextRef): void;
  chooseModel(): void;
  downloadModel(): void;
  remedy(remedy: NonNullable<AssistantTurn['remedy']>): void;
  showLog(): void;
  restart(): void;
}

export class AnswerTurn {
  readonly root: HTMLElement;
  readonly #strings: Strings;
  readonly #actions: AnswerActions;
  readonly #body = element('div', { class: 'body' });
  /** Stays the same element, so that it stays open. */
  readonly #reasoning = reasoningDisclosure();
  /** The source of each shown block, in the order of the body's children. */
  #sources: string[] = [];
  /** The file whose line numbers are links. */
  #linesOf: string | undefined;

  constructor(turn: AssistantTurn, strings: Strings, actions: AnswerActions) {
    this.#strings = strings;
    this.#actions = actions;
    this.root = element(
      'article',
      { class: 'turn assistant', 'data-role': 'assistant', 'aria-label': 'Kvasir' },
      this.#reasoning.root,
      this.#body,
    );
    this.show(turn);
  }

  show(turn: AssistantTurn): void {
    const streaming = turn.state === 'streaming';
    this.root.dataset.state = turn.state;
    this.root.setAttribute('aria-busy', String(streaming));
    this.#reasoning.show(turn, this.#strings);
    this.#showBody(turn);
    if (streaming)
      (lastBlock(this.#body) ?? this.#body).append(element('span', { class: 'caret', 'aria-hidden': 'true' }));
    const parts: Node[] = [];
    if (turn.error !== undefined) parts.push(this.#failure(turn.error, turn.remedy));
    if (turn.refused !== undefined) parts.push(this.#refusal(turn.refused));
    for (const note of turn.notes) parts.push(element('p', { class: 'note' }, ...sentence(note)));
    if (turn.offers?.length) parts.push(this.#offers(turn.offers));
    if (turn.modelNote !== undefined)
      parts.push(element('p', { class: 'model-note', 'data-part': 'model-note' }, turn.modelNote));
    const foot = this.#foot(turn);
    if (foot.childElementCount) parts.push(foot);
    // The body element stays, so focus and selection in its finished blocks stay, too.
    while (this.#body.nextSibling) this.#body.nextSibling.remove();
    this.root.append(...parts);
  }

  /** Leaves unchanged blocks alone. */
  #showBody(turn: AssistantTurn): void {
    const blocks = toBlocks(turn.text);
    if (turn.linesOf?.uri !== this.#linesOf) this.#sources = [];
    this.#linesOf = turn.linesOf?.uri;
    const firstChanged = blocks.findIndex((block, i) => block.source !== this.#sources[i]);
    const kept = firstChanged < 0 ? blocks.length : firstChanged;
    this.#body.querySelector('.caret')?.remove();
    while (this.#body.children.length > kept) this.#body.lastElementChild!.remove();
    for (const block of blocks.slice(kept)) this.#body.append(this.#makeBlock(block.toHtml(), turn.linesOf));
    this.#sources = blocks.map(({ source }) => source);
  }

  #makeBlock(html: string, linesOf: AssistantTurn['linesOf']): Element {
    const holder = element('div', {});
    holder.innerHTML = html;
    for (const block of holder.querySelectorAll('pre')) frameCode(block, this.#strings, this.#actions);
    for (const table of holder.querySelectorAll('table'))
      table.replaceWith(element('div', { class: 'wide', tabindex: '0' }, table.cloneNode(true)));
    if (linesOf)
      linkLines(
        holder,
        (line) => `${linesOf.path}:${line}`,
        (line) => this.#actions.openRef(lineRef(linesOf, line)),
      );
    // One element each, so that a block can be found by its number.
    return holder.childElementCount === 1 ? holder.firstElementChild! : holder;
  }

  /** Figures and tools share one line that is there from the start, so nothing moves when the answer ends. */
  #foot(turn: AssistantTurn): HTMLElement {
    const line = element('div', { class: 'foot' });
    if (turn.state === 'streaming') {
      line.append(element('span', { class: 'footer pending', 'aria-hidden': 'true' }, '…'));
      return line;
    }
    if (turn.footer !== undefined) {
      line.append(
        element(
          'footer',
          { class: 'footer', 'data-part': 'footer' },
          ...(turn.reused === undefined ? [] : [ring(turn.reused)]),
          element('div', {}, ...footerParts(turn.footer)),
        ),
      );
    }
    const tools = element('div', { class: 'tools' });
    if (turn.text) {
      const copy = iconButton('copy', this.#strings.copyAnswer, 'copy-answer', () => {
        this.#actions.copy(turn.text);
        confirmCopy(copy, this.#strings.copied);
      });
      tools.append(copy);
    }
    if (turn.error === undefined && turn.refused === undefined)
      tools.append(iconButton('again', this.#strings.regenerate, 'regenerate', () => this.#actions.regenerate(false)));
    if (tools.childElementCount) line.append(tools);
    return line;
  }

  /** The page's live region announces it once. An alert would be read again each time the list is rebuilt. */
  #failure(message: string, remedy: AssistantTurn['remedy']): HTMLElement {
    const { retry, showLog, restart, chooseModel, openSetting } = this.#strings;
    const links = remedy
      ? [
          button(remedy.kind === 'model' ? chooseModel : openSetting, { class: 'link remedy' }, () =>
            this.#actions.remedy(remedy),
          ),
        ]
      : [];
    return notice(
      'failure',
      message,
      ...links,
      button(retry, { class: 'link regenerate' }, () => this.#actions.regenerate(true)),
      button(showLog, { class: 'link' }, this.#actions.showLog),
      button(restart, { class: 'link' }, this.#actions.restart),
    );
  }

  #offers(files: readonly ContextRef[]): HTMLElement {
    const nameOf = ({ name, path }: ContextRef) =>
      files.filter((each) => each.name === name).length > 1 ? path : name;
    const offer = (ref: ContextRef) =>
      button(
        this.#strings.attach.replace('{0}', () => nameOf(ref)),
        { class: 'link', title: ref.path },
        () => this.#actions.attachAndAsk(ref),
      );
    const about = { class: 'links', 'data-part': 'offers', role: 'group', 'aria-label': this.#strings.addContext };
    return element('div', about, ...files.map(offer));
  }

  #refusal(model: string): HTMLElement {
    const { refused, chooseModel, downloadModel, tryAnyway } = this.#strings;
    return notice(
      'refusal',
      refused.replace('{0}', () => model),
      button(downloadModel, { class: 'link' }, this.#actions.downloadModel),
      button(chooseModel, { class: 'link' }, this.#actions.chooseModel),
      button(tryAnyway, { class: 'link regenerate' }, () => this.#actions.regenerate(true)),
    );
  }
}

/** Breaks between the parts, in a narrow sidebar also within them, but never before the separator "·". */
function footerParts(footer: string): (Node | string)[] {
  const parts = footer.split(' · ');
  const last = parts.pop() ?? '';
  const dotted = parts.flatMap((part) => {
    const end = part.lastIndexOf(' ') + 1;
    return [element('span', {}, part.slice(0, end), element('span', { class: 'end' }, `${part.slice(end)} ·`)), ' '];
  });
  return [...dotted, element('span', {}, last)];
}

/** A cursor before a line, from 1. */
function lineRef({ uri, path }: NonNullable<AssistantTurn['linesOf']>, line: number): ContextRef {
  return {
    kind: 'selection',
    uri,
    name: `${path}:${line}`,
    path,
    range: { startLine: line - 1, startCharacter: 0, endLine: line - 1, endCharacter: 0 },
  };
}

function notice(className: string, message: string, ...links: HTMLElement[]): HTMLElement {
  return element(
    'div',
    { class: `notice ${className}` },
    icon('warning'),
    element('div', {}, element('p', {}, ...sentence(message)), element('div', { class: 'links' }, ...links)),
  );
}

/** Where the caret of a streaming answer goes: after its last words. */
function lastBlock(body: Element): Element | null {
  let last = body.lastElementChild;
  if (last?.classList.contains('code')) return last.querySelector('code');
  while (last?.lastElementChild && ['UL', 'OL', 'LI', 'BLOCKQUOTE'].includes(last.tagName))
    last = last.lastElementChild;
  return last;
}

/** Includes adjacent brackets and punctuation, which stay on the same line. */
const LINES = /(\(?)(?<!\p{L})((?:lines?|linhas?) (\d+)(?:–\d+)?)([).,:]*)/gu;

/**
 * Turns "line 12" into a button that shows the line, everywhere in `root` except in code. @param open receives the
 * first of the lines, from 1
 */
function linkLines(root: Element, title: (line: number) => string, open: (line: number) => void): void {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found: Text[] = [];
  while (texts.nextNode())
    if (!texts.currentNode.parentElement?.closest('code, pre, a, button')) found.push(texts.currentNode as Text);
  for (const text of found) {
    const parts: (string | Node)[] = [];
    let end = 0;
    for (const match of text.data.matchAll(LINES)) {
      const [whole, before = '', shown = '', first, behind = ''] = match;
      const line = Number(first);
      parts.push(
        text.data.slice(end, match.index),
        element(
          'span',
          { class: 'line' },
          before,
          button(shown, { class: 'link', title: title(line) }, () => open(line)),
          behind,
        ),
      );
      end = match.index + whole.length;
    }
    if (parts.length) text.replaceWith(...parts, text.data.slice(end));
  }
}
