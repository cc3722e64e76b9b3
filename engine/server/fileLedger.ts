/**
 * What the monitor tells of each file, and which file blocks idle time should compute. A closed file is remembered while
 * the cache holds something of it: its bytes are somebody's.
 */
import type { Block } from '../kv/outline.ts';
import type { Documents } from './documents.ts';
import type { Engine } from '../core/engine.ts';
import type { FileStats } from '../protocol/stats.ts';
import type { Layout } from '../text/prompt/layout.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';

/** Closed files remembered, with the tokens of their blocks. */
const MAX_CLOSED = 32;
/** So short a beginning is not written to the disk. */
const FEW_TOKENS = 32;

interface Entry {
  open: boolean;
  /** Requests that used its block. */
  hits: number;
  blockTokens: number;
  cachedTokens: number;
  lastUse: number;
  /** Whether the text has changed since its block was last computed. */
  stale: boolean;
  pinned: boolean;
  /** Nothing of it is written to the disk. */
  secret: boolean;
  /** Nothing of its text as it is. */
  unsaved: boolean;
  /** Where the cursor last was: decides which part of a large file is the block. */
  cursor: number | undefined;
  block: (Block & { layout: Layout; text: string; cursor: number | undefined }) | undefined;
}

export class FileLedger {
  readonly #entries = new Map<string, Entry>();

  /** The file was opened or edited. One that is `secret` once stays so. */
  changed(docId: string, { secret = false, unsaved = false } = {}): void {
    const entry = this.#of(docId);
    // What is remembered is of a text that was not saved, and this one may be.
    if (entry.unsaved) entry.block = undefined;
    entry.secret ||= secret;
    entry.unsaved = unsaved;
    this.touch(docId);
  }

  /** Its block is to be computed in idle time. */
  touch(docId: string): void {
    const entry = this.#of(docId);
    entry.stale = true;
    entry.open = true;
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

  /** Its text has been saved as it is, or turns out not to be. */
  saved(docId: string, saved: boolean): void {
    const entry = this.#entries.get(docId);
    if (entry) entry.unsaved = !saved;
  }

  /** Whether its block may be written to the disk. */
  mayBeKept(docId: string): boolean {
    const { secret, unsaved } = this.#of(docId);
    return !secret && !unsaved;
  }

  /** When a request last used it, or when it was opened. */
  lastUse(docId: string): number {
    return this.#of(docId).lastUse;
  }

  isPinned(docId: string): boolean {
    return this.#of(docId).pinned;
  }

  /** The file is no longer open: no idle work, no pin. */
  close(docId: string): void {
    const entry = this.#entries.get(docId);
    this.#entries.delete(docId);
    if (!entry?.block) return;
    // Last in the order of closing. Its text is no longer needed to know whether the block is the text's.
    this.#entries.set(docId, {
      ...entry,
      open: false,
      stale: false,
      pinned: false,
      block: { ...entry.block, text: '' },
    });
    const closed = [...this.#entries].filter(([, each]) => !each.open);
    for (const [id] of closed.slice(0, -MAX_CLOSED)) this.#entries.delete(id);
  }

  /** Closed files are remembered no longer. */
  forgetClosed(): void {
    for (const [docId, { open }] of [...this.#entries]) if (!open) this.#entries.delete(docId);
  }

  /**
   * The path of a file that is open (`document`) or remembered, and what its block begins with: the header or, where files have none,
   * FEW_TOKENS, with which others may begin, too.
   */
  beginningOf(
    docId: string,
    document: SourceDocument | undefined,
    layout: Layout,
  ): { path: string; tokenIds: readonly number[] } | undefined {
    const header = document ? layout.header(document.path) : [];
    if (document && header.length) return { path: document.path, tokenIds: header };
    const block = document ? this.#block(document, layout) : this.#entries.get(docId)?.block;
    return block && { path: block.path, tokenIds: block.tokenIds.slice(0, block.numHeaderTokens || FEW_TOKENS) };
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
    for (const entry of this.#entries.values()) if (entry.open) entry.stale = true;
  }

  /** The file block's tokens, around where the cursor last was; laid out once per text and cursor. */
  blockIds(document: SourceDocument, layout: Layout): readonly number[] {
    return this.#block(document, layout).tokenIds;
  }

  /** The blocks of all open files and of the closed ones that are remembered. */
  blocks(documents: Documents, layout: Layout): Block[] {
    const blocks: Block[] = documents.all().map((document) => this.#block(document, layout));
    for (const { open, block } of this.#entries.values()) if (!open && block?.layout === layout) blocks.push(block);
    return blocks;
  }

  stats(blocks: readonly Block[], engine: Engine): FileStats[] {
    const now = performance.now();
    const stats: FileStats[] = [];
    for (const { docId, path, tokenIds, numHeaderTokens } of blocks) {
      const entry = this.#of(docId);
      const found = engine.describe(tokenIds);
      // Less than the header is another file's.
      const cached =
        found.tokens > numHeaderTokens
          ? found
          : {
              ...found,
              tokens: 0,
              bytes: 0,
              tier: found.diskTokens > 0 ? ('disk' as const) : ('none' as const),
              shiftedTokens: 0,
            };
      if (!entry.open && cached.tokens === 0 && cached.diskTokens === 0) {
        this.#entries.delete(docId);
        continue;
      }
      stats.push({
        docId,
        path,
        open: entry.open,
        ...cached,
        hits: entry.hits,
        hitRate: entry.blockTokens ? entry.cachedTokens / entry.blockTokens : 0,
        idleMs: now - entry.lastUse,
        pinned: entry.pinned,
      });
    }
    return stats;
  }

  #block(document: SourceDocument, layout: Layout): NonNullable<Entry['block']> {
    const entry = this.#of(document.docId);
    const { text } = document;
    if (
      !entry.block ||
      entry.block.layout !== layout ||
      entry.block.text !== text ||
      entry.block.cursor !== entry.cursor
    ) {
      const options =
        entry.cursor === undefined ? {} : { cursorOffset: document.toLf(Math.min(entry.cursor, text.length)) };
      const { tokenIds, numHeaderTokens } = layout.fileBlock(document, options);
      entry.block = {
        layout,
        text,
        cursor: entry.cursor,
        docId: document.docId,
        path: document.path,
        tokenIds,
        numHeaderTokens,
      };
    }
    return entry.block;
  }

  #of(docId: string): Entry {
    let entry = this.#entries.get(docId);
    if (!entry) {
      entry = {
        open: true,
        hits: 0,
        blockTokens: 0,
        cachedTokens: 0,
        lastUse: performance.now(),
        stale: false,
        pinned: false,
        secret: false,
        unsaved: false,
        cursor: undefined,
        block: undefined,
      };
      this.#entries.set(docId, entry);
    }
    return entry;
  }
}
