/** What files answer by themselves beyond a fact of one of them: that they are empty, names in another case, and several files at once. */
import { beforeAll, describe, expect, it, onTestFinished, test, vi } from 'vitest';
import { Parser } from 'web-tree-sitter';
import { emptyAnswer } from '../../../engine/facts/emptyFiles.ts';
import { factAsked } from '../../../engine/facts/factQuestion.ts';
import { askedOfFiles } from '../../../engine/facts/factFiles.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { askFact, askFiles, loadGrammars } from '../../support/askFact.ts';

beforeAll(loadGrammars, 60_000);

const SOURCE = `import { read } from './read';

/** Reads a file's rows. */
export function parseFile(path: string, deep = true): string[] {
  const total = read(path);
  return total;
}
export class RowStore extends Base {
  flush(force = false) {}
}
export class Total {}
namespace Geo {}
interface Row { id: number }
const LIMIT = 3, total = 4;
`;

describe('a file without code', () => {
  const COMMENTS = '// parseFile comes here\n/* later */\n';
  it.each([
    ['What does this file define?', '', '`src/a.ts` is empty: it defines nothing.'],
    ['Which functions does this file define?', ' \r\n\t\n', '`src/a.ts` is empty: it defines nothing.'],
    ['What does this file import?', '', '`src/a.ts` is empty: it imports nothing.'],
    ['what does a.ts export?', '', '`src/a.ts` is empty: it exports nothing.'],
    ['where is parseFile defined', '', '`src/a.ts` is empty: it defines nothing.'],
    ['where is foo defined', '', '`src/a.ts` is empty: it defines nothing.'],
    ['O que este arquivo define?', '', '`src/a.ts` está vazio: não define nada.'],
    ['Quais módulos este arquivo importa?', '', '`src/a.ts` está vazio: não importa nada.'],
    ['O que este arquivo exporta?', '', '`src/a.ts` está vazio: não exporta nada.'],
    ['What does this file define?', COMMENTS, '`src/a.ts` has only comments: it defines nothing.'],
    ['where is parseFile defined?', COMMENTS, '`src/a.ts` has only comments: it defines nothing.'],
    ['Quais funções este arquivo define?', COMMENTS, '`src/a.ts` só tem comentários: não define nada.'],
    // The comments may say it.
    ['What is this file for?', COMMENTS, undefined],
    // Of a language or a library, or of anything.
    [
      'explain recursion',
      '',
      '`recursion` does not stand in `src/a.ts`. This model knows only what stands in the file.',
    ],
    ['Explique recursão', COMMENTS, '`recursão` não está em `src/a.ts`. Este modelo só sabe o que está no arquivo.'],
    ['what is React for?', '', '`React` does not stand in `src/a.ts`. This model knows only what stands in the file.'],
    [
      'what does Array.prototype.flat do?',
      '',
      '`prototype.flat` does not stand in `src/a.ts`. This model knows only what stands in the file.',
    ],
    [
      'what parameters does Math.max take?',
      '',
      'There is no `Math.max` in `src/a.ts`. This model knows only what stands in the file.',
    ],
    ['what does parseFile do?', '', '`src/a.ts` is empty: it defines nothing.'],
    ['what does the function parse do?', '', '`src/a.ts` is empty: it defines nothing.'],
  ])('%s', async (question, text, expected) => expect(await askFact(question, text, 'src/a.ts')).toBe(expected));

  it('in Python, and in a language without facts', async () => {
    expect(await askFact('Which classes are defined?', '# later\n', 'a.py')).toBe(
      '`a.py` has only comments: it defines nothing.',
    );
    expect(await askFact('Which functions does this file define?', '\n', 'src/main.rs')).toBe(
      '`src/main.rs` is empty: it defines nothing.',
    );
  });

  it.each([
    'What is this file for?',
    'What does this define?',
    'What does this import?',
    'Summarize this file',
    'Explain the code',
    'explain',
    'What does it do?',
    'What is in a.ts?',
    'Are there any bugs?',
    'Which functions are unused?',
    'Is anything wrong here?',
    'Write a docstring for this file.',
    'Give me a summary of the file.',
  ])('there is nothing to answer from: %s', (question) =>
    expect(empty(question)).toBe('`src/a.ts` is empty: there is nothing in it to answer from.'),
  );
  it.each([
    'Para que serve este arquivo?',
    'Resuma o arquivo',
    'explique',
    'O que há aqui?',
    'O que tem em a.ts?',
    'Quais funções estão erradas?',
    'Faça um resumo deste arquivo',
  ])('não há: %s', (question) =>
    expect(empty(question)).toBe('`src/a.ts` está vazio: não há nele de onde tirar uma resposta.'),
  );

  it.each([
    'Write a function that reverses a string',
    'How do I sort an array in this file?',
    'Create a class Stack in this file',
    'What is a closure?',
    'Hello',
    'Add a test here',
    'What does Array.prototype.flat do?',
    'Escreva uma função que soma dois números',
    'Crie uma classe Pilha neste arquivo',
    'O que é uma closure?',
    'Como faço um laço aqui?',
    `What is this file for? ${'Say it at length. '.repeat(20)}`,
  ])('asked for something else: %s', (question) => expect(empty(question)).toBeUndefined());

  it('only where nothing else is there to answer from', () => {
    const [blank, full] = [new SourceDocument('a', 'src/a.ts', '\n'), new SourceDocument('b', 'src/b.ts', 'f();')];
    const ask = (docs: SourceDocument[], ...more: [] | [string]) =>
      emptyAnswer(
        [
          ...more.map((content) => ({ role: 'assistant', content }) as const),
          { role: 'user', content: 'What is this file for?' },
        ],
        docs,
      );
    expect(ask([blank])).toContain('is empty');
    expect(ask([blank, new SourceDocument('c', 'src/c.ts', '')])).toBe(
      '`src/a.ts` and `src/c.ts` are empty: there is nothing in them to answer from.',
    );
    expect(ask([blank, full])).toBeUndefined();
    expect(ask([])).toBeUndefined();
    expect(ask([blank], 'It is empty.')).toContain('is empty');
    expect(ask([blank], 'Like this:\n```ts\nf();\n```')).toBeUndefined();
    expect(
      askedOfFiles(
        [{ role: 'user', content: 'What is this file for?' }],
        [blank],
        [{ path: 'src/b.ts', text: 'f();' }],
      ),
    ).toBeUndefined();
    expect(
      askedOfFiles(
        [{ role: 'user', content: 'What is this file for?' }],
        [blank],
        [{ path: 'src/a.ts', text: 'f();', startLine: 1 }],
      ),
    ).toBeUndefined();
  });

  function empty(question: string): string | undefined {
    const doc = new SourceDocument('a', 'src/a.ts', '');
    return emptyAnswer([{ role: 'user', content: question }], [doc]);
  }
});

test('all that a file defines', async () => {
  expect(await askFact('What does this file define?', SOURCE, 'src/a.ts')).toBe(
    'This file defines the classes `RowStore` (line 8) and `Total` (line 11); the function `parseFile` (line 4); the type `Row` (line 13); the namespace `Geo` (line 12); the variables `LIMIT` (line 14) and `total` (line 14).',
  );
  expect(await askFact('o que é definido aqui?', 'class A: pass\nx = 1\n', 'a.py')).toBe(
    'Este arquivo define a classe `A` (linha 1); a variável `x` (linha 2).',
  );
  expect(await askFact('list the definitions', 'f();\n', 'a.ts')).toBe('This file defines nothing at its top level.');
  expect(await askFact('what is defined here?', 'class A {}\nconst x = ;\n', 'a.ts')).toMatch(
    /^This file defines the class `A` \(line 1\).*there may be more\.$/,
  );
});

describe('lists by what is asked for', () => {
  const TEXT = `const LIMIT = 3, run = () => {};
let count = 0;
export const { first } = pair;
interface Row { id: string }
enum Mode { on }
type Rows = Row[];
async function load() {}
class Store { async flush() {} plain() {} }
function outer() { const inner = async () => {}; const HIDDEN = 1; }
`;
  const CLASSES = 'This file defines the class `Store` (line 8).';
  const NOT_LISTED = 'Functions and classes that a constant holds, and constants inside functions, are not listed.';
  it.each<[string, string | undefined]>([
    ['What classes?', CLASSES],
    ['quais classes?', 'Este arquivo define a classe `Store` (linha 8).'],
    ['Are there any classes?', CLASSES],
    [
      'list all classes and functions',
      'This file defines the class `Store` (line 8); the functions `run` (line 1), `load` (line 7) and `outer` (line 9). Inside others it defines `inner` (line 9).',
    ],
    ['liste as classes e os enums', 'Este arquivo define a classe `Store` (linha 8); o enum `Mode` (linha 5).'],
    [
      'does this file have functions?',
      'This file defines the functions `run` (line 1), `load` (line 7) and `outer` (line 9). Inside others it defines `inner` (line 9).',
    ],
    ['Este arquivo tem classes?', 'Este arquivo define a classe `Store` (linha 8).'],
    ['há enums neste arquivo?', 'Este arquivo define o enum `Mode` (linha 5).'],
    ['which interfaces does this file define?', 'This file defines the interface `Row` (line 4).'],
    ['What enums are there?', 'This file defines the enum `Mode` (line 5).'],
    ['quais interfaces este arquivo define?', 'Este arquivo define a interface `Row` (linha 4).'],
    ['What types are there?', 'This file defines the types `Row` (line 4), `Mode` (line 5) and `Rows` (line 6).'],
    [
      'what constants does this file define?',
      `This file defines the constants \`LIMIT\` (line 1) and \`first\` (line 3). ${NOT_LISTED}`,
    ],
    [
      'Quais constantes este arquivo define?',
      'Este arquivo define as constantes `LIMIT` (linha 1) e `first` (linha 3). Funções e classes em constantes e constantes de funções não são listadas.',
    ],
    ['which functions are async?', '`load` (line 7), `Store.flush` (line 8) and `inner` (line 9) are `async`.'],
    [
      'how many functions does this file define',
      'This file defines 3 functions: `run` (line 1), `load` (line 7) and `outer` (line 9). Inside others it defines `inner` (line 9).',
    ],
    [
      'quantas funções tem este arquivo?',
      'Este arquivo define 3 funções: `run` (linha 1), `load` (linha 7) e `outer` (linha 9). Dentro de outras definições há `inner` (linha 9).',
    ],
    ['how many classes are there', CLASSES],
    ['list the async functions', '`load` (line 7), `Store.flush` (line 8) and `inner` (line 9) are `async`.'],
    ['Quais funções são assíncronas?', '`load` (linha 7), `Store.flush` (linha 8) e `inner` (linha 9) são `async`.'],
    // Of one name, or by what a tree does not tell.
    ['which functions are slow?', undefined],
    ['Which enums and interfaces are unused?', undefined],
    ['what does the async function do?', undefined],
  ])('%s', async (question, expected) => expect(await askFact(question, TEXT, 'src/a.ts')).toBe(expected));

  it.each<[string, string | undefined]>([
    [
      'What constants does this file define?',
      'This file defines the constant `LIMIT` (line 1). Functions and classes that a constant holds, and constants inside functions, are not listed. In Python these are, by custom, names in capitals.',
    ],
    ['Which functions are async?', '`load` (line 3) is `async`.'],
    ['Which interfaces does this file define?', undefined],
    ['Which enums are there?', undefined],
  ])('in Python: %s', async (question, expected) =>
    expect(await askFact(question, 'LIMIT = 3\ncount = 1\nasync def load(): ...\nclass A: pass\n', 'src/a.py')).toBe(
      expected,
    ),
  );

  it('two words ask on where something was said before', async () => {
    expect(
      await askFiles(
        'What classes?',
        { 'src/a.ts': TEXT },
        {
          earlier: [
            { role: 'user', content: 'Hi' },
            { role: 'assistant', content: 'Hello.' },
          ],
        },
      ),
    ).toBeUndefined();
  });

  it('without one, and among errors', async () => {
    expect(await askFact('Which functions are async?', 'f();\n', 'a.ts')).toBe(
      'No function or method that this file defines is `async`.',
    );
    expect(await askFact('Which classes and enums are there?', 'class A {}\nconst x = ;\n', 'a.ts')).toMatch(
      /class `A` \(line 1\)\. This file defines no enums.* there may be more\.$/,
    );
  });
});

describe('more than anybody reads', () => {
  const many = (numFunctions: number) =>
    Array.from({ length: numFunctions }, (_, i) => `export function f${i}() {}\n`).join('');
  const TWENTY = Array.from({ length: 20 }, (_, i) => `\`f${i}\` (line ${i + 1})`).join(', ');
  it.each([
    ['Which functions does this file define?', `This file defines 3000 functions: ${TWENTY} and 2980 more.`],
    ['What does this file define?', `This file defines the functions ${TWENTY} and 2980 more.`],
    ['Which functions are exported?', `This file exports the functions ${TWENTY} and 2980 more.`],
    [
      'Quais funções este arquivo define?',
      `Este arquivo define 3000 funções: ${TWENTY.replaceAll('line', 'linha')} e mais 2980.`,
    ],
  ])('%s', async (question, expected) => expect(await askFact(question, many(3000), 'src/a.ts')).toBe(expected));

  it('of one name the first place is said, in the order of the file', async () => {
    expect(
      await askFact('Which functions are defined?', 'function b(): void;\nfunction a() {}\nfunction b() {}\n', 'a.ts'),
    ).toBe('This file defines the functions `b` (line 1) and `a` (line 2).');
  });

  it('sixty are all named', async () => {
    expect(await askFact('Which functions are defined?', many(60), 'src/a.ts')).toMatch(
      /^This file defines the functions `f0` .*`f58` \(line 59\) and `f59` \(line 60\)\.$/,
    );
  });
});

test('where something is, in as few words', async () => {
  expect(await askFact('where is flush?', SOURCE, 'src/a.ts')).toBe(
    '`flush` is defined in line 9: `flush(force = false) {}`.',
  );
  expect(await askFact('onde está flush', SOURCE, 'src/a.ts')).toBe(
    'A definição de `flush` está na linha 9: `flush(force = false) {}`.',
  );
  expect(await askFact('what is the value of LIMIT?', SOURCE, 'src/a.ts')).toBe(
    '`LIMIT` is defined in line 14: `const LIMIT = 3, total = 4;`.',
  );
  expect(await askFact('qual é o valor de LIMIT?', SOURCE, 'src/a.ts')).toBe(
    'A definição de `LIMIT` está na linha 14: `const LIMIT = 3, total = 4;`.',
  );
  expect(await askFact('what is the value of testing?', SOURCE, 'src/a.ts')).toBe(
    '`testing` does not stand in `src/a.ts`. This model knows only what stands in the file.',
  );
  expect(await askFact('where is everybody', SOURCE, 'src/a.ts')).toBe(
    '`everybody` does not stand in `src/a.ts`. This model knows only what stands in the file.',
  );
  expect(await askFact('where is the total?', SOURCE, 'src/a.ts')).toBeUndefined();
  // Below a list, not at the end of its last item.
  expect(
    await askFact(
      'where is go',
      'class A { go() {} }\nclass B { go() {} }\nclass C { go() {} }\nfunction f(go) {}\n',
      'a.ts',
    ),
  ).toMatch(/`class C { go\(\) {} }`\n\nVariables/);
});

describe('a name in another case', () => {
  it.each([
    [
      'where is parsefile defined',
      '`parseFile` is defined in line 4: `export function parseFile(path: string, deep = true): string[] {`.',
    ],
    [
      'Where is `PARSEFILE` defined?',
      '`parseFile` is defined in line 4: `export function parseFile(path: string, deep = true): string[] {`.',
    ],
    ['what parameters does ParseFile take?', '`parseFile` takes `path` and `deep` (line 4).'],
    ['what does parsefile do', "The comment of `parseFile` (line 4) says:\n\n> Reads a file's rows."],
    [
      'what methods does rowstore have',
      '`RowStore` has the method `flush` (from line 8), besides those that it inherits.',
    ],
    ['what parameters does rowstore.flush take', '`flush` takes `force` (line 9).'],
    ['what is the default of Deep in parseFile', '`deep` defaults to `true` (line 4).'],
    [
      'onde está definida a função parsefile?',
      'A definição de `parseFile` está na linha 4: `export function parseFile(path: string, deep = true): string[] {`.',
    ],
    ['where is READ defined', '`read` is imported from `./read` (line 1).'],
    // Whether there is one of exactly that name is another question.
    ['is there a function called parsefile?', 'There is no `parsefile` in `src/a.ts`. There is `parseFile` (line 4).'],
    // What is called so exactly is meant; of two that are called so but for their case neither is.
    ['what is the base class of total', undefined],
    ['Where is `TOTAL` defined?', 'There is no `TOTAL` in `src/a.ts`. There is `Total` (line 11).'],
    ['where is parsefiles defined', 'There is no `parsefiles` in `src/a.ts`.'],
  ])('%s', async (question, expected) => expect(await askFact(question, SOURCE, 'src/a.ts')).toBe(expected));

  it('is not meant where code in the conversation has that name', async () => {
    const earlier = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: 'Like:\n```\nfunction parsefile() {}\n```' },
    ] as const;
    expect(await askFiles('where is parsefile defined', { 'src/a.ts': SOURCE }, { earlier })).toBeUndefined();
  });
});

describe('of several files', () => {
  const FILES = {
    'src/a.ts': SOURCE,
    'lib/b.js': "const fs = require('fs');\nclass Queue {\n  push(item) {}\n}\nfunction drain() {}\n",
    'src/none.ts': '',
  };
  it.each([
    [
      'which classes are defined',
      '`src/a.ts` defines the classes `RowStore` (line 8) and `Total` (line 11).\n\n`lib/b.js` defines the class `Queue` (line 2).\n\n`src/none.ts` is empty: it defines nothing.',
    ],
    [
      'Which functions do these files define?',
      '`src/a.ts` defines the function `parseFile` (line 4).\n\n`lib/b.js` defines the function `drain` (line 5).\n\n`src/none.ts` is empty: it defines nothing.',
    ],
    [
      'what do both files import?',
      '`src/a.ts` imports `./read` (line 1).\n\n`lib/b.js` imports `fs` (line 1).\n\n`src/none.ts` is empty: it imports nothing.',
    ],
    [
      'Quais classes estes arquivos definem?',
      '`src/a.ts` define as classes `RowStore` (linha 8) e `Total` (linha 11).\n\n`lib/b.js` define a classe `Queue` (linha 2).\n\n`src/none.ts` está vazio: não define nada.',
    ],
    [
      'quais tipos há em cada arquivo?',
      '`src/a.ts` define o tipo `Row` (linha 13).\n\n`lib/b.js` não define tipos no nível do arquivo.\n\n`src/none.ts` está vazio: não define nada.',
    ],
    // The one that is named.
    ['which classes are in b.js', 'This file defines the class `Queue` (line 2).'],
    [
      'which classes are defined in a.ts and b.js?',
      '`src/a.ts` defines the classes `RowStore` (line 8) and `Total` (line 11).\n\n`lib/b.js` defines the class `Queue` (line 2).',
    ],
    // Those that define what is named.
    ['what parameters does push take?', '`lib/b.js`: `push` takes `item` (line 3).'],
    [
      'where is rowstore defined',
      '`src/a.ts`: `RowStore` is defined in line 8: `export class RowStore extends Base {`.',
    ],
    ['what does this do?', undefined],
    // What one takes from another, or others from it.
    ['What does a.ts import from b.js?', undefined],
    ['What is imported from b.js?', undefined],
    ['o que é importado de b.js?', undefined],
    [
      'what can be imported from a.ts?',
      'This file exports `parseFile` (line 4), `RowStore` (line 8) and `Total` (line 11).',
    ],
  ])('%s', async (question, expected) => expect(await askFiles(question, FILES)).toBe(expected));

  it.each([
    ['how many lines does this file have?', { 'a.ts': 'a();\nb();\n' }, 'This file has 2 lines.'],
    ['How many lines are there in this file?', { 'a.ts': 'a();\r\nb();' }, 'This file has 2 lines.'],
    ['how long is this file?', { 'src/a.rs': 'fn main() {}\n' }, 'This file has 1 line.'],
    ['how many lines does it have', { 'a.ts': '' }, 'This file has 0 lines.'],
    ['Quantas linhas tem este arquivo?', { 'a.ts': '// a\n\n' }, 'Este arquivo tem 2 linhas.'],
    [
      'how many lines do these files have?',
      { 'a.ts': 'a();\n', 'b.md': '# b\n\nb' },
      '`a.ts` has 1 line.\n\n`b.md` has 3 lines.',
    ],
    [
      'quantas linhas há em cada arquivo?',
      { 'a.ts': 'a();\n', 'b.md': '# b\n\nb' },
      '`a.ts` tem 1 linha.\n\n`b.md` tem 3 linhas.',
    ],
  ] as const)('%s', async (question, files, expected) => expect(await askFiles(question, files)).toBe(expected));

  it('what one defines others import and call', async () => {
    const files = {
      'src/a.ts': 'export function add() {}\n',
      'src/b.ts': "import { add } from './a';\nadd();\n",
      'src/c.ts': 'f();\n',
    };
    expect(await askFiles('where is add called', files)).toBe(
      '`src/a.ts`: `add` is not called in this file.\n\n`src/b.ts`: `add` is called in line 2: `add();`.',
    );
    expect(await askFiles('where is add imported', files)).toBe(
      '`src/a.ts`: `add` is not imported. `add` is defined in line 1: `export function add() {}`.\n\n`src/b.ts`: `add` is imported from `./a` (line 1).',
    );
    expect(await askFiles('where is `gone` called', files)).toMatch(/^There is no `gone` in `src\/a\.ts`\.\n\n/);
    expect(await askFiles('does b.ts import a.ts', files)).toBeUndefined();
  });

  it('what none of them has, and what one of them leaves open', async () => {
    const files = { 'src/a.ts': SOURCE, 'lib/b.js': 'class Queue {}\n' };
    expect(await askFiles('where is `drainAll` defined?', files)).toBe(
      'There is no `drainAll` in `src/a.ts`.\n\nThere is no `drainAll` in `lib/b.js`.',
    );
    expect(await askFiles('which classes are defined', { ...files, 'src/main.rs': 'struct A;\n' })).toBeUndefined();
  });

  it('of attached files that are not open, but not of a part of one', async () => {
    const file = { 'src/a.ts': 'class A {}\n' };
    expect(
      await askFiles('which classes are defined', file, { snippets: [{ path: '/w/src/b.ts', text: 'class B {}\n' }] }),
    ).toBe('`src/a.ts` defines the class `A` (line 1).\n\n`src/b.ts` defines the class `B` (line 1).');
    expect(
      await askFiles('which classes are defined', file, {
        snippets: [{ path: '/w/src/b.ts', text: 'class B {}\n', startLine: 3 }],
      }),
    ).toBeUndefined();
    expect(
      await askFiles(
        'which classes are defined',
        Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`src/${i}.ts`, 'class A {}\n'])),
      ),
    ).toBeUndefined();
  });

  it('of as many as there may be, each parsed once: a tree that was not kept would be made while nobody else gets a turn', async () => {
    const parse = vi.spyOn(Parser.prototype, 'parse');
    onTestFinished(() => parse.mockRestore());
    expect(
      await askFiles(
        'where is `drainAll` defined?',
        Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`src/${i}.ts`, `class A${i} {}\n`])),
      ),
    ).toContain('`src/7.ts`');
    expect(parse).toHaveBeenCalledTimes(8);
  });

  it('in the order given, those that are named', () => {
    const docs = ['src/a.ts', 'src/b.ts', 'src/ab.ts'].map((path) => new SourceDocument(path, path, ''));
    const asked = (content: string) => factAsked([{ role: 'user', content }], docs)?.documents.map(({ path }) => path);
    expect(asked('which classes are there?')).toEqual(['src/a.ts', 'src/b.ts', 'src/ab.ts']);
    expect(asked('which classes are there in b.ts?')).toEqual(['src/b.ts']);
    expect(asked('which classes are there in `src/ab.ts`?')).toEqual(['src/ab.ts']);
    expect(asked('which classes are there in c.ts?')).toBeUndefined();
  });
});
