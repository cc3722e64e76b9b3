/**
 * The engine's mirror of the host's documents: opened with their text, changed by edits that carry consecutive
 * versions, closed. A document that has missed an edit is of no use until its whole text comes again, and says so.
 */
import { RequestError } from '../protocol/errors.ts';
import type { TextEdit } from '../protocol/messages.ts';
import { SourceDocument } from '../text/syntax/sourceDocument.ts';

/** A passage that is taken out is kept from so many characters on; all of them together have so many. */
const MIN_REMOVED = 12;
const MAX_REMOVED = 2000;

export class Documents {
  readonly #documents = new Map<string, SourceDocument>();
  /** Why a document is unusable until its whole text comes. */
  readonly #broken = new Map<string, string>();

  /** Takes the whole text of a new or known document. The known one keeps its identity, so that cached encodings stay. */
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

  /** Applies edits that lead from the version before to `version`. Throws `unknownDocument` or `badRequest`; the document is then unusable until opened again. */
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

  /** The document, or `unknownDocument`, or `badRequest` when it has missed an edit. */
  get(docId: string): SourceDocument {
    const problem = this.#broken.get(docId);
    if (problem !== undefined) throw new RequestError('badRequest', problem);
    const document = this.#documents.get(docId);
    if (document === undefined) throw new RequestError('unknownDocument', `${docId} is not open; send its text first`);
    return document;
  }

  /** Like `get`, but undefined where that throws. */
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

/** What is typed anew after it was taken out is often the same, or nearly. */
function removedBy({ text, removed }: SourceDocument, edits: readonly TextEdit[]): readonly string[] {
  // What takes out more, such as formatting the whole file, is likely to have put most of it in again.
  const passages = edits
    .filter(({ start, end }) => end - start <= MAX_REMOVED)
    .map(({ start, end }) => text.slice(start, end).replaceAll('\r\n', '\n'))
    .filter(({ length }) => length >= MIN_REMOVED);
  if (passages.length === 0) return removed;
  // Edits come last to first.
  const all = [...removed, ...passages.reverse()];
  return all.filter((_, i) => all.slice(i).reduce((sum, { length }) => sum + length, 0) <= MAX_REMOVED);
}

/** The text after edits ordered last to first; undefined when they are not, overlap, or lie outside. */
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
