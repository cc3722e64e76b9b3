/**
 * The author of a passage: which key comes next, given what is there. Follows the trace's keys; leaves out those that an
 * accepted completion has saved, and types again what an undo has taken too much of. Pure.
 */
import { MIN_SAVED, pressed, type WriteEvent } from './session.ts';

export type Act =
  /** One key's text: a character, a line end with its indentation, or what an accepted completion has left of one. */
  | { do: 'type'; wait: number; text: string }
  | { do: 'backspace'; wait: number }
  /** Undo until no more than `to` characters of the passage are there. */
  | { do: 'undo'; wait: number; to: number };

/** Milliseconds between keys that an undo has made necessary again. */
const RETYPE_MS = 110;

export class Author {
  /** What of the passage is there; not its beginning while a slip is. */
  written = '';
  readonly #event: WriteEvent;
  #next = 0;
  /** What would be there without completions. */
  #traced = '';

  constructor(event: WriteEvent) {
    this.#event = event;
  }

  /** null at the end. Changes nothing but to pass over keys that have been saved. */
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
      // The first key that goes beyond what has been accepted, and is no slip, types what is missing of its text.
      if (text.startsWith(after) && after.length > this.written.length)
        return { do: 'type', wait, text: after.slice(this.written.length) };
      this.#traced = after;
      this.#next++;
    }
  }

  /** Whether a completion is what the author was about to type, and worth a key of its own. */
  wants(shown: string): boolean {
    return shown.length >= MIN_SAVED && this.#event.text.startsWith(this.written + shown);
  }

  accepted(shown: string): void {
    this.written += shown;
  }

  /** An act of `next` has been done. */
  typed(act: Act): void {
    if (act.do === 'backspace') this.written = this.written.slice(0, -1);
    if (act.do === 'type') this.written += act.text;
    const again =
      act.do === 'type' && this.written.length <= this.#traced.length && this.#event.text.startsWith(this.#traced);
    if (again || act.do === 'undo') return;
    const key = this.#event.keys[this.#next++];
    if (key) this.#traced = pressed(this.#traced, key);
  }

  /** The act was an undo, and has left this. */
  undone(written: string): void {
    this.written = written;
    const key = this.#event.keys[this.#next++];
    this.#traced = this.#event.text.slice(0, key?.[2] ?? 0);
  }
}
