/**
 * A range of a text that stays on its place while the text is edited around it. Pure: knows offsets and texts, not the
 * editor. Whether what is there now is still what was there is asked of the text itself, so that an edit inside the range
 * that is undone again does no harm.
 */
import { type ContentChange, toEdits } from '../client/documentEdits.ts';

/** UTF-16 code units, the end exclusive. */
export interface OffsetRange {
  start: number;
  end: number;
}

export class Anchor {
  /** What the range held at first. */
  readonly original: string;
  #range: OffsetRange;

  constructor(text: string, range: OffsetRange) {
    this.#range = { ...range };
    this.original = text.slice(range.start, range.end);
  }

  /** Where the range is now, whatever it holds. */
  get range(): OffsetRange {
    return this.#range;
  }

  /** Takes one change event of the text. */
  follow(changes: readonly ContentChange[]): void {
    // Several undo steps in one event follow one another; `locate` finds the text again.
    for (const { start, end, text } of toEdits(changes) ?? []) {
      const { start: from, end: to } = this.#range;
      const delta = text.length - (end - start);
      if (end <= from) this.#range = { start: from + delta, end: to + delta };
      else if (start < to) this.#range = { start: Math.min(start, from), end: Math.max(end, to) + delta };
    }
  }

  /** The range of the original text in `text` as it is now: where it was followed to, or where it stands exactly once; undefined when it is no longer there. */
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
