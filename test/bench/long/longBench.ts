/**
 * Suite `long`: measures contexts longer than the pool. Compares answers of the built-in model with all rows, with rows
 * that sketches choose, and with the newest rows only. On a larger shape, measures memory, the first question, the next
 * one and a token.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { prefillRows, prefillTokensIn, scratchRows } from '../../../engine/model/batch.ts';
import { SpillFile } from '../../../engine/kv/disk/spillFile.ts';
import { sketchingBytes } from '../../../engine/kv/approx/sparse/sparseBudget.ts';
import { kvBytesPerToken } from '../../../engine/kv/kvRows.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import { type Exercise, type ExerciseOptions, exercisesOf } from '../eval/exercises.ts';
import { type AnswerCounts, answersOf } from '../eval/quality.ts';
import { Engine } from '../../../engine/core/engine.ts';
import { type ImportedModel, kvShape } from '../../../engine/model/load/importedModel.ts';
import { importModel } from '../../../engine/model/import/importModel.ts';
import type { Runner } from '../../../engine/model/batch.ts';
import { openRunner } from '../../../engine/model/calibrate/threadChoice.ts';
import { Sequence } from '../../../engine/sequence/sequence.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { below, seededRandom } from '../../support/engine/workload.ts';
import { heldoutFiles } from '../kv/heldout.ts';
import type { ShapeName } from '../shapes.ts';
import { shapeFolder } from '../writeShape.ts';
import { longReport } from './longReport.ts';

const STARTER = path.resolve(import.meta.dirname, '../../../model');
const GRAMMARS = path.resolve(import.meta.dirname, '../../../dist/grammars');
const EXERCISES: ExerciseOptions = {
  contextTokens: 1024,
  scoredTokens: 127,
  numTexts: 0,
  holes: 0,
  questions: 4,
  distances: [256, 512, 768, 1024, 1536],
  needles: 8,
  seed: 1,
};
/**
 * Slots of the pool that the memory budget allows for contexts of the built-in model. All contexts are longer than the
 * larger number. The longest ones need about 1,480 slots to be answered (see docs/long-contexts.md).
 */
const STARTER_SLOTS = [1800, 1480] as const;
const [MAX_SLOTS] = STARTER_SLOTS;
/** More slots than any context with its answer needs. */
const WHOLE_SLOTS = 4352;
const SPILL_BYTES = 4e9;
/** Length of the larger shape's context, as a multiple of WINDOW_SLOTS. */
const TIMES = 3;
const WINDOW_SLOTS = 4096;
const QUESTION_TOKENS = 24;
const ANSWER_TOKENS = 64;

export type Choosing = 'whole' | 'sketch' | 'newest';

export interface LongAnswers {
  choosing: Choosing;
  /**
   * Slots that the memory budget allows. Null with all rows in the pool, where each context gets as many as it needs.
   */
  slots: number | null;
  answers: AnswerCounts[];
}

export interface LongCost {
  choosing: Choosing;
  contextTokens: number;
  maxBytes: number;
  /** Most bytes that pool, store and scratch took together. */
  peakBytes: number;
  spilledBytes: number;
  /**
   * Milliseconds to the first token of a question about unread text, to that of the next question, and per token after
   * it.
   */
  firstMs: number;
  nextMs: number;
  tokenMs: number;
}

export interface LongBench {
  contexts: number;
  /** Mean tokens of all contexts, and of those with needles. */
  contextTokens: number;
  needleTokens: number;
  answers: LongAnswers[];
  shape: string;
  costs: LongCost[];
}

interface Asked {
  readonly ids: number[];
  readonly done: Promise<void>;
  firstAt: number;
}

interface Question {
  readonly promptIds: readonly number[];
  readonly blockTokens: number;
  readonly maxTokens: number;
  readonly eosIds: Iterable<number>;
}

function ask(engine: Engine, id: string, { promptIds, blockTokens, maxTokens, eosIds }: Question): Asked {
  let end: (error?: Error) => void;
  const done = new Promise<void>((resolve, reject) => (end = (error) => (error ? reject(error) : resolve())));
  const asked: Asked = { ids: [], done, firstAt: Number.NaN };
  const onToken = ({ tokenId }: { tokenId: number }): void => {
    if (asked.ids.push(tokenId) === 1) asked.firstAt = performance.now();
  };
  engine.add(
    new Sequence({
      id,
      priority: 'chat',
      promptIds,
      prefill: [[0, blockTokens]],
      sampling: { maxTokens },
      eosIds,
      detokenizer: { push: () => '', flush: () => '' },
      draftSources: null,
      onToken,
      onFinish: () => end(),
      onError: (error) => end(error),
    }),
  );
  return asked;
}

async function drain(engine: Engine, afterStep: () => void = () => {}): Promise<void> {
  while (engine.hasWork()) {
    await engine.step();
    afterStep();
  }
}

interface Subject {
  readonly model: ImportedModel;
  readonly runner: Runner;
}

async function load(modelDir: string, cacheDir: string, threads: number): Promise<Subject> {
  const model = await importModel({ modelDir, cacheDir, precision: 'int8' });
  return {
    model,
    runner: await openRunner(model, new KvPool(kvShape(model.config, 'int8', model.biased), 0), { threads }),
  };
}

/** Opens an engine whose memory budget holds `slots` slots in the pool, and scratch memory in addition. */
function engineOf(
  { model, runner }: Subject,
  slots: number,
  choosing: Choosing,
  spillFile: SpillFile,
): { engine: Engine; maxBytes: number } {
  const maxBytes = slots * kvBytesPerToken(runner.pool.shape);
  // Scratch memory is added to the budget, so that `maxBytes` counts rows only.
  const prefillTokens = prefillTokensIn(prefillRows(choosing === 'whole' ? slots : Math.ceil(slots / 2)));
  const scratch = scratchRows(prefillTokens) * runner.prefillBytesPerToken;
  return {
    maxBytes,
    engine: new Engine({
      runner,
      pool: runner.pool,
      maxBytes: maxBytes + scratch + sketchingBytes(runner.pool.shape),
      prefillTokens,
      prefillBytesPerToken: runner.prefillBytesPerToken,
      maxContext: model.config.contextTokens,
      spillFile: choosing === 'whole' ? null : spillFile,
      ranks: choosing === 'sketch',
    }),
  };
}

async function answers(
  subject: Subject,
  text: ModelText,
  exercises: readonly Exercise[],
  { choosing, slots }: Pick<LongAnswers, 'choosing' | 'slots'>,
  folder: string,
  expected: string[],
): Promise<AnswerCounts[]> {
  const spillFile = new SpillFile(folder, SPILL_BYTES, (line) => console.error(line));
  const { engine } = engineOf(subject, slots ?? WHOLE_SLOTS, choosing, spillFile);
  const { vocabSize } = subject.model.config;
  const counts = new Map<string, AnswerCounts>();
  let i = 0;
  for (const { kind, contextIds, prompts } of exercises) {
    for (const { tail, group, judge } of prompts) {
      const ends = Array.from({ length: vocabSize }, (_, id) => id).filter((id) => tail.ends(id));
      const asked = ask(engine, `q${i}`, {
        promptIds: [...contextIds, ...tail.ids],
        blockTokens: contextIds.length,
        maxTokens: tail.maxTokens,
        eosIds: ends,
      });
      await drain(engine);
      await asked.done;
      const last = asked.ids.at(-1)!;
      const answer = text.tokenizer.decode(tail.ends(last) ? asked.ids.slice(0, -1) : asked.ids);
      const key = `${kind} ${group}`;
      const count = counts.get(key) ?? { kind, group, n: 0, exact: 0, right: 0, same: 0 };
      counts.set(key, count);
      expected[i] ??= answer;
      const { exact, right } = judge(answer);
      count.n++;
      count.exact += Number(exact);
      count.right += Number(right);
      count.same += Number(answer === expected[i]);
      i++;
    }
    engine.blocks.evict();
  }
  engine.setMaxBytes(0);
  spillFile.close();
  return [...counts.values()];
}

async function cost(subject: Subject, choosing: Choosing, folder: string): Promise<LongCost> {
  const spillFile = new SpillFile(folder, SPILL_BYTES, (line) => console.error(line));
  const contextTokens = TIMES * WINDOW_SLOTS;
  const { engine, maxBytes } = engineOf(
    subject,
    choosing === 'whole' ? contextTokens + 1024 : WINDOW_SLOTS,
    choosing,
    spillFile,
  );
  const random = seededRandom(5);
  const ids = (n: number): number[] => Array.from({ length: n }, () => below(random, subject.runner.vocabSize));
  const block = ids(contextTokens);
  let peakBytes = 0;
  const question = async (id: string): Promise<{ firstMs: number; tokenMs: number }> => {
    const start = performance.now();
    const asked = ask(engine, id, {
      promptIds: [...block, ...ids(QUESTION_TOKENS)],
      blockTokens: block.length,
      maxTokens: ANSWER_TOKENS,
      eosIds: [],
    });
    await drain(engine, () => (peakBytes = Math.max(peakBytes, engine.cacheBytes)));
    await asked.done;
    return { firstMs: asked.firstAt - start, tokenMs: (performance.now() - asked.firstAt) / (ANSWER_TOKENS - 1) };
  };
  const { firstMs } = await question('first');
  const next = await question('next');
  const result = {
    choosing,
    contextTokens,
    maxBytes,
    peakBytes,
    spilledBytes: spillFile.bytes,
    firstMs,
    nextMs: next.firstMs,
    tokenMs: next.tokenMs,
  };
  engine.blocks.evict();
  engine.setMaxBytes(0);
  spillFile.close();
  return result;
}

export async function longSuite({
  shape = 'qwen2.5-0.5b',
  threads,
  only = 'answers,cost',
}: {
  shape?: string;
  threads?: string;
  only?: string;
}): Promise<{ result: LongBench; report: string }> {
  const cache = path.resolve('.cache/bench');
  const imported = path.join(cache, 'imported');
  const folder = await mkdtemp(path.join(cache, 'long-'));
  const result: LongBench = { contexts: 0, contextTokens: 0, needleTokens: 0, answers: [], shape, costs: [] };
  try {
    if (only.includes('answers')) {
      const subject = await load(STARTER, imported, Number(threads ?? 0));
      const text = await ModelText.load(STARTER);
      const layout = new Layout(text, {
        contextTokens: subject.model.config.contextTokens,
        numParameters: subject.model.parameters,
      });
      const exercises = (await exercisesOf(layout, new Grammars(GRAMMARS), heldoutFiles(), EXERCISES)).filter(
        ({ contextIds }) => contextIds.length > MAX_SLOTS,
      );
      result.contexts = exercises.length;
      const meanTokens = (of: readonly Exercise[]): number =>
        Math.round(of.reduce((sum, { contextIds }) => sum + contextIds.length, 0) / of.length);
      result.contextTokens = meanTokens(exercises);
      result.needleTokens = meanTokens(exercises.filter(({ kind }) => kind === 'needle'));
      const expected: string[] = [];
      const ways = [
        { choosing: 'whole' as const, slots: null },
        ...STARTER_SLOTS.flatMap((slots) => (['sketch', 'newest'] as const).map((choosing) => ({ choosing, slots }))),
      ];
      for (const way of ways) {
        result.answers.push({ ...way, answers: await answers(subject, text, exercises, way, folder, expected) });
        const [question, needle] = (['question', 'needle'] as const).map((kind) =>
          answersOf(result.answers.at(-1)!.answers, kind),
        );
        console.error(
          `${way.choosing}, ${way.slots ?? 'all'}: questions ${question?.right} of ${question?.n} (${question?.same} the same), needles ${needle?.right} of ${needle?.n} (${needle?.same})`,
        );
      }
      await subject.runner.dispose();
    }
    if (only.includes('cost')) {
      const subject = await load(await shapeFolder(shape as ShapeName, cache), imported, Number(threads ?? 0));
      for (const choosing of ['sketch', 'newest', 'whole'] as const) {
        result.costs.push(await cost(subject, choosing, folder));
        console.error(JSON.stringify(result.costs.at(-1)));
      }
      await subject.runner.dispose();
    }
    return { result, report: longReport(result) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
