/**
 * The memory budget while the machine's free memory changes under a running engine. Tokens stay the same, and every
 * byte is counted.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { kernelBytes } from '../../engine/kv/approx/codecs/kernels.ts';
import { codecNamed } from '../../engine/kv/approx/codecs/registry.ts';
import { DiskTier } from '../../engine/kv/disk/diskTier.ts';
import { scratchRows } from '../../engine/model/batch.ts';
import { codingBytes } from '../../engine/kv/approx/compression.ts';
import { kvBytesPerToken } from '../../engine/kv/kvRows.ts';
import { KvPool } from '../../engine/kv/pool.ts';
import { Engine } from '../../engine/core/engine.ts';
import { mostPrefillTokens, MemoryBudget } from '../../engine/core/memoryBudget.ts';
import { Snapshots } from '../../engine/kv/snapshots.ts';
import { rope } from '../support/kv/codecRows.ts';
import { FakeRunner, fakeShape } from '../support/engine/fakeRunner.ts';
import { ask, harness, tokens } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';
import { policyOptions } from '../support/engine/policies.ts';

const SHAPE = fakeShape();
const BYTES = kvBytesPerToken(SHAPE);
const SCRATCH_BYTES = 32;

/** From a prompt's first part on, its scratch holds the most rows that its share of the budget allows. */
class ScratchRunner extends FakeRunner {
  maxBytes = 0;
  scratchBytes = 0;

  override async run(batch: Parameters<FakeRunner['run']>[0]): Promise<Float32Array> {
    if (batch.some(({ lane }) => lane === 'prefill'))
      this.scratchBytes = scratchRows(mostPrefillTokens(this.maxBytes, SCRATCH_BYTES, 4096)) * SCRATCH_BYTES;
    return super.run(batch);
  }

  releaseScratch(): void {
    this.scratchBytes = 0;
  }
}

test('requests continue with the same tokens while other programs take memory and give it back', async () => {
  const { engine, clock } = harness({ slots: 4000, tokenBudget: 64 });
  // Bytes of the test count as MB here, so that a machine's minimum budget does not matter.
  const machine = { totalBytes: 8000e6, availableBytes: 4000e6 };
  const reading = () => ({ ...machine, usedBytes: (engine.cacheBytes / BYTES) * 1e6 });
  const budget = new MemoryBudget(0, reading(), 0);
  engine.setMaxBytes((budget.budget / 1e6) * BYTES);
  const asked = [1, 2, 3].map((i) => ask(engine, tokens(400, i), { maxTokens: 40 }));
  const budgets = new Set([budget.budget]);
  for (let steps = 0; engine.hasWork(); steps++) {
    machine.availableBytes = steps >= 6 && steps < 20 ? 400e6 : 4000e6;
    clock.now += 3000;
    if (budget.follow(reading(), clock.now)) engine.setMaxBytes((budget.budget / 1e6) * BYTES);
    budgets.add(budget.budget);
    expect(engine.cacheBytes).toBeLessThanOrEqual((budget.budget / 1e6) * BYTES);
    await engine.step();
    engine.checkIntegrity();
  }
  expect(Math.min(...budgets)).toBeLessThan(1000e6);
  expect(budget.budget).toBeGreaterThan(Math.min(...budgets));
  expect(engine.stats().events.preemptions).toBeGreaterThan(0);
  for (const [i, one] of asked.entries())
    expect(one.tokenIds).toEqual(
      runAlone(tokens(400, i + 1), { maxTokens: 40 }, { maxContext: 4096, capacity: 4096 }).tokenIds,
    );
});

test('the budget counts pool, store, scratch and the disk tier’s buffers, to the byte', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'kvasir-budget-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const log = (): void => {};
  const snapshots = {
    disk: await DiskTier.open(folder, 1e8, log),
    codec: codecNamed('int8', SHAPE, null),
    modelKey: 'fake',
    log,
  };
  const bufferBytes = Snapshots.bufferBytes(SHAPE);
  const pool = new KvPool(SHAPE, 0);
  const runner = new ScratchRunner(pool);
  const maxBytes = 3000 * BYTES + bufferBytes + 17;
  runner.maxBytes = maxBytes;
  const engine = new Engine({
    runner,
    pool,
    maxContext: 4096,
    tokenBudget: 256,
    clock: () => 0,
    prefillBytesPerToken: SCRATCH_BYTES,
    snapshots,
    maxBytes,
  });
  let most = 0;
  for (let i = 0; i < 12; i++) {
    ask(engine, tokens(500, i), { maxTokens: 3, prefillTokens: 300 });
    while (engine.hasWork()) {
      await engine.step();
      const { poolBytes, storeBytes, scratchBytes } = engine.stats();
      expect(engine.cacheBytes).toBe(poolBytes + storeBytes + scratchBytes + bufferBytes);
      most = Math.max(most, engine.cacheBytes);
    }
  }
  // The budget is full, except for less than one page of the pool or one run of the store.
  expect(runner.scratchBytes).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(maxBytes);
  expect(most).toBeGreaterThan(maxBytes - 512 * BYTES);
  engine.setMaxBytes(maxBytes - 1500 * BYTES);
  expect(engine.cacheBytes).toBeLessThanOrEqual(maxBytes - 1500 * BYTES);
});

/** Like the real runner, allocates memory for a prompt's whole prefill lane at the prompt's first part. */
class GrowingRunner extends FakeRunner {
  scratchBytes = 0;

  override async run(batch: Parameters<FakeRunner['run']>[0]): Promise<Float32Array> {
    for (const { lane, prefillEnd } of batch)
      if (lane === 'prefill') this.scratchBytes = Math.max(this.scratchBytes, scratchRows(prefillEnd!) * 4 * BYTES);
    return super.run(batch);
  }

  releaseScratch(): void {
    this.scratchBytes = 0;
  }
}

test.each([1, 5])(
  'a budget that falls while prompts are read, after step %i: computed rows stay, the rest uses the other lane, and the budget holds',
  async (at) => {
    const pool = new KvPool(SHAPE, 0);
    const runner = new GrowingRunner(pool);
    const budgets = [20_000 * BYTES, 6000 * BYTES];
    const engine = new Engine({
      runner,
      pool,
      maxContext: 4096,
      tokenBudget: 256,
      clock: () => 0,
      prefillBytesPerToken: 4 * BYTES,
      maxBytes: budgets[0]!,
      ...policyOptions({ speculation: false }),
    });
    const first = ask(engine, tokens(2500, 1), { maxTokens: 20, prefillTokens: 2500 });
    let budget = budgets[0]!;
    const second = ask(engine, tokens(900, 2), { maxTokens: 20, prefillTokens: 900 });
    for (let steps = 0; engine.hasWork(); steps++) {
      await engine.step();
      if (steps === at) {
        [, budget] = budgets as [number, number];
        engine.setMaxBytes(budget);
      }
      expect(engine.cacheBytes).toBeLessThanOrEqual(budget);
      engine.checkIntegrity();
    }
    expect([first.ended, second.ended]).toEqual(['length', 'length']);
    // The change causes no token to be computed twice.
    expect(runner.numComputed).toBe(2500 + 900 + 2 * 19);
    for (const [i, one] of [first, second].entries())
      expect(one.tokenIds).toEqual(
        runAlone(tokens(i === 0 ? 2500 : 900, i + 1), { maxTokens: 20 }, { maxContext: 4096, capacity: 20_000 })
          .tokenIds,
      );
  },
);

// This test must be the last one, because the kernels keep the memory that it uses.
test('the budget counts the memory of the codec kernels exactly, before, during and after encoding', async () => {
  const shape = { ...SHAPE, headSize: 64 };
  const codec = codecNamed('turboquant', shape, rope(shape.headSize));
  const compression = { levels: [{ codec, idleMs: 1000, fullness: 0 }], only: null };
  const maxBytes = 1500 * kvBytesPerToken(shape) + codingBytes(compression);
  const clock = { now: 0 };
  const pool = new KvPool(shape, 0);
  const engine = new Engine({
    runner: new FakeRunner(pool),
    pool,
    maxContext: 4096,
    tokenBudget: 256,
    clock: () => clock.now,
    compression,
    maxBytes,
  });
  expect(kernelBytes()).toBe(0);
  ask(engine, tokens(1000, 1), { maxTokens: 0 });
  while (engine.hasWork()) await engine.step();
  clock.now += 100_000;
  let most = 0;
  const check = (): void => {
    const { poolBytes, storeBytes } = engine.stats();
    expect(engine.cacheBytes).toBe(poolBytes + storeBytes + kernelBytes());
    expect(engine.cacheBytes).toBeLessThanOrEqual(maxBytes);
    most = Math.max(most, kernelBytes());
  };
  do check();
  while (await engine.runMaintenance([]));
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(codingBytes(compression));
  // The kernels keep their memory. An engine that encodes less has that much less memory for its rows.
  const other = new Engine({
    runner: new FakeRunner(new KvPool(SHAPE, 0)),
    pool: new KvPool(SHAPE, 0),
    maxContext: 100_000,
    maxBytes,
  });
  expect(other.cacheBytes).toBe(most + 256 * BYTES);
  const tooLarge = ask(other, tokens(Math.floor((maxBytes - most) / BYTES) + 1, 1), { maxTokens: 0 });
  while (other.hasWork()) await other.step();
  expect(tooLarge.ended).toBe('outOfMemory');
});
