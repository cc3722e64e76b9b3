/**
 * Which nodes leave a full pool together, compressed on the way, so that a page can be freed. Pure. They take no more
 * bytes in the store than the page did; meanwhile they use reserved bytes (see codingReserve), so nothing is dropped
 * for them.
 */
import type { KvShape } from '../kvRows.ts';
import { endIndex, type RadixNode } from '../radixTree.ts';
import type { RunPlace } from './codecs/codecFormat.ts';
import type { KvCodec } from './codecs/kvCodec.ts';
import { lossyWithin } from '../storedBlocks.ts';
import { codedBytes, firstToCode } from './compression.ts';

/** The codec for a node while memory is short. Null: none, the node was used too recently. */
export type Coding = (node: RadixNode) => KvCodec | null;

/** The last `length` tokens of a node that leave the pool. `codec` null: they are in the store already. */
interface Leaving {
  readonly node: RadixNode;
  readonly length: number;
  readonly codec: KvCodec | null;
}

/** A node that can leave together with all nodes below it that are in the pool. */
interface Free {
  /** As in Leaving. */
  readonly codec: KvCodec | null;
  /** End of the longest context that continues the node. */
  readonly contextEnd: number;
}

/**
 * So many rows at the ends of `nodes`. Empty where they are too few, or take more than `maxBytes` in the store.
 * `nodes`: in eviction order, children before parents. Takes time in proportion to their number.
 */
export function codedPage(
  nodes: readonly RadixNode[],
  numRows: number,
  maxBytes: number,
  coding: Coding,
  shape: KvShape,
): Leaving[] {
  if (numRows <= 0) return [];
  const free = freeRuns(nodes, coding);
  const firstRows = worthLeaving(free, shape);
  const page: Leaving[] = [];
  let [missing, bytes] = [numRows, 0];
  for (const [node, { codec, contextEnd }] of free) {
    if (missing <= 0) break;
    const first = firstRows.get(node);
    if (first === undefined) continue;
    const all = node.slots!.length;
    const length = codec ? Math.min(missing, all - first) : all;
    page.push({ node, length, codec });
    missing -= length;
    if (codec)
      bytes += codedBytes(
        shape,
        length,
        codec,
        { startIndex: endIndex(node) - length, contextEnd },
        lossyWithin(node.lossy, all - length),
      );
  }
  return missing <= 0 && bytes <= maxBytes ? page : [];
}

/** Whether no node in the pool continues this one, apart from those in `leaving`. */
export function isLast({ children }: RadixNode, leaving?: ReadonlyMap<RadixNode, unknown>): boolean {
  for (const child of children.values()) if (child.slots && !leaving?.has(child)) return false;
  return true;
}

/** In the order of `nodes`. */
function freeRuns(nodes: readonly RadixNode[], coding: Coding): ReadonlyMap<RadixNode, Free> {
  const free = new Map<RadixNode, Free>();
  const endOf = (child: RadixNode): number | undefined => free.get(child)?.contextEnd;
  for (const node of nodes) {
    const codec = node.stored ? null : coding(node);
    if ((node.stored || codec) && isLast(node, free)) free.set(node, { codec, contextEnd: deepestEnd(node, endOf) });
  }
  return free;
}

/**
 * For each node that is worth leaving, its first row that leaves. That is the first row that gets smaller; lossy rows
 * and rows that the codec keeps exactly do not. It is row 0 when the parent is worth leaving too, because the parent
 * can leave only after the whole node.
 */
function worthLeaving(free: ReadonlyMap<RadixNode, Free>, shape: KvShape): ReadonlyMap<RadixNode, number> {
  const firstRows = new Map<RadixNode, number>();
  for (const [node, { codec, contextEnd }] of [...free].reverse()) {
    const opensAnother = node.parent !== null && firstRows.has(node.parent);
    const first =
      !codec || opensAnother
        ? 0
        : firstToCode(shape, node.slots!.length, codec, { startIndex: node.startIndex, contextEnd }, node.lossy);
    if (first !== null) firstRows.set(node, first);
  }
  return firstRows;
}

/** Place of a node's last `length` tokens as a run of their own. */
export function placeOf(node: RadixNode, length = node.tokenIds.length): RunPlace {
  return { startIndex: endIndex(node) - length, contextEnd: deepestEnd(node) };
}

/** End of the longest context through this node. `known`: ends that were computed before. */
export function deepestEnd(node: RadixNode, known: (node: RadixNode) => number | undefined = () => undefined): number {
  let end = endIndex(node);
  for (const child of node.children.values()) end = Math.max(end, known(child) ?? deepestEnd(child, known));
  return end;
}
