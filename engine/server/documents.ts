/**
 * Mirrors the documents of the host: opened with their text, changed by edits with consecutive versions, closed. After
 * a missing edit a document is unusable until its whole text arrives. Does not know requests.
 */
import { RequestError } from '../protocol/errors.ts';
import type { TextEdit } from '../protocol/messages.ts';
import { SourceDocument } from '../text/syntax/sourceDocument.ts';

/** Shortest removed passage that is kept, in characters. Users often type removed passages again. */
const MIN_REMOVED = 12;
/** Most characters of all kept passages of a document. */
const MAX_REMOVED = 2000;

export class Documents {
  readonly #documents = new Map<string, SourceDocument>();
  /** By document, why it is unusable until its whole text arrives. */
  readonly #broken = new Map<string, string>();

  /** Sets the whole text of a document. A known document stays the same object, so that cached encodings stay valid. */
  open(docId: string, version: number, path: string, text: string, language?: string): SourceDocument {
    this.#broken.delete(docId);
    const known = this.#documents.get(docId);
    if (known !== undefined) {
      const fresh = new SourceDocument(docId, path, text, version);
      if (fresh.path === known.path && language === known.language) {
        known.text = text;
        known.version = version;
        known.removed = [];
        return known;
      }
    }
    const document = new SourceDocument(docId, path, text, version, language);
    this.#documents.set(docId, document);
    return document;
  }

  /**
   * Applies the edits that lead from the previous version to `version`.
   * @throws RequestError `unknownDocument`, or `badRequest`, which makes the document unusable until it is opened again
   */
  edit(docId: string, version: number, edits: readonly TextEdit[]): SourceDocument {
    const document = this.get(docId);
    if (version !== document.version + 1) {
      throw this.#break(
        docId,
        `edits for version ${version} of ${docId} do not follow version ${document.version}; send the whole text`,
      );
    }
    const text = applyEdits(document.text, edits);
    if (text === undefined)
      throw this.#break(
        docId,
        `edits for version ${version} of ${docId} overlap, are not ordered last to first, or lie outside its text; send the whole text`,
      );
    document.removed = removedBy(document, edits);
    document.text = text;
    document.version = version;
    return document;
  }

  close(docId: string): void {
    this.#documents.delete(docId);
    this.#broken.delete(docId);
  }

  /** @throws RequestError `unknownDocument`, or `badRequest` if it missed an edit */
  get(docId: string): SourceDocument {
    const problem = this.#broken.get(docId);
    if (problem !== undefined) throw new RequestError('badRequest', problem);
    const document = this.#documents.get(docId);
    if (document === undefined) throw new RequestError('unknownDocument', `${docId} is not open; send its text first`);
    return document;
  }

  /** Like `get`, but returns undefined instead of throwing. */
  find(docId: string): SourceDocument | undefined {
    return this.#broken.has(docId) ? undefined : this.#documents.get(docId);
  }

  all(): SourceDocument[] {
    return [...this.#documents.values()];
  }

  #break(docId: string, problem: string): RequestError {
    this.#broken.set(docId, problem);
    return new RequestError('badRequest', problem);
  }
}

/** The passages that the edits removed, after those of earlier edits. */
function removedBy({ text, removed }: SourceDocument, edits: readonly TextEdit[]): readonly string[] {
  // A larger edit, such as formatting the file, inserts most of the text again.
  const passages = edits
    .filter(({ start, end }) => end - start <= MAX_REMOVED)
    .map(({ start, end }) => text.slice(start, end).replaceAll('\r\n', '\n'))
    .filter(({ length }) => length >= MIN_REMOVED);
  if (passages.length === 0) return removed;
  // Edits are ordered last to first.
  const all = [...removed, ...passages.reverse()];
  return all.filter((_, i) => all.slice(i).reduce((sum, { length }) => sum + length, 0) <= MAX_REMOVED);
}

/** The text after the edits. Undefined if they are not ordered last to first, overlap, or are outside the text. */
function applyEdits(text: string, edits: readonly TextEdit[]): string | undefined {
  let limit = text.length;
  let result = text;
  for (const { start, end, text: inserted } of edits) {
    if (!(start >= 0 && start <= end && end <= limit)) return undefined;
    result = result.slice(0, start) + inserted + result.slice(end);
    limit = start;
  }
  return result;
}
