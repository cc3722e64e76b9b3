/** Pruning in idle maintenance, in the engine: kept rows stay usable wherever they move, and no other row is lost. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { reservedBytes } from '../../engine/kv/approx/approximations.ts';
import { AttentionMeter } from '../../engine/kv/approx/pruned/attentionMeter.ts';
import type { KvCodec } from '../../engine/kv/approx/codecs/kvCodec.ts';
import type { Compression } from '../../engine/kv/approx/compression.ts';
import { H2O, KEPT_CODEC, KEPT_SHARES, KVZIP } from '../../engine/kv/approx/pruned/keptRows.ts';
import { kvBytesPerToken, type KvShape } from '../../engine/kv/kvRows.ts';
import type { Engine } from '../../engine/core/engine.ts';
import { fakeShape } from '../support/engine/fakeRunner.ts';
import { ask, drain, filesOf, harness, type Harness, tokens, type Watched } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';
import { CodedRows, tracedCodecs } from '../support/engine/tracedCodec.ts';
import { below, seededRandom } from '../support/engine/workload.ts';
import { smallPart as part } from '../support/testLength.ts';

/** Measurements take a tenth of the rows' bytes. Real models need less. */
const SHAPE = { ...fakeShape(), headSize: 32 };
const TURN = { before: [1, 2], after: [3] };
const PRUNING = { idleMs: 1000, turn: TURN, layers: new Set([0]), conversations: true };
/** The codec for kept rows, as in loadedModel. It throws if it encodes a row twice. */
const codecOf = (shape: KvShape): KvCodec => tracedCodecs([KEPT_CODEC], shape, new CodedRows())[0]!;
const CODEC = codecOf(SHAPE);
const codedBy = (codec: KvCodec): Compression => ({ levels: [{ codec, idleMs: 1000, fullness: 0 }], only: 'kept' });
const CODED = codedBy(CODEC);
/** The common beginning of all files. */
const HEADER = [9, 8, 7];
const file = (n: number, seed: number): number[] => [...HEADER, seed, ...tokens(n - 4, seed)];
const BYTES = kvBytesPerToken(SHAPE);

/** Bytes of the measurements of a context with `numRows` rows. */
const meterBytes = (numRows: number): number => AttentionMeter.bytes(SHAPE.numLayers * SHAPE.kvHeads, numRows);

function opened(slots: number, options: Partial<Parameters<typeof harness>[0]> = {}): Harness {
  return harness({ slots, shape: SHAPE, maxContext: 3000, prefillTokens: 2000, pruning: PRUNING, ...options });
}

function question(engine: Engine, block: readonly number[], seed: number, more = 9): Watched {
  return ask(engine, [...block, ...tokens(more, seed)], { prefillTokens: block.length, maxTokens: 6 });
}

async function runMaintenanceUntilDone(engine: Engine, blocks: number[][]): Promise<number> {
  let numParts = 0;
  while (await engine.runMaintenance(filesOf(blocks))) {
    numParts++;
    engine.checkIntegrity();
  }
  return numParts;
}

test('an idle file keeps nine tenths of its rows; questions reuse them and get the same answers from pool, store and disk', async () => {
  const { engine, clock, runner } = opened(4000);
  const [block, other] = [tokens(900, 1), tokens(1500, 2)];
  const exact = question(engine, block, 5);
  await drain(engine);
  expect(await engine.runMaintenance(filesOf([block]))).toBe(false);
  const full = engine.blocks.describe(block).bytes;
  clock.now += 2000;
  // 900 tokens, at most 512 per part.
  expect(await runMaintenanceUntilDone(engine, [block])).toBe(2);
  expect(engine.blocks.describe(block)).toMatchObject({
    tokens: 900,
    bytes: 2 * Math.ceil(KEPT_SHARES[KVZIP] * 450) * BYTES,
    codecs: ['kvzip'],
  });
  expect(full).toBe(900 * BYTES);
  expect(runner.batches.at(-1)!.spans).toBe(1);

  const first = question(engine, block, 6);
  await drain(engine);
  expect(first.sequence.cachedTokens).toBe(900);
  expect(first.ended).toBe('length');
  // The rows move into the store and back into other slots.
  clock.now += 100_000;
  question(engine, other, 7);
  await drain(engine);
  await runMaintenanceUntilDone(engine, [block]);
  expect(engine.blocks.describe(block).tier).toBe('store');
  const promotions = engine.stats().events.promotions;
  const again = question(engine, block, 6);
  const chunked = question(engine, block, 6);
  await drain(engine);
  expect(engine.stats().events.promotions).toBeGreaterThan(promotions);
  for (const each of [again, chunked]) expect(each.tokenIds).toEqual(first.tokenIds);
  // The answer before the pruning was computed from all rows.
  expect(
    runAlone([...block, ...tokens(9, 5)], { maxTokens: 6 }, { maxContext: 3000, capacity: 4000 }).tokenIds,
  ).toEqual(exact.tokenIds);
});

test('the remaining rows of a pruned file are encoded when they leave the pool; other rows are not', async () => {
  const { engine, clock } = opened(4000, { compression: CODED });
  const [block, other] = [tokens(900, 1), tokens(700, 2)];
  for (const each of [block, other]) question(engine, each, 5);
  await drain(engine);
  clock.now += 2000;
  await runMaintenanceUntilDone(engine, [block]);
  expect(engine.blocks.describe(block)).toMatchObject({ tier: 'pool', codecs: ['kvzip'] });
  clock.now += 100_000;
  await runMaintenanceUntilDone(engine, [block]);
  const rows = Math.ceil(KEPT_SHARES[KVZIP] * 450);
  // Each piece is encoded in blocks of as many rows as the codec takes, and each row has its position.
  const { blockTokens } = CODEC.format;
  let coded = 4 * 2 * rows;
  for (const start of [0, 450])
    for (let at = 0; at < rows; at += blockTokens)
      coded += CODEC.encodedBytes(Math.min(blockTokens, rows - at), { startIndex: start + at });
  expect(engine.blocks.describe(block)).toEqual(
    expect.objectContaining({ tokens: 900, tier: 'store', codecs: ['kvzip', KEPT_CODEC], bytes: coded }),
  );
  expect(engine.blocks.describe(other)).toMatchObject({ tokens: 700, tier: 'store', codecs: ['int8'] });
  // Once read again, the rows are in the pool and the store. The next request reads the same values.
  const answers = [];
  for (let i = 0; i < 2; i++) {
    answers.push(question(engine, block, 6));
    await drain(engine);
    clock.now += 100_000;
    await runMaintenanceUntilDone(engine, [block]);
  }
  expect(answers[0]!.sequence.cachedTokens).toBe(900);
  expect(answers[1]!.tokenIds).toEqual(answers[0]!.tokenIds);
  expect(engine.blocks.describe(block).bytes).toBe(coded);
});

test.each([
  { fullness: 0, tier: 'store', codecs: [KEPT_CODEC] },
  { fullness: 0.75, tier: 'store', codecs: ['int8'] },
])(
  'idle rows of the pool are encoded only if memory is full enough: from a share of $fullness on',
  async ({ fullness, tier, codecs }) => {
    const { engine, clock } = opened(4000, {
      pruning: null,
      compression: { levels: [{ codec: CODEC, idleMs: 1000, fullness }], only: null },
    });
    const block = tokens(900, 1);
    question(engine, block, 5);
    await drain(engine);
    clock.now += 100_000;
    await runMaintenanceUntilDone(engine, [block]);
    expect(engine.blocks.describe(block)).toMatchObject({ tokens: 900, tier, codecs });
  },
);

test('a file larger than half the budget is measured in the pool, without demotion or promotion', async () => {
  const { engine, clock } = opened(2200);
  const block = file(1400, 1);
  question(engine, block, 5);
  await drain(engine);
  clock.now += 100_000;
  expect(await engine.runMaintenance(filesOf([block]))).toBe(true);
  expect(engine.blocks.describe(block)).toMatchObject({ tier: 'pool', tokens: 1400 });
  await runMaintenanceUntilDone(engine, [block]);
  expect(engine.blocks.describe(block)).toMatchObject({ tokens: 1400, codecs: ['kvzip'] });
  expect(engine.stats().events).toMatchObject({ promotions: 0, evictions: 0 });
});

test('on battery, idle maintenance returns memory but measures and encodes nothing', async () => {
  const { engine, clock, runner } = opened(4000);
  const block = file(1400, 1);
  question(engine, block, 5);
  await drain(engine);
  const [numSteps, { total }] = [runner.batches.length, engine.stats().poolSlots];
  clock.now += 100_000;
  while (await engine.runMaintenance(filesOf([block]), { sparing: true })) engine.checkIntegrity();
  expect(engine.stats().poolSlots.total).toBeLessThan(total);
  expect(runner.batches).toHaveLength(numSteps);
  expect(engine.blocks.describe(block)).toMatchObject({ tokens: 1400, codecs: ['int8'] });
  // Then its rows move back once, one page at a time, and not once for each measured part.
  const { demotions } = engine.stats().events;
  await runMaintenanceUntilDone(engine, [block]);
  expect(engine.stats().events.promotions).toBeLessThanOrEqual(demotions);
  expect(engine.blocks.describe(block)).toMatchObject({ tokens: 1400, codecs: ['kvzip'] });
});

test('a request interrupts the measuring within one step; measured parts are not measured again', async () => {
  const { engine, clock, runner } = opened(4000);
  const block = tokens(1400, 1);
  question(engine, block, 5);
  await drain(engine);
  clock.now += 2000;
  expect(await engine.runMaintenance(filesOf([block]))).toBe(true);
  let numRuns = 0;
  runner.beforeRun = () => {
    if (++numRuns === 1) ask(engine, tokens(5, 9), { maxTokens: 1 });
  };
  const maintaining = engine.runMaintenance(filesOf([block]));
  const step = engine.step();
  expect(await maintaining).toBe(false);
  await step;
  runner.beforeRun = () => {};
  await drain(engine);
  const { held } = engine.stats().poolSlots;
  // There are 44 parts, each measured as it is and in a turn. 33 of them are measured here, 32 at a time.
  clock.now += 2000;
  expect(await runMaintenanceUntilDone(engine, [block])).toBe(2);
  expect(engine.stats().poolSlots.held).toBe(held - 1400 + 421 + 421 + 420);
});

test('an edited file is computed beside the pruned old version; when memory is short, rows that only one long conversation uses are dropped', async () => {
  const { engine, clock } = opened(4000);
  const block = tokens(900, 1);
  const edited = [...block.slice(0, 300), ...tokens(600, 3)];
  question(engine, block, 5);
  await drain(engine);
  clock.now += 2000;
  await runMaintenanceUntilDone(engine, [block]);
  const answer = question(engine, edited, 5);
  await drain(engine);
  expect(answer.sequence.cachedTokens).toBe(0);
  expect(answer.tokenIds).toEqual(
    runAlone([...edited, ...tokens(9, 5)], { maxTokens: 6 }, { maxContext: 3000, capacity: 4000 }).tokenIds,
  );
  expect(engine.blocks.describe(block)).toMatchObject({ tokens: 900, codecs: ['kvzip'] });
  expect(engine.blocks.describe(edited)).toMatchObject({ tokens: 900, codecs: ['int8'] });
  // An edit after the first of its two pieces leaves that piece cached.
  const later = question(engine, [...block.slice(0, 500), ...tokens(100, 4)], 5);
  await drain(engine);
  expect(later.sequence.cachedTokens).toBe(450);

  // A conversation of 700 tokens after the file. Its last 128 tokens stay.
  const chat = [...edited, ...tokens(700, 8)];
  ask(engine, chat, { prefillTokens: 900, maxTokens: 1 });
  await drain(engine);
  engine.blocks.pin('file', edited);
  clock.now += 2000;
  await runMaintenanceUntilDone(engine, [edited]);
  expect(engine.blocks.describe(chat, [[0, 900]])).toMatchObject({ tokens: 1600, codecs: ['int8'] });
  engine.setMaxBytes(3600 * BYTES + reservedBytes({}, SHAPE));
  await runMaintenanceUntilDone(engine, [edited]);
  const { tokens: numTokens, bytes, codecs } = engine.blocks.describe(chat, [[0, 900]]);
  expect({ numTokens, codecs }).toEqual({ numTokens: 1600, codecs: ['h2o'] });
  expect(bytes).toBe((900 + 2 * Math.ceil(KEPT_SHARES[H2O] * 286) + 128) * BYTES);
});

test.each([
  { what: 'an open file', isOpen: true },
  { what: 'the common beginning of two conversations', isOpen: false },
])('pruning a long conversation keeps rows that others may continue from: $what', async ({ isOpen }) => {
  const { engine, clock } = opened(6000);
  // Too short to be pruned as a file.
  const shared = file(200, 1);
  const chats = (isOpen ? [tokens(2500, 7)] : [tokens(1250, 7), tokens(1250, 8)]).map((rest) => [...shared, ...rest]);
  for (const chat of chats) ask(engine, chat, { prefillTokens: isOpen ? 200 : 0, maxTokens: 1 });
  await drain(engine);
  // The budget is short, with room for the measurements.
  engine.setMaxBytes((2700 + 700) * BYTES + meterBytes(2701) + reservedBytes({}, SHAPE));
  clock.now += 2000;
  await runMaintenanceUntilDone(engine, isOpen ? [shared] : []);
  const prefill: [number, number][] = isOpen ? [[0, 200]] : [];
  expect(engine.blocks.describe(shared, prefill)).toMatchObject({ tokens: 200, bytes: 200 * BYTES, codecs: ['int8'] });
  expect(engine.blocks.describe(chats[0]!, prefill)).toMatchObject({
    tokens: chats[0]!.length,
    codecs: expect.arrayContaining(['h2o']),
  });
});

test('files with a common prefix are pruned independently, pinned files are not pruned, and evicting a prefix removes its rows', async () => {
  const { engine, clock } = opened(4000);
  const files = [1, 2, 3].map((seed) => file(500, seed));
  for (const block of files) question(engine, block, 5);
  await drain(engine);
  engine.blocks.pin('a file', files[2]!);
  const taken = (): number => engine.stats().poolBytes + engine.stats().storeBytes;
  const before = taken();
  clock.now += 2000;
  await runMaintenanceUntilDone(engine, files);
  const described = (): unknown[] =>
    files.map((block) => [engine.blocks.describe(block).tokens, engine.blocks.describe(block).codecs]);
  expect(described()).toEqual([
    [500, ['kvzip']],
    [500, ['kvzip']],
    [500, ['int8']],
  ]);
  // Measuring has enlarged the pool. It is as small again.
  expect(taken()).toBeLessThanOrEqual(before);
  engine.blocks.evict(files[0]!.slice(0, 4));
  engine.checkIntegrity();
  expect(described()).toEqual([
    [HEADER.length, ['int8']],
    [500, ['kvzip']],
    [500, ['int8']],
  ]);
});

test('measuring evicts nothing: a context that does not fit is skipped, others are measured', async () => {
  const { engine, clock, runner } = opened(2600, { softSlots: 2600 });
  const [large, small] = [tokens(1500, 1), tokens(300, 2)];
  for (const block of [large, small]) question(engine, block, 5);
  await drain(engine);
  clock.now += 2000;
  const before = runner.numComputed;
  await runMaintenanceUntilDone(engine, [large, small]);
  expect([large, small].map((block) => engine.blocks.describe(block).tokens)).toEqual([1500, 300]);
  expect(engine.blocks.describe(small).codecs).toEqual(['kvzip']);
  // Each part is computed as it is and in a turn, and no part again because of missing slots.
  expect(runner.numComputed - before).toBeLessThanOrEqual(2 * (1500 + 300) + (47 + 10) * (3 + 8));
  expect(engine.stats().events.evictions).toBe(0);
});

describe('bytes used for measuring always count towards the memory budget', () => {
  const block = tokens(1400, 1);

  /** An idle file with one part measured. `took`: extra bytes that were seen during measuring steps. */
  async function measuring(slots = 4000): Promise<
    Harness & {
      before: { bufferBytes: number; held: number };
      now: () => { bufferBytes: number; held: number };
      took: Set<number>;
    }
  > {
    const all = opened(slots);
    const { engine, runner, clock } = all;
    question(engine, block, 5);
    await drain(engine);
    const now = (): { bufferBytes: number; held: number } => ({
      bufferBytes: engine.stats().bufferBytes,
      held: engine.stats().poolSlots.held,
    });
    const before = now();
    const took = new Set<number>();
    runner.beforeRun = ([span]) => {
      const { poolBytes, storeBytes, bufferBytes, maxBytes } = engine.stats();
      expect(engine.cacheBytes).toBe(poolBytes + storeBytes + bufferBytes);
      expect(engine.cacheBytes).toBeLessThanOrEqual(maxBytes);
      if (span!.measures) took.add(bufferBytes - before.bufferBytes);
    };
    clock.now += 2000;
    expect(await engine.runMaintenance(filesOf([block]))).toBe(true);
    expect([...took]).toEqual([meterBytes(1400)]);
    // The measurements stay in memory for the following parts.
    expect(now()).toEqual({ ...before, bufferBytes: before.bufferBytes + meterBytes(1400) });
    engine.checkIntegrity();
    return { ...all, before, now, took };
  }

  test('they are freed when the measuring ends', async () => {
    const { engine, before, now, took } = await measuring();
    // The measurements are freed with the last part, even without other work.
    while (engine.blocks.describe(block).codecs[0] !== 'kvzip')
      expect(await engine.runMaintenance(filesOf([block]))).toBe(true);
    expect(now().bufferBytes).toBe(before.bufferBytes);
    expect([...took]).toEqual([meterBytes(1400)]);
  });

  test('they are freed when a step fails', async () => {
    const { engine, runner, before, now } = await measuring();
    runner.beforeRun = () => {
      throw new Error('Out of order.');
    };
    await expect(engine.runMaintenance(filesOf([block]))).rejects.toThrow('Out of order.');
    expect(now()).toEqual(before);
    engine.checkIntegrity();
  });

  test.each<{ what: string; end: (harness: Harness) => unknown }>([
    { what: 'the file is closed', end: ({ engine }) => engine.runMaintenance([]) },
    {
      what: 'the machine runs on battery',
      end: ({ engine }) => engine.runMaintenance(filesOf([block]), { sparing: true }),
    },
    { what: 'a lower budget is too small for it', end: ({ engine }) => engine.setMaxBytes(engine.cacheBytes - 1) },
  ])('they are freed when the measuring is cancelled: $what', async ({ end }) => {
    const harness = await measuring();
    await end(harness);
    expect(harness.now().bufferBytes).toBe(harness.before.bufferBytes);
    expect(harness.engine.blocks.describe(block)).toMatchObject({ tokens: 1400, codecs: ['int8'] });
    harness.engine.checkIntegrity();
  });

  test('a request keeps the measured rows if both fit, otherwise only the measured rows are dropped for it', async () => {
    const { engine, runner, before, now } = await measuring(11 * 256);
    const { beforeRun } = runner;
    let numRuns = 0;
    runner.beforeRun = (batch) => {
      beforeRun(batch);
      if (++numRuns === 2) question(engine, tokens(50, 9), 6);
    };
    expect(await engine.runMaintenance(filesOf([block]))).toBe(false);
    runner.beforeRun = beforeRun;
    await drain(engine);
    expect(now().bufferBytes).toBe(before.bufferBytes + meterBytes(1400));
    const long = question(engine, tokens(1300, 8), 6);
    await drain(engine);
    expect(now().bufferBytes).toBe(before.bufferBytes);
    expect(engine.stats().events.evictions).toBe(0);
    expect(long.tokenIds).toEqual(
      runAlone([...tokens(1300, 8), ...tokens(9, 6)], { maxTokens: 6 }, { maxContext: 3000, capacity: 4000 }).tokenIds,
    );
    expect(engine.blocks.describe(block)).toMatchObject({ tokens: 1400, tier: 'pool' });
  });

  // 1,414 rows and the slots of a part, in whole pages.
  test.each([
    { short: 0, codecs: ['kvzip'] },
    { short: 1, codecs: ['int8'] },
  ])('measuring begins if its memory is free to the byte: $short missing', async ({ short, codecs }) => {
    const { engine, clock, runner } = opened(4000);
    question(engine, block, 5);
    await drain(engine);
    engine.setMaxBytes(8 * 256 * BYTES + meterBytes(1400) + reservedBytes({}, SHAPE) - short);
    clock.now += 2000;
    const numSteps = runner.batches.length;
    await runMaintenanceUntilDone(engine, [block]);
    expect(engine.blocks.describe(block)).toMatchObject({ tokens: 1400, codecs });
    expect(runner.batches.length > numSteps).toBe(short === 0);
    expect(engine.stats().events).toMatchObject({ evictions: 0, promotions: 0 });
  });
});

test('rows that an edit left unchanged are not measured again', async () => {
  const { engine, clock, runner } = opened(8000);
  const block = tokens(1500, 1);
  question(engine, block, 5);
  await drain(engine);
  clock.now += 2000;
  await runMaintenanceUntilDone(engine, [block]);
  const edited = [...block.slice(0, 1100), ...tokens(400, 3)];
  question(engine, edited, 5);
  await drain(engine);
  clock.now += 2000;
  const before = runner.numComputed;
  await runMaintenanceUntilDone(engine, [edited]);
  // Only the last of three pieces is computed, twice, with the prompt of the measurement.
  expect(runner.numComputed - before).toBeLessThanOrEqual(2 * 500 + 16 * (3 + 8));
  expect(engine.blocks.describe(edited)).toMatchObject({ tokens: 1500, bytes: 3 * 450 * BYTES });
});

const NUM_RUNS = part(40);
const NUM_OPERATIONS = 250 * NUM_RUNS;

test(`property: after ${NUM_OPERATIONS} random operations under changing budgets, byte counts are exact and equal questions get equal answers`, async () => {
  let numOperations = 0;
  let numPruned = 0;
  // Rows have fewer bytes here, because there are many operations.
  const shape = fakeShape();
  const compression = codedBy(codecOf(shape));
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.integer({ min: 1500, max: 6000 }), async (seed, slots) => {
      const random = seededRandom(seed);
      const { engine, clock, runner } = opened(slots, { shape, softSlots: 3000, prefillTokens: 511, compression });
      let budget = engine.stats().maxBytes;
      const checkCap = (): void => {
        if (engine.cacheBytes > budget) throw new Error(`${engine.cacheBytes} bytes are more than ${budget}`);
      };
      // Also checked during measuring.
      runner.beforeRun = checkCap;
      const files = Array.from({ length: 4 }, (_, i) => file(260 + below(random, 240), i + 1));
      for (let i = 0; i < 250; i++, numOperations++) {
        const of = below(random, files.length);
        const what = random();
        if (what < 0.45) {
          const seed = below(random, 3);
          const [one, other] = [question(engine, files[of]!, seed, 3), question(engine, files[of]!, seed, 3)];
          await drain(engine);
          if (one.ended === 'length') expect(other.tokenIds).toEqual(one.tokenIds);
          const { codecs } = engine.blocks.describe(files[of]!);
          if (one.sequence.cachedTokens === 0 && codecs.includes('int8'))
            expect(one.tokenIds).toEqual(
              runAlone(
                [...files[of]!, ...tokens(3, seed)],
                { maxTokens: 6 },
                { maxContext: 3000, capacity: slots },
              ).tokenIds.slice(0, one.tokenIds.length),
            );
        } else if (what < 0.75) {
          clock.now += below(random, 3000);
          await engine.runMaintenance(filesOf(files));
          if (engine.blocks.describe(files[of]!).codecs.includes('kvzip')) numPruned++;
        } else if (what < 0.85)
          files[of] = [...files[of]!.slice(0, below(random, files[of]!.length)), ...tokens(50, i)].slice(0, 500);
        else if (what < 0.9) engine.blocks.evict(random() < 0.2 ? undefined : files[of]!.slice(0, 4));
        else if (what < 0.93) engine.blocks.pin('a file', random() < 0.5 ? null : files[of]!);
        else {
          budget =
            (1200 + below(random, slots)) * kvBytesPerToken(shape) + 512 * 64 + reservedBytes({ compression }, shape);
          engine.setMaxBytes(budget);
        }
        engine.checkIntegrity();
        checkCap();
      }
    }),
    { seed: 5, numRuns: NUM_RUNS },
  );
  expect(numOperations).toBe(NUM_OPERATIONS);
  expect(numPruned).toBeGreaterThan(part(400));
}, 400_000);
