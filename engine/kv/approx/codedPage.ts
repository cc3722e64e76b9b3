/**
 * Which nodes leave a full pool at once, compressed on the way, so that a page of it is given back. Pure. What leaves
 * takes no more
 * bytes than the page did. While both exist, reserved bytes are used (see codingReserve), so nothing is dropped for it.
 */
import type { KvShape } from '../kvRows.ts';
import { endIndex, type RadixNode } from '../radixTree.ts';
import type { RunPlace } from './codecs/codecFormat.ts';
import type { KvCodec } from './codecs/kvCodec.ts';
import { lossyWithin } from './lossyRows.ts';
import { codedBytes, firstToCode } from './compression.ts';

/** What a run is coded with while memory is short; null: with nothing, it is too young. */
export type Coding = (node: RadixNode) => KvCodec | null;

/**
 * The end of a run of the pool that is about to leave it, and what it is coded with, as far as that makes it smaller;
 * null: with nothing, the store has it.
 */
interface Leaving {
  readonly node: RadixNode;
  readonly length: number;
  readonly codec: KvCodec | null;
}

/** A run that can leave with all that goes on from it in the pool. */
interface Free {
  /** As in Leaving. */
  readonly codec: KvCodec | null;
  /** Where the longest context that goes on from it ends. */
  readonly contextEnd: number;
}

/**
 * So many rows at the ends of `runs`; none where they are too few, or take more than `room` bytes in the store. `runs`:
 * first to go
 * first, each after what goes on from it. Takes time in proportion to them.
 */
export function codedPage(
  runs: readonly RadixNode[],
  numRows: number,
  room: number,
  coding: Coding,
  shape: KvShape,
): Leaving[] {
  if (numRows <= 0) return [];
  const free = freeRuns(runs, coding);
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
  return missing <= 0 && bytes <= room ? page : [];
}

/** Whether nothing in the pool goes on from a run, but for what leaves before it. */
export function isLast({ children }: RadixNode, leaving?: ReadonlyMap<RadixNode, unknown>): boolean {
  for (const child of children.values()) if (child.slots && !leaving?.has(child)) return false;
  return true;
}

/** In the order of `runs`. */
function freeRuns(runs: readonly RadixNode[], coding: Coding): ReadonlyMap<RadixNode, Free> {
  const free = new Map<RadixNode, Free>();
  const endOf = (child: RadixNode): number | undefined => free.get(child)?.contextEnd;
  for (const node of runs) {
    const codec = node.stored ? null : coding(node);
    if ((node.stored || codec) && isLast(node, free)) free.set(node, { codec, contextEnd: deepestEnd(node, endOf) });
  }
  return free;
}

/**
 * From which row on runs are worth leaving, others are not: from the first that gets smaller, as what is coded already,
 * and has come back,
 * and what a codec keeps exactly do not; and from the first of all where only then one that they go on from can leave,
 * and is worth it.
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

/** Position of a node's last `length` tokens as a run of their own. */
export function placeOf(node: RadixNode, length = node.tokenIds.length): RunPlace {
  return { startIndex: endIndex(node) - length, contextEnd: deepestEnd(node) };
}

/** End of the longest context through this node. `known`: ends that have been computed already. */
export function deepestEnd(node: RadixNode, known: (node: RadixNode) => number | undefined = () => undefined): number {
  let end = endIndex(node);
  for (const child of node.children.values()) end = Math.max(end, known(child) ?? deepestEnd(child, known));
  return end;
}
