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

const summary = (text: string, range?: { start: number; end: number; label?: string }) =>
  facts.checkedSummary(prepareSummarize(layout, file, range), file, range, layout).shape(text, true);

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

test('the declaration replaces that of a function, and a refusal that of a selection', () => {
  const start = CODE.indexOf('add(');
  const range = { start, end: start + 20 };
  expect(summary('Calls `total`.', { ...range, label: 'add' })).toMatchObject({
    text: 'The signature of `Basket.add` is on line 2: `add(item: string)`.',
    source: 'files',
  });
  expect(summary('Adds an item.', { ...range, label: 'add' }).source).toBeUndefined();
  expect(summary('Calls `total`.', range).source).toBe('refused');
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

test('an answer from the files does not make later questions ones about code in the conversation', () => {
  const ask = (source?: 'files') =>
    prepareChat(layout, {
      docs: [file],
      messages: [
        { role: 'user', content: '/outline' },
        { role: 'assistant', content: 'Functions:\n- `total`', ...(source ? { source } : {}) },
        { role: 'user', content: 'Who wrote this file?' },
      ],
    }).known?.source;
  expect([ask('files'), ask()]).toEqual(['refused', undefined]);
});
