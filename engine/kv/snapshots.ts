/**
 * Moves segments between the KV cache and the disk tier: reads what a prompt needs before it is scheduled, writes exact
 * rows that have been unused for a while. Does not own rows or files.
 */
import { t } from '@vscode/l10n';
import type { KvCodec } from './approx/codecs/kvCodec.ts';
import type { DiskTier } from './disk/diskTier.ts';
import { type FoundSegment, rootKey, SEGMENT_TOKENS, segmentKey } from './disk/segment.ts';
import type { KvCache } from './kvCache.ts';
import { plainBlocks, type StoredBlock } from './storedBlocks.ts';
import type { KvShape } from './kvRows.ts';
import { reasonOf } from '../protocol/errors.ts';

/**
 * Blocks that were used more recently are not written: a file that is being edited would be written again and again.
 */
export const QUIET_MS = 60_000;
/** After a failed write nothing is written for so long, because the disk may be full for a moment only. */
const RETRY_MS = 5 * 60_000;
/** Computing fewer tokens takes no longer than reading them. */
const MIN_TOKENS = 64;

export interface SnapshotOptions {
  readonly disk: DiskTier;
  /** Codec of the files; lossless. */
  readonly codec: KvCodec;
  /** What rows depend on besides their tokens: model, precision, kernels. */
  readonly modelKey: string;
  readonly log: (line: string) => void;
}

/** A file's block. `tokenIds` stays the same array as long as the block does not change. */
export interface FileTokens {
  readonly path: string;
  readonly tokenIds: readonly number[];
}

/**
 * Largest share of a budget for the buffers of reading and writing, which hold the rows of 768 tokens. With a lower
 * budget these buffers could keep a text of two or three thousand tokens from being read as a whole.
 */
const MAX_BUFFERS = 0.25;

/** Tells the user that a folder of the cache cannot be written. */
export function notWritable(folder: string, error: unknown): string {
  return t('{0} cannot be written: {1}', folder, reasonOf(error));
}

export class Snapshots {
  readonly disk: DiskTier;
  /** Tokens read from the disk since the start. */
  numFetched = 0;
  readonly #codec: KvCodec;
  readonly #root: string;
  readonly #log: (line: string) => void;
  readonly #cache: KvCache;
  readonly #clock: () => number;
  /** Blocks whose cached part is on the disk: so many tokens, as of this last use. */
  #saved = new WeakMap<object, { lastUse: number; numTokens: number }>();
  /**
   * Blocks that need no write if they were last used before this time. They are not looked at again before quietMs have
   * passed since then, because that walks over all their tokens.
   */
  #nothingBefore = new WeakMap<object, number>();
  /** Reads, writes and removals run one after the other: what is being removed must not be written meanwhile. */
  #work: Promise<unknown> = Promise.resolve();
  /** When the next write may be tried. Null: the last write succeeded. The log is told only when it is null. */
  #retryAt: number | null = null;
  /** Why the last write failed, for the user. Null: it succeeded. */
  fault: string | null = null;
  #closed = false;
  /** Gives up rows that were read and wait for a moment between steps. Null: none wait. */
  #giveUp: (() => void) | null = null;

  constructor({ disk, codec, modelKey, log }: SnapshotOptions, cache: KvCache, clock: () => number) {
    if (!codec.lossless) throw new Error(`Rows are kept on the disk as they were computed, not in ${codec.name}.`);
    this.disk = disk;
    this.#codec = codec;
    this.#log = log;
    this.#root = rootKey(modelKey, codec.name);
    this.#cache = cache;
    this.#clock = clock;
  }

  /**
   * Most bytes that reading or writing takes beside the store; only one runs at a time. A segment as a file, its rows,
   * and the rows encoded or in blocks.
   */
  static bufferBytes(shape: KvShape): number {
    const { numLayers, kvHeads, headSize } = shape;
    return 3 * SEGMENT_TOKENS * numLayers * kvHeads * (2 * headSize + 8) + 4096;
  }

  /**
   * Whether a budget of so many bytes has space for the buffers of the disk tier. Otherwise nothing is kept on the
   * disk, so that texts can be read as a whole.
   */
  static fitUnder(maxBytes: number, shape: KvShape): boolean {
    return Snapshots.bufferBytes(shape) <= MAX_BUFFERS * maxBytes;
  }

  /** Number of a prompt's tokens that are on the disk and follow the `numCached` tokens in memory. Reads no file. */
  missing(cacheIds: readonly number[], limit: number, numCached: number): number {
    const last = this.disk.find(this.#root, cacheIds.slice(0, limit)).at(-1);
    const end = last ? last.startIndex + last.numTokens : 0;
    return end - numCached >= MIN_TOKENS ? end - numCached : 0;
  }

  /**
   * Reads what the disk has of cacheIds[0 .. limit) into the store, as far as there is space and as long as `isWanted`.
   * Returns the number of tokens. `between` runs its argument when no step is under way.
   */
  async fetch(
    cacheIds: readonly number[],
    limit: number,
    between: (action: () => void) => void,
    isWanted = () => true,
  ): Promise<number> {
    let numFetched = 0;
    for (const segment of this.disk.find(this.#root, cacheIds.slice(0, limit))) {
      const end = segment.startIndex + segment.numTokens;
      if (this.#cache.lookUp(cacheIds, end).numTokens >= end) continue;
      // Other reads and writes may run between two segments.
      const taken = await this.#inTurn(async () =>
        isWanted() && !this.#closed ? this.#take(cacheIds, segment, between) : 0,
      );
      if (taken === 0) break;
      numFetched += taken;
    }
    this.numFetched += numFetched;
    return numFetched;
  }

  /** Call it when the cache is no longer used: nothing more is read into it. */
  close(): void {
    this.#closed = true;
    // After a failure of the engine there is no moment between steps any more.
    this.#giveUp?.();
  }

  async #take(
    cacheIds: readonly number[],
    segment: FoundSegment,
    between: (action: () => void) => void,
  ): Promise<number> {
    const runs = await this.disk.read(segment);
    const blocks = runs && (await this.#blocks(runs, segment));
    if (!blocks) return 0;
    const take = (): number =>
      this.#closed ? 0 : this.#cache.prefixes.takeStored(cacheIds, segment.startIndex, blocks, 'idle');
    const taken = await new Promise<number>((resolve) => {
      if (this.#closed) return resolve(0);
      this.#giveUp = () => resolve(0);
      between(() => resolve(take()));
    });
    this.#giveUp = null;
    return taken;
  }

  /**
   * Writes one segment of these blocks, if they were not used for `quietMs`. Returns false when there is nothing to
   * write. A block that is only partly cached is written in whole segments. `idsOf`: a block's cache ids.
   */
  save(
    blocks: Iterable<FileTokens>,
    idsOf: (tokenIds: readonly number[]) => readonly number[],
    quietMs: number,
  ): Promise<boolean> {
    return this.#inTurn(() => this.#save(blocks, idsOf, quietMs));
  }

  /** Removes segments of all models: those of the file with this path, or all but those of the `kept` paths. */
  forget(path?: string, kept: readonly string[] = []): Promise<void> {
    return this.#inTurn(() => this.#forget(path, kept));
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => {});
    return done;
  }

  async #save(
    blocks: Iterable<FileTokens>,
    idsOf: (tokenIds: readonly number[]) => readonly number[],
    quietMs: number,
  ): Promise<boolean> {
    if (this.#isPaused) return false;
    const now = this.#clock();
    const before = now - quietMs;
    for (const { tokenIds, path } of blocks) {
      if (before < (this.#nothingBefore.get(tokenIds) ?? Number.NEGATIVE_INFINITY)) continue;
      const ids = idsOf(tokenIds);
      const { numTokens, path: runs } = this.#cache.lookUp(ids, ids.length);
      const lastUse = runs.nodes.at(-1)?.lastUse ?? Number.NEGATIVE_INFINITY;
      const saved = this.#saved.get(tokenIds);
      if (lastUse <= before && (saved?.lastUse !== lastUse || saved.numTokens !== numTokens)) {
        const missing = this.#firstMissing(ids, numTokens);
        const rows =
          missing && this.#cache.prefixes.readExact(ids, missing.startIndex, missing.startIndex + missing.numTokens);
        if (
          rows &&
          (await this.#write(
            missing,
            this.#codec.encode(rows, { startIndex: missing.startIndex, contextEnd: ids.length }),
            path,
          ))
        )
          return true;
        if (this.#isPaused) return false;
        this.#saved.set(tokenIds, { lastUse, numTokens });
      }
      // Tokens that are added to it later will have a later last use.
      this.#nothingBefore.set(tokenIds, lastUse <= before ? now : lastUse);
    }
    return false;
  }

  /** The first segment of a context that is not on the disk. `numTokens` of the context are cached. */
  #firstMissing(ids: readonly number[], numTokens: number): FoundSegment | null {
    let parent = this.#root;
    for (let startIndex = 0; startIndex < numTokens; startIndex += SEGMENT_TOKENS) {
      const tokens = ids.slice(startIndex, Math.min(ids.length, startIndex + SEGMENT_TOKENS));
      if (startIndex + tokens.length > numTokens || ids.length < MIN_TOKENS) return null;
      const key = segmentKey(parent, tokens);
      if (!this.disk.has(key)) return { parent, key, numTokens: tokens.length, startIndex };
      parent = key;
    }
    return null;
  }

  async #forget(path: string | undefined, kept: readonly string[]): Promise<void> {
    this.#saved = new WeakMap();
    this.#nothingBefore = new WeakMap();
    try {
      await (path === undefined ? this.disk.clear(kept) : this.disk.removeFile(path));
    } catch (error) {
      this.#log(`What is kept in ${this.disk.folder} cannot be removed: ${(error as Error).message}`);
    }
  }

  get #isPaused(): boolean {
    return this.#retryAt !== null && this.#clock() < this.#retryAt;
  }

  async #write(segment: FoundSegment, run: Uint8Array, path: string): Promise<boolean> {
    try {
      const isWritten = await this.disk.write(segment, [run], path);
      if (isWritten) this.#retryAt = this.fault = null;
      return isWritten;
    } catch (error) {
      const isKnown = this.#retryAt !== null;
      this.#retryAt = this.#clock() + RETRY_MS;
      const { code, message } = error as NodeJS.ErrnoException;
      const isFull = code === 'ENOSPC' || code === 'EDQUOT';
      this.fault = isFull ? t('the disk is full') : notWritable(this.disk.folder, error);
      if (isKnown) return false;
      this.#log(
        isFull
          ? `The disk of ${this.disk.folder} is full: nothing more of the cache is kept there until some space is free.`
          : `The cache cannot be kept in ${this.disk.folder}: ${message}`,
      );
      return false;
    }
  }

  /** The rows of a segment. Null when they cannot be decoded; then the segment is removed. */
  async #blocks(runs: readonly Uint8Array[], segment: FoundSegment): Promise<StoredBlock[] | null> {
    try {
      return runs.flatMap((encoded) =>
        plainBlocks({ ...this.#codec.shape, kv: 'int8' }, this.#codec.decode(encoded).rows),
      );
    } catch (error) {
      this.#log(
        `A segment of ${segment.numTokens} tokens in ${this.disk.folder} is not used: ${(error as Error).message}`,
      );
      await this.disk.remove([segment]).catch(() => {});
      return null;
    }
  }
}
