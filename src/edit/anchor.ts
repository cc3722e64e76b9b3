/**
 * A range of a text that stays in place while the text is edited around it. Pure: works on offsets and texts. Compares
 * the text itself to tell whether the range is intact, so an edit inside it that is undone does no harm.
 */
import { type ContentChange, toEdits } from '../client/documentText.ts';

/** UTF-16 code units, end exclusive. */
export interface OffsetRange {
  start: number;
  end: number;
}

export class Anchor {
  /** The original text of the range. */
  readonly original: string;
  #range: OffsetRange;

  constructor(text: string, range: OffsetRange) {
    this.#range = { ...range };
    this.original = text.slice(range.start, range.end);
  }

  /** The current range, even if its text has changed. */
  get range(): OffsetRange {
    return this.#range;
  }

  /** Applies one change event of the text. */
  follow(changes: readonly ContentChange[]): void {
    // Several undo steps in one event are relative to each other. `locate` finds the text again.
    for (const { start, end, text } of toEdits(changes) ?? []) {
      const { start: from, end: to } = this.#range;
      const delta = text.length - (end - start);
      if (end <= from) this.#range = { start: from + delta, end: to + delta };
      else if (start < to) this.#range = { start: Math.min(start, from), end: Math.max(end, to) + delta };
    }
  }

  /**
   * The range of the original text in `text`: at its tracked position, or where it occurs exactly once; undefined if it
   * is gone.
   */
  locate(text: string): OffsetRange | undefined {
    const { start, end } = this.#range;
    if (text.slice(start, end) === this.original && end <= text.length) return this.#range;
    if (this.original.trim() === '') return undefined;
    const at = text.indexOf(this.original);
    if (at < 0 || text.indexOf(this.original, at + 1) >= 0) return undefined;
    this.#range = { start: at, end: at + this.original.length };
    return this.#range;
  }
}
