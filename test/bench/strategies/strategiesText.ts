/**
 * docs/strategies.md and its charts, from the results of the suites `strategies`, `tiers` and `heads`. Text between note marks is
 * written by hand and taken over from the document as it was. Pure.
 */
import { type HeadsBench, headsReport } from '../headsBench.ts';
import { notesIn } from '../docNotes.ts';
import { nested } from '../performanceText.ts';
import type { Machine } from '../performanceTargets.ts';
import { short, table } from '../spread.ts';
import { type TiersBench, tiersReport } from '../tiers/tiersReport.ts';
import type { StrategiesBench } from './strategiesBench.ts';
import { strategiesCharts, strategiesReport, studyTable } from './strategiesReport.ts';

export interface StrategiesResults {
  strategies: { result: StrategiesBench; machine: Machine };
  tiers: { result: TiersBench; machine: Machine };
  heads: { result: HeadsBench; machine: Machine };
}

/** By the name of the file that holds a result. */
export const SUITES = ['strategies', 'tiers', 'heads'] as const;

export interface StrategiesDoc {
  text: string;
  /** SVG texts by file name. */
  charts: { [file: string]: string };
}

/** @param before the document as it was. @throws Error naming a note that has no place. */
export function strategiesDoc({ strategies, tiers, heads }: StrategiesResults, before = ''): StrategiesDoc {
  const note = notesIn(before, ['summary', ...SUITES]);
  const charts = strategiesCharts(strategies.result);
  const parts = [
    '<!-- Written by test/bench/strategies/strategiesDoc.ts from the results of the benchmarks. What stands between note marks is kept; all else is written anew. -->',
    '# What the cache is worth: strategies, tiers, heads',
    note('summary'),
    '## What it was measured on',
    table(
      ['suite', 'machine', 'threads', 'ended (UTC)', 'load before', 'load after'],
      [
        ['strategies', strategies],
        ['tiers', tiers],
        ['heads', heads],
      ].map(([name, of]) => {
        const { machine, result } = of as StrategiesResults['heads'];
        const { cpu, processors, memoryBytes, platform, node, date, loadBefore, loadAfter } = machine;
        return [
          name as string,
          `${cpu ?? 'unknown processor'}, ${processors} processors, ${(memoryBytes / 2 ** 30).toFixed(0)} GiB, ${platform}, Node ${node}, no GPU`,
          result.threads,
          date.slice(0, 16).replace('T', ' '),
          short(loadBefore),
          short(loadAfter),
        ];
      }),
    ),
    '## No cache, a growing one, a static one, the window',
    "A study (*Estratégias de gerenciamento de KV cache: um estudo comparativo de desempenho e memória*, Universidade Federal de Itajubá) compares three ways of keeping keys and values in conversations with a support agent (insurance, banking, a shop; instructions, then questions that build on one another): none, where each token computes everything anew; dynamic, arrays that grow by each token; static, arrays of the longest context from the start. The study's are those of a library, on Llama-3.2-1B and a GPU of Google Colab. Here they run over this engine's own runner, each beginning anew with every answer as the study's did, and beside them the engine's window, which goes on from what the turns before have left. [strategies/results/strategies.csv](strategies/results/strategies.csv) has a line for each answer.",
    'As the study reports it (its Table 1):',
    studyTable(),
    nested(strategiesReport(strategies.result)),
    ...Object.keys(charts).map((file) => `![${file.replace('.svg', '').replaceAll('-', ' ')}](strategies/${file})`),
    note('strategies'),
    '## Window, store and disk',
    'Each file comes into the cache once and its rows are written to the disk; then questions about the files come, about some far more often than about others. Most files are not in memory at any time. Twice: with rows as they are computed, and as with `kvasir.cache.codec`, where between the questions ten seconds pass, or two minutes a third of the time (the engine is told so, nobody waits), and what the engine does in idle maintenance is done: what has been out of use for a minute is coded and leaves the window.',
    nested(tiersReport(tiers.result)),
    note('tiers'),
    '## Models cut for the cache',
    'With grouped heads several query heads share keys and values. What that saves, on models that differ in nothing else; what it costs in quality only training tells. `kvasir inspect` says for each model what a token takes in each codec, and how long a context the memory of the machine holds.',
    nested(headsReport(heads.result)),
    note('heads'),
    '## Measuring again',
    `\`\`\`sh\n${SUITES.map((name) => `npm run bench -- ${name} --out bench-results`).join('\n')}\nnode test/bench/strategies/strategiesDoc.ts bench-results  # writes this document anew; what is not there is taken from strategies/results\n\`\`\``,
  ];
  return { text: `${parts.join('\n\n')}\n`, charts };
}
