/**
 * Formats the comparison of strategies as the table and the three figures of the study, and as CSV with one line per
 * turn. Pure.
 */
import { short, table } from '../spread.ts';
import { barChart } from '../svgPlot.ts';
import type { StrategiesBench, TurnRecord } from './strategiesBench.ts';

/** Results of the study for Llama-3.2-1B on a GPU of Google Colab: seconds per answer, MB, tokens per second. */
const STUDY: { [strategy: string]: readonly [number, number, number] } = {
  none: [54.2749, 0.009814, 6.3264],
  dynamic: [3.4433, 0.009814, 34.1041],
  static: [4.857, 4.5137, 34.4357],
};

const COLUMNS = ['strategy', 'time of an answer, s', 'memory, MB', 'tokens/s'];

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function byStrategy(records: readonly TurnRecord[]): Map<string, TurnRecord[]> {
  const strategies = new Map<string, TurnRecord[]>();
  for (const name of ['none', 'dynamic', 'static', 'window']) {
    const of = records.filter(({ strategy }) => strategy === name);
    if (of.length) strategies.set(name, of);
  }
  return strategies;
}

function studyTable(): string {
  return table(
    COLUMNS,
    Object.entries(STUDY).map(([name, [seconds, megabytes, tokensPerSecond]]) => [
      name,
      short(seconds),
      short(megabytes),
      short(tokensPerSecond),
    ]),
  );
}

export function strategiesReport({ model, threads, records }: StrategiesBench): string {
  const rows = [...byStrategy(records)].map(([name, of]) => {
    return [
      name,
      short(mean(of.map(({ seconds }) => seconds))),
      short(mean(of.map(({ keptBytes }) => keptBytes)) / 1e6),
      short(mean(of.map(({ tokens, seconds }) => tokens / seconds))),
      short(Math.max(...of.map(({ peakBytes }) => peakBytes)) / 1e6),
    ];
  });
  const turns = [...new Set(records.map(({ turn }) => turn))].sort((a, b) => a - b);
  const [numAnswers = 0] = Array.from(byStrategy(records).values(), ({ length }) => length);
  const perTurn = [...byStrategy(records)].map(([name, of]) => [
    name,
    ...turns.map((turn) =>
      short(mean(of.filter((record) => record.turn === turn).map(({ seconds }) => seconds)) * 1000),
    ),
  ]);
  const contexts = turns.map((turn) =>
    Math.round(mean(records.filter((record) => record.turn === turn).map(({ contextTokens }) => contextTokens))),
  );
  return [
    `## Strategies: the ${model} model, ${threads} threads`,
    `The mean over ${numAnswers} answers each, all of which have the same tokens whatever the strategy. Memory: rows of keys and values kept after an answer beyond those before it, as the study measured it, and the most at any time, which that misses: arrays that grow are counted with those that they are copied from, which are there until the copy is made. The runner's working memory is not counted.`,
    table(COLUMNS.concat('peak memory, MB'), rows),
    'As a study reports it (*Estratégias de gerenciamento de KV cache*, Universidade Federal de Itajubá, Table 1):',
    studyTable(),
    '### By turn, ms an answer',
    table(['strategy', ...turns.map((turn, i) => `turn ${turn + 1}, ${contexts[i]} tokens`)], perTurn),
  ].join('\n\n');
}

/** SVG texts by file name: figures 1 to 3 of the study. */
export function strategiesCharts({ model, records }: StrategiesBench): { [file: string]: string } {
  const turns = [...new Set(records.map(({ turn }) => turn))].sort((a, b) => a - b);
  const groups = turns.map((turn) => `turn ${turn + 1}`);
  const chart = (title: string, unit: string, of: (record: TurnRecord) => number): string =>
    barChart({
      title: `${title}, ${model} model`,
      unit,
      groups,
      series: [...byStrategy(records)].map(([name, all]) => ({
        name,
        bars: turns.map((turn) => ({ value: mean(all.filter((record) => record.turn === turn).map(of)) })),
      })),
    });
  return {
    'strategies-time.svg': chart('Time of an answer', 'ms', ({ seconds }) => 1000 * seconds),
    'strategies-throughput.svg': chart('Throughput', 'tokens/s', ({ tokens, seconds }) => tokens / seconds),
    'strategies-memory.svg': chart('Most memory for K/V rows', 'kB', ({ peakBytes }) => peakBytes / 1e3),
  };
}

export function strategiesCsv(records: readonly TurnRecord[]): string {
  const columns = [
    'strategy',
    'scenario',
    'sample',
    'turn',
    'contextTokens',
    'tokens',
    'seconds',
    'keptBytes',
    'peakBytes',
  ] as const;
  // Six digits are more than the precision of the clock.
  const cell = (value: string | number): string =>
    typeof value === 'number' && !Number.isInteger(value) ? String(Number(value.toPrecision(6))) : String(value);
  return `${[columns.join(','), ...records.map((record) => columns.map((column) => cell(record[column])).join(','))].join('\n')}\n`;
}
