/** The list of turns: one element each, changed in place while an answer streams. */
import type { AssistantTurn, Strings, Turn } from '../chat/chatMessages.ts';
import { button, element, fill, keepingFocus } from './dom.ts';
import { icon, ring } from './icons.ts';
import { toBlocks } from './markdown.ts';

export interface TurnActions {
  copy(text: string): void;
  insert(text: string): void;
  showLog(): void;
  restart(): void;
  /** The focused element of the list is gone. */
  focusLost(): void;
}

/** Renders an answer's first piece at once, and from then on at most once a frame, however fast its chunks come. */
export class TurnList {
  readonly #root: HTMLElement;
  readonly #strings: Strings;
  readonly #actions: TurnActions;
  readonly #elements = new Map<string, HTMLElement>();
  readonly #stale = new Map<string, AssistantTurn>();
  /** What each answer shows: the source of each block, in the order of its body's children. */
  readonly #sources = new WeakMap<Element, string[]>();
  #inFrame = false;

  constructor(root: HTMLElement, strings: Strings, actions: TurnActions) {
    this.#root = root;
    this.#strings = strings;
    this.#actions = actions;
  }

  /** Replaces all turns. */
  show(turns: readonly Turn[]): void {
    this.#elements.clear();
    this.#stale.clear();
    keepingFocus(this.#root, () => this.#root.replaceChildren(...turns.map((turn) => this.#make(turn))), this.#actions.focusLost);
  }

  /** An answer has grown or ended. */
  update(turn: AssistantTurn): void {
    this.#stale.set(turn.id, turn);
    if (this.#inFrame) return;
    this.#inFrame = true;
    this.#flush();
    requestAnimationFrame(() => {
      this.#inFrame = false;
      for (const late of this.#stale.values()) this.update(late);
    });
  }

  #flush(): void {
    const following = isAtEnd();
    for (const turn of this.#stale.values()) {
      const old = this.#elements.get(turn.id);
      if (old) keepingFocus(old, () => this.#fillAnswer(old, turn), this.#actions.focusLost);
    }
    this.#stale.clear();
    if (following) scrollToEnd();
  }

  #make(turn: Turn): HTMLElement {
    if (turn.role === 'user') {
      const file = turn.file === undefined ? [] : [element('span', { class: 'file', title: turn.file }, icon('file'), turn.file.slice(turn.file.lastIndexOf('/') + 1))];
      return element('article', { class: 'turn user', 'data-role': 'user', 'aria-label': this.#strings.you }, element('div', { class: 'question' }, turn.text), ...file);
    }
    const answer = element('article', { class: 'turn assistant', 'data-role': 'assistant', 'aria-label': 'Kvasir' });
    this.#elements.set(turn.id, answer);
    this.#fillAnswer(answer, turn);
    return answer;
  }

  #fillAnswer(answer: HTMLElement, turn: AssistantTurn): void {
    answer.dataset.state = turn.state;
    answer.setAttribute('aria-busy', String(turn.state === 'streaming'));
    const body = answer.querySelector(':scope > .body') ?? answer.appendChild(element('div', { class: 'body' }));
    this.#fillBody(body, turn);
    const parts: Node[] = [];
    if (turn.state === 'streaming') (lastBlock(body) ?? body).append(element('span', { class: 'caret', 'aria-hidden': 'true' }));
    if (turn.error !== undefined) parts.push(this.#failure(turn.error));
    for (const note of turn.notes) parts.push(element('p', { class: 'note' }, note));
    if (turn.footer !== undefined) {
      const footer = element('footer', { class: 'footer', 'data-part': 'footer' });
      // Breaks between its parts only.
      const figures = turn.footer.split(' · ').flatMap((part, i) => [i ? ' · ' : '', element('span', {}, part)]);
      fill(footer, ...(turn.reused === undefined ? [] : [ring(turn.reused)]), element('div', {}, ...figures));
      parts.push(footer);
    }
    // The body stays in the page, and with it the focus and the selection within its finished blocks.
    while (body.nextSibling) body.nextSibling.remove();
    answer.append(...parts);
  }

  /** Leaves the blocks alone that are as they were. */
  #fillBody(body: Element, turn: AssistantTurn): void {
    const blocks = toBlocks(turn.text);
    const old = this.#sources.get(body) ?? [];
    const firstChanged = blocks.findIndex((block, i) => block.source !== old[i]);
    const kept = firstChanged < 0 ? blocks.length : firstChanged;
    body.querySelector('.caret')?.remove();
    while (body.children.length > kept) body.lastElementChild!.remove();
    for (const block of blocks.slice(kept)) body.append(this.#makeBlock(block.toHtml()));
    this.#sources.set(body, blocks.map(({ source }) => source));
  }

  #makeBlock(html: string): Element {
    const holder = element('div', {});
    holder.innerHTML = html;
    for (const block of holder.querySelectorAll('pre')) this.#addActions(block);
    for (const table of holder.querySelectorAll('table')) table.replaceWith(element('div', { class: 'wide' }, table.cloneNode(true)));
    // One element each, so that a block can be found by its number.
    return holder.childElementCount === 1 ? holder.firstElementChild! : holder;
  }

  /** Said by the page's live region when it happens; an alert would be read out again each time the list is made anew. */
  #failure(message: string): HTMLElement {
    return element(
      'div',
      { class: 'failure' },
      icon('warning'),
      element(
        'div',
        {},
        element('p', {}, message),
        element('div', { class: 'links' }, button(this.#strings.showLog, { class: 'link' }, this.#actions.showLog), button(this.#strings.restart, { class: 'link' }, this.#actions.restart)),
      ),
    );
  }

  #addActions(block: HTMLElement): void {
    const code = block.querySelector('code');
    const text = code?.textContent ?? '';
    const language = /language-([\w+#-]+)/.exec(code?.className ?? '')?.[1] ?? '';
    const copy = button('', { class: 'icon', title: this.#strings.copy, 'aria-label': this.#strings.copy }, () => {
      this.#actions.copy(text);
      copy.replaceChildren(icon('check'));
      copy.title = this.#strings.copied;
    });
    copy.append(icon('copy'));
    const insert = button('', { class: 'icon', title: this.#strings.insert, 'aria-label': this.#strings.insert }, () => this.#actions.insert(text));
    insert.append(icon('insert'));
    const frame = element('div', { class: 'code' }, element('div', { class: 'bar' }, element('span', { class: 'language' }, language), copy, insert));
    block.replaceWith(frame);
    block.tabIndex = 0;
    frame.append(block);
  }
}

/** Where the caret of a streaming answer goes: behind its last words. */
function lastBlock(body: Element): Element | null {
  let last = body.lastElementChild;
  if (last?.classList.contains('code')) return last.querySelector('code');
  while (last?.lastElementChild && ['UL', 'OL', 'LI', 'BLOCKQUOTE'].includes(last.tagName)) last = last.lastElementChild;
  return last;
}

const END_PX = 40;

function isAtEnd(): boolean {
  const scroller = document.getElementById('log');
  return !scroller || scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < END_PX;
}

export function scrollToEnd(): void {
  const scroller = document.getElementById('log');
  if (scroller) scroller.scrollTop = scroller.scrollHeight;
}
