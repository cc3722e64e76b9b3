/** Formats answers and costs of contexts longer than the pool. Pure. */
import { answersOf } from '../eval/quality.ts';
import { short, table } from '../spread.ts';
import type { Choosing, LongBench } from './longBench.ts';

const ROWS: Record<Choosing, string> = {
  whole: 'all of them',
  sketch: 'those that the sketch chooses',
  newest: 'the newest, and the first block',
};

function answersTable({ contextTokens, needleTokens, answers }: LongBench): string {
  const counts = answers.map(({ choosing, slots, answers: of }) => {
    const [question, needle] = (['question', 'needle'] as const).map((kind) => answersOf(of, kind));
    const times = (tokens: number): string => (slots === null ? '1' : (tokens / slots).toFixed(1));
    return [
      ROWS[choosing],
      slots ?? '–',
      times(contextTokens),
      question ? `${question.right} of ${question.n}` : '–',
      question?.same ?? '–',
      times(needleTokens),
      needle ? `${needle.right} of ${needle.n}` : '–',
      needle?.same ?? '–',
    ];
  });
  return table(
    [
      'rows',
      'ceiling, tokens',
      'a context, of it',
      'questions right',
      'same text',
      'a context with a needle, of it',
      'needles right',
      'same text',
    ],
    counts,
  );
}

function costsTable({ costs }: LongBench): string {
  const megabytes = (bytes: number): string => `${short(bytes / 1e6)} MB`;
  const rows = costs.map((cost) => [
    ROWS[cost.choosing],
    cost.contextTokens.toLocaleString('en'),
    megabytes(cost.maxBytes),
    megabytes(cost.peakBytes),
    megabytes(cost.spilledBytes),
    `${short(cost.firstMs / 1000)} s`,
    `${short(cost.nextMs)} ms`,
    `${short(cost.tokenMs)} ms`,
  ]);
  return table(
    [
      'rows',
      'context',
      'ceiling of rows',
      'most, with scratch',
      'on disk',
      'first question',
      'the next one',
      'a token',
    ],
    rows,
  );
}

export function longReport(result: LongBench): string {
  const { contexts, contextTokens, answers, shape, costs } = result;
  return [
    ...(answers.length > 0
      ? [`Built-in model, ${contexts} contexts of ${contextTokens} tokens on average.`, answersTable(result)]
      : []),
    ...(costs.length > 0 ? [`Shape ${shape}.`, costsTable(result)] : []),
  ].join('\n\n');
}
