/**
 * What one step runs: the spans that the scheduler chose, on one ragged token axis. The border between queues and
 * tensors: the scheduler makes batches and never sees a tensor, the runner runs them and never sees a queue.
 */
import type { KvRows } from '../kv/kvRows.ts';

export type Lane = 'paged' | 'prefill';

const PREFILL_STEP = 512;

/** Rows of the prefill lane's scratch for a prompt of which it computes `tokens`: with one of padding, in steps, so that a file may grow. */
export function prefillRows(tokens: number): number {
  return tokens === 0 ? 0 : Math.ceil((tokens + 1) / PREFILL_STEP) * PREFILL_STEP;
}

/** Rows of a scratch of their own, for short prompts: a completion between two parts of a long one must not drive that one's rows out. */
export const SHORT_ROWS = 2 * PREFILL_STEP;
/** Rows of the other one from which on there are two: it must not become much smaller for it. */
const LONG_ROWS = 4 * SHORT_ROWS;

/** Whether short prompts have a scratch of their own, where prompts have up to `tokens` in the prefill lane. */
export function separatesShort(tokens: number): boolean {
  return prefillRows(tokens) >= LONG_ROWS;
}

/** Rows of all scratches then. */
export function scratchRows(tokens: number): number {
  return prefillRows(tokens) + (separatesShort(tokens) ? SHORT_ROWS : 0);
}

/**
 * Tokens of a text that gain in the prefill lane, at least, where the machine has not been measured (see laneCrossover): on the shape of
 * Qwen2.5-0.5B without a GPU 16 are as fast in either lane behind 512 tokens, 32 by 4% and 64 by a tenth faster.
 */
export const MIN_PREFILL = 32;

/** The most tokens for which so many rows of all scratches are enough. */
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
  /** Pool slots of the rows before it, in order; as many as tokens, or fewer where rows were let go (see keptRows). Not changed by the runner. */
  readonly contextSlots: Int32Array;
  /** Pool slots that the new tokens' K/V rows are written to, one per token. */
  readonly newSlots: Int32Array;
  /**
   * Which way the span's rows are computed: `prefill` in float32 over a scratch, fast for many tokens of a prompt, at most
   * one span of a batch; `pool` in integers over the pool, fast for few tokens of many sequences; that one when left
   * out. The two give slightly different rows, so a sequence's tokens must always take the same.
   */
  readonly lane?: Lane;
  /** Of the prefill lane: how many tokens of the prompt take it in all. */
  readonly prefillEnd?: number;
  /** How many of the span's last tokens need logits: 0 inside a prompt, 1 to sample, more to verify or to score. */
  readonly numLogits: number;
  /** How many of the span's last tokens give their queries; none when left out. */
  readonly numQueries?: number;
  /** Whether it says what attention the rows receive; then it is the batch's only one, in the paged lane. */
  readonly measures?: boolean;
}

/** What attention rows have received of a span's tokens, over the query heads of each KV head. */
export interface ReceivedAttention {
  /** [numLayers, kvHeads, n], n = contextSlots.length + tokenIds.length, rows in that order: the most that any token gave. */
  readonly most: Float32Array;
  /** The same: the sum of what all tokens gave. */
  readonly sum: Float32Array;
}

/**
 * Runs a batch over the KV pool and writes the new K/V rows into it. `run` must not be called again before it has
 * settled. If it throws, nothing was written.
 */
export interface ModelRunner {
  readonly vocabSize: number;
  /** Query heads: attention writes intermediates of tokens by columns for each. One when left out. */
  readonly numHeads?: number;
  /** Columns of the pool that each of the last step's tokens paid for in the paged lane. */
  readonly paidColumns: number;
  /** Memory of the prefill lane, beside the pool; none when left out. */
  readonly scratchBytes?: number;
  /** Whether prompts of up to SHORT_ROWS have memory of their own. */
  separatesShort?: boolean;
  /** ms of the last run in which that memory was given rows: those of a prompt's last part, or of all parts where another prompt had driven them out. */
  readonly copyMs?: number;
  /** Gives that memory back; between runs. */
  releaseScratch?(): void;
  /** Turns the keys of rows to positions that are `by` further on, in place; between runs. Without it nothing is taken over from other places. */
  shiftKeys?(rows: KvRows, by: number): void;
  /** Of the last run's span, where that measured; an int8 pool only. */
  readonly received?: ReceivedAttention | null;
  /** [numLayers, numHeads, n, headSize], of the last run: the wanted queries in batch order; null where none were, an int8 pool only. */
  readonly queries?: Float32Array | null;
  /** Logits of the wanted rows in batch order, [sum of numLogits, vocabSize]; valid until the next run. */
  run(batch: readonly BatchSpan[]): Promise<Float32Array>;
}
