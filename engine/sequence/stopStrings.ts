/** Finds stop strings in streamed text. Holds text back while it may be the start of a stop string. */

export class StopStrings {
  readonly #stops: readonly string[];
  #held = '';

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop.length > 0);
  }

  /** Adds the next piece. Returns the text that may be shown now, and whether a stop string was found. */
  push(piece: string): { text: string; stopped: boolean } {
    const text = this.#held + piece;
    let end = -1;
    for (const stop of this.#stops) {
      const at = text.indexOf(stop);
      if (at >= 0 && (end < 0 || at < end)) end = at;
    }
    const shown = end >= 0 ? end : text.length - this.#beginning(text);
    this.#held = end >= 0 ? '' : text.slice(shown);
    return { text: text.slice(0, shown), stopped: end >= 0 };
  }

  /** Returns the text that is still held back, because no stop string can follow. */
  flush(): string {
    const text = this.#held;
    this.#held = '';
    return text;
  }

  /** Length of the longest end of `text` with which a stop string starts. */
  #beginning(text: string): number {
    let longest = 0;
    for (const stop of this.#stops) {
      for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
        if (text.endsWith(stop.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}
