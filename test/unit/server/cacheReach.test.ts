/** How far a cache reaches, against the pool and the store themselves. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { PoolBudget } from '../../../engine/kv/poolBudget.ts';
import { codecNamed, FORMATS } from '../../../engine/kv/approx/codecs/registry.ts';
import { codingBytes } from '../../../engine/kv/approx/compression.ts';
import { SpillFile } from '../../../engine/kv/disk/spillFile.ts';
import { Lru } from '../../support/kv/lru.ts';
import { checkCache } from '../../../engine/kv/integrity.ts';
import { KvCache } from '../../../engine/kv/kvCache.ts';
import { KEPT_CODEC, KVZIP } from '../../../engine/kv/approx/pruned/keptRows.ts';
import { sketchingBytes } from '../../../engine/kv/approx/sparse/sparseBudget.ts';
import { KvMemory } from '../../../engine/kv/kvMemory.ts';
import { kvBytesPerToken, newKvRows } from '../../../engine/kv/kvRows.ts';
import { codedBlock, plainBlock } from '../../../engine/kv/storedBlocks.ts';
import { cacheOptions, compressionOf } from '../../../engine/kv/approx/approximations.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import { cacheReach, leastBudget, needsOf } from '../../../engine/server/cacheReach.ts';
import { mostPrefillTokens } from '../../../engine/core/memoryBudget.ts';
import { parseConfig } from '../../../engine/model/load/hfConfig.ts';
import { kvShape } from '../../../engine/model/load/importedModel.ts';
import { scratchBytesPerToken } from '../../../engine/model/runtime/prefillFeeds.ts';
import { RopeTable } from '../../../engine/model/runtime/rope.ts';
import { BUILT_IN } from '../../support/builtIn.ts';

const CONFIG = parseConfig(JSON.parse(readFileSync('model/config.json', 'utf8')), null);
const LONG = { ...CONFIG, contextTokens: 1_000_000 };
const DISK_BYTES = 1e9;
const shape = kvShape(CONFIG, 'int8');

/** What coding takes of the kernels' memory beyond what is counted for sketches. */
function codingBeyond(name: string): number {
  const codec = codecNamed(
    name === 'kvzip' || name === 'h2o' ? KEPT_CODEC : name,
    shape,
    new RopeTable(CONFIG.rope, CONFIG.headSize),
  );
  return Math.max(0, codingBytes(compressionOf(name === 'h2o' ? KVZIP : name, [codec])) - sketchingBytes(shape));
}

/** Bytes of a pool of so many slots. */
function poolBytes(numSlots: number): number {
  const pool = new KvPool(shape, 0);
  pool.resize(numSlots);
  return pool.bytes;
}

describe('a model with a longer context than fits in memory', () => {
  const budget = 18e6;
  const reach = cacheReach(LONG, budget, DISK_BYTES);

  test('the longest context is what fits in the pool, exact to a page', () => {
    expect(reach.longestContext).toBe(reach.poolTokens);
    const room = budget - reach.workBytes;
    expect(poolBytes(reach.longestContext)).toBeLessThanOrEqual(room);
    expect(poolBytes(reach.longestContext + 256)).toBeGreaterThan(room);
    // A quarter of the budget is for the scratch, at most.
    expect(reach.workBytes).toBeLessThan(budget / 4 + 1.5e6);
  });

  test('with the disk the context is as long as the engine allows', () => {
    const spillFile = new SpillFile('unused', DISK_BYTES, () => {});
    const pool = new KvPool(shape, 0);
    const cache = new KvCache({
      pool,
      maxBytes: budget - reach.workBytes,
      softSlots: 2 * LONG.contextTokens,
      clock: () => 0,
      ...cacheOptions({ spillFile }),
    });
    cache.longContexts.prefillTokens = mostPrefillTokens(
      budget,
      scratchBytesPerToken(kvShape(LONG, 'int8')),
      LONG.contextTokens,
    );
    expect(reach.sketchedTokens).toBe(cache.longContexts.capacity);
    expect(reach.sketchedTokens).toBeGreaterThan(3 * reach.longestContext);
    expect(cacheReach(LONG, budget, 50e6).sketchedTokens).toBeLessThan(reach.sketchedTokens);
    expect(cacheReach(LONG, budget, 0).sketchedTokens).toBe(0);
  });

  test('the store gets less than one page of the pool', () => {
    for (const { storedTokens, bytesPerToken } of reach.codecs)
      expect(storedTokens * bytesPerToken).toBeLessThan(poolBytes(256));
  });
});

test('for a model with a short context the store gets the rest, and smaller codes fit more tokens', () => {
  const budget = 36 * CONFIG.contextTokens * kvBytesPerToken(shape);
  const { workBytes, poolTokens, longestContext, codecs } = cacheReach(CONFIG, budget, DISK_BYTES);
  expect(longestContext).toBe(CONFIG.contextTokens);
  expect(poolTokens).toBeGreaterThan(20 * longestContext);
  expect(codecs.map(({ codec }) => codec)).toEqual([...FORMATS.map(({ name }) => name), 'kvzip', 'h2o']);
  const exactBytes = plainBlock(newKvRows(shape, 1)).bytes;
  for (const { codec, bytesPerToken, storedTokens, compression } of codecs) {
    // What a page of the pool takes, were all of it kept exactly: so much stays free where all that is stored is coded.
    const kept = ['int8', 'kvzip', 'h2o'].includes(codec) ? 0 : 256 * exactBytes;
    const left = budget - workBytes - poolBytes(longestContext) - kept - codingBeyond(codec);
    expect(storedTokens * bytesPerToken).toBeLessThanOrEqual(left);
    expect((storedTokens + 1) * bytesPerToken).toBeGreaterThan(left);
    expect(compression * bytesPerToken).toBeCloseTo(2 * BUILT_IN.kvValues);
  }
  const of = (name: string) => codecs.find(({ codec }) => codec === name)!;
  // Exact rows as the store has them, and a header of a run beside them.
  const exact = plainBlock(newKvRows(shape, 32)).bytes / 32;
  expect(of('int8').bytesPerToken).toBeGreaterThan(exact);
  expect(of('int8').bytesPerToken).toBeLessThan(exact + 2);
  expect(of('turboquant').storedTokens).toBeGreaterThan(of('int4-kivi').storedTokens);
  expect(of('int4-kivi').compression).toBeGreaterThan(3.5);
  for (const name of ['kvzip', 'h2o'] as const)
    expect(of(name).storedTokens).toBeGreaterThan(of('turboquant').storedTokens);
});

test.each([2e6, 3e6, 4e6])(
  'beside the longest context a cache takes what is named, to a block, and no more: %d bytes',
  (budget) => {
    const { workBytes, longestContext, codecs } = cacheReach(CONFIG, budget, DISK_BYTES);
    expect(longestContext).toBeGreaterThan(500);
    for (const { name } of FORMATS) {
      const codec = codecNamed(name, shape, new RopeTable(CONFIG.rope, CONFIG.headSize));
      const { blockTokens } = codec.format;
      const encoded = codec.encode(newKvRows(shape, blockTokens), { startIndex: 100_000, contextEnd: 200_000 });
      const taken = (numBlocks: number): number => {
        const pool = new KvPool(shape, 0);
        const memory = new KvMemory({
          pool,
          maxBytes: budget - workBytes - codingBeyond(name),
          softSlots: 2 * CONFIG.contextTokens,
          clock: () => 0,
          eviction: new Lru(),
          compression: compressionOf(codec.name, [codec]),
          spillFile: null,
          staleMs: 0,
        });
        // All of it, as far as what is kept free with this codec leaves room.
        const slots = memory.allocate(Math.min(longestContext, memory.budget.maxSlots))!;
        const blocks = Array.from({ length: numBlocks }, () => codedBlock(codec, encoded, blockTokens));
        const ids = Array.from({ length: numBlocks * blockTokens }, (_, i) => i);
        const node = numBlocks > 0 ? memory.insertStored(memory.tree.root, ids, blocks) : null;
        if (node && !codec.lossless) node.lossy = [{ from: 0, to: ids.length, codec: name }];
        checkCache(memory, [], slots);
        return node?.tokenIds.length ?? 0;
      };
      const numBlocks = Math.floor(codecs.find(({ codec }) => codec === name)!.storedTokens / blockTokens);
      expect([name, taken(numBlocks)]).toEqual([name, numBlocks * blockTokens]);
      if (numBlocks > 0) expect([name, taken(numBlocks + 1)]).toEqual([name, 0]);
    }
  },
);

test('a budget of less than a page still holds a short context', () => {
  const { longestContext, poolTokens } = cacheReach(CONFIG, 300_000, DISK_BYTES);
  expect(poolTokens).toBeGreaterThan(100);
  expect(poolTokens).toBeLessThan(256);
  expect(longestContext).toBe(poolTokens);
});

test.each([512, 768])(
  'a pool of whole pages by chance, fewer than four, has as much beside it as one a slot larger: %d slots',
  (numSlots) => {
    const of = (slots: number): PoolBudget =>
      new PoolBudget({ maxBytes: slots * 100, bytesPerSlot: 100, softSlots: 300, reserve: 0 });
    for (const slots of [numSlots, numSlots + 1]) {
      expect(of(slots).bytesBeside(300)).toBe((slots - 300) * 100);
      expect(of(slots).slotsBeside(1000)).toBe(slots - 10);
      expect(of(slots).softSlots).toBe(300);
    }
  },
);

test('a budget that is too small for anything holds nothing', () => {
  expect(cacheReach(CONFIG, 1000, DISK_BYTES)).toMatchObject({ poolTokens: 0, longestContext: 0, sketchedTokens: 0 });
});

test('the minimum budget holds one context and hardly more; with the disk it is smaller', () => {
  for (const [numTokens, diskBytes] of [
    [100, DISK_BYTES],
    [2048, DISK_BYTES],
    [2048, 0],
  ] as const) {
    const reached = (budget: number): number => {
      const { poolTokens, sketchedTokens } = cacheReach(CONFIG, budget, diskBytes);
      return Math.max(poolTokens, sketchedTokens);
    };
    const least = leastBudget(CONFIG, numTokens, diskBytes);
    expect(reached(least)).toBeGreaterThanOrEqual(numTokens);
    expect(reached(least * 0.9)).toBeLessThan(numTokens);
  }
  expect(leastBudget(CONFIG, 2048, DISK_BYTES)).toBeLessThan(leastBudget(CONFIG, 2048, 0) / 1.5);
});

test('a context that fits in memory is not read in parts because of the disk', () => {
  const { numTokens, whole, inParts, spills } = needsOf(CONFIG, 2048, DISK_BYTES);
  expect([numTokens, spills]).toEqual([2048, true]);
  expect(whole).toBeLessThan(leastBudget(CONFIG, 2048, 0) + 2 * sketchingBytes(shape));
  // Nor under any higher budget, where there is room for what the disk takes.
  for (let budget = whole; budget < 3 * whole; budget *= 1.01)
    expect(cacheReach(CONFIG, budget, DISK_BYTES).poolTokens).toBeGreaterThanOrEqual(2048);
  expect(cacheReach(CONFIG, inParts, DISK_BYTES).sketchedTokens).toBeGreaterThanOrEqual(2048);
  expect(needsOf(CONFIG, 2048, 0)).toMatchObject({ inParts: leastBudget(CONFIG, 2048, DISK_BYTES), spills: false });
});
