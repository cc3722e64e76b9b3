/** Feeds texts to a runner without a scheduler, for measurements. Nothing else may hold slots of its pool meanwhile. */
import type { Lane } from '../batch.ts';
import type { OnnxRunner } from '../runtime/runner.ts';
import { logProbabilities } from './divergence.ts';

const CHUNK = 256;

/** Slots from .. to-1. */
export function slotRange(from: number, to: number): Int32Array {
  return Int32Array.from({ length: to - from }, (_, i) => from + i);
}

/** How many steps `computeRows` takes for so many tokens. */
export function numChunks(numTokens: number): number {
  return Math.ceil(numTokens / CHUNK);
}

/**
 * Computes the K/V rows of tokens from .. end-1 in chunks and writes them to their slots. `slots` holds one slot per
 * token.
 */
export async function computeRows(
  runner: OnnxRunner,
  ids: readonly number[],
  slots: Int32Array,
  { from = 0, end = ids.length, lane = 'prefill' as Lane, onChunk = () => {} } = {},
): Promise<void> {
  for (let at = from; at < end; at += CHUNK) {
    const to = Math.min(end, at + CHUNK);
    await runner.run([
      {
        tokenIds: ids.slice(at, to),
        startIndex: at,
        contextSlots: slots.subarray(0, at),
        newSlots: slots.subarray(at, to),
        lane,
        prefillEnd: end,
        numLogits: 0,
      },
    ]);
    onChunk();
  }
}

/**
 * Feeds `ids` behind a context, in the paged lane. Returns the log-probabilities of the next token after each of them.
 */
export async function scoreTokens(
  runner: OnnxRunner,
  ids: readonly number[],
  startIndex: number,
  contextSlots: Int32Array,
  newSlots: Int32Array,
): Promise<Float64Array[]> {
  const { vocabSize } = runner;
  const logits = await runner.run([{ tokenIds: ids, startIndex, contextSlots, newSlots, numLogits: ids.length }]);
  return ids.map((_, i) => logProbabilities(logits.subarray(i * vocabSize, (i + 1) * vocabSize)));
}

/**
 * Feeds a text in chunks and hands out the logits at every position. Uses slots 0 .. numTokens-1 of the runner's pool.
 * `onRow` gets a view that is valid during the call.
 */
export async function forEachLogits(
  runner: OnnxRunner,
  tokenIds: readonly number[],
  onRow: (position: number, logits: Float32Array) => void,
  chunk = 32,
  lane: Lane = 'paged',
): Promise<void> {
  const { pool, vocabSize } = runner;
  if (pool.numSlots < tokenIds.length) pool.resize(tokenIds.length);
  const slots = slotRange(0, tokenIds.length);
  for (let start = 0; start < tokenIds.length; start += chunk) {
    const ids = tokenIds.slice(start, start + chunk);
    const logits = await runner.run([
      {
        tokenIds: ids,
        startIndex: start,
        contextSlots: slots.subarray(0, start),
        newSlots: slots.subarray(start, start + ids.length),
        lane,
        prefillEnd: lane === 'prefill' ? tokenIds.length : 0,
        numLogits: ids.length,
      },
    ]);
    for (let i = 0; i < ids.length; i++) onRow(start + i, logits.subarray(i * vocabSize, (i + 1) * vocabSize));
  }
}
