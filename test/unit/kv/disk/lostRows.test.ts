/** Rows of a long context that cannot be read back: only their node is dropped, and the log gets one line. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LostRows, SpillFile } from '../../../../engine/kv/disk/spillFile.ts';
import { KvCache } from '../../../../engine/kv/kvCache.ts';
import { kvBytesPerToken, type KvRows, sliceRows } from '../../../../engine/kv/kvRows.ts';
import { sketchBytes } from '../../../../engine/kv/approx/sparse/keySketch.ts';
import { plainBlocks } from '../../../../engine/kv/storedBlocks.ts';
import { cacheOptions } from '../../../../engine/kv/approx/approximations.ts';
import { prune } from '../../../../engine/kv/approx/pruned/keptRows.ts';
import { ShiftedRuns } from '../../../../engine/kv/approx/shifted/shiftedReuse.ts';
import { KvPool } from '../../../../engine/kv/pool.ts';
import { randomRows } from '../../../support/kv/codecRows.ts';
import { CAN_REACH, damage } from '../../../support/kv/damagedSpill.ts';

const SHAPE = { numLayers: 2, kvHeads: 2, headSize: 16, kv: 'int8' as const };
const BYTES = kvBytesPerToken(SHAPE);
const BLOCK = 32;
/** Tokens of the run that is on the disk, and the block of it that is damaged. */
const N = 20 * BLOCK;
const DAMAGED = 9;
const LONG = Array.from({ length: N }, (_, i) => i);
const OTHER = Array.from({ length: 100 }, (_, i) => 5000 + i);
const ROWS = randomRows(SHAPE, N, 1);

let folder: string;
let lines: string[];
let cache: KvCache;
let pool: KvPool;
let spillFile: SpillFile;

/** As a step computes them, in slots of the pool. */
function compute(tokenIds: readonly number[], rows: KvRows, options: { longTokens?: number } = {}): void {
  const lease = cache.open('chat', options);
  const slots = cache.memory.allocate(tokenIds.length)!;
  pool.write(slots, rows, 0, 0);
  cache.append(lease, slots);
  cache.commit(lease, tokenIds);
  cache.release(lease);
}

const known = (tokenIds: readonly number[]): number => cache.prefixes.describe(tokenIds).tokens;

/** As it was found: one line, a cache in order, and all that has nothing to do with it. */
function expectOnlyLost(
  line = /^Rows of tokens \d+ to \d+ of a long context cannot be read back: .*damaged\. They are forgotten, with what goes on from them, and computed anew when they are asked for\.$/,
): void {
  cache.checkIntegrity();
  expect(lines).toEqual([expect.stringMatching(line)]);
  expect(known(OTHER)).toBe(OTHER.length);
}

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kvasir-lost-'));
  lines = [];
  pool = new KvPool(SHAPE, 0);
  spillFile = new SpillFile(folder, 10_000_000, (line) => lines.push(line));
  // Space for the sketches and for a block that is being spilled, beside all pages.
  const maxBytes = 2048 * BYTES + (N / BLOCK) * sketchBytes(SHAPE, BLOCK) + BLOCK * BYTES;
  cache = new KvCache({ pool, maxBytes, softSlots: 256, clock: () => 1, ...cacheOptions({ spillFile }) });
  compute(OTHER, randomRows(SHAPE, OTHER.length, 2));
  compute(LONG, ROWS, { longTokens: N });
  expect(cache.prefixes.describe(LONG)).toMatchObject({ tokens: N, tier: 'store', codecs: [] });
});
afterEach(() => {
  spillFile.close();
  rmSync(folder, { recursive: true, force: true });
});

const damageOne = (): void => damage(folder, DAMAGED * (spillFile.bytes / (N / BLOCK)));
/** Within the damaged block. */
const WITHIN = DAMAGED * BLOCK + 5;

describe.skipIf(!CAN_REACH)('a damaged block', () => {
  test('evicting a branch from the middle of a lost node reads nothing; the loss is found by the next reader', () => {
    damageOne();
    cache.prefixes.evict(LONG.slice(0, WITHIN));
    expect([known(LONG), lines]).toEqual([WITHIN, []]);
    expect(cache.prefixes.readExact(LONG, 0, WITHIN)).toBeNull();
    expect(known(LONG)).toBe(0);
    expectOnlyLost();
  });

  test('of a run that the pool has, too, the copy goes', () => {
    const lease = cache.open();
    expect(cache.advance(lease, LONG, N)).toBe(N);
    damageOne();
    const sparse = cache.open('chat', { longTokens: N });
    expect(cache.advance(sparse, LONG, N)).toBe(N);
    expect(sparse.failure).toBeInstanceOf(LostRows);
    cache.release(sparse);
    cache.release(lease);
    expect(cache.prefixes.readExact(LONG, 0, N)).toEqual(ROWS);
    expect(spillFile.bytes).toBe(0);
    expectOnlyLost(
      /^A copy of the rows of tokens 0 to 640 of a long context cannot be read back: .*damaged\. Nothing is lost: they are in memory, too\.$/,
    );
  });

  test('a leased node stays, and the rest of the eviction proceeds', () => {
    const lease = cache.open('chat', { longTokens: N });
    cache.advance(lease, LONG, N);
    compute([9000, 9001], randomRows(SHAPE, 2, 3));
    damageOne();
    expect(cache.prefixes.readExact(LONG, 0, N)).toBeNull();
    // Which of the two parts is lost is not known.
    cache.prefixes.evict(LONG.slice(0, WITHIN));
    cache.prefixes.evict([9000]);
    expect([known(LONG), known([9000, 9001])]).toEqual([N, 1]);
    expectOnlyLost();
    cache.release(lease);
    expect(known(LONG)).toBe(0);
    expectOnlyLost();
  });

  test('what reads it for the disk tier has nothing to write', () => {
    damageOne();
    expect(cache.prefixes.readExact(LONG, 0, DAMAGED * BLOCK)).toEqual(sliceRows(SHAPE, ROWS, 0, DAMAGED * BLOCK));
    expect(known(LONG)).toBe(N);
    expect(cache.prefixes.readExact(LONG, 0, N)).toBeNull();
    expect(known(LONG)).toBe(0);
    expectOnlyLost();
  });

  test.each([
    { name: 'read', length: 500 },
    { name: 'cut where it ends', length: WITHIN },
    { name: 'cut where it begins', length: N, from: WITHIN, left: WITHIN },
    { name: 'cut into pieces', length: 2 * WITHIN },
  ])('a run of which rows are to go keeps none: $name', ({ length, from = 0, left = 0 }) => {
    damageOne();
    prune(cache.memory, LONG.slice(0, length), from, new Float32Array(4 * length), {
      keep: 0.6,
      layers: new Set([0]),
      name: 'kvzip',
    });
    expect(known(LONG)).toBe(left);
    expectOnlyLost();
  });

  test('rows of the disk tier below a lost node are dropped with it', () => {
    damageOne();
    const ids = [...LONG.slice(0, WITHIN), ...OTHER];
    expect(cache.prefixes.takeStored(ids, WITHIN, plainBlocks(SHAPE, randomRows(SHAPE, 64, 4)), 'idle')).toBe(64);
    expect(cache.prefixes.readExact(ids, 0, WITHIN + 64)).toBeNull();
    expect([known(ids), known(LONG)]).toEqual([0, 0]);
    expectOnlyLost();
  });

  test('rows of the disk tier are not used if the lost node would have to be promoted for them', () => {
    // The pool takes all pages, so a block does not fit beside them.
    const lease = cache.open();
    cache.advance(lease, OTHER, OTHER.length);
    cache.memory.free(cache.memory.allocate(2048 - OTHER.length)!);
    cache.release(lease);
    expect(known(LONG)).toBe(N);
    damageOne();
    const ids = [...LONG, ...OTHER];
    expect(cache.prefixes.takeStored(ids, N, plainBlocks(SHAPE, randomRows(SHAPE, 64, 4)), 'idle')).toBe(0);
    expect(known(LONG)).toBe(0);
    expectOnlyLost();
  });

  test('shifted reuse takes no lost rows, and the slots are returned', () => {
    damageOne();
    const turned: number[] = [];
    const { free } = cache.memory.poolSlots;
    const shift = { start: 210, end: N + 10, by: 10, source: LONG };
    expect(new ShiftedRuns(cache.memory).copy(shift, 210, (rows) => turned.push(rows.numTokens))).toBeNull();
    expect(turned).toEqual([]);
    expect(cache.memory.poolSlots.total - cache.memory.poolSlots.held).toBeGreaterThanOrEqual(free);
    expect(known(LONG)).toBe(0);
    expectOnlyLost();
  });

  test.each([
    { quiet: true, length: N },
    { quiet: true, length: WITHIN },
    { quiet: false, length: N },
    { quiet: false, length: WITHIN },
  ])('a lost node is computed again: $length tokens, quiet: $quiet', ({ quiet, length }) => {
    damageOne();
    const lease = cache.open('', { quiet });
    expect(cache.advance(lease, LONG, length)).toBe(0);
    expect(lease.failure).toBeNull();
    cache.release(lease);
    expect(known(LONG)).toBe(0);
    expectOnlyLost();
    compute(LONG, ROWS);
    expect(cache.prefixes.readExact(LONG, 0, N)).toEqual(ROWS);
    expectOnlyLost();
  });

  test.each([false, true])(
    'who has computed the beginning of it goes on with his own, and that stays; another lease has it: %s',
    (isHeld) => {
      const other = cache.open('chat', { longTokens: N });
      if (isHeld) cache.advance(other, LONG, N);
      damageOne();
      compute(LONG.slice(0, WITHIN), sliceRows(SHAPE, ROWS, 0, WITHIN));
      cache.checkIntegrity();
      expect([known(LONG), lines]).toEqual([N, []]);
      expect(cache.prefixes.readExact(LONG, 0, N)).toBeNull();
      cache.release(other);
      expect(known(LONG)).toBe(WITHIN);
      expect(cache.prefixes.readExact(LONG, 0, WITHIN)).toEqual(sliceRows(SHAPE, ROWS, 0, WITHIN));
      expectOnlyLost();
    },
  );

  test.each([
    { block: DAMAGED, left: [0, 0] },
    { block: N / BLOCK + 1, left: [N, N + 64] },
  ])(
    'a lease that attends to parts of the context has failed; what does not go on from it stays: block $block',
    ({ block, left }) => {
      const [one, two] = [6000, 7000].map((first) => [...LONG, ...Array.from({ length: 64 }, (_, i) => first + i)]) as [
        number[],
        number[],
      ];
      for (const [i, ids] of [one, two].entries()) {
        const lease = cache.open('chat', { longTokens: N + 64 });
        expect(cache.advance(lease, ids, N)).toBe(N);
        const slots = cache.memory.allocate(64)!;
        pool.write(slots, randomRows(SHAPE, 64, 7 + i), 0, N);
        cache.append(lease, slots);
        cache.commit(lease, ids);
        cache.release(lease);
      }
      damage(folder, block * (spillFile.bytes / (N / BLOCK + 4)));
      const lease = cache.open('chat', { longTokens: N + 64 });
      expect(cache.advance(lease, one, N + 64)).toBe(N + 64);
      expect(lease.failure).toBeInstanceOf(LostRows);
      cache.checkIntegrity();
      cache.release(lease);
      expect([known(one), known(two)]).toEqual(left);
      expectOnlyLost();
    },
  );

  test('an error that is not a disk error is not treated as lost rows', () => {
    spillFile.read = () => {
      throw new TypeError('a bug');
    };
    const lease = cache.open();
    const sparse = cache.open('chat', { longTokens: N });
    for (const reads of [
      () => cache.prefixes.readExact(LONG, 0, N),
      () => cache.advance(lease, LONG, N),
      () => cache.advance(sparse, LONG, N),
    ])
      expect(reads).toThrow('a bug');
    expect(known(LONG)).toBe(N);
    expect(lines).toEqual([]);
  });
});

test.skipIf(!CAN_REACH)('one log line per lost node, not per block', () => {
  const later = LONG.map((id) => id + 10_000);
  compute(later, ROWS, { longTokens: N });
  const numBlocks = (2 * N) / BLOCK;
  damage(folder, ...Array.from({ length: numBlocks }, (_, i) => i * (spillFile.bytes / numBlocks)));
  for (const ids of [LONG, later]) expect(cache.prefixes.readExact(ids, 0, N)).toBeNull();
  expect([known(LONG), known(later)]).toEqual([0, 0]);
  expect(lines).toHaveLength(2);
  cache.checkIntegrity();
});
