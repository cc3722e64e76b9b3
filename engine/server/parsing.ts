/** Holds requests until the syntax trees of their documents are parsed. The engine does not know them yet. */
import type { Priority } from '../protocol/tasks.ts';
import { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { Syntax } from '../text/syntax/syntax.ts';

interface Waiting {
  aborted: boolean;
  priority: Priority;
}

export class Parsing {
  readonly #waiting = new Map<string, Waiting>();
  readonly #syntax: Syntax;
  readonly #onError: (requestId: string, error: unknown) => void;

  constructor(syntax: Syntax, onError: (requestId: string, error: unknown) => void) {
    this.#syntax = syntax;
    this.#onError = onError;
  }

  get size(): number {
    return this.#waiting.size;
  }

  has(requestId: string): boolean {
    return this.#waiting.has(requestId);
  }

  abort(requestId: string): void {
    const waiting = this.#waiting.get(requestId);
    if (waiting) waiting.aborted = true;
  }

  prioritise(requestId: string, priority: Priority): void {
    const waiting = this.#waiting.get(requestId);
    if (waiting) waiting.priority = priority;
  }

  /** Drops all waiting requests. @returns their ids */
  clear(): string[] {
    const ids = [...this.#waiting.keys()];
    this.#waiting.clear();
    return ids;
  }

  /**
   * Calls `begin` with the documents as they are now, when all syntax trees are parsed. If they are parsed already, it
   * is called at once and its errors are thrown. Later, its errors go to `onError`, and `onReady` is called after it.
   */
  whenParsed(
    { requestId, priority }: { requestId: string; priority: Priority },
    documents: readonly SourceDocument[],
    onReady: () => void,
    begin: (documents: readonly SourceDocument[], waiting: Waiting) => void,
  ): void {
    const waiting = { aborted: false, priority };
    const parsing = documents.flatMap((document) => this.#syntax.prepare(document) ?? []);
    if (parsing.length === 0) return begin(documents, waiting);
    this.#waiting.set(requestId, waiting);
    const asked = documents.map(
      ({ docId, path, text, version, language }) => new SourceDocument(docId, path, text, version, language),
    );
    void Promise.all(parsing).then(() => {
      if (!this.#waiting.delete(requestId)) return;
      try {
        // Edits made meanwhile belong to the next request.
        begin(
          asked.map((then, i) => (documents[i]?.text === then.text ? documents[i] : then)),
          waiting,
        );
      } catch (error) {
        this.#onError(requestId, error);
      }
      onReady();
    });
  }
}
