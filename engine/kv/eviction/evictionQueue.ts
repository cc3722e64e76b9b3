/**
 * The runs of the pool that nobody references, in the order in which they leave it. It is reckoned once: a day's work leaves
 * thousands of short ones.
 */

import type { RadixTree, RadixNode } from '../radixTree.ts';
import type { EvictionOrder } from './eviction.ts';

export class EvictionQueue {
  readonly order: EvictionOrder;
  readonly #runs: readonly RadixNode[];
  readonly #known: ReadonlySet<RadixNode>;
  /** Of the first ones, so many have left as a whole. */
  #numGone = 0;

  constructor(tree: RadixTree, order: EvictionOrder) {
    this.order = order;
    this.#runs = Array.from(tree.nodes()).filter(isFree).sort(order);
    this.#known = new Set(this.#runs);
  }

  /** The first that has not left, of those that `may`; null: there is none. */
  first(may: (node: RadixNode) => boolean = () => true): RadixNode | null {
    for (let i = this.#numGone; i < this.#runs.length; i++) {
      const left = this.#leftOf(this.#runs[i]!);
      if (left && may(left)) return left;
      if (!left && i === this.#numGone) this.#numGone++;
    }
    return null;
  }

  /** The first ones, of so many tokens together or all; before any has left. */
  firstOf(numTokens: number): RadixNode[] {
    let [length, numRuns] = [0, 0];
    while (length < numTokens && numRuns < this.#runs.length) length += this.#runs[numRuns++]!.slots!.length;
    return this.#runs.slice(0, numRuns);
  }

  /** It, or what is left of it where its end has left: that is a run of its own above it, in its place. */
  #leftOf(run: RadixNode): RadixNode | null {
    if (isFree(run)) return run;
    const { parent } = run;
    return parent && !this.#known.has(parent) ? this.#leftOf(parent) : null;
  }
}

/** Whether the pool has a run that nobody references. */
function isFree({ refCount, slots }: RadixNode): boolean {
  return refCount === 0 && slots !== null;
}
