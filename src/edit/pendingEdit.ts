/**
 * One proposed edit: a document, the range that it replaces, and the new text, which may still be streaming. Does not
 * know how it is shown: editPreview.ts does.
 */
import type * as vscode from 'vscode';
import { Anchor, type OffsetRange } from './anchor.ts';

export class PendingEdit {
  readonly uri: vscode.Uri;
  readonly title: string;
  /** Aborts when the user rejects the edit, closes its diff or asks for another one. */
  readonly signal: AbortSignal;
  readonly anchor: Anchor;
  readonly #abort = new AbortController();
  readonly #eol: string;
  readonly #changed: () => void;
  #text = '';
  #streaming = true;
  /** The document with the new text in place, as it was before the range itself was edited. */
  #preview: string;

  constructor(document: vscode.TextDocument, range: OffsetRange, title: string, changed: () => void) {
    this.uri = document.uri;
    this.title = title;
    this.signal = this.#abort.signal;
    this.#eol = document.eol === 2 ? '\r\n' : '\n';
    this.#changed = changed;
    this.#preview = document.getText();
    this.anchor = new Anchor(this.#preview, range);
  }

  /** The new text, with the document's line ends. */
  get text(): string {
    return this.#text;
  }

  get streaming(): boolean {
    return this.#streaming;
  }

  /** The range of the replaced text in the document. Throws an Error for the user if that text was changed. */
  locate(document: vscode.TextDocument, changed: string): OffsetRange {
    const range = this.anchor.locate(document.getText());
    if (!range) throw new Error(changed);
    return range;
  }

  /** Adds a piece of the new text. */
  write(piece: string): void {
    this.#text += this.#withLineEnds(piece);
    this.#changed();
  }

  /** The new text is complete. `text` replaces what was written. */
  finish(text?: string): void {
    if (text !== undefined) this.#text = this.#withLineEnds(text);
    this.#streaming = false;
    this.#changed();
  }

  cancel(): void {
    this.#streaming = false;
    this.#abort.abort();
  }

  /**
   * `document`'s text with the new text in place. While it streams, lines that it has not reached yet stay as they are.
   */
  preview(documentText: string): string {
    const range = this.anchor.locate(documentText);
    if (range)
      this.#preview =
        documentText.slice(0, range.start) +
        this.#text +
        this.#rest(documentText, range) +
        documentText.slice(range.end);
    return this.#preview;
  }

  /**
   * The original lines beyond the new text so far. The diff then grows line by line instead of showing everything as
   * deleted.
   */
  #rest(documentText: string, range: OffsetRange): string {
    if (!this.#streaming) return '';
    const numLines = this.#text.split('\n').length;
    const lines = documentText.slice(range.start, range.end).split('\n').slice(numLines);
    return lines.length ? `${this.#eol}${lines.join('\n')}` : '';
  }

  #withLineEnds(text: string): string {
    return text.replace(/\r?\n/g, this.#eol);
  }
}
