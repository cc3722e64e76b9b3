/** Computes how many tokens of a model fit in a memory budget, in the KV pool and in the KV store. Pure functions. */
import { scratchRows } from '../model/batch.ts';
import { PoolBudget } from '../kv/poolBudget.ts';
import { longContextTokens, sketchingBytes, type StoredForm, storedForms } from '../kv/approx/approximations.ts';
import { codingBytes, codingReserve } from '../kv/approx/compression.ts';
import type { Needs } from '../scheduler/capacityErrors.ts';
import { kvBytesPerToken } from '../kv/kvRows.ts';
import { divideBudget } from '../core/memoryBudget.ts';
import type { ModelConfig } from '../model/load/hfConfig.ts';
import { kvShape } from '../model/load/importedModel.ts';
import { scratchBytesPerToken } from '../model/runtime/prefillFeeds.ts';
import { RopeTable } from '../model/runtime/rope.ts';
import { Snapshots } from '../kv/snapshots.ts';

/** The usual disk limit in bytes, which is assumed if the disk is switched off. */
const USUAL_DISK = 1e9;

export interface CacheReach {
  /** Memory budget for pool, store, scratch and disk buffers, in bytes. */
  budgetBytes: number;
  /** The part of it for the prefill scratch, disk buffers and sketch buffers, with a prompt of the whole context. */
  workBytes: number;
  /** Tokens of one context that fit in the pool besides. The limit of the model may be lower. */
  poolTokens: number;
  /** The longest context that both the model and the pool allow. */
  longestContext: number;
  /** Tokens of one context that is read in parts with `diskBytes` of disk. 0 if these are not above `poolTokens`. */
  sketchedTokens: number;
  diskBytes: number;
  codecs: CodecReach[];
}

interface CodecReach extends Pick<StoredForm, 'codec' | 'bytesPerToken'> {
  /** Compared with two bytes per value. */
  compression: number;
  /** Tokens that fit in the store beside the longest context in the pool. */
  storedTokens: number;
}

interface ReachOptions {
  /** The highest budget under the same settings. It sets the size of the prefill scratch (see divideBudget). */
  readonly mostBytes?: number;
  /** The native kernels compute, which have no scratch. */
  readonly hasOneLane?: boolean;
}

/** @param diskBytes disk limit for rows that do not fit in memory */
export function cacheReach(
  config: ModelConfig,
  budgetBytes: number,
  diskBytes: number,
  { mostBytes = budgetBytes, hasOneLane = false }: ReachOptions = {},
): CacheReach {
  const shape = kvShape(config, 'int8');
  const { numLayers, kvHeads, headSize } = shape;
  const scratchBytes = hasOneLane ? 0 : scratchBytesPerToken(shape);
  const { prefillTokens, rowBytes } = divideBudget(budgetBytes, scratchBytes, config.contextTokens, mostBytes);
  const keeps = Snapshots.fitUnder(budgetBytes, shape);
  const kernelBytes = diskBytes > 0 ? sketchingBytes(shape) : 0;
  const besideBytes = (keeps ? Snapshots.bufferBytes(shape) : 0) + kernelBytes;
  const workBytes = scratchRows(prefillTokens) * scratchBytes + besideBytes;
  const slotBytes = kvBytesPerToken(shape);
  const budgetBeside = (bytes: number, reserve: number): PoolBudget =>
    new PoolBudget({
      maxBytes: Math.max(0, rowBytes - besideBytes - bytes),
      bytesPerSlot: slotBytes,
      softSlots: 2 * config.contextTokens,
      reserve,
    });
  const budget = budgetBeside(0, 0);
  const poolTokens = budget.maxSlots;
  const longestContext = Math.min(poolTokens, config.contextTokens);
  const rope = RopeTable.of(config);
  const codecs = storedForms(shape, rope).map(({ codec, bytesPerToken, compression }) => {
    const moreKernelBytes = Math.max(0, codingBytes(compression) - kernelBytes);
    const left = budgetBeside(moreKernelBytes, codingReserve(compression, shape)).bytesBeside(longestContext);
    return {
      codec,
      bytesPerToken,
      compression: (numLayers * kvHeads * headSize * 2 * 2) / bytesPerToken,
      storedTokens: Math.floor(Math.max(0, left) / bytesPerToken),
    };
  });
  const sketchedTokens = longContextTokens(shape, { budget, diskBytes, prefillTokens });
  return {
    budgetBytes,
    workBytes,
    poolTokens,
    longestContext,
    sketchedTokens: sketchedTokens > poolTokens ? sketchedTokens : 0,
    diskBytes,
    codecs,
  };
}

/**
 * The budgets that are enough for texts of `numTokens`.
 * @param diskBytes see cacheReach. 0 means that nothing is read in parts.
 */
export function needsOf(config: ModelConfig, numTokens: number, diskBytes: number, hasOneLane = false): Needs {
  return {
    numTokens,
    whole: leastBudget(config, numTokens, diskBytes, { isWhole: true, hasOneLane }),
    inParts: leastBudget(config, numTokens, diskBytes || USUAL_DISK, { hasOneLane }),
    spills: diskBytes > 0,
  };
}

/**
 * The smallest budget in bytes, exact to about 1.6%, with which a context of `numTokens` fits. `isWhole`: not in parts.
 * Searches from above, because more tokens may fit in a slightly smaller budget, which has smaller parts.
 */
export function leastBudget(
  config: ModelConfig,
  numTokens: number,
  diskBytes: number,
  { isWhole = false, hasOneLane = false } = {},
): number {
  const reaches = (budgetBytes: number): boolean => {
    const { poolTokens, sketchedTokens } = cacheReach(config, budgetBytes, diskBytes, { hasOneLane });
    return Math.max(poolTokens, isWhole ? 0 : sketchedTokens) >= numTokens;
  };
  let high = 1e6;
  while (!reaches(high)) high *= 2;
  // All budgets above twice this one are enough.
  for (high *= 2; reaches((63 / 64) * high); ) high *= 63 / 64;
  return Math.ceil(high);
}
