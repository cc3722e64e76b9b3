/**
 * Drops rows of nodes: finds what may be dropped, chooses the tokens that keep their rows, the same in all layers and
 * heads, and cuts nodes into pieces. Does not decide which contexts lose rows, or when; that is up to Pruning.
 */
import type { KvCodec } from '../codecs/kvCodec.ts';
import { copyRows, type KvRows, type KvShape, newKvRows } from '../../kvRows.ts';
import type { KvMemory } from '../../kvMemory.ts';
import { isUsed, lengths, numRows, pathTo, type RadixNode } from '../../radixTree.ts';
import { isExact } from '../../storedBlocks.ts';

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
/** Nodes with fewer tokens keep their rows. */
const MIN_PRUNED = 64;

/**
 * How many tokens of a prefix, from token `from` on, could lose rows, and the first of them. They are in exact nodes
 * that were not used since `before`.
 */
export function prunable(
  { tree }: KvMemory,
  tokenIds: readonly number[],
  from: number,
  before: number,
): { numTokens: number; first: number } {
  let [numTokens, first] = [0, Number.POSITIVE_INFINITY];
  for (const [node, length] of lengths(tree.match(tokenIds))) {
    if (!mayPrune(node, length, from) || node.lastUse > before) continue;
    const start = Math.max(from, node.startIndex);
    numTokens += node.startIndex + length - start;
    first = Math.min(first, start);
  }
  return { numTokens, first };
}

/** Pool slots that the cached part of a prefix would need beyond those that it has. */
export function numOutside({ tree }: KvMemory, tokenIds: readonly number[]): number {
  return tree.match(tokenIds).nodes.reduce((sum, node) => sum + (node.slots ? 0 : numRows(node)), 0);
}

/**
 * Drops rows of a prefix from token `from` on. Of each node a share `keep` of the tokens stays, those that keptTokens
 * chooses by these layers. `attention` [numLayers * kvHeads, rows]: what each row of the prefix receives.
 */
export function prune(
  memory: KvMemory,
  tokenIds: readonly number[],
  from: number,
  attention: Float32Array,
  options: { keep: number; layers: ReadonlySet<number>; name: PruningName },
): void {
  const { shape } = memory.pool;
  const numHeads = shape.numLayers * shape.kvHeads;
  const width = attention.length / numHeads;
  let row = 0;
  for (const [node, isPrunable] of pieces(memory, tokenIds, from)) {
    const n = numRows(node);
    const first = row;
    row += n;
    if (!isPrunable || row > width) continue;
    const own = new Float32Array(numHeads * n);
    for (let h = 0; h < numHeads; h++) own.set(attention.subarray(h * width + first, h * width + row), h * n);
    const kept = keptTokens(shape, own, Math.ceil(options.keep * n), options.layers, node.startIndex);
    const all = memory.read(node, 0, n);
    // Its rows are lost, so the nodes below it are gone too.
    if (!all) return;
    const rows = rowsOf(kept, shape, all);
    memory.nodes.prune(
      node,
      rows,
      kept.map((token) => node.startIndex + token),
      options.name,
    );
  }
}

/** Contexts that end in requests with this tag and that nothing continues. */
export function* ownContexts({ tree }: KvMemory, tag: string): Generator<OwnContext> {
  for (const leaf of tree.nodes()) {
    if (leaf.children.size > 0 || leaf.tag !== tag || leaf.pruned) continue;
    let top = leaf;
    while (top.parent?.parent && top.parent.children.size === 1 && top.parent.tag === tag && !top.parent.pruned)
      top = top.parent;
    yield { of: leaf, ids: pathTo(leaf).flatMap((node) => node.tokenIds), from: top.startIndex };
  }
}

interface OwnContext {
  /** Stays the same object as long as the context does. */
  readonly of: object;
  readonly ids: number[];
  /** From here on all tokens are the context's alone and have rows. */
  readonly from: number;
}

/**
 * The nodes of a prefix, and whether their rows may be dropped. Such nodes are cut into pieces first, because a pruned
 * node is only useful as a whole.
 */
function* pieces(
  { tree, nodes }: KvMemory,
  tokenIds: readonly number[],
  from: number,
): Generator<[node: RadixNode, isPrunable: boolean]> {
  for (const [found, length] of lengths(tree.match(tokenIds))) {
    if (!mayPrune(found, length, from)) {
      yield [found, false];
      continue;
    }
    const whole = nodes.beginning(found, length);
    // A split returns a new upper node; `whole` stays the rest.
    if (whole.startIndex < from) yield [nodes.beginning(whole, from - whole.startIndex), false];
    for (const size of pieceLengths(whole.tokenIds.length)) yield [nodes.beginning(whole, size), true];
  }
}

/** Whether rows of a node's first `length` tokens, from token `from` on, may be dropped: all are exact and unused. */
function mayPrune(node: RadixNode, length: number, from: number): boolean {
  const { startIndex, pinned, pruned, lossy } = node;
  const first = Math.max(from - startIndex, 0);
  return !isUsed(node) && !pinned && !pruned && length - first >= MIN_PRUNED && isExact(lossy, first, length);
}

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
 *
 * `layers` are those that need their rows most. In a model with few layers the last one alone finds almost everything
 * that is asked for. After KVzip (arXiv 2505.23416), where heads share one budget unevenly; here heads share slots, and
 * layers have different numbers of bits instead (see codecs/registry.ts).
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
