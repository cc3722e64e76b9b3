/**
 * All tiers together under a changing budget: pool, store with codecs, pruning, disk tier, contexts longer than memory,
 * and the prefill lane's scratch. After each operation, every byte is recounted and checked against the budget.
 */
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AttentionMeter } from '../../engine/kv/approx/pruned/attentionMeter.ts';
import type { BatchSpan } from '../../engine/model/batch.ts';
import { kernelBytes } from '../../engine/kv/approx/codecs/kernels.ts';
import { codecNamed } from '../../engine/kv/approx/codecs/registry.ts';
import { codecNames, compressionOf } from '../../engine/kv/approx/approximations.ts';
import { type Compression, codingBytes } from '../../engine/kv/approx/compression.ts';
import { DiskTier } from '../../engine/kv/disk/diskTier.ts';
import { LostRows, SpillFile } from '../../engine/kv/disk/spillFile.ts';
import { sketchingBytes } from '../../engine/kv/approx/sparse/sparseBudget.ts';
import { KEPT_CODEC, KVZIP } from '../../engine/kv/approx/pruned/keptRows.ts';
import { KvPool } from '../../engine/kv/pool.ts';
import { Engine } from '../../engine/core/engine.ts';
import type { OnnxRuntime } from '../../engine/model/runtime/onnxSession.ts';
import { PrefillFeeds, scratchBytesPerToken } from '../../engine/model/runtime/prefillFeeds.ts';
import { Snapshots } from '../../engine/kv/snapshots.ts';
import { rope } from '../support/kv/codecRows.ts';
import { FakeRunner, fakeShape } from '../support/engine/fakeRunner.ts';
import { ask, filesOf, tokens, type Watched } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';
import { CodedRows, tracedCodecs } from '../support/engine/tracedCodec.ts';
import { below, seededRandom } from '../support/engine/workload.ts';
import { smallPart as part } from '../support/testLength.ts';

const SHAPE = fakeShape();
const MAX_CONTEXT = 12_000;
const DISK_BYTES = 400_000;
const MINUTE = 60_000;
const NUM_OPERATIONS = part(10_000);

/** The fake model with the real scratches, used as a real step uses them. */
class ScratchRunner extends FakeRunner {
  readonly #feeds: PrefillFeeds;

  constructor(pool: KvPool) {
    super(pool);
    const ort = { Tensor: class {} } as unknown as OnnxRuntime;
    this.#feeds = new PrefillFeeds(ort, pool, rope(SHAPE.headSize), new Map(), {});
  }

  get scratchBytes(): number {
    return this.#feeds.bytes;
  }

  set separatesShort(separates: boolean) {
    this.#feeds.separatesShort = separates;
  }

  releaseScratch(): void {
    this.#feeds.release();
  }

  /** Bytes of the arrays that exist. */
  countScratch(): number {
    const buffers = new Set<ArrayBufferLike>();
    for (const scratch of this.#feeds.scratches) {
      for (let l = 0; scratch.capacity > 0 && l < SHAPE.numLayers; l++)
        for (const rows of [scratch.keys(l), scratch.values(l)]) buffers.add(rows.buffer);
    }
    return [...buffers].reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  override run(batch: readonly BatchSpan[]): Promise<Float32Array> {
    this.#feeds.bind(batch.find(({ lane }) => lane === 'prefill'));
    return super.run(batch);
  }
}

// Many rows break the chain here. Each throws an error whose stack nobody reads.
Error.stackTraceLimit = 0;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kvasir-tiers-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

interface Opened {
  engine: Engine;
  runner: ScratchRunner;
  clock: { now: number };
  spillFile: SpillFile;
}

interface Setting {
  readonly compression: Compression;
  /** Tokens of the prefill lane. By default, as many as a quarter of the budget holds. */
  readonly prefillTokens?: number;
  /** The lowest and the highest budget, in bytes. */
  readonly budgets: readonly [number, number];
}

async function opened({ compression, prefillTokens, budgets }: Setting): Promise<Opened> {
  const pool = new KvPool(SHAPE, 0);
  const runner = new ScratchRunner(pool);
  runner.hasSketched = true;
  const clock = { now: 0 };
  const log = (): void => {};
  const spillFile = new SpillFile(folder, 2_000_000, log);
  const snapshots = {
    disk: await DiskTier.open(folder, DISK_BYTES, log),
    codec: codecNamed('int8', SHAPE, null),
    modelKey: 'fake',
    log,
  };
  const pruning = {
    idleMs: 2 * MINUTE,
    turn: { before: [1, 2], after: [3] },
    layers: new Set([0]),
    conversations: true,
  };
  const engine = new Engine({
    runner,
    pool,
    maxBytes: budgets[1],
    maxContext: MAX_CONTEXT,
    softSlots: 2000,
    tokenBudget: 256,
    clock: () => clock.now,
    prefillBytesPerToken: scratchBytesPerToken(SHAPE),
    prefillTokens,
    compression,
    pruning,
    snapshots,
    spillFile,
  });
  return { engine, runner, clock, spillFile };
}

// These codecs throw if they encode a row twice.
const auto = compressionOf('auto', tracedCodecs(codecNames('auto'), SHAPE, new CodedRows()))!;
const kvzip = compressionOf(KVZIP, tracedCodecs([KEPT_CODEC], SHAPE, new CodedRows()))!;
/** Memory of codec and sketch kernels. It depends on which test used them first. */
const KERNELS = Math.max(codingBytes(auto), codingBytes(kvzip), sketchingBytes(SHAPE));
/** `moving`: the scratch comes and goes with the budget. `two`: two scratches leave little memory. */
const moving = { budgets: [200_000 + KERNELS, 600_000 + KERNELS] } as const;
const two = { prefillTokens: 4095, budgets: [850_000 + KERNELS, 1_150_000 + KERNELS] } as const;

test.each<Setting & { name: string }>([
  { name: 'auto, one scratch', compression: auto, ...moving },
  { name: 'auto, two scratches', compression: auto, ...two },
  { name: 'kvzip, one scratch', compression: kvzip, ...moving },
  { name: 'kvzip, two scratches', compression: kvzip, ...two },
])(
  `${NUM_OPERATIONS} random operations with all tiers under a changing budget: byte counts are exact, and each request ends once: $name`,
  async (setting) => {
    const random = seededRandom(setting.name.length);
    let { engine, runner, clock, spillFile } = await opened(setting);
    const buffers = Snapshots.bufferBytes(SHAPE);
    const files = [270, 300, 340, 420].map((n, i) => tokens(n, i + 1));
    const long = [tokens(2600, 8), tokens(3600, 9)];
    let chat = [...files[3]!, ...tokens(500, 20)];
    let asked: { watched: Watched; preemptions: number }[] = [];
    let [, budget] = setting.budgets;
    const seen = {
      inParts: 0,
      exact: 0,
      fromDisk: 0,
      measured: 0,
      codecs: new Set<string>(),
      scratch: new Set<number>(),
      readFailed: 0,
    };
    /** While true, reads of the spill file fail. */
    let fails = false;

    const numPreempted = (): number => engine.stats().events.preemptions;
    /** The cache's own check counts pool and store. */
    const check = (): void => {
      engine.checkIntegrity();
      const scratch = runner.countScratch();
      if (runner.scratchBytes !== scratch)
        throw new Error(`the scratch says ${runner.scratchBytes} bytes and has ${scratch}`);
      seen.scratch.add(scratch);
      if (engine.cacheBytes <= budget) return;
      const { poolBytes, storeBytes } = engine.stats();
      throw new Error(
        `${poolBytes} + ${storeBytes} + ${scratch} + ${buffers} + ${kernelBytes()} bytes are more than ${budget}`,
      );
    };
    const settle = (): void => {
      for (const { watched, preemptions } of asked) {
        if (watched.numEnds === 0) continue;
        expect(watched.numEnds).toBe(1);
        const { sequence, ended } = watched;
        if (ended === 'readFailed') seen.readFailed++;
        else if (ended !== 'length' && ended !== 'abort') expect(['outOfMemory', 'diskFull']).toContain(ended);
        if (ended !== 'length' || sequence.sampling.maxTokens === 0) continue;
        if (sequence.inParts) seen.inParts++;
        // None of its rows ever left the pool.
        if (sequence.inParts || sequence.cachedTokens > 0 || numPreempted() > preemptions) continue;
        seen.exact++;
        const { numPromptTokens, tokenIds } = sequence;
        expect(watched.tokenIds).toEqual(
          runAlone(
            tokenIds.slice(0, numPromptTokens),
            { maxTokens: sequence.sampling.maxTokens },
            { maxContext: MAX_CONTEXT, capacity: MAX_CONTEXT },
          ).tokenIds.slice(0, watched.tokenIds.length),
        );
      }
      asked = asked.filter(({ watched }) => watched.numEnds === 0);
    };
    const put = (
      promptIds: readonly number[],
      prefillTokens: number,
      priority: 'chat' | 'completion' | 'summary' | 'idle' = 'chat',
    ): void => {
      asked.push({
        watched: ask(engine, promptIds, {
          prefillTokens,
          maxTokens: priority === 'idle' ? 0 : 1 + below(random, 12),
          priority,
        }),
        preemptions: numPreempted(),
      });
    };
    const breakReads = (): void => {
      const read = spillFile.read.bind(spillFile);
      spillFile.read = (piece) => {
        if (fails) throw new LostRows('input/output error');
        return read(piece);
      };
    };
    breakReads();
    const drain = async (): Promise<void> => {
      while (engine.hasWork() || engine.isFetching) {
        if (engine.hasWork()) await engine.step();
        check();
        await nextTurn();
      }
    };

    for (let i = 0; i < NUM_OPERATIONS; i++) {
      const what = random();
      const of = below(random, files.length);
      fails = random() < 0.05;
      clock.now += what < 0.75 ? below(random, 200) : random() < 0.2 ? 6 * MINUTE : below(random, 3000);
      // Operations during a step take effect after it.
      const stepping = engine.hasWork() && random() < 0.2 ? engine.step() : null;
      if (what < 0.15 && asked.length < 8) {
        const block = files[of]!;
        const cut = random() < 0.2 ? block.slice(0, 1 + below(random, block.length)) : block;
        put(
          [...cut, ...tokens(1 + below(random, 40), i)],
          cut.length,
          (['completion', 'chat', 'summary', 'idle'] as const)[below(random, 4)]!,
        );
      } else if (what < 0.165 && asked.length < 8) {
        const block = long[below(random, 2)]!;
        put([...block, ...tokens(20, i)], block.length);
      } else if (what < 0.18 && asked.length < 8) {
        if (chat.length > 1500) chat = [...files[3]!, ...tokens(500, i)];
        chat = [...chat, ...tokens(60, i)];
        put(chat, files[3]!.length);
      } else if (what < 0.2 && asked.length > 0) engine.abort(asked[below(random, asked.length)]!.watched.sequence.id);
      else if (what < 0.23) {
        budget = setting.budgets[0] + below(random, setting.budgets[1] - setting.budgets[0]);
        engine.setMaxBytes(budget);
      } else if (what < 0.24)
        files[of] = [
          ...files[of]!.slice(0, below(random, files[of]!.length)),
          ...tokens(50, i),
          ...files[of]!.slice(-200),
        ].slice(0, 420);
      else if (what < 0.255) engine.blocks.evict(random() < 0.2 ? undefined : files[of]!.slice(0, below(random, 40)));
      else if (what < 0.26) engine.blocks.evict(long[of & 1]!.slice(0, below(random, 3000)));
      else if (what < 0.27) engine.blocks.pin('a file', random() < 0.5 ? null : files[of]!);
      else if (what < 0.275) await engine.blocks.forgetDisk(random() < 0.3 ? undefined : `${of}.ts`);
      else if (what < 0.277 && !stepping) {
        // A new process starts with empty memory.
        await drain();
        settle();
        engine.close();
        spillFile.close();
        seen.fromDisk += engine.stats().tokens.promptFromDisk;
        ({ engine, runner, clock, spillFile } = await opened(setting));
        budget = setting.budgets[1];
        breakReads();
      } else if (what < 0.75) {
        await stepping;
        if (engine.hasWork()) await engine.step();
      } else if (random() < 0.12) {
        // A quiet period: no request waits, and maintenance does what it can.
        await stepping;
        await drain();
        clock.now += below(random, 7) * MINUTE;
        for (let n = 6; n > 0 && (await engine.runMaintenance(filesOf([...files, long[0]!]))); n--) check();
      } else if (!stepping) {
        let numParts = below(random, 6);
        const maintaining = engine.runMaintenance(filesOf(files), { mustEnd: () => numParts-- < 0 });
        // A request arrives during maintenance.
        if (random() < 0.2) put(files[of]!, files[of]!.length);
        await maintaining;
      }
      await stepping;
      check();
      settle();
      if (i % 8 === 0) {
        const { poolBytes, storeBytes, scratchBytes, bufferBytes, maxBytes, diskBytes } = engine.stats();
        // In addition to them, the buffers hold measurements of a context's rows.
        expect((bufferBytes - buffers - kernelBytes()) % AttentionMeter.bytes(SHAPE.numLayers * SHAPE.kvHeads, 1)).toBe(
          0,
        );
        if (bufferBytes > buffers + kernelBytes()) seen.measured++;
        expect([poolBytes + storeBytes + scratchBytes + bufferBytes, maxBytes]).toEqual([engine.cacheBytes, budget]);
        expect(diskBytes).toBeLessThanOrEqual(DISK_BYTES);
      }
      if (i % 4 === 0)
        for (const [ids, prefill] of [
          [files[of]!, files[of]!.length],
          [chat, files[3]!.length],
          [long[0]!, long[0]!.length],
        ] as const)
          for (const codec of engine.blocks.describe(ids, [[0, prefill]]).codecs) seen.codecs.add(codec);
      if (i % 3 === 0) await nextTurn();
    }
    fails = false;
    await drain();
    settle();
    expect(asked).toEqual([]);
    seen.fromDisk += engine.stats().tokens.promptFromDisk;
    engine.blocks.pin('a file', null);
    engine.blocks.evict();
    check();
    expect([engine.stats().storeBytes, spillFile.bytes]).toEqual([0, 0]);
    // Every case occurred.
    expect([...seen.codecs]).toEqual(
      expect.arrayContaining(['int8', 'kvzip', ...(setting.compression === auto ? codecNames('auto') : [])]),
    );
    for (const { count, least } of [
      { count: seen.scratch.size, least: 3 },
      { count: seen.inParts, least: 1 },
      { count: seen.exact, least: part(80) },
      { count: seen.measured, least: 1 },
      { count: seen.fromDisk, least: part(20_000) },
    ])
      expect(count).toBeGreaterThanOrEqual(least);
    // A segment in transit exists as a file, as rows and encoded. The counted bytes cover all three.
    for (const name of await readdir(folder))
      expect(3 * (await stat(path.join(folder, name))).size).toBeLessThanOrEqual(buffers);
    spillFile.close();
  },
  300_000,
);
