/**
 * Keeps for each file its use, staleness, pin, secrecy and file block. Keeps closed files while the cache has rows of
 * them. Does not read files or compute blocks in the engine.
 */
import type { Block } from '../kv/treeOutline.ts';
import type { Documents } from './documents.ts';
import type { Engine } from '../core/engine.ts';
import type { FileStats } from '../protocol/stats.ts';
import type { Layout } from '../text/prompt/layout.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';

/** Most closed files that are kept. Each keeps the tokens of its block. */
const MAX_CLOSED = 32;
/** Tokens of a beginning in a layout without headers. */
const MIN_TOKENS = 32;

interface Entry {
  open: boolean;
  /** Requests that used its block. */
  hits: number;
  blockTokens: number;
  cachedTokens: number;
  lastUse: number;
  /** Whether the text has changed since the block was computed. */
  stale: boolean;
  pinned: boolean;
  /** Nothing of the file is ever written to disk. */
  secret: boolean;
  /** The current text of the file is not written to disk. */
  unsaved: boolean;
  /** Last cursor position. Decides which part of a large file is the block. */
  cursor: number | undefined;
  block: (Block & { layout: Layout; text: string; cursor: number | undefined }) | undefined;
}

export class FileLedger {
  readonly #entries = new Map<string, Entry>();

  /** The file was opened or edited. A secret file stays secret. */
  changed(docId: string, { secret = false, unsaved = false } = {}): void {
    const entry = this.#of(docId);
    // The kept block is of the unsaved text, and the new text may be saved.
    if (entry.unsaved) entry.block = undefined;
    entry.secret ||= secret;
    entry.unsaved = unsaved;
    this.touch(docId);
  }

  /** Marks the block as stale, so that idle prefill computes it. */
  touch(docId: string): void {
    const entry = this.#of(docId);
    entry.stale = true;
    entry.open = true;
  }

  /** A request has ended. It found `cachedTokens` of the `blockTokens` of the block in the cache. */
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

  /** The current text is saved, or it is not. */
  saved(docId: string, saved: boolean): void {
    const entry = this.#entries.get(docId);
    if (entry) entry.unsaved = !saved;
  }

  /** Whether the block of the file may be written to disk. */
  mayBeKept(docId: string): boolean {
    const { secret, unsaved } = this.#of(docId);
    return !secret && !unsaved;
  }

  /** Time of the last request for the file, or of opening it, in ms of performance.now. */
  lastUse(docId: string): number {
    return this.#of(docId).lastUse;
  }

  isPinned(docId: string): boolean {
    return this.#of(docId).pinned;
  }

  /** The file was closed. Ends its idle work and its pin. */
  close(docId: string): void {
    const entry = this.#entries.get(docId);
    this.#entries.delete(docId);
    if (!entry?.block) return;
    // Moved to the end, because closed files are in the order of closing. The text is not needed any more.
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

  /** Forgets closed files. */
  forgetClosed(): void {
    for (const [docId, { open }] of [...this.#entries]) if (!open) this.#entries.delete(docId);
  }

  /**
   * The path of an open or closed file and the first tokens of its block: the header, or MIN_TOKENS tokens if the
   * layout has no headers. Other files may have the same MIN_TOKENS tokens.
   */
  beginningOf(
    docId: string,
    document: SourceDocument | undefined,
    layout: Layout,
  ): { path: string; tokenIds: readonly number[] } | undefined {
    const header = document ? layout.header(document.path) : [];
    if (document && header.length) return { path: document.path, tokenIds: header };
    const block = document ? this.#block(document, layout) : this.#entries.get(docId)?.block;
    return block && { path: block.path, tokenIds: block.tokenIds.slice(0, block.numHeaderTokens || MIN_TOKENS) };
  }

  /** Returns the most recently used stale file, and marks it as not stale. */
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

  /** Tokens of the file block around the last cursor position. Computed once per text and cursor. */
  blockIds(document: SourceDocument, layout: Layout): readonly number[] {
    return this.#block(document, layout).tokenIds;
  }

  /** The blocks of all open and closed files. */
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
      const found = engine.blocks.describe(tokenIds);
      // A match shorter than the header belongs to another file.
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
