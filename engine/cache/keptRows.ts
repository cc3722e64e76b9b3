/**
 * PURE: which rows of a context's tokens stay where not all do, and the rows that come of it. Every layer and KV head keeps as
 * many, but each its own tokens: those that receive most attention. What is left says with each row only where in its head it
 * stands, so it is of use as a whole and cannot be cut. After KVzip (arXiv 2505.23416), with two differences: its heads share one
 * budget unevenly over the whole context, while here slots are shared by all heads, so each has the same, and in each piece.
 */
import type { KvCodec } from './codecs/kvCodec.ts';
import { type KvRows, type KvShape, newKvRows } from './kvRows.ts';

/** What the loss is called where codecs are named. */
export const KVZIP = 'kvzip';
export const H2O = 'h2o';
export type PruningName = typeof KVZIP | typeof H2O;
/**
 * Share of the rows that stays, and what these are coded with later: of files a third of the bytes. KVzip keeps 30% as they are,
 * which takes as much; with the built-in model that loses far more right answers (docs/compression.md). What a conversation's
 * own tokens attended to says less of what later ones will, so more of them stay.
 */
export const KEPT_SHARES: Readonly<Record<PruningName, number>> = { [KVZIP]: 0.6, [H2O]: 0.7 };
export const KEPT_CODEC = 'int4';
/** The end of a conversation, which what comes next refers to most, stays. */
export const RECENT_TOKENS = 128;
/** Longer contexts are cut: an edit voids the piece that it is in and those behind it. */
const MOST_TOGETHER = 512;

/** Bytes per token of a long context of which that share stays, coded: with each row its place. */
export function keptBytesPerToken(codec: KvCodec, name: PruningName): number {
  return KEPT_SHARES[name] * (codec.bytesPerToken(codec.format.blockTokens) + Int32Array.BYTES_PER_ELEMENT);
}

/** Lengths of the pieces of so many tokens, each of which keeps its share. */
export function pieceLengths(numTokens: number): number[] {
  const size = Math.ceil(numTokens / Math.ceil(numTokens / MOST_TOGETHER));
  return Array.from({ length: Math.ceil(numTokens / size) }, (_, i) => Math.min(size, numTokens - i * size));
}

export interface KeptTokens {
  /** [numLayers * kvHeads, count], ascending in each head: indices of tokens. */
  readonly tokens: Int32Array;
  readonly count: number;
  /** [count], of the layers whose keys are coded without their bias: what such a key is completed by depends on its token's place. */
  readonly places: Int32Array;
}

/**
 * `attention`: [numLayers * kvHeads, n], what each token's row receives; `count` of the n tokens stay. Layers in `biased` keep the
 * same tokens in all heads, those whose best head gives them most.
 */
export function keptTokens({ numLayers, kvHeads }: KvShape, attention: Float32Array, count: number, biased: ReadonlySet<number>): KeptTokens {
  const numHeads = numLayers * kvHeads;
  const n = attention.length / numHeads;
  const tokens = new Int32Array(numHeads * count);
  const common = new Float32Array(n);
  for (const l of biased) for (let h = l * kvHeads; h < (l + 1) * kvHeads; h++) for (let i = 0; i < n; i++) common[i] = Math.max(common[i]!, attention[h * n + i]!);
  const places = mostOf(biased.size > 0 ? common : attention.subarray(0, n), count);
  for (let h = 0; h < numHeads; h++) tokens.set(biased.has(Math.floor(h / kvHeads)) ? places : mostOf(attention.subarray(h * n, (h + 1) * n), count), h * count);
  return { tokens, count, places };
}

/** Indices of the `count` largest, ascending; of equal ones the first. */
function mostOf(values: Float32Array, count: number): Int32Array {
  const order = Int32Array.from(values, (_, i) => i).sort((a, b) => values[b]! - values[a]! || a - b);
  return order.subarray(0, count).sort();
}

/** Of each head the rows of the tokens that it keeps; `rows` has all of them. */
export function rowsOf({ tokens, count }: KeptTokens, shape: KvShape, rows: KvRows): KvRows {
  const { numLayers, kvHeads, headSize } = shape;
  const { numTokens: n } = rows;
  const kept = newKvRows(shape, count);
  for (let h = 0; h < numLayers * kvHeads; h++) {
    const own = tokens.subarray(h * count, (h + 1) * count);
    for (const [i, token] of own.entries()) {
      kept.values.set(rows.values.subarray((h * n + token) * headSize, (h * n + token + 1) * headSize) as never, (h * count + i) * headSize);
      for (let d = 0; d < headSize; d++) kept.keys[(h * headSize + d) * count + i] = rows.keys[(h * headSize + d) * n + token]!;
      if (shape.kv === 'float32') continue;
      kept.keyScales[h * count + i] = rows.keyScales[h * n + token]!;
      kept.valueScales[h * count + i] = rows.valueScales[h * n + token]!;
    }
  }
  return kept;
}
