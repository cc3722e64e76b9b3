/** Formats the cost of treatments as table cells, one row per treatment. Pure. */
import type { ExerciseKind } from './exercises.ts';
import { type AnswerCounts, answersOf, type QualityResult } from './quality.ts';

export const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)}%`;
const change = (share: number): string => `${share < 0 ? '' : '+'}${percent(share, 2)}`;
const small = (value: number): string => (value === 0 ? '0' : value.toExponential(1));

const KINDS: readonly (readonly [ExerciseKind, string])[] = [
  ['fim', 'lines'],
  ['question', 'questions'],
  ['needle', 'needles'],
];

/** "31.0% (98%)": share of right answers, and share with the same text as over the untreated context. */
export function answerCell(counts: Pick<AnswerCounts, 'n' | 'right' | 'same'> | null): string {
  return counts ? `${percent(counts.right / counts.n)} (${percent(counts.same / counts.n, 0)})` : '–';
}

/**
 * Head and rows. The first row is the untreated context, unless `treatments` includes a lossless one.
 * Columns without a figure are left out.
 */
export function qualityCells({ numTokens, treatments, answers }: QualityResult): { head: string[]; rows: string[][] } {
  const kinds = KINDS.filter(([kind]) => answersOf(answers, kind));
  const scored = numTokens > 0;
  return {
    head: [
      '',
      'bytes/token',
      'vs float16',
      'vs float16 here',
      ...(scored ? ['KL mean', 'KL max', 'top-1', 'perplexity', 'next token right'] : []),
      ...kinds.map(([, name]) => `${name} right (same)`),
    ],
    rows: treatments.map((t) => [
      t.treatment,
      t.bytesPerToken.toFixed(0),
      `${t.compression.toFixed(2)}x`,
      `${((t.compression * t.bytesPerToken) / t.bytesPerTokenHere).toFixed(2)}x`,
      ...(scored ? [small(t.klMean), small(t.klMax), percent(t.top1), change(t.perplexity), percent(t.accuracy)] : []),
      ...kinds.map(([kind]) => answerCell(answersOf(t.answers, kind))),
    ]),
  };
}

/** Describes in words what the model does over untreated contexts. */
export function baseline({
  model,
  numTokens,
  numContexts,
  longestContext,
  perplexity,
  accuracy,
  answers,
}: QualityResult): string {
  const parts = KINDS.flatMap(([kind, name]) => {
    const counts = answersOf(answers, kind);
    return counts ? [`${counts.right} of ${counts.n} ${name} right`] : [];
  });
  const scored =
    numTokens > 0
      ? [`${numTokens} tokens predicted, perplexity ${perplexity.toFixed(2)}, ${percent(accuracy)} of them right`]
      : [];
  return `${model}: ${numContexts} contexts of up to ${longestContext} tokens; without compression ${[...scored, ...parts].join(', ')}.`;
}
