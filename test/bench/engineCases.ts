/**
 * Defines what the suite `engine` measures. Each case sets up its own context and gives one sample per call, so that
 * the suite can alternate between cases. Does not keep or print results.
 */
import { getHeapStatistics } from 'node:v8';
import type { EngineUnderTest, Watched } from './engineUnderTest.ts';
import { median } from './spread.ts';

export const GROUPS = [
  'bandwidth',
  'decode',
  'growth',
  'prefill',
  'tiles',
  'sequences',
  'whole',
  'questions',
  'sampling',
  'speculation',
] as const;
export type Group = (typeof GROUPS)[number];

/** Named numbers of one repetition. */
export type Sample = Record<string, number>;

export interface Case {
  group: Group;
  /** Distinguishes the case from others of its group. */
  key: Record<string, string | number>;
  /** Whether the case is repeated less often. */
  long?: boolean;
  measure(): Promise<Sample>;
}

export interface Workload {
  contexts: readonly number[];
  /** Contexts at which a window grows by a page. */
  growthContexts: readonly number[];
  /** Chunks of a prompt: number of tokens before them, and number of tokens in them. */
  chunkContexts: readonly number[];
  chunks: readonly number[];
  /** Chunks in the window lane. Each is computed in tiles of the window and all at once. */
  tileContexts: readonly number[];
  tileChunks: readonly number[];
  sequenceContexts: readonly number[];
  sequenceCounts: readonly number[];
  prompts: readonly number[];
  /** Number of tokens in the file that the questions are about. */
  fileTokens: number;
  questionTokens: number;
  lineTokens: number;
  /** Largest number of tokens in the prompt of a dictated answer, and number of tokens in the answer. */
  dictatedPrompt: number;
  dictatedAnswer: number;
  decodeSteps: number;
}

export const WORKLOAD: Workload = {
  contexts: [512, 2048, 8192],
  growthContexts: [512, 8192],
  chunkContexts: [0, 2048, 7680],
  chunks: [32, 128, 512],
  tileContexts: [2048, 7680],
  tileChunks: [16, 32, 64],
  sequenceContexts: [512, 2048],
  sequenceCounts: [1, 2, 4, 8],
  prompts: [512, 2048, 8192],
  fileTokens: 8192,
  questionTokens: 32,
  lineTokens: 12,
  dictatedPrompt: 1024,
  dictatedAnswer: 160,
  decodeSteps: 16,
};

/** Workload for tests: it covers every case and is fast. */
export const TINY_WORKLOAD: Workload = {
  contexts: [32, 96],
  growthContexts: [256],
  chunkContexts: [0, 64],
  chunks: [16, 32],
  tileContexts: [64],
  tileChunks: [16],
  sequenceContexts: [32],
  sequenceCounts: [1, 2],
  prompts: [32, 96],
  fileTokens: 96,
  questionTokens: 8,
  lineTokens: 4,
  dictatedPrompt: 96,
  dictatedAnswer: 32,
  decodeSteps: 4,
};

const WARM_UP_STEPS = 3;
/** Limit for the product of a chunk's tokens and the tokens before it. Above this limit a chunk takes many seconds. */
const LONG_PRODUCT = 2e6;
/** Extra tokens, so that an answer does not end during its measurement. */
const SPARE_TOKENS = 4;
/**
 * Number of tokens that an engine computes before a whole prompt is measured. The engine learns the cost of a step from
 * them.
 */
const ACQUAINTANCE_TOKENS = 256;
/** Most steps until a window has grown. It grows by 256 slots. */
const MAX_BEFORE_GROWTH = 300;
/** Fewest tokens of the earlier sequence. Its rows leave when the window shrinks. */
const MIN_EARLIER = 1024;
/** Number of steps to take the median of. A single step could be disturbed by other work on the machine. */
const TILE_STEPS = 3;
let tilesFirst = false;
/** Larger than any context, so that one step fills a context. */
const WHOLE_CONTEXT = 1 << 16;

export function engineCases(bench: EngineUnderTest, workload: Workload): Case[] {
  const {
    contexts,
    growthContexts,
    chunkContexts,
    chunks,
    tileContexts,
    tileChunks,
    sequenceContexts,
    sequenceCounts,
    prompts,
  } = workload;
  return [
    ...contexts.map(
      (context): Case => ({
        group: 'decode',
        key: { context },
        measure: () => decode(bench, context, workload.decodeSteps),
      }),
    ),
    ...growthContexts.map(
      (context): Case => ({ group: 'growth', key: { context }, measure: () => resizing(bench, context) }),
    ),
    ...chunkContexts.flatMap((context) =>
      chunks.map(
        (chunk): Case => ({
          group: 'prefill',
          key: { context, chunk },
          long: context * chunk > LONG_PRODUCT,
          measure: () => prefillChunk(bench, context, chunk),
        }),
      ),
    ),
    ...tileContexts.flatMap((context) =>
      tileChunks.map(
        (chunk): Case => ({ group: 'tiles', key: { context, chunk }, measure: () => tiles(bench, context, chunk) }),
      ),
    ),
    ...sequenceContexts.flatMap((context) =>
      sequenceCounts.flatMap((count) =>
        (['shared', 'separate'] as const)
          .filter((prefix) => count > 1 || prefix === 'separate')
          .map(
            (prefix): Case => ({
              group: 'sequences',
              key: { context, prefix, count },
              measure: () => together(bench, context, count, prefix === 'shared', workload.decodeSteps),
            }),
          ),
      ),
    ),
    ...prompts.map(
      (tokens): Case => ({
        group: 'whole',
        key: { tokens },
        long: tokens > 1024,
        measure: () => wholePrompt(bench, tokens),
      }),
    ),
    { group: 'questions', key: { tokens: workload.fileTokens }, long: true, measure: () => questions(bench, workload) },
  ];
}

/** Bytes of JavaScript objects and of their arrays outside the heap. */
function allocatedBytes(): number {
  const { used_heap_size: heap, external_memory: outside } = getHeapStatistics();
  return heap + outside;
}

async function timedSteps(
  bench: EngineUnderTest,
  steps: number,
): Promise<{ ms: number; outsideMs: number; allocatedKb: number; logitsKb: number }> {
  for (let i = 0; i < WARM_UP_STEPS; i++) await bench.step();
  const times: number[] = [];
  const allocated: number[] = [];
  const before = bench.runMs;
  for (let i = 0; i < steps; i++) {
    const bytes = allocatedBytes();
    times.push(await bench.step());
    allocated.push((allocatedBytes() - bytes) / 1000);
  }
  const total = times.reduce((a, b) => a + b, 0);
  // Times are medians, because events such as a garbage collection disturb single steps. The time outside the runner is
  // a mean, because it is small.
  return {
    ms: median(times),
    outsideMs: (total - (bench.runMs - before)) / steps,
    allocatedKb: median(allocated),
    logitsKb: bench.logitsBytes / 1000,
  };
}

/** Decodes one sequence, one token per step. */
async function decode(bench: EngineUnderTest, context: number, steps: number): Promise<Sample> {
  bench.renew({ tokenBudget: WHOLE_CONTEXT });
  const answer = bench.add(bench.tokens(context), WARM_UP_STEPS + steps + SPARE_TOKENS);
  await bench.pretend(() => answer.sequence.numGenerated > 0);
  return { ...(await timedSteps(bench, steps)), poolSlots: bench.poolSlots };
}

/**
 * Measures growth and shrinking of the window. One sequence has its rows behind those of an earlier sequence and
 * outgrows the window. The step in which the window grows is timed. Then the memory budget falls to slightly more than
 * the sequence needs. The rows of the earlier sequence leave, and the sequence's own rows move. The step that waits for
 * this is timed, and so are the steps around both.
 */
async function resizing(bench: EngineUnderTest, context: number): Promise<Sample> {
  bench.renew({ tokenBudget: WHOLE_CONTEXT });
  const earlier = bench.add(bench.tokens(Math.max(MIN_EARLIER, context / 2)), 1);
  await bench.pretend(() => earlier.finished);
  const answer = bench.add(bench.tokens(context - MAX_BEFORE_GROWTH / 4), 2 * MAX_BEFORE_GROWTH);
  await bench.pretend(() => answer.sequence.numGenerated > 0);
  for (let i = 0; i < WARM_UP_STEPS; i++) await bench.step();
  const times: number[] = [];
  let growthMs = Number.NaN;
  for (let after = 0; after < WARM_UP_STEPS && times.length < MAX_BEFORE_GROWTH; ) {
    const { poolSlots } = bench;
    const ms = await bench.step();
    if (bench.poolSlots > poolSlots && Number.isNaN(growthMs)) growthMs = ms;
    else times.push(ms);
    if (!Number.isNaN(growthMs)) after++;
  }
  const { poolSlots } = bench;
  const start = performance.now();
  bench.engine.setMaxBytes(bench.ceilingWith(answer.sequence.numReached + MAX_BEFORE_GROWTH));
  await bench.step();
  const shrinkMs = performance.now() - start;
  return { ms: median(times), growthMs, shrinkMs, poolSlots, slotsAfter: bench.poolSlots };
}

/** Decodes several sequences together, one token each per step. */
async function together(
  bench: EngineUnderTest,
  context: number,
  count: number,
  shared: boolean,
  steps: number,
): Promise<Sample> {
  bench.renew({ tokenBudget: WHOLE_CONTEXT });
  const prefix = bench.tokens(context - 1);
  // Prompts are read one after another. The first sequence has written some tokens before the last prompt is read.
  const answers = Array.from({ length: count }, (_, i) =>
    bench.add([...(shared ? prefix : bench.tokens(context - 1)), i], WARM_UP_STEPS + steps + SPARE_TOKENS + 2 * count),
  );
  await bench.pretend(() => answers.every(({ sequence }) => sequence.numGenerated > 0));
  const { ms, ...rest } = await timedSteps(bench, steps);
  if (answers.some(({ sequence }) => sequence.status !== 'running'))
    throw new Error(`one of ${count} sequences ended while they were measured`);
  return { stepMs: ms, ...rest, tokensPerSecond: (1000 * count) / ms, poolSlots: bench.poolSlots };
}

/** Measures a chunk inside a prompt. All earlier rows exist. The chunk before it is the warm-up. */
async function prefillChunk(bench: EngineUnderTest, context: number, chunk: number): Promise<Sample> {
  bench.renew({ tokenBudget: chunk });
  const prompt = (length: number): Watched => bench.add(bench.tokens(length), 0, 'chat', false, [[0, length]]);
  if (context === 0) {
    await bench.finish(prompt(chunk));
    bench.renew({ tokenBudget: chunk });
  }
  const { sequence } = prompt(context + chunk);
  await bench.pretend(() => sequence.numReached >= context - chunk);
  while (sequence.numReached < context) await bench.step();
  const ms = await bench.step();
  return { ms, tokensPerSecond: (1000 * chunk) / ms, poolSlots: bench.poolSlots };
}

/**
 * Measures chunks in the window lane, in tiles if they have enough tokens, and all at once. Each way comes first every
 * second time.
 */
async function tiles(bench: EngineUnderTest, context: number, chunk: number): Promise<Sample> {
  const sample: Sample = { tiled: 0 };
  tilesFirst = !tilesFirst;
  for (const mayTile of [tilesFirst, !tilesFirst]) {
    bench.mayTile = mayTile;
    try {
      bench.renew({ tokenBudget: chunk });
      const { sequence } = bench.add(bench.tokens(context + TILE_STEPS * chunk), 0, 'chat', false, []);
      await bench.pretend(() => sequence.numReached >= context - chunk);
      while (sequence.numReached < context) await bench.step();
      const times: number[] = [];
      for (let i = 0; i < TILE_STEPS; i++) times.push(await bench.step());
      sample[mayTile ? 'ms' : 'atOnceMs'] = median(times);
      if (bench.tiled) sample.tiled = 1;
    } finally {
      bench.mayTile = true;
    }
  }
  return { ...sample, gain: sample.atOnceMs! / sample.ms!, poolSlots: bench.poolSlots };
}

/**
 * Measures the time from the arrival of a prompt to its first token. The engine chooses its own steps, as in real use.
 */
async function wholePrompt(bench: EngineUnderTest, tokens: number): Promise<Sample> {
  await acquaint(bench);
  const steps = bench.engine.stats().events.steps;
  const ms = await bench.finish(bench.add(bench.tokens(tokens), 1));
  return { ms, tokensPerSecond: (1000 * tokens) / ms, steps: bench.engine.stats().events.steps - steps };
}

/**
 * Milliseconds to the first token of three questions: the first about a file, the second about the same file, and the
 * third after a line in the middle of the file has changed.
 */
async function questions(
  bench: EngineUnderTest,
  { fileTokens, questionTokens, lineTokens }: Workload,
): Promise<Sample> {
  await acquaint(bench);
  const file = bench.tokens(fileTokens);
  const ask = (text: number[]): Promise<number> =>
    bench.finish(bench.add([...text, ...bench.tokens(questionTokens)], 1));
  const first = await ask(file);
  const second = await ask(file);
  const middle = fileTokens >> 1;
  const edited = [...file.slice(0, middle), ...bench.tokens(lineTokens + 1), ...file.slice(middle + lineTokens)];
  return { first, second, edited: await ask(edited) };
}

async function acquaint(bench: EngineUnderTest): Promise<void> {
  bench.renew();
  await bench.finish(bench.add(bench.tokens(Math.min(ACQUAINTANCE_TOKENS, bench.model.config.contextTokens - 1)), 0));
  bench.engine.blocks.evict();
}
