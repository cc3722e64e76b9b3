/**
 * Suite `quality`: measures what the model does in the product on code that it was not trained on: rests, lines and
 * blocks to write, questions about a file, summaries. Uses the shipped engine (dist/worker.js), greedy decoding and the
 * product's prompts, and judges what would be shown.
 */
import { appendFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { ThreadTransport } from '../../../src/client/transport.ts';
import { type EngineOptions, layoutsOf, type PromptLayout, QualityEngine, withLayout } from './engine.ts';
import {
  type Cell,
  cellsOf,
  type QuestionFigures,
  questionFigures,
  type ScoredHole,
  type ScoredQuestion,
  type ScoredSummary,
  type SummaryFigures,
  summaryFigures,
} from './figures.ts';
import { qualityCharts, qualityReport } from './report.ts';
import { type Group, GROUPS, type Samples, samplesOf } from './samples.ts';
import { chrF, rougeL, scoreHole } from './scores.ts';
import { qualityTexts, SOURCES } from './sources.ts';
import { wordsOfName } from './summaries.ts';

export interface QualityArguments {
  n?: string;
  only?: string;
  model?: string;
  threads?: string;
  beside?: string;
}

export interface QualityOptions {
  /** Number per kind and language. */
  n: number;
  groups: readonly Group[];
  modelDir: string;
  /** Number of other open files of the same project. */
  beside: number;
  /** 0 lets the engine choose. */
  threads: number;
}

export interface QualityFigures {
  model: string;
  parameters: number;
  /** Time of one load of the model. Absent in runs before 2026-11-26. */
  loadMs?: number;
  threads: number;
  /** Number of other open files. There were none in runs before 2026-11-23. */
  beside?: number;
  n: number;
  seed: number;
  /** The product's layout for this model. */
  shipped: PromptLayout;
  sources: { name: string; version: string; licence: string }[];
  cells: Cell[];
  questions: QuestionFigures[];
  summaries: SummaryFigures[];
}

export interface QualityBench extends QualityFigures {
  /** Every item without its text, to compare two runs item by item. */
  items: { holes: ScoredHole[]; questions: ScoredQuestion[]; summaries: ScoredSummary[] };
}

const SEED = 1;
const N = 200;
const BESIDE = 100;
/** Questions and summaries that run at the same time. */
const TOGETHER = 6;
const PROJECT = path.resolve(import.meta.dirname, '../../..');

export async function qualitySuite(
  given: QualityArguments,
): Promise<{ result: QualityBench; report: string; charts: Record<string, string> }> {
  const options = qualityOptions(given);
  const worker = path.join(PROJECT, 'dist/worker.js');
  if (!existsSync(worker))
    throw new Error('dist/worker.js is missing: the suite runs the engine as it is shipped. Run npm run build first.');
  const cache = path.resolve('.cache/bench');
  const folder = path.join(cache, 'quality');
  const texts = qualityTexts(folder, (line) => console.error(line));
  const samples = await samplesOf(new Grammars(path.join(PROJECT, 'dist/grammars')), texts, { ...options, seed: SEED });
  const answers = path.join(folder, 'answers.jsonl');
  rmSync(answers, { force: true });
  const result = await qualityBench(samples, options, {
    cacheDir: path.join(cache, 'imported'),
    folder,
    createTransport: (t) => new ThreadTransport(worker, t, (text) => process.stderr.write(text)),
    onProgress: (line) => console.error(line),
    // For reading only. Do not keep this file: it quotes the projects.
    onAnswer: (answer) => appendFileSync(answers, `${JSON.stringify(answer)}\n`),
  });
  return { result, report: qualityReport(result), charts: qualityCharts(result) };
}

/** @throws Error with one sentence about an invalid value. */
export function qualityOptions({
  n = String(N),
  only = GROUPS.join(),
  model = path.join(PROJECT, 'model'),
  threads = '0',
  beside = String(BESIDE),
}: QualityArguments): QualityOptions {
  const groups = only.split(',').map((name) => name.trim() as Group);
  for (const name of groups)
    if (!GROUPS.includes(name)) throw new Error(`--only ${name}: it must be one of ${GROUPS.join(', ')}`);
  for (const [name, value] of [
    ['n', n],
    ['threads', threads],
    ['beside', beside],
  ] as const)
    if (!/^\d+$/.test(value)) throw new Error(`--${name} ${value}: it must be a whole number`);
  if (Number(n) === 0) throw new Error('--n 0: it must be above 0');
  if (!existsSync(path.join(model, 'config.json')))
    throw new Error(`--model ${model}: there is no config.json in it, so it is no model's folder`);
  return { n: Number(n), groups, modelDir: path.resolve(model), threads: Number(threads), beside: Number(beside) };
}

export interface Bench extends Pick<EngineOptions, 'createTransport' | 'cacheDir'> {
  /** Folder for files made from the model. */
  readonly folder: string;
  readonly onProgress: (line: string) => void;
  readonly onAnswer?: (answer: Record<string, unknown>) => void;
}

/** Asks everything in the shipped layout, then the holes again in the other layout. */
export async function qualityBench(
  samples: Samples,
  { n, modelDir, threads, beside }: QualityOptions,
  { folder, onProgress, onAnswer = () => {}, createTransport, cacheDir }: Bench,
): Promise<QualityBench> {
  const { shipped, other } = layoutsOf(modelDir);
  const items: QualityBench['items'] = { holes: [], questions: [], summaries: [] };
  const engineOf = (dir: string): Promise<QualityEngine> =>
    QualityEngine.open({ createTransport, modelDir: dir, cacheDir, threads });
  mkdirSync(folder, { recursive: true });
  const engine = await engineOf(modelDir);
  const { model } = engine;
  try {
    items.holes.push(...(await fill(engine, shipped, samples.holes, onProgress, onAnswer)));
    items.questions = await together(
      samples.questions,
      async ({ kind, source, path: file, language, text, file: content, answer, right }) => {
        const given = await engine.ask(file, content, text);
        onAnswer({ kind, file, question: text, answer, given });
        return { kind, source, path: file, language, right: right(given), exact: given.trim() === answer };
      },
    );
    onProgress(`${items.questions.length} questions`);
    items.summaries = await together(
      samples.summaries,
      async ({ name, source, path: file, language, text, start, end, reference }) => {
        const given = await engine.summarize(file, text, { start, end, label: name });
        onAnswer({ kind: 'summary', file, name, reference, given });
        return {
          name,
          source,
          path: file,
          language,
          rougeL: rougeL(given, reference),
          chrF: chrF(given, reference),
          nameRougeL: rougeL(wordsOfName(name), reference),
          nameChrF: chrF(wordsOfName(name), reference),
        };
      },
    );
    onProgress(`${items.summaries.length} summaries`);
  } finally {
    await engine.dispose();
  }
  if (other && samples.holes.length > 0) {
    const second = await engineOf(withLayout(modelDir, other, path.join(folder, `model-${other}`)));
    try {
      items.holes.push(...(await fill(second, other, samples.holes, onProgress, onAnswer)));
    } finally {
      await second.dispose();
    }
  }
  const sources = SOURCES.map(({ name, version, licence }) => ({ name, version, licence }));
  return {
    model: model.name,
    parameters: model.parameters,
    loadMs: Math.round(model.loadMs),
    threads: model.threads,
    beside,
    n,
    seed: SEED,
    shipped,
    sources,
    cells: cellsOf(items.holes, other ? [shipped, other] : [shipped]),
    questions: questionFigures(items.questions),
    summaries: summaryFigures(items.summaries),
    items,
  };
}

/**
 * Asks several items at a time. They share the engine's steps and get the same tokens as alone. Results are in the
 * items' order.
 */
async function together<T, R>(items: readonly T[], ask: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const asker = async (): Promise<void> => {
    for (let i = next++; i < items.length; i = next++) results[i] = await ask(items[i]!);
  };
  await Promise.all(Array.from({ length: TOGETHER }, asker));
  return results;
}

/** Asks one item after the other, because each is timed. */
async function fill(
  engine: QualityEngine,
  layout: PromptLayout,
  holes: Samples['holes'],
  onProgress: Bench['onProgress'],
  onAnswer: NonNullable<Bench['onAnswer']>,
): Promise<ScoredHole[]> {
  const scored: ScoredHole[] = [];
  for (const { kind, midWord, source, path: file, language, text, offset, taken, beside } of holes) {
    const { text: shown, firstMs } = await engine.complete(file, text, offset, beside);
    onAnswer({
      layout,
      kind,
      midWord,
      file,
      before: text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset),
      taken,
      shown,
    });
    scored.push({
      layout,
      kind,
      midWord,
      source,
      path: file,
      language,
      offset,
      numTaken: taken.length,
      numShown: shown.length,
      firstMs,
      ...scoreHole({ kind, taken }, shown),
    });
    if (scored.length % 200 === 0 || scored.length === holes.length)
      onProgress(`${layout}: ${scored.length} of ${holes.length} completions`);
  }
  return scored;
}
