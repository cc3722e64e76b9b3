/** `kvasir eval --kv CODEC,...`: what it costs to keep a context of this text compressed, against its rows as they were. */
import { RequestError } from '../protocol/errors.ts';
import type { LoadOptions } from '../protocol/messages.ts';
import { Layout } from '../text/prompt/layout.ts';
import { ModelText } from '../text/format/modelText.ts';
import { shortPath } from '../text/syntax/sourceDocument.ts';
import { Grammars } from '../text/syntax/syntaxGrammars.ts';
import { type ExerciseOptions, exercisesOf } from './evaluateExercises.ts';
import { measureQuality } from './evaluateQuality.ts';
import { baseline, LEGEND, qualityCells, tooFewNote } from './evaluateReport.ts';
import { KvSubject } from './evaluateSubject.ts';
import { TREATMENTS } from './evaluateTreatments.ts';
import { log, printJson, table } from './output.ts';

/** Of one file: all that it gives. */
const OPTIONS: Omit<ExerciseOptions, 'contextTokens' | 'scoredTokens'> = {
  numTexts: 64,
  holes: 8,
  questions: 8,
  distances: [256, 512, 1024],
  needles: 4,
  seed: 1,
};
const CONTEXT_TOKENS = 896;
const SCORED_TOKENS = 127;

/** @param names of treatments. */
export async function evaluateTreated(
  names: readonly string[],
  file: { path: string; text: string },
  options: LoadOptions,
  json: boolean,
): Promise<void> {
  const text = await ModelText.load(options.modelDir);
  const treatments = TREATMENTS.filter(({ name }) => names.includes(name));
  const subject = await KvSubject.open(
    text.manifest.name,
    options.modelDir,
    options.cacheDir,
    options.threads,
    treatments.flatMap(({ codecs }) => codecs),
  );
  try {
    const { config } = subject.model;
    const limit = Math.min(config.contextTokens, options.contextTokens ?? Number.POSITIVE_INFINITY);
    const scoredTokens = Math.min(SCORED_TOKENS, Math.floor(limit / 4));
    const contextTokens = Math.min(CONTEXT_TOKENS, limit - scoredTokens - 1);
    const layout = new Layout(text, { contextTokens: limit, numParameters: subject.model.parameters });
    const exercises = await exercisesOf(layout, new Grammars(), [{ path: shortPath(file.path), text: file.text }], {
      ...OPTIONS,
      contextTokens,
      scoredTokens,
    });
    if (exercises.length === 0)
      throw new RequestError(
        'badRequest',
        'eval: the text is too short: nothing of it is compressed before the tokens that are compared',
      );
    const result = await measureQuality(subject, exercises, treatments, {
      decode: (ids) => text.tokenizer.decode(ids),
      onProgress: log,
    });
    if (json) {
      for (const treatment of result.treatments) printJson({ ...treatment, numTokens: result.numTokens });
      return;
    }
    const { head, rows } = qualityCells(result);
    process.stdout.write(`${table([head, ...rows])}\n`);
    log(`${baseline(result)}\n${LEGEND}`);
    const note = tooFewNote(result.numTokens);
    if (note !== undefined) log(note);
  } finally {
    await subject.dispose();
  }
}
