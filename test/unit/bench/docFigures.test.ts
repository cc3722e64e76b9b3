/** The documents' figures are those of the results that are kept beside them, and the model card's are those of docs/compression.md. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { answersOf } from '../../../engine/cli/evaluateQuality.ts';
import { percent } from '../../../engine/cli/evaluateReport.ts';
import type { MeasuredQuality } from '../../bench/kv/compressionText.ts';
import type { QualityFigures } from '../../bench/quality/suite.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => statSync(path.join(folder, name)).isFile())
    .sort();

test.each([
  'kv/compressionDoc.ts',
  'eviction/evictionDoc.ts',
  'strategies/strategiesDoc.ts',
  'performanceDoc.ts',
  'long/longDoc.ts',
  'quality/qualityDoc.ts',
])('%s writes the documents as they are', (script) => {
  const out = mkdtempSync(path.join(tmpdir(), 'kvasir-docs-'));
  const empty = mkdtempSync(path.join(tmpdir(), 'kvasir-results-'));
  onTestFinished(() => {
    for (const folder of [out, empty]) rmSync(folder, { recursive: true, force: true });
  });
  const docs = path.join(ROOT, 'docs');
  cpSync(docs, out, { recursive: true });
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--disable-warning=MODULE_TYPELESS_PACKAGE_JSON', path.join(ROOT, 'test/bench', script), empty, '--out', out],
    { encoding: 'utf8' },
  );
  expect([status, stderr]).toEqual([0, '']);
  expect(filesOf(out)).toEqual(filesOf(docs));
  for (const name of filesOf(docs))
    expect(readFileSync(path.join(out, name)).equals(readFileSync(path.join(docs, name))), name).toBe(true);
});

test('the model card has the figures of the formats as they were measured', () => {
  const { quality, window } = JSON.parse(
    readFileSync(path.join(ROOT, 'docs/compression/kv.json'), 'utf8'),
  ) as MeasuredQuality;
  const { starter } = quality;
  const card = readFileSync(path.join(ROOT, 'model/MODEL_CARD.md'), 'utf8');
  const rows = card
    .slice(card.indexOf('| kept as |'))
    .split('\n\n', 1)[0]!
    .split('\n')
    .slice(2)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  expect(rows).toHaveLength(starter.treatments.length);
  for (const [name, ...cells] of rows) {
    const key = name!.split(':')[0]!.toLowerCase();
    const found = starter.treatments.find(({ treatment }) => treatment === key)!;
    const answers = (['fim', 'question', 'needle'] as const)
      .map((kind) => answersOf(found.answers, kind)!)
      .map(({ right, n }) => percent(right / n));
    const isReference = found.klMean === 0;
    const perplexity = isReference
      ? starter.perplexity.toFixed(2)
      : `${found.perplexity < 0 ? '' : '+'}${percent(found.perplexity, 2)}`;
    const divergence = isReference
      ? ['0', '0', '100%']
      : [found.klMean.toPrecision(2), found.klMax.toPrecision(2), percent(found.top1)];
    expect(cells, name).toEqual([
      found.bytesPerToken.toFixed(0),
      `${found.compression.toFixed(2)}x`,
      ...divergence,
      perplexity,
      percent(found.accuracy),
      ...answers,
    ]);
  }
  const { read, written } = window.find(({ model }) => model === 'starter')!;
  const [ofRead, ofWritten] = [read, written].map(
    ({ klSum, agreed, numTokens }) =>
      `mean KL ${(klSum / numTokens).toExponential(1)}, same first choice ${percent(agreed / numTokens, 2)}`,
  );
  expect(card).toContain(`against float32 rows: ${ofRead} for what is read, and ${ofWritten} for what is written.`);
});

test('what the product says of its model are the shipped one’s figures', () => {
  const table = readFileSync(path.join(ROOT, 'docs/quality.md'), 'utf8').split('## What each step brought')[1]!;
  const [rests, lines] = [4, 8].map((column) =>
    Math.round(
      Number.parseFloat(
        table
          .split('\n')
          .find((line) => line.startsWith('|') && line.includes('(shipped)'))!
          .split('|')
          .slice(1)[column]!,
      ),
    ),
  );
  const inFile = (file: string): Record<string, unknown> =>
    JSON.parse(readFileSync(path.join(ROOT, file), 'utf8')) as Record<string, unknown>;
  const { note } = inFile('model/kvasir.json') as { note: { en: string; pt: string } };
  for (const text of [note.en, inFile('package.nls.json')['walkthrough.model.description']])
    expect(text).toContain(`${rests}% of the rests of lines right and ${lines}% of whole lines`);
  for (const text of [note.pt, inFile('package.nls.pt-br.json')['walkthrough.model.description']])
    expect(text).toContain(`${rests}% dos finais de linha e ${lines}% das linhas inteiras`);
});

test('what the chat says of the model’s own answers are its figures', () => {
  const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
  const rows = read('docs/quality.md')
    .split('| summaries | n |')[1]!
    .split('\n\n')[0]!
    .split('\n')
    .flatMap((line) =>
      /^\| (?:TypeScript|JavaScript|Python) \|/.test(line) ? [line.split('|').slice(2, 5).map(Number)] : [],
    ) as [number, number, number][];
  const n = rows.reduce((sum, [count]) => sum + count, 0);
  const [own, ofName] = ([1, 2] as const).map((column) =>
    (rows.reduce((sum, row) => sum + row[0] * row[column], 0) / n).toFixed(2),
  ) as [string, string];
  const { chat } = JSON.parse(read('model/kvasir.json')) as { chat: { note: { en: string; pt: string } } };
  expect(chat.note.en).toContain(`asked what ${n} functions do that it had never seen`);
  expect(chat.note.en).toContain(`(ROUGE-L ${own}, of the name ${ofName})`);
  expect(chat.note.pt).toContain(`fazem ${n} funções que nunca tinha visto`);
  expect(chat.note.pt).toContain(`(ROUGE-L ${own.replace('.', ',')}; do nome, ${ofName.replace('.', ',')})`);
  // The model that is shipped is the last one that was asked by itself.
  const asked = read('docs/quality.md')
    .split('## Questions for facts')[1]!
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const alone = asked.findLast(([name]) => name!.endsWith(' alone'))!;
  const { questions } = JSON.parse(read('docs/quality/alone.json')) as Pick<QualityFigures, 'questions'>;
  const { right } = questions.find(({ kind, language }) => kind === 'all' && language === 'all')!;
  expect((100 * right).toFixed(1)).toBe(Number.parseFloat(alone[asked[0]!.indexOf('all')]!).toFixed(1));
});
