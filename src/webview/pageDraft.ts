/**
 * What is being written, between the input and the host that keeps it. A new page's input is empty until the host has said
 * what was kept: what is typed by then comes after that, and does not take its place. Knows no input.
 */

export class PageDraft {
  readonly #tell: (text: string) => void;
  #arrived = false;

  constructor(tell: (text: string) => void) {
    this.#tell = tell;
  }

  /** The user has changed the text. */
  typed(text: string): void {
    if (this.#arrived) this.#tell(text);
  }

  /** The host gives a text (back) while `typed` is in the input; returns what is to be in it. */
  given(text: string, typed: string): string {
    this.#arrived = true;
    if (typed) this.#tell(text + typed);
    return text + typed;
  }
}
