/** Formats suite `quality` as tables and a chart. Pure. */
import { short, table } from '../spread.ts';
import { type BarChart, barChart } from '../svgPlot.ts';
import type { PromptLayout } from './engine.ts';
import type { Cell } from './figures.ts';
import { interval } from './scores.ts';
import type { QualityFigures } from './suite.ts';

const LAYOUTS: Record<PromptLayout, string> = { blockAndTail: 'file block + tail', tail: 'FIM in the file' };
const KINDS: Record<Cell['kind'], string> = {
  rest: 'rest of the line',
  line: 'whole line',
  block: 'block',
  'rest, in a word': 'rest, in the middle of a word',
  'rest, between words': 'rest, between words',
};
const LANGUAGES: Record<Cell['language'], string> = {
  typescript: 'TypeScript',
  javascript: 'JavaScript',
  python: 'Python',
  all: 'all',
};

const percent = (share: number): string => (Number.isNaN(share) ? '–' : `${(100 * share).toFixed(1)}%`);

/** "10.5% (7–16)": a share with its 95% interval. */
function withInterval(share: number, n: number): string {
  const [least, most] = interval(Math.round(share * n), n);
  return `${percent(share)} (${(100 * least).toFixed(0)}–${(100 * most).toFixed(0)})`;
}

const layoutName = (layout: PromptLayout, { shipped }: Pick<QualityFigures, 'shipped'>): string =>
  `${LAYOUTS[layout]}${layout === shipped ? ' (as shipped)' : ''}`;

export function qualityReport(result: QualityFigures): string {
  const { model, parameters, loadMs, threads, n, sources, beside = 0 } = result;
  const head = `${model}, ${short(parameters / 1e6)} million parameters, int8, ${loadMs === undefined ? '' : `loaded in ${loadMs} ms, `}${threads} threads, greedy; up to ${n} of each kind and language, from ${sources.map(({ name, version }) => `${name} ${version}`).join(', ')}. ${beside === 0 ? 'No other file is copied from' : `${beside} other files of the project, the nearest in its folders, may be copied from`}. What is offered is judged as it would be shown; 95% intervals in brackets. Times are from the last key to the first ghost text, with all before it read.`;
  return [head, qualityTable(result)].join('\n\n');
}

/** Tables of completions, questions and summaries, as in a model card. Leaves out groups without results. */
export function qualityTable(result: QualityFigures): string {
  const tables: string[] = [];
  if (result.cells.length > 0) {
    const columns = [
      'layout',
      'to write',
      'language',
      'n',
      'exact',
      'first word',
      'shown',
      'exact of shown',
      'first word of shown',
      'accepted whole of shown',
      'characters kept per shown',
      'shown, characters',
      'to write, characters',
      'first text, ms',
      'P95, ms',
    ];
    const rows = result.cells.map((c) => [
      layoutName(c.layout, result),
      KINDS[c.kind],
      LANGUAGES[c.language],
      c.n,
      withInterval(c.exact, c.n),
      percent(c.firstWord),
      percent(c.shown),
      percent(c.exactOfShown),
      percent(c.firstWordOfShown),
      percent(c.wholeOfShown),
      ...[c.keptPerShown, c.shownCharacters, c.takenCharacters, c.medianMs, c.p95Ms].map(short),
    ]);
    tables.push(table(columns, rows));
  }
  if (result.questions.length > 0) {
    const rows = result.questions.map(({ kind, language, n, right, exact }) => [
      kind === 'all' ? 'all questions' : kind,
      LANGUAGES[language],
      n,
      withInterval(right, n),
      percent(exact),
    ]);
    tables.push(table(['question', 'language', 'n', 'right', 'word for word'], rows));
  }
  if (result.summaries.length > 0) {
    const rows = result.summaries.map(({ language, n, rougeL, chrF, nameRougeL, nameChrF }) => [
      LANGUAGES[language],
      n,
      ...[rougeL, nameRougeL, chrF, nameChrF].map((value) => value.toFixed(3)),
    ]);
    tables.push(table(['summaries', 'n', 'ROUGE-L', 'of the name alone', 'chrF', 'of the name alone'], rows));
  }
  return tables.join('\n\n');
}

/** Chart of exact completions by kind and language. Empty if there are no completions. */
export function qualityCharts(result: QualityFigures): Record<string, string> {
  const cells = result.cells.filter(({ language }) => language !== 'all');
  if (cells.length === 0) return {};
  const layouts = [...new Set(cells.map(({ layout }) => layout))];
  const of = (layout: PromptLayout): Cell[] => cells.filter((cell) => cell.layout === layout);
  const chart: BarChart = {
    title: `Completions of ${result.model} that are exactly what stood there`,
    unit: '%',
    groups: of(layouts[0]!).map(({ kind, language }) => `${KINDS[kind]}, ${LANGUAGES[language]}`),
    series: layouts.map((layout) => ({
      name: layoutName(layout, result),
      bars: of(layout).map(({ exact, n }) => {
        const [least, most] = interval(Math.round(exact * n), n);
        return { value: 100 * exact, least: 100 * least, most: 100 * most };
      }),
    })),
  };
  return { 'quality.svg': barChart(chart) };
}
