/**
 * Moves segments between the KV cache and the disk tier: reads what a prompt needs before it is scheduled, writes exact
 * rows
 * that have been unused for a while. Does not own rows or files.
 */
import { t } from '@vscode/l10n';
import type { KvCodec } from './approx/codecs/kvCodec.ts';
import type { DiskTier } from './disk/diskTier.ts';
import { type FoundSegment, rootKey, SEGMENT_TOKENS, segmentKey } from './disk/segment.ts';
import type { KvCache } from './kvCache.ts';
import { plainBlocks, type StoredBlock } from './storedBlocks.ts';
import type { KvShape } from './kvRows.ts';
import { reasonOf } from '../protocol/errors.ts';

/** What has not been used for so long is written: a file that is being worked on would be written again and again. */
export const QUIET_MS = 60_000;
/** Nothing is written for so long after a write that failed: the disk may have been full for a moment. */
const RETRY_MS = 5 * 60_000;
/** Fewer tokens are as soon computed. */
const MIN_TOKENS = 64;

export interface SnapshotOptions {
  readonly disk: DiskTier;
  /** What rows are written in; lossless. */
  readonly codec: KvCodec;
  /** What rows depend on beside their tokens: model, precision, kernels. */
  readonly modelKey: string;
  readonly log: (line: string) => void;
}

/** A file's block: its tokens stay the same array as long as it does. */
export interface FileTokens {
  readonly path: string;
  readonly tokenIds: readonly number[];
}

/**
 * Of a budget, at most, for what is read from the disk or written to it. It comes to 768 tokens' rows: under a lower
 * budget it would be what keeps a text of two or three thousand from being read whole.
 */
const MAX_BUFFERS = 0.25;

/** Of a folder of the cache that takes nothing, for the user. */
export function notWritable(folder: string, error: unknown): string {
  return t('{0} cannot be written: {1}', folder, reasonOf(error));
}

export class Snapshots {
  readonly disk: DiskTier;
  /** Tokens brought back since the start. */
  numFetched = 0;
  readonly #codec: KvCodec;
  readonly #root: string;
  readonly #log: (line: string) => void;
  readonly #cache: KvCache;
  readonly #clock: () => number;
  /** Blocks that are on the disk as far as memory had them, so many tokens, when they were used last. */
  #saved = new WeakMap<object, { lastUse: number; numTokens: number }>();
  /**
   * Blocks of which there is nothing to write that was used last before this time: until then has been long enough ago
   * they are not looked at, which is a walk over all their tokens.
   */
  #nothingBefore = new WeakMap<object, number>();
  /** One write or removal after another: what is removed must not be written meanwhile. */
  #work: Promise<unknown> = Promise.resolve();
  /** When the next write may be tried, from one that failed to one that does not; the log has been told. */
  #retryAt: number | null = null;
  /** Why the last write failed, in the user's words; null: it did not. */
  fault: string | null = null;
  #closed = false;
  /** Ends the wait of what has been read for a moment between steps; null while nothing waits. */
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
   * The most memory that reading or writing takes beside the store, one at a time: a segment as a file, its rows, and
   * these encoded or in blocks.
   */
  static bufferBytes(shape: KvShape): number {
    const { numLayers, kvHeads, headSize } = shape;
    return 3 * SEGMENT_TOKENS * numLayers * kvHeads * (2 * headSize + 8) + 4096;
  }

  /**
   * Whether a budget of so many bytes has room for rows beside what reading and writing takes: else nothing is kept on
   * the disk, rather than texts read in parts, or not at all.
   */
  static fitUnder(maxBytes: number, shape: KvShape): boolean {
    return Snapshots.bufferBytes(shape) <= MAX_BUFFERS * maxBytes;
  }

  /** Tokens of a prompt that the disk has behind the `numCached` that memory has. Looks at no file. */
  missing(cacheIds: readonly number[], limit: number, numCached: number): number {
    const last = this.disk.find(this.#root, cacheIds.slice(0, limit)).at(-1);
    const end = last ? last.startIndex + last.numTokens : 0;
    return end - numCached >= MIN_TOKENS ? end - numCached : 0;
  }

  /**
   * Brings what the disk has of cacheIds[0 .. limit) into the store, as far as there is room and as long as it is
   * wanted; returns the
   * number of tokens. `between` runs its argument when no step is under way.
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
      // Others who want something read or written come between.
      const taken = await this.#inTurn(async () =>
        isWanted() && !this.#closed ? this.#take(cacheIds, segment, between) : 0,
      );
      if (taken === 0) break;
      numFetched += taken;
    }
    this.numFetched += numFetched;
    return numFetched;
  }

  /** The cache is another's from now on: nothing more comes into it. */
  close(): void {
    this.#closed = true;
    // Of an engine that has failed there is no time between steps any more.
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
      this.#closed ? 0 : this.#cache.maintenance.takeStored(cacheIds, segment.startIndex, blocks, 'idle');
    const taken = await new Promise<number>((resolve) => {
      if (this.#closed) return resolve(0);
      this.#giveUp = () => resolve(0);
      between(() => resolve(take()));
    });
    this.#giveUp = null;
    return taken;
  }

  /**
   * Writes one segment of these blocks, of what has been quiet for a while; false when there is nothing to write. What
   * is cached of a
   * block only in part is written in whole segments. `idsOf`: its tokens, as the cache knows them.
   */
  save(
    blocks: Iterable<FileTokens>,
    idsOf: (tokenIds: readonly number[]) => readonly number[],
    quietMs: number,
  ): Promise<boolean> {
    return this.#inTurn(() => this.#save(blocks, idsOf, quietMs));
  }

  /**
   * Removes what the disk has of files with this path, or everything but of files with the `kept` paths, of all models.
   */
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
          missing && this.#cache.maintenance.readExact(ids, missing.startIndex, missing.startIndex + missing.numTokens);
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
      // Whatever comes to it from now on has been used by then.
      this.#nothingBefore.set(tokenIds, lastUse <= before ? now : lastUse);
    }
    return false;
  }

  /** The first segment that the disk has not of a context, of which `numTokens` are cached. */
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
          ? `The disk of ${this.disk.folder} is full: nothing more of the cache is kept there until it has room.`
          : `The cache cannot be kept in ${this.disk.folder}: ${message}`,
      );
      return false;
    }
  }

  /** null, and the segment is removed: its rows are not what its name says. */
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
