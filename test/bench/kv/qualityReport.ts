/** Formats part `quality` as tables and charts. Pure. */
import { FORMATS } from '../../../engine/kv/approx/codecs/registry.ts';
import type { ExerciseKind } from '../eval/exercises.ts';
import { answersOf, type ContextBytes, type QualityResult, type TreatmentQuality } from '../eval/quality.ts';
import { answerCell, baseline, percent, qualityCells } from '../eval/report.ts';
import type { Divergence } from '../../../engine/model/calibrate/measurement.ts';
import { table } from '../spread.ts';
import { barChart } from '../svgPlot.ts';
import { pairedChange } from './pairedInterval.ts';
import { PUBLISHED } from './published.ts';
import type { QualityBench } from './qualityBench.ts';
import type { WindowCost } from './windowCost.ts';

const of = (result: QualityResult, treatment: string): TreatmentQuality =>
  result.treatments.find((each) => each.treatment === treatment)!;
/** "3.55x, 9.0e-3 (50.8%)": compression against float16, mean KL divergence, top-1 agreement. */
const sizeAndLoss = ({ compression, klMean, top1 }: TreatmentQuality): string =>
  `${compression.toFixed(2)}x, ${klMean === 0 ? '0' : klMean.toExponential(1)} (${percent(top1)})`;
const SIZE_AND_LOSS = 'vs float16, KL mean (top-1)';

/** The result of the fixture with the highest cost. */
function worst(fixtures: readonly QualityResult[], treatment: string): TreatmentQuality | null {
  const all = fixtures.map((result) => of(result, treatment));
  return all.reduce<TreatmentQuality | null>((most, each) => (most && most.klMean >= each.klMean ? most : each), null);
}

/** All treatments on all models, with the published result of each. */
function qualityTable({ starter, shape, fixtures }: QualityBench): string {
  const { head, rows } = qualityCells(starter);
  return table(
    [...head, `${SIZE_AND_LOSS}, 0.5B shape`, 'the same, worst fixture', 'published'],
    rows.map((row) => {
      const name = row[0]!;
      const most = worst(fixtures, name);
      return [...row, sizeAndLoss(of(shape, name)), most ? sizeAndLoss(most) : '–', PUBLISHED[name]?.reported ?? '–'];
    }),
  );
}

const ANSWERED: readonly (readonly [ExerciseKind, string])[] = [
  ['fim', 'lines'],
  ['question', 'questions'],
  ['needle', 'needles'],
];

/** Change of right answers per treatment over the same questions, with 95% intervals. */
export function changeTable({ answers, treatments }: QualityResult): string {
  const kinds = ANSWERED.filter(([kind]) => answersOf(answers, kind));
  const points = (share: number): string => `${share < 0 ? '−' : '+'}${Math.abs(100 * share).toFixed(1)}`;
  return table(
    [
      'points of right answers (95% interval); lost, gained',
      ...kinds.map(([kind, name]) => `${name} (${answersOf(answers, kind)!.n})`),
    ],
    treatments.map(({ treatment, changes }) => [
      treatment,
      ...kinds.map(([kind]) => {
        const { lost, gained } = changes.find((each) => each.kind === kind)!;
        const { n, right } = answersOf(answers, kind)!;
        const { change, least, most } = pairedChange({ lost, gained, n, rightBefore: right });
        return `${points(change)} (${points(least)} to ${points(most)}); ${lost}, ${gained}`;
      }),
    ]),
  );
}

/** Size of contexts relative to int8: long contexts, and those of the answers. */
export function smallerTable({ treatments }: QualityResult): string {
  const int8 = treatments.find(({ treatment }) => treatment === 'int8');
  const times = (bytes: number, other: number): string => `${(other / bytes).toFixed(2)}x`;
  const perToken = ({ bytes, numTokens }: ContextBytes): number => bytes / numTokens;
  const kinds = (int8?.contexts ?? []).map((contexts) => ({
    ...contexts,
    name: [...ANSWERED, ['text', 'texts'] as const].find(([kind]) => kind === contexts.kind)![1],
  }));
  return table(
    [
      'smaller than int8',
      'long contexts',
      ...kinds.map(
        ({ name, numContexts, numTokens }) =>
          `${name}: ${numContexts} contexts of ${Math.round(numTokens / numContexts)} tokens on average`,
      ),
      'all of these',
    ],
    !int8
      ? []
      : treatments.map(({ treatment, bytesPerToken, bytesPerTokenHere, contexts }) => [
          treatment,
          times(bytesPerToken, int8.bytesPerToken),
          ...kinds.map((of) => times(perToken(contexts.find(({ kind }) => kind === of.kind)!), perToken(of))),
          times(bytesPerTokenHere, int8.bytesPerTokenHere),
        ]),
  );
}

export function pagedTable(window: readonly WindowCost[]): string {
  const cells = ({ klSum, klMax, agreed, numTokens }: Divergence): string[] => [
    (klSum / numTokens).toExponential(1),
    klMax.toExponential(1),
    percent(agreed / numTokens, 2),
  ];
  return table(
    [
      'int8 window against float32 rows',
      ...['read', 'written'].flatMap((how) => [`${how}: KL mean`, 'KL max', 'top-1']),
      'tokens',
    ],
    window.map(({ model, read, written }) => [model, ...cells(read), ...cells(written), read.numTokens]),
  );
}

/** Right answers by group, and answers with the same text as without compression. */
function groupTable(result: QualityResult, kind: ExerciseKind, what: string): string {
  const groups = result.answers.filter((counts) => counts.kind === kind);
  return table(
    [what, ...groups.map(({ group, n }) => `${group} (${n})`)],
    [
      ['as it was', ...groups.map(({ right, n }) => percent(right / n))],
      ...result.treatments.map(({ treatment, answers }) => [
        treatment,
        ...groups.map(({ group }) =>
          answerCell(answers.find((counts) => counts.kind === kind && counts.group === group) ?? null),
        ),
      ]),
    ],
  );
}

function fixtureTable({ fixtures }: QualityBench): string {
  const [first] = fixtures;
  return table(
    [SIZE_AND_LOSS, ...fixtures.map(({ model }) => model)],
    (first?.treatments ?? []).map(({ treatment }) => [
      treatment,
      ...fixtures.map((result) => sizeAndLoss(of(result, treatment))),
    ]),
  );
}

const differences = (treatments: readonly { treatment: string }[]): string =>
  treatments
    .flatMap(({ treatment }) => {
      const published = PUBLISHED[treatment];
      return published
        ? [`- **${treatment}**: ${published.reported} (${published.source}). ${published.difference}`]
        : [];
    })
    .join('\n');

const READING =
  'Against the context as it was: int8 rows, as the window holds them. `vs float16` is of a long context; `here` of the contexts measured, with what is kept exactly of them. KL in nats, top-1: the same most probable next token. `right (same)`: right answers, and answers that are the same text as without compression.';

/** Text above changeTable. */
const CHANGES =
  'The same questions are asked over the context as it was and after each treatment, so what counts is which of them were right and no longer are (lost), and the other way round (gained). The intervals are for such pairs (Newcombe 1998, method 10); questions about one file are taken to be as different as those about two.';

export function qualityReport(bench: QualityBench): string {
  return [
    '## Quality of compressed contexts',
    [
      baseline(bench.starter),
      baseline(bench.shape),
      `Fixtures: ${bench.fixtures.length} models with random weights, ${bench.fixtures[0]?.numTokens ?? 0} tokens each.`,
    ].join('\n'),
    READING,
    qualityTable(bench),
    CHANGES,
    changeTable(bench.starter),
    '### Smaller than int8',
    smallerTable(bench.starter),
    '### Needles by distance',
    groupTable(bench.starter, 'needle', 'tokens between'),
    '### Questions by kind',
    groupTable(bench.starter, 'question', 'about'),
    '### Lines and rests of lines',
    groupTable(bench.starter, 'fim', 'kind'),
    '### Fixtures',
    fixtureTable(bench),
    '### Beside what is published',
    differences(bench.starter.treatments),
  ].join('\n\n');
}

/** SVG texts by file name. */
export function qualityCharts({ starter }: QualityBench): Record<string, string> {
  // Labels break at spaces.
  const labels = (of: readonly TreatmentQuality[]): string[] =>
    of.map(({ treatment }) => treatment.replaceAll('-', ' '));
  const groups = labels(starter.treatments);
  const bars = (value: (treatment: TreatmentQuality) => number) =>
    starter.treatments.map((treatment) => ({ value: value(treatment) }));
  // The chart shows formats only. Next to the loss by pruning their bars would be invisible.
  const formats = starter.treatments.filter(({ treatment }) => FORMATS.some(({ name }) => name === treatment));
  const share =
    (kind: ExerciseKind, key: 'right' | 'same') =>
    ({ answers }: TreatmentQuality) => {
      const counts = answersOf(answers, kind);
      return counts ? (100 * counts[key]) / counts.n : 0;
    };
  const kinds: [ExerciseKind, string][] = [
    ['fim', 'lines'],
    ['question', 'questions'],
    ['needle', 'needles'],
  ];
  return {
    'kv-size.svg': barChart({
      title: 'A token of a long context',
      unit: 'bytes',
      groups,
      series: [{ name: 'built-in model', bars: bars(({ bytesPerToken }) => bytesPerToken) }],
    }),
    'kv-divergence.svg': barChart({
      title: 'Mean KL divergence of the next token, formats',
      unit: 'thousandths of a nat',
      groups: labels(formats),
      series: [{ name: 'built-in model', bars: formats.map(({ klMean }) => ({ value: 1000 * klMean })) }],
    }),
    'kv-right.svg': barChart({
      title: 'Right answers',
      unit: '%',
      groups,
      series: kinds.map(([kind, name]) => ({ name, bars: bars(share(kind, 'right')) })),
    }),
    'kv-same.svg': barChart({
      title: 'Answers as without compression',
      unit: '%',
      groups,
      series: kinds.map(([kind, name]) => ({ name, bars: bars(share(kind, 'same')) })),
    }),
  };
}
