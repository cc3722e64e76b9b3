/**
 * The draft, shared between the input and the host that stores it. The input of a new page is empty until the host has
 * sent the stored draft; text typed by then is appended to it. Does not know the input element.
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

  /** The host sends a text while `typed` is in the input. Returns the new content of the input. */
  given(text: string, typed: string): string {
    this.#arrived = true;
    if (typed) this.#tell(text + typed);
    return text + typed;
  }
}
