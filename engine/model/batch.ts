/**
 * The interface between the scheduler and the model: what one step runs. The scheduler makes batches and never sees a
 * tensor. The runner runs them and never sees a queue.
 */
import type { KvRows } from '../kv/kvRows.ts';

export type Lane = 'paged' | 'prefill';

const PREFILL_STEP = 512;

/**
 * Rows of the scratch for a prompt of which the prefill lane computes `tokens`: one row of padding more, rounded up so
 * that a file may grow.
 */
export function prefillRows(tokens: number): number {
  return tokens === 0 ? 0 : Math.ceil((tokens + 1) / PREFILL_STEP) * PREFILL_STEP;
}

/**
 * Rows of the separate scratch for short prompts. A completion between two parts of a long prompt must not evict its
 * rows.
 */
export const SHORT_ROWS = 2 * PREFILL_STEP;
/** With fewer rows there is only one scratch, because a second one would make it much smaller. */
const LONG_ROWS = 4 * SHORT_ROWS;

/** Whether short prompts have their own scratch if prompts have up to `tokens` in the prefill lane. */
export function separatesShort(tokens: number): boolean {
  return prefillRows(tokens) >= LONG_ROWS;
}

/** Rows of all scratches if prompts have up to `tokens` in the prefill lane. */
export function scratchRows(tokens: number): number {
  return prefillRows(tokens) + (separatesShort(tokens) ? SHORT_ROWS : 0);
}

/**
 * Shortest text, in tokens, that uses the prefill lane where the machine has not been measured (see laneCrossover).
 * Measured on the shape of Qwen2.5-0.5B without a GPU, behind 512 tokens: 16 tokens are as fast in either lane, 32 by
 * 4% and 64 by a tenth faster.
 */
export const MIN_PREFILL = 32;

/** The largest number of tokens for which so many rows of all scratches are enough. */
export function prefillTokensIn(rows: number): number {
  const own = rows >= LONG_ROWS + SHORT_ROWS ? rows - SHORT_ROWS : Math.min(rows, LONG_ROWS - PREFILL_STEP);
  return Math.max(0, Math.floor(own / PREFILL_STEP) * PREFILL_STEP - 1);
}

/** Consecutive tokens of one sequence. */
export interface BatchSpan {
  /** New tokens, in order. */
  readonly tokenIds: readonly number[];
  /** Position of the first of them in its sequence. */
  readonly startIndex: number;
  /**
   * Pool slots of the rows before it, in order. There are as many as tokens, or fewer after pruning (see keptRows).
   * The runner does not change it.
   */
  readonly contextSlots: Int32Array;
  /** Pool slots that the new tokens' K/V rows are written to, one per token. */
  readonly newSlots: Int32Array;
  /**
   * How the rows are computed; `paged` when left out. `prefill`: in float32 over a scratch, fast for many tokens of a
   * prompt, at most one span of a batch. `paged`: in integers over the pool, fast for few tokens of many sequences.
   * The two give slightly different rows, so a token of a sequence must always take the same lane.
   */
  readonly lane?: Lane;
  /** For the prefill lane: how many tokens of the prompt it computes in all. */
  readonly prefillEnd?: number;
  /**
   * How many of the span's last tokens need logits: 0 inside a prompt, 1 to sample, more to verify a draft or to
   * score.
   */
  readonly numLogits: number;
  /** How many of the span's last tokens return their queries. None when left out. */
  readonly numQueries?: number;
  /** Returns the attention that the rows receive. The span must be the only one of its batch, in the paged lane. */
  readonly measures?: boolean;
}

/** The attention that rows received from the tokens of a span, over the query heads of each KV head. */
export interface ReceivedAttention {
  /**
   * [numLayers, kvHeads, n], n = contextSlots.length + tokenIds.length, rows in that order: the largest that any token
   * gave.
   */
  readonly most: Float32Array;
  /** The same shape: the sum of what all tokens gave. */
  readonly sum: Float32Array;
}

/**
 * Runs a batch over the KV pool and writes the new K/V rows into it. One `run` at a time. If it throws, nothing was
 * written.
 */
export interface ModelRunner {
  readonly vocabSize: number;
  /** Query heads: attention has intermediates of tokens by columns for each of them. One when left out. */
  readonly numHeads?: number;
  /** Columns of the pool that each token of the last step was multiplied with in the paged lane. */
  readonly paidColumns: number;
  /** Bytes of the prefill lane besides the pool. None when left out. */
  readonly scratchBytes?: number;
  /** Whether prompts of up to SHORT_ROWS have their own scratch. */
  separatesShort?: boolean;
  /**
   * Milliseconds of the last run that went into copying rows into the scratch: those of the last part of a prompt, or
   * of all parts if another prompt had evicted them.
   */
  readonly copyMs?: number;
  /** Frees the scratch. Only between runs. */
  releaseScratch?(): void;
  /**
   * Rotates the keys of rows to positions that are `by` further on, in place. Only between runs. Without it there is
   * no shifted reuse.
   */
  shiftKeys?(rows: KvRows, by: number): void;
  /** The attention that the last run measured. Only with an int8 pool. */
  readonly received?: ReceivedAttention | null;
  /**
   * [numLayers, numHeads, n, headSize]: the wanted queries of the last run in batch order. Null if there were none.
   * Only with an int8 pool.
   */
  readonly queries?: Float32Array | null;
  /** Logits of the wanted rows in batch order, [sum of numLogits, vocabSize]. Valid until the next run. */
  run(batch: readonly BatchSpan[]): Promise<Float32Array>;
}
