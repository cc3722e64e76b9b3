/** What a definition is for, as the comment above it or its docstring says, and whether there is one of a name. */
import { beforeAll, describe, expect, it } from 'vitest';
import { factAsked } from '../../../engine/facts/factQuestion.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { askFact, loadGrammars } from '../../support/askFact.ts';

beforeAll(loadGrammars, 60_000);

const TS = `import { read } from './read';
/**
 * Keeps orders until they are sent.
 * Two lines of it, see {@link Basket.send} and {@link read | reading}.
 *
 * More that is not quoted.
 * @example new Basket()
 */
@Injectable()
export class Basket {
  /** How many. */
  @Input()
  count = 0;

  // Sends what is there,
  // all of it.
  @Log('send')
  async send(to: string) {}
  @Input() label = '';
  plain() {} // Beside it.
  other() {}
}

/* Adds two numbers. */
export const add = (left: number, right = 1) => left + right;

// eslint-disable-next-line no-unused-vars
function bare(x) {}
// ---- Helpers ----
function section() {}
/** What is kept of one. */
// prettier-ignore
export interface Row { id: string }
/** @description Reads all of it. @param none */
function described() {}
/** @param to whom */
function tagged(to) {}
// TODO: write this
function unwritten() {}
// const old = 1;
function replaced() {}
/* Copyright of somebody. */
function licensed() {}

// Apart from it.

function apart() {}
/** Of one. */ export const one = 1, two = 2;
const three = 3,
  // Of four.
  four = 4;
/**
 ${'A sentence of it. '.repeat(60)}
 */
function long() {}
/** As text. */
function over(a: string): void;
/** As a number. */
function over(a: number): void;
function over(a: unknown) {}
`;

describe('TypeScript', () => {
  it.each<[string, string | RegExp | undefined]>([
    [
      'What does Basket do?',
      'The comment of `Basket` (line 10) says:\n\n> Keeps orders until they are sent. Two lines of it, see Basket.send and reading.',
    ],
    [
      'what is the class Basket for?',
      'The comment of `Basket` (line 10) says:\n\n> Keeps orders until they are sent. Two lines of it, see Basket.send and reading.',
    ],
    ['Explain count', 'The comment of `count` (line 13) says:\n\n> How many.'],
    ['explain `Basket.send`', 'The comment of `send` (line 18) says:\n\n> Sends what is there, all of it.'],
    ['what does add() do?', 'The comment of `add` (line 25) says:\n\n> Adds two numbers.'],
    ['What is the purpose of Row?', 'The comment of `Row` (line 33) says:\n\n> What is kept of one.'],
    ['can you explain what described does?', 'The comment of `described` (line 35) says:\n\n> Reads all of it.'],
    ['what is one for?', 'The comment of `one` (line 48) says:\n\n> Of one.'],
    ['describe `four`', 'The comment of `four` (line 51) says:\n\n> Of four.'],
    ['what does long do', /^The comment of `long` \(line 55\) says:\n\n> (?:A sentence of it\. ){20,40}…$/],
    [
      'what does over do',
      'The comment of `over` (line 57) says:\n\n> As text.\n\nThe comment of `over` (line 59) says:\n\n> As a number.',
    ],
    [
      'O que faz Basket?',
      'O comentário de `Basket` (linha 10) diz:\n\n> Keeps orders until they are sent. Two lines of it, see Basket.send and reading.',
    ],
    [
      'para que serve a classe Basket?',
      'O comentário de `Basket` (linha 10) diz:\n\n> Keeps orders until they are sent. Two lines of it, see Basket.send and reading.',
    ],
    ['explique `add`', 'O comentário de `add` (linha 25) diz:\n\n> Adds two numbers.'],
    // No comment, or none that says it.
    ...[
      'label',
      'plain',
      'other',
      'bare',
      'section',
      'tagged',
      'unwritten',
      'replaced',
      'licensed',
      'apart',
      'three',
    ].map((name): [string, undefined] => [`What does \`${name}\` do?`, undefined]),
    ['What does `read` do?', '`read` is imported from `./read` (line 1). Its code is there, not in this file.'],
    ['What does `gone` do?', 'There is no `gone` in `src/basket.ts`.'],
    ['What does gone do?', '`gone` does not stand in `src/basket.ts`. This model knows only what stands in the file.'],
    [
      'What does TypeScript do?',
      '`TypeScript` does not stand in `src/basket.ts`. This model knows only what stands in the file.',
    ],
    [
      'What does `Array.from` do?',
      'There is no `Array.from` in `src/basket.ts`. This model knows only what stands in the file.',
    ],
    ['Explain imports', undefined],
  ])('%s', async (question, expected) => {
    const answer = await askFact(question, TS, 'src/basket.ts');
    if (expected instanceof RegExp) expect(answer).toMatch(expected);
    else expect(answer).toBe(expected);
  });
});

describe('how it works, and what it is', () => {
  const TEXT = `import { read } from './read';
/** How many positions there are. */
export const NUM_POSITIONS = 512;
const DEPTH = 4;
/** Keeps rows. */
class Store {
  /** Opens the file. */
  constructor(path, depth = 2) {
    const local = path;
  }
  flush() {}
}
class Other extends Store {
  constructor() {}
}
function bare() {}
`;
  it.each<[string, string | undefined]>([
    ['How does Store work?', 'The comment of `Store` (line 6) says:\n\n> Keeps rows.'],
    ['Explain how `Store` works', 'The comment of `Store` (line 6) says:\n\n> Keeps rows.'],
    ['Como funciona o `Store`?', 'O comentário de `Store` (linha 6) diz:\n\n> Keeps rows.'],
    ['Explique como Store funciona', 'O comentário de `Store` (linha 6) diz:\n\n> Keeps rows.'],
    ['How does `bare` work?', undefined],
    ['How does `gone` work?', 'There is no `gone` in `src/a.ts`.'],
    [
      'How does TypeScript work?',
      '`TypeScript` does not stand in `src/a.ts`. This model knows only what stands in the file.',
    ],
    ['What is NUM_POSITIONS?', 'The comment of `NUM_POSITIONS` (line 3) says:\n\n> How many positions there are.'],
    ["what's DEPTH?", '`DEPTH` is defined in line 4: `const DEPTH = 4;`.'],
    ['What does DEPTH mean?', '`DEPTH` is defined in line 4: `const DEPTH = 4;`.'],
    ['what is the constant DEPTH?', '`DEPTH` is defined in line 4: `const DEPTH = 4;`.'],
    ['what is `read`?', '`read` is imported from `./read` (line 1).'],
    ['What is `gone`?', 'There is no `gone` in `src/a.ts`.'],
    ['O que é DEPTH?', 'A definição de `DEPTH` está na linha 4: `const DEPTH = 4;`.'],
    [
      'o que significa NUM_POSITIONS?',
      'O comentário de `NUM_POSITIONS` (linha 3) diz:\n\n> How many positions there are.',
    ],
    ['Qual é o significado de DEPTH?', 'A definição de `DEPTH` está na linha 4: `const DEPTH = 4;`.'],
    // Another case is another word.
    ['What is store?', undefined],
    ['What is REACT?', '`REACT` does not stand in `src/a.ts`. This model knows only what stands in the file.'],
    ['what does the constructor do?', 'The comment of `Store.constructor` (line 8) says:\n\n> Opens the file.'],
    ['What does the constructor of Store do?', 'The comment of `constructor` (line 8) says:\n\n> Opens the file.'],
    ['What does the constructor of Other do?', '`constructor` is defined in line 14: `constructor() {}`.'],
    ['O que faz o construtor?', 'O comentário de `Store.constructor` (linha 8) diz:\n\n> Opens the file.'],
  ])('%s', async (question, expected) => expect(await askFact(question, TEXT, 'src/a.ts')).toBe(expected));

  it('what begins a file is about the file rather than a value', async () => {
    expect(
      await askFact('what is VERSION', '/** All messages between two. */\nexport const VERSION = 3;\n', 'a.ts'),
    ).toBe('`VERSION` is defined in line 2: `export const VERSION = 3;`.');
    expect(
      await askFact('what does add do', '/** Adds two numbers. */\nexport function add(a, b) {}\n', 'a.ts'),
    ).toMatch(/> Adds two numbers\.$/);
  });

  it('in Python a constructor has another name', async () => {
    expect(
      await askFact(
        'What does the constructor do?',
        "class A:\n    def __init__(self):\n        '''Opens it.'''\n",
        'a.py',
      ),
    ).toBe('The docstring of `__init__` (line 2) says:\n\n> Opens it.');
    expect(await askFact('What does the constructor do?', 'f()\n', 'a.py')).toBe(
      '`constructor` does not stand in `a.py`. This model knows only what stands in the file.',
    );
  });
});

describe('JavaScript', () => {
  const TEXT =
    "'use strict';\n/**\n * Reads a file.\n * @param {string} file\n */\nexports.read = function (file) {};\n\nmodule.exports.pool = {\n  // Lends one.\n  lend() {},\n};\n/// Doubles it.\nexport default (n) => n * 2;\n";
  it.each([
    ['what does read do', 'The comment of `read` (line 6) says:\n\n> Reads a file.'],
    ['what does lend do', 'The comment of `lend` (line 10) says:\n\n> Lends one.'],
    ['what does `default` do', 'The comment of `default` (line 13) says:\n\n> Doubles it.'],
  ])('%s', async (question, expected) => expect(await askFact(question, TEXT, 'lib/a.js')).toBe(expected));
});

describe('Python', () => {
  const TEXT = `"""Orders."""
# How many there may be.
LIMIT = 3


class Store(Base):
    """Keeps orders,
    and more.

    Not quoted.
    """

    # About how it is written.
    @property
    def size(self):
        r'''How many; see \`LIMIT\`.
        :returns: a number
        '''

    # Writes all.
    @retry
    def flush(self): pass

    def bare(self):
        return """Not one."""


def load(path):
    """:param path: where"""
`;
  it.each([
    ['What does Store do?', 'The docstring of `Store` (line 6) says:\n\n> Keeps orders, and more.'],
    ['What does size do?', 'The docstring of `size` (line 15) says:\n\n> How many; see `LIMIT`.'],
    ['What does flush do?', 'The comment of `flush` (line 22) says:\n\n> Writes all.'],
    ['What is LIMIT for?', 'The comment of `LIMIT` (line 3) says:\n\n> How many there may be.'],
    ['Explica Store', 'A docstring de `Store` (linha 6) diz:\n\n> Keeps orders, and more.'],
    ['What does bare do?', undefined],
    ['What does load do?', undefined],
  ])('%s', async (question, expected) => expect(await askFact(question, TEXT, 'src/store.py')).toBe(expected));
});

describe('whether there is one', () => {
  it.each([
    ['Is there a class Basket?', 'Yes: `Basket` is defined in line 10: `export class Basket {`.'],
    ['Is there a class called Basket in this file?', 'Yes: `Basket` is defined in line 10: `export class Basket {`.'],
    ['is there a class basket?', 'There is no `basket` in `src/basket.ts`. There is `Basket` (line 10).'],
    ['Is there a function Basket?', 'No: `Basket` is defined in line 10: `export class Basket {`.'],
    [
      'Is there a class named `add`?',
      'No: `add` is defined in line 25: `export const add = (left: number, right = 1) => left + right;`.',
    ],
    ['is there a function bare', 'Yes: `bare` is defined in line 28: `function bare(x) {}`.'],
    ['Does this file define Basket?', 'Yes: `Basket` is defined in line 10: `export class Basket {`.'],
    ['does this file define apart?', 'Yes: `apart` is defined in line 47: `function apart() {}`.'],
    ['Is there an interface Row?', '`Row` is defined in line 33: `export interface Row { id: string }`.'],
    ['Is there a `read`?', 'Yes: `read` is imported from `./read` (line 1).'],
    ['Is there a class Wallet?', 'There is no `Wallet` in `src/basket.ts`.'],
    ['Does this file define Wallet?', 'There is no `Wallet` in `src/basket.ts`.'],
    ['Existe uma classe Basket?', 'Sim: a definição de `Basket` está na linha 10: `export class Basket {`.'],
    ['Existe a classe Wallet?', 'Não há `Wallet` em `src/basket.ts`.'],
    ['Este arquivo define Basket?', 'Sim: a definição de `Basket` está na linha 10: `export class Basket {`.'],
    // Not surely names.
    [
      'Is there a function total?',
      '`total` does not stand in `src/basket.ts`. This model knows only what stands in the file.',
    ],
    ['Is there a type error?', undefined],
    [
      'Is There A Class Diagram?',
      '`Diagram` does not stand in `src/basket.ts`. This model knows only what stands in the file.',
    ],
    [
      'Is there a class diagram?',
      '`diagram` does not stand in `src/basket.ts`. This model knows only what stands in the file.',
    ],
    ['Does this file define errors?', undefined],
    [
      'Does this file define totals?',
      '`totals` does not stand in `src/basket.ts`. This model knows only what stands in the file.',
    ],
    ['Does this file contain Wallet?', undefined],
    ['Há erros?', undefined],
  ])('%s', async (question, expected) => expect(await askFact(question, TS, 'src/basket.ts')).toBe(expected));
});

describe('for the model', () => {
  it.each([
    'What does this file do?',
    'What is this file for?',
    'What does it do?',
    'what does this function do',
    'What does the function do?',
    'What does `f` do when `x` is null?',
    'Why does `f` do that?',
    'What does `f` do? And `g`?',
    'How does `f` work with `g`?',
    'How does this work?',
    'Explain how it works',
    'What is this?',
    'What is the total?',
    'What is a Basket?',
    'What is new?',
    'What does this mean?',
    'What does the error mean?',
    'Como isso funciona?',
    'O que é isso?',
    'O que é um Basket?',
    'O que significa isto?',
    'Explain this',
    'Explain the code',
    'explain why',
    'Explain `f` step by step',
    'Explain `f` and its parameters',
    'Explain the difference',
    'explain what this does',
    'What does `f` do?\n```ts\nfunction f() {}\n```',
    'What does line 5 do?',
    'What can `f` do?',
    'What is `f` used for in the loop?',
    'explain the error',
    'What does the cache do?',
    'What do you do?',
    'Is there a bug?',
    'Is there any reason for `f`?',
    'Explain functions',
    'O que faz este arquivo?',
    'O que este arquivo faz?',
    'Para que serve isso?',
    'o que a função faz',
    'O que `f` faz quando `x` é nulo?',
    'Por que `f` faz isso?',
    'Explique o código',
    'Explique `f` passo a passo',
    'O que faz a linha 5?',
    'Explique a diferença',
  ])('%s', async (message) =>
    expect(await askFact(message, `${TS}/** Documented. */\nfunction f(x) {}\n`, 'src/basket.ts')).toBeUndefined(),
  );

  it('what was said before may be meant', () => {
    const doc = new SourceDocument('src/a.ts', 'src/a.ts', TS);
    const before = [
      { role: 'user', content: 'Write `gone`' },
      { role: 'assistant', content: '```ts\nfunction gone() {}\n```' },
    ] as const;
    expect(factAsked([...before, { role: 'user', content: 'What does `gone` do?' }], [doc])?.question).toMatchObject({
      sure: false,
    });
  });
});
