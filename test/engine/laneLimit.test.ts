/** The lane limit under a ceiling that moves: what is cached is found as long as it can be, and goes whatever limit it is of. */
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { scratchRows } from '../../engine/batch.ts';
import { codecNamed } from '../../engine/cache/codecs/registry.ts';
import { DiskTier } from '../../engine/cache/disk/diskTier.ts';
import { kvBytesPerToken, type KvShape } from '../../engine/cache/kvRows.ts';
import { KvWindow } from '../../engine/cache/window.ts';
import { cacheReach, leastBudget } from '../../engine/cacheReach.ts';
import { Engine, type EngineOptions } from '../../engine/engine.ts';
import { laneLimits, mostPrefillTokens } from '../../engine/memory.ts';
import { MemoryBudget, MOST_BYTES } from '../../engine/memoryBudget.ts';
import { parseConfig } from '../../engine/model/hfConfig.ts';
import { kvShape } from '../../engine/model/importModel.ts';
import { scratchBytesPerToken } from '../../engine/model/prefillScratch.ts';
import { Snapshots } from '../../engine/snapshots.ts';
import { FakeRunner, fakeShape } from './fakeRunner.ts';
import { ask, filesOf, tokens, type Watched } from './harness.ts';

const SHAPE = fakeShape();
const PER_TOKEN = scratchBytesPerToken(SHAPE);
const MAX_CONTEXT = 8192;
/** Its quarter is the scratch of 3,583 tokens, with an eighth to spare. */
const MOST = 4 * 4096 * PER_TOKEN;

/** As the real one: memory for all that a prompt has in the prefill lane, from its first part on. Counts what each lane computes. */
class LaneRunner extends FakeRunner {
  scratchBytes = 0;
  readonly computed = { window: 0, prefill: 0 };

  override async run(batch: Parameters<FakeRunner['run']>[0]): Promise<Float32Array> {
    for (const { lane = 'window', prefillEnd, tokenIds } of batch) {
      this.computed[lane] += tokenIds.length;
      if (lane === 'prefill') this.scratchBytes = Math.max(this.scratchBytes, scratchRows(prefillEnd!) * scratchBytesPerToken(this.window.shape));
    }
    return super.run(batch);
  }

  releaseScratch(): void {
    this.scratchBytes = 0;
  }
}

function opened(options: Partial<EngineOptions> & { shape?: KvShape } = {}): { engine: Engine; runner: LaneRunner } {
  const { shape = SHAPE, ...rest } = options;
  const window = new KvWindow(shape, 0);
  const runner = new LaneRunner(window);
  const engine = new Engine({ runner, window, maxBytes: MOST, maxContext: MAX_CONTEXT, tokenBudget: 256, clock: () => 0, policies: { speculation: false }, prefillBytesPerToken: scratchBytesPerToken(shape), ...rest });
  return { engine, runner };
}

async function drain(engine: Engine, ceiling = engine.stats().maxBytes): Promise<void> {
  while (engine.hasWork() || engine.isFetching) {
    if (engine.hasWork()) await engine.step();
    else await new Promise(setImmediate);
    engine.checkIntegrity();
    expect(engine.cacheBytes).toBeLessThanOrEqual(ceiling);
  }
}

/** A question about a block; another one with another seed. */
async function question(engine: Engine, block: readonly number[], seed: number): Promise<Watched> {
  const asked = ask(engine, [...block, ...tokens(9, seed)], { prefillTokens: block.length, maxTokens: 4 });
  await drain(engine);
  expect(asked.ended).toBe('length');
  return asked;
}

test('a ceiling that moves by a fifth, or to its half and back: all that was cached is found each time, the scratch counted', async () => {
  const { engine, runner } = opened();
  const block = tokens(3500, 1);
  await question(engine, block, 1);
  expect(runner.computed).toEqual({ prefill: 3500, window: 9 + 3 });
  for (const [i, share] of [0.8, 1, 1.2, 0.5, 0.6, 1, 0.5].entries()) {
    engine.setMaxBytes(share * MOST);
    expect(engine.cacheBytes).toBeLessThanOrEqual(share * MOST);
    expect(engine.describe(block)).toMatchObject({ tokens: 3500 });
    expect((await question(engine, block, 2 + i)).sequence.cachedTokens).toBe(3500);
  }
  expect(runner.computed.prefill).toBe(3500);
  // New ones are read as the first was.
  await question(engine, tokens(3400, 2), 1);
  expect(runner.computed.prefill).toBe(3500 + 3400);
});

test('a ceiling much smaller has a lower limit, under which nothing is a byte too many, also where prompts are being read; it rises with the ceiling', async () => {
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
  // A quarter of it holds 1,023.
  const before = { ...runner.computed };
  expect((await question(engine, block, 2)).sequence.cachedTokens).toBeLessThanOrEqual(1023);
  await question(engine, later, 1);
  expect(runner.computed.prefill - before.prefill).toBeLessThanOrEqual(2 * 1023);
  expect(runner.computed.window - before.window).toBeGreaterThanOrEqual(1500 - 1023 + 1400 - 1023);
  engine.setMaxBytes(MOST);
  const prefill = runner.computed.prefill;
  await question(engine, tokens(3500, 4), 1);
  expect(runner.computed.prefill - prefill).toBe(3500);
});

test('what was computed under a limit is found again under it, after another one', async () => {
  const { engine, runner } = opened();
  const block = tokens(1100, 1);
  await question(engine, block, 1);
  engine.setMaxBytes(5000 * PER_TOKEN);
  expect(engine.describe(block).tokens).toBe(1023);
  engine.setMaxBytes(MOST);
  expect(engine.describe(block).tokens).toBe(1100);
  expect((await question(engine, block, 2)).sequence.cachedTokens).toBe(1100);
  expect(runner.computed.prefill).toBe(1100);
});

/** An engine with the disk tier, and the number of files that it has there. */
async function withDisk(): Promise<{ restarted: (maxBytes: number) => Promise<ReturnType<typeof opened>>; numFiles: () => Promise<number> }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kvasir-lanes-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const log = (): void => {};
  return {
    restarted: async (maxBytes) => opened({ maxBytes, mostBytes: MOST, snapshots: { disk: await DiskTier.open(folder, 1e8, log), codec: codecNamed('int8', SHAPE, null), modelKey: 'fake', log } }),
    numFiles: async () => (await readdir(folder)).length,
  };
}

async function saveAll(engine: Engine, blocks: number[][]): Promise<void> {
  while (await engine.save(filesOf(blocks)));
}

test('a restart that finds other amounts of memory finds all of a file on the disk', async () => {
  const { restarted } = await withDisk();
  const block = tokens(3500, 1);
  const first = await restarted(0.9 * MOST);
  await question(first.engine, block, 1);
  await saveAll(first.engine, [block]);
  for (const share of [0.5, 1, 0.7]) {
    const { engine, runner } = await restarted(share * MOST);
    expect(engine.describe(block).diskTokens).toBe(3500);
    expect((await question(engine, block, 1)).sequence.cachedTokens).toBe(3500);
    expect(runner.computed.prefill).toBe(0);
  }
});

test.each(['the higher', 'the lower'])('under %s limit: a file is forgotten on the disk as it was computed under either, in whole segments and at its end, and no other file is', async (which) => {
  const { restarted, numFiles } = await withDisk();
  const [block, other] = [tokens(1100, 1), tokens(300, 2)];
  const ceilings = { high: MOST, low: 3000 * PER_TOKEN };
  for (const ceiling of Object.values(ceilings)) {
    const { engine } = await restarted(ceiling);
    for (const each of [block, other]) await question(engine, each, 1);
    await saveAll(engine, [block, other]);
  }
  // Five segments, of which the second on are others under 511, and two.
  expect(await numFiles()).toBe(5 + 4 + 2);
  const { engine } = await restarted(which === 'the higher' ? ceilings.high : ceilings.low);
  await engine.forgetDisk('0.ts');
  expect(await numFiles()).toBe(2);
  expect([engine.describe(block).diskTokens, engine.describe(other).diskTokens]).toEqual([0, 300]);
});

test.each([
  { name: 'of which one has no room for a header', numBlock: 500, low: 1000 * PER_TOKEN, header: 20 },
  { name: 'behind both', numBlock: 1100, low: 5000 * PER_TOKEN, header: 1050 },
])('a file is evicted from memory as it was computed under either limit: $name', async ({ numBlock, low, header }) => {
  const { engine } = opened();
  const block = tokens(numBlock, 1);
  for (const ceiling of [MOST, low]) {
    engine.setMaxBytes(ceiling);
    await question(engine, block, 1);
  }
  const found = (): number[] => [MOST, low].map((ceiling) => {
    engine.setMaxBytes(ceiling);
    return engine.describe(block).tokens;
  });
  expect(found()).toEqual([numBlock, numBlock]);
  engine.evict(block.slice(0, header));
  engine.checkIntegrity();
  for (const numTokens of found()) expect(numTokens).toBeLessThanOrEqual(header);
});

test('the limit: the same from the half of what the ceiling may come to on; its scratch never more than a quarter of that, and of the ceiling below; one of a few', () => {
  fc.assert(
    fc.property(fc.integer({ min: 64, max: 400_000 }), fc.integer({ min: 200, max: 200_000 }), fc.double({ min: 1e6, max: 8e9, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true }), (perToken, maxContext, mostBytes, share) => {
      const limit = (maxBytes: number): number => mostPrefillTokens(maxBytes, perToken, maxContext, mostBytes);
      const ceiling = share * mostBytes;
      const most = limit(mostBytes);
      expect(limit(ceiling)).toBeLessThanOrEqual(most);
      if (share >= 0.5) expect(limit(ceiling)).toBe(most);
      expect(scratchRows(limit(ceiling)) * perToken).toBeLessThanOrEqual((share < 0.5 ? ceiling : mostBytes) / 4);
      expect(laneLimits(maxContext)).toContain(limit(ceiling));
      expect(laneLimits(maxContext).length).toBeLessThan(12);
    }),
  );
  expect(laneLimits(0)).toEqual([0]);
  expect(laneLimits(511)).toEqual([0, 511]);
  expect(laneLimits(5000)).toEqual([0, 511, 1023, 2047, 3583, 5000]);
});

/** Where the room beside the scratch falls as the ceiling rises in small steps: by what share of the ceiling, and what scratch there was before. */
function falls(perToken: number, from: number, to: number, mostBytes: number): { at: number; by: number; before: number }[] {
  const found: { at: number; by: number; before: number }[] = [];
  const scratch = (maxBytes: number): number => scratchRows(mostPrefillTokens(maxBytes, perToken, 1_000_000, mostBytes)) * perToken;
  for (let [below, at] = [from, from]; at <= to; [below, at] = [at, at * 1.001]) {
    const by = scratch(at) - scratch(below) - (at - below);
    if (by > 0) found.push({ at, by: by / at, before: scratch(below) });
  }
  return found;
}

test.each([24_576, 57_344, 114_688])('as the ceiling rises the room beside the scratch never falls from the half of the most on, and below by a seventh of it at most where there was scratch; %d bytes a token', (perToken) => {
  for (let mostBytes = 256e6; mostBytes < 10e9; mostBytes *= 1.3) {
    expect(falls(perToken, mostBytes / 2, 1.2 * mostBytes, mostBytes)).toEqual([]);
    const below = falls(perToken, 1e6, mostBytes / 2 - 1, mostBytes);
    expect(below.length).toBeLessThan(10);
    for (const { by, before } of below) expect(by).toBeLessThan(before > 0 ? 1 / 7 : 1 / 4);
  }
});

test('an answer goes on under a higher ceiling of which half would be twice the scratch', async () => {
  // As many bytes as 2,048 tokens' rows: the text's are more than that.
  const perToken = 4 * kvBytesPerToken(SHAPE);
  const half = 512 * perToken;
  const { engine } = opened({ prefillBytesPerToken: perToken, maxBytes: 2 * half - 1000, mostBytes: 200 * half, maxContext: 100_000, softSlots: 100_000 });
  const running = ask(engine, tokens(2600, 1), { prefillTokens: 2600, maxTokens: 400 });
  for (let steps = 0; steps < 60; steps++) await engine.step();
  expect([running.ended, running.tokenIds.length > 10]).toEqual([null, true]);
  engine.setMaxBytes(2 * half + 1000);
  const next = ask(engine, tokens(2600, 2), { prefillTokens: 2600, maxTokens: 4 });
  await drain(engine);
  expect([running.ended, running.tokenIds.length, next.ended]).toEqual(['length', 400, 'length']);
});

test('on a machine whose memory others take and give back the limit stays, and after a restart; another setting may have another one', () => {
  // As of 0.5, 1.5 and 7 billion parameters.
  const limits = ({ ceiling, most }: MemoryBudget) => [24_576, 57_344, 114_688].map((perToken) => mostPrefillTokens(ceiling, perToken, 32_768, most));
  const reading = (availableBytes: number, usedBytes = 0) => ({ availableBytes, usedBytes, totalBytes: 8e9 });
  const settings = { maxBytes: 0, share: 0.6 };
  const budget = new MemoryBudget(settings, reading(5e9), 0);
  expect(limits(budget)).toEqual([15_359, 7167, 3583]);
  const ceilings = new Set<number>();
  for (let now = 0; now < 3_600_000; now += 3000) {
    // What others have comes and goes within minutes; at worst, half of 2 GB is left for this cache.
    const others = 5e9 + 1.2e9 * Math.sin(now / 90_000);
    budget.follow(reading(8e9 - others - budget.ceiling, budget.ceiling), now);
    ceilings.add(budget.ceiling);
    expect(limits(budget)).toEqual([15_359, 7167, 3583]);
    expect(limits(new MemoryBudget(settings, reading(8e9 - others), now))).toEqual([15_359, 7167, 3583]);
  }
  expect(ceilings.size).toBeGreaterThan(10);
  expect(Math.max(...ceilings) / Math.min(...ceilings)).toBeGreaterThan(1.5);
  expect(budget.most).toBe(MOST_BYTES);
  budget.configure({ maxBytes: 256e6 }, reading(5e9), 4e6);
  expect([budget.most, ...limits(budget)]).toEqual([256e6, 2047, 1023, 511]);
  expect(new MemoryBudget(settings, { ...reading(1e9), totalBytes: 1e9 }, 0).most).toBe(0.6e9);
});

const LONG = { ...parseConfig(JSON.parse(readFileSync('model/config.json', 'utf8')), null), contextTokens: 1_000_000 };

test('what inspect says of a ceiling below what it may come to is what an engine under it has room for, to a page', async () => {
  const shape = kvShape(LONG, 'int8');
  const [budget, mostBytes] = [12e6, 24e6];
  const reach = cacheReach(LONG, budget, 0, mostBytes);
  // Its scratch is more than a quarter of it.
  expect(reach.workBytes).toBe(scratchRows(1023) * scratchBytesPerToken(shape) + Snapshots.bufferBytes(shape));
  expect(reach.windowTokens).toBeLessThan(cacheReach(LONG, budget, 0).windowTokens);
  const folder = await mkdtemp(path.join(tmpdir(), 'kvasir-reach-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const log = (): void => {};
  const { engine } = opened({ shape, maxBytes: budget, mostBytes, maxContext: LONG.contextTokens, snapshots: { disk: await DiskTier.open(folder, 1e8, log), codec: codecNamed('int8', shape, null), modelKey: 'fake', log } });
  const [fits, tooLong] = [0, 1].map((more) => ask(engine, tokens(reach.windowTokens + more, 1), { prefillTokens: reach.windowTokens, maxTokens: 0 }));
  await drain(engine, budget);
  expect([fits!.ended, tooLong!.ended]).toEqual(['length', 'outOfMemory']);
});

test('from the least budget on every one has room for the context, also those with twice the scratch', () => {
  const reached = (budget: number): number => cacheReach(LONG, budget, 0).windowTokens;
  let dips = 0;
  for (let numTokens = 3000; numTokens < 60_000; numTokens *= 1.13) {
    const least = leastBudget(LONG, numTokens, 0);
    for (let budget = least; budget < 3 * least; budget *= 1.01) expect(reached(budget)).toBeGreaterThanOrEqual(numTokens);
    expect(reached((63 / 64) * least)).toBeLessThan(numTokens);
    if (reached(0.9 * least) >= numTokens) dips++;
  }
  expect(dips).toBeGreaterThan(0);
});
