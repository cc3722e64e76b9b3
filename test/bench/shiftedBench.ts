/**
 * Suite `shifted`: measures the time of the first answer after an edit in the middle of a file, with and without
 * position-shifted reuse, before idle work has recomputed anything. The block from before the edit is in the cache. The
 * edit inserts a line in the middle of the block. The question has 30 tokens. Both ways take turns.
 */
import path from 'node:path';
import { EngineUnderTest } from './engineUnderTest.ts';
import { SHAPES, type ShapeName } from './shapes.ts';
import { type Figure, figure, table, withSpread } from './spread.ts';
import { shapeFolder } from './writeShape.ts';

const MODELS = [...(Object.keys(SHAPES) as ShapeName[]), 'starter'];
const BLOCKS = [1000, 1700, 4000, 8000];
const LINE_TOKENS = 12;
const QUESTION_TOKENS = 30;

export interface ShiftedCase {
  blockTokens: number;
  shiftedTokens: number;
  exactMs: Figure;
  shiftedMs: Figure;
}

export interface ShiftedBench {
  model: string;
  threads: number;
  results: ShiftedCase[];
}

export async function shiftedSuite(values: {
  shape?: string;
  rounds?: string;
  threads?: string;
  only?: string;
}): Promise<{ result: ShiftedBench; report: string }> {
  const { shape = 'qwen2.5-0.5b', rounds = '3', threads = '0', only = BLOCKS.join() } = values;
  if (!MODELS.includes(shape)) throw new Error(`--shape ${shape}: it must be one of ${MODELS.join(', ')}`);
  for (const [name, value] of [
    ['rounds', rounds],
    ['threads', threads],
    ...only.split(',').map((tokens) => ['only', tokens] as const),
  ] as const)
    if (!/^\d+$/.test(value)) throw new Error(`--${name} ${value}: it must be a whole number`);
  const result = await shiftedBench(shape, only.split(',').map(Number), Number(rounds), Number(threads));
  return { result, report: report(result) };
}

async function shiftedBench(
  model: string,
  sizes: readonly number[],
  rounds: number,
  threads: number,
): Promise<ShiftedBench> {
  const cache = path.resolve('.cache/bench');
  const bench = await EngineUnderTest.open({
    modelDir: model === 'starter' ? 'model' : await shapeFolder(model as ShapeName, cache),
    cacheDir: path.join(cache, 'imported'),
    threads,
    seed: 1,
  });
  try {
    const blocks = sizes.filter((tokens) => tokens + LINE_TOKENS + QUESTION_TOKENS < bench.model.config.contextTokens);
    // The engine first learns the cost of steps in both lanes.
    for (let i = 0; i < 3; i++)
      await bench.finish(bench.add(bench.tokens(blocks[0]! + 100), 8, 'chat', false, [[0, blocks[0]!]]));
    const results: ShiftedCase[] = [];
    for (const blockTokens of blocks) {
      const ms: Record<'exact' | 'shifted', number[]> = { exact: [], shifted: [] };
      let shiftedTokens = 0;
      for (let round = 0; round < rounds; round++) {
        for (const way of round % 2 ? (['shifted', 'exact'] as const) : (['exact', 'shifted'] as const)) {
          bench.renew({ reuseShifted: way === 'shifted' });
          const before = bench.tokens(blockTokens);
          const known = bench.add(before, 0, 'idle', false, [[0, blockTokens]]);
          await bench.pretend(() => known.finished);
          const middle = blockTokens >> 1;
          const after = [...before.slice(0, middle), ...bench.tokens(LINE_TOKENS), ...before.slice(middle)];
          const asked = bench.add([...after, ...bench.tokens(QUESTION_TOKENS)], 1, 'chat', false, [[0, after.length]]);
          ms[way].push(await bench.finish(asked));
          if (way === 'shifted') shiftedTokens = asked.sequence.approximateTokens;
        }
      }
      results.push({ blockTokens, shiftedTokens, exactMs: figure(ms.exact), shiftedMs: figure(ms.shifted) });
    }
    return { model, threads: bench.threads, results };
  } finally {
    await bench.dispose();
  }
}

function report({ model, threads, results }: ShiftedBench): string {
  const rows = results.map(({ blockTokens, shiftedTokens, exactMs, shiftedMs }) => [
    blockTokens,
    shiftedTokens,
    withSpread(exactMs),
    withSpread(shiftedMs),
    `${(exactMs.median / shiftedMs.median).toFixed(1)}x`,
  ]);
  return `First token of a question after a line was put into the middle of a file, ms; ${model}, ${threads} threads\n\n${table(['tokens of the file', 'taken over', 'all computed', 'shifted reuse', 'sooner'], rows)}`;
}
