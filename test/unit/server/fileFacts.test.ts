/** What replaces a summary of a small model whose names are not in the code. */
import { beforeAll, expect, test } from 'vitest';
import { FileFacts } from '../../../engine/server/fileFacts.ts';
import { prepareChat } from '../../../engine/tasks/chatTask.ts';
import { prepareSummarize } from '../../../engine/tasks/summarizeTask.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../engine/text/syntax/syntax.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';

const CODE = 'export class Basket {\n  add(item: string) {}\n}\nexport function total() {}\n';
const grammars = new Grammars();
const syntax = new Syntax(grammars);
const facts = new FileFacts(syntax);
const file = new SourceDocument('a', 'src/shop.ts', CODE);
let layout: Layout;

beforeAll(async () => {
  layout = new Layout(await ModelText.load('model'), { contextTokens: 2048, numParameters: 0 });
  await grammars.load('typescript');
  await syntax.prepare(file);
});

const summary = (text: string) => facts.checkedSummary(prepareSummarize(layout, file), file, layout).shape(text, true);

test('the outline replaces a summary that invents, repeats or mistakes names', () => {
  const outline = expect.stringContaining('- `Basket` (line 1): `add` (line 2)');
  for (const text of [
    'This file defines the functions `total` and `total`.',
    'This file defines the class `Shop`.',
    'This file defines the class `total`.',
  ])
    expect(summary(text)).toMatchObject({ text: outline, source: 'files', isInstead: true });
  const text = 'This file defines the class `Basket` and the function `total`.';
  expect(summary(text)).toEqual({ text, stop: true });
});

test('of a function or a selection, what the code says is told instead of a guess', () => {
  const start = CODE.indexOf('add(');
  const told = (range: { start: number; end: number; label?: string }) => facts.readSummary(file, range, layout);
  const add =
    'No comment above `add` says what it does. `Basket.add` is defined on line 2: `add(item: string) {}`. ' +
    '`Basket.add` returns nothing (line 2).';
  const total = '`total` is defined on line 4: `export function total() {}`.';
  const code = { source: 'files', note: 'from the code of src/shop.ts, not written by the model' };
  expect(told({ start, end: start + 20, label: 'Basket.add' })).toEqual({ text: add, ...code });
  expect(told({ start: start - 2, end: start + 20 })).toEqual({ text: add, ...code });
  const all = told({ start: 0, end: CODE.length });
  expect(all).toMatchObject({ text: expect.stringContaining(total), ...code });
  // The method is told with its class.
  expect(all?.text).toMatch(/^No comment above `Basket` says .*Methods of `Basket`: `add` \(line 2\)/);
  expect(all?.text).not.toContain('above `add`');
  expect(told({ start: start + 4, end: start + 10 })?.source).toBe('refused');
});

test('a question about a selection is answered from its lines', () => {
  const told = (startLine: number, text: string, path = 'src/shop.ts') =>
    facts.readSelection({ docs: [file], snippets: [{ path, text, startLine }], messages: [] }, 'en')?.text;
  expect(told(1, '  add(item: string) {}\n')).toMatch(/^No comment above `add` says what it does\./);
  expect(told(3, 'export function total() {}')).toMatch(/`total` is defined on line 4/);
  expect(told(0, 'export class Basket {')).toMatch(/`Basket` is defined on line 1/);
  expect(told(2, '}')).toBeUndefined();
  expect(told(3, 'export function total() {}', 'src/other.ts')).toBeUndefined();
});

test.each(['/explain', 'Summarise this file.', 'What is this?'])(
  'an answer to %s is checked as a summary',
  (content) => {
    const options = { docs: [file], messages: [{ role: 'user' as const, content }] };
    const { shape } = facts.checkedAnswer(prepareChat(layout, options), options, undefined, layout);
    expect(shape('This file defines the class `total`.', true)).toMatchObject({
      text: expect.stringContaining('- `Basket` (line 1): `add` (line 2)'),
      source: 'files',
    });
  },
);
