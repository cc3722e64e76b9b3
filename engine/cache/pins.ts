/** Prefixes whose runs stay until all others are gone, those still to come included. */
import type { PrefixTree } from './prefixTree.ts';

export class Pins {
  readonly #tree: PrefixTree;
  /** Token prefixes by key. */
  readonly #pinned = new Map<string, readonly number[]>();

  constructor(tree: PrefixTree) {
    this.#tree = tree;
  }

  /** null ends it. */
  pin(key: string, tokenIds: readonly number[] | null): void {
    if (tokenIds) this.#pinned.set(key, tokenIds);
    else this.#pinned.delete(key);
    for (const node of this.#tree.nodes()) node.pinned = false;
    this.mark();
  }

  /** Runs have come into the tree. */
  mark(): void {
    for (const tokenIds of this.#pinned.values())
      for (const node of this.#tree.match(tokenIds).nodes) node.pinned = true;
  }
}
