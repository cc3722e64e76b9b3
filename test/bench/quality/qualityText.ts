/** docs/quality.md from the result of the benchmark. Text between note marks is written by hand and taken over. Pure. */
import { notesIn } from '../docNotes.ts';
import type { Machine } from '../performanceTargets.ts';
import { qualityReport } from './report.ts';
import type { QualityFigures } from './suite.ts';

export type MeasuredQuality = QualityFigures & { machine: Machine };

const PLACES = ['method', 'shipped', 'steps'] as const;

/** @param before the document as it was. @throws Error naming a note that has no place any more. */
export function qualityText(measured: MeasuredQuality, before = ''): string {
  const { processors, cpu, platform, date } = measured.machine;
  const note = notesIn(before, PLACES);
  const parts = [
    '<!-- Written by test/bench/quality/qualityDoc.ts from the result of the benchmark. What stands between note marks is kept; all else is written anew. -->',
    '# What the model is worth',
    note('method'),
    '## The built-in model as it is shipped',
    qualityReport(measured),
    `Measured on ${processors} processors of ${cpu ?? 'an unknown kind'}, ${platform}, ${date.slice(0, 10)}. Again: \`npm run build\`, \`npm run bench -- quality --out bench-results\`, \`node test/bench/quality/qualityDoc.ts bench-results\`.`,
    '![completions that are exactly what stood there](quality/quality.svg)',
    note('shipped'),
    note('steps'),
  ];
  return `${parts.join('\n\n')}\n`;
}
