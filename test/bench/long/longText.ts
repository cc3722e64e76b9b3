/** docs/long-contexts.md from the result of the benchmark. Text between note marks is written by hand and taken over. Pure. */
import { notesIn } from '../docNotes.ts';
import type { Machine } from '../performanceTargets.ts';
import type { LongBench } from './longBench.ts';
import { answersTable, costsTable } from './longReport.ts';

export type MeasuredLong = LongBench & { machine: Machine };

const PLACES = ['summary', 'worth', 'costs'] as const;

/** @param before the document as it was. @throws Error naming a note that has no place any more. */
export function longText(measured: MeasuredLong, before = ''): string {
  const { contexts, contextTokens, needleTokens, shape, machine } = measured;
  const note = notesIn(before, PLACES);
  const parts = [
    '<!-- Written by test/bench/long/longDoc.ts from the result of the benchmark. What stands between note marks is kept; all else is written anew. -->',
    "# Contexts longer than the cache's memory",
    note('summary'),
    '## What it is worth',
    `Built-in model, ${contexts} contexts of held-out code, ${contextTokens.toLocaleString('en')} tokens on average (those with a needle, a constant that stands somewhere in the text and is asked for at its end, ${needleTokens.toLocaleString('en')}), under ceilings that would hold so many tokens as a window. "Same text": as with all rows there.`,
    answersTable(measured),
    note('worth'),
    '## What it costs',
    `The shape of ${shape}, ${machine.processors} processors of ${machine.cpu ?? 'an unknown kind'}, ${machine.platform}, ${machine.date.slice(0, 10)}, one run of each row:`,
    costsTable(measured),
    note('costs'),
    'Again: `npm run build`, `npm run bench -- long --out bench-results`, `node test/bench/long/longDoc.ts bench-results`.',
  ];
  return `${parts.join('\n\n')}\n`;
}
