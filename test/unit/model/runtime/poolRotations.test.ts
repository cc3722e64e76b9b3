/** Rotations for large key biases: each slot has those of its position, whatever happened to its page. */
import { expect, test } from 'vitest';
import { KvPool, PAGE_SLOTS } from '../../../../engine/kv/pool.ts';
import { PoolRotations } from '../../../../engine/model/runtime/poolRotations.ts';
import { RopeTable } from '../../../../engine/model/runtime/rope.ts';

const HEAD = 8;
const HALF = HEAD / 2;
const rope = new RopeTable({ type: 'default', theta: 10_000 }, HEAD);

/** Expects the rotations of the slots of `pages`. */
function check(pool: KvPool, values: Float32Array, pages: readonly number[]): void {
  const L = pool.pageSlots;
  for (const page of pages)
    for (let i = 0; i < L; i++) {
      const position = pool.positions[page * L + i]!;
      rope.ensure(position + 1);
      for (let d = 0; d < HALF; d++) {
        const at = (pool.places[page]! * HEAD + d) * L + i;
        expect(values[at]).toBe(rope.cos[position * HALF + d]);
        expect(values[at + HALF * L]).toBe(rope.sin[position * HALF + d]);
      }
    }
}

test('rotations follow positions through growth, shrinking and exchanged slots, and other pages are not computed', () => {
  const pool = new KvPool({ numLayers: 1, kvHeads: 1, headSize: HEAD, kv: 'int8' }, 2 * PAGE_SLOTS);
  const rotations = new PoolRotations(pool, rope);
  const put = (page: number, first: number): void =>
    pool.mark(
      Int32Array.from({ length: PAGE_SLOTS }, (_, i) => page * PAGE_SLOTS + i),
      first,
    );
  put(0, 0);
  put(1, 500);
  check(pool, rotations.update([0]), [0]);
  const untouched = rotations.values.subarray(PAGE_SLOTS * HEAD);
  expect(untouched.every((value) => value === 0)).toBe(true);
  check(pool, rotations.update([1]), [0, 1]);
  pool.resize(4 * PAGE_SLOTS);
  // What was computed is still there before anything is asked for.
  check(pool, rotations.update([]), [0, 1]);
  put(3, 900);
  put(0, 40);
  check(pool, rotations.update([0, 3]), [0, 1, 3]);
  // A slot of page 3 is exchanged with one of page 1.
  pool.exchange(Int32Array.of(3 * PAGE_SLOTS), Int32Array.of(PAGE_SLOTS));
  check(pool, rotations.update([1, 3]), [0, 1, 3]);
  pool.resize(2 * PAGE_SLOTS);
  check(pool, rotations.update([0, 1]), [0, 1]);
  // Another page size.
  pool.resize(100);
  check(pool, rotations.update([0]), [0]);
});
