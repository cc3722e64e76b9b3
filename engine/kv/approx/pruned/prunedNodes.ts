/**
 * Drops rows of nodes: finds what may be dropped, cuts nodes into pieces and keeps a share of each. Does not decide
 * which contexts lose rows, or when; that is up to Pruning.
 */
import type { KvMemory } from '../../kvMemory.ts';
import { isUsed, lengths, numRows, pathTo, type RadixNode } from '../../radixTree.ts';
import { isExact } from '../lossyRows.ts';
import { keptTokens, type PruningName, pieceLengths, rowsOf } from './keptRows.ts';

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
