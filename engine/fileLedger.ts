/** What the monitor tells of each open file, and which file blocks idle time should compute. */
import type { Documents } from './documents.ts';
import type { Engine } from './engine.ts';
import type { FileStats } from './protocol.ts';
import type { Layout } from './text/layout.ts';
import type { SourceDocument } from './text/sourceDocument.ts';

interface Entry {
  /** Requests that used its block. */
  hits: number;
  blockTokens: number;
  cachedTokens: number;
  lastUse: number;
  /** Whether the text has changed since its block was last computed. */
  stale: boolean;
  pinned: boolean;
  /** Where the cursor last was: decides which part of a large file is the block. */
  cursor: number | undefined;
  block: { layout: Layout; text: string; cursor: number | undefined; tokenIds: readonly number[] } | undefined;
}

export class FileLedger {
  readonly #entries = new Map<string, Entry>();

  /** The file was opened or edited. */
  touch(docId: string): void {
    this.#of(docId).stale = true;
  }

  /** A request for the file has ended; `cachedTokens` of its `blockTokens` had been in the cache. */
  used(docId: string, blockTokens: number, cachedTokens: number): void {
    const entry = this.#of(docId);
    entry.hits++;
    entry.blockTokens += blockTokens;
    entry.cachedTokens += Math.min(blockTokens, cachedTokens);
    entry.lastUse = performance.now();
  }

  cursorAt(docId: string, offset: number | undefined): void {
    if (offset !== undefined) this.#of(docId).cursor = offset;
  }

  pin(docId: string, pinned: boolean): void {
    this.#of(docId).pinned = pinned;
  }

  isPinned(docId: string): boolean {
    return this.#of(docId).pinned;
  }

  forget(docId: string): void {
    this.#entries.delete(docId);
  }

  /** The stale file that was used last, no longer stale from now on. */
  takeStale(): string | undefined {
    const stale = [...this.#entries].filter(([, e]) => e.stale).sort(([, a], [, b]) => b.lastUse - a.lastUse)[0];
    if (!stale) return undefined;
    stale[1].stale = false;
    return stale[0];
  }

  get hasStale(): boolean {
    for (const entry of this.#entries.values()) if (entry.stale) return true;
    return false;
  }

  touchAll(): void {
    for (const entry of this.#entries.values()) entry.stale = true;
  }

  /** The file block's tokens, around where the cursor last was; laid out once per text and cursor. */
  blockIds(document: SourceDocument, layout: Layout): readonly number[] {
    const entry = this.#of(document.docId);
    const { text } = document;
    if (!entry.block || entry.block.layout !== layout || entry.block.text !== text || entry.block.cursor !== entry.cursor) {
      const options = entry.cursor === undefined ? {} : { cursorOffset: document.toLf(Math.min(entry.cursor, text.length)) };
      entry.block = { layout, text, cursor: entry.cursor, tokenIds: layout.fileBlock(document, options).tokenIds };
    }
    return entry.block.tokenIds;
  }

  stats(documents: Documents, layout: Layout, engine: Engine): FileStats[] {
    const now = performance.now();
    return documents.all().map((document) => {
      const entry = this.#of(document.docId);
      const cached = engine.describe(this.blockIds(document, layout));
      return {
        docId: document.docId,
        path: document.path,
        ...cached,
        hits: entry.hits,
        hitRate: entry.blockTokens ? entry.cachedTokens / entry.blockTokens : 0,
        idleMs: now - entry.lastUse,
        pinned: entry.pinned,
      };
    });
  }

  #of(docId: string): Entry {
    let entry = this.#entries.get(docId);
    if (!entry) {
      entry = { hits: 0, blockTokens: 0, cachedTokens: 0, lastUse: performance.now(), stale: false, pinned: false, cursor: undefined, block: undefined };
      this.#entries.set(docId, entry);
    }
    return entry;
  }
}
