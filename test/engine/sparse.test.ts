/**
 * Contexts longer than the pool, in the engine: which tokens they attend to, where their rows are, and that they do not
 * affect other requests.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { LostRows, type SpillFailure, SpillFile } from '../../engine/kv/disk/spillFile.ts';
import { KvMemory } from '../../engine/kv/kvMemory.ts';
import { sketchingBytes } from '../../engine/kv/approx/sparse/sparseBudget.ts';
import { kvBytesPerToken } from '../../engine/kv/kvRows.ts';
import { sketchBytes } from '../../engine/kv/approx/sparse/keySketch.ts';
import { type BatchSpan, prefillRows, scratchRows } from '../../engine/model/batch.ts';
import type { ErrorCode } from '../../engine/protocol/tasks.ts';
import { fakeShape } from '../support/engine/fakeRunner.ts';
import type { KvPool } from '../../engine/kv/pool.ts';
import { CAN_REACH, damage } from '../support/kv/damagedSpill.ts';
import { ask, drain, filesOf, harness, type Harness, tokens, type Watched } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';
import { below, seededRandom } from '../support/engine/workload.ts';
import { smallPart as part } from '../support/testLength.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-sparse-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SLOTS = 2048;
const BYTES = kvBytesPerToken(fakeShape());
/** A multiple of the block size. */
const LONG = 56 * 64;

function opened(
  options: Partial<Parameters<typeof harness>[0]> = {},
  maxBytes = 10_000_000,
): Harness & { spillFile: SpillFile } {
  const spillFile = new SpillFile(folder, maxBytes, () => {});
  return {
    ...harness({ slots: SLOTS, maxContext: 20_000, prefillTokens: 700, tokenBudget: 256, spillFile, ...options }),
    spillFile,
  };
}

test('a context 75% larger than the pool is read once; a second question needs no other prefill', async () => {
  const { engine, runner, spillFile } = opened();
  const block = tokens(LONG, 1);
  const spans: BatchSpan[] = [];
  runner.beforeRun = (batch) => spans.push(...batch);
  const first = ask(engine, [...block, ...tokens(40, 2)], { prefillTokens: block.length, maxTokens: 30 });
  await drain(engine);
  expect(first.ended).toBe('length');
  expect(first.tokenIds).toHaveLength(30);
  const most = Math.max(...spans.map(({ contextSlots }) => contextSlots.length));
  // Sketches of 113 blocks leave five pages, minus two parts of 256 and a block: 736 slots, and one part beside them.
  expect(most).toBeLessThanOrEqual(736 + 256 + 32);
  expect(most).toBeGreaterThan(736);
  // Memory holds a sketch of each block. The rows are in the spill file.
  const stats = engine.stats();
  expect(stats.poolBytes + stats.storeBytes).toBeLessThanOrEqual(SLOTS * BYTES);
  expect(spillFile.bytes).toBeGreaterThanOrEqual(LONG * (BYTES - 8));
  expect(stats.storeBytes).toBeGreaterThan(112 * sketchBytes(fakeShape(), 32));

  // The question's last sixteen tokens are computed twice.
  const { numComputed } = runner;
  const again = ask(engine, [...block, ...tokens(40, 3)], { prefillTokens: block.length, maxTokens: 5 });
  await drain(engine);
  expect(again.ended).toBe('length');
  expect(again.sequence.cachedTokens).toBe(LONG);
  expect(again.sequence.inParts).toBe(true);
  expect(runner.numComputed - numComputed).toBe(40 + 16 + 4);
  spillFile.close();
});

test('the first, the last and the selected tokens are attended to; the selection changes during the answer', async () => {
  const { engine, runner, spillFile } = opened();
  const contexts: { startIndex: number; positions: number[] }[] = [];
  runner.beforeRun = (batch) => {
    for (const { startIndex, contextSlots } of batch)
      contexts.push({ startIndex, positions: [...runner.pool.positionsOf(contextSlots)] });
  };
  ask(engine, tokens(3000, 1), { prefillTokens: 2900, maxTokens: 200 });
  await drain(engine);
  for (const { startIndex, positions } of contexts) {
    expect(positions).toEqual([...positions].sort((a, b) => a - b));
    if (startIndex === 0) continue;
    expect(positions.slice(0, 32)).toEqual(Array.from({ length: Math.min(32, startIndex) }, (_, i) => i));
    const recent = Math.min(startIndex, 128);
    expect(positions.slice(-recent)).toEqual(Array.from({ length: recent }, (_, i) => startIndex - recent + i));
  }
  const chosen = (index: number): string =>
    contexts
      .find(({ startIndex }) => startIndex === index)!
      .positions.filter((position) => position < 2500)
      .join();
  expect(chosen(3001)).toBe(chosen(3005));
  expect(new Set([3001, 3020, 3040, 3060, 3100].map(chosen)).size).toBeGreaterThan(2);
  spillFile.close();
});

test('a sparse context gives the same tokens alone and in a batch; other requests stay exact', async () => {
  const prompt = [...tokens(3100, 1), ...tokens(30, 2)];
  const run = async (options: Partial<Parameters<typeof harness>[0]>, others: number): Promise<number[]> => {
    const { engine, spillFile } = opened(options);
    const long = ask(engine, prompt, { prefillTokens: 3100, maxTokens: 40, temperature: 0.8, seed: 5 });
    const short = [];
    for (let i = 0; i < others; i++) {
      await engine.step();
      engine.checkIntegrity();
      const [ids, sampling] = [tokens(20 + 3 * i, 10 + i), { maxTokens: 8, seed: i, temperature: 1 }];
      short.push({
        ids,
        sampling,
        watched: ask(engine, ids, { ...sampling, priority: i % 3 ? 'completion' : 'chat' }),
      });
    }
    await drain(engine);
    expect(long.ended).toBe('length');
    for (const { ids, sampling, watched } of short)
      expect(watched.tokenIds).toEqual(runAlone(ids, sampling, { maxContext: 20_000, capacity: SLOTS }).tokenIds);
    spillFile.close();
    return long.tokenIds;
  };
  const alone = await run({}, 0);
  expect(alone).toHaveLength(40);
  expect(await run({}, 6)).toEqual(alone);
  expect(await run({ tokenBudget: 40 }, 0)).toEqual(alone);
  expect(await run({ tokenBudget: 71 }, 4)).toEqual(alone);
});

test('contexts that fit stay exact, also over a prefix read by a long context; rows read sparsely are not reused as exact', async () => {
  const { engine, spillFile } = opened();
  const block = tokens(3000, 1);
  const start = [...block.slice(0, 300), ...tokens(20, 7)];
  const exact = ask(engine, start, { prefillTokens: 300, maxTokens: 6 });
  await drain(engine);
  ask(engine, [...block, ...tokens(20, 2)], { prefillTokens: 3000, maxTokens: 4 });
  await drain(engine);
  // All tokens before its first tokens were in the pool.
  expect(engine.blocks.describe(block.slice(0, 300))).toMatchObject({ tokens: 300, codecs: ['int8'] });
  expect(engine.blocks.describe(block)).toMatchObject({ tokens: 3000, codecs: ['sketch'] });
  const again = ask(engine, start, { prefillTokens: 300, maxTokens: 6 });
  await drain(engine);
  expect(again.tokenIds).toEqual(exact.tokenIds);
  // A request that fits reuses no rows that were read in parts.
  const fits = [...block.slice(0, 1400), ...tokens(20, 8)];
  const short = ask(engine, fits, { prefillTokens: 1400, maxTokens: 6 });
  await drain(engine);
  expect(short.tokenIds).toEqual(runAlone(fits, { maxTokens: 6 }, { maxContext: 20_000, capacity: SLOTS }).tokenIds);
  expect(short.sequence.cachedTokens).toBeLessThan(1400);
  expect(short.sequence.inParts).toBe(false);
  spillFile.close();
});

test("a request with the same prefix continues from a long context's rows, and each keeps its own rows", async () => {
  const { engine, runner, spillFile } = opened({ tokenBudget: 50 });
  const block = tokens(3000, 1);
  const asked: Watched[] = [];
  runner.beforeRun = (batch) => {
    for (const span of batch) checkContext(span, runner.pool, asked);
  };
  asked.push(ask(engine, [...block, ...tokens(20, 2)], { prefillTokens: 3000, maxTokens: 6 }));
  for (let i = 0; i < 3; i++) await engine.step();
  const fits = [...block.slice(0, 330), ...tokens(20, 8)];
  asked.push(ask(engine, fits, { prefillTokens: 330, maxTokens: 6, priority: 'completion' }));
  await drain(engine);
  expect(asked[1]!.tokenIds).toEqual(
    runAlone(fits, { maxTokens: 6 }, { maxContext: 20_000, capacity: SLOTS }).tokenIds,
  );
  expect(asked[0]!.ended).toBe('length');
  spillFile.close();
});

test('a spill file full of unused contexts evicts them for a new one', async () => {
  const { engine, spillFile } = opened({}, 4000 * BYTES);
  for (const seed of [1, 2, 3]) {
    const long = ask(engine, tokens(2600, seed), { maxTokens: 4 });
    await drain(engine);
    expect(long.ended).toBe('length');
  }
  expect(spillFile.bytes).toBeLessThanOrEqual(4000 * BYTES);
  spillFile.close();
});

test('a request that does not fit gets one message, and others continue', async () => {
  // Three cases: no spill file, a spill file that is too small, and more tokens than sketches fit into memory.
  const without = opened({ spillFile: null });
  const tooLong = ask(without.engine, tokens(3000, 1), { maxTokens: 4 });
  await drain(without.engine);
  expect(tooLong).toMatchObject({ ended: 'outOfMemory', numEnds: 1 });
  const small = opened({}, 2600 * BYTES);
  const refused = ask(small.engine, tokens(3000, 1), { maxTokens: 4 });
  const taken = ask(small.engine, tokens(2300, 1), { maxTokens: 4 });
  const short = ask(small.engine, tokens(100, 3), { maxTokens: 4 });
  await drain(small.engine);
  // The disk limit is the cause.
  expect(refused).toMatchObject({ ended: 'diskFull', numEnds: 1 });
  expect(refused.message).toMatch(
    /3,?000 tokens\. .* disk limit of .* holds 2,?\d{3}\. Raise kvasir\.cache\.diskBytes/,
  );
  expect(taken.ended).toBe('length');
  expect(short.ended).toBe('length');
  const { engine } = opened();
  const far = ask(engine, tokens(15_000, 1), { maxTokens: 4 });
  const idle = ask(engine, tokens(3000, 1), { maxTokens: 0, priority: 'idle' });
  await drain(engine);
  expect([far.ended, idle.ended]).toEqual(['outOfMemory', 'outOfMemory']);
  for (const { message } of [tooLong, far]) expect(message).toMatch(/Raise kvasir\.cache\.maxBytes/);
});

interface Refused {
  readonly failure: SpillFailure;
  readonly code: ErrorCode;
  readonly words: RegExp;
}

test.each<Refused>([
  {
    failure: { reason: 'cap', folder, maxBytes: 1234, message: '' },
    code: 'diskFull',
    words: /^This long text needs more disk space than the limit of 1\.2 kB in .*kvasir-sparse-.* Raise kvasir/,
  },
  {
    failure: { reason: 'full', folder, maxBytes: 1234, message: 'ENOSPC' },
    code: 'diskFull',
    words: /^The disk with .*kvasir-sparse-.* is full, .* Free some space/,
  },
  {
    failure: { reason: 'system', folder, maxBytes: 1234, message: 'EACCES: permission denied' },
    code: 'writeFailed',
    words:
      /^A part of this long text could not be written to .*kvasir-sparse-.* \(EACCES: permission denied\)\. Check that the folder/,
  },
])(
  'the disk fills while a context is read: the request ends with the reason, and others continue: $failure.reason',
  async ({ failure, code, words }) => {
    const { engine, runner, spillFile } = opened();
    let numPuts = 0;
    const put = spillFile.put.bind(spillFile);
    spillFile.put = (data) => {
      if (++numPuts <= 12) return put(data);
      spillFile.failure = failure;
      return null;
    };
    let most = 0;
    runner.beforeRun = (batch) => {
      for (const { contextSlots, tokenIds } of batch) most = Math.max(most, contextSlots.length + tokenIds.length);
    };
    const long = ask(engine, tokens(3000, 1), { maxTokens: 4 });
    await drain(engine);
    expect(long.numEnds).toBe(1);
    expect(long.ended).toBe(code);
    expect(long.message).toMatch(words);
    // Rows that cannot be spilled do not accumulate in the pool or the scratch.
    expect(most).toBeLessThanOrEqual(736 + 256 + 32);
    const short = ask(engine, tokens(500, 3), { maxTokens: 4 });
    await drain(engine);
    expect(short.tokenIds).toEqual(
      runAlone(tokens(500, 3), { maxTokens: 4 }, { maxContext: 20_000, capacity: SLOTS }).tokenIds,
    );
    expect(runner.numComputed).toBeGreaterThan(0);
  },
);

test('a failing write to the spill file loses no rows of other contexts', async () => {
  const { engine, spillFile } = opened();
  ask(engine, tokens(LONG, 1), { prefillTokens: LONG, maxTokens: 4 });
  await drain(engine);
  const { bytes } = spillFile;
  const put = spillFile.put.bind(spillFile);
  spillFile.put = () => {
    spillFile.failure = { reason: 'system', folder, maxBytes: 1, message: 'EIO' };
    return null;
  };
  const long = ask(engine, [3, ...tokens(2300, 2)], { maxTokens: 4 });
  await drain(engine);
  expect(long.ended).toBe('writeFailed');
  expect(spillFile.bytes).toBe(bytes);
  expect(engine.blocks.describe(tokens(LONG, 1)).tokens).toBeGreaterThan(LONG - 32);
  spillFile.put = put;
  spillFile.close();
});

test.each([
  {
    what: 'a prompt',
    after: 12,
    ended: 'outOfMemory',
    words: /^This long text is read in parts, and the KV cache limit of [\d.]+ kB .* Raise kvasir\.cache\.maxBytes/,
  },
  { what: 'an answer', after: 110, ended: 'length', words: /^$/ },
])(
  'memory that is too small for $what ends the request with $ended, not with a full disk',
  async ({ after, ended, words }) => {
    const { engine, spillFile } = opened();
    let numAsked = 0;
    const { makeStoreSpace } = KvMemory.prototype;
    const noRoom = vi.spyOn(KvMemory.prototype, 'makeStoreSpace').mockImplementation(function (
      this: KvMemory,
      ...args
    ) {
      return ++numAsked <= after && makeStoreSpace.apply(this, args);
    });
    onTestFinished(() => noRoom.mockRestore());
    const long = ask(engine, tokens(3000, 1), { prefillTokens: 3000, maxTokens: 1500 });
    await drain(engine);
    expect(numAsked).toBeGreaterThan(after);
    expect(long.ended).toBe(ended);
    expect(long.message).toMatch(words);
    expect(spillFile.failure).toBeNull();
    spillFile.close();
  },
);

test.each([0, 13])(
  'unreadable rows end only the request that needs them; asked again, its context is read anew: %i tokens behind a block',
  async (rest) => {
    const { engine, spillFile } = opened();
    const block = tokens(LONG + rest, 1);
    const first = ask(engine, [...block, ...tokens(40, 2)], { prefillTokens: block.length, maxTokens: 5 });
    await drain(engine);
    expect(first.ended).toBe('length');
    const read = spillFile.read.bind(spillFile);
    spillFile.read = () => {
      throw new LostRows('input/output error');
    };
    const broken = ask(engine, [...block, ...tokens(40, 3)], { prefillTokens: block.length, maxTokens: 5 });
    const beside = ask(engine, tokens(300, 4), { maxTokens: 5 });
    // This prompt fits into memory, but it begins with the same tokens as the context on disk.
    const alike = ask(engine, [...block.slice(0, 300), 7], { prefillTokens: 300, maxTokens: 5 });
    await drain(engine);
    expect(alike.tokenIds).toEqual(
      runAlone([...block.slice(0, 300), 7], { maxTokens: 5 }, { maxContext: 20_000, capacity: SLOTS }).tokenIds,
    );
    expect(broken).toMatchObject({ numEnds: 1, ended: 'readFailed' });
    expect(beside.tokenIds).toEqual(
      runAlone(tokens(300, 4), { maxTokens: 5 }, { maxContext: 20_000, capacity: SLOTS }).tokenIds,
    );
    engine.checkIntegrity();
    spillFile.read = read;
    const again = ask(engine, [...block, ...tokens(40, 3)], { prefillTokens: block.length, maxTokens: 5 });
    await drain(engine);
    expect(again).toMatchObject({ numEnds: 1, ended: 'length' });
    expect(again.sequence.cachedTokens).toBeLessThan(1000);
    spillFile.close();
  },
);

test.skipIf(!CAN_REACH)(
  'one flipped bit on disk ends only the request that needs the block; asked again, its context is read anew',
  async () => {
    const own = mkdtempSync(path.join(folder, 'damaged-'));
    const spillFile = new SpillFile(own, 10_000_000, () => {});
    const { engine } = opened({ spillFile });
    const block = tokens(LONG, 1);
    const question = (seed: number): Watched =>
      ask(engine, [...block, ...tokens(40, seed)], { prefillTokens: block.length, maxTokens: 5 });
    const first = question(2);
    await drain(engine);
    expect(first.ended).toBe('length');
    // A bit of the first block, to which every token attends.
    damage(own, 700);
    const broken = question(3);
    const beside = ask(engine, tokens(300, 4), { maxTokens: 5 });
    await drain(engine);
    expect(broken).toMatchObject({ numEnds: 1, ended: 'readFailed', tokenIds: [] });
    expect(broken.message).toContain('damaged');
    expect(beside.tokenIds).toEqual(
      runAlone(tokens(300, 4), { maxTokens: 5 }, { maxContext: 20_000, capacity: SLOTS }).tokenIds,
    );
    const again = question(2);
    await drain(engine);
    expect(again).toMatchObject({ numEnds: 1, ended: 'length', tokenIds: first.tokenIds });
    spillFile.close();
  },
);

test.skipIf(!CAN_REACH)('one flipped bit on disk affects only the context that reads it', async () => {
  const own = mkdtempSync(path.join(folder, 'alone-'));
  const lines: string[] = [];
  const spillFile = new SpillFile(own, 10_000_000, (line) => lines.push(line));
  // The sketches of both contexts fit into memory.
  const { engine } = opened({ spillFile, slots: 3072 });
  const [block, other, short] = [tokens(LONG, 1), tokens(LONG, 2), tokens(400, 3)];
  const question = (of: readonly number[], seed: number): Watched =>
    ask(engine, [...of, ...tokens(40, seed)], { prefillTokens: of.length, maxTokens: 5 });
  for (const of of [block, other, short]) {
    question(of, 4);
    await drain(engine);
  }
  const cached = (): number[] => [block, other, short].map((of) => engine.blocks.describe(of).tokens);
  const [, ...others] = cached();
  expect(Math.min(...others)).toBeGreaterThanOrEqual(400);
  damage(own, 700);
  const broken = question(block, 5);
  await drain(engine);
  expect(broken.ended).toBe('readFailed');
  expect(lines).toEqual([expect.stringMatching(/^Rows of tokens 0 to \d+ of a long context cannot be read back/)]);
  expect(cached()).toEqual([0, ...others]);
  const beside = question(other, 5);
  await drain(engine);
  expect(beside).toMatchObject({ ended: 'length' });
  expect(beside.sequence.cachedTokens).toBe(others[0]);
  spillFile.close();
});

test('an error other than a disk error is not treated as lost rows: it fails the engine', async () => {
  const { engine, spillFile } = opened();
  const block = tokens(LONG, 1);
  ask(engine, block, { prefillTokens: block.length, maxTokens: 5 });
  await drain(engine);
  spillFile.read = () => {
    throw new TypeError('a bug');
  };
  ask(engine, [...block, 5], { prefillTokens: block.length, maxTokens: 5 });
  await expect(drain(engine)).rejects.toThrow('a bug');
  spillFile.close();
});

test('cached rows of a long prompt that cannot be spilled are recomputed within the available scratch memory', async () => {
  // The prefill lane holds 1,023 tokens, and later 511.
  const { engine, runner, spillFile } = opened({
    slots: 600_000 / BYTES,
    prefillTokens: undefined,
    prefillBytesPerToken: 128,
  });
  const block = tokens(4000, 1);
  ask(engine, block, { prefillTokens: 4000, maxTokens: 1 });
  await drain(engine);
  expect(engine.blocks.describe(block).tokens).toBe(4000);
  const long = ask(engine, [...block, 5], { prefillTokens: 4000, maxTokens: 4 });
  const budget = 270_000 + sketchingBytes(fakeShape());
  engine.setMaxBytes(budget, { mostBytes: budget });
  const put = spillFile.put.bind(spillFile);
  let numPuts = 0;
  spillFile.put = (data) => (numPuts++ === 0 ? null : put(data));
  const rows: number[] = [];
  runner.beforeRun = (batch) => {
    for (const { lane, prefillEnd } of batch) if (lane === 'prefill') rows.push(prefillRows(prefillEnd!));
  };
  await drain(engine);
  expect(long).toMatchObject({ ended: 'length', numEnds: 1 });
  expect(rows.length).toBeGreaterThan(0);
  expect(Math.max(...rows)).toBe(scratchRows(511));
  spillFile.close();
});

/**
 * Checks a context's rows: they belong to the sequence's tokens, in order, without duplicates, and end right before the
 * span. The span may end with a draft.
 */
function checkContext(
  { startIndex, tokenIds, contextSlots }: BatchSpan,
  pool: KvPool,
  asked: readonly Watched[],
): void {
  const of = asked.filter(
    ({ numEnds, sequence }) =>
      numEnds === 0 &&
      startIndex < sequence.tokenIds.length &&
      tokenIds.every((id, i) => (sequence.tokenIds[startIndex + i] ?? id) === id),
  );
  const positions = [...pool.positionsOf(contextSlots)];
  const rows = pool.read(contextSlots);
  // The fake runner's format of rows.
  const ids = positions.map((_, i) => (rows.keys[i]! & 255) | ((rows.keys[positions.length + i]! & 255) << 8));
  if (!of.some(({ sequence }) => positions.every((position, i) => sequence.tokenIds[position] === ids[i])))
    throw new Error(`Rows of other tokens before ${startIndex}.`);
  if (
    positions.some((position, i) => i > 0 && position <= positions[i - 1]!) ||
    (startIndex > 0 && positions.at(-1) !== startIndex - 1)
  )
    throw new Error(`Rows are not those before ${startIndex}: ${positions.join()}`);
}

test('property: with random arrivals and aborts each request ends once, byte counts are exact and the budget holds', async () => {
  const random = seededRandom(11);
  const { engine, runner, clock, spillFile } = opened();
  runner.hasSketched = true;
  runner.beforeRun = (batch) => {
    for (const span of batch) checkContext(span, runner.pool, asked);
  };
  const files = [tokens(2400, 1), tokens(3600, 2), tokens(500, 3), tokens(900, 4)];
  const asked: ReturnType<typeof ask>[] = [];
  let budget = SLOTS;
  for (let i = 0; i < part(1600); i++) {
    clock.now += below(random, 3000);
    const block = files[below(random, files.length)]!;
    const kind = below(random, 12);
    if (kind < 6) {
      const cut = below(random, 3) === 0 ? block.slice(0, 1 + below(random, block.length)) : block;
      asked.push(
        ask(engine, [...cut, ...tokens(1 + below(random, 60), i)], {
          prefillTokens: cut.length,
          maxTokens: below(random, 30),
          priority: (['completion', 'chat', 'summary', 'idle'] as const)[below(random, 4)]!,
        }),
      );
    } else if (kind === 6 && asked.length) engine.abort(asked[below(random, asked.length)]!.sequence.id);
    else if (kind === 7) {
      budget = 1024 + below(random, 5) * 256;
      engine.setMaxBytes(budget * BYTES + sketchingBytes(fakeShape()));
    } else if (kind === 8)
      engine.blocks.evict(below(random, 2) ? block.slice(0, below(random, block.length)) : undefined);
    else if (kind === 9) engine.blocks.pin('file', below(random, 2) ? block : null);
    else if (kind === 10) while (below(random, 8) > 0 && engine.hasWork()) await engine.step();
    else await engine.runMaintenance(filesOf(files));
    if (engine.hasWork()) await engine.step();
    engine.checkIntegrity();
    const { poolBytes, storeBytes } = engine.stats();
    expect(poolBytes + storeBytes).toBeLessThanOrEqual(budget * BYTES);
  }
  await drain(engine);
  for (const { numEnds } of asked) expect(numEnds).toBe(1);
  // A request that always fits gives the same tokens as alone, whatever other requests left in the cache.
  const fit = asked.filter(
    ({ ended, sequence }) => ended === 'length' && sequence.numPromptTokens + sequence.sampling.maxTokens < 1000,
  );
  expect(fit.length).toBeGreaterThan(part(120));
  for (const { sequence, tokenIds } of fit)
    expect(tokenIds).toEqual(
      runAlone(
        sequence.tokenIds.slice(0, sequence.numPromptTokens),
        { maxTokens: sequence.sampling.maxTokens },
        { maxContext: 20_000, capacity: 1024 },
      ).tokenIds,
    );
  expect(
    asked.filter(({ sequence, ended }) => ended === 'length' && sequence.numPromptTokens > SLOTS).length,
  ).toBeGreaterThan(part(40));
  engine.blocks.evict();
  engine.blocks.pin('file', null);
  engine.blocks.evict();
  engine.checkIntegrity();
  expect(engine.stats().storeBytes).toBe(0);
  expect(spillFile.bytes).toBe(0);
  spillFile.close();
});
