/** The lower part of the page: the attached file, the input, send and stop. */
import type { ContextChip, Strings } from '../chat/chatMessages.ts';
import { button, element, fill, keepingFocus } from './dom.ts';
import { icon } from './icons.ts';

export interface ComposerActions {
  ask(text: string): void;
  stop(): void;
  attach(attached: boolean): void;
  openFile(): void;
}

export class Composer {
  readonly root: HTMLElement;
  readonly #strings: Strings;
  readonly #actions: ComposerActions;
  readonly #input: HTMLTextAreaElement;
  readonly #chips = element('div', { class: 'chips' });
  readonly #send: HTMLButtonElement;
  #busy = false;

  constructor(strings: Strings, actions: ComposerActions) {
    this.#strings = strings;
    this.#actions = actions;
    this.#input = element('textarea', { rows: '1', 'aria-label': strings.ask, placeholder: strings.hint, spellcheck: 'false' });
    this.#send = button('', { class: 'send' }, () => (this.#busy ? actions.stop() : this.#submit()));
    this.root = element('div', { class: 'composer' }, this.#chips, element('div', { class: 'field' }, this.#input, this.#send));
    this.#input.addEventListener('input', () => this.#changed());
    this.#input.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && this.#busy) actions.stop();
      // Enter that ends an input method's composition is not meant for us.
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#submit();
    });
    this.#changed();
  }

  focus(): void {
    this.#input.focus();
  }

  get draft(): string {
    return this.#input.value;
  }

  set draft(text: string) {
    this.#input.value = text;
    this.#changed();
  }

  set busy(busy: boolean) {
    this.#busy = busy;
    this.#changed();
  }

  showChip(chip: ContextChip | null): void {
    // From a button that is gone to its successor, or to the one that does the opposite.
    keepingFocus(this.#chips, () => this.#fillChips(chip), (lost) => {
      const next = lost.classList.contains('name') ? '.name, button' : 'button.icon, button.add';
      (this.#chips.querySelector<HTMLElement>(next) ?? this.#input).focus();
    });
  }

  #fillChips(chip: ContextChip | null): void {
    if (!chip) {
      fill(this.#chips, element('span', { class: 'chip none' }, this.#strings.noFile));
      return;
    }
    if (!chip.attached) {
      const attach = button('', { class: 'chip add', title: chip.path }, () => this.#actions.attach(true));
      attach.append(icon('plus'), this.#strings.attach.replace('{0}', () => chip.name));
      fill(this.#chips, attach);
      return;
    }
    const name = button('', { class: 'name', title: chip.path }, () => this.#actions.openFile());
    name.append(icon('file'), element('span', {}, chip.name));
    const detach = this.#strings.detach.replace('{0}', () => chip.name);
    const remove = button('', { class: 'icon', title: detach, 'aria-label': detach }, () => this.#actions.attach(false));
    remove.append(icon('close'));
    const { tokens: count } = chip;
    const tokens = count === null ? [] : [element('span', { class: 'tokens', 'data-part': 'tokens' }, this.#strings.tokens.replace('{0}', () => count))];
    fill(this.#chips, element('span', { class: 'chip', 'data-part': 'context' }, name, ...tokens, remove));
  }

  #submit(): void {
    const text = this.#input.value.trim();
    if (!text || this.#busy) return;
    this.draft = '';
    this.#actions.ask(text);
  }

  #changed(): void {
    this.#input.style.height = 'auto';
    this.#input.style.height = `${this.#input.scrollHeight}px`;
    const label = this.#busy ? this.#strings.stop : this.#strings.send;
    this.#send.replaceChildren(icon(this.#busy ? 'stop' : 'send'));
    this.#send.title = label;
    this.#send.setAttribute('aria-label', label);
    this.#send.classList.toggle('stop', this.#busy);
    this.#send.disabled = !this.#busy && !this.#input.value.trim();
  }
}
