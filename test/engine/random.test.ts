/**
 * Random workloads against the naive oracle. Sharing, chunks, preemption, eviction, demotion and moves never change a
 * token.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { type CodecName, codecNamed } from '../../engine/kv/approx/codecs/registry.ts';
import { codecNames, compressionOf } from '../../engine/kv/approx/approximations.ts';
import { DiskTier } from '../../engine/kv/disk/diskTier.ts';
import { kvBytesPerToken } from '../../engine/kv/kvRows.ts';
import type { KvPrecision } from '../../engine/protocol/tasks.ts';
import { fakeShape, VOCAB_SIZE } from '../support/engine/fakeRunner.ts';
import { filesOf, harness, numberDetokenizer } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';
import { CodedRows, tracedCodecs } from '../support/engine/tracedCodec.ts';
import {
  below,
  driveWorkload,
  makeWorkload,
  type Outcome,
  seededRandom,
  type WorkItem,
} from '../support/engine/workload.ts';
import { smallPart as part } from '../support/testLength.ts';

const EOS_IDS = [7];

function compare(
  items: readonly WorkItem[],
  outcomes: ReadonlyMap<string, Outcome>,
  limits: { maxContext: number; capacity: number },
): void {
  for (const item of items) {
    const outcome = outcomes.get(item.id)!;
    const expected = runAlone(item.promptIds, item.sampling, { ...limits, eosIds: EOS_IDS });
    if (outcome.finishReason === 'abort') {
      expect(item.abortAfter, item.id).toBeDefined();
      expect(outcome.tokenIds, item.id).toEqual(expected.tokenIds.slice(0, outcome.tokenIds.length));
      continue;
    }
    const { tokenIds, logprobs, finishReason, error } = outcome;
    expect({ tokenIds, logprobs, finishReason, error }, item.id).toEqual({
      error: undefined,
      finishReason: undefined,
      ...expected,
    });
    expect(outcome.text).toBe(
      tokenIds
        .filter((id) => !EOS_IDS.includes(id))
        .map((id) => `<${id}>`)
        .join(''),
    );
  }
}

test('random requests under a tight budget equal the oracle, with many evictions and preemptions', async () => {
  const slots = 300;
  const maxContext = 280;
  const items = makeWorkload({
    seed: 1,
    numRequests: part(2000),
    numTokens: VOCAB_SIZE,
    fileTokens: 50,
    maxTokens: 40,
    arrivalsPerStep: 0.6,
    tooLong: 0.03,
  });
  const { engine, clock } = harness({ slots, maxContext, tokenBudget: 24 });
  const outcomes = await driveWorkload(engine, items, {
    detokenizer: numberDetokenizer,
    eosIds: EOS_IDS,
    afterStep: () => {
      clock.now += 20;
      engine.checkIntegrity();
    },
  });
  compare(items, outcomes, { maxContext, capacity: slots });
  const { events } = engine.stats();
  expect(events.evictions).toBeGreaterThanOrEqual(part(200));
  expect(events.preemptions).toBeGreaterThanOrEqual(part(200));
  expect([...outcomes.values()].filter((o) => o.error).length).toBeGreaterThanOrEqual(part(5));
});

test('a small pool beside a store: demotions and promotions keep every row', async () => {
  const items = makeWorkload({
    seed: 2,
    numRequests: 600,
    numTokens: VOCAB_SIZE,
    fileTokens: 60,
    maxTokens: 20,
    arrivalsPerStep: 0.3,
  });
  const { engine, clock } = harness({ slots: 900, softSlots: 250, maxContext: 400, tokenBudget: 24 });
  const outcomes = await driveWorkload(engine, items, {
    detokenizer: numberDetokenizer,
    eosIds: EOS_IDS,
    afterStep: () => {
      clock.now += 20;
      engine.checkIntegrity();
    },
  });
  compare(items, outcomes, { maxContext: 400, capacity: 900 });
  const { events } = engine.stats();
  expect(events.demotions).toBeGreaterThan(100);
  expect(events.promotions).toBeGreaterThan(40);
});

test("property: any memory budget, token budget, class mix and abort order gives the oracle's tokens", async () => {
  const setting = fc.record({
    seed: fc.integer(),
    slots: fc.integer({ min: 0, max: 500 }),
    softSlots: fc.integer({ min: 1, max: 600 }),
    maxContext: fc.integer({ min: 2, max: 300 }),
    tokenBudget: fc.integer({ min: 1, max: 64 }),
    arrivalsPerStep: fc.constantFrom(0.1, 0.5, 3),
    aborts: fc.constantFrom(0, 0.2, 0.7),
    fileTokens: fc.integer({ min: 1, max: 80 }),
    kv: fc.constantFrom<KvPrecision>('int8', 'float32'),
  });
  await fc.assert(
    fc.asyncProperty(setting, async ({ slots, softSlots, maxContext, tokenBudget, kv, ...workload }) => {
      const items = makeWorkload({ ...workload, numRequests: 40, numTokens: 6, firstToken: 3, tooLong: 0.03 });
      const { engine, clock } = harness({ slots, softSlots, maxContext, tokenBudget, shape: fakeShape(kv) });
      const outcomes = await driveWorkload(engine, items, {
        detokenizer: numberDetokenizer,
        eosIds: EOS_IDS,
        afterStep: () => {
          clock.now += 30;
          engine.checkIntegrity();
        },
      });
      compare(items, outcomes, { maxContext, capacity: slots });
      const held = engine.stats().poolSlots;
      expect(held.free + held.held).toBe(held.total);
    }),
    { seed: 3, numRuns: part(150) },
  );
});

test('property: the budget, pins and evictions change while requests run', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.integer({ min: 60, max: 1600 }),
      fc.integer({ min: 1, max: 800 }),
      async (seed, slots, softSlots) => {
        const random = seededRandom(seed);
        const items = makeWorkload({
          seed,
          numRequests: 60,
          numTokens: VOCAB_SIZE,
          fileTokens: 40,
          arrivalsPerStep: 0.4,
          maxTokens: 8,
        });
        const { engine, clock } = harness({ slots, softSlots, maxContext: 2000 });
        const bytesPerToken = kvBytesPerToken(fakeShape());
        let least = slots;
        const outcomes = await driveWorkload(engine, items, {
          detokenizer: numberDetokenizer,
          eosIds: EOS_IDS,
          beforeStep: () => {
            if (random() < 0.1) {
              const budget = below(random, 1600);
              least = Math.min(least, budget);
              engine.setMaxBytes(budget * bytesPerToken);
              engine.checkIntegrity();
            }
            if (random() < 0.05)
              engine.blocks.pin(
                `p${below(random, 3)}`,
                random() < 0.3 ? null : items[below(random, items.length)]!.promptIds,
              );
            if (random() < 0.05)
              engine.blocks.evict(
                random() < 0.5 ? undefined : items[below(random, items.length)]!.promptIds.slice(0, 5),
              );
            engine.checkIntegrity();
          },
          afterStep: () => {
            clock.now += random() < 0.02 ? 100_000 : 30;
            engine.checkIntegrity();
          },
        });
        for (const item of items) {
          const outcome = outcomes.get(item.id)!;
          const expected = runAlone(item.promptIds, item.sampling, {
            maxContext: 2000,
            capacity: Number.POSITIVE_INFINITY,
            eosIds: EOS_IDS,
          });
          // A budget below the request may end it early. The tokens until then must be right.
          expect(outcome.tokenIds).toEqual(expected.tokenIds.slice(0, outcome.tokenIds.length));
          const short = outcome.tokenIds.length < expected.tokenIds.length || outcome.error !== undefined;
          if (short && outcome.finishReason !== 'abort')
            expect(least).toBeLessThan(item.promptIds.length + expected.tokenIds.length);
        }
      },
    ),
    { seed: 4, numRuns: part(80) },
  );
});

const MINUTE = 60_000;

test.each(['auto', 'int4-kivi', 'turboquant', 'nvfp4'])(
  'idle maintenance between and during steps encodes no row twice and mixes up no rows, also while requests wait for the disk: %s',
  async (setting) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'kvasir-random-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const shape = { ...fakeShape(), headSize: 16 };
    const coded = new CodedRows();
    const compression = compressionOf(setting, tracedCodecs(codecNames(setting) as CodecName[], shape, coded))!;
    const log = (line: string): void => {
      throw new Error(line);
    };
    const snapshots = {
      disk: await DiskTier.open(folder, 2_000_000, () => {}),
      codec: codecNamed('int8', shape, null),
      modelKey: 'fake',
      log,
    };
    const { engine, runner, clock } = harness({
      slots: 4500,
      softSlots: 1024,
      shape,
      maxContext: 1200,
      tokenBudget: 64,
      prefillTokens: 1023,
      prefillBytesPerToken: 16,
      compression,
      snapshots,
    });
    runner.coded = coded;
    const random = seededRandom(setting.length);
    const items = makeWorkload({
      seed: setting.length,
      numRequests: part(1600),
      numTokens: VOCAB_SIZE,
      numFiles: 6,
      fileTokens: 300,
      tailTokens: 60,
      maxTokens: 16,
      arrivalsPerStep: 0.12,
      aborts: 0.1,
    });
    const budget = engine.stats().maxBytes;
    const seen = { codecs: new Set<string>(), tidied: 0, whileRunning: 0 };
    let maintaining: Promise<boolean> | null = null;
    const outcomes = await driveWorkload(engine, items, {
      detokenizer: numberDetokenizer,
      eosIds: EOS_IDS,
      beforeStep: () => {
        if (random() < 0.02) engine.setMaxBytes(budget * (0.55 + 0.45 * random()));
        // Evicted rows remain on disk.
        if (random() < 0.02)
          engine.blocks.evict(
            random() < 0.5 ? undefined : items[below(random, items.length)]!.promptIds.slice(0, 3 + below(random, 200)),
          );
      },
      afterStep: async () => {
        clock.now += random() < 0.05 ? below(random, 45) * MINUTE : 20;
        // Maintenance that began before the last step and ended during it.
        if (maintaining && (await maintaining)) seen.tidied++;
        maintaining = null;
        const blocks = [items[below(random, items.length)]!.promptIds];
        if (random() < 0.3) maintaining = engine.runMaintenance(filesOf(blocks));
        else {
          for (let n = below(random, 4); n > 0; n--) {
            if (engine.hasWork()) seen.whileRunning++;
            if (await engine.runMaintenance(filesOf(blocks))) seen.tidied++;
            engine.checkIntegrity();
          }
        }
        engine.checkIntegrity();
        for (const codec of engine.blocks.describe(blocks[0]!).codecs) seen.codecs.add(codec);
        await nextTurn();
      },
    });
    await maintaining;
    compare(items, outcomes, { maxContext: 1200, capacity: Number.POSITIVE_INFINITY });
    // Every case occurred.
    expect([...seen.codecs]).toEqual(expect.arrayContaining(codecNames(setting)));
    const { events, tokens } = engine.stats();
    for (const [count, least] of [
      [coded.made.size, part(20_000)],
      [seen.tidied, part(1200)],
      [seen.whileRunning, part(2000)],
      [events.demotions, part(1200)],
      [events.promotions, part(500)],
      [tokens.promptFromDisk, 256],
    ] as const)
      expect(count).toBeGreaterThanOrEqual(least);
  },
  300_000,
);
