/** Sketches of keys: how well they tell what a query attends to, and how many bytes they take. */
import { expect, test } from 'vitest';
import { type KvRows, newKvRows } from '../../../../../engine/kv/kvRows.ts';
import { sketchBytes, sketchedAttention, sketchKeys } from '../../../../../engine/kv/approx/sparse/keySketch.ts';
import { type Random, seededRandom } from '../../../../support/engine/workload.ts';

const shape = { numLayers: 2, kvHeads: 2, headSize: 64, kv: 'int8' } as const;
const NUM_HEADS = shape.numLayers * shape.kvHeads;

const gaussian = (random: Random): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** Keys with an offset by channel, as models have them; a few channels are much larger. */
function block(seed: number, n = 64): KvRows {
  const random = seededRandom(seed);
  const rows = newKvRows(shape, n);
  const offsets = Float32Array.from(
    { length: NUM_HEADS * shape.headSize },
    (_, i) => (i % 17 === 0 ? 20 : 3) * gaussian(random),
  );
  for (let h = 0; h < NUM_HEADS; h++) {
    for (let i = 0; i < n; i++) {
      const key = Float32Array.from(
        { length: shape.headSize },
        (_, d) => offsets[h * shape.headSize + d]! + (d % 17 === 0 ? 4 : 1) * gaussian(random),
      );
      const scale = Math.max(...key.map(Math.abs)) / 127;
      rows.keyScales[h * n + i] = scale;
      for (let d = 0; d < shape.headSize; d++)
        rows.keys[(h * shape.headSize + d) * n + i] = Math.round(key[d]! / scale);
    }
  }
  return rows;
}

/** The same from the keys themselves. */
function exactAttention(blocks: readonly KvRows[], tokens: readonly Float32Array[]): number[] {
  const { headSize } = shape;
  const shares = blocks.map(() => 0);
  for (const [h, queries, at] of tokens.flatMap((token) =>
    Array.from({ length: NUM_HEADS }, (_, h) => [h, token, h * headSize] as const),
  )) {
    const powers = blocks.map(({ keys, keyScales, numTokens: n }) => {
      let sum = 0;
      for (let i = 0; i < n; i++) {
        let score = 0;
        for (let d = 0; d < headSize; d++)
          score += queries[at + d]! * keys[(h * headSize + d) * n + i]! * keyScales[h * n + i]!;
        sum += Math.exp(score);
      }
      return sum;
    });
    const total = powers.reduce((sum, power) => sum + power, 0);
    for (const [b, power] of powers.entries()) shares[b] = Math.max(shares[b]!, power / total);
  }
  return shares;
}

const sketched = (rows: KvRows) => ({ sketch: sketchKeys(shape, rows), numTokens: rows.numTokens });

test('a seventh of the rows in bytes', () => {
  const rows = block(1);
  expect(sketchKeys(shape, rows)).toHaveLength(sketchBytes(shape, 64));
  expect(sketchBytes(shape, 64) / (64 * NUM_HEADS * (2 * shape.headSize + 8))).toBeLessThan(0.15);
});

test("a sketch estimates a block's largest attention share about as the keys themselves give it", () => {
  const blocks = Array.from({ length: 12 }, (_, i) => block(i + 1, i === 11 ? 17 : 64));
  const random = seededRandom(50);
  const queries = [1, 2, 3].map(() =>
    Float32Array.from({ length: NUM_HEADS * shape.headSize }, () => 0.15 * gaussian(random)),
  );
  const exact = exactAttention(blocks, queries);
  const rough = [...sketchedAttention(shape, blocks.map(sketched), queries)];
  const order = (shares: number[]): number[] => shares.map((_, i) => i).sort((a, b) => shares[b]! - shares[a]!);
  // What the best third of the blocks by sketch has, beside what the best third has.
  const best = (by: number[]): number =>
    order(by)
      .slice(0, 4)
      .reduce((sum, b) => sum + exact[b]!, 0);
  expect(best(rough) / best(exact)).toBeGreaterThan(0.97);
  for (const [b, share] of rough.entries()) expect(Math.abs(share - exact[b]!)).toBeLessThan(0.25);
});

test('a sketch finds the key that matches a query among ten thousand, at any position', () => {
  const blocks = Array.from({ length: 160 }, (_, i) => block(i + 1));
  const { headSize } = shape;
  const random = seededRandom(9);
  const sketches = blocks.map(sketched);
  for (const wanted of [0, 3, 77, 158, 159]) {
    // A query along what sets one key apart from the mean of its block, in one head of four; noise in the others.
    const queries = Float32Array.from({ length: NUM_HEADS * headSize }, () => 0.02 * gaussian(random));
    const { keys, keyScales, numTokens: n } = blocks[wanted]!;
    for (let d = 0; d < headSize; d++) {
      let mean = 0;
      for (let i = 0; i < n; i++) mean += (keys[d * n + i]! * keyScales[i]!) / n;
      queries[d] = 0.3 * (keys[d * n + 40]! * keyScales[40]! - mean);
    }
    const shares = sketchedAttention(shape, sketches, [queries]);
    const exact = exactAttention(blocks, [queries]);
    const first = (of: ArrayLike<number>): number => Array.from(of).indexOf(Math.max(...Array.from(of)));
    expect(first(shares)).toBe(first(exact));
  }
});

test('identical and zero keys have a sketch', () => {
  const rows = newKvRows(shape, 5);
  const shares = sketchedAttention(
    shape,
    [sketched(rows), sketched(rows)],
    [new Float32Array(NUM_HEADS * shape.headSize).fill(1)],
  );
  for (const share of shares) expect(share).toBeCloseTo(0.5, 5);
});

test('parts of a block have of its sketch what is theirs', () => {
  const one = { ...shape, numLayers: 1, kvHeads: 1 };
  const random = seededRandom(3);
  const blocks = [1, 2].map((seed) => {
    const rows = newKvRows(one, 32);
    const { keys, keyScales } = block(seed, 32);
    rows.keys.set(keys.subarray(0, rows.keys.length));
    rows.keyScales.set(keyScales.subarray(0, 32));
    return { sketch: sketchKeys(one, rows), numTokens: 32 };
  });
  const queries = [Float32Array.from({ length: one.headSize }, () => 0.05 * gaussian(random))];
  const [whole, other] = sketchedAttention(one, blocks, queries);
  for (const at of [1, 7, 16, 31]) {
    const { sketch } = blocks[0]!;
    const [first, rest, same] = sketchedAttention(
      one,
      [{ sketch, numTokens: at }, { sketch, from: at, numTokens: 32 - at }, blocks[1]!],
      queries,
    );
    expect(first! + rest!).toBeCloseTo(whole!, 6);
    expect(same).toBeCloseTo(other!, 6);
    // Alone, each is all there is.
    const [half, apart] = sketchedAttention(one, [{ sketch, from: at, numTokens: 32 - at }, blocks[1]!], queries);
    expect(half! / apart!).toBeCloseTo(rest! / same!, 5);
  }
});
