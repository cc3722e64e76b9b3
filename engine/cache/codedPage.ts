/**
 * PURE: which runs leave a full window together, coded on their way, so that a page of it is given back. What leaves takes less than
 * the page did, and for the moment in which there is both, bytes are kept free (see codingReserve): so nothing has to go for it.
 */
import type { KvCodec } from './codecs/kvCodec.ts';
import type { KvShape } from './kvRows.ts';
import { isExact } from './lossyRows.ts';
import { placeOf, type TreeNode } from './prefixTree.ts';
import { codedBytes } from './toCode.ts';

/** What a run is coded with while memory is short; null: with nothing, it is too young. */
export type Coding = (node: TreeNode) => KvCodec | null;

/** The end of a run of the window that is about to go to the store, and what it is coded with on its way. */
interface Leaving {
  readonly node: TreeNode;
  readonly length: number;
  readonly codec: KvCodec | null;
}

/** So many rows at the ends of `runs`, first to go first; none where they are too few, or take more than `room` bytes in the store. */
export function codedPage(runs: readonly TreeNode[], numRows: number, room: number, coding: Coding, shape: KvShape): Leaving[] {
  const page: Leaving[] = [];
  let [missing, bytes] = [numRows, 0];
  for (const node of runs) {
    if (missing <= 0) break;
    const codec = coding(node);
    const all = node.slots!.length;
    const length = Math.min(missing, all);
    // What is coded already, and has come back, would take as much as it does.
    if (!codec || node.stored || !isLast(node, page) || !isExact(node.lossy, all - length, all)) continue;
    page.push({ node, length, codec });
    missing -= length;
    bytes += codedBytes(shape, length, codec, placeOf(node, length));
  }
  return missing <= 0 && bytes <= room ? page : [];
}

/** Whether nothing in the window goes on from a run, but for what leaves before it. */
export function isLast({ children }: TreeNode, leaving: readonly Leaving[] = []): boolean {
  return ![...children.values()].some((child) => child.slots && !leaving.some(({ node }) => node === child));
}
