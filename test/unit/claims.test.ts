/** What a small model says by itself is shown; the facts that it states are the files' own, or are not shown. */
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { prepareChat, shapeAnswer, type Tell } from '../../engine/tasks/chat.ts';
import { asksToDescribe, claimIn, inOwnWords, questionOf } from '../../engine/tasks/claims.ts';
import { withoutDenial } from '../../engine/tasks/denial.ts';
import { answerOfFiles } from '../../engine/tasks/factFiles.ts';
import { WORDS } from '../../engine/tasks/factWords.ts';
import { prepareSummarize } from '../../engine/tasks/summarize.ts';
import { Layout } from '../../engine/text/layout.ts';
import { ModelText } from '../../engine/text/modelText.ts';
import { SourceDocument } from '../../engine/text/sourceDocument.ts';
import { Syntax } from '../../engine/text/syntax.ts';
import { grammars, loadGrammars } from './askFact.ts';

const TEXT = `import fs from 'node:fs';
/** Keeps rows. */
export class Store extends Map {
  flush(force = false): number {
    return 1;
  }
}
export function fill(rows) {
  return rows.length;
}
export const A = 1, B = 2, C = 3, D = 4, E = 5, F = 6, G = 7;
`;
const BEYOND = WORDS.en.beyond;
const doc = new SourceDocument('a', 'src/a.ts', TEXT);
const syntax = new Syntax(grammars);
const tell: Tell = (question) => answerOfFiles(question, [doc], (each) => syntax.facts(each));
let layout: Layout;

beforeAll(async () => {
  await loadGrammars();
  await syntax.prepare(doc);
  layout = new Layout(await ModelText.load(join(import.meta.dirname, '../../model')), { contextTokens: 2048, numParameters: 7e6 });
}, 60_000);

/** What is shown of an answer in the end; fails where something that was shown on the way is taken back. */
function shown(shape: ReturnType<typeof inOwnWords>, answer: string): string {
  let text = '';
  for (let n = 1, stop = false; n <= answer.length && !stop; n++) {
    const shaped = shape(answer.slice(0, n), false);
    expect(shaped.text.startsWith(text), `${JSON.stringify(text)} became ${JSON.stringify(shaped.text)}`).toBe(true);
    ({ text, stop } = shaped);
  }
  const last = shape(answer, true).text;
  expect(last.startsWith(text), `${JSON.stringify(text)} became ${JSON.stringify(last)}`).toBe(true);
  return last;
}

const answered = (question: string, answer: string) => shown(prepareChat(layout, { docs: [doc], messages: [{ role: 'user', content: question }] }, undefined, tell).shape, answer);

describe('a fact is the files’ own', () => {
  it.each([
    ['Which ones go into fill?', '`fill` takes `wrong` and `gone`.', '`fill` takes `rows` (line 8).'],
    ['where might Store be?', '`Store` is defined here: `class Store {`', '`Store` is defined in line 3: `export class Store extends Map {`.'],
    ['which thing comes out of flush?', '`flush` returns `string`.', '`flush` returns `number` (line 4).'],
    ['which class is above Store?', '`Store` extends `Set`.', '`Store` extends `Map` (line 3).'],
    ['what is flush part of?', '`flush` is a method of `Map`.', '`flush` is a method of `Store` (line 4).'],
    ['which things has Store?', '`Store` has `gone` and `flush`.', '`Store` has the method `flush` (from line 3), besides those that it inherits.'],
    ['which number has force when nobody says one', '`force` defaults to `1`.', '`force` of `Store.flush` defaults to `false` (line 4).'],
    ['what is in there', 'This file defines `gone`.', 'This file defines the class `Store`; the function `fill`; the variables `A`, `B`, `C`, `D`, `E` and 2 more.'],
    ['which files does it need?', 'This file imports `gone`.', 'This file imports `node:fs` (line 1).'],
    ['que coisas entram em fill?', '`fill` recebe `gone`.', '`fill` recebe `rows` (linha 8).'],
    ['o que tem ali?', 'Este ficheiro define `gone`.', 'Este arquivo define a classe `Store`; a função `fill`; as variáveis `A`, `B`, `C`, `D`, `E` e mais 2.'],
    // Behind what the model has described.
    ['explain Store and its parts', 'Keeps rows of it. Its methods include `gone`.', 'Keeps rows of it.'],
    ['Explain fill', 'Counts them. It takes `gone`. It returns `string`.', 'Counts them. `fill` is declared in line 8: `function fill(rows)`.'],
    ['summarise it', 'Rows that are kept. It defines the class `Gone`.', 'Rows that are kept. This file defines the class `Store`; the function `fill`; the variables `A`, `B`, `C`, `D`, `E` and 2 more.'],
  ])('%s', (question, answer, expected) => expect(answered(question, answer)).toBe(expected));
});

describe('nothing is shown that the files do not say or nobody asked for', () => {
  it.each([
    ['What is the longest function?', '`fill` is a method of `Store`.'],
    ['Does it handle errors?', 'Yes: `export function gone() {`'],
    ['Does it read files?', 'This file defines `gone`.'],
    ['which type is it', '`rows` has the type `string`.'],
    ['Why does fill count?', 'Keeps rows.'],
    ['Write a test for fill', 'Counts them.'],
    ['Show me an example', 'You\'re welcome!'],
    ['Can you make it faster?', 'I am a small model that runs locally. I am good at completing circles.'],
  ])('%s', (question, answer) => expect(answered(question, answer)).toBe(BEYOND));

  it('without a file there is nothing to describe', () => {
    const { shape } = prepareChat(layout, { docs: [], messages: [{ role: 'user', content: 'Explain recursion' }] });
    expect(shown(shape, 'A function that recurs.')).toBe(BEYOND);
    const withCode = prepareChat(layout, { docs: [], messages: [{ role: 'user', content: 'Explain:\n```ts\nf();\n```' }] });
    expect(shown(withCode.shape, 'Calls it.')).toBe('Calls it.');
  });
});

describe('all else is shown as it is written', () => {
  it.each([
    ['What does fill do?', 'Counts them. It returns a number, and `rows` stay.'],
    ['what is it for', 'It takes rows and counts. `fill`, too.'],
    ['Write a docstring for fill', '```ts\n/**\n * This file defines `x`. It takes `rows`.\n */\n```'],
    ['thanks', 'You\'re welcome!'],
    ['ok, obrigado', 'De nada!'],
    ['Where is `gone`, or not?', 'There is no `gone` in src/a.ts.'],
  ])('%s', (question, answer) => expect(answered(question, answer)).toBe(answer));

  it('code that is asked about may be described', () => {
    const snippets = [{ path: 'src/a.ts', text: 'f();', startLine: 3 }];
    expect(shown(prepareChat(layout, { docs: [doc], snippets, messages: [{ role: 'user', content: 'And this?' }] }, undefined, tell).shape, 'Calls it.')).toBe('Calls it.');
  });
});

test('of a summary the list is the file’s own', () => {
  const { shape } = prepareSummarize(layout, doc, undefined, undefined, tell);
  expect(shown(shape, 'Keeps rows. It defines the class `Gone` and the function `fill`.')).toMatch(/^Keeps rows\. This file defines the class `Store`;/);
  expect(shown(shape, 'This file defines the function `gone`.')).toMatch(/^This file defines the class `Store`;/);
  // Where no facts are known.
  const without = prepareSummarize(layout, doc).shape;
  expect(shown(without, 'Keeps rows. It defines the class `Gone`.')).toBe('Keeps rows.');
  expect(without('This file defines the class `Gone`.', true)).toMatchObject({ text: '', note: 'the model had nothing to say of it' });
  const symbol = prepareSummarize(layout, doc, { start: TEXT.indexOf('export function'), end: TEXT.length, label: 'fill' }, undefined, tell).shape;
  expect(shown(symbol, 'Counts them. It takes `gone`.')).toBe('Counts them. `fill` is declared in line 8: `function fill(rows)`.');
});

test('whatever is written, nothing that was shown is taken back, and no fact but the files’ own is shown', () => {
  const words = fc.constantFrom('`fill`', '`gone`', ' takes ', ' takes no parameters', ' returns ', 'It takes ', 'It returns ', 'It defines the ', 'This file ', 'defines ', 'Yes: ', 'Counts.', '. ', '\n', ' ', '`', '```', 'It ', 'There is no ', ' in src/a.ts', 'x');
  fc.assert(
    fc.property(fc.array(words, { maxLength: 12 }), fc.boolean(), (parts, mayDescribe) => {
      const answer = parts.join('');
      const shape = inOwnWords(withoutDenial(shapeAnswer, [], ['Is there `fill`?']), { mayDescribe, instead: ({ name }) => (name === 'fill' ? 'FACT' : ''), beyond: { text: 'BEYOND', stop: true, source: 'stock' } });
      const text = shown(shape, answer);
      const prose = text.split(/^```/m)[0] as string;
      expect(claimIn(prose.replace('FACT', ''), true).claim).toBeUndefined();
    }),
    { numRuns: 5000 },
  );
});

test('the question that a claim answers', () => {
  expect(questionOf({ kind: 'parameters', name: 'Store.flush(force)', text: '' }, undefined, 'en')).toMatchObject({ kind: 'parameters', name: 'flush', owner: 'Store' });
  expect(questionOf({ kind: 'signature', name: undefined, text: '' }, undefined, 'en')).toBeUndefined();
});

test.each([
  ['Explain fill', true], ['what does this function do', true], ['What is this for?', true], ['what is fill', true], ['How does it work?', true], ['give me an overview', true], ['tl;dr', true], ['O que faz isto?', true], ['Resuma', true], ['para que serve?', true], ['como isso funciona', true],
  ['What does this return?', false], ['Why?', false], ['Is it fast?', false], ['Write a test', false], ['make it faster', false], ['Which function is slow?', false], ['Por que?', false], ['Traduza para Python', false],
])('asks what code does: %s', (message, expected) => expect(asksToDescribe(message)).toBe(expected));
