/** docs/compression.md from the result of the quality benchmark. Text between note marks is written by hand and taken over. Pure. */
import { baseline } from '../../../engine/cli/evaluateReport.ts';
import { notesIn } from '../docNotes.ts';
import type { Machine } from '../performanceTargets.ts';
import type { QualityBench } from './qualityBench.ts';
import {
  CHANGES,
  changeTable,
  differences,
  fixtureTable,
  groupTable,
  qualityCharts,
  qualityTable,
  READING,
  smallerTable,
  pagedTable,
} from './qualityReport.ts';
import { type RowsResult, rowsTable } from './rows.ts';
import type { WindowCost } from './windowCost.ts';

export interface MeasuredQuality {
  machine: Machine;
  quality: QualityBench;
  window: WindowCost[];
  rows: RowsResult[];
}

/** Under the table, where it has those rows. */
const AUTO =
  '`auto` is a mixture: what the setting makes of a context depends on how long its parts have been out of use and how full memory is (see above). This row is one state of it: memory nine tenths full and nothing coded yet, the first third of the context used a minute ago (left as it was), the second six minutes ago (`int4-kivi`), the last twelve minutes ago (`turboquant`). Whoever uses tokens uses those before them, so it is always the end that has been left longest, and it is what comes next is likeliest to attend to. Until three quarters of memory are taken `auto` is the row `int8`, and a file that is left while they are is the row `int4-kivi` after five minutes, for good.';
const SKETCH =
  '`sketch` is not a format: rows stay as they are on the disk, for contexts longer than memory, and the bytes are those of memory: the sketches and a third of the rows. What it costs here is the choice at the end of the prompt alone; the rows were computed with the whole context in sight. In use it costs more: [long-contexts.md](long-contexts.md).';

const PLACES = ['summary', 'choosing', 'reading', 'smaller', 'window', 'rows'] as const;

/** @param before the document as it was. @throws Error naming a note that has no place any more. */
export function compressionText(
  { machine, quality, window, rows }: MeasuredQuality,
  before = '',
): { text: string; charts: Record<string, string> } {
  const note = notesIn(before, PLACES);
  const charts = qualityCharts(quality);
  const chart = (name: string, what: string): string => `![${what}](compression/${name})`;
  const parts = [
    '<!-- Written by test/bench/kv/compressionDoc.ts from the results of the benchmark. What stands between note marks is kept; all else is written anew. -->',
    '# What compressing the cache costs',
    note('summary'),
    '## What there is, and which to choose',
    note('choosing'),
    '## All of it in one table',
    [
      baseline(quality.starter),
      baseline(quality.shape),
      `The fixtures are ${quality.fixtures.length} small models with random weights, ${quality.fixtures[0]?.numTokens ?? 0} tokens predicted with each. Random weights say nothing of lines, questions and needles: there is nothing to be right about.`,
    ]
      .map((line) => `- ${line}`)
      .join('\n'),
    READING,
    ...[
      ['auto', AUTO],
      ['sketch', SKETCH],
    ]
      .filter(([name]) => quality.starter.treatments.some(({ treatment }) => treatment === name))
      .map(([, text]) => text!),
    qualityTable(quality),
    note('reading'),
    '## Right answers lost and gained',
    CHANGES,
    changeTable(quality.starter),
    '## How much smaller, where it was measured',
    'Contexts here are shorter than files may be: what a codec keeps exactly of each weighs more, and `kvzip` leaves those of less than 256 tokens whole. Against int8, by what was asked over them:',
    smallerTable(quality.starter),
    note('smaller'),
    chart('kv-divergence.svg', 'mean KL divergence by format'),
    chart('kv-same.svg', 'answers that are the same text as without compression, by treatment'),
    chart('kv-right.svg', 'right answers by treatment'),
    chart('kv-size.svg', 'bytes per token by treatment'),
    '## Beside what is published',
    'Published figures are of other models, other tasks and other parts of memory; this is where the difference lies.',
    differences(quality.starter.treatments),
    '## The window itself',
    'All of the above is against the int8 rows of the window, which every running request attends to. What those cost against float32 rows, with float32 weights under both: whole texts, each token as those of prompts are read (contexts are, with queries in float32), and as those of answers are written (queries in integers, too).',
    pagedTable(window),
    note('window'),
    '## What it does to the rows',
    'Errors of keys, of values, and of what attention makes of both (the weighted values of each head, for the true queries of the tokens that come next), relative to their size, root mean square over layers and heads. Of the formats alone, before any token is dropped.',
    ...rows.flatMap((of) => [
      `${of.model === 'starter' ? 'Built-in model' : of.model[0]!.toUpperCase() + of.model.slice(1)}, ${of.numTexts} texts, ${of.coded} tokens coded, attention of the next ${of.compared}:`,
      rowsTable(of),
    ]),
    note('rows'),
    '## In detail',
    '### Needles: a made-up constant, by how many tokens ago it was said',
    groupTable(quality.starter, 'needle', 'tokens between'),
    '### Questions with one exact answer, by what they are about',
    groupTable(quality.starter, 'question', 'about'),
    '### Lines of code to write again',
    groupTable(quality.starter, 'fim', 'whole lines, rests of lines'),
    '### The fixtures',
    fixtureTable(quality),
    '## How it is measured',
    [
      '- Held-out code: frozen copies of files of this project (`test/fixtures/heldout`), TypeScript and Python, that the built-in model has never seen.',
      '- A context is computed once, as file blocks are. It is then continued as it is, and after each treatment, with the next 127 tokens of the text, a line to fill in, questions about the file, or the question for the constant; all as the product asks. Every treated token of the context goes through the codec, but what the format itself keeps.',
      '- Lines are right when they are the line, word for word. Questions (parameters, return type, type and default value of a parameter, base class, owner, line of a definition) are read off a syntax tree; an answer is right when it contains the exact text.',
      '- Everything is greedy and seeded: the same machine gives the same figures again.',
      `- Measured on ${machine.cpu ?? 'an unknown processor'}, ${machine.platform}, Node ${machine.node}, ${machine.date.slice(0, 10)}. What is here said of how long something takes is of [performance.md](performance.md); nothing of it was measured with this.`,
    ].join('\n'),
    'Again: `npm run build`, `npm run bench -- kv --only quality,window,rows --out bench-results`, `node test/bench/kv/compressionDoc.ts bench-results`. With a model and a file of your own: `kvasir eval --text FILE --kv all`.',
  ];
  return { text: `${parts.join('\n\n')}\n`, charts };
}
