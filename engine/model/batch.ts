/**
 * The interface between scheduler and model: the batch of one step. The scheduler makes batches and sees no tensors.
 * The runner runs them and sees no queues.
 */
import type { KvPool } from '../kv/pool.ts';
import type { KvRows } from '../kv/kvRows.ts';

export type Lane = 'paged' | 'prefill';

const PREFILL_STEP = 512;

/**
 * Rows of the scratch for a prompt with `tokens` tokens in the prefill lane: one more for padding, rounded up so that a
 * file may grow.
 */
export function prefillRows(tokens: number): number {
  return tokens === 0 ? 0 : Math.ceil((tokens + 1) / PREFILL_STEP) * PREFILL_STEP;
}

/** Rows of the scratch for short prompts. A completion between two chunks of a long prompt must not evict its rows. */
export const SHORT_ROWS = 2 * PREFILL_STEP;
/** With fewer rows in all there is only one scratch, because a second one would make it much smaller. */
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
 * Shortest text, in tokens, that uses the prefill lane on a machine that is not measured (see laneCrossover.ts). In the
 * shape of Qwen2.5-0.5B after 512 tokens, 16 tokens are as fast in both lanes, and the prefill lane is 4% faster for 32
 * tokens and 10% faster for 64.
 */
export const MIN_PREFILL = 32;

/** The largest number of tokens for which `rows` of all scratches are enough. */
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
   * Pool slots of the rows before the span, in order. As many as tokens, or fewer after pruning (see keptRows.ts). The
   * runner does not change the array.
   */
  readonly contextSlots: Int32Array;
  /** Pool slots for the KV rows of the new tokens, one per token. */
  readonly newSlots: Int32Array;
  /**
   * How the rows are computed. `prefill`: in float32 over a scratch, fast for many tokens of a prompt, at most one span
   * of a batch. `paged` (default): in integers over the pool, fast for a few tokens of many sequences. The rows of the
   * two differ slightly, so a token of a sequence must always use the same lane.
   */
  readonly lane?: Lane;
  /** For the prefill lane, how many tokens of the prompt it computes in all. */
  readonly prefillEnd?: number;
  /** How many of the last tokens need logits: 0 inside a prompt, 1 to sample, more to verify a draft or to score. */
  readonly numLogits: number;
  /** How many of the last tokens return their queries. Default: none. */
  readonly numQueries?: number;
  /** Measures the attention that rows receive. The span must be the only one of its batch, in the paged lane. */
  readonly measures?: boolean;
}

/**
 * The attention that rows receive from the tokens of a span, over the query heads of each KV head. Both arrays are
 * [numLayers, kvHeads, n], n = contextSlots.length + tokenIds.length, with rows in that order.
 */
export interface ReceivedAttention {
  /** The largest value from any token. */
  readonly most: Float32Array;
  /** The sum over all tokens. */
  readonly sum: Float32Array;
}

/**
 * Runs a batch over the KV pool and writes new KV rows into it. One `run` at a time. An error means nothing is written.
 */
export interface ModelRunner {
  readonly vocabSize: number;
  /** Query heads. Attention has intermediates of tokens by columns for each head. Default: 1. */
  readonly numHeads?: number;
  /** Columns of the pool that each token of the last step was multiplied with, in the paged lane. */
  readonly paidColumns: number;
  /**
   * Whether all tokens are computed alike. Then the ranges for the prefill lane only mark which text a row belongs to.
   */
  readonly hasOneLane?: boolean;
  /** Bytes of the scratches of the prefill lane. Default: none. */
  readonly scratchBytes?: number;
  /** Whether prompts of up to SHORT_ROWS have a scratch of their own. */
  separatesShort?: boolean;
  /**
   * Milliseconds that the last run needed to copy rows into the scratch: those of the last chunk of the prompt, or of
   * all chunks if another prompt had evicted them.
   */
  readonly copyMs?: number;
  /** Frees the scratches. Only between runs. */
  releaseScratch?(): void;
  /** Rotates keys to positions `by` further on, in place. Only between runs. Needed for shifted reuse. */
  shiftKeys?(rows: KvRows, by: number): void;
  /** The attention that the last run measured, or null. Only with an int8 pool. */
  readonly received?: ReceivedAttention | null;
  /**
   * [numLayers, numHeads, n, headSize]: the wanted queries of the last run in batch order. Null if there were none.
   * Only with an int8 pool.
   */
  readonly queries?: Float32Array | null;
  /** Logits of the wanted rows in batch order, [sum of numLogits, vocabSize]. Valid until the next run. */
  run(batch: readonly BatchSpan[]): Promise<Float32Array>;
}

/** A ModelRunner with what loading and calibration need. */
export interface Runner extends ModelRunner {
  readonly pool: KvPool;
  /** Threads of one step. */
  readonly threads: number;
  /** Native kernels that compute the steps. Undefined with onnxruntime. */
  readonly kernels?: string;
  /** Whether the logits of a token have the same bits with any other tokens in the step. */
  readonly isExact: boolean;
  /** Bytes of the scratch per token. 0 if there is no prefill lane. */
  readonly prefillBytesPerToken: number;
  releaseScratch(): void;
  shiftKeys(rows: KvRows, by: number): void;
  /** Frees everything. Not during a run. */
  dispose(): Promise<void>;
}
