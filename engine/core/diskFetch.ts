/**
 * Reads what the disk tier has of a prompt before the prompt is scheduled. Holds the sequences that wait for the disk.
 * Does
 * not read files itself: see Snapshots.
 */
import type { Snapshots } from '../kv/snapshots.ts';
import type { KvCache } from '../kv/kvCache.ts';
import type { Sequence } from '../sequence/sequence.ts';
import type { StepGate } from './stepGate.ts';

export class DiskFetch {
  readonly #cache: KvCache;
  readonly #gate: StepGate;
  /** Null while the disk tier is not used. */
  readonly #disk: () => Snapshots | null;
  readonly #waiting = new Set<Sequence>();

  constructor(cache: KvCache, gate: StepGate, disk: () => Snapshots | null) {
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

  /** Gives a sequence up: it has ended. */
  delete(sequence: Sequence): void {
    this.#waiting.delete(sequence);
  }

  /**
   * Whether the disk has tokens of a prompt that memory does not have. The last token does not count: its logits are
   * needed.
   */
  isUseful({ cacheIds, numPromptTokens }: Sequence): boolean {
    const disk = this.#disk();
    if (!disk) return false;
    const limit = numPromptTokens - 1;
    return disk.missing(cacheIds, limit, this.#cache.lookUp(cacheIds, limit).numTokens) > 0;
  }

  /**
   * Reads what the disk has of a prompt, then calls `onReady` between steps, unless the sequence has ended. Tokens that
   * cannot
   * be read are computed, and so is the rest once the budget has no room for the disk tier.
   */
  async start(sequence: Sequence, onReady: () => void): Promise<void> {
    this.#waiting.add(sequence);
    await this.#disk()!.fetch(
      sequence.cacheIds,
      sequence.numPromptTokens - 1,
      (action) => this.#gate.between(action),
      () => this.#disk() !== null && this.#waiting.has(sequence),
    );
    this.#gate.between(() => {
      if (this.#waiting.delete(sequence)) onReady();
    });
  }
}
