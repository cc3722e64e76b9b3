/**
 * Divides the memory budget among KV rows, the scratch of the prefill lane, disk buffers and approximate techniques,
 * and derives the lane limit. Does not choose the budget: see MemoryBudget.
 */
import type { KvCache } from '../kv/kvCache.ts';
import { reservedBytes } from '../kv/approx/approximations.ts';
import { Snapshots } from '../kv/snapshots.ts';
import { prefillRows, prefillTokensIn, scratchRows } from '../model/batch.ts';
import type { EngineOptions } from './engineOptions.ts';
import { MAX_BYTES } from './memoryBudget.ts';

/** Largest share of the budget for the scratch of the prefill lane. Longer prompts continue in the paged lane. */
const PREFILL_SHARE = 0.25;
/** From this share of the largest budget on, the scratch is as large as under the largest budget. */
const KEPT_FROM = 0.5;

/** A divided budget, before buffers and kernels, which take the same under any budget. */
export interface DividedBudget {
  /** The lane limit: most tokens of a prompt that are computed in the prefill lane. */
  prefillTokens: number;
  /** Bytes for pool and store. Less than the scratch leaves if the next larger scratch is near. */
  rowBytes: number;
}

/**
 * The lane limit should seldom change: a row computed in one lane is not found in the other, so rows behind the limit
 * are found again only under the same limit.
 *
 * - The limit has steps. Each step doubles the scratch.
 * - From half of `mostBytes` on, the budget that the settings allow, it is the limit of `mostBytes`. So memory that
 *   other programs take and give back changes nothing in that range.
 * - Below, the scratch takes a quarter of the present `maxBytes`, or what `maxBytes` has beyond the rows of the half.
 *
 * Just below a step, rows get no more than just above it, so a larger budget never holds fewer rows. There a part of
 * the budget stays unused: up to 29%, or half of it if there is no scratch yet. The result depends on the arguments
 * alone, so a budget has the same limit after a restart.
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

/** The lane limit of a budget, in tokens. */
export function mostPrefillTokens(
  maxBytes: number,
  scratchBytesPerToken: number,
  maxContext: number,
  mostBytes = maxBytes,
): number {
  return divideBudget(maxBytes, scratchBytesPerToken, maxContext, mostBytes).prefillTokens;
}

/** Each lane limit under which a text of `numTokens` tokens may have been computed. Ascending. */
export function laneLimits(numTokens: number): number[] {
  const limits = [0];
  for (let rows = prefillRows(1); limits.at(-1)! < numTokens; rows *= 2)
    limits.push(Math.min(numTokens, prefillTokensIn(rows)));
  return limits;
}

/** Tokens of an ordinary file and conversation, for the memory need of a model as users see it. */
const USUAL_TOKENS = 8192;

/**
 * Bytes of the KV cache during the prefill of USUAL_TOKENS tokens, or of the whole context if shorter: its rows and the
 * float32 scratch of the prefill lane, under the largest budget.
 */
export function cacheBytesAtWork(bytesPerToken: number, scratchBytesPerToken: number, contextTokens: number): number {
  const tokens = Math.min(USUAL_TOKENS, contextTokens);
  return (
    tokens * bytesPerToken +
    scratchRows(mostPrefillTokens(MAX_BYTES, scratchBytesPerToken, tokens)) * scratchBytesPerToken
  );
}

/** The present division of one engine's budget. */
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

  /** Most bytes of the disk tier's buffers. */
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

  /** Most tokens of a context in the prefill lane: all of a long context, if the scratch holds the parts in use. */
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
