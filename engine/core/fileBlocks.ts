/**
 * File blocks and prompts in the cache and on disk: looks them up, pins them, drops them and reads them from the disk.
 * Knows under which cache ids a text may have been computed. Does not compute rows.
 */
import type { Approximations } from '../kv/approx/approximations.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { clipped, laneIds, type TokenRange } from '../kv/laneIds.ts';
import { type Block, outline } from '../kv/treeOutline.ts';
import type { Snapshots } from '../kv/snapshots.ts';
import type { TreeNode } from '../protocol/stats.ts';
import type { StepGate } from './idleMaintenance.ts';
import { laneLimits, type MemoryDivision } from './memoryBudget.ts';
import type { Sequence } from '../sequence/sequence.ts';

interface Parts {
  readonly cache: KvCache;
  readonly approximations: Approximations;
  readonly gate: StepGate;
  readonly memory: MemoryDivision;
  /** The disk tier. Files can be removed from it even while it is not used. */
  readonly disk: Snapshots | null;
  readonly clock: () => number;
}

export class FileBlocks {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The disk tier; null while it is not used. */
  get usedDisk(): Snapshots | null {
    return this.#parts.memory.usesDisk ? this.#parts.disk : null;
  }

  /** The cache ids of a file block, or of the beginning of one. */
  cacheIds(tokenIds: readonly number[]): number[] {
    return laneIds(tokenIds, [[0, this.laneLimit(tokenIds.length)]]);
  }

  /** The lane limit of a context of so many tokens. */
  laneLimit(numTokens: number): number {
    return this.#parts.memory.laneLimit(numTokens, this.#parts.cache);
  }

  /** Evicts the rows of a prefix last, also those computed later, until the key gets another prefix or null. */
  pin(key: string, tokenIds: readonly number[] | null): void {
    const { gate, cache } = this.#parts;
    gate.between(() => cache.prefixes.pin(key, tokenIds && this.cacheIds(tokenIds)));
  }

  /** Drops unused rows that begin with a prefix: without one, all but `pinned` ones; with one, pinned ones too. */
  evict(prefix: readonly number[] = [], { pinned = prefix.length > 0 } = {}): void {
    const { gate, cache } = this.#parts;
    gate.between(() => {
      for (const ids of this.#cacheIdsOfEveryLimit(prefix)) cache.prefixes.evict(ids, pinned);
    });
  }

  /**
   * What is cached of a file block or prompt. `prefill`: its token ranges for the prefill lane.
   * `diskTokens`: tokens on disk, beyond those in memory.
   */
  describe(
    tokenIds: readonly number[],
    prefill: readonly TokenRange[] = [[0, tokenIds.length]],
  ): ReturnType<Approximations['describe']> & { diskTokens: number } {
    const ids = laneIds(tokenIds, clipped(prefill, this.laneLimit(tokenIds.length)));
    const found = this.#parts.approximations.describe(ids);
    const diskTokens = this.usedDisk?.missing(ids, ids.length, found.tokens) ?? 0;
    return { ...found, tier: found.tokens < diskTokens ? 'disk' : found.tier, diskTokens };
  }

  /** Drops approximate rows of this block where exact ones have been computed since. */
  dropApproximate(tokenIds: readonly number[]): void {
    const { gate, approximations } = this.#parts;
    gate.between(() => approximations.reuse.drop(this.cacheIds(tokenIds)));
  }

  /** The radix tree for the monitor, with the files' blocks named. */
  outline(blocks: readonly Block[]): TreeNode[] {
    const { cache, clock } = this.#parts;
    return outline(
      cache.memory.tree,
      blocks.map((block) => ({ ...block, tokenIds: this.cacheIds(block.tokenIds) })),
      clock(),
    );
  }

  /**
   * Removes files with this path from the disk. Without a path: all files, of all models, whose path is not in `kept`.
   */
  async forgetDisk(path?: string, kept: readonly string[] = []): Promise<void> {
    await this.#parts.disk?.forget(path, kept);
  }

  /** The cache ids of a prefix under each lane limit with which it may have been computed. */
  #cacheIdsOfEveryLimit(tokenIds: readonly number[]): number[][] {
    const { length } = tokenIds;
    const limits = new Set([...laneLimits(length), Math.min(length, this.laneLimit(length))]);
    return Array.from(limits, (limit) => laneIds(tokenIds, [[0, limit]]));
  }
}

/**
 * Reads what the disk tier has of a prompt before the prompt is scheduled. Holds the sequences that wait for the disk.
 * Does not read files itself: see Snapshots.
 */
export class DiskFetch {
  readonly #cache: KvCache;
  readonly #gate: StepGate;
  readonly #disk: Pick<FileBlocks, 'usedDisk'>;
  readonly #waiting = new Set<Sequence>();

  constructor(cache: KvCache, gate: StepGate, disk: Pick<FileBlocks, 'usedDisk'>) {
    this.#cache = cache;
    this.#gate = gate;
    this.#disk = disk;
  }

  get isActive(): boolean {
    return this.#waiting.size > 0;
  }

  /** Requests that wait for the disk. */
  get numWaiting(): number {
    return [...this.#waiting].filter(({ priority }) => priority !== 'idle').length;
  }

  has(sequence: Sequence): boolean {
    return this.#waiting.has(sequence);
  }

  /** Forgets a sequence that has ended. */
  delete(sequence: Sequence): void {
    this.#waiting.delete(sequence);
  }

  /**
   * Whether the disk has tokens of a prompt that memory does not have. The last token does not count: its logits are
   * needed.
   */
  isUseful({ cacheIds, numPromptTokens }: Sequence): boolean {
    const { usedDisk } = this.#disk;
    if (!usedDisk) return false;
    const limit = numPromptTokens - 1;
    return usedDisk.missing(cacheIds, limit, this.#cache.lookUp(cacheIds, limit).numTokens) > 0;
  }

  /**
   * Reads what the disk has of a prompt, then calls `onReady` between steps, unless the sequence has ended.
   * Tokens that cannot be read are computed. So are the rest, once the budget leaves no memory for the disk tier.
   */
  async start(sequence: Sequence, onReady: () => void): Promise<void> {
    this.#waiting.add(sequence);
    await this.#disk.usedDisk!.fetch(
      sequence.cacheIds,
      sequence.numPromptTokens - 1,
      (action) => this.#gate.between(action),
      () => this.#disk.usedDisk !== null && this.#waiting.has(sequence),
    );
    this.#gate.between(() => {
      if (this.#waiting.delete(sequence)) onReady();
    });
  }
}
