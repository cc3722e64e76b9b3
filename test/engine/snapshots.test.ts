/**
 * The disk tier in the engine: blocks of files survive on disk and give the same tokens, whatever happens to the files.
 */
import { mkdtemp, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { codecNamed } from '../../engine/kv/approx/codecs/registry.ts';
import { compressionOf } from '../../engine/kv/approx/approximations.ts';
import { DiskTier } from '../../engine/kv/disk/diskTier.ts';
import { KvCache } from '../../engine/kv/kvCache.ts';
import type { Engine } from '../../engine/core/engine.ts';
import { RequestError } from '../../engine/protocol/errors.ts';
import { Snapshots } from '../../engine/kv/snapshots.ts';
import { rope } from '../support/kv/codecRows.ts';
import { fakeShape } from '../support/engine/fakeRunner.ts';
import { ask, filesOf, type Harness, harness, tokens, type Watched } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';
import { below, seededRandom } from '../support/engine/workload.ts';
import { part } from '../support/testLength.ts';

const MINUTE = 60_000;

let folder: string;
let lines: string[];
const log = (line: string): void => void lines.push(line);

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kvasir-snapshots-'));
  lines = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Opens an engine over the blocks in the folder. */
async function opened(slots: number, maxBytes = 1e8, modelKey = 'fake'): Promise<Harness & { disk: DiskTier }> {
  const disk = await DiskTier.open(folder, maxBytes, log);
  const bytes = Snapshots.bufferBytes(fakeShape());
  const bytesPerSlot = 2 * 2 * 16 + 8;
  const h = harness({
    slots: slots + Math.ceil(bytes / bytesPerSlot),
    maxContext: 2000,
    prefillTokens: 2000,
    snapshots: { disk, codec: codecNamed('int8', fakeShape(), null), modelKey, log },
  });
  return { ...h, disk };
}

async function drain(engine: Engine): Promise<void> {
  while (engine.hasWork() || engine.isFetching) {
    if (engine.hasWork()) await engine.step();
    engine.checkIntegrity();
    await nextTurn();
  }
}

async function saveAll(engine: Engine, blocks: number[][], files = filesOf(blocks)): Promise<number> {
  let numSaved = 0;
  while (await engine.save(files)) numSaved++;
  return numSaved;
}

/** Bytes of all files in the folder. */
async function bytesInFolder(): Promise<number> {
  const sizes = await Promise.all(
    (await readdir(folder)).map(async (name) => (await stat(path.join(folder, name))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** A question about a block. The block's tokens use the prefill lane. */
function question(engine: Engine, block: readonly number[], seed: number): Watched {
  return ask(engine, [...block, ...tokens(9, seed)], { prefillTokens: block.length, maxTokens: 4 });
}

function expected(block: readonly number[], seed: number): number[] {
  return runAlone([...block, ...tokens(9, seed)], { maxTokens: 4 }, { maxContext: 2000, capacity: 2000, eosIds: [] })
    .tokenIds;
}

test('after a restart, the first question about a file finds its whole block on disk and gives the same tokens', async () => {
  const block = tokens(700, 3);
  const first = await opened(3000);
  const before = question(first.engine, block, 1);
  await drain(first.engine);
  expect(await saveAll(first.engine, [block])).toBe(3);
  expect(await saveAll(first.engine, [block])).toBe(0);

  const { engine, runner } = await opened(3000);
  expect(engine.blocks.describe(block)).toMatchObject({ tokens: 0, tier: 'disk', diskTokens: 700 });
  const after = question(engine, block, 1);
  expect(engine.hasWork()).toBe(false);
  await drain(engine);
  expect(after.tokenIds).toEqual(before.tokenIds);
  expect(after.sequence.cachedTokens).toBe(700);
  expect(runner.numComputed).toBe(9 + 3);
  expect(engine.stats().tokens).toMatchObject({ promptFromDisk: 700, promptCached: 700, promptComputed: 9 });
  // Rows from disk are in the store, and in the pool where they are used. Both are reported.
  expect(engine.blocks.describe(block)).toMatchObject({ tokens: 700, tier: 'pool', twice: true, diskTokens: 0 });
  // Rows that came from disk need not be written again.
  expect(await saveAll(engine, [block])).toBe(0);
});

test('idle files are written to disk, files in use are not', async () => {
  const block = tokens(300, 4);
  const { engine, clock, disk } = await opened(3000);
  question(engine, block, 1);
  await drain(engine);
  clock.now += 30_000;
  expect(await engine.runMaintenance(filesOf([block]))).toBe(false);
  clock.now += 31_000;
  // The block is written in two segments. Then it leaves the pool, and the pool shrinks by its slots.
  for (let n = 2; n > 0; n--) expect(await engine.runMaintenance(filesOf([block]))).toBe(true);
  expect([disk.numSegments, engine.blocks.describe(block).tier]).toEqual([2, 'pool']);
  while (await engine.runMaintenance(filesOf([block])));
  expect([engine.blocks.describe(block).tier, engine.stats().poolSlots.total]).toEqual(['store', 256]);
  expect(disk.numSegments).toBe(2);
});

test('a partly cached block is written in whole segments, and the rest is written later', async () => {
  const block = tokens(600, 5);
  const { engine } = await opened(3000);
  ask(engine, block.slice(0, 400), { prefillTokens: 400, maxTokens: 0 });
  await drain(engine);
  expect(await saveAll(engine, [block])).toBe(1);
  question(engine, block, 1);
  await drain(engine);
  expect(await saveAll(engine, [block])).toBe(2);
});

test('files share a common prefix on disk; after an edit, the part before it is found', async () => {
  const [one, other] = [tokens(600, 6), [...tokens(600, 6).slice(0, 520), ...tokens(80, 7)]];
  const { engine, disk } = await opened(4000);
  question(engine, one, 1);
  question(engine, other, 1);
  await drain(engine);
  expect(await saveAll(engine, [one, other])).toBe(4);
  expect(disk.numSegments).toBe(4);
  const again = await opened(4000);
  const edited = question(again.engine, [...one.slice(0, 550), ...tokens(50, 8)], 1);
  await drain(again.engine);
  expect(edited.sequence.cachedTokens).toBe(512);
  expect(edited.tokenIds).toEqual(expected([...one.slice(0, 550), ...tokens(50, 8)], 1));
});

test('forgetting a file removes every version of it from disk, of any process and any model', async () => {
  const [block, other] = [tokens(700, 3), tokens(300, 9)];
  const versions = [
    block,
    [...block.slice(0, 300), ...tokens(300, 4)],
    [...block.slice(0, 30), ...tokens(400, 5)],
    block.slice(0, 100),
  ];
  const files = [
    ...versions.map((tokenIds) => ({ path: 'src/a.ts', tokenIds })),
    { path: 'src/b.ts', tokenIds: other },
  ];
  for (const modelKey of ['fake', 'another']) {
    const { engine } = await opened(5000, 1e8, modelKey);
    for (const { tokenIds } of files) question(engine, tokenIds, 1);
    await drain(engine);
    expect(await saveAll(engine, [], files)).toBe(3 + 2 + 2 + 1 + 2);
  }
  const { engine, disk } = await opened(4000);
  await engine.blocks.forgetDisk('src/a.ts');
  expect(disk.numSegments).toBe(2 * 2);
  expect(await readdir(folder)).toHaveLength(2 * 2);
  expect([engine.blocks.describe(block).diskTokens, engine.blocks.describe(other).diskTokens]).toEqual([0, 300]);
  expect((await opened(4000, 1e8, 'another')).engine.blocks.describe(other).diskTokens).toBe(300);
});

test('a request ends exactly once if it is aborted or the engine fails while its prompt is read from disk', async () => {
  const block = tokens(700, 3);
  const first = await opened(3000);
  question(first.engine, block, 1);
  await drain(first.engine);
  await saveAll(first.engine, [block]);
  const { engine } = await opened(3000);
  const [aborted, failed] = [question(engine, block, 1), question(engine, block, 2)];
  // Both requests wait.
  expect(engine.stats().requests).toMatchObject({ waiting: 2, running: 0 });
  engine.abort(aborted.sequence.id);
  expect([aborted.ended, aborted.numEnds]).toEqual(['abort', 1]);
  // The aborted request has waited. Its prompt was not looked up in the cache.
  const { classes, tokens: counted } = engine.stats();
  expect(classes.chat.queueMs.count).toBe(1);
  expect(classes.chat.queueMs.sum).toBeGreaterThanOrEqual(0);
  expect(counted.prompt).toBe(0);
  engine.failAll(new RequestError('engineFailed', 'a test'));
  await sleep(50);
  expect([aborted.numEnds, failed.numEnds, failed.ended]).toEqual([1, 1, 'engineFailed']);
  expect(engine.hasWork() || engine.isFetching).toBe(false);
  // Rows from disk are not given to a failed engine, because its pool may belong to another engine.
  expect(engine.blocks.describe(block).tokens).toBe(0);
});

test('other disk reads run between the segments of a long prompt, and reading stops when nobody waits for the prompt', async () => {
  const [long, short] = [tokens(1500, 3), tokens(200, 4)];
  const first = await opened(5000);
  for (const block of [long, short]) question(first.engine, block, 1);
  await drain(first.engine);
  await saveAll(first.engine, [long, short]);
  const { engine } = await opened(5000);
  const [slow, quick] = [question(engine, long, 1), question(engine, short, 1)];
  while (engine.isFetching && !engine.hasWork()) await nextTurn();
  // The short prompt is read first, although the long one was requested earlier.
  expect(engine.blocks.describe(short).tokens).toBe(200);
  expect(engine.blocks.describe(long).tokens).toBeLessThan(1500);
  engine.abort(slow.sequence.id);
  await drain(engine);
  await sleep(50);
  expect(quick.tokenIds).toEqual(expected(short, 1));
  expect(engine.blocks.describe(long).tokens).toBeLessThan(1500);
});

test('when the budget is too small for disk reads, reading a prompt stops and its buffers no longer count', async () => {
  const block = tokens(1500, 3);
  const first = await opened(3000);
  question(first.engine, block, 1);
  await drain(first.engine);
  await saveAll(first.engine, [block]);
  const { engine, disk } = await opened(3000);
  let numRead = 0;
  const read = disk.read.bind(disk);
  disk.read = (segment) => {
    numRead++;
    return read(segment);
  };
  const asked = question(engine, block, 1);
  while (numRead < 2) await nextTurn();
  engine.setMaxBytes(engine.stats().maxBytes, { usesDisk: false });
  await drain(engine);
  expect(numRead).toBe(2);
  expect(asked.tokenIds).toEqual(expected(block, 1));
});

test('a context larger than the disk limit is written as far as it fits, and not tried again before its next use', async () => {
  const { engine, disk } = await opened(4000, 50_000);
  const block = tokens(1400, 3);
  question(engine, block, 1);
  await drain(engine);
  const numSaved = await saveAll(engine, [block]);
  expect(numSaved).toBeGreaterThan(0);
  expect(numSaved).toBeLessThan(6);
  expect(disk.bytes).toBeLessThanOrEqual(50_000);
  expect(await saveAll(engine, [block])).toBe(0);
});

test('pinned files stay in memory when everything is evicted, unless the eviction includes pinned ones', async () => {
  const { engine } = await opened(3000);
  const block = tokens(300, 3);
  question(engine, block, 1);
  await drain(engine);
  engine.blocks.pin('a', block);
  engine.blocks.evict();
  expect(engine.blocks.describe(block).tokens).toBe(300);
  engine.blocks.evict([], { pinned: true });
  expect(engine.blocks.describe(block).tokens).toBe(0);
});

test('blocks that were read from disk and evicted are released while the engine runs', async () => {
  const block = tokens(700, 3);
  const first = await opened(3000);
  question(first.engine, block, 1);
  await drain(first.engine);
  await saveAll(first.engine, [block]);
  const taken: WeakRef<object>[] = [];
  // The part of a cache that reading needs. It keeps nothing.
  const prefixes = {
    takeStored: (_ids: unknown, _at: number, blocks: object[]): number => {
      for (const each of blocks) taken.push(new WeakRef(each));
      return blocks.length;
    },
  };
  const cache = { lookUp: () => ({ numTokens: 0 }), prefixes } as unknown as ConstructorParameters<typeof Snapshots>[1];
  const snapshots = new Snapshots(
    {
      disk: await DiskTier.open(folder, 1e8, log),
      codec: codecNamed('int8', fakeShape(), null),
      modelKey: 'fake',
      log,
    },
    cache,
    () => 0,
  );
  expect(await snapshots.fetch(block, block.length, (action) => action())).toBeGreaterThan(0);
  expect(taken.length).toBeGreaterThan(10);
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  await expect
    .poll(() => {
      collect();
      return taken.filter((each) => each.deref()).length;
    })
    .toBe(0);
  snapshots.close();
});

test('damaged, missing and unreadable files: the rest is computed, with the same tokens', async () => {
  const block = tokens(700, 3);
  const first = await opened(3000);
  question(first.engine, block, 1);
  await drain(first.engine);
  await saveAll(first.engine, [block]);
  for (const harm of [(file: string) => truncate(file, 100), (file: string) => rm(file)]) {
    const names = await readdir(folder);
    const { engine } = await opened(3000);
    await harm(path.join(folder, names[names.length >> 1]!));
    const asked = question(engine, block, 1);
    await drain(engine);
    expect(asked.tokenIds).toEqual(expected(block, 1));
    expect(asked.sequence.cachedTokens).toBeLessThan(700);
    await saveAll(engine, [block]);
    expect(await readdir(folder)).toHaveLength(3);
  }
});

test('a full disk is reported once, and requests continue', async () => {
  const { engine } = await opened(3000);
  await rm(folder, { recursive: true });
  await writeFile(folder, 'no folder any more');
  question(engine, tokens(300, 1), 1);
  await drain(engine);
  expect(await saveAll(engine, [tokens(300, 1)])).toBeLessThan(2);
  expect(await saveAll(engine, [tokens(300, 1)])).toBe(0);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('cannot be kept');
  const asked = question(engine, tokens(300, 1), 2);
  await drain(engine);
  expect(asked.tokenIds).toEqual(expected(tokens(300, 1), 2));
});

test('a failing disk is tried again after some minutes, and each new failure is reported once', async () => {
  const { engine, clock } = await opened(3000);
  const blocks = [tokens(300, 1), tokens(300, 2)];
  for (const block of blocks) question(engine, block, 1);
  await drain(engine);
  const fail = async (): Promise<void> => {
    await rm(folder, { recursive: true, force: true });
    await writeFile(folder, 'no folder any more');
  };
  await fail();
  expect(await saveAll(engine, blocks)).toBe(0);
  clock.now += 5 * MINUTE;
  expect(await saveAll(engine, blocks)).toBe(0);
  expect(lines).toHaveLength(1);
  expect(engine.stats().diskFault).toContain(`${folder} cannot be written: E`);
  await rm(folder);
  clock.now += 5 * MINUTE - 1;
  expect(await saveAll(engine, blocks)).toBe(0);
  clock.now++;
  expect(await saveAll(engine, blocks)).toBe(4);
  expect(engine.stats().diskFault).toBeUndefined();
  await fail();
  const another = tokens(300, 3);
  question(engine, another, 1);
  await drain(engine);
  expect(await saveAll(engine, [another])).toBe(0);
  expect(lines).toHaveLength(2);
});

test('memory used by other files is freed so that any file can be read from disk as a whole', async () => {
  const blocks = Array.from({ length: 8 }, (_, i) => tokens(700, 30 + i));
  const first = await opened(8000);
  for (const block of blocks) question(first.engine, block, 1);
  await drain(first.engine);
  await saveAll(first.engine, blocks);
  // Two of the blocks fit.
  const { engine } = await opened(1700);
  for (const [i, block] of [...blocks, ...blocks.toReversed()].entries()) {
    const asked = question(engine, block, i);
    await drain(engine);
    expect(asked.sequence.cachedTokens).toBe(700);
    expect(asked.tokenIds).toEqual(expected(block, i));
  }
  expect(engine.stats().tokens.promptComputed).toBe(16 * 9);
});

test('for a prompt larger than the free memory, the part that fits is read from disk', async () => {
  const [block, other] = [tokens(900, 3), tokens(500, 4)];
  const first = await opened(3000);
  question(first.engine, block, 1);
  await drain(first.engine);
  await saveAll(first.engine, [block]);
  const { engine } = await opened(1200);
  // This request keeps its slots while the block is read.
  const long = ask(engine, other, { prefillTokens: 500, maxTokens: 60 });
  for (let i = 0; i < 20; i++) await engine.step();
  const asked = question(engine, block, 1);
  await drain(engine);
  expect(asked.tokenIds).toEqual(expected(block, 1));
  expect(long.tokenIds).toHaveLength(60);
});

const NUM_OPERATIONS = part(10_000);

test(`${NUM_OPERATIONS} random operations over files, memory and disk keep the bytes exact and the tokens those of each request alone`, async () => {
  const random = seededRandom(11);
  const blocks = Array.from({ length: 12 }, (_, i) => tokens(100 + below(random, 500), 100 + i));
  let { engine, clock, disk } = await opened(1500, 200_000);
  const answers = new Map<string, number[]>();
  let asked: { watched: Watched; block: number[]; seed: number }[] = [];
  let numAsked = 0;
  const settle = (): void => {
    for (const { watched, block, seed } of asked) {
      if (watched.numEnds === 0) continue;
      expect(watched.numEnds).toBe(1);
      if (watched.ended === 'abort') continue;
      const key = `${blocks.indexOf(block)} ${seed}`;
      if (!answers.has(key)) answers.set(key, expected(block, seed));
      expect(watched.tokenIds).toEqual(answers.get(key));
    }
    asked = asked.filter(({ watched }) => watched.numEnds === 0);
  };
  for (let i = 0; i < NUM_OPERATIONS; i++) {
    clock.now += 100;
    const what = random();
    if (what < 0.06 && asked.length < 6) {
      const block = blocks[Math.floor(12 * random() ** 2)]!;
      const seed = 1 + below(random, 3);
      asked.push({ watched: question(engine, block, seed), block, seed });
      numAsked++;
    } else if (what < 0.08 && asked.length > 0) engine.abort(asked[below(random, asked.length)]!.watched.sequence.id);
    else if (what < 0.2) await engine.save(filesOf(blocks), 1000);
    else if (what < 0.21) engine.blocks.evict();
    else if (what < 0.212) engine.setMaxBytes((800 + below(random, 2000)) * 72 + Snapshots.bufferBytes(fakeShape()));
    else if (what < 0.2125) {
      // A new process starts with empty memory.
      await drain(engine);
      settle();
      ({ engine, clock, disk } = await opened(1500, 200_000));
    } else if (what < 0.213) await engine.blocks.forgetDisk(random() < 0.5 ? undefined : `${below(random, 12)}.ts`);
    else if (engine.hasWork()) await engine.step();
    settle();
    engine.checkIntegrity();
    expect(disk.bytes).toBeLessThanOrEqual(200_000);
    if (i % 50 === 0) expect(disk.bytes).toBe(await bytesInFolder());
    if (i % 4 === 0) await nextTurn();
  }
  await drain(engine);
  settle();
  expect(asked).toEqual([]);
  expect(numAsked).toBeGreaterThan(part(200));
});

test('maintenance checks a file once per segment to write and once more, whatever is written or encoded of other files', async () => {
  const shape = { ...fakeShape(), headSize: 16 };
  const disk = await DiskTier.open(folder, 1e9, log);
  const compression = compressionOf('turboquant', [codecNamed('turboquant', shape, rope(16))])!;
  const { engine, clock } = harness({
    slots: 20_000,
    shape,
    maxContext: 2000,
    prefillTokens: 2000,
    softSlots: 2048,
    compression,
    snapshots: { disk, codec: codecNamed('int8', shape, null), modelKey: 'fake', log },
  });
  const blocks = Array.from({ length: 10 }, (_, i) => tokens(1000, i));
  for (const block of blocks) question(engine, block, 1);
  await drain(engine);
  clock.now += 10 * MINUTE;
  const looks = vi.spyOn(KvCache.prototype, 'lookUp');
  onTestFinished(() => looks.mockRestore());
  let numCoded = 0;
  for (;;) {
    const { numSegments } = disk;
    if (!(await engine.runMaintenance(filesOf(blocks)))) break;
    if (disk.numSegments === numSegments) numCoded++;
    clock.now += 100;
  }
  expect(disk.numSegments).toBe(40);
  expect(numCoded).toBeGreaterThan(50);
  expect(looks.mock.calls.length).toBe(10 * (4 + 1));
});

test('a file that became idle after the last maintenance is written as soon as it is idle, and so are rows computed since', async () => {
  const { engine, clock, disk } = await opened(3000);
  const [another, half] = [tokens(300, 99), tokens(600, 98)];
  const files = filesOf([another, half]);
  question(engine, half.slice(0, 300), 1);
  await drain(engine);
  clock.now += 10 * MINUTE;
  while (await engine.runMaintenance(files));
  expect(disk.numSegments).toBe(1);
  question(engine, half, 1);
  question(engine, another, 1);
  await drain(engine);
  while (await engine.runMaintenance(files));
  clock.now += MINUTE - 1;
  while (await engine.runMaintenance(files));
  expect(disk.numSegments).toBe(1);
  clock.now += 1;
  while (await engine.runMaintenance(files));
  expect(disk.numSegments).toBe(5);
});
