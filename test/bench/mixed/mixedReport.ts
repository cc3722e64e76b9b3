/** Formats the result of suite `mixed` as Markdown tables and charts. Pure. */
import { short, table } from '../spread.ts';
import { type Bar, barChart } from '../svgPlot.ts';
import type { MixedBench } from './mixedBench.ts';
import {
  CLASSES,
  type Class,
  type ClassFigures,
  figuresOf,
  type Spread,
  targetsOf,
  type WayFigures,
} from './mixedFigures.ts';

const seconds = (ms: number): string => short(ms / 1000);
const three = ({ p50, p95, p99 }: Spread): string => [p50, p95, p99].map(short).join(' / ');
const bar = (value: number): Bar | null => (Number.isFinite(value) ? { value } : null);

export function mixedReport(bench: MixedBench): string {
  const figures = figuresOf(bench);
  const rush = figures.filter(({ scene }) => scene === 'rush');
  const live = figures.filter(({ scene }) => scene === 'live');
  const { counts } = bench;
  const parts = [
    `## Mixed: ${bench.model}, ${(bench.parameters / 1e6).toFixed(0)} million parameters, ${bench.threads} threads, prompts for ${bench.contextTokens} tokens of context, seed ${bench.seed}`,
    'Times are milliseconds as P50 / P95 / P99, from the moment at which a request was due.',
  ];
  if (rush.length) {
    const base = rush.find(({ way }) => way === 'one by one');
    parts.push(
      `### Rush: the session ${bench.rush} times faster than recorded, nothing given up\n\n${counts.completion} completions, ${counts.chat} chats, ${counts.summary} summaries, ${bench.promptTokens} tokens of prompts; file blocks are read before. Padded batches take ${bench.batchSize} requests, or what came within ${bench.batchTimeoutMs} ms.`,
      table(
        [
          'way',
          'rounds',
          'makespan, s',
          'tokens/s',
          'tokens/s of step time',
          'over one by one',
          'over continuous beside it',
        ],
        rush.map((one) => [
          one.way,
          one.rounds,
          seconds(one.makespanMs),
          short(one.perSecond),
          short(one.perBusySecond),
          base ? `${short(one.perSecond / base.perSecond)}x` : '–',
          Number.isNaN(one.overBeside) ? '–' : `${short(one.overBeside)}x`,
        ]),
      ),
      ...byClass(rush, ({ ttft }) => three(ttft), 'First token'),
      ...byClass(rush, ({ tpot }) => three(tpot), 'Each further token'),
      ...byClass(rush, ({ ttft }) => short(ttft.most), 'Longest wait for a first token'),
      ...stepsOf(bench),
    );
  }
  if (live.length) {
    parts.push(
      `### Live: completions while somebody types, ${bench.speed} times faster than recorded\n\nThose that nobody would have seen are given up by the next key, as recorded; the others run to their end and are measured. Chat and summaries: one of each is always running; each summary is of a text that was never read before.`,
      table(
        ['completions', 'measured', 'not seen', 'first token', 'each further token', 'whole completion', 'longest'],
        live.map(({ way, unseen, classes: { completion } }) => [
          way,
          completion.total.count,
          unseen,
          three(completion.ttft),
          three(completion.tpot),
          three(completion.total),
          short(completion.total.most),
        ]),
      ),
      ...live.flatMap(({ way, completionSteps: steps }) =>
        steps
          ? [
              `Steps with a completion in them, ${way}: ${short(steps.p50)} ms at the median, ${short(steps.p95)} ms at P95.`,
            ]
          : [],
      ),
      ...live
        .filter(({ background }) => Object.keys(background).length > 0)
        .map(
          ({ way, background }) =>
            `Meanwhile, ${way}: ${Object.entries(background)
              .map(
                ([priority, { promptPerSecond, perSecond, ended }]) =>
                  `${priority} ${promptPerSecond === undefined ? '' : `${short(promptPerSecond)} tokens/s of prompts, `}${short(perSecond)} tokens/s of answers, ${ended} ended`,
              )
              .join('; ')}.`,
        ),
    );
  }
  const { throughput, ttft, total } = targetsOf(figures);
  const rows = [
    ...(throughput === undefined
      ? []
      : [['throughput of the rush, continuous over one by one', `${short(throughput)}x`, '≥ 2.5x']]),
    ...(total === undefined
      ? []
      : [['P95 of a whole completion, with chat and summaries over alone', `${short(total)}x`, '≤ 2x']]),
    ...(ttft === undefined
      ? []
      : [["P95 of a completion's first token, with chat and summaries over alone", `${short(ttft)}x`, '']]),
  ];
  if (rows.length) parts.push('### Against the targets', table(['', 'measured', 'target'], rows));
  return parts.join('\n\n');
}

function byClass(ways: readonly WayFigures[], cell: (figures: ClassFigures) => string, title: string): string[] {
  const shown = CLASSES.filter((priority) => ways.some(({ classes }) => classes[priority].ttft.count > 0));
  return [
    `#### ${title}`,
    table(
      ['way', ...shown],
      ways.map(({ way, classes }) => [way, ...shown.map((priority) => cell(classes[priority]))]),
    ),
  ];
}

/** Step contents of one run per way that has them: the run with the median makespan. */
function stepsOf({ runs }: MixedBench): string[] {
  const rows = ['continuous', 'one by one'].flatMap((way) => {
    const ofWay = runs
      .filter((run) => run.scene === 'rush' && run.way === way && run.steps)
      .sort((a, b) => a.makespanMs - b.makespanMs);
    const { steps = [], busyMs = Number.NaN } = ofWay[ofWay.length >> 1] ?? {};
    return steps.map(({ prompt, least, most, steps: count, ms, promptTokens, answerTokens }) => [
      way,
      prompt ? 'a part of a prompt' : '–',
      most === Number.POSITIVE_INFINITY || most === null
        ? `${least} or more`
        : least === most
          ? least
          : `${least}–${most}`,
      count,
      promptTokens,
      answerTokens,
      seconds(ms),
      short(ms / count),
      `${((100 * ms) / busyMs).toFixed(0)}%`,
    ]);
  });
  return rows.length
    ? [
        '#### What the steps had in them (of the runs of a way the one of median length)',
        table(
          [
            'way',
            'beside',
            'tokens of answers in a step',
            'steps',
            'tokens of prompts',
            'tokens of answers',
            's',
            'ms a step',
            'of step time',
          ],
          rows,
        ),
      ]
    : [];
}

/** SVG texts by file name. */
export function mixedCharts(bench: MixedBench): { [file: string]: string } {
  const figures = figuresOf(bench);
  const charts: { [file: string]: string } = {};
  const rush = figures.filter(({ scene }) => scene === 'rush');
  const ways = rush.filter(({ way }) => !way.startsWith('without'));
  const groups = CLASSES.filter((priority) => rush.some(({ classes }) => classes[priority].ttft.count > 0));
  const ofClasses = (value: (figures: ClassFigures) => number) =>
    ways.map(({ way, classes }) => ({
      name: way,
      bars: groups.map((priority: Class) => bar(value(classes[priority]))),
    }));
  if (ways.length) {
    charts['mixed-throughput.svg'] = barChart({
      title: 'The session in a rush',
      unit: 'tokens/s',
      groups: ways.map(({ way }) => way),
      series: [{ name: bench.model, bars: ways.map(({ perSecond }) => bar(perSecond)) }],
    });
    charts['mixed-first-token.svg'] = barChart({
      title: 'First token in a rush, P95',
      unit: 'ms',
      groups,
      series: ofClasses(({ ttft }) => ttft.p95),
    });
  }
  const off = rush.filter(({ way }) => way.startsWith('without'));
  if (off.length) {
    charts['mixed-policies.svg'] = barChart({
      title: 'In a rush, with a policy switched off',
      unit: 'throughput over that with all',
      groups: off.map(({ way }) => way),
      series: [{ name: bench.model, bars: off.map(({ overBeside }) => bar(overBeside)) }],
    });
  }
  const live = figures.filter(({ scene }) => scene === 'live');
  if (live.length) {
    const rows: [string, (figures: ClassFigures) => number][] = [
      ['first token, P50', ({ ttft }) => ttft.p50],
      ['first token, P95', ({ ttft }) => ttft.p95],
      ['whole completion, P50', ({ total }) => total.p50],
      ['whole completion, P95', ({ total }) => total.p95],
    ];
    charts['mixed-live.svg'] = barChart({
      title: 'Completions while typing',
      unit: 'ms',
      groups: rows.map(([name]) => name),
      series: live.map(({ way, classes }) => ({
        name: way,
        bars: rows.map(([, value]) => bar(value(classes.completion))),
      })),
    });
  }
  return charts;
}
