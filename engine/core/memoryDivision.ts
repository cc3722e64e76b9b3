/**
 * Divides the memory budget among KV rows, the prefill lane's scratch, disk buffers and the approximate techniques;
 * derives
 * the lane limit. Does not choose the budget: see MemoryBudget.
 */
import type { KvCache } from '../kv/kvCache.ts';
import { reservedBytes } from '../kv/approx/approximations.ts';
import { Snapshots } from '../kv/snapshots.ts';
import { prefillRows, prefillTokensIn, scratchRows } from '../model/batch.ts';
import type { EngineOptions } from './engineOptions.ts';
import { MAX_BYTES } from './memoryBudget.ts';

/**
 * Most that the prefill lane's scratch takes of what the budget may come to. A longer prompt goes on in the paged lane.
 */
const PREFILL_SHARE = 0.25;
/** From this share of what the budget may come to, the scratch is as large as under the largest budget. */
const KEPT_FROM = 0.5;

/** A budget without the buffers and kernels, which need as much under any budget. */
export interface DividedBudget {
  /** The lane limit: most tokens of a prompt that are computed in the prefill lane. */
  prefillTokens: number;
  /** For pool and store. Less than all that the scratch leaves, where the next larger scratch is near. */
  rowBytes: number;
}

/**
 * Rows of one lane are no hit in the other, so rows behind the lane limit are found again only under the same limit.
 * That is
 * why the limit seldom changes:
 *
 * - It goes in steps; each step doubles the scratch.
 * - From half of `mostBytes` on, it is the limit of `mostBytes`, the budget that the settings allow. Memory that other
 *   programs take and give back changes nothing in between.
 * - Below, the scratch takes a quarter of `maxBytes`, the budget of now, or what that has beyond the rows of the half.
 *
 * Just below a step, rows get what is left for them above it, so a higher budget never has less room for rows. There,
 * some of
 * the budget stays unused: up to 29%, or half of it where there is no scratch yet. The function has no memory: a budget
 * has
 * one limit, also after a restart.
 */
export function divideBudget(
  maxBytes: number,
  scratchBytesPerToken: number,
  maxContext: number,
  mostBytes = maxBytes,
): DividedBudget {
  const steps = [{ from: 0, tokens: 0, bytes: 0 }];
  for (let rows = prefillRows(1); steps.at(-1)!.from <= mostBytes; rows *= 2) {
    const tokens = Math.min(maxContext, prefillTokensIn(rows));
    steps.push({
      from: (rows * scratchBytesPerToken) / PREFILL_SHARE,
      tokens,
      bytes: scratchRows(tokens) * scratchBytesPerToken,
    });
  }
  // The last step is beyond `mostBytes`.
  const most = steps.at(-2)!;
  for (const step of steps.slice(0, -1))
    step.from = Math.min(step.from, KEPT_FROM * mostBytes - (most.bytes - step.bytes));
  const nextAt = steps.findIndex(({ from }) => from > Math.min(maxBytes, mostBytes));
  const [step, next] = [steps[nextAt - 1]!, steps[nextAt]!];
  return { prefillTokens: step.tokens, rowBytes: Math.min(maxBytes - step.bytes, next.from - next.bytes) };
}

/** The lane limit of such a budget, in tokens. */
export function mostPrefillTokens(
  maxBytes: number,
  scratchBytesPerToken: number,
  maxContext: number,
  mostBytes = maxBytes,
): number {
  return divideBudget(maxBytes, scratchBytesPerToken, maxContext, mostBytes).prefillTokens;
}

/** Every lane limit under which a text of so many tokens may have been computed. Ascending. */
export function laneLimits(numTokens: number): number[] {
  const limits = [0];
  for (let rows = prefillRows(1); limits.at(-1)! < numTokens; rows *= 2)
    limits.push(Math.min(numTokens, prefillTokensIn(rows)));
  return limits;
}

/** Tokens of an ordinary file and conversation, for the memory need of a model that is shown to users. */
const USUAL_TOKENS = 8192;

/**
 * Bytes of the KV cache while a prompt of USUAL_TOKENS, or of the whole context, is read: its rows, and the float32
 * scratch of
 * the prefill lane, under the budget of a machine with memory to spare.
 */
export function cacheBytesAtWork(bytesPerToken: number, scratchBytesPerToken: number, contextTokens: number): number {
  const tokens = Math.min(USUAL_TOKENS, contextTokens);
  return (
    tokens * bytesPerToken +
    scratchRows(mostPrefillTokens(MAX_BYTES, scratchBytesPerToken, tokens)) * scratchBytesPerToken
  );
}

/** The division of one engine's budget, as it is now. */
export class MemoryDivision {
  readonly #options: EngineOptions;
  readonly #diskBufferBytes: number;
  /** The whole budget, in bytes. */
  maxBytes = 0;
  /** See EngineOptions. */
  mostBytes: number;
  usesDisk: boolean;
  /** The lane limit, in tokens. */
  prefillTokens = 0;

  constructor(options: EngineOptions) {
    const { snapshots, pool, mostBytes = options.maxBytes, usesDisk = true } = options;
    this.#options = options;
    this.#diskBufferBytes = snapshots ? Snapshots.bufferBytes(pool.shape) : 0;
    this.mostBytes = mostBytes;
    this.usesDisk = usesDisk;
  }

  /** Bytes of the disk tier's buffers, at most. */
  get bufferBytes(): number {
    return this.usesDisk ? this.#diskBufferBytes : 0;
  }

  /** Sets the budget. Returns the bytes for pool and store. */
  divide(maxBytes: number): number {
    const { prefillTokens, rowBytes } = this.#division(maxBytes);
    this.maxBytes = maxBytes;
    this.prefillTokens = prefillTokens;
    return rowBytes - this.bufferBytes - reservedBytes(this.#options, this.#options.pool.shape);
  }

  /** Tokens of a context that the prefill lane computes: all of a long context of which it holds only parts. */
  laneLimit(numTokens: number, { capacity, longContexts }: KvCache): number {
    return numTokens > capacity && longContexts.slotsFor(numTokens) <= this.prefillTokens
      ? numTokens
      : this.prefillTokens;
  }

  #division(maxBytes: number): DividedBudget {
    const { prefillBytesPerToken: perToken = 0, prefillTokens, maxContext } = this.#options;
    if (perToken === 0) return { prefillTokens: 0, rowBytes: maxBytes };
    if (prefillTokens === undefined) return divideBudget(maxBytes, perToken, maxContext, this.mostBytes);
    return { prefillTokens, rowBytes: maxBytes - scratchRows(prefillTokens) * perToken };
  }
}
