/** The product, the model's card and the documents quote the figures of the stored results. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
const result = <Result>(name: string): Result => JSON.parse(read(`test/bench/results/${name}.json`)) as Result;

interface Quality {
  shipped: string;
  cells: { layout: string; kind: string; language: string; exact: number }[];
}
interface Compression {
  quality: { starter: { treatments: { treatment: string; bytesPerToken: number; klMean: number; top1: number }[] } };
}

/** Percentage of completions of the built-in model that are exactly right, over all languages. */
function exactShare(kind: 'rest' | 'line'): number {
  const { cells, shipped } = result<Quality>('quality');
  const found = cells.find((cell) => cell.layout === shipped && cell.kind === kind && cell.language === 'all');
  return 100 * found!.exact;
}

test('the note of the built-in model and the walkthrough quote the measured shares', () => {
  const [rests, lines] = [exactShare('rest').toFixed(0), exactShare('line').toFixed(0)];
  const { note } = JSON.parse(read('model/kvasir.json')) as { note: { en: string; pt: string } };
  const inFile = (file: string) => (JSON.parse(read(file)) as Record<string, string>)['walkthrough.model.description']!;
  for (const text of [note.en, inFile('package.nls.json')])
    for (const share of [rests, lines]) expect(text).toMatch(new RegExp(`\\b${share}%`));
  for (const text of [note.pt, inFile('package.nls.pt-br.json')])
    for (const share of [rests, lines]) expect(text).toMatch(new RegExp(`\\b${share}%`));
});

test('docs/quality.md quotes the measured shares', () => {
  const page = read('docs/quality.md');
  expect(page).toContain(`| rest of the line | all | ${exactShare('rest').toFixed(1)}%`);
  expect(page).toContain(`| whole line | all | ${exactShare('line').toFixed(1)}%`);
});

test.each(['docs/compression.md', 'model/MODEL_CARD.md'])(
  'the table of codecs in %s quotes the measured figures',
  (file) => {
    const { treatments } = result<Compression>('kv').quality.starter;
    const rows = read(file).match(/^\| [\w-]+[^|]* \| \d+ \| [\d.]+x \|.*$/gm)!;
    expect(rows.length).toBeGreaterThan(4);
    for (const row of rows) {
      const cells = row.split('|').map((cell) => cell.trim());
      const name = cells[1]!.split(/[ :]/)[0]!.toLowerCase();
      const { bytesPerToken, klMean, top1 } = treatments.find(({ treatment }) => treatment === name)!;
      expect(Number(cells[2]), row).toBe(Math.round(bytesPerToken));
      const shown = cells.slice(4).map((cell) => Number.parseFloat(cell));
      expect(shown, row).toContain(Number(klMean.toPrecision(2)));
      expect(shown, row).toContain(Number((100 * top1).toFixed(1)));
    }
  },
);
