/**
 * What the suite `engine` measures: each case sets its context up and gives one sample per call, so that the suite can
 * alternate between them. Nothing here keeps or prints a result.
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
  /** What tells it from the others of its group. */
  key: Record<string, string | number>;
  /** Repeated less often. */
  long?: boolean;
  measure(): Promise<Sample>;
}

export interface Workload {
  contexts: readonly number[];
  /** At which a window grows by a page. */
  growthContexts: readonly number[];
  /** Chunks of a prompt: tokens before them, and tokens in them. */
  chunkContexts: readonly number[];
  chunks: readonly number[];
  /** Chunks in the window lane, in tiles of the window and at once. */
  tileContexts: readonly number[];
  tileChunks: readonly number[];
  sequenceContexts: readonly number[];
  sequenceCounts: readonly number[];
  prompts: readonly number[];
  /** Tokens of the file that the questions are about. */
  fileTokens: number;
  questionTokens: number;
  lineTokens: number;
  /** Of the answers that are dictated, and at most of their prompts. */
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

/** For tests: everything happens, nothing takes long. */
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
/** Tokens of a chunk times tokens before it, above which a chunk takes many seconds. */
const LONG_PRODUCT = 2e6;
/** An answer must not end while it is measured. */
const SPARE_TOKENS = 4;
/** Tokens that an engine computes before a whole prompt is measured, so that it knows what a step costs. */
const ACQUAINTANCE_TOKENS = 256;
/** Steps up to which a window has grown: it does so by 256 slots. */
const MAX_BEFORE_GROWTH = 300;
/** Tokens of the sequence before it, whose rows leave when it shrinks. */
const MIN_EARLIER = 1024;
/** One would be disturbed by whatever else the machine does. */
const TILE_STEPS = 3;
let tilesFirst = false;
/** Above any context: filling one is a single step. */
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

/** Bytes that JavaScript objects take, and their arrays outside the heap. */
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
  // The median of the steps, as single ones are disturbed, by a collection of garbage for one; the time outside the runner
  // as a mean, as it is small.
  return {
    ms: median(times),
    outsideMs: (total - (bench.runMs - before)) / steps,
    allocatedKb: median(allocated),
    logitsKb: bench.logitsBytes / 1000,
  };
}

/** One sequence, one token per step. */
async function decode(bench: EngineUnderTest, context: number, steps: number): Promise<Sample> {
  bench.renew({ tokenBudget: WHOLE_CONTEXT });
  const answer = bench.add(bench.tokens(context), WARM_UP_STEPS + steps + SPARE_TOKENS);
  await bench.pretend(() => answer.sequence.numGenerated > 0);
  return { ...(await timedSteps(bench, steps)), poolSlots: bench.poolSlots };
}

/**
 * One sequence whose rows outgrow the window, behind rows of an earlier one: the step in which it grows; then the ceiling falls to what
 * the sequence needs and some, so that the others' rows leave and its own move, and the step that waits for that. And those around them.
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

/** Several sequences, one token each per step. */
async function together(
  bench: EngineUnderTest,
  context: number,
  count: number,
  shared: boolean,
  steps: number,
): Promise<Sample> {
  bench.renew({ tokenBudget: WHOLE_CONTEXT });
  const prefix = bench.tokens(context - 1);
  // Prompts are read one after the other, and who is read first has written some tokens when the last one is.
  const answers = Array.from({ length: count }, (_, i) =>
    bench.add([...(shared ? prefix : bench.tokens(context - 1)), i], WARM_UP_STEPS + steps + SPARE_TOKENS + 2 * count),
  );
  await bench.pretend(() => answers.every(({ sequence }) => sequence.numGenerated > 0));
  const { ms, ...rest } = await timedSteps(bench, steps);
  if (answers.some(({ sequence }) => sequence.status !== 'running'))
    throw new Error(`one of ${count} sequences ended while they were measured`);
  return { stepMs: ms, ...rest, tokensPerSecond: (1000 * count) / ms, poolSlots: bench.poolSlots };
}

/** A chunk inside a prompt, with everything before it in place; the chunk before it warms up. */
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

/** Chunks in the window lane: in tiles where they have enough tokens for them, and at once, by turns which comes first. */
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

/** From the arrival of a prompt to its first token, as in use: the engine chooses its own steps. */
async function wholePrompt(bench: EngineUnderTest, tokens: number): Promise<Sample> {
  await acquaint(bench);
  const steps = bench.engine.stats().events.steps;
  const ms = await bench.finish(bench.add(bench.tokens(tokens), 1));
  return { ms, tokensPerSecond: (1000 * tokens) / ms, steps: bench.engine.stats().events.steps - steps };
}

/** Milliseconds to the first token of a question about a file; of a second one about the same; and of a third, after a line in the middle has changed. */
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
