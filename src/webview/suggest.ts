/**
 * The list above the input that `@` (files), `/` (commands) and `/where ` (names) open: decides when it is open and how
 * a choice changes the text. The input keeps the focus; aria-activedescendant tells screen readers the active entry.
 */
import type { Found, FoundName, Strings } from '../chat/chatMessages.ts';
import { element, fill } from './dom.ts';
import { type IconName, icon } from './icons.ts';

export interface SuggestActions {
  find(query: string): void;
  findNames(query: string): void;
  pick(item: Found): void;
  /** For screen readers. */
  announce(text: string): void;
}

interface Entry {
  icon: IconName;
  name: string;
  detail: string;
  choose(): void;
}

/** The word at the cursor. */
type Trigger = { kind: 'file' | 'command' | 'name'; query: string; start: number };

export class Suggest {
  readonly root = element('div', { class: 'suggest', role: 'listbox', id: 'suggest', hidden: '' });
  readonly #input: HTMLTextAreaElement;
  readonly #strings: Strings;
  readonly #actions: SuggestActions;
  #trigger: Trigger | null = null;
  #entries: Entry[] = [];
  #active = 0;
  /** Closed by Escape; stays closed for this word. */
  #dismissed = -1;

  constructor(input: HTMLTextAreaElement, strings: Strings, actions: SuggestActions) {
    this.#input = input;
    this.#strings = strings;
    this.#actions = actions;
    input.setAttribute('aria-autocomplete', 'list');
    input.addEventListener('input', () => this.#follow());
    input.addEventListener('click', () => this.#follow());
    input.addEventListener('blur', () => this.close());
    // The input keeps the focus.
    this.root.addEventListener('mousedown', (event) => event.preventDefault());
  }

  get open(): boolean {
    return !this.root.hidden;
  }

  close(): void {
    this.#trigger = null;
    this.#hide();
  }

  #hide(): void {
    this.root.hidden = true;
    this.#input.removeAttribute('aria-activedescendant');
    this.#input.removeAttribute('aria-controls');
  }

  /** Results from the host. */
  show(query: string, items: readonly Found[]): void {
    const trigger = this.#trigger;
    if (trigger?.kind !== 'file' || trigger.query !== query) return;
    this.#fill(
      this.#strings.files,
      items.map((item) => ({
        icon: item.kind,
        name: item.name,
        detail: item.detail,
        choose: () => this.#pickFile(item),
      })),
    );
  }

  /** Names from the host. A name that is complete needs no list. */
  showNames(query: string, names: readonly FoundName[]): void {
    const trigger = this.#trigger;
    if (trigger?.kind !== 'name' || trigger.query !== query) return;
    if (names.length === 0 || (names.length === 1 && names[0]?.name === query)) return this.#hide();
    this.#fill(
      this.#strings.names,
      names.map(({ name, detail }) => ({ icon: 'selection', name, detail, choose: () => this.#replace(name, 0) })),
    );
  }

  /** Whether the list has handled the key. */
  key(event: KeyboardEvent): boolean {
    if (!this.open || event.isComposing) return false;
    if (event.key === 'Escape') {
      this.#dismissed = this.#trigger?.start ?? -1;
      this.close();
      return true;
    }
    if (!this.#entries.length) return false;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      this.#activate(
        (this.#active + (event.key === 'ArrowDown' ? 1 : this.#entries.length - 1)) % this.#entries.length,
      );
      return true;
    }
    // Enter sends a command or a name that is complete.
    if (event.key === 'Enter' && this.#isComplete()) {
      this.close();
      return false;
    }
    if ((event.key === 'Enter' && !event.shiftKey) || (event.key === 'Tab' && !event.shiftKey)) {
      this.#entries[this.#active]?.choose();
      return true;
    }
    return false;
  }

  #isComplete(): boolean {
    const { kind, query } = this.#trigger ?? {};
    if (kind === 'command') return this.#strings.slash.some(({ name }) => name === query);
    return kind === 'name' && this.#entries.some(({ name }) => name === query);
  }

  #follow(): void {
    const trigger = triggerAt(this.#input);
    if (!trigger || trigger.start === this.#dismissed) {
      if (!trigger) this.#dismissed = -1;
      this.close();
      return;
    }
    this.#trigger = trigger;
    if (trigger.kind === 'file') this.#actions.find(trigger.query);
    else if (trigger.kind === 'name') this.#actions.findNames(trigger.query);
    else {
      const commands = this.#strings.slash.filter(({ name }) => name.startsWith(trigger.query.toLowerCase()));
      if (commands.length)
        this.#fill(
          this.#strings.commands,
          commands.map(({ name, description }) => ({
            icon: 'slash',
            name: `/${name}`,
            detail: description,
            choose: () => this.#replace(`/${name} `),
          })),
        );
      else this.close();
    }
  }

  #fill(label: string, entries: Entry[]): void {
    this.#entries = entries;
    this.root.hidden = false;
    this.root.setAttribute('aria-label', label);
    this.#input.setAttribute('aria-controls', 'suggest');
    const options = entries.map((entry, i) => {
      const option = element(
        'div',
        { class: 'option', role: 'option', id: `option${i}` },
        icon(entry.icon),
        element('span', { class: 'name' }, entry.name),
        element('span', { class: 'detail' }, entry.detail),
      );
      option.addEventListener('click', () => entry.choose());
      option.addEventListener('mousemove', () => this.#activate(i));
      return option;
    });
    fill(
      this.root,
      ...(options.length
        ? options
        : [
            element(
              'div',
              { class: 'option none', role: 'option', 'aria-disabled': 'true' },
              this.#strings.nothingFound,
            ),
          ]),
    );
    this.#actions.announce(
      entries.length ? this.#strings.found.replace('{0}', String(entries.length)) : this.#strings.nothingFound,
    );
    this.#activate(0);
  }

  #activate(index: number): void {
    this.#active = index;
    for (const [i, option] of [...this.root.children].entries())
      option.setAttribute('aria-selected', String(i === index && this.#entries.length > 0));
    const option = this.root.children[index];
    if (!option || !this.#entries.length) return this.#input.removeAttribute('aria-activedescendant');
    option.scrollIntoView({ block: 'nearest' });
    this.#input.setAttribute('aria-activedescendant', option.id);
  }

  #pickFile(item: Found): void {
    // In the middle of a sentence, the name stays as a word.
    const inSentence = this.#input.value.slice(0, this.#trigger?.start ?? 0).trim() !== '';
    this.#replace(inSentence ? `\`${item.name}\` ` : '');
    this.#actions.pick(item);
  }

  /** @param mark characters of the trigger before its query */
  #replace(text: string, mark = 1): void {
    const { start, query } = this.#trigger ?? { start: 0, query: '' };
    this.close();
    this.#input.setRangeText(text, start, start + mark + query.length, 'end');
    this.#input.dispatchEvent(new Event('input', { bubbles: true }));
  }
}

function triggerAt(input: HTMLTextAreaElement): Trigger | null {
  if (input.selectionStart !== input.selectionEnd) return null;
  const before = input.value.slice(0, input.selectionStart);
  const command = /^\/(\w*)$/.exec(before);
  if (command) return { kind: 'command', query: command[1] ?? '', start: 0 };
  const name = /^\/(?:where|signature|callers)\s+`?([\p{L}\p{N}_$#]*)$/iu.exec(before)?.[1];
  if (name !== undefined) return { kind: 'name', query: name, start: before.length - name.length };
  const file = /(?:^|[\s(])@([^\s@]*)$/.exec(before);
  return file ? { kind: 'file', query: file[1] ?? '', start: before.length - (file[1] ?? '').length - 1 } : null;
}
