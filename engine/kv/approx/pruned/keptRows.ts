/**
 * PURE: which rows of a context's tokens stay where not all do, and the rows that come of it. All layers and heads keep
 * those of the
 * same tokens. Which they are is what the layers say that need their rows most: of a model with few layers the last one
 * nearly alone finds
 * what is asked for, and what the others attend to is most of all what nothing is asked about. After KVzip (arXiv
 * 2505.23416), whose heads
 * share one budget unevenly: here slots are shared by all heads, and it is bits that they have unevenly
 * (codecs/graded.ts).
 */
import type { KvCodec } from '../codecs/kvCodec.ts';
import { copyRows, type KvRows, type KvShape, newKvRows } from '../../kvRows.ts';

/** What the loss is called where codecs are named. */
export const KVZIP = 'kvzip';
export const H2O = 'h2o';
export type PruningName = typeof KVZIP | typeof H2O;
/**
 * Share of the tokens whose rows stay, and what these are coded with later: together less than a third of the bytes.
 * What a conversation's
 * own tokens attended to says less of what later ones will.
 */
export const KEPT_SHARES: Readonly<Record<PruningName, number>> = { [KVZIP]: 0.9, [H2O]: 0.9 };
export const KEPT_CODEC = 'turboquant';
/** The end of a conversation, which what comes next refers to most, stays. */
export const RECENT_TOKENS = 128;
/**
 * The beginning of a context stays: whatever it says, models attend to it where there is nothing to look for (sinks),
 * and large ones
 * fall apart without it. As many as StreamingLLM keeps (arXiv 2309.17453).
 */
export const SINK_TOKENS = 4;
/** Longer contexts are cut: an edit voids the piece that it is in and those behind it. */
const MAX_TOGETHER = 512;

/** Bytes per token of a long context of which that share stays, coded: with each row its place. */
export function keptBytesPerToken(codec: KvCodec, name: PruningName): number {
  return KEPT_SHARES[name] * (codec.bytesPerToken(codec.format.blockTokens) + Int32Array.BYTES_PER_ELEMENT);
}

/** Lengths of the pieces of so many tokens, each of which keeps its share. */
export function pieceLengths(numTokens: number): number[] {
  const size = Math.ceil(numTokens / Math.ceil(numTokens / MAX_TOGETHER));
  return Array.from({ length: Math.ceil(numTokens / size) }, (_, i) => Math.min(size, numTokens - i * size));
}

/**
 * Which `count` of n tokens stay, ascending: a context's first ones, and those that receive most in the layers that
 * decide.
 * @param attention [numLayers * kvHeads, n], what each token's row receives. @param startIndex of the first of them in
 * its context.
 */
export function keptTokens(
  { numLayers, kvHeads }: KvShape,
  attention: Float32Array,
  count: number,
  layers: ReadonlySet<number>,
  startIndex: number,
): Int32Array {
  const n = attention.length / (numLayers * kvHeads);
  const received = new Float32Array(n);
  for (const l of layers)
    for (let h = l * kvHeads; h < (l + 1) * kvHeads; h++)
      for (let i = 0; i < n; i++) received[i]! += attention[h * n + i]!;
  received.fill(Number.POSITIVE_INFINITY, 0, Math.max(0, SINK_TOKENS - startIndex));
  return mostOf(received, count);
}

/**
 * Indices of the `count` largest, ascending; of equal ones the first (of infinite ones, too: their difference is NaN).
 */
function mostOf(values: Float32Array, count: number): Int32Array {
  const order = Int32Array.from(values, (_, i) => i).sort((a, b) => values[b]! - values[a]! || a - b);
  return order.subarray(0, count).sort();
}

/** Of these tokens' rows; `rows` has all of them. */
export function rowsOf(tokens: Int32Array, shape: KvShape, rows: KvRows): KvRows {
  const kept = newKvRows(shape, tokens.length);
  for (let i = 0; i < tokens.length; ) {
    const from = i++;
    while (tokens[i] === tokens[i - 1]! + 1) i++;
    for (let h = 0; h < shape.numLayers * shape.kvHeads; h++)
      copyRows(rows, h, tokens[from]!, kept, h, from, i - from, shape.headSize);
  }
  return kept;
}
