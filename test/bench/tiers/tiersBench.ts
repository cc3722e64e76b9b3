/**
 * Suite `tiers`: forty files of 4,096 tokens under a ceiling that holds a few of them, and a disk tier for the rest. Rows of other
 * tokens stand in for those of the files; then questions about the files are asked, about some far more often than about others.
 * What does the first token of such a question cost, of what reading the file anew costs, and which tier had the file?
 */
import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { codecNamed } from '../../../engine/cache/codecs/registry.ts';
import { DiskTier } from '../../../engine/cache/disk/diskTier.ts';
import { kvShape } from '../../../engine/model/importModel.ts';
import { EngineUnderTest } from '../engineUnderTest.ts';
import type { ShapeName } from '../shapes.ts';
import { figure, short } from '../spread.ts';
import { shapeFolder } from '../writeShape.ts';
import { type Revisit, type TiersBench, tiersReport } from './tiersReport.ts';

const NUM_FILES = 40;
const FILE_TOKENS = 4096;
const QUESTION_TOKENS = 16;
const MAX_BYTES = 256e6;
const DISK_BYTES = 2e9;
const REVISITS = 120;
/** Files that are read anew, for comparison. */
const READ_ANEW = 3;
/** Of revisits, how much more often the first files come than the last: the cube of a uniform number picks them. */
const SKEW = 3;

export async function tiersSuite({ shape = 'qwen2.5-0.5b', threads }: { shape?: string; threads?: string }): Promise<{ result: TiersBench; report: string }> {
  const cache = path.resolve('.cache/bench');
  const bench = await EngineUnderTest.open({ modelDir: await shapeFolder(shape as ShapeName, cache), cacheDir: path.join(cache, 'imported'), threads: Number(threads ?? 0), seed: 1 });
  const folder = await mkdtemp(path.join(cache, 'tiers-'));
  try {
    const kv = kvShape(bench.model.config, 'int8', bench.model.biased);
    const disk = await DiskTier.open(folder, DISK_BYTES, (line) => console.error(line));
    const snapshots = { disk, codec: codecNamed('int8', kv, null), modelKey: bench.model.key, log: (line: string) => console.error(line) };
    bench.renew({ maxBytes: MAX_BYTES, snapshots });
    const files = Array.from({ length: NUM_FILES }, () => bench.tokens(FILE_TOKENS));
    let peakBytes = 0;
    const weigh = (): void => {
      peakBytes = Math.max(peakBytes, bench.engine.cacheBytes);
    };
    /** Milliseconds to the first token of a question about a file. */
    const ask = async (file: readonly number[]): Promise<{ ms: number; found: number }> => {
      const start = performance.now();
      const asked = bench.add([...file, ...bench.tokens(QUESTION_TOKENS)], 1, 'chat', false, [[0, file.length]]);
      await bench.finish(asked);
      const ms = performance.now() - start;
      weigh();
      return { ms, found: asked.sequence.cachedTokens };
    };
    const anew: number[] = [];
    for (let i = 0; i < READ_ANEW; i++) {
      anew.push((await ask(bench.tokens(FILE_TOKENS))).ms);
      console.error(`read anew: ${short(anew.at(-1)! / 1000)} s`);
    }
    const written: number[] = [];
    for (const file of files) {
      const read = bench.add([...file], 0, 'idle', false, [[0, file.length]]);
      await bench.pretend(() => read.finished);
      const start = performance.now();
      while (await bench.engine.save([{ path: '', tokenIds: file }]));
      written.push(performance.now() - start);
      weigh();
    }
    console.error(`${NUM_FILES} files are read, ${disk.numSegments} segments of ${short(disk.bytes / 1e6)} MB on disk`);
    const revisits: Revisit[] = [];
    for (let i = 0; i < REVISITS; i++) {
      const file = files[Math.floor(NUM_FILES * bench.random() ** SKEW)]!;
      const { tier } = bench.engine.describe(file);
      revisits.push({ tier, ...(await ask(file)) });
    }
    const result: TiersBench = { model: shape, threads: bench.threads, numFiles: NUM_FILES, fileTokens: FILE_TOKENS, maxBytes: MAX_BYTES, peakBytes, fileBytes: FILE_TOKENS * kv.numLayers * kv.kvHeads * (2 * kv.headSize + 8), diskBytes: disk.bytes, anew: figure(anew), written: figure(written), revisits };
    return { result, report: tiersReport(result) };
  } finally {
    await bench.dispose();
    await rm(folder, { recursive: true, force: true });
  }
}
