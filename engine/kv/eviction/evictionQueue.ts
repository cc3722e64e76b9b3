/** Unreferenced nodes of the pool in eviction order. The order is computed once, because there may be thousands. */

import type { RadixNode, RadixTree } from '../radixTree.ts';
import type { EvictionOrder } from './eviction.ts';

export class EvictionQueue {
  readonly order: EvictionOrder;
  readonly #runs: readonly RadixNode[];
  readonly #known: ReadonlySet<RadixNode>;
  /** So many of the first nodes have left as a whole. */
  #numGone = 0;

  constructor(tree: RadixTree, order: EvictionOrder) {
    this.order = order;
    this.#runs = Array.from(tree.nodes()).filter(isFree).sort(order);
    this.#known = new Set(this.#runs);
  }

  /** The first that has not left and that `may` leave; null: there is none. */
  first(may: (node: RadixNode) => boolean = () => true): RadixNode | null {
    for (let i = this.#numGone; i < this.#runs.length; i++) {
      const left = this.#leftOf(this.#runs[i]!);
      if (left && may(left)) return left;
      if (!left && i === this.#numGone) this.#numGone++;
    }
    return null;
  }

  /** The first nodes with so many tokens in total, or all nodes. Call it before any has left. */
  firstOf(numTokens: number): RadixNode[] {
    let [length, numRuns] = [0, 0];
    while (length < numTokens && numRuns < this.#runs.length) length += this.#runs[numRuns++]!.slots!.length;
    return this.#runs.slice(0, numRuns);
  }

  /** The node, or what is left of it after its end has left: that is its new parent, in its place. */
  #leftOf(run: RadixNode): RadixNode | null {
    if (isFree(run)) return run;
    const { parent } = run;
    return parent && !this.#known.has(parent) ? this.#leftOf(parent) : null;
  }
}

/** Whether a node is in the pool and nobody references it. */
function isFree({ refCount, slots }: RadixNode): boolean {
  return refCount === 0 && slots !== null;
}
