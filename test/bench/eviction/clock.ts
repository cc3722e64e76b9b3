/**
 * Clock, or second chance: runs stand in a ring in the order in which they came, a hand goes round; one that was found since it
 * passed last is spared once. Cheaper than LRU where each use would have to move an entry; here only for comparison.
 */
import type { RadixNode } from '../../../engine/kv/radixTree.ts';
import type { Eviction } from '../../../engine/kv/eviction/eviction.ts';

interface Place {
  index: number;
  spared: boolean;
}

export class Clock implements Eviction {
  #numPlaces = 0;
  /** Index at which the hand stands. */
  #hand = 0;
  readonly #places = new Map<RadixNode, Place>();

  worth(node: RadixNode): number {
    const { index, spared } = this.#placeOf(node);
    return (spared ? this.#numPlaces : 0) + ((index - this.#hand + this.#numPlaces) % this.#numPlaces);
  }

  hit(node: RadixNode): void {
    this.#placeOf(node).spared = true;
  }

  gone(node: RadixNode): void {
    const { index } = this.#placeOf(node);
    const passed = (index - this.#hand + this.#numPlaces) % this.#numPlaces;
    for (const place of this.#places.values())
      if ((place.index - this.#hand + this.#numPlaces) % this.#numPlaces < passed) place.spared = false;
    this.#hand = index;
    this.#places.delete(node);
  }

  #placeOf(node: RadixNode): Place {
    let place = this.#places.get(node);
    if (!place) {
      place = { index: this.#numPlaces++, spared: false };
      this.#places.set(node, place);
    }
    return place;
  }
}
