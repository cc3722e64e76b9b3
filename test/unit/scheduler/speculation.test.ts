/** The pure parts of speculation: the index of past tokens, what is learnt of drafts, and how long they may be. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  Acceptance,
  ClassRates,
  MIN_RATE,
  PROBE_EVERY,
  type DraftChance,
  draftLengths,
  RowCost,
} from '../../../engine/scheduler/speculation.ts';
import { PromptLookup } from '../../../engine/scheduler/promptLookup.ts';

/** The rule written down without a thought for speed: the longest match with something after it, of equals the last. */
function plainLookup(sources: number[][], sequence: number[], most: number): { matchLength: number; guess: number[] } {
  const all: (number | string)[] = [...sources.flatMap((source, i) => [...source, `end ${i}`]), ...sequence];
  const start = all.length - sequence.length;
  let best = { matchLength: 0, guess: [] as number[] };
  for (let end = 0; end < all.length - 1; end++) {
    let length = 0;
    while (length <= end && all.length - 1 - length >= start && all[end - length] === all[all.length - 1 - length])
      length++;
    if (length < 2 || length < best.matchLength || typeof all[end + 1] === 'string') continue;
    const guess: number[] = [];
    for (let i = 0; i < most; i++) {
      const at = end + 1 + i;
      const token = at < all.length ? all[at] : guess[at - all.length];
      if (typeof token !== 'number') break;
      guess.push(token);
    }
    best = { matchLength: length, guess };
  }
  return best;
}

function lookUp(sources: number[][], sequence: number[], most = 8): PromptLookup & { guessed: number[] } {
  const lookup = new PromptLookup(sources);
  lookup.extend(sequence);
  return Object.assign(lookup, { guessed: lookup.guess(most) });
}

test('prompt lookup proposes what followed the last two tokens, up to the end of that text and into the sequence itself', () => {
  expect(lookUp([], [1, 2, 3, 4, 9, 1, 2]).guessed).toEqual([3, 4, 9, 1, 2, 3, 4, 9]);
  expect(lookUp([[1, 2, 3, 4]], [7, 1, 2]).guessed).toEqual([3, 4]);
  expect(lookUp([], [5, 5, 5], 4).guessed).toEqual([5, 5, 5, 5]);
  expect(lookUp([], [1, 2, 3], 4).guessed).toEqual([]);
  expect(lookUp([], [3], 4).guessed).toEqual([]);
});

test('prompt lookup prefers longer matches, then later ones, then the sequence over its sources', () => {
  expect(lookUp([], [0, 1, 2, 3, 9, 1, 2, 4, 0, 1, 2], 1).guessed).toEqual([3]);
  expect(lookUp([], [0, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2], 1).guessed).toEqual([4]);
  expect(
    lookUp(
      [
        [1, 2, 5],
        [1, 2, 6],
      ],
      [1, 2],
      1,
    ).guessed,
  ).toEqual([6]);
  expect(lookUp([[1, 2, 5]], [1, 2, 3, 1, 2], 1).guessed).toEqual([3]);
});

test('prompt lookup does not match across two texts or propose past the end of one', () => {
  expect(lookUp([[1], [2, 3]], [1, 2], 1).guessed).toEqual([]);
  expect(lookUp([[1, 2]], [2, 3, 1, 2], 1).guessed).toEqual([]);
  expect(lookUp([[8, 1, 2]], [3, 1, 2, 4, 8, 1, 2], 1).guessed).toEqual([4]);
});

test('property: added token by token or at once, the guess is that of a plain search', () => {
  const text = (max: number) => fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: max });
  fc.assert(
    fc.property(
      fc.array(text(12), { maxLength: 2 }),
      text(36),
      fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 8 }),
      (sources, sequence, strides) => {
        const lookup = new PromptLookup(sources, 4);
        for (let length = 0, i = 0; length < sequence.length; i++) {
          length = Math.min(sequence.length, length + strides[i % strides.length]!);
          lookup.extend(sequence.slice(0, length));
          const plain = plainLookup(sources, sequence.slice(0, length), 6);
          expect({ matchLength: lookup.matchLength, guess: lookup.guess(6) }).toEqual({
            ...plain,
            matchLength: Math.min(plain.matchLength, 32),
          });
        }
      },
    ),
    { seed: 5, numRuns: 2000 },
  );
});

test('in a large text with very common pairs a copied run is found', () => {
  const source = Array.from({ length: 50_000 }, (_, i) => (i % 3 === 2 ? 100 + i : i % 3));
  const lookup = new PromptLookup([source]);
  const copied = source.slice(30_000, 30_012);
  lookup.extend([7, ...copied]);
  expect(lookup.guess(6)).toEqual(source.slice(30_012, 30_018));
});

test('the acceptance rate of drafts is learnt; below 15% only one in 32 is tried, which can bring drafting back', () => {
  const acceptance = new Acceptance(new ClassRates());
  expect(acceptance.expect(1, 8).most).toBe(0);
  expect(acceptance.expect(2, 8)).toMatchObject({ most: 8 });
  for (let i = 0; i < 12; i++) acceptance.observe(2, 0, true);
  expect(acceptance.expect(3, 8).rate).toBeLessThan(MIN_RATE);
  let tried = 0;
  for (let i = 0; i < 4 * PROBE_EVERY; i++) tried += acceptance.expect(3, 8).most;
  expect(tried).toBe(4);
  // Long matches are judged by themselves.
  expect(acceptance.expect(20, 8).most).toBe(8);
  for (let i = 0; i < 8; i++) acceptance.observe(2, 1, false);
  expect(acceptance.expect(2, 8)).toMatchObject({ most: 8 });
  for (let i = 0; i < 20; i++) acceptance.observe(20, 8, false);
  expect(acceptance.expect(20, 8).rate).toBeGreaterThan(0.98);
  for (let i = 0; i < 8; i++) acceptance.observe(20, 1, true);
  expect(acceptance.expect(20, 8).rate).toBeLessThan(0.8);
});

test('a new sequence starts with the acceptance rate of its class and is always tried once', () => {
  const rates = new ClassRates();
  const first = (matchLength: number) => new Acceptance(rates).expect(matchLength, 8);
  const unknown = first(20).rate;
  for (let i = 0; i < 30; i++) new Acceptance(rates).observe(20, 0, true);
  expect(first(20).rate).toBeLessThan(unknown);
  for (let i = 0; i < 1000; i++) new Acceptance(rates).observe(20, 0, true);
  expect(first(20)).toEqual({ rate: 0.2, most: 8 });
  expect(first(2).rate).toBeGreaterThan(0.3);
  for (let i = 0; i < 1000; i++) new Acceptance(rates).observe(20, 8, false);
  expect(first(20)).toEqual({ rate: 0.9, most: 8 });
});

/** Tokens per row-time of a step with these drafts. */
function speed(
  chances: readonly DraftChance[],
  lengths: readonly number[],
  numRows: number,
  fixedRows: number,
): number {
  let tokens = chances.length;
  let rows = numRows;
  for (const [i, { rate }] of chances.entries()) {
    rows += lengths[i]!;
    for (let k = 1; k <= lengths[i]!; k++) tokens += rate ** k;
  }
  return tokens / (fixedRows + rows);
}

test('property: no other lengths give more tokens per millisecond', () => {
  const chance = fc.record({
    rate: fc.double({ min: 0, max: 0.99, noNaN: true }),
    most: fc.integer({ min: 0, max: 5 }),
  });
  fc.assert(
    fc.property(
      fc.array(chance, { minLength: 1, maxLength: 3 }),
      fc.double({ min: 0.5, max: 30, noNaN: true }),
      fc.integer({ min: 0, max: 8 }),
      (chances, fixedRows, mostRows) => {
        const numRows = chances.length;
        const lengths = draftLengths(chances, numRows, fixedRows, mostRows);
        expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThanOrEqual(mostRows);
        const chosen = speed(chances, lengths, numRows, fixedRows);
        const tryAll = (at: number, left: number, others: number[]): void => {
          if (at === chances.length)
            return expect(speed(chances, others, numRows, fixedRows)).toBeLessThanOrEqual(chosen * (1 + 1e-9));
          for (let k = 0; k <= Math.min(left, chances[at]!.most); k++) tryAll(at + 1, left - k, [...others, k]);
        };
        tryAll(0, mostRows, []);
      },
    ),
    { seed: 6, numRuns: 500 },
  );
});

test('the cost of a draft row is learnt from steps of several sizes and kept while all have one size', () => {
  const cost = new RowCost();
  const first = cost.fixedRows(0);
  for (let i = 0; i < 10; i++) cost.observe(1, 20, 0);
  expect(cost.fixedRows(3)).toBe(first);
  for (let i = 0; i < 40; i++) cost.observe(1 + (i % 5), 16 + 4 * (1 + (i % 5)), 0);
  expect(cost.fixedRows(0)).toBeCloseTo(4, 1);
  for (let i = 0; i < 200; i++) cost.observe(1, 20, 0);
  expect(cost.fixedRows(0)).toBeCloseTo(4, 1);
  for (let i = 0; i < 60; i++) cost.observe(1 + (i % 9), 20, 0);
  expect(cost.fixedRows(0)).toBeGreaterThan(20);
});

test('rows over more columns cost more, also before that was measured', () => {
  const cost = new RowCost();
  // 16 ms of its own, 2 per row, and 1 or 6 per row for the columns.
  for (let i = 0; i < 40; i++) {
    const rows = 1 + (i % 5);
    const columnMs = i % 2 ? 1 : 6;
    cost.observe(rows, 16 + rows * (2 + columnMs), columnMs);
  }
  expect(cost.fixedRows(0)).toBeCloseTo(8, 1);
  expect(cost.fixedRows(2)).toBeCloseTo(4, 1);
  expect(cost.fixedRows(14)).toBeCloseTo(1, 1);
});
