/** The items attached to the next question, as chips that can be opened and removed, and the button that adds more. */
import type { Chip, Strings } from '../chat/chatMessages.ts';
import { button, element, fill, iconButton, keepingFocus } from './dom.ts';
import { icon } from './icons.ts';

export interface ChipActions {
  attach(id: string, attached: boolean): void;
  openContext(id: string): void;
  addContext(): void;
}

export class ChipRow {
  readonly root: HTMLElement;
  readonly #strings: Strings;
  readonly #actions: ChipActions;
  #shown = '';

  constructor(strings: Strings, actions: ChipActions) {
    this.#strings = strings;
    this.#actions = actions;
    // Empty until it is known whether a file is open.
    this.root = element('div', { class: 'chips', role: 'group', 'aria-label': strings.context });
  }

  /** Calls `focusLost` when the focused chip is gone and no other can take the focus. */
  show(chips: readonly Chip[], focusLost: () => void): void {
    const text = JSON.stringify(chips);
    if (text === this.#shown) return;
    this.#shown = text;
    const index = [...this.root.querySelectorAll('button')].indexOf(document.activeElement as HTMLButtonElement);
    const add = button(this.#strings.addContext, { class: 'chip add', 'data-part': 'add' }, this.#actions.addContext);
    add.prepend(icon('plus'));
    const none = chips.length ? [] : [element('span', { class: 'chip none' }, this.#strings.noFile)];
    keepingFocus(
      this.root,
      () => fill(this.root, ...none, ...chips.map((chip) => this.#chip(chip)), add),
      () => {
        const buttons = this.root.querySelectorAll('button');
        const next = buttons[Math.min(index, buttons.length - 1)];
        if (next) next.focus();
        else focusLost();
      },
    );
  }

  #chip(chip: Chip): HTMLElement {
    if (!chip.attached) {
      const attach = button('', { class: 'chip add', title: chip.path, 'data-part': 'offered' }, () =>
        this.#actions.attach(chip.id, true),
      );
      attach.append(
        icon('plus'),
        this.#strings.attach.replace('{0}', () => chip.name),
      );
      return attach;
    }
    const name = button('', { class: 'name', title: chip.path }, () => this.#actions.openContext(chip.id));
    name.append(icon(chip.kind), element('span', {}, chip.name));
    const remove = iconButton(
      'close',
      this.#strings.detach.replace('{0}', () => chip.name),
      '',
      () => this.#actions.attach(chip.id, false),
    );
    name.addEventListener('keydown', (event) => {
      if (event.key === 'Delete' || event.key === 'Backspace') remove.click();
    });
    const sizes = [
      ...(chip.tokens === null ? [] : [element('span', { class: 'tokens', 'data-part': 'tokens' }, chip.tokens)]),
      ...(chip.omitted === null
        ? []
        : [
            element(
              'span',
              { class: 'omitted', 'data-part': 'omitted', title: chip.omitted },
              icon('warning'),
              element('span', {}, chip.omitted),
            ),
          ]),
    ];
    return element('span', { class: 'chip', 'data-part': 'context', 'data-kind': chip.kind }, name, ...sizes, remove);
  }
}
