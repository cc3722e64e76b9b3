/** The lower part of the page: attached items as chips, the input with its list, the token meter, send and stop. */
import type { Strings, Meter, Chip } from '../chat/chatMessages.ts';
import { button, element, fitHeight, fill, sentence, iconButton, keepingFocus } from './dom.ts';
import { icon } from './icons.ts';
import { Suggest, type SuggestActions } from './suggest.ts';

interface ChipActions {
  attach(id: string, attached: boolean): void;
  openContext(id: string): void;
  addContext(): void;
}

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

/** How much of the model's context the next question takes, and what will be left out. */
class MeterBar {
  /** Inside the input's field. */
  readonly bar = element('div', { class: 'meter', 'data-part': 'meter' });
  /** Above the field. */
  readonly notes = element('ul', { class: 'left-out', 'data-part': 'left-out', hidden: '' });
  #shown = '';

  show(meter: Meter | null): void {
    const text = JSON.stringify(meter);
    if (text === this.#shown) return;
    this.#shown = text;
    fill(
      this.notes,
      ...(meter?.notes ?? []).map((note) =>
        element('li', { class: 'lost' }, icon('warning'), element('span', {}, ...sentence(note))),
      ),
    );
    this.notes.hidden = !meter?.notes.length;
    this.bar.classList.toggle('over', meter?.over === true);
    if (!meter) {
      this.bar.removeAttribute('title');
      return fill(this.bar);
    }
    this.bar.title = meter.title;
    const track = element(
      'span',
      { class: 'track', 'aria-hidden': 'true' },
      element('span', { class: 'prompt' }),
      element('span', { class: 'answer' }),
    );
    const [prompt, answer] = track.children as unknown as [HTMLElement, HTMLElement];
    // Set through the DOM, which the content security policy allows.
    prompt.style.width = `${Math.min(1, meter.prompt) * 100}%`;
    answer.style.width = `${Math.min(1 - Math.min(1, meter.prompt), meter.answer) * 100}%`;
    fill(this.bar, track, element('span', { class: 'label' }, meter.label));
  }
}

/** The items attached to the next question, as chips that can be opened and removed, and the button that adds more. */
class ChipRow {
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
