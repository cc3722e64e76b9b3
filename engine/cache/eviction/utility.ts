/** Utility: the chance that a run is found again, times what computing it again would cost, over the bytes that it takes. */
import { isPrefill } from '../../laneIds.ts';
import type { TreeNode } from '../prefixTree.ts';
import type { Eviction } from './eviction.ts';
import { ReuseTimes } from './reuseTimes.ts';

/** Tokens of context at which a token costs twice what it costs at the beginning: of the shape of Qwen2.5-0.5B 512 tokens take 1.4 s at 0 and 4.3 s behind 7,680. */
const DOUBLED_AT = 3700;

export class Utility implements Eviction {
  readonly #times = new ReuseTimes();
  readonly #bytesPerToken: number;

  /** @param bytesPerToken of rows that are not compressed. */
  constructor(bytesPerToken: number) {
    this.#bytesPerToken = bytesPerToken;
  }

  worth(node: TreeNode, now: number): number {
    const numTokens = node.tokenIds.length;
    const cost = numTokens * (1 + (node.startIndex + numTokens / 2) / DOUBLED_AT);
    const bytes = node.slots || !node.stored ? numTokens * this.#bytesPerToken : node.stored.bytes;
    return (this.#times.chance(classOf(node), now - node.lastUse) * cost) / bytes;
  }

  hit(node: TreeNode, idleMs: number): void {
    this.#times.ended(classOf(node), idleMs, true);
  }

  gone(node: TreeNode, idleMs: number): void {
    this.#times.ended(classOf(node), idleMs, false);
  }
}

/** What of a request a run is: files and what the user wrote are in the prefill lane. */
function classOf({ tag, tokenIds }: TreeNode): string {
  return `${tag} ${isPrefill(tokenIds[0]!)}`;
}
