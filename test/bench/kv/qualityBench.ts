/**
 * Part `quality`: measures every treatment of a context on three kinds of models: the built-in model over held-out code
 * with lines, questions and needles; the shape of Qwen2.5-0.5B with large key biases; the fixtures. The last two have
 * random weights, so only the change of their distributions means something. They have no right answers.
 */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { type ExerciseOptions, exercisesOf, textExercises } from '../eval/exercises.ts';
import { measureQuality, type QualityResult } from '../eval/quality.ts';
import { KvSubject } from '../eval/subject.ts';
import { TREATMENTS } from '../eval/treatments.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { below, seededRandom } from '../../support/engine/workload.ts';
import { SHAPES, type ShapeName } from '../shapes.ts';
import { biasedShapeFolder } from './biasedShape.ts';
import { heldoutFiles } from './heldout.ts';
import { measurePool, type WindowCost } from './windowCost.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const STARTER = path.join(ROOT, 'model');
const FIXTURES = path.join(ROOT, 'test/fixtures/models');
const GRAMMARS = path.join(ROOT, 'dist/grammars');

export interface QualityBench {
  starter: QualityResult;
  /** The shape with large key biases. */
  shape: QualityResult;
  fixtures: QualityResult[];
}

/** Exercises of the built-in model. */
export const STARTER_OPTIONS: ExerciseOptions = {
  contextTokens: 1024,
  scoredTokens: 127,
  numTexts: 32,
  holes: 2,
  questions: 4,
  distances: [256, 512, 768, 1024, 1536, 1900],
  needles: 8,
  seed: 1,
};
const SHAPE_OPTIONS = { contextTokens: 512, scoredTokens: 63, numTexts: 4 };
/** Contexts long enough to be pruned. */
const FIXTURE_OPTIONS = { contextTokens: 384, scoredTokens: 127, numTexts: 4 };
/** Tokens of each text in part `window`. */
const WINDOW_TOKENS = 512;

export interface QualityArguments {
  /** Folder for written shapes and imported models. */
  cache: string;
  shape: ShapeName;
  threads: number;
  starter: ExerciseOptions;
  log: (line: string) => void;
}

export async function qualityBench({ cache, shape, threads, starter, log }: QualityArguments): Promise<QualityBench> {
  const imported = path.join(cache, 'imported');
  const over = async <T>(name: string, dir: string, work: (subject: KvSubject) => Promise<T>): Promise<T> => {
    const subject = await KvSubject.open(name, dir, imported, threads);
    try {
      return await work(subject);
    } finally {
      await subject.dispose();
    }
  };
  const random = (name: string, dir: string, options: typeof SHAPE_OPTIONS): Promise<QualityResult> =>
    over(name, dir, (subject) =>
      measureQuality(subject, textExercises(randomTexts(subject.runner.vocabSize, options), options), TREATMENTS, {
        onProgress: log,
      }),
    );

  const files = heldoutFiles();
  const text = await ModelText.load(STARTER);
  const quality = await over('starter', STARTER, async (subject) => {
    const layout = new Layout(text, {
      contextTokens: subject.model.config.contextTokens,
      numParameters: subject.model.parameters,
    });
    const exercises = await exercisesOf(layout, new Grammars(GRAMMARS), files, starter);
    return measureQuality(subject, exercises, TREATMENTS, {
      decode: (ids) => text.tokenizer.decode(ids),
      onProgress: log,
    });
  });
  const fixtures: QualityResult[] = [];
  for (const name of readdirSync(FIXTURES).sort()) {
    const dir = path.join(FIXTURES, name);
    fixtures.push(await random(name, dir, FIXTURE_OPTIONS));
  }
  const [biased, folder] = [biasedName(shape), await biasedShapeFolder(shape, cache)];
  return { starter: quality, fixtures, shape: await random(biased, folder, SHAPE_OPTIONS) };
}

/** Part `window`: the built-in model, the shape, then the fixtures. */
export async function windowBench({ cache, shape, threads, starter, log }: QualityArguments): Promise<WindowCost[]> {
  const imported = path.join(cache, 'imported');
  const measured = (name: string, dir: string, texts: readonly (readonly number[])[]): Promise<WindowCost> => {
    log(`window of ${name}`);
    return measurePool(name, dir, imported, threads, texts);
  };
  const { tokenizer } = await ModelText.load(STARTER);
  const costs = [
    await measured(
      'starter',
      STARTER,
      heldoutFiles()
        .slice(0, starter.numTexts)
        .map(({ text }) => tokenizer.encode(text).slice(0, WINDOW_TOKENS)),
    ),
    await measured(
      biasedName(shape),
      await biasedShapeFolder(shape, cache),
      randomTexts(SHAPES[shape].vocab_size, SHAPE_OPTIONS),
    ),
  ];
  for (const name of readdirSync(FIXTURES).sort()) {
    const dir = path.join(FIXTURES, name);
    costs.push(
      await measured(name, dir, randomTexts((await ModelText.load(dir)).tokenizer.vocabSize, FIXTURE_OPTIONS)),
    );
  }
  return costs;
}

const biasedName = (shape: ShapeName): string => `${shape}, large key biases`;

function randomTexts(vocabSize: number, { contextTokens, scoredTokens, numTexts }: typeof SHAPE_OPTIONS): number[][] {
  const random = seededRandom(4);
  return Array.from({ length: numTexts }, () =>
    Array.from({ length: contextTokens + scoredTokens + 1 }, () => below(random, vocabSize)),
  );
}
