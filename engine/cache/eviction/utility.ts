/**
 * Utility: how often a run is found for the time that it is kept, times what computing it again would cost, over the bytes that it
 * takes. With nothing learnt that is the order of LRU, but for deep runs, which stay a little longer.
 */
import { isPrefill } from '../../laneIds.ts';
import type { TreeNode } from '../prefixTree.ts';
import type { Eviction } from './eviction.ts';
import { ReuseTimes } from './reuseTimes.ts';

/** Tokens of context at which a token costs twice what it costs at the beginning: of the shape of Qwen2.5-0.5B 512 tokens take 1.4 s at 0 and 4.3 s behind 7,680. */
export const DOUBLED_AT = 3700;

export class Utility implements Eviction {
  readonly #times = new ReuseTimes();
  /** What has been found since it was computed. */
  readonly #found = new Set<TreeNode>();
  /** Numbers for tags: each run is looked at whenever room is made. */
  readonly #tags = new Map<string, number>();
  readonly #bytesPerToken: number;

  /** @param bytesPerToken of rows that are not compressed. */
  constructor(bytesPerToken: number) {
    this.#bytesPerToken = bytesPerToken;
  }

  worth(node: TreeNode, now: number, youngest?: number): number {
    const numTokens = node.tokenIds.length;
    const cost = numTokens * (1 + (node.startIndex + numTokens / 2) / DOUBLED_AT);
    const bytes = node.slots ? node.slots.length * this.#bytesPerToken : node.stored!.bytes;
    return this.#times.worth(this.#classOf(node, youngest), now - node.lastUse, cost / bytes);
  }

  kind(node: TreeNode, now: number, youngest: number): number {
    return this.#times.kind(this.#classOf(node, youngest), now - node.lastUse);
  }

  hit(node: TreeNode, idleMs: number): void {
    this.#times.ended(this.#classOf(node), idleMs, true);
    this.#found.add(node);
  }

  gone(node: TreeNode, idleMs: number): void {
    this.#times.ended(this.#classOf(node), idleMs, false);
    this.#found.delete(node);
  }

  /**
   * Who computed it; what its last tokens are (a run goes from its end: there files, and what the user wrote, are in the prefill
   * lane, answers are not); whether it was found before: what has been found once is mostly found again; and whether its text has
   * gone on in another way since.
   */
  #classOf(node: TreeNode, youngest?: number): number {
    const tag = this.#tags.get(node.tag) ?? this.#tags.size;
    if (tag === this.#tags.size) this.#tags.set(node.tag, tag);
    return (
      8 * tag +
      4 * Number(isPrefill(node.tokenIds.at(-1)!)) +
      2 * Number(this.#found.has(node)) +
      Number(isSuperseded(node, youngest))
    );
  }
}

/** Files part in their headers, not later: what parts there does not replace each other. */
const LONGEST_HEADER = 64;

/** Whether a younger run goes on from the same place, within a file or behind it: mostly the text as it is since an edit. `youngest`: see Eviction, where it is known. */
function isSuperseded(node: TreeNode, youngest?: number): boolean {
  if (node.startIndex < LONGEST_HEADER) return false;
  if (youngest !== undefined) return youngest > node.lastUse;
  for (const other of node.parent!.children.values()) if (other.lastUse > node.lastUse) return true;
  return false;
}
