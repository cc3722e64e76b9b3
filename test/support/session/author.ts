/**
 * The author of a passage: decides which key comes next, given the current text. Follows the trace's keys. Skips keys
 * that an accepted completion has saved, and types text again that an undo has removed too much of. Pure.
 */
import { MIN_SAVED, pressed, type WriteEvent } from './session.ts';

export type Act =
  /**
   * Text of one key: a character, a line end with its indentation, or the part of it that an accepted completion has
   * left.
   */
  | { do: 'type'; wait: number; text: string }
  | { do: 'backspace'; wait: number }
  /** Undoes until at most `to` characters of the passage are left. */
  | { do: 'undo'; wait: number; to: number };

/** Milliseconds between keys that must be typed again after an undo. */
const RETYPE_MS = 110;

export class Author {
  /** The part of the passage that is written. With a slip in it, it is not a beginning of the passage. */
  written = '';
  readonly #event: WriteEvent;
  #next = 0;
  /** The text that would be written without completions. */
  #traced = '';

  constructor(event: WriteEvent) {
    this.#event = event;
  }

  /** Returns null at the end. Only skips keys that have been saved, and changes nothing else. */
  next(): Act | null {
    const { text, keys } = this.#event;
    const behind =
      text.startsWith(this.#traced) && text.startsWith(this.written) && this.written.length < this.#traced.length;
    if (behind) return { do: 'type', wait: RETYPE_MS, text: text.charAt(this.written.length) };
    for (;;) {
      const key = keys[this.#next];
      if (!key) return null;
      const [wait, name, to = 0] = key;
      if (name === 'Undo') return { do: 'undo', wait, to };
      if (this.written === this.#traced)
        return name === 'Backspace' ? { do: 'backspace', wait } : { do: 'type', wait, text: name };
      const after = pressed(this.#traced, key);
      // The first key that goes beyond the accepted text and is not a slip types the rest of its text.
      if (text.startsWith(after) && after.length > this.written.length)
        return { do: 'type', wait, text: after.slice(this.written.length) };
      this.#traced = after;
      this.#next++;
    }
  }

  /** Whether the author was about to type this completion, and whether it is worth pressing a key to accept it. */
  wants(shown: string): boolean {
    return shown.length >= MIN_SAVED && this.#event.text.startsWith(this.written + shown);
  }

  accepted(shown: string): void {
    this.written += shown;
  }

  /** Call after the author has done an act of `next`. */
  typed(act: Act): void {
    if (act.do === 'backspace') this.written = this.written.slice(0, -1);
    if (act.do === 'type') this.written += act.text;
    const again =
      act.do === 'type' && this.written.length <= this.#traced.length && this.#event.text.startsWith(this.#traced);
    if (again || act.do === 'undo') return;
    const key = this.#event.keys[this.#next++];
    if (key) this.#traced = pressed(this.#traced, key);
  }

  /** Call after an undo with the text that it has left. */
  undone(written: string): void {
    this.written = written;
    const key = this.#event.keys[this.#next++];
    this.#traced = this.#event.text.slice(0, key?.[2] ?? 0);
  }
}
