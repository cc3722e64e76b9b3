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
  #pageSlots = 0;
  /** The position that each column of `values` was computed for. */
  #positions = new Int32Array(0);

  constructor(pool: KvPool, rope: RopeTable) {
    this.#pool = pool;
    this.#rope = rope;
  }

  /** Computes the columns of `pages` whose slot has another position than before. */
  update(pages: Iterable<number>): Float32Array {
    const { positions, places, pageSlots: L } = this.#pool;
    const { half } = this.#rope;
    this.#follow();
    for (const page of pages) {
      const place = places[page]!;
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

  /** Takes the size of the pool. Columns belong to positions, so those of pages of the same size stay. */
  #follow(): void {
    const { numSlots, pageSlots, generation } = this.#pool;
    if (this.#generation === generation) return;
    const kept = pageSlots === this.#pageSlots ? Math.min(numSlots, this.#positions.length) : 0;
    const values = new Float32Array(2 * this.#rope.half * numSlots);
    values.set(this.values.subarray(0, 2 * this.#rope.half * kept));
    // No position is -1, so new columns will be computed.
    const positions = new Int32Array(numSlots).fill(-1);
    positions.set(this.#positions.subarray(0, kept));
    this.values = values;
    this.#positions = positions;
    this.#pageSlots = pageSlots;
    this.#generation = generation;
  }
}
