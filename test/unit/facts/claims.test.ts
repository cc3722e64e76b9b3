/** What a small model says by itself is shown; the facts that it states are the files' own, or are not shown. */
import { readFacts } from '../../../engine/facts/extract/facts.ts';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { prepareChat, shapeAnswer, type Tell } from '../../../engine/tasks/chatTask.ts';
import { askedToDescribe, claimIn, inOwnWords, questionOf } from '../../../engine/facts/claims.ts';
import { isDenial, withoutDenial } from '../../../engine/facts/denial.ts';
import { answerOfFiles } from '../../../engine/facts/factFiles.ts';
import { headOf } from '../../../engine/facts/factPurpose.ts';
import { WORDS } from '../../../engine/facts/factWords.ts';
import { prepareSummarize } from '../../../engine/tasks/summarizeTask.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../engine/text/syntax/syntax.ts';
import { grammars, loadGrammars } from '../../support/askFact.ts';

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
const LIST =
  'This file defines the class `Store`; the function `fill`; the variables `A`, `B`, `C`, `D`, `E` and 2 more.';
const BEYOND = WORDS.en.beyond;
const doc = new SourceDocument('a', 'src/a.ts', TEXT);
const syntax = new Syntax(grammars);
const tell: Tell = (question) => answerOfFiles(question, [doc], (each) => readFacts(syntax, each));
let layout: Layout;

beforeAll(async () => {
  await loadGrammars();
  await syntax.prepare(doc);
  layout = new Layout(await ModelText.load(join(import.meta.dirname, '../../../model')), {
    contextTokens: 2048,
    numParameters: 7e6,
  });
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

const answered = (question: string, answer: string) =>
  shown(
    prepareChat(layout, { docs: [doc], messages: [{ role: 'user', content: question }] }, undefined, tell).shape,
    answer,
  );

describe('a fact is the files’ own', () => {
  it.each([
    ['Which ones go into fill?', '`fill` takes `wrong` and `gone`.', '`fill` takes `rows` (line 8).'],
    [
      'where might Store be?',
      '`Store` is defined here: `class Store {`',
      '`Store` is defined in line 3: `export class Store extends Map {`.',
    ],
    ['which thing comes out of flush?', '`flush` returns `string`.', '`flush` returns `number` (line 4).'],
    ['which class is above Store?', '`Store` extends `Set`.', '`Store` extends `Map` (line 3).'],
    ['what is flush part of?', '`flush` is a method of `Map`.', '`flush` is a method of `Store` (line 4).'],
    [
      'which things has Store?',
      '`Store` has `gone` and `flush`.',
      '`Store` has the method `flush` (from line 3), besides those that it inherits.',
    ],
    [
      'which number has force when nobody says one',
      '`force` defaults to `1`.',
      '`force` of `Store.flush` defaults to `false` (line 4).',
    ],
    [
      'what is in there',
      'This file defines `gone`.',
      'This file defines the class `Store`; the function `fill`; the variables `A`, `B`, `C`, `D`, `E` and 2 more.',
    ],
    ['which files does it need?', 'This file imports `gone`.', 'This file imports `node:fs` (line 1).'],
    ['que coisas entram em fill?', '`fill` recebe `gone`.', '`fill` recebe `rows` (linha 8).'],
    [
      'o que tem ali?',
      'Este ficheiro define `gone`.',
      'Este arquivo define a classe `Store`; a função `fill`; as variáveis `A`, `B`, `C`, `D`, `E` e mais 2.',
    ],
    // Behind what the model guesses.
    [
      'Explain fill',
      'Counts them. It takes `gone`. It returns `string`.',
      '`fill` is defined in line 8: `export function fill(rows) {`. No comment says what it does; the model guesses: Counts them. `fill` is declared in line 8: `function fill(rows)`.',
    ],
    // Of a file only what stands in it, and what it defines.
    ['summarise it', 'Rows that are kept. It defines the class `Gone`.', LIST],
    ['what does this file do?', 'Keeps rows. Of the moon.', `Keeps rows. ${LIST}`],
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
    ['Show me an example', "You're welcome!"],
    ['Write a docstring for fill', '```ts\n/** Keeps rows. */\n```'],
    ['explain how fill and Store work', 'Keeps rows.'],
    ['What is a good name for this file?', 'Keeps rows.'],
    ['Is flush async?', '`flush` takes `force`.'],
    ['Make it faster', 'This file defines `fill`.'],
    ['Can you make it faster?', 'I am a small model that runs locally. I am good at completing circles.'],
  ])('%s', (question, answer) => expect(answered(question, answer)).toBe(BEYOND));

  it('in Portuguese', () => expect(answered('Por que a função fill é lenta?', 'Counts.')).toBe(WORDS.pt.beyond));

  it('without a file there is nothing to describe', () => {
    const { shape } = prepareChat(layout, { docs: [], messages: [{ role: 'user', content: 'Explain recursion' }] });
    expect(shown(shape, 'A function that recurs.')).toBe(BEYOND);
    const withCode = prepareChat(layout, {
      docs: [],
      messages: [{ role: 'user', content: 'Explain:\n```ts\nf();\n```' }],
    });
    expect(shown(withCode.shape, 'Calls it.')).toBe('The model guesses: Calls it.');
  });

  it('a comment of something else is none of what is asked about', () => {
    expect(answered('What does fill do?', 'Keeps rows. And more.')).toBe(
      '`fill` is defined in line 8: `export function fill(rows) {`. No comment says what it does.',
    );
  });

  it('behind a denial, in a list, behind code', () => {
    expect(answered('Why is `gone` slow?', 'There is no `gone` in src/a.ts. It counts the moon.')).toBe(
      'There is no `gone` in src/a.ts.',
    );
    expect(answered('Explain fill', '- `fill` takes `gone`.\n- It returns `wrong`.')).toBe(
      '`fill` takes `rows` (line 8).',
    );
    expect(answered('Explain fill', 'Counts all of it.\n```ts\nx\n```\nIt takes `gone`.')).toMatch(
      /the model guesses: Counts all of it\.$/,
    );
  });
});

describe('all else is shown, as the guess that it is', () => {
  const GUESS =
    '`fill` is defined in line 8: `export function fill(rows) {`. No comment says what it does; the model guesses: ';
  it.each([
    ['What does fill do?', 'Counts them. It returns a number, and `rows` stay.', `${GUESS}Counts them.`],
    ['What does fill do?', 'Counts `rows`.', `${GUESS}Counts \`rows\`.`],
    [
      'What does fill do?',
      'Counts `export function gone() {`',
      '`fill` is defined in line 8: `export function fill(rows) {`. No comment says what it does.',
    ],
    ['What does fill do?', 'Counts them', `${GUESS}Counts them`],
    ['thanks', "You're welcome!", "You're welcome!"],
    ['ok, obrigado', 'De nada!', 'De nada!'],
    ['Where is `gone`, or not?', 'There is no `gone` in src/a.ts.', 'There is no `gone` in src/a.ts.'],
    ['what can you do?', 'I am good at completing circles.', WORDS.en.about],
    ['quem é você?', 'Sou.', WORDS.pt.about],
  ])('%s', (question, answer, expected) => expect(answered(question, answer)).toBe(expected));

  it('code that is asked about may be described', () => {
    const snippets = [{ path: 'src/a.ts', text: 'f();', startLine: 3 }];
    expect(
      shown(
        prepareChat(
          layout,
          { docs: [doc], snippets, messages: [{ role: 'user', content: 'And this?' }] },
          undefined,
          tell,
        ).shape,
        'Calls it.',
      ),
    ).toBe('The model guesses: Calls it.');
    // Also in the words of a comment in it.
    expect(
      shown(
        prepareChat(
          layout,
          { docs: [doc], snippets, messages: [{ role: 'user', content: 'And this?' }] },
          undefined,
          tell,
        ).shape,
        'Keeps rows.',
      ),
    ).toBe('The model guesses: Keeps rows.');
  });

  it('of a file in another language it says so', () => {
    const go = new SourceDocument('g', 'a.go', 'func add() {}\n');
    expect(
      shown(
        prepareChat(layout, { docs: [go], messages: [{ role: 'user', content: 'What does this file do?' }] }).shape,
        'Adds rows.',
      ),
    ).toBe(WORDS.en.otherLanguage);
  });
});

test('what a file says of itself goes before what the model says of it', async () => {
  const headed = new SourceDocument(
    'h',
    'src/h.ts',
    "/** Reads rows, one by one.\n *\n * More. */\nimport fs from 'node:fs';\nexport const a = 1;\n",
  );
  await syntax.prepare(headed);
  const ofIt: Tell = (question) => answerOfFiles(question, [headed], (each) => readFacts(syntax, each));
  const expected = 'Reads rows, one by one. This file defines the variable `a`.';
  for (const answer of ['The moon: a lowest-ordered moon.', 'This file defines `b`.', 'Reads rows, one by one.'])
    expect(shown(prepareSummarize(layout, headed, undefined, undefined, ofIt).shape, answer)).toBe(expected);
  expect(
    shown(
      prepareChat(layout, { docs: [headed], messages: [{ role: 'user', content: '/summarize' }] }, undefined, ofIt)
        .shape,
      'The moon.',
    ),
  ).toBe(expected);
});

test.each([
  ['a comment above an import', '/** Reads. */\nimport a from "a";\n', false, 'Reads.'],
  ['lines of one', '// Reads\n// rows.\n\nf();\n', false, 'Reads rows.'],
  ['behind a shebang', '#!/usr/bin/env node\n/* Reads it. */\n\nf();\n', false, 'Reads it.'],
  ['that of the first definition', '/** Keeps. */\nexport interface A {}\n', false, undefined],
  ['a licence', '/* Copyright of somebody. */\n\nf();\n', false, undefined],
  ['none', 'f();\n', false, undefined],
  ['a docstring', '#!/usr/bin/python\n# coding: utf-8\n"""Reads rows.\n\nMore.\n"""\nimport os\n', true, 'Reads rows.'],
  ['none in Python', 'x = """a"""\n', true, undefined],
])('the head of a file: %s', (_, text, isPython, expected) => expect(headOf(text, isPython)).toBe(expected));

test('of a summary the list is the file’s own', () => {
  const { shape } = prepareSummarize(layout, doc, undefined, undefined, tell);
  expect(shown(shape, 'Keeps rows. It defines the class `Gone` and the function `fill`.')).toBe(`Keeps rows. ${LIST}`);
  expect(shown(shape, 'Keeps rows.')).toBe(`Keeps rows. ${LIST}`);
  expect(shown(shape, 'This file defines the function `gone`.')).toBe(LIST);
  expect(shape('Keeps rows.', true)).toMatchObject({ source: 'files' });
  // Where no facts are known.
  const without = prepareSummarize(layout, doc).shape;
  expect(shown(without, 'Keeps rows. It defines the class `Gone`.')).toBe('Keeps rows.');
  expect(without('This file defines the class `Gone`.', true)).toMatchObject({
    text: '',
    note: 'the model had nothing to say of it',
  });
  const symbol = prepareSummarize(
    layout,
    doc,
    { start: TEXT.indexOf('export function'), end: TEXT.length, label: 'fill' },
    undefined,
    tell,
  ).shape;
  expect(shown(symbol, 'Counts them. It takes `gone`.')).toBe(
    'Counts them. `fill` is declared in line 8: `function fill(rows)`.',
  );
  expect(symbol('Counts them.', true).note).toBe('no comment says it: this is a guess of the model');
});

test('whatever is written, nothing that was shown is taken back, and no fact but the files’ own is shown', () => {
  const words = fc.constantFrom(
    '`fill`',
    '`gone`',
    ' takes ',
    ' takes no parameters',
    ' returns ',
    'It takes ',
    'It returns ',
    'It defines the ',
    'This file ',
    'defines ',
    'Yes: ',
    'Counts.',
    '. ',
    '\n',
    ' ',
    '`',
    '```',
    'It ',
    'There is no ',
    ' in src/a.ts',
    'x',
  );
  fc.assert(
    fc.property(fc.array(words, { maxLength: 12 }), fc.boolean(), (parts, isGuess) => {
      const answer = parts.join('');
      const shape = inOwnWords(withoutDenial(shapeAnswer, [], ['Is there `fill`?']), {
        describes: isGuess ? 'guess' : 'nothing',
        instead: ({ name }) => (name === 'fill' ? 'FACT' : ''),
        beyond: { text: 'BEYOND', stop: true, source: 'stock' },
      });
      const text = shown(shape, answer);
      const prose = text.split(/^```/m)[0] as string;
      expect(isDenial(prose) || claimIn(prose.replace('FACT', ''), true).claim === undefined).toBe(true);
    }),
    { numRuns: 5000 },
  );
});

test('of several of one name, that of a part of the text', async () => {
  const text =
    'class A {\n  /** One. */\n  go() {}\n}\nclass B {\n  /** Two. */\n  go() {}\n  // apart\n\n  stay() {}\n}\n';
  const both = new SourceDocument('b', 'src/b.ts', text);
  await syntax.prepare(both);
  const ask = (name: string, from: string) =>
    answerOfFiles(
      {
        kind: 'does',
        language: 'en',
        name,
        sure: true,
        brief: true,
        within: { start: text.indexOf(from), end: text.length },
      },
      [both],
      (each) => readFacts(syntax, each),
    );
  expect([ask('go', 'class A'), ask('go', 'class B'), ask('go', '// apart'), ask('stay', 'stay')]).toEqual([
    'One.\n\nTwo.',
    'Two.',
    undefined,
    undefined,
  ]);
});

test('the question that a claim answers', () => {
  expect(questionOf({ kind: 'parameters', name: 'Store.flush(force)' }, undefined, 'en')).toMatchObject({
    kind: 'parameters',
    name: 'flush',
    owner: 'Store',
  });
  expect(questionOf({ kind: 'signature', name: undefined }, undefined, 'en')).toBeUndefined();
});

test.each([
  ['Explain fill', 'code'],
  ['what does this function do', 'code'],
  ['What is this for?', 'file'],
  ['How does it work?', 'code'],
  ['overview', 'file'],
  ['tl;dr', 'file'],
  ['explain this file', 'file'],
  ['What does this module do?', 'file'],
  ['/summarize', 'file'],
  ['O que faz isto?', 'code'],
  ['Resuma', 'file'],
  ['O que faz este arquivo?', 'file'],
  ['para que serve?', 'code'],
  ['como isso funciona', 'code'],
  ['What does this return?', undefined],
  ['Why?', undefined],
  ['Is it fast?', undefined],
  ['Is the summary correct?', undefined],
  ['Write a test', undefined],
  ['Write a summary of this file', undefined],
  ['make it faster', undefined],
  ['Which function is slow?', undefined],
  ['What are the alternatives for this?', undefined],
  ['Por que?', undefined],
  ['Por que isso é lento?', undefined],
  ['Quero que você é', undefined],
  ['Traduza para Python', undefined],
])('asks what code does: %s', (message, expected) => expect(askedToDescribe(message)).toBe(expected));
