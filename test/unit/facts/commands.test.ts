/** `/outline`, `/where`, `/signature`, `/imports` and `/callers` are answered from the attached files. */
import { beforeAll, describe, expect, it, test } from 'vitest';
import { factsAsked } from '../../../engine/facts/ask.ts';
import { FACT_COMMANDS } from '../../../engine/facts/questions.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { MAX_TREES } from '../../../engine/text/syntax/syntaxTrees.ts';
import { isFactCommand } from '../../../engine/protocol/slash.ts';
import { ask, known, loadGrammars } from './askFacts.ts';

beforeAll(loadGrammars, 60_000);

const SHOP = `import { Money } from './money';
export class Basket {
  add(item: string): void {}
}
const RATE = 3;
new Basket().add('x');
`;
const FILES = { 'src/shop.ts': SHOP };

test('the answer has a note that it comes from the code', async () => {
  expect(await known('/where RATE', FILES)).toEqual({
    text: '`RATE` is defined on line 5: `const RATE = 3;`.',
    note: 'from the code of src/shop.ts, not written by the model',
    source: 'files',
  });
});

test.each([
  ['/where Basket.add', '`Basket.add` is defined on line 3: `add(item: string): void {}`.'],
  ['/where `add()`', '`Basket.add` is defined on line 3: `add(item: string): void {}`.'],
  ['/WHERE RATE ', '`RATE` is defined on line 5: `const RATE = 3;`.'],
  ['/callers add', 'Callers of `add`:\n\n- outside functions (line 6): `….add`'],
  ['/where Gone.add', '`Basket.add` is defined on line 3: `add(item: string): void {}`.'],
  ['/where Basket.gone', '`gone` does not appear in `src/shop.ts`.'],
  ['/where item', '`item` appears on line 3: `add(item: string): void {}`.'],
])('%s', async (command, answer) => expect(await ask(command, FILES)).toBe(answer));

test('callers are named with their lines, and code outside functions is told apart', async () => {
  const text = `import { load } from './a';
class Shop {
  stock = load(1);
  restock() {
    [2].forEach((n) => load(n));
    load(3);
  }
}
const sell = () => load(4);
load(5);
`;
  expect(await ask('/callers load', { 'a.ts': text })).toBe(
    'Callers of `load`: `Shop` (line 3), `Shop.restock` (line 5, line 6), `sell` (line 9), outside functions (line 10).',
  );
  const python = 'def load(): pass\ndef outer():\n    def inner():\n        load()\n    load()\nload()\n';
  expect(await ask('/callers load', { 'a.py': python })).toBe(
    'Callers of `load`: `inner` (line 4), `outer` (line 5), outside functions (line 6).',
  );
});

test('structs and enums of other languages are types', async () => {
  const types = 'Types: `Job` (line 2).';
  expect(await ask('/outline', { 'a.go': 'package a\ntype Job struct{}\n' })).toBe(`Outline of \`a.go\`:\n\n${types}`);
  expect(await ask('Which classes are there?', { 'a.go': 'package a\ntype Job struct{}\n' })).toBe(
    'Types of `a.go`: `Job` (line 2).',
  );
  expect(await ask('Which classes are there?', { 'a.go': 'package a\ntype Celsius float64\n' })).toBe(
    'Types of `a.go`: `Celsius` (line 2).',
  );
  expect(await ask('Which enums are there?', { 'a.py': 'class Color(Enum): pass\n' })).toBe(
    'Outline of `a.py`:\n\nClasses: `Color` (line 1).',
  );
});

test('a command without a name, or with several, asks for one', async () => {
  for (const command of ['/where', '/signature  ', '/callers add and more'])
    expect(await known(command, FILES)).toMatchObject({
      text: expect.stringMatching(/^Which name\?/),
      source: 'stock',
    });
});

test('without a file the answer asks for one', async () => {
  for (const command of ['/outline', '/imports', '/where x'])
    expect(await known(command, {})).toEqual({
      text: 'No file is attached. Open or attach one.',
      source: 'unattached',
    });
});

test('other messages that begin with a slash are no commands', () => {
  for (const message of ['/outlines', '/etc/hosts', 'where x', '/summarize', '/where/x', 'see /where x'])
    expect([
      isFactCommand(message),
      factsAsked({ messages: [{ role: 'user', content: message }], docs: [] }, 'en', true),
    ]).toEqual([false, undefined]);
  for (const command of Object.keys(FACT_COMMANDS)) expect(isFactCommand(`/${command} x`)).toBe(true);
});

test('what is not read in a language is named, and the text is searched', async () => {
  const files = { 'main.go': 'package main\nfunc run() {}\n' };
  const none = 'Kvasir cannot read this from `main.go`.';
  expect(await ask('/outline', files)).toBe('Outline of `main.go`:\n\nFunctions: `run` (line 2).');
  expect(await ask('/where run', files)).toBe('`run` is defined on line 2: `func run() {}`.');
  expect(await ask('/imports', files)).toBe(none);
  expect(await ask('/signature run', files)).toBe('The signature of `run` is on line 2: `func run()`.');
  expect(await known('/where gone', { 'main.txt': 'run' })).toMatchObject({
    text: '`gone` does not appear in `main.txt`.',
    note: 'from the code of main.txt, not written by the model',
  });
  expect(await ask('/outline', { 'main.txt': 'run' })).toBe(none.replace('main.go', 'main.txt'));
});

test('a file that is too long for a tree is said to be', async () => {
  const files = { 'a.ts': `const a = 1;\n${'// A comment.\n'.repeat(40_000)}` };
  expect(await ask('/outline', files)).toBe('`a.ts` is too long to be read for this.');
  expect(await ask('/where a', files)).toBe('`a` appears on line 1: `const a = 1;`.');
});

test('an empty file defines and imports nothing', async () => {
  expect(await ask('/outline', { 'a.ts': '\n' })).toBe('`a.ts` defines nothing at its top level.');
  expect(await ask('/imports', { 'a.ts': '\n' })).toBe('Imports of `a.ts`: none.');
});

describe('of several files', () => {
  const TWO = {
    'src/a.py': 'import os\ndef load(): pass\nclass A: pass\n',
    'src/b.js': "const { load } = require('./a');\nload();\n",
  };
  it.each([
    ['/imports', 'Imports of `src/a.py`: `os` (line 1).\n\nImports of `src/b.js`: `./a` (line 1).'],
    [
      '/where load',
      '`src/a.py`: `load` is defined on line 2: `def load(): pass`.\n\n`src/b.js`: `load` is imported from `./a` (line 1).',
    ],
    ['/where A', '`src/a.py`: `A` is defined on line 3: `class A: pass`.'],
    ['/where gone', '`gone` does not appear in `src/a.py`, `src/b.js`.'],
  ])('%s', async (command, answer) => expect(await ask(command, TWO)).toBe(answer));

  it('attached files that are not open count, selections do not', async () => {
    const snippets = [
      { path: 'src/b.ts', text: 'export const other = 1;\n' },
      { path: 'src/c.ts', text: 'hidden();', startLine: 3 },
    ];
    expect(await ask('/where other', FILES, { snippets })).toBe(
      '`src/b.ts`: `other` is defined on line 1: `export const other = 1;`.',
    );
    expect(await ask('/where hidden', FILES, { snippets })).toBe(
      '`hidden` does not appear in `src/shop.ts`, `src/b.ts`.',
    );
  });

  it('too many files are refused with the limit', () => {
    const docs = Array.from({ length: MAX_TREES + 1 }, (_, i) => new SourceDocument(`${i}`, `src/${i}.ts`, 'a'));
    const asked = factsAsked({ messages: [{ role: 'user', content: '/where a' }], docs }, 'en', true);
    expect(asked?.documents).toEqual([]);
    expect(asked?.answer([], () => undefined)?.text).toBe(`Attach at most ${MAX_TREES} files for this.`);
  });
});

test('a command works with any model', () => {
  const docs = [new SourceDocument('a', 'src/a.ts', 'function run() {}\n')];
  const asked = (content: string) => factsAsked({ messages: [{ role: 'user', content }], docs }, 'en', false);
  expect(asked('/where run')).toBeDefined();
  expect(asked('Where is `run` defined?')).toBeUndefined();
});

test('answers are in Portuguese for a Portuguese user', async () => {
  const answers = [
    '/outline',
    '/imports',
    '/where RATE',
    '/where gone',
    '/signature add',
    '/callers add',
    '/where',
  ].map((command) => ask(command, FILES, { language: 'pt' }));
  expect(await Promise.all(answers)).toEqual([
    'Estrutura de `src/shop.ts`:\n\nClasses:\n\n- `Basket` (linha 2): `add` (linha 3)\n\nVariáveis: `RATE` (linha 5).',
    'Importações de `src/shop.ts`: `./money` (linha 1).',
    'A definição de `RATE` está na linha 5: `const RATE = 3;`.',
    '`gone` não aparece em `src/shop.ts`.',
    'A assinatura de `Basket.add` está na linha 3: `add(item: string): void`.',
    'Quem chama `add`:\n\n- fora de funções (linha 6): `….add`',
    'Que nome? Escreva `/where NOME`.',
  ]);
});
