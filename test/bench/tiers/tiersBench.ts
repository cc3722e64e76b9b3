/**
 * Suite `tiers`: forty files of 4,096 tokens under a memory budget for a few of them, with a disk tier for the rest.
 * The rows of the files come from other tokens. Asks about some files much more often than about others. Measures the
 * time to the first token by the file's tier, and compares it with reading a file from nothing.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { codecNamed } from '../../../engine/kv/approx/codecs/registry.ts';
import { codecNames, compressionOf } from '../../../engine/kv/approx/approximations.ts';
import { DiskTier } from '../../../engine/kv/disk/diskTier.ts';
import type { Engine } from '../../../engine/core/engine.ts';
import { kvShape } from '../../../engine/model/load/importedModel.ts';
import { RopeTable } from '../../../engine/model/runtime/rope.ts';
import { EngineUnderTest } from '../engineUnderTest.ts';
import type { ShapeName } from '../shapes.ts';
import { figure, short } from '../spread.ts';
import { shapeFolder } from '../writeShape.ts';
import { type Revisit, type TiersBench, type TiersScene, tiersReport } from './tiersReport.ts';

export interface TiersOptions {
  numFiles: number;
  fileTokens: number;
  maxBytes: number;
  diskBytes: number;
  revisits: number;
  /**
   * Number of revisits between two readings of a file from nothing. The readings alternate with the revisits so that
   * both have the same conditions.
   */
  anewEvery: number;
}

const OPTIONS: TiersOptions = {
  numFiles: 40,
  fileTokens: 4096,
  maxBytes: 256e6,
  diskBytes: 2e9,
  revisits: 120,
  anewEvery: 15,
};
/** Codec of the second scene. */
const SETTING = 'int4-kivi';
const QUESTION_TOKENS = 16;
/** Exponent that makes revisits of the first files more frequent. The cube of a uniform number picks the file. */
const SKEW = 3;
/**
 * Pauses after each file's reading and between questions in the second scene. The clock is set ahead. One pause in
 * three between questions is the long one.
 */
const SHORT_PAUSE_MS = 10_000;
const LONG_PAUSE_MS = 120_000;

type Log = (line: string) => void;

/**
 * One of two scenes. In the first, rows stay as computed and the questions follow each other without pauses. In the
 * second, `kvasir.cache.codec` is set and there are pauses between the questions. During a pause, idle maintenance
 * codes unused rows and moves them out of the window.
 */
class Scene {
  readonly #bench: EngineUnderTest;
  readonly #options: TiersOptions;
  /** null: nothing is coded and there is no idle maintenance. */
  readonly #setting: string | null;
  readonly #disk: DiskTier;
  #aheadMs = 0;
  #peakBytes = 0;

  constructor(bench: EngineUnderTest, options: TiersOptions, setting: string | null, disk: DiskTier, log: Log) {
    this.#bench = bench;
    this.#options = options;
    this.#setting = setting;
    this.#disk = disk;
    const { config, biased, key } = bench.model;
    const kv = kvShape(config, 'int8', biased);
    const compression =
      setting === null
        ? null
        : compressionOf(
            setting,
            codecNames(setting).map((name) => codecNamed(name, kv, RopeTable.of(config))),
          );
    bench.renew({
      maxBytes: options.maxBytes,
      snapshots: { disk, codec: codecNamed('int8', kv, null), modelKey: key, log },
      compression,
      clock: () => performance.now() + this.#aheadMs,
    });
  }

  async run(log: Log): Promise<TiersScene> {
    const { numFiles, fileTokens, revisits: numRevisits, anewEvery } = this.#options;
    const bench = this.#bench;
    const files = Array.from({ length: numFiles }, () => bench.tokens(fileTokens));
    const kept = files.map((tokenIds, i) => ({ path: `${i}`, tokenIds }));
    const written: number[] = [];
    for (const [i, file] of files.entries()) {
      const read = bench.add([...file], 0, 'idle', false, [[0, file.length]]);
      await bench.pretend(() => read.finished);
      const start = performance.now();
      while (await bench.engine.save([kept[i]!]));
      written.push(performance.now() - start);
      this.#weigh();
      await this.#pause(LONG_PAUSE_MS, kept);
    }
    log(
      `${numFiles} files are read, ${this.#disk.numSegments} segments of ${short(this.#disk.bytes / 1e6)} MB on disk`,
    );
    const anew: number[] = [];
    const revisits: Revisit[] = [];
    for (let i = 0; i < numRevisits; i++) {
      if (i % anewEvery === 0) {
        anew.push((await this.#ask(bench.tokens(fileTokens))).ms);
        log(`read anew: ${short(anew.at(-1)! / 1000)} s`);
      }
      const file = files[Math.floor(numFiles * bench.random() ** SKEW)]!;
      const { tier, codecs } = bench.engine.blocks.describe(file);
      revisits.push({ tier, codecs, ...(await this.#ask(file)) });
      await this.#pause(bench.random() < 1 / 3 ? LONG_PAUSE_MS : SHORT_PAUSE_MS, kept);
    }
    return {
      setting: this.#setting,
      peakBytes: this.#peakBytes,
      diskBytes: this.#disk.bytes,
      anew: figure(anew),
      written: figure(written),
      revisits,
    };
  }

  /**
   * Milliseconds to the first token of a question about a file, and the number of the file's tokens that were found.
   */
  async #ask(file: readonly number[]): Promise<{ ms: number; found: number }> {
    const start = performance.now();
    const asked = this.#bench.add([...file, ...this.#bench.tokens(QUESTION_TOKENS)], 1, 'chat', false, [
      [0, file.length],
    ]);
    await this.#bench.finish(asked);
    const ms = performance.now() - start;
    this.#weigh();
    return { ms, found: asked.sequence.cachedTokens };
  }

  /** Lets this much time pass without questions, and runs the maintenance that is possible meanwhile. */
  async #pause(ms: number, files: Parameters<Engine['runMaintenance']>[0]): Promise<void> {
    if (this.#setting === null) return;
    this.#aheadMs += ms;
    while (await this.#bench.engine.runMaintenance(files)) this.#weigh();
  }

  #weigh(): void {
    this.#peakBytes = Math.max(this.#peakBytes, this.#bench.engine.cacheBytes);
  }
}

/** @param cache folder for the shape and its import. */
export async function tiersBench(
  shape: ShapeName,
  cache: string,
  threads: number,
  options: TiersOptions = OPTIONS,
  log: Log = () => {},
): Promise<TiersBench> {
  const bench = await EngineUnderTest.open({
    modelDir: await shapeFolder(shape, cache),
    cacheDir: path.join(cache, 'imported'),
    threads,
    seed: 1,
  });
  const { numFiles, fileTokens, maxBytes, diskBytes } = options;
  const { numLayers, kvHeads, headSize } = kvShape(bench.model.config, 'int8', bench.model.biased);
  const scenes: TiersScene[] = [];
  try {
    for (const setting of [null, SETTING]) {
      const folder = await mkdtemp(path.join(cache, 'tiers-'));
      try {
        log(`scene: ${setting ?? 'as computed'}`);
        scenes.push(
          await new Scene(bench, options, setting, await DiskTier.open(folder, diskBytes, log), log).run(log),
        );
      } finally {
        bench.engine.close();
        await rm(folder, { recursive: true, force: true });
      }
    }
  } finally {
    await bench.dispose();
  }
  return {
    model: shape,
    threads: bench.threads,
    numFiles,
    fileTokens,
    maxBytes,
    fileBytes: fileTokens * numLayers * kvHeads * (2 * headSize + 8),
    scenes,
  };
}

export async function tiersSuite({
  shape = 'qwen2.5-0.5b',
  threads,
}: {
  shape?: string;
  threads?: string;
}): Promise<{ result: TiersBench; report: string }> {
  const result = await tiersBench(
    shape as ShapeName,
    path.resolve('.cache/bench'),
    Number(threads ?? 0),
    OPTIONS,
    (line) => console.error(line),
  );
  return { result, report: tiersReport(result) };
}
