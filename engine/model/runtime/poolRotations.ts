/**
 * Cosines and sines of the positions of all slots of a pool, for layers with large key biases (see keyBias.ts). Computes
 * only what has changed.
 */
import type { KvPool } from '../../kv/pool.ts';
import type { RopeTable } from './rope.ts';

export class PoolRotations {
  /** [places, headSize, L]: first the cosines, then the sines. Replaced with the arrays of the pool. */
  values = new Float32Array(0);
  readonly #pool: KvPool;
  readonly #rope: RopeTable;
  #generation = -1;
  /** The position that each column of `values` was computed for. */
  #positions = new Int32Array(0);

  constructor(pool: KvPool, rope: RopeTable) {
    this.#pool = pool;
    this.#rope = rope;
  }

  /** Computes the columns whose slot has another position than before, in the places from `first` on. */
  update(first = 0, count = this.#pool.places.length): Float32Array {
    const { positions, places, pageSlots: L, numSlots, generation } = this.#pool;
    const { half } = this.#rope;
    if (this.#generation !== generation) {
      this.values = new Float32Array(2 * half * numSlots);
      // No position is -1, so all columns will be computed.
      this.#positions = new Int32Array(numSlots).fill(-1);
      this.#generation = generation;
    }
    for (const [page, place] of places.entries()) {
      if (place < first || place >= first + count) continue;
      for (let i = 0; i < L; i++) {
        const position = positions[page * L + i]!;
        if (this.#positions[place * L + i] === position) continue;
        this.#rope.ensure(position + 1);
        let at = place * 2 * half * L + i;
        for (let d = 0; d < half; d++, at += L) {
          this.values[at] = this.#rope.cos[position * half + d]!;
          this.values[at + half * L] = this.#rope.sin[position * half + d]!;
        }
        this.#positions[place * L + i] = position;
      }
    }
    return this.values;
  }
}
