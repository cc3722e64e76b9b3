/** Runs of different age under one budget. Each gets the codec for its age and the fullness, and all stay usable. */
import { expect, test } from 'vitest';
import { type CodecName, codecNamed } from '../../engine/kv/approx/codecs/registry.ts';
import { codecNames, compressionOf } from '../../engine/kv/approx/approximations.ts';
import { codingBytes, codingReserve } from '../../engine/kv/approx/compression.ts';
import { kvBytesPerToken } from '../../engine/kv/kvRows.ts';
import type { Engine } from '../../engine/core/engine.ts';
import { rope } from '../support/kv/codecRows.ts';
import { fakeShape } from '../support/engine/fakeRunner.ts';
import { ask, drain, filesOf, harness, type Harness, tokens, type Watched } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';
import { CodedRows, tracedCodecs } from '../support/engine/tracedCodec.ts';

/** Wide enough that every codec makes rows smaller. */
const SHAPE = { ...fakeShape(), headSize: 16 };
const BYTES = kvBytesPerToken(SHAPE);
const MINUTE = 60_000;
const AUTO = compressionOf(
  'auto',
  codecNames('auto').map((name) => codecNamed(name, SHAPE, rope(SHAPE.headSize))),
)!;
/** Bytes that the budget keeps free for the codec kernels. */
const KERNELS = codingBytes(AUTO);

/** Slots that the budget keeps free for encoding. */
function reserve(setting = 'auto'): number {
  return Math.ceil(
    codingReserve(
      compressionOf(
        setting,
        codecNames(setting).map((name) => codecNamed(name as CodecName, SHAPE, rope(SHAPE.headSize))),
      ),
      SHAPE,
    ) / BYTES,
  );
}

/** The runner knows each coded row. It throws if a row is read at another position or was coded twice. */
function opened(slots: number, prefillTokens = 2000, setting = 'auto'): Harness {
  const coded = new CodedRows();
  const compression = compressionOf(setting, tracedCodecs(codecNames(setting) as CodecName[], SHAPE, coded))!;
  const opened = harness({ slots, shape: SHAPE, maxContext: 3000, prefillTokens, softSlots: 1024, compression });
  opened.runner.coded = coded;
  return opened;
}

function question(engine: Engine, block: readonly number[], seed: number): Watched {
  return ask(engine, [...block, ...tokens(9, seed)], { prefillTokens: block.length, maxTokens: 6 });
}

/** Runs maintenance until nothing is left to do. Checks every byte count meanwhile. */
async function runMaintenanceUntilDone(engine: Engine, blocks: number[][]): Promise<void> {
  while (await engine.runMaintenance(filesOf(blocks))) engine.checkIntegrity();
}

test('under one budget, files of different age end in different codecs and give the same answers', async () => {
  const { engine, clock } = opened(6000);
  const [old, recent, now] = [tokens(1000, 1), tokens(1000, 2), tokens(1000, 3)];
  const files = [old, recent, now];
  for (const [block, pause] of [
    [old, 28],
    [recent, 6],
    [now, 0],
  ] as const) {
    question(engine, block, 5);
    await drain(engine);
    await runMaintenanceUntilDone(engine, files);
    clock.now += pause * MINUTE;
  }
  // Nothing needed the memory yet.
  expect(files.map((block) => engine.blocks.describe(block).codecs)).toEqual([['int8'], ['int8'], ['int8']]);
  engine.setMaxBytes(3200 * BYTES + KERNELS);
  await runMaintenanceUntilDone(engine, files);
  expect(files.map((block) => engine.blocks.describe(block).codecs)).toEqual([['turboquant'], ['int4-kivi'], ['int8']]);
  expect(files.map((block) => engine.blocks.describe(block).tokens)).toEqual([1000, 1000, 1000]);
  const [smallest, small, exact] = files.map((block) => engine.blocks.describe(block).bytes) as [
    number,
    number,
    number,
  ];
  expect(smallest).toBeLessThan(small);
  expect(small).toBeLessThan(exact);

  // All files fit into the pool at once.
  engine.setMaxBytes(6000 * BYTES + KERNELS);
  for (let i = 0; i < 2; i++) {
    const asked = files.map((block) => question(engine, block, 6));
    await drain(engine);
    for (const [f, { ended, sequence, tokenIds }] of asked.entries()) {
      expect([ended, sequence.cachedTokens >= 1000]).toEqual(['length', true]);
      expect(tokenIds).toEqual(
        runAlone([...files[f]!, ...tokens(9, 6)], { maxTokens: 6 }, { maxContext: 3000, capacity: 6000 }).tokenIds,
      );
    }
    clock.now += 40 * MINUTE;
    await runMaintenanceUntilDone(engine, files);
  }
  // Encoded rows keep their codec, however old they are. The other rows are encoded.
  engine.setMaxBytes(2600 * BYTES + KERNELS);
  await runMaintenanceUntilDone(engine, files);
  expect(files.map((block) => engine.blocks.describe(block).codecs)).toEqual([
    ['turboquant'],
    expect.arrayContaining(['int4-kivi']),
    ['turboquant'],
  ]);
});

test('a file compressed partly mildly and partly strongly reports both codecs', async () => {
  const { engine, clock } = opened(6000);
  const block = tokens(1000, 1);
  question(engine, block, 5);
  await drain(engine);
  clock.now += 6 * MINUTE;
  // A step moves idle rows out of the pool.
  ask(engine, tokens(5, 9), { maxTokens: 1 });
  await drain(engine);
  await runMaintenanceUntilDone(engine, [block]);
  expect(engine.blocks.describe(block)).toMatchObject({ tokens: 1000, tier: 'store', codecs: ['int8'] });
  // Each budget is a little more than three quarters full. Maintenance encodes only as much as that fullness requires.
  for (const [idle, codecs] of [
    [0, ['int4-kivi']],
    [40, ['int4-kivi', 'turboquant']],
  ] as const) {
    clock.now += idle * MINUTE;
    const { poolBytes, storeBytes } = engine.stats();
    engine.setMaxBytes((poolBytes + storeBytes) / 0.78 + codingReserve(AUTO, SHAPE) + KERNELS);
    await runMaintenanceUntilDone(engine, [block]);
    const described = engine.blocks.describe(block);
    expect([described.tokens, described.codecs.toSorted()]).toEqual([1000, codecs]);
  }
  engine.setMaxBytes(6000 * BYTES + KERNELS);
  const again = question(engine, block, 6);
  await drain(engine);
  expect([again.ended, again.sequence.cachedTokens >= 1000]).toEqual(['length', true]);
});

test.each([
  [4, 40, 'turboquant'],
  [8, 40, 'turboquant'],
  [8, 0, 'turboquant'],
  [8, 250, 'int4-kivi'],
] as const)(
  'a conversation that fills the pool, %i pages with %i tokens free, is compressed once it is idle, with %s, which frees memory',
  async (pages, room, codec) => {
    const numTokens = 256 * pages;
    const { engine, clock } = opened(numTokens + room + reserve(), 0);
    const conversation = tokens(numTokens, 1);
    ask(engine, conversation, { maxTokens: 0 });
    await drain(engine);
    expect(engine.stats()).toMatchObject({ poolSlots: { total: numTokens, free: 0 }, storeBytes: 0 });
    const before = engine.cacheBytes;
    clock.now += 10 * MINUTE;
    await runMaintenanceUntilDone(engine, []);
    const { tokens: left, codecs } = engine.blocks.describe(conversation, [[0, 0]]);
    // Fullness is measured against the memory that runs may use. Reserved memory does not count.
    expect(codecs).toContain(codec);
    expect(engine.cacheBytes).toBeLessThan(0.9 * before);
    // Rows are encoded directly from the pool into the reserved memory. No row is lost.
    expect(left).toBe(numTokens);
  },
);

test('a pool full of recently used files keeps them until something can be encoded', async () => {
  const { engine, clock } = opened(2048 + reserve(), 0);
  ask(engine, tokens(2048, 1), { maxTokens: 0 });
  await drain(engine);
  clock.now += 2 * MINUTE;
  await runMaintenanceUntilDone(engine, []);
  expect(engine.blocks.describe(tokens(2048, 1), [[0, 0]])).toMatchObject({ tokens: 2048, tier: 'pool' });
});
