/**
 * The work that an engine does while it is idle: writes file blocks to the disk, compresses or prunes what has not been
 * used
 * for a while, and gives memory back. Does not decide when the engine is idle.
 */
import type { Approximations } from '../kv/approx/approximations.ts';
import type { FileTokens } from '../kv/snapshots.ts';
import { QUIET_MS, type Snapshots } from '../kv/snapshots.ts';
import type { KvCache } from '../kv/kvCache.ts';
import type { StepGate } from './stepGate.ts';

export interface MaintenanceOptions {
  /** Blocks of which nothing is written to the disk. */
  secret?: readonly FileTokens[];
  /** Whether to end as soon as possible. */
  mustEnd?: () => boolean;
  /** On battery: memory is given back, and nothing else is done. */
  sparing?: boolean;
}

interface Parts {
  readonly cache: KvCache;
  readonly approximations: Approximations;
  readonly gate: StepGate;
  /** Null while the disk tier is not used. */
  readonly disk: () => Snapshots | null;
  /** A file block as the cache knows it. */
  readonly blockIds: (tokenIds: readonly number[]) => number[];
  readonly hasWork: () => boolean;
}

export class IdleMaintenance {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** A little of it. False: there is nothing to do, or it must end. Not to be called again before it has settled. */
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
    // First, because rows that are not exact any more are not written.
    if (await this.save(blocks, QUIET_MS)) return true;
    if (!isFree() || mustEnd()) return false;
    const isOver = (): boolean => hasWork() || gate.hasWaiting || mustEnd();
    const contexts = () =>
      [...blocks, ...secret].map(({ tokenIds }) => ({ of: tokenIds, ids: this.#parts.blockIds(tokenIds) }));
    if (await gate.maintain(() => approximations.maintain(contexts, isOver))) return true;
    return isFree() && !mustEnd() && cache.shrink();
  }

  /**
   * Writes one segment of these blocks to the disk, if they have not been used for so long. False: nothing to write.
   */
  async save(blocks: readonly FileTokens[], quietMs: number): Promise<boolean> {
    return (await this.#parts.disk()?.save(blocks, this.#parts.blockIds, quietMs)) ?? false;
  }
}
