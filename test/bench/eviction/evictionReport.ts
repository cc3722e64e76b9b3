/** Formats the comparison of eviction policies as tables and charts. Pure. */
import { short, table } from '../spread.ts';
import { barChart } from '../svgPlot.ts';
import type { EvictionBench, EvictionRun } from './evictionBench.ts';

/**
 * Milliseconds per token at the beginning of a context. The shape of Qwen2.5-0.5B takes 1.4 s for 512 tokens on the
 * two-core machine of docs/performance.md.
 */
const TOKEN_MS = 1400 / 512;

/** Shares of LRU's cost this close to 1 count as equal. */
export const EQUAL = 0.001;

type Part = 'computed' | 'cost' | 'waitCost';

interface Compared {
  ceiling: number;
  /** Sum over all sessions of the kind. */
  total(policy: EvictionRun['policy'], part: Part): number;
  /** Share of LRU's cost, per session. */
  shares(policy: EvictionRun['policy'], part: Part): number[];
}

function compare({ runs }: EvictionBench, kind: EvictionRun['kind']): Compared[] {
  const of = runs.filter((run) => run.kind === kind);
  const seeds = [...new Set(of.map(({ seed }) => seed))];
  return [...new Set(of.map(({ ceiling }) => ceiling))].map((ceiling) => {
    const value = (seed: number, policy: EvictionRun['policy'], part: Part): number =>
      of.find((run) => run.seed === seed && run.policy === policy && run.ceiling === ceiling)![part];
    return {
      ceiling,
      total: (policy, part) => seeds.reduce((sum, seed) => sum + value(seed, policy, part), 0),
      shares: (policy, part) => seeds.map((seed) => value(seed, policy, part) / value(seed, 'lru', part)),
    };
  });
}

/** Computed tokens, their cost as a share of LRU's, and the part of the possible gain that each policy reaches. */
function tables(bench: EvictionBench, kind: EvictionRun['kind']): string[] {
  const compared = compare(bench, kind);
  const thousands = (tokens: number): string => short(tokens / 1000);
  const shares = ({ shares }: Compared, policy: EvictionRun['policy'], part: Part): string => {
    const all = shares(policy, part);
    const mean = all.reduce((sum, share) => sum + share, 0) / all.length;
    return all.length > 1
      ? `${mean.toFixed(3)} (${Math.min(...all).toFixed(3)}–${Math.max(...all).toFixed(3)})`
      : mean.toFixed(3);
  };
  const seconds = ({ total }: Compared, policy: EvictionRun['policy'], part: Part): string =>
    short(((total('lru', part) - total(policy, part)) * TOKEN_MS) / 1000);
  return [
    table(
      [
        'ceiling, tokens',
        'thousand tokens computed without a ceiling',
        'besides, computed again: LRU',
        'clock',
        'utility',
        'Belady',
      ],
      compared.map((each) => [
        each.ceiling,
        thousands(each.total('all', 'computed')),
        ...(['lru', 'clock', 'utility', 'belady'] as const).map((policy) =>
          thousands(each.total(policy, 'computed') - each.total('all', 'computed')),
        ),
      ]),
    ),
    table(
      ['ceiling, tokens', 'cost of LRU’s: clock', 'utility', 'Belady', 'seconds saved: utility', 'Belady'],
      compared.map((each) => [
        each.ceiling,
        shares(each, 'clock', 'cost'),
        shares(each, 'utility', 'cost'),
        shares(each, 'belady', 'cost'),
        seconds(each, 'utility', 'cost'),
        seconds(each, 'belady', 'cost'),
      ]),
    ),
    table(
      [
        'ceiling, tokens',
        'what somebody waited for, of LRU’s: clock',
        'utility',
        'Belady',
        'seconds saved: utility',
        'Belady',
      ],
      compared.map((each) => [
        each.ceiling,
        shares(each, 'clock', 'waitCost'),
        shares(each, 'utility', 'waitCost'),
        shares(each, 'belady', 'waitCost'),
        seconds(each, 'utility', 'waitCost'),
        seconds(each, 'belady', 'waitCost'),
      ]),
    ),
  ];
}

/** Number of memory budgets with which `utility` costs less than LRU, and with which it costs more. */
function outcome(bench: EvictionBench, kind: EvictionRun['kind']): string {
  const compared = compare(bench, kind);
  const sentence = (what: string, part: Part): string => {
    const shares = compared.map((each) => each.total('utility', part) / each.total('lru', part));
    const less = shares.filter((share) => share < 1 - EQUAL).length;
    const more = shares.filter((share) => share > 1 + EQUAL).length;
    const saved = compared.reduce(
      (sum, each) => sum + ((each.total('lru', part) - each.total('utility', part)) * TOKEN_MS) / 1000,
      0,
    );
    return `${what} utility is below LRU under ${less} of ${shares.length} ceilings, above it under ${more} and within a thousandth of it under ${shares.length - less - more}: from ${(100 * (Math.min(...shares) - 1)).toFixed(1)}% to ${(100 * (Math.max(...shares) - 1)).toFixed(1)}%, ${short(saved)} s saved under all of them together.`;
  };
  return `${sentence('In what computing again costs', 'cost')} ${sentence('In what somebody waited for', 'waitCost')}`;
}

export function evictionReport(bench: EvictionBench): string {
  const recorded = bench.sessions.filter(({ kind }) => kind === 'recorded');
  const days = bench.sessions.filter(({ kind }) => kind === 'day');
  const all = (of: 'numRequests' | 'numIdle' | 'minutes'): number => days.reduce((sum, day) => sum + day[of], 0);
  return [
    '## Eviction: what is computed again under a ceiling',
    `The cache alone, without a model: tokens of prompts that were not found; their cost in tokens at the beginning of a context (a token at 3,700 costs twice as much), as seconds where one takes ${short(TOKEN_MS)} ms. Belady's rule knows what comes.`,
    `### The recorded session: ${recorded[0]!.numRequests} requests, ${recorded[0]!.numIdle} readings of files, ${recorded[0]!.minutes.toFixed(0)} minutes`,
    `Shares are the mean of ${recorded.length} draws of how long the answers are, and in brackets the least and the most of them; tokens, seconds and the percentages here are of all of them together.`,
    outcome(bench, 'recorded'),
    ...tables(bench, 'recorded'),
    `### ${days.length} days drawn from the model of behaviour: ${all('numRequests')} requests, ${all('numIdle')} readings of files, ${(all('minutes') / 60).toFixed(0)} hours`,
    'Shares are the mean of the days, and in brackets the least and the most of them; tokens, seconds and the percentages here are of all of them together, so that a long day counts for more.',
    outcome(bench, 'day'),
    ...tables(bench, 'day'),
  ].join('\n\n');
}

/** SVG texts by file name. */
export function evictionCharts(bench: EvictionBench): { [file: string]: string } {
  const chart = (title: string, kind: EvictionRun['kind'], part: Part): string => {
    const compared = compare(bench, kind);
    const bars = (policy: EvictionRun['policy']) =>
      compared.map(({ shares }) => {
        const all = shares(policy, part);
        return {
          value: all.reduce((sum, share) => sum + share, 0) / all.length,
          least: Math.min(...all),
          most: Math.max(...all),
        };
      });
    return barChart({
      title,
      unit: 'of LRU’s',
      groups: compared.map(({ ceiling }) => `${ceiling} tokens`),
      series: [
        { name: 'clock', bars: bars('clock') },
        { name: 'utility', bars: bars('utility') },
        { name: 'Belady', bars: bars('belady') },
      ],
    });
  };
  return {
    'eviction-recorded.svg': chart('Cost of computing again, recorded session', 'recorded', 'cost'),
    'eviction-days.svg': chart('Cost of computing again, days of work', 'day', 'cost'),
    'eviction-days-waits.svg': chart('What somebody waited for, days of work', 'day', 'waitCost'),
  };
}
