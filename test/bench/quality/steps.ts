/**
 * Compares successive steps in a Markdown table. Each folder has the quality.json of a run over the same items.
 * `node test/bench/quality/steps.ts "v0=FOLDER" "+ copy prior=FOLDER" ...`
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { table } from '../spread.ts';
import type { ScoredHole } from './figures.ts';
import { mean } from './scores.ts';
import { LANGUAGES } from './sources.ts';
import type { QualityBench } from './suite.ts';

const HEADS = [
  '',
  'rest of the line, TypeScript',
  'JavaScript',
  'Python',
  'all',
  'whole line, TypeScript',
  'JavaScript',
  'Python',
  'all',
  'rests shown',
  'exact of shown',
  'first word of shown',
  'characters kept per shown',
];

const percent = (holes: readonly ScoredHole[], is: (hole: ScoredHole) => boolean): string =>
  `${(100 * mean(holes.map((hole) => Number(is(hole))))).toFixed(1)}%`;

/** @throws Error if the runs have different items. */
export function stepsTable(
  steps: readonly { readonly name: string; readonly bench: Pick<QualityBench, 'shipped' | 'items'> }[],
): string {
  const rows = steps.map(({ name, bench }) => {
    const holes = bench.items.holes.filter(({ layout }) => layout === bench.shipped);
    const of = (kind: ScoredHole['kind']): ScoredHole[] => holes.filter((hole) => hole.kind === kind);
    const exact = (kind: ScoredHole['kind']): string[] =>
      [...LANGUAGES.map((language) => of(kind).filter((hole) => hole.language === language)), of(kind)].map((some) =>
        percent(some, (hole) => hole.exact),
      );
    const shown = of('rest').filter((hole) => hole.shown);
    return {
      key: holes.map(({ path: file, kind, offset }) => `${file} ${kind} ${offset}`).join(),
      cells: [
        name,
        ...exact('rest'),
        ...exact('line'),
        percent(of('rest'), (hole) => hole.shown),
        percent(shown, (hole) => hole.exact),
        percent(shown, (hole) => hole.firstWord),
        mean(shown.map(({ kept }) => kept)).toFixed(1),
      ],
    };
  });
  const other = rows.find(({ key }) => key !== rows[0]!.key);
  if (other) throw new Error(`"${other.cells[0]}" was asked other items than "${rows[0]!.cells[0]}".`);
  return table(
    HEADS,
    rows.map(({ cells }) => cells),
  );
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const steps = process.argv.slice(2).map((step) => {
    const at = step.lastIndexOf('=');
    return {
      name: step.slice(0, at),
      bench: JSON.parse(readFileSync(path.join(step.slice(at + 1), 'quality.json'), 'utf8')) as QualityBench,
    };
  });
  console.log(stepsTable(steps));
}
