/**
 * What measurements share: feeding texts to a runner without a scheduler, comparing next-token distributions, and
 * keeping results in files. Nothing else may hold slots of the pool during a measurement.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Lane } from '../batch.ts';
import type { Runner } from '../batch.ts';
import { makeFolders } from '../../kv/disk/makeFolders.ts';

const CHUNK = 256;

/** Slots from .. to-1. */
export function slotRange(from: number, to: number): Int32Array {
  return Int32Array.from({ length: to - from }, (_, i) => from + i);
}

/** How many steps `computeRows` takes for `numTokens`. */
export function numChunks(numTokens: number): number {
  return Math.ceil(numTokens / CHUNK);
}

/** The result of `work`. Gives the scratch and the slots back that it took, also after an error. */
export async function releasing<T>(runner: Runner, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    runner.releaseScratch();
    runner.pool.resize(0);
  }
}

/** Computes the KV rows of tokens from .. end-1 in chunks and writes them to `slots`, one per token. */
export async function computeRows(
  runner: Runner,
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
 * Feeds `ids` after a context, in the paged lane. Returns the log-probabilities of the next token after each of them.
 */
export async function scoreTokens(
  runner: Runner,
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
 * Feeds a text in chunks and passes on the logits at every position. Uses slots 0 .. numTokens-1 of the pool. `onRow`
 * gets a view that is valid during the call only.
 */
export async function forEachLogits(
  runner: Runner,
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

/** How far next-token distributions are from those of a reference, summed over positions. */
export interface Divergence {
  /** KL(reference || row) in nats. */
  klSum: number;
  klMax: number;
  /** Positions with the same most probable token. */
  agreed: number;
  numTokens: number;
}

export function noDivergence(): Divergence {
  return { klSum: 0, klMax: 0, agreed: 0, numTokens: 0 };
}

/** log softmax of a row, in float64. */
export function logProbabilities(logits: Float32Array): Float64Array {
  let max = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < logits.length; i++) if (logits[i]! > max) max = logits[i]!;
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp(logits[i]! - max);
  const norm = max + Math.log(sum);
  // Float64Array.from takes five times as long as all of this.
  const row = new Float64Array(logits.length);
  for (let i = 0; i < row.length; i++) row[i] = logits[i]! - norm;
  return row;
}

/** Adds one position, both as log-probabilities. */
export function addPosition(to: Divergence, reference: Float64Array, row: Float64Array): void {
  let kl = 0;
  for (let i = 0; i < row.length; i++) kl += Math.exp(reference[i]!) * (reference[i]! - row[i]!);
  to.klSum += kl;
  to.klMax = Math.max(to.klMax, kl);
  to.agreed += argmax(row) === argmax(reference) ? 1 : 0;
  to.numTokens++;
}

/** Adds the positions of another measurement. */
export function addDivergence(to: Divergence, { klSum, klMax, agreed, numTokens }: Divergence): void {
  to.klSum += klSum;
  to.klMax = Math.max(to.klMax, klMax);
  to.agreed += agreed;
  to.numTokens += numTokens;
}

function argmax(row: Float64Array): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i]! > row[best]!) best = i;
  return best;
}

/**
 * The result that the file `name` in `dir` holds for the same `key`. Otherwise runs `measure` and writes its result.
 * Null is not written. `key`: everything that the result depends on besides the model (format, sizes, bounds).
 */
export async function measuredOnce<T>(
  dir: string,
  name: string,
  key: object,
  measure: () => Promise<T | null>,
): Promise<T | null> {
  const file = path.join(dir, name);
  try {
    const known = JSON.parse(await readFile(file, 'utf8')) as { key?: unknown; result?: T };
    if (known.result && JSON.stringify(known.key) === JSON.stringify(key)) return known.result;
  } catch {
    // Not measured yet, or not our file.
  }
  // `measure` may keep results of its own in the folder.
  await makeFolders(dir).catch(() => undefined);
  const result = await measure();
  if (result === null) return null;
  try {
    const draft = `${file}.${process.pid}`;
    await writeFile(draft, `${JSON.stringify({ key, result })}\n`);
    await rename(draft, file);
  } catch {
    // Measured again at the next start.
  }
  return result;
}
