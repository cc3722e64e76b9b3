/**
 * The work that an engine does while it is idle: writes file blocks to the disk, compresses or prunes rows that have
 * not been used for a while, and gives memory back. Does not decide when the engine is idle.
 */
import type { Approximations } from '../kv/approx/approximations.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { type FileTokens, QUIET_MS, type Snapshots } from '../kv/snapshots.ts';

export interface MaintenanceOptions {
  /** Blocks that must not be written to the disk. */
  secret?: readonly FileTokens[];
  /** Whether to end as soon as possible. */
  mustEnd?: () => boolean;
  /** On battery: gives memory back and does nothing else. */
  sparing?: boolean;
}

interface Parts {
  readonly cache: KvCache;
  readonly approximations: Approximations;
  readonly gate: StepGate;
  readonly blocks: {
    /** Null while the disk tier is not used. */
    readonly usedDisk: Snapshots | null;
    /** The cache ids of a file block. */
    cacheIds(tokenIds: readonly number[]): number[];
  };
  readonly hasWork: () => boolean;
}

export class IdleMaintenance {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Does a little of the work. False: there is nothing to do, or it must end.
   * Must not be called again before its promise has settled.
   */
  async run(
    blocks: readonly FileTokens[],
    { secret = [], mustEnd = () => false, sparing = false }: MaintenanceOptions,
  ): Promise<boolean> {
    const { cache, approximations, gate, hasWork } = this.#parts;
    const isFree = (): boolean => !gate.isBusy && !hasWork();
    if (sparing) {
      if (!gate.isBusy) approximations.cancel();
      return isFree() && cache.shrink(false);
    }
    // Before compression, because only exact rows are written.
    if (await this.save(blocks, QUIET_MS)) return true;
    if (!isFree() || mustEnd()) return false;
    const isOver = (): boolean => hasWork() || gate.hasWaiting || mustEnd();
    const contexts = () =>
      [...blocks, ...secret].map(({ tokenIds }) => ({ of: tokenIds, ids: this.#parts.blocks.cacheIds(tokenIds) }));
    if (await gate.maintain(() => approximations.maintain(contexts, isOver))) return true;
    return isFree() && !mustEnd() && cache.shrink();
  }

  /** Writes one segment of blocks unused for at least `quietMs` to the disk. False: there is nothing to write. */
  async save(blocks: readonly FileTokens[], quietMs: number): Promise<boolean> {
    const files = this.#parts.blocks;
    return (await files.usedDisk?.save(blocks, (tokenIds) => files.cacheIds(tokenIds), quietMs)) ?? false;
  }
}

/**
 * Keeps changes of the cache out of the time in which a step, or maintenance, runs. Actions that arrive meanwhile run
 * as soon as it has ended.
 */
export class StepGate {
  #isBusy = false;
  #actions: (() => void)[] = [];
  /** Maintenance under way. It ends soon once there is work. */
  #maintenance: Promise<unknown> | null = null;

  /** Whether a step or maintenance is under way. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Whether actions wait for it to end. */
  get hasWaiting(): boolean {
    return this.#actions.length > 0;
  }

  /** Runs an action now, or when the step under way has ended. */
  between(action: () => void): void {
    if (this.#isBusy) this.#actions.push(action);
    else action();
  }

  /** Runs a step, after maintenance that is under way. @throws an error while another step is under way */
  async step(work: () => Promise<void>): Promise<void> {
    if (this.#maintenance) await this.#maintenance;
    if (this.#isBusy) throw new Error('A step is under way.');
    this.#isBusy = true;
    try {
      await work();
    } finally {
      this.#isBusy = false;
    }
    // Not after a failed step: the engine must not be used any more.
    this.#runActions();
  }

  /** Runs maintenance. Steps wait for it. */
  async maintain<T>(work: () => Promise<T>): Promise<T> {
    this.#isBusy = true;
    const done = work();
    this.#maintenance = done.catch(() => {});
    try {
      return await done;
    } finally {
      this.#maintenance = null;
      this.#isBusy = false;
      this.#runActions();
    }
  }

  /** Forgets the actions that wait. */
  clear(): void {
    this.#actions = [];
  }

  #runActions(): void {
    for (const action of this.#actions.splice(0)) action();
  }
}
