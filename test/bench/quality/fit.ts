/**
 * Fits the manifest's copying and confidence values (model/kvasir.json) to a model, on projects that are not measured
 * and not trained on. Run `npm run build` first, then:
 * `npx node test/bench/quality/fit.ts MODEL [--n 150] [--line 0.05,0.1] [--words 0.45] [--lines 0.3,0.4]`
 */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { KvSubject } from '../eval/subject.ts';
import { prepareComplete } from '../../../engine/tasks/completeTask.ts';
import { reservedForAnswer } from '../../../engine/tasks/preparedRequest.ts';
import { completionPrompt } from '../../../engine/text/prompt/completionPrompt.ts';
import type { CopyPrior, CopyWeights } from '../../../engine/text/copy/copyPrior.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import type { Manifest } from '../../../engine/text/format/manifest.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { ThreadTransport } from '../../../src/client/transport.ts';
import { table } from '../spread.ts';
import { type CopyCase, copyLoss, fitCopy } from './copyFit.ts';
import { manifestOf, QualityEngine, withCompletion } from './engine.ts';
import { samplesOf } from './samples.ts';
import { mean, scoreHole } from './scores.ts';
import { FITTED_ON, qualityTexts } from './sources.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    n: { type: 'string', default: '150' },
    line: { type: 'string', default: '0.05,0.1' },
    words: { type: 'string', default: '0.45' },
    lines: { type: 'string', default: '0.3,0.4' },
  },
});
const modelDir = path.resolve(positionals[0] ?? 'model');
const folder = path.resolve('.cache/bench/quality');
const cacheDir = path.resolve('.cache/bench/imported');
/** Limit of the tokens per line that are looked at. */
const MAX_TOKENS = 24;

const texts = qualityTexts(folder, (line) => console.error(line), FITTED_ON);
const { holes } = await samplesOf(new Grammars(path.resolve('dist/grammars')), texts, {
  n: Number(values.n),
  groups: ['rest', 'line', 'block'],
  seed: 2,
  beside: 100,
});
const before = manifestOf(modelDir).completion?.copy;
if (!before)
  throw new Error(`${modelDir}: its kvasir.json says nothing of copying, so there is nothing to begin from.`);

const cases = await copyCases();
const copying = cases.filter(({ longest }) => longest > 0);
const others = cases.filter(({ longest }) => longest === 0);
const fitted = fitCopy(copying, before);
const copy: CopyWeights = { share: 1, others: before.others, ...rounded(fitted) };
console.log(
  `${cases.length} tokens at ${holes.length} cursors, ${copying.length} with something to copy. Nats a token: ${loss(null)} without, ${loss(before)} with the manifest's weights, ${loss(copy)} with ${JSON.stringify(copy)}`,
);

const limits = (given: string): number[] => given.split(',').map(Number);
const rows: string[][] = [];
for (const line of limits(values.line))
  for (const words of limits(values.words))
    for (const lines of limits(values.lines))
      rows.push([String(line), String(words), String(lines), ...(await written({ line, words, lines }))]);
const COLUMNS = ['exact', 'shown', 'exact of shown', 'whole of shown', 'first word of shown', 'kept per shown'];
console.log(
  table(
    [
      'line',
      'words',
      'lines',
      ...['rests', 'lines', 'blocks', 'all'].flatMap((kind) => COLUMNS.map((column) => `${kind}: ${column}`)),
    ],
    rows,
  ),
);

/**
 * Cases to fit the weights of copying to, with the model's int8 probabilities. Has one case per token that was at a
 * cursor. Leaves out tokens that token healing repeats.
 */
async function copyCases(): Promise<CopyCase[]> {
  const subject = await KvSubject.open('fitted', modelDir, cacheDir, 0, []);
  const text = await ModelText.load(modelDir);
  // With these values a weight tells the length n of the longest match: n / (n + 1).
  Object.assign(text.manifest.completion.copy, { share: 1, doubt: 0, match: 1, agreement: 0, confidence: 0 });
  const layout = new Layout(text, {
    contextTokens: subject.model.config.contextTokens,
    numParameters: subject.model.parameters,
  });
  const cases: CopyCase[] = [];
  try {
    for (const [i, { path: file, text: content, offset, taken, beside }] of holes
      .filter(({ kind }) => kind !== 'block')
      .entries()) {
      const copySources = beside.map((other) => new SourceDocument(other.path, other.path, other.text));
      const document = new SourceDocument(file, file, content);
      const { promptIds, prior, sampling } = prepareComplete(layout, document, {
        offset,
        copySources,
        showLowConfidence: true,
      });
      const { opening } = completionPrompt(layout, document, offset, {
        answerTokens: reservedForAnswer(sampling.maxTokens, layout.contextTokens),
      });
      const { ids: said, ends } = text.tokenizer.encodeWithOffsets(opening + taken);
      const ids = said.slice(0, MAX_TOKENS);
      const copies = prior!();
      const context = await subject.compute(promptIds.slice(0, -1));
      const follows = await subject.follow(context, context.slots, [promptIds.at(-1)!, ...ids.slice(0, -1)]);
      let answered = '';
      for (const [k, id] of ids.entries()) {
        const next = copies.next();
        // Before the end of the opening only some tokens are allowed.
        if ((ends[k - 1] ?? 0) >= opening.length) cases.push(caseOf(follows[k]!, next, id));
        answered += text.tokenizer.decode([id]);
        copies.push(id, answered);
      }
      if ((i + 1) % 200 === 0) console.error(`${i + 1} of ${holes.length} cursors`);
    }
  } finally {
    await subject.dispose();
  }
  return cases;
}

function caseOf(logprobs: Float64Array, next: ReturnType<CopyPrior['next']>, id: number): CopyCase {
  const model = Math.exp(logprobs[id]!);
  const likeliest = Math.exp(logprobs.reduce((most, one) => Math.max(most, one), -Infinity));
  if (!next) return { model, likeliest, copied: 0, agreement: 0, longest: 0 };
  const weight = next.weight(0);
  const at = next.tokenIds.indexOf(id);
  return {
    model,
    likeliest,
    copied: at < 0 ? 0 : next.shares[at]!,
    agreement: next.shares[0]!,
    longest: Math.round(weight / (1 - weight)),
  };
}

function loss(weights: CopyWeights | null): string {
  const alone = (some: readonly CopyCase[]): number => some.reduce((sum, { model }) => sum - Math.log(model), 0);
  return (
    (alone(others) + (weights ? copying.length * copyLoss(copying, weights) : alone(copying))) /
    cases.length
  ).toFixed(3);
}

function rounded<T extends object>(weights: T): T {
  return Object.fromEntries(
    Object.entries(weights)
      .filter(([name]) => name !== 'share' && name !== 'others')
      .map(([name, value]) => [name, Number((value as number).toFixed(2))]),
  ) as T;
}

/**
 * Completes rests, lines and blocks through the shipped engine with the fitted weights and these confidence limits.
 * Returns a table row.
 */
async function written(confidence: Manifest['completion']['confidence']): Promise<string[]> {
  const dir = withCompletion(modelDir, { copy, confidence }, path.join(folder, 'model-fitted'));
  const engine = await QualityEngine.open({
    createTransport: (t) =>
      new ThreadTransport(path.resolve('dist/worker.js'), t, (text) => process.stderr.write(text)),
    modelDir: dir,
    cacheDir,
    threads: 0,
  });
  try {
    const scored: ({ kind: string } & ReturnType<typeof scoreHole>)[] = [];
    for (const hole of holes)
      scored.push({
        kind: hole.kind,
        ...scoreHole(hole, (await engine.complete(hole.path, hole.text, hole.offset, hole.beside)).text),
      });
    return (['rest', 'line', 'block', 'all'] as const).flatMap((wanted) =>
      shares(scored.filter(({ kind }) => wanted === 'all' || kind === wanted)),
    );
  } finally {
    await engine.dispose();
  }
}

function shares(scored: readonly ReturnType<typeof scoreHole>[]): string[] {
  const shown = scored.filter((one) => one.shown);
  const percent = (some: readonly boolean[]): string => `${(100 * mean(some.map(Number))).toFixed(1)}%`;
  return [
    percent(scored.map(({ exact }) => exact)),
    percent(scored.map((one) => one.shown)),
    percent(shown.map(({ exact }) => exact)),
    percent(shown.map(({ whole }) => whole)),
    percent(shown.map(({ firstWord }) => firstWord)),
    mean(shown.map(({ kept }) => kept)).toFixed(1),
  ];
}
