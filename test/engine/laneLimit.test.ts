/**
 * The lane limit under a changing budget. Cached rows are found as long as possible, and eviction covers rows of every
 * limit.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { scratchRows } from '../../engine/model/batch.ts';
import { codecNamed } from '../../engine/kv/approx/codecs/registry.ts';
import { DiskTier } from '../../engine/kv/disk/diskTier.ts';
import { kvBytesPerToken, type KvShape } from '../../engine/kv/kvRows.ts';
import { KvPool } from '../../engine/kv/pool.ts';
import { cacheReach, leastBudget } from '../../engine/server/cacheReach.ts';
import { Engine } from '../../engine/core/engine.ts';
import type { EngineOptions } from '../../engine/core/engineOptions.ts';
import {
  divideBudget,
  laneLimits,
  mostPrefillTokens,
  MemoryBudget,
  MAX_BYTES,
} from '../../engine/core/memoryBudget.ts';
import { parseConfig } from '../../engine/model/load/hfConfig.ts';
import { kvShape } from '../../engine/model/load/importedModel.ts';
import { scratchBytesPerToken } from '../../engine/model/runtime/prefillFeeds.ts';
import { Snapshots } from '../../engine/kv/snapshots.ts';
import { FakeRunner, fakeShape } from '../support/engine/fakeRunner.ts';
import { ask, filesOf, tokens, type Watched } from '../support/engine/harness.ts';
import { policyOptions } from '../support/engine/policies.ts';

const SHAPE = fakeShape();
const PER_TOKEN = scratchBytesPerToken(SHAPE);
const MAX_CONTEXT = 8192;
/** A quarter of it is the scratch of 3,583 tokens plus an eighth. */
const MOST = 4 * 4096 * PER_TOKEN;

const LONG = { ...parseConfig(JSON.parse(readFileSync('model/config.json', 'utf8')), null), contextTokens: 1_000_000 };

/**
 * Like the real runner, allocates memory for a prompt's whole prefill lane at its first part. Counts the tokens that
 * each lane computes.
 */
class LaneRunner extends FakeRunner {
  scratchBytes = 0;
  readonly computed = { paged: 0, prefill: 0 };

  override async run(batch: Parameters<FakeRunner['run']>[0]): Promise<Float32Array> {
    for (const { lane = 'paged', prefillEnd, tokenIds } of batch) {
      this.computed[lane] += tokenIds.length;
      if (lane === 'prefill')
        this.scratchBytes = Math.max(
          this.scratchBytes,
          scratchRows(prefillEnd!) * scratchBytesPerToken(this.pool.shape),
        );
    }
    return super.run(batch);
  }

  releaseScratch(): void {
    this.scratchBytes = 0;
  }
}

function opened(options: Partial<EngineOptions> & { shape?: KvShape } = {}): { engine: Engine; runner: LaneRunner } {
  const { shape = SHAPE, ...rest } = options;
  const pool = new KvPool(shape, 0);
  const runner = new LaneRunner(pool);
  const engine = new Engine({
    runner,
    pool,
    maxBytes: MOST,
    maxContext: MAX_CONTEXT,
    tokenBudget: 256,
    clock: () => 0,
    ...policyOptions({ speculation: false }),
    prefillBytesPerToken: scratchBytesPerToken(shape),
    ...rest,
  });
  return { engine, runner };
}

async function drain(engine: Engine, budget = engine.stats().maxBytes): Promise<void> {
  while (engine.hasWork() || engine.isFetching) {
    if (engine.hasWork()) await engine.step();
    else await new Promise(setImmediate);
    engine.checkIntegrity();
    expect(engine.cacheBytes).toBeLessThanOrEqual(budget);
  }
}

/** A question about a block. Another seed gives another question. */
async function question(engine: Engine, block: readonly number[], seed: number): Promise<Watched> {
  const asked = ask(engine, [...block, ...tokens(9, seed)], { prefillTokens: block.length, maxTokens: 4 });
  await drain(engine);
  expect(asked.ended).toBe('length');
  return asked;
}

test('when the budget changes by a fifth, or to half and back, all cached rows are found again; the scratch is counted', async () => {
  const { engine, runner } = opened();
  const block = tokens(3500, 1);
  await question(engine, block, 1);
  expect(runner.computed).toEqual({ prefill: 3500, paged: 9 + 3 });
  for (const [i, share] of [0.8, 1, 1.2, 0.5, 0.6, 1, 0.5].entries()) {
    engine.setMaxBytes(share * MOST);
    expect(engine.cacheBytes).toBeLessThanOrEqual(share * MOST);
    expect(engine.blocks.describe(block)).toMatchObject({ tokens: 3500 });
    expect((await question(engine, block, 2 + i)).sequence.cachedTokens).toBe(3500);
  }
  expect(runner.computed.prefill).toBe(3500);
  // New files are read as the first one was.
  await question(engine, tokens(3400, 2), 1);
  expect(runner.computed.prefill).toBe(3500 + 3400);
});

test('a much smaller budget has a lower lane limit and is never exceeded, also during prefill; the limit rises with the budget', async () => {
  const { engine, runner } = opened();
  const [block, running, later] = [tokens(1500, 1), tokens(3300, 2), tokens(1400, 3)];
  await question(engine, block, 1);
  const asked = ask(engine, running, { prefillTokens: running.length, maxTokens: 4 });
  for (let steps = 0; steps < 2; steps++) await engine.step();
  const small = 5000 * PER_TOKEN;
  engine.setMaxBytes(small);
  expect(engine.cacheBytes).toBeLessThanOrEqual(small);
  await drain(engine, small);
  expect(asked.ended).toBe('length');
  // A quarter of the budget holds 1,023 tokens.
  const before = { ...runner.computed };
  expect((await question(engine, block, 2)).sequence.cachedTokens).toBeLessThanOrEqual(1023);
  await question(engine, later, 1);
  expect(runner.computed.prefill - before.prefill).toBeLessThanOrEqual(2 * 1023);
  expect(runner.computed.paged - before.paged).toBeGreaterThanOrEqual(1500 - 1023 + 1400 - 1023);
  engine.setMaxBytes(MOST);
  const prefill = runner.computed.prefill;
  await question(engine, tokens(3500, 4), 1);
  expect(runner.computed.prefill - prefill).toBe(3500);
});

test('rows computed under one lane limit are found again when that limit returns', async () => {
  const { engine, runner } = opened();
  const block = tokens(1100, 1);
  await question(engine, block, 1);
  engine.setMaxBytes(5000 * PER_TOKEN);
  expect(engine.blocks.describe(block).tokens).toBe(1023);
  engine.setMaxBytes(MOST);
  expect(engine.blocks.describe(block).tokens).toBe(1100);
  expect((await question(engine, block, 2)).sequence.cachedTokens).toBe(1100);
  expect(runner.computed.prefill).toBe(1100);
});

/** Opens an engine with the disk tier. Also returns a function that counts the tier's files. */
async function withDisk(): Promise<{
  restarted: (maxBytes: number) => Promise<ReturnType<typeof opened>>;
  numFiles: () => Promise<number>;
}> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kvasir-lanes-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const log = (): void => {};
  return {
    restarted: async (maxBytes) =>
      opened({
        maxBytes,
        mostBytes: MOST,
        snapshots: {
          disk: await DiskTier.open(folder, 1e8, log),
          codec: codecNamed('int8', SHAPE, null),
          modelKey: 'fake',
          log,
        },
      }),
    numFiles: async () => (await readdir(folder)).length,
  };
}

async function saveAll(engine: Engine, blocks: number[][]): Promise<void> {
  while (await engine.save(filesOf(blocks)));
}

test('after a restart with another amount of memory, a file is still found on disk as a whole', async () => {
  const { restarted } = await withDisk();
  const block = tokens(3500, 1);
  const first = await restarted(0.9 * MOST);
  await question(first.engine, block, 1);
  await saveAll(first.engine, [block]);
  for (const share of [0.5, 1, 0.7]) {
    const { engine, runner } = await restarted(share * MOST);
    expect(engine.blocks.describe(block).diskTokens).toBe(3500);
    expect((await question(engine, block, 1)).sequence.cachedTokens).toBe(3500);
    expect(runner.computed.prefill).toBe(0);
  }
});

test.each(['the higher', 'the lower'])(
  'under %s limit, forgetting a file removes all its segments of both limits from disk, and no other file',
  async (which) => {
    const { restarted, numFiles } = await withDisk();
    const [block, other] = [tokens(1100, 1), tokens(300, 2)];
    const budgets = { high: MOST, low: 3000 * PER_TOKEN };
    for (const budget of Object.values(budgets)) {
      const { engine } = await restarted(budget);
      for (const each of [block, other]) await question(engine, each, 1);
      await saveAll(engine, [block, other]);
    }
    // Five segments, then four more because those from the second on differ under 511, and two.
    expect(await numFiles()).toBe(5 + 4 + 2);
    const { engine } = await restarted(which === 'the higher' ? budgets.high : budgets.low);
    await engine.blocks.forgetDisk('0.ts');
    expect(await numFiles()).toBe(2);
    expect([engine.blocks.describe(block).diskTokens, engine.blocks.describe(other).diskTokens]).toEqual([0, 300]);
  },
);

test.each([
  { name: 'one limit leaves no slots for the header', numBlock: 500, low: 1000 * PER_TOKEN, header: 20 },
  { name: 'the header is longer than the lower limit', numBlock: 1100, low: 5000 * PER_TOKEN, header: 1050 },
])('evicting a file from memory removes its rows of both limits: $name', async ({ numBlock, low, header }) => {
  const { engine } = opened();
  const block = tokens(numBlock, 1);
  for (const budget of [MOST, low]) {
    engine.setMaxBytes(budget);
    await question(engine, block, 1);
  }
  const found = (): number[] =>
    [MOST, low].map((budget) => {
      engine.setMaxBytes(budget);
      return engine.blocks.describe(block).tokens;
    });
  expect(found()).toEqual([numBlock, numBlock]);
  engine.blocks.evict(block.slice(0, header));
  engine.checkIntegrity();
  for (const numTokens of found()) expect(numTokens).toBeLessThanOrEqual(header);
});

// The scratch takes at most a quarter of the maximum budget. Below half of the maximum, it takes at most a quarter of the
// budget, or what the budget has beyond the rows that half of the maximum holds.
test('the limit is constant from half of the maximum budget on and has few values; its scratch never exceeds its share', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 64, max: 400_000 }),
      fc.integer({ min: 200, max: 200_000 }),
      fc.double({ min: 1e6, max: 8e9, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (perToken, maxContext, mostBytes, share) => {
        const limit = (maxBytes: number): number => mostPrefillTokens(maxBytes, perToken, maxContext, mostBytes);
        const scratch = (maxBytes: number): number => scratchRows(limit(maxBytes)) * perToken;
        const budget = share * mostBytes;
        const most = limit(mostBytes);
        expect(limit(budget)).toBeLessThanOrEqual(most);
        if (share >= 0.5) expect(limit(budget)).toBe(most);
        expect(scratch(mostBytes)).toBeLessThanOrEqual(mostBytes / 4);
        if (share < 0.5)
          expect(scratch(budget)).toBeLessThanOrEqual(
            Math.max(budget / 4, budget - (mostBytes / 2 - scratch(mostBytes))),
          );
        expect(laneLimits(maxContext)).toContain(limit(budget));
        expect(laneLimits(maxContext).length).toBeLessThan(12);
      },
    ),
  );
  expect(laneLimits(0)).toEqual([0]);
  expect(laneLimits(511)).toEqual([0, 511]);
  expect(laneLimits(5000)).toEqual([0, 511, 1023, 2047, 3583, 5000]);
});

/** Memory for rows beside the scratch, and the unused share, under budgets that rise in small steps. */
function rowBytesUnder(
  budgets: Iterable<number>,
  divide: (maxBytes: number) => ReturnType<typeof divideBudget>,
  perToken: number,
): { rowBytes: number; leftOver: number; hasScratch: boolean }[] {
  return Array.from(budgets, (maxBytes) => {
    const { prefillTokens, rowBytes } = divide(maxBytes);
    return {
      rowBytes,
      leftOver: 1 - (rowBytes + scratchRows(prefillTokens) * perToken) / maxBytes,
      hasScratch: prefillTokens > 0,
    };
  });
}

function* rising(from: number, to: number, by: number): Generator<number> {
  for (let maxBytes = from; maxBytes <= to; maxBytes *= by) yield maxBytes;
}

function neverFall(found: { rowBytes: number; leftOver: number; hasScratch: boolean }[]): void {
  let [before, falls] = [0, 0];
  for (const { rowBytes } of found) {
    if (rowBytes < before) falls++;
    before = rowBytes;
  }
  const outside = found.filter(
    ({ leftOver, hasScratch }) => !(leftOver > -1e-9 && leftOver < (hasScratch ? 0.29 : 0.51)),
  );
  expect({ falls, outside }).toEqual({ falls: 0, outside: [] });
}

// Bytes per token of models with 0.5, 1.5 and 7 billion parameters.
const SCRATCHES = [24_576, 57_344, 114_688];

test.each(SCRATCHES)(
  'as the budget rises, the memory for rows never falls and never exceeds what the scratch leaves: %d bytes a token',
  (perToken) => {
    for (const maxContext of [2048, 32_768, 1_000_000]) {
      for (const mostBytes of rising(256e6, 10e9, 1.3))
        neverFall(
          rowBytesUnder(
            rising(1e6, 1.2 * mostBytes, 1.002),
            (maxBytes) => divideBudget(maxBytes, perToken, maxContext, mostBytes),
            perToken,
          ),
        );
      // The budget rises as with the user's setting.
      neverFall(
        rowBytesUnder(rising(1e6, 20e9, 1.0005), (maxBytes) => divideBudget(maxBytes, perToken, maxContext), perToken),
      );
    }
  },
);

test('property: of two similar budgets the higher one has no less memory for rows', () => {
  const bytes = fc.double({ min: 1e5, max: 8e9, noNaN: true });
  fc.assert(
    fc.property(
      fc.integer({ min: 64, max: 400_000 }),
      fc.integer({ min: 200, max: 200_000 }),
      bytes,
      bytes,
      fc.double({ min: 1, max: 1.1, noNaN: true }),
      (perToken, maxContext, mostBytes, lower, by) => {
        const rowBytes = (maxBytes: number): number => divideBudget(maxBytes, perToken, maxContext, mostBytes).rowBytes;
        expect(rowBytes(by * lower)).toBeGreaterThanOrEqual(rowBytes(lower));
      },
    ),
    { numRuns: 1000 },
  );
});

test('doubling the scratch memory does not change the number of rows in the pool', () => {
  // A model of 1.5 billion parameters. Its scratch has 2,047 tokens from 470 MB on.
  const config = { ...LONG, numLayers: 28, kvHeads: 2, headSize: 128, contextTokens: 32_768 };
  const tokensUnder = (maxBytes: number): number => cacheReach(config, maxBytes, 0, { mostBytes: 8e9 }).poolTokens;
  expect(
    [469e6, 470e6].map((maxBytes) =>
      mostPrefillTokens(maxBytes, scratchBytesPerToken(kvShape(config, 'int8')), 32_768, 8e9),
    ),
  ).toEqual([1023, 2047]);
  expect(tokensUnder(469e6)).toBe(tokensUnder(470e6));
  expect(tokensUnder(480e6)).toBeGreaterThan(tokensUnder(470e6));
});

test('an answer continues when the budget rises enough to double the scratch', async () => {
  // As many bytes as the rows of 2,048 tokens. The text has more.
  const perToken = 4 * kvBytesPerToken(SHAPE);
  const half = 512 * perToken;
  const { engine } = opened({
    prefillBytesPerToken: perToken,
    maxBytes: 2 * half - 1000,
    mostBytes: 200 * half,
    maxContext: 100_000,
    softSlots: 100_000,
  });
  const running = ask(engine, tokens(2600, 1), { prefillTokens: 2600, maxTokens: 400 });
  for (let steps = 0; steps < 60; steps++) await engine.step();
  expect([running.ended, running.tokenIds.length > 10]).toEqual([null, true]);
  engine.setMaxBytes(2 * half + 1000);
  const next = ask(engine, tokens(2600, 2), { prefillTokens: 2600, maxTokens: 4 });
  await drain(engine);
  expect([running.ended, running.tokenIds.length, next.ended]).toEqual(['length', 400, 'length']);
});

test('the lane limit stays the same while other programs take and return memory, and after a restart; another setting may change it', () => {
  const limits = ({ budget, most }: MemoryBudget) =>
    SCRATCHES.map((perToken) => mostPrefillTokens(budget, perToken, 32_768, most));
  const reading = (availableBytes: number, usedBytes = 0) => ({ availableBytes, usedBytes, totalBytes: 8e9 });
  const budget = new MemoryBudget(0, reading(5e9), 0);
  expect(limits(budget)).toEqual([15_359, 7167, 3583]);
  const budgets = new Set<number>();
  for (let now = 0; now < 3_600_000; now += 3000) {
    // The memory of other programs changes within minutes. At worst, half of 2 GB is left for this cache.
    const others = 5e9 + 1.2e9 * Math.sin(now / 90_000);
    budget.follow(reading(8e9 - others - budget.budget, budget.budget), now);
    budgets.add(budget.budget);
    expect(limits(budget)).toEqual([15_359, 7167, 3583]);
    expect(limits(new MemoryBudget(0, reading(8e9 - others), now))).toEqual([15_359, 7167, 3583]);
  }
  expect(budgets.size).toBeGreaterThan(10);
  expect(Math.max(...budgets) / Math.min(...budgets)).toBeGreaterThan(1.5);
  expect(budget.most).toBe(MAX_BYTES);
  budget.configure(256e6, reading(5e9), 4e6);
  expect([budget.most, ...limits(budget)]).toEqual([256e6, 2047, 1023, 511]);
  expect(new MemoryBudget(0, { ...reading(1e9), totalBytes: 1e9 }, 0).most).toBe(0.6e9);
});

async function snapshotsOf(shape: KvShape): Promise<EngineOptions['snapshots']> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kvasir-reach-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const log = (): void => {};
  const disk = await DiskTier.open(folder, 1e8, log);
  return { disk, codec: codecNamed('int8', shape, null), modelKey: 'fake', log };
}

test.each([
  { rows: 2344, numPrefill: 1023, which: 'whose scratch takes more than a quarter' },
  { rows: 2246, numPrefill: 511, which: 'with unused memory, because the next limit doubles the scratch' },
])('cacheReach reports what fits into an engine, to a page, under a budget $which', async ({ rows, numPrefill }) => {
  const shape = kvShape(LONG, 'int8');
  // Counted in scratch rows.
  const [budget, mostBytes] = [rows, 4688].map((each) => each * scratchBytesPerToken(shape)) as [number, number];
  const reach = cacheReach(LONG, budget, 0, { mostBytes });
  expect(reach.workBytes).toBe(scratchRows(numPrefill) * scratchBytesPerToken(shape) + Snapshots.bufferBytes(shape));
  expect(reach.poolTokens).toBeLessThan(cacheReach(LONG, budget, 0).poolTokens);
  const { engine } = opened({
    shape,
    maxBytes: budget,
    mostBytes,
    maxContext: LONG.contextTokens,
    snapshots: await snapshotsOf(shape),
  });
  const [fits, tooLong] = [0, 1].map((more) =>
    ask(engine, tokens(reach.poolTokens + more, 1), { prefillTokens: reach.poolTokens, maxTokens: 0 }),
  );
  await drain(engine, budget);
  expect([fits!.ended, tooLong!.ended]).toEqual(['length', 'outOfMemory']);
});

test('cacheReach reports what fits into an engine of the native kernels, to a page: they have no scratch', async () => {
  const shape = kvShape(LONG, 'int8');
  const budget = 2344 * scratchBytesPerToken(shape);
  const reach = cacheReach(LONG, budget, 0, { hasOneLane: true });
  expect(reach.workBytes).toBe(Snapshots.bufferBytes(shape));
  expect(reach.poolTokens).toBeGreaterThan(cacheReach(LONG, budget, 0).poolTokens);
  expect(leastBudget(LONG, 60_000, 0, { hasOneLane: true })).toBeLessThan(leastBudget(LONG, 60_000, 0));
  const pool = new KvPool(shape, 0);
  const { engine } = opened({
    pool,
    runner: Object.assign(new LaneRunner(pool), { hasOneLane: true }),
    prefillBytesPerToken: 0,
    maxBytes: budget,
    maxContext: LONG.contextTokens,
    snapshots: await snapshotsOf(shape),
  });
  const [fits, tooLong] = [0, 1].map((more) =>
    ask(engine, tokens(reach.poolTokens + more, 1), { prefillTokens: reach.poolTokens, maxTokens: 0 }),
  );
  await drain(engine, budget);
  expect([fits!.ended, tooLong!.ended]).toEqual(['length', 'outOfMemory']);
});

test.each([
  { which: 'whole', diskBytes: 0, from: 3000, by: 1.01, dips: false },
  // leastBudget searches in steps of a sixty-fourth.
  { which: 'in parts', diskBytes: 1e9, from: 1000, by: 64 / 63, dips: true },
])(
  'the context fits into every budget from the smallest sufficient one on, read $which',
  ({ diskBytes, from, by, dips }) => {
    const reached = (budget: number): number => {
      const { poolTokens, sketchedTokens } = cacheReach(LONG, budget, diskBytes);
      return Math.max(poolTokens, sketchedTokens);
    };
    let numDips = 0;
    for (const numTokens of rising(from, 60_000, 1.13)) {
      const least = leastBudget(LONG, numTokens, diskBytes);
      for (const budget of rising(least, 3 * least, by)) expect(reached(budget)).toBeGreaterThanOrEqual(numTokens);
      expect(reached((63 / 64) * least)).toBeLessThan(numTokens);
      for (const budget of rising(least / 2, (63 / 64) * least, 1.01)) if (reached(budget) >= numTokens) numDips++;
    }
    expect(numDips > 0).toBe(dips);
  },
);
