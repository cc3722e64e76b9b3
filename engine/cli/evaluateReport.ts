/** What treatments cost, as cells of a table: one row a treatment. Pure. */
import type { ExerciseKind } from './evaluateExercises.ts';
import { type AnswerCounts, answersOf, type QualityResult } from './evaluateQuality.ts';

export const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)}%`;
const change = (share: number): string => `${share < 0 ? '' : '+'}${percent(share, 2)}`;
const small = (value: number): string => (value === 0 ? '0' : value.toExponential(1));

const KINDS: readonly (readonly [ExerciseKind, string])[] = [
  ['fim', 'lines'],
  ['question', 'questions'],
  ['needle', 'needles'],
];

/** "31.0% (98%)": right, and the same text as over the context as it was. */
export function answerCell(counts: Pick<AnswerCounts, 'n' | 'right' | 'same'> | null): string {
  return counts ? `${percent(counts.right / counts.n)} (${percent(counts.same / counts.n, 0)})` : '–';
}

/** Fewer predicted tokens tell little: of 1,000, a share of 96% is one within 1.2 points. */
const ENOUGH_TOKENS = 1000;

/** What is to be said of a measurement on little text; undefined where there is enough. */
export function tooFewNote(numTokens: number): string | undefined {
  return numTokens < ENOUGH_TOKENS
    ? `note: ${numTokens} predicted ${numTokens === 1 ? 'token is' : 'tokens are'} too few to tell codecs apart; take a text of ${ENOUGH_TOKENS} tokens or more`
    : undefined;
}

/** Head and rows; the first row is the context as it was, but where `treatments` has one that loses nothing. Columns without a figure are left out. */
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

/** What the columns are, for people. */
export const LEGEND = [
  'KL and top-1: how far the next token is from what it is without compression (KL divergence in nats), and how often the likeliest one is the same.',
  'lines, questions, needles: lines of the text written again, questions about it, made-up constants hidden in it; how many are right, in brackets how many answers are the same as without compression.',
  'vs float16 here: of these contexts, with what a codec keeps as it was.',
].join('\n');

/** What the model does over contexts as they were, in words. */
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
