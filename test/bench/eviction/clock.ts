/**
 * Evicts by Clock (second chance): a hand goes round the runs in order of arrival and spares a run once if it was hit
 * since the last pass. Cheaper than LRU where each use would move an entry. Used here for comparison only.
 */
import type { RadixNode } from '../../../engine/kv/radixTree.ts';
import type { Eviction } from '../../../engine/kv/eviction/eviction.ts';

interface Place {
  index: number;
  spared: boolean;
}

export class Clock implements Eviction {
  #numPlaces = 0;
  /** Index of the hand. */
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
