/** The lower part of the page: attached items, the input with its list, the token meter, send and stop. */
import type { Strings } from '../chat/chatMessages.ts';
import { type ChipActions, ChipRow } from './chips.ts';
import { button, element, fitHeight } from './dom.ts';
import { icon } from './icons.ts';
import { MeterBar } from './meterBar.ts';
import { Suggest, type SuggestActions } from './suggest.ts';

export interface ComposerActions extends ChipActions, SuggestActions {
  ask(text: string): void;
  stop(): void;
  /** The draft has changed. */
  draft(text: string): void;
  /** Opens the last question for editing; returns false if there is none. */
  editLast(): boolean;
}

export class Composer {
  readonly root: HTMLElement;
  readonly chips: ChipRow;
  readonly meter = new MeterBar();
  readonly suggest: Suggest;
  readonly #strings: Strings;
  readonly #actions: ComposerActions;
  readonly #input: HTMLTextAreaElement;
  readonly #send: HTMLButtonElement;
  #busy = false;

  constructor(strings: Strings, actions: ComposerActions) {
    this.#strings = strings;
    this.#actions = actions;
    this.#input = element('textarea', {
      rows: '1',
      'aria-label': strings.ask,
      placeholder: strings.hint,
      spellcheck: 'false',
    });
    this.#send = button('', { class: 'send' }, () => (this.#busy ? actions.stop() : this.#submit()));
    this.chips = new ChipRow(strings, actions);
    this.suggest = new Suggest(this.#input, strings, actions);
    const field = element(
      'div',
      { class: 'field' },
      this.#input,
      element('div', { class: 'field-bar' }, this.meter.bar, this.#send),
    );
    this.root = element(
      'div',
      { class: 'composer' },
      this.meter.notes,
      this.chips.root,
      element('div', { class: 'input' }, this.suggest.root, field),
    );
    // A click anywhere in the field focuses the input.
    field.addEventListener('click', ({ target }) => {
      if (!(target instanceof Element) || !target.closest('button, textarea')) this.focus();
    });
    this.#input.addEventListener('input', () => {
      this.#changed();
      actions.draft(this.draft);
    });
    this.#input.addEventListener('keydown', (event) => this.#key(event));
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
    this.suggest.close();
    this.#changed();
  }

  set busy(busy: boolean) {
    this.#busy = busy;
    this.#changed();
  }

  #key(event: KeyboardEvent): void {
    if (this.suggest.key(event)) {
      event.preventDefault();
      return;
    }
    if (event.key === 'Escape' && this.#busy) this.#actions.stop();
    if (event.key === 'ArrowUp' && !this.draft && !this.#busy && this.#actions.editLast()) event.preventDefault();
    // Enter that ends an input method's composition does not send.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.#submit();
  }

  #submit(): void {
    const text = this.draft.trim();
    if (!text || this.#busy) return;
    this.draft = '';
    // A sent text is no draft any more.
    this.#actions.draft('');
    this.#actions.ask(text);
  }

  #changed(): void {
    fitHeight(this.#input);
    const label = this.#busy ? this.#strings.stop : this.#strings.send;
    if (this.#send.title !== label) {
      this.#send.replaceChildren(icon(this.#busy ? 'stop' : 'send'));
      this.#send.title = label;
      this.#send.setAttribute('aria-label', label);
      this.#send.classList.toggle('stop', this.#busy);
    }
    this.#send.disabled = !this.#busy && !this.draft.trim();
  }
}
