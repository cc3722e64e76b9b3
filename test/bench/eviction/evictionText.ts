/** docs/eviction.md from the result of the suite `eviction`. Text between note marks is written by hand and taken over. Pure. */
import { notesIn } from '../docNotes.ts';
import { nested } from '../performanceText.ts';
import type { Machine } from '../performanceTargets.ts';
import type { EvictionBench } from './evictionBench.ts';
import { evictionReport } from './evictionReport.ts';

const PLACES = ['policy', 'follows'] as const;

/** @param before the document as it was. @throws Error naming a note that has no place any more. */
export function evictionText(bench: EvictionBench, { cpu, platform, node }: Machine, before = ''): string {
  const note = notesIn(before, PLACES);
  const parts = [
    '<!-- Written by test/bench/eviction/evictionDoc.ts from the result of the benchmark. What stands between note marks is kept; all else is written anew. -->',
    '# Eviction: what goes first, and what that costs',
    note('policy'),
    nested(evictionReport(bench)),
    '![Cost in the recorded session](eviction/eviction-recorded.svg)',
    '![Cost on days of work](eviction/eviction-days.svg)',
    '![What somebody waited for on days of work](eviction/eviction-days-waits.svg)',
    '## What follows',
    note('follows'),
    `Reckoned on ${cpu ?? 'an unknown processor'}, ${platform}, Node ${node}; nothing here is a time that was measured then. Again: \`npm run bench -- eviction --out bench-results\`, \`node test/bench/eviction/evictionDoc.ts bench-results\`.`,
  ];
  return `${parts.join('\n\n')}\n`;
}
