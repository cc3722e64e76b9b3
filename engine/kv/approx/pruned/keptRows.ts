/**
 * Pure: which tokens of a context keep their rows, the same in all layers and heads, and what bytes that takes. Does
 * not change nodes.
 */
import type { KvCodec } from '../codecs/kvCodec.ts';
import { copyRows, type KvRows, type KvShape, newKvRows } from '../../kvRows.ts';

/*
 * The layers that need their rows most decide. In a model with few layers the last one alone finds almost everything
 * that is asked for. After KVzip (arXiv 2505.23416), where heads share one budget unevenly; here heads share slots, and
 * layers have different numbers of bits instead (see codecs/registry.ts).
 */

/** Names of the pruning rules where codecs are named. */
export const KVZIP = 'kvzip';
export const H2O = 'h2o';
export type PruningName = typeof KVZIP | typeof H2O;
/**
 * Share of the tokens that keep their rows. With KEPT_CODEC, which compresses these later, less than a third of the
 * bytes is left. For H2O as many stay, because what earlier tokens attended to says less about later ones.
 */
export const KEPT_SHARES: Readonly<Record<PruningName, number>> = { [KVZIP]: 0.9, [H2O]: 0.9 };
export const KEPT_CODEC = 'turboquant';
/** The last tokens of a conversation keep their rows, because the next message refers to them most. */
export const RECENT_TOKENS = 128;
/**
 * The first tokens of a context keep their rows: models attend to them when there is nothing to look for (attention
 * sinks), and large models fail without them. As many as StreamingLLM keeps (arXiv 2309.17453).
 */
export const SINK_TOKENS = 4;
/** Longer contexts are cut into pieces, because an edit invalidates its piece and those behind it. */
const MAX_TOGETHER = 512;

/** Bytes per token of a long pruned context that is compressed, with the positions of its rows. */
export function keptBytesPerToken(codec: KvCodec, name: PruningName): number {
  return KEPT_SHARES[name] * (codec.bytesPerToken(codec.format.blockTokens) + Int32Array.BYTES_PER_ELEMENT);
}

/** Lengths of the pieces of so many tokens. Each piece keeps its share. */
export function pieceLengths(numTokens: number): number[] {
  const size = Math.ceil(numTokens / Math.ceil(numTokens / MAX_TOGETHER));
  return Array.from({ length: Math.ceil(numTokens / size) }, (_, i) => Math.min(size, numTokens - i * size));
}

/**
 * The `count` of n tokens that keep their rows, ascending: the first tokens of a context, and those that receive most
 * in `layers`. `attention` [numLayers * kvHeads, n]: what each row receives. `startIndex`: of the first of the tokens.
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
 * Indices of the `count` largest values, ascending; of equal ones the first. Infinite values are equal too, although
 * their difference is NaN.
 */
function mostOf(values: Float32Array, count: number): Int32Array {
  const order = Int32Array.from(values, (_, i) => i).sort((a, b) => values[b]! - values[a]! || a - b);
  return order.subarray(0, count).sort();
}

/** A copy of the rows of these tokens. */
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
