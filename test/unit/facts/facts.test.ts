/** Facts read off a file's syntax tree, the questions that ask for them, and the answers' words. */
import { readFacts } from '../../../engine/facts/extract/facts.ts';
import { beforeAll, describe, expect, it, test, vi } from 'vitest';
import { Node } from 'web-tree-sitter';
import { PATTERN_SOURCES } from '../../../engine/facts/factPatterns.ts';
import { factAsked, factQuestion } from '../../../engine/facts/factQuestion.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../engine/text/syntax/syntax.ts';
import { askFact, grammars, loadGrammars } from '../../support/askFact.ts';

beforeAll(loadGrammars, 60_000);

const TS = `import { open } from 'node:fs';
import type { Row as Line } from './row';
export * from './other';

export abstract class Store<K> extends Map<K, Line> implements Closable, Named {
  static #count = 0;
  readonly limit: number = 3;
  constructor(private readonly path: string, limit = 10) {
    super();
  }
  get size(): number {
    return 1;
  }
  flush(force?: boolean, ...rest: string[]): Promise<void> {
    function inner(deep: Date) {}
    return import('./late');
  }
  abstract close(): void;
}

export const join = (left: string, right = 'x') => left + right;
export function take({ a, b }: Pair, count: number) {}
export function over(a: string): string;
export function over(a: string, b?: number): string {
  return a;
}
interface Closable {
  close(): void;
}
const LIMIT = 3;
`;

const JS = `'use strict';
const { readFile: read } = require('fs');
const path = require('path');
exports.load = function load(file, { deep = true } = {}, done = () => {}) {
  const late = require('late');
};
function Pool(size) {}
Pool.prototype.drain = function (now = false) {};
module.exports = class Queue extends Pool {
  push(item) {}
};
`;

const PY = `from __future__ import annotations
import os.path as p, sys
from typing import (
    Any,
)

class Reader(Base, metaclass=Meta):
    depth: int = 3

    def __init__(self, path: str, *, mode="r", **options: Any) -> None:
        import json

    @property
    def name(self) -> str:
        return ""

    @staticmethod
    def make(cls_name, *args):
        pass

async def fetch(url: str, timeout: float = 5.0) -> "Any":
    pass

LIMIT = 3
`;

describe('TypeScript', () => {
  it.each([
    [
      'Which modules does this file import?',
      'This file imports `node:fs` and `./row` (lines 1–2). Inside blocks or functions it imports `./late` (line 16). It exports from `./other` (line 3).',
    ],
    ['Which classes does this file define?', 'This file defines the class `Store` (line 5).'],
    [
      'which functions are there in store.ts?',
      'This file defines the functions `join` (line 21), `take` (line 22) and `over` (line 23). Inside others it defines `inner` (line 15).',
    ],
    [
      'list all the functions',
      'This file defines the functions `join` (line 21), `take` (line 22) and `over` (line 23). Inside others it defines `inner` (line 15).',
    ],
    ['How many types does it define?', 'This file defines the type `Closable` (line 27).'],
    [
      'Quais funções este arquivo define?',
      'Este arquivo define as funções `join` (linha 21), `take` (linha 22) e `over` (linha 23). Dentro de outras definições há `inner` (linha 15).',
    ],
    ['Quantas classes há neste arquivo?', 'Este arquivo define a classe `Store` (linha 5).'],
    ['liste os tipos', 'Este arquivo define o tipo `Closable` (linha 27).'],
    [
      'what are the methods of Store?',
      '`Store` has the methods `constructor`, `flush` and `close` and the accessor `size` (from line 5), besides those that it inherits.',
    ],
    ['What parameters does `flush` take?', '`flush` takes `force` and `...rest` (line 14).'],
    ['What parameters does `Store` take?', '`Store` takes `path` and `limit` (line 8).'],
    ['what does take() accept', '`take` takes `{ a, b }` and `count` (line 22).'],
    ['List the parameters of `over`', '`over` takes `a` (line 23). `over` takes `a` and `b` (line 24).'],
    ['What is the type of `force` in `Store.flush`?', '`force` has the type `boolean` (line 14).'],
    ['What’s the default value of `right` in `join`?', "`right` defaults to `'x'` (line 21)."],
    ['What is the default of `left` in `join`', '`left` of `join` has no default value (line 21).'],
    ['What is the return type of `flush`?', '`flush` returns `Promise<void>` (line 14).'],
    ['What is the return type of `join`?', '`join` is declared without a return type (line 21).'],
    [
      'What is the base class of `Store`?',
      '`Store` extends `Map` and implements `Closable`, `Named` (line 5).'.replace(
        '`Closable`, `Named`',
        '`Closable` and `Named`',
      ),
    ],
    ['Which class does `flush` belong to?', '`flush` is a method of `Store` (line 14).'],
    ['Which class does `join` belong to?', '`join` belongs to no class: it is a function (line 21).'],
    ['Where is `LIMIT` defined?', '`LIMIT` is defined in line 30: `const LIMIT = 3;`.'],
    [
      'On which line is flush defined in store.ts?',
      '`flush` is defined in line 14: `flush(force?: boolean, ...rest: string[]): Promise<void> {`.',
    ],
    ['Where is `Line` defined?', '`Line` is imported from `./row` (line 2).'],
    [
      'Where is `close` defined?',
      '`close` is defined in line 18: `abstract close(): void;`, and in line 28: `close(): void;`.',
    ],
    ['Where is `totalValue` defined?', 'There is no `totalValue` in `src/store.ts`.'],
    ['What parameters does `Flush` take?', '`flush` takes `force` and `...rest` (line 14).'],
    ['is there a function called total?', 'There is no `total` in `src/store.ts`.'],
    ['Is there a total?', undefined],
    ['Is there a function called totalValue?', 'There is no `totalValue` in `src/store.ts`.'],
    ['Quais parâmetros `flush` recebe?', '`flush` recebe `force` e `...rest` (linha 14).'],
    [
      'Quais módulos este arquivo importa?',
      'Este arquivo importa `node:fs` e `./row` (linhas 1–2). Dentro de blocos ou funções importa `./late` (linha 16). Exporta de `./other` (linha 3).',
    ],
    ['qual é o tipo de retorno de flush?', '`flush` retorna `Promise<void>` (linha 14).'],
    ['Onde está definida a constante LIMIT?', 'A definição de `LIMIT` está na linha 30: `const LIMIT = 3;`.'],
    ['Onde está `totalValue`?', 'Não há `totalValue` em `src/store.ts`.'],
    // Not settled by the tree, or not about something that is surely meant.
    ['What is the type of `a` in `take`?', undefined],
    ['What is the type of `b` in `over`?', '`b` has the type `number` (line 24).'],
    ['What is the type of `limit` in `over`?', undefined],
    ['What is the return type of `LIMIT`?', undefined],
    ['What is the base class of `flush`?', undefined],
    [
      'Where is `rest` defined?',
      '`rest` is a parameter of `Store.flush` (line 14). `rest` stands in line 14: `flush(force?: boolean, ...rest: string[]): Promise<void> {`.',
    ],
    ['Where is totalling defined?', 'There is no `totalling` in `src/store.ts`.'],
    ['Where is the totalling defined?', undefined],
  ])('%s', async (question, expected) => expect(await askFact(question, TS, 'src/store.ts')).toBe(expected));
});

describe('JavaScript', () => {
  it.each([
    [
      'What does this file import?',
      'This file imports `fs` and `path` (lines 2–3). Inside blocks or functions it imports `late` (line 5).',
    ],
    ['What parameters does `load` take?', '`load` takes `file`, `{ deep = true }` and `done` (line 4).'],
    ['What is the default value of `now` in `drain`?', '`now` defaults to `false` (line 8).'],
    ['Which class does `drain` belong to?', '`drain` is a method of `Pool` (line 8).'],
    ['Where is `read` defined?', '`read` is imported from `fs` (line 2).'],
    ['What is the type of `now` in `drain`?', '`now` of `Pool.drain` is declared without a type (line 8).'],
  ])('%s', async (question, expected) => expect(await askFact(question, JS, 'lib/pool.js')).toBe(expected));
});

describe('Python', () => {
  it.each([
    [
      'Which modules does this file import?',
      'This file imports `__future__`, `os.path`, `sys` and `typing` (lines 1–3). Inside blocks or functions it imports `json` (line 11).',
    ],
    [
      'Which methods does `Reader` have?',
      '`Reader` has the methods `__init__` and `make` and the accessor `name` (from line 7), besides those that it inherits.',
    ],
    ['What parameters does `Reader` take?', '`Reader` takes `path`, `mode` and `**options` (line 10).'],
    ['What parameters does `name` take?', '`name` takes no parameters (line 14).'],
    ['What parameters does `make` take?', '`make` takes `cls_name` and `*args` (line 18).'],
    ['What is the type of `options` in `__init__`?', '`**options` has the type `Any` (line 10).'],
    ['What is the default value of `timeout` in `fetch`?', '`timeout` defaults to `5.0` (line 21).'],
    ['What is the return type of `fetch`?', '`fetch` returns `"Any"` (line 21).'],
    ['What is the base class of `Reader`?', '`Reader` extends `Base` (line 7).'],
    ['Qual é a classe base de `Reader`?', '`Reader` herda de `Base` (linha 7).'],
    ['Where is `p` defined?', '`p` is imported from `os.path` (line 2).'],
    ['Onde `depth` é definido?', 'A definição de `depth` está na linha 8: `depth: int = 3`.'],
  ])('%s', async (question, expected) => expect(await askFact(question, PY, 'src/reader.py')).toBe(expected));
});

const HARD = `import React, { type FC } from 'react';
import { a as read, default as c } from './alias';
@Injectable({ root: true })
export class Service<T extends object = {}> extends mixin(Base, Other)<T> implements A, B<T> {
  @Input() label = 'n';
  handler = async (e: Event, { detail = 1 }: Opts = {}): Promise<void> => {};
  constructor(@Inject(TOKEN) private readonly http: Http, public b?: string) {
    super();
  }
  get value(): number {
    return 1;
  }
  set value(v) {}
  static make(this: void, ...args: any[]) {}
  [Symbol.iterator]() {}
  #secret(k: string) {}
  on(a: 'x'): void;
  on(a: 'y'): void;
  on(a: string): void {}
  read(to: string) {}
}
export namespace Geo {
  export function area(p: Point) {}
}
const { one, two: { three = 3 }, ...others } = obj;
const helpers = { trim(s: string) {} };
function outer() {
  const { hidden } = obj;
  return class extends Service {
    on(z: number) {}
  };
}
export default function ({ title }: Props) {
  return <b>{title}</b>;
}
`;

describe('what is easily read wrongly', () => {
  it.each([
    [
      'What is the base class of `Service`?',
      '`Service` extends `mixin(Base, Other)` and implements `A` and `B<T>` (line 4).',
    ],
    [
      'What methods does Service have?',
      '`Service` has the methods `handler`, `constructor`, `make`, `[Symbol.iterator]`, `#secret`, `on` and `read` and the accessor `value` (from line 4), besides those that it inherits.',
    ],
    ['What parameters does the constructor take?', '`constructor` takes `http` and `b` (line 7).'],
    ['What parameters does `handler` take?', '`handler` takes `e` and `{ detail = 1 }` (line 6).'],
    ['What is the type of `...args` in `make`?', '`...args` has the type `any[]` (line 14).'],
    ['What parameters does `make` take?', '`make` takes `...args` (line 14).'],
    ['Which class does `[Symbol.iterator]` belong to?', '`[Symbol.iterator]` is a method of `Service` (line 15).'],
    ['Which class does `value` belong to?', '`value` is a member of `Service` (line 10).'],
    ['What is the return type of `value`?', '`value` returns `number` (line 10).'],
    [
      'What parameters does `on` take?',
      '- `Service.on` takes `a` (line 17).\n- `Service.on` takes `a` (line 18).\n- `Service.on` takes `a` (line 19).\n- `on` takes `z` (line 30).',
    ],
    [
      'Where is `on` defined?',
      "`on` is defined\n\n- in line 17: `on(a: 'x'): void;`\n- in line 18: `on(a: 'y'): void;`\n- in line 19: `on(a: string): void {}`\n- in line 30: `on(z: number) {}`",
    ],
    [
      'Where is `read` defined?',
      '`read` is defined in line 20: `read(to: string) {}`. `read` is imported from `./alias` (line 2).',
    ],
    ['Where is `c` defined?', '`c` is imported from `./alias` (line 2).'],
    [
      'Where is `three` defined?',
      '`three` is defined in line 25: `const { one, two: { three = 3 }, ...others } = obj;`.',
    ],
    [
      'Where is `others` defined?',
      '`others` is defined in line 25: `const { one, two: { three = 3 }, ...others } = obj;`.',
    ],
    ['Where is `Geo` defined?', '`Geo` is defined in line 22: `export namespace Geo {`.'],
    ['Where is `area` defined?', '`area` is defined in line 23: `export function area(p: Point) {}`.'],
    ['Which class does `area` belong to?', undefined],
    [
      'Which class does `trim` belong to?',
      '`trim` is a method of `helpers`, which is an object and no class (line 26).',
    ],
    ['Which class does `on` belong to?', undefined],
    ['Where is `hidden` defined?', '`hidden` stands in line 28: `const { hidden } = obj;`.'],
    ['What is the type of `title` in `default`?', undefined],
    ['What is the type of `detail` in `handler`?', undefined],
    ['What parameters does `Geo` take?', undefined],
    ['Which methods does `Geo` have?', undefined],
    // Any word may be what something is called.
    [
      'Which functions does this file define?',
      'This file defines the functions `outer` (line 27) and `default` (line 33). Inside others it defines `area` (line 23).',
    ],
    ['What types are declared here?', 'This file defines no types at its top level.'],
    ['What does `default` take?', '`default` takes `{ title }` (line 33).'],
    ['Where is the value?', undefined],
    ['Does this file have helpers?', undefined],
    ['Where is helpers defined?', '`helpers` is defined in line 26: `const helpers = { trim(s: string) {} };`.'],
  ])('%s', async (question, expected) => expect(await askFact(question, HARD, 'src/service.tsx')).toBe(expected));

  const MODULE = `const fs = require('node:fs'), path = require('path');
function Legacy(a) {}
Legacy.prototype = { flush: function (b) {} };
module.exports = { load (file) {}, each: (item) => item };
`;
  it.each([
    ['Where is `path` defined?', '`path` is imported from `path` (line 1).'],
    ['Which class does `flush` belong to?', '`flush` is a method of `Legacy` (line 3).'],
    ['Which class does `load` belong to?', '`load` belongs to no class: it is a function (line 4).'],
    ['What parameters does `each` take?', '`each` takes `item` (line 4).'],
  ])('%s', async (question, expected) => expect(await askFact(question, MODULE, 'lib/legacy.js')).toBe(expected));

  const PYTHON = `try:
    import simplejson as json
except ImportError:
    import json
from x import (a, b as c,
    d)

@dataclass
class Data(Generic[T], Base):
    x: int

    class Nested(Inner):
        def deep(self, q): ...

    @overload
    def f(self, a: int) -> int: ...
    @overload
    def f(self, a: str) -> str: ...

    @classmethod
    def build(cls, a, /, b, *, c=None, **kw) -> "Data":
        def local(u): pass

left, (right, *rest) = 1, (2, 3)

class Plain:
    def __init__(self, y): pass
`;
  it.each([
    [
      'Where is `json` defined?',
      '`json` is imported from `simplejson` (line 2). `json` is imported from `json` (line 4).',
    ],
    ['Where is `d` defined?', '`d` is imported from `x` (line 5).'],
    ['What parameters does `Data` take?', undefined],
    ['What parameters does the constructor of Plain take?', '`__init__` takes `y` (line 27).'],
    ['Quais parâmetros o construtor recebe?', '`__init__` recebe `y` (linha 27).'],
    [
      'Which methods does `Data` have?',
      '`Data` has the methods `f` and `build` (from line 9), besides those that it inherits.',
    ],
    ['Which class does `deep` belong to?', '`deep` is a method of `Nested` (line 13).'],
    ['What is the return type of `f`?', '`f` returns `int` (line 16). `f` returns `str` (line 18).'],
    ['What parameters does `build` take?', '`build` takes `a`, `b`, `c` and `**kw` (line 21).'],
    ['What is the type of `**kw` in `build`?', '`**kw` of `Data.build` is declared without a type (line 21).'],
    ['Where is `rest` defined?', '`rest` is defined in line 24: `left, (right, *rest) = 1, (2, 3)`.'],
    ['Which class does `local` belong to?', undefined],
    [
      'What are the imports?',
      'This file imports `x` (line 5). Inside blocks or functions it imports `simplejson` and `json` (lines 2–4).',
    ],
  ])('%s', async (question, expected) => expect(await askFact(question, PYTHON, 'src/data.py')).toBe(expected));
});

test('what errors may have spoilt is left to the model', async () => {
  const broken = `import a from 'a';\nfunction right(x) {\n  return x +;\n}\nfunction wrong(x, = {\n}\nclass Half {\n  one() {}\n  two( {\n`;
  expect(await askFact('Which modules does this file import?', broken, 'a.ts')).toMatch(
    /`a`.* The file has syntax errors, so there may be more\.$/,
  );
  expect(await askFact('Which classes does this file define?', 'export class Foo {}\nconst x = ;\n', 'a.ts')).toBe(
    'This file defines the class `Foo` (line 1). The file has syntax errors, so there may be more.',
  );
  expect(await askFact('Que classes este arquivo define?', 'const x = ;\n', 'a.ts')).toBe(
    'Não dá para dizer: o arquivo tem erros de sintaxe.',
  );
  expect(await askFact('Which methods does `Half` have?', broken, 'a.ts')).toBe(
    '`Half` stands in line 7: `class Half {`.',
  );
  expect(await askFact('What parameters does `wrong` take?', broken, 'a.ts')).toBe(
    '`wrong` stands in line 5: `function wrong(x, = {`.',
  );
  // What reads as a function may be a method.
  const lost =
    'export function good() {}\nclass Half {\n  one(a: string { return a }\n  other() {}\nexport function later() {\nconst z = (;\n';
  expect(await askFact('what functions are there', lost, 'a.ts')).toBe(
    'This file defines the function `good` (line 1). The file has syntax errors, so there may be more.',
  );
  expect(await askFact('what does this file define', lost, 'a.ts')).not.toMatch(/one|other/);
  expect(await askFact('What parameters does `right` take?', broken, 'a.ts')).toBe('`right` takes `x` (line 2).');
});

test('other languages and longer texts have no facts', async () => {
  expect(await askFact('Where is `main` defined?', 'fn main() {}\n', 'src/main.rs')).toBeUndefined();
  expect(
    await askFact('Where is `main` defined?', `function main() {}\n${'// x\n'.repeat(120_000)}`, 'src/main.ts'),
  ).toBeUndefined();
});

test.each([
  'What are functions?',
  'what are types',
  'Please, what are imports?',
  'What are variables?',
  'Que são classes?',
  'What is imported from `src/a.ts`?',
  'What does it import from a.ts?',
  'o que é importado de a.ts?',
  'O que este arquivo importa de a.ts?',
  'How many lines does `f` have?',
  'How many lines of code does this file have?',
  'Which variables are unused?',
  'Is this function exported?',
  'Is everything exported?',
  'Does this file export functions?',
  'Quantas linhas a função `f` tem?',
  'What are the members of `Store`?',
  'Quais são os membros de `Store`?',
  'What are the imports used for?',
  'Which methods does `C` inherit?',
  'Which function takes `p`?',
  'What types does `f` take?',
  'Does this file import everything?',
  'Does this file import modules?',
  'Is it imported?',
  'Where does it come from?',
  'Where is this imported from?',
  'Where is it called?',
  'What is it called?',
  'Where is the function called?',
  'Which fields should I add to `Store`?',
  'What are the params for?',
  'Is the function async?',
  'Are there errors?',
  'Does this file have tests?',
  'Onde ela é chamada?',
  'De onde vem isso?',
  'Este arquivo tem erros?',
  'Este arquivo importa tudo?',
  'where is line 5',
  'Which functions does this file call?',
  'Which functions are unused?',
  'Quais funções estão erradas?',
  'Which classes does this file use?',
  'What are the functions for?',
  'Which functions does this file define and why?',
  'Which functions should I test?',
  'Quais funções devo testar?',
  'What does this file do?',
  'Where is it defined?',
  'What parameters should I pass to `f` to sort it?',
  'Where is `foo` defined and why?',
  'What is the type of `x`?',
  'What does this function take?',
  'Which methods does this class have?',
  'Explain the parameters of `f`',
  'Where is other.ts defined?',
  'Which modules does this file import from the network?',
  'Where is `foo` defined? And `bar`?',
  'Add a parameter to `f`',
  'Qual é o tipo disso?',
  `Where is \`${'x'.repeat(300)}\` defined?`,
  '',
])('not a question for a fact: %s', (message) => expect(factQuestion(message, 'src/a.ts')).toBeUndefined());

test.each([
  ['please tell me WHERE IS `foo` DEFINED??', { kind: 'where', language: 'en', name: 'foo' }],
  ['Could you show me what parameters the function `foo` takes', undefined],
  ['which arguments does the method flush of Store accept?', { kind: 'parameters', name: 'flush', owner: 'Store' }],
  ['list the imports of a.ts', { kind: 'imports', name: '' }],
  ['What modules does this file depend on?', { kind: 'imports' }],
  ['which packages are imported here?', { kind: 'imports' }],
  ['what are the dependencies of this file', { kind: 'imports' }],
  ['What are the arguments of the constructor of Store?', { kind: 'parameters', name: 'constructor', owner: 'Store' }],
  ['How many parameters does foo take?', { kind: 'parameters', name: 'foo' }],
  ['show me the methods of the class Store', undefined],
  ['What members does the class Store have?', undefined],
  ['What methods does the class Store have?', { kind: 'methods', name: 'Store' }],
  ['What type does `x` have in `f`?', { kind: 'type', parameter: 'x', name: 'f' }],
  ['which type does parse() return', { kind: 'returns', name: 'parse' }],
  ['What does Store extend?', { kind: 'base', name: 'Store' }],
  ['What class does Store inherit from?', { kind: 'base', name: 'Store' }],
  ['what line is foo_bar on', { kind: 'where', name: 'foo_bar' }],
  ['Where can I find the class Store?', { kind: 'where', name: 'Store' }],
  ['Is there a class named Store in this file?', { kind: 'exists', name: 'Store' }],
  ['Que argumentos recebe a função foo?', { kind: 'parameters', name: 'foo' }],
  ['Em que linha está definida a função foo?', { kind: 'where', name: 'foo' }],
  ['Quais são os métodos da classe Store?', { kind: 'methods', name: 'Store' }],
  ['A qual classe pertence `flush`?', { kind: 'owner', name: 'flush' }],
  ['Que tipo `parse` retorna?', { kind: 'returns', name: 'parse' }],
  ['Existe uma função chamada foo?', { kind: 'exists', name: 'foo' }],
  ['quais são as dependências deste arquivo?', { kind: 'imports', language: 'pt' }],
  ['qual é o tipo do parâmetro x na função f?', { kind: 'type', parameter: 'x', name: 'f' }],
  ['Por favor, quais são os argumentos da função `foo`?', { kind: 'parameters', language: 'pt', name: 'foo' }],
  ['De qual classe herda C neste arquivo?', { kind: 'base', language: 'pt', name: 'C' }],
  ['qual o valor padrão do parâmetro x em f', { kind: 'default', parameter: 'x', name: 'f' }],
])('the same in other words: %s', (message, expected) => {
  if (expected) expect(factQuestion(message, 'src/a.ts')).toMatchObject(expected);
  else expect(factQuestion(message, 'src/a.ts')).toBeUndefined();
});

test('only of the files that are there, and of the last turn', () => {
  const [a, b] = ['a', 'b'].map((name) => new SourceDocument(name, `src/${name}.ts`, ''));
  const asked = { role: 'user', content: 'Where is `f` defined?' } as const;
  expect(factAsked([asked], [a!])).toBeDefined();
  expect(factAsked([asked], [a!], [{ path: '/w/src/a.ts', text: 'f', startLine: 1 }])).toBeDefined();
  expect(factAsked([asked], [a!], [{ path: '/w/src/b.ts', text: 'f' }])).toBeUndefined();
  expect(factAsked([asked], [a!, b!])?.documents).toEqual([a, b]);
  expect(factAsked([asked], [])).toBeUndefined();
  expect(factAsked([asked, { role: 'assistant', content: 'Here.' }], [a!])).toBeUndefined();
  expect(
    factAsked([asked, { role: 'assistant', content: 'Here.' }, { role: 'user', content: 'Why?' }], [a!]),
  ).toBeUndefined();
});

test('inside others there may be one of the same name in each', async () => {
  const script =
    'function a() {\n  function each(x: string): void;\n  function each(x) {}\n}\nfunction b() {\n  function each() {}\n}\n';
  expect(await askFact('Which functions are defined?', script, 'a.ts')).toBe(
    'This file defines the functions `a` (line 1) and `b` (line 5). Inside others it defines `each` (line 2) and `each` (line 6).',
  );
  const python = 'class A:\n    class Meta: pass\nclass B:\n    class Meta: pass\n';
  expect(await askFact('Which classes are defined?', python, 'a.py')).toBe(
    'This file defines the classes `A` (line 1) and `B` (line 3). Inside others it defines `Meta` (line 2) and `Meta` (line 4).',
  );
});

test('in Python classes are the types that there are', async () => {
  expect(await askFact('Which types does this file define?', 'class A: pass\n', 'a.py')).toBe(
    'This file defines the class `A` (line 1).',
  );
  expect(await askFact('Quais tipos há?', 'f()\n', 'a.py')).toBe(
    'Este arquivo não define classes no nível do arquivo.',
  );
});

test('a module may be named in backticks', async () => {
  const text = `const a = require(\`one\`);\nconst b = import(\`./\${a}\`);\n`;
  expect(await askFact('What does this file import?', text, 'a.js')).toBe('This file imports `one` (line 1).');
  expect(await askFact('Where is `a` defined?', text, 'a.js')).toBe('`a` is imported from `one` (line 1).');
});

test('a method may be called by a number', async () => {
  expect(await askFact('Which methods does Odd have?', 'class Odd {\n  7() {}\n  b() {}\n}\n', 'a.ts')).toBe(
    '`Odd` has the methods `7` and `b` (from line 1).',
  );
});

describe('variables', () => {
  const SCRIPT =
    "const fs = require('fs');\nlet count = 0, { left: [right] } = pair;\nconst add = (a) => { const sum = a; };\nfunction plain() {}\nclass Box { side = 1; grow = () => {}; }\nexports.load = () => {};\n";
  it.each([
    [
      'list the variables',
      SCRIPT,
      'a.js',
      'This file defines the variables `count` (line 2), `right` (line 2) and `add` (line 3). What is imported, and variables of functions and loops, are not listed.',
    ],
    [
      'Which variables does this file define?',
      'class A {\n  b = 1;\n}\n',
      'a.ts',
      'This file defines no variables at its top level. What is imported, and variables of functions and loops, are not listed.',
    ],
    [
      'how many variables are there in this file?',
      'LIMIT: int = 3\ntwice = lambda n: n * 2\nclass A:\n    b = 1\n',
      'a.py',
      'This file defines 2 variables: `LIMIT` (line 1) and `twice` (line 2). What is imported, and variables of functions and loops, are not listed.',
    ],
    [
      'what variables are there?',
      'type Pair = { left: string; swap(): void };\nlet a: { b: number };\n',
      'a.ts',
      'This file defines the variable `a` (line 2). What is imported, and variables of functions and loops, are not listed.',
    ],
    [
      'Quais variáveis este arquivo define?',
      'let a = 1;\n',
      'a.ts',
      'Este arquivo define a variável `a` (linha 1). O que é importado e variáveis de funções e laços não são listados.',
    ],
    [
      'liste as variáveis',
      'f();\n',
      'a.ts',
      'Este arquivo não define variáveis no nível do arquivo. O que é importado e variáveis de funções e laços não são listados.',
    ],
  ])('%s', async (question, text, path, expected) => expect(await askFact(question, text, path)).toBe(expected));
});

describe('what is imported, and from where', () => {
  const TEXT = `import { open } from 'node:fs';
import react from 'react';
import { Row, type Line as Text } from './row.ts';
export * from './other';
const Own = 1;
function typed() {}
`;
  const ALL = 'This file imports `node:fs`, `react` and `./row.ts` (lines 1–3). It exports from `./other` (line 4).';
  const NO = `No: ${ALL.replace('This', 'this')}`;
  const TUDO = 'Este arquivo importa `node:fs`, `react` e `./row.ts` (linhas 1–3). Exporta de `./other` (linha 4).';
  it.each<[string, string | undefined]>([
    ['what does it import?', ALL],
    ['What does this module import?', ALL],
    ['which imports does this file have?', ALL],
    ['quais imports tem esse arquivo?', TUDO],
    ['que imports tem este arquivo?', TUDO],
    ['o que este ficheiro importa?', TUDO],
    ['Quais importações este arquivo faz?', TUDO],
    ['O que é que ele importa?', TUDO],
    ['does this file import fs?', 'Yes: `node:fs` is imported (line 1).'],
    ['Does this file import React?', 'Yes: `react` is imported (line 2).'],
    ['Does it import `./row`?', 'Yes: `./row.ts` is imported (line 3).'],
    ['does this file import row?', 'Yes: `./row.ts` is imported (line 3).'],
    ['Does this file import open?', 'Yes: `open` is imported from `node:fs` (line 1).'],
    ['does this file import lodash?', NO],
    ['does this file import `Own`?', NO],
    ['does this file import other?', ALL],
    ['does this file import correctly?', ALL],
    ['Is `Row` imported?', 'Yes: `Row` is imported from `./row.ts` (line 3).'],
    ['Este arquivo importa fs?', 'Sim: `node:fs` é importado (linha 1).'],
    ['esse arquivo importa o módulo lodash?', `Não: ${TUDO.replace('Este', 'este')}`],
    ['Where is Row imported from?', '`Row` is imported from `./row.ts` (line 3).'],
    ['Where does Text come from?', '`Text` is imported from `./row.ts` (line 3).'],
    ['From which module is `open` imported?', '`open` is imported from `node:fs` (line 1).'],
    ['where is fs imported?', '`node:fs` is imported (line 1).'],
    ['Where is Own imported from?', '`Own` is not imported. `Own` is defined in line 5: `const Own = 1;`.'],
    ['Where is Gone imported from?', 'There is no `Gone` in `src/a.ts`.'],
    // Of what a program does.
    [
      'where does trust come from?',
      '`trust` does not stand in `src/a.ts`. This model knows only what stands in the file.',
    ],
    ['where does the Own come from?', undefined],
    ['de onde vem o Own', undefined],
    ['is something imported', undefined],
    ['algo é importado?', undefined],
    ['De onde é importado Row?', '`Row` é importado de `./row.ts` (linha 3).'],
    ['de onde vem `Text`?', '`Text` é importado de `./row.ts` (linha 3).'],
    ['What does this file import from react', undefined],
  ])('%s', async (question, expected) => expect(await askFact(question, TEXT, 'src/a.ts')).toBe(expected));
});

test('what is imported by another name, or a part of a package', async () => {
  const text =
    "import { read as load } from './io';\nimport data from './rows.json';\nconst { write: save } = require('fs');\nimport each from 'lodash/each';\n";
  const all = 'his file imports `./io`, `./rows.json`, `fs` and `lodash/each` (lines 1–4).';
  for (const [name, expected] of [
    ['read', 'Yes: `read` is imported from `./io` (line 1).'],
    ['write', 'Yes: `write` is imported from `fs` (line 3).'],
    ['rows.json', 'Yes: `./rows.json` is imported (line 2).'],
    ['json', `T${all}`],
    ['lodash', `T${all}`],
    ['react', `No: t${all}`],
  ] as const)
    expect(await askFact(`is ${name} imported`, text, 'src/a.ts')).toBe(expected);
  expect(await askFact('is read imported', 'from io import read as load\n', 'src/a.py')).toBe(
    'Yes: `read` is imported from `io` (line 1).',
  );
});

describe('where something is called', () => {
  const TEXT = `import { used } from './used';
function weightedMedian(a) { return a; }
function twice() {
  weightedMedian(1);
  return used(weightedMedian(2));
}
class Box { open() {} static make() { return new Box(); } }
// idle is for later
function idle() {}
function never() {}
const box = Box.make();
box.open();
console.log(1); console.log(2);
for (const each of [1]) { used(each); }
used(3);
[1].map(each);
function each() {}
`;
  it.each<[string, string | undefined]>([
    [
      'Where is the function weightedMedian called?',
      '`weightedMedian` is called in line 4: `weightedMedian(1);`, and in line 5: `return used(weightedMedian(2));`.',
    ],
    ['where is `used` called in this file?', '`used` is called in the lines 5, 14 and 15.'],
    [
      'Where is `Box` instantiated?',
      '`Box` is called in line 7: `class Box { open() {} static make() { return new Box(); } }`.',
    ],
    ['What calls `open`?', '`open` is called in line 12: `box.open();`.'],
    ['On which line is Box.make called?', '`make` is called in line 11: `const box = Box.make();`.'],
    ['Which lines call console.log?', '`log` is called in line 13: `console.log(1); console.log(2);`.'],
    ['Is `idle` called?', '`idle` is not called in this file. Its name stands in the line 8.'],
    ['Where is `never` called?', '`never` is not called in this file.'],
    ['Where is `each` called?', '`each` is not called in this file. Its name stands in the lines 14 and 16.'],
    ['Where is `gone` called?', 'There is no `gone` in `src/a.ts`.'],
    [
      'Onde é chamada a função weightedMedian?',
      '`weightedMedian` é chamado na linha 4: `weightedMedian(1);`, e na linha 5: `return used(weightedMedian(2));`.',
    ],
    ['onde `never` é chamada?', '`never` não é chamado neste arquivo.'],
    ['Quem chama `used`?', '`used` é chamado nas linhas 5, 14 e 15.'],
    // Not by that name.
    ['Where is `box.make` called?', undefined],
    [
      'Where is idleness called?',
      '`idleness` does not stand in `src/a.ts`. This model knows only what stands in the file.',
    ],
    ['Why is `used` called?', undefined],
  ])('%s', async (question, expected) => expect(await askFact(question, TEXT, 'src/a.ts')).toBe(expected));

  it('what is defined for itself and called behind a dot may be another', async () => {
    const text =
      "import { parse } from './parse';\nfunction add(a) { return parse(a) ?? JSON.parse(a); }\nnew Set().add(1).add(2);\nnamespace N { export function deep() {} }\nN.deep();\nJSON.parse('');\n";
    expect(await askFact('where is parse called', text, 'a.ts')).toBe(
      "`parse` is called in line 2: `function add(a) { return parse(a) ?? JSON.parse(a); }`. After a dot, where it may be another one, `parse` is called in line 6: `JSON.parse('');`.",
    );
    expect(await askFact('who calls add', text, 'a.ts')).toBe(
      'After a dot, where it may be another one, `add` is called in line 3: `new Set().add(1).add(2);`.',
    );
    expect(await askFact('onde é chamada a função deep', text, 'a.ts')).toBe(
      'Depois de um ponto, onde pode ser outro, `deep` é chamado na linha 5: `N.deep();`.',
    );
  });

  it('with types, awaited, in brackets', async () => {
    const text =
      'function load() {}\nawait load<Row>(1);\nload!(2);\n(load)(3);\nload?.(4);\nnew load<Row>(5);\n(await load)(6);\nload`x`;\n(load as any)(7);\n';
    expect(await askFact('where is load called', text, 'a.ts')).toBe(
      '`load` is called in the lines 2, 3, 4, 5, 6, 7 and 8.',
    );
    expect(
      await askFact(
        'where is load called',
        'function load() {}\nasync function f() { return (await load<Row>(1)).id; }\n',
        'a.ts',
      ),
    ).toMatch(/called in line 2/);
  });

  it('in Python, and among errors', async () => {
    expect(
      await askFact(
        'Where is load called?',
        'from a import load\n@load(1)\ndef f():\n    return self.load()\n',
        'a.py',
      ),
    ).toBe(
      '`load` is called in line 2: `@load(1)`. After a dot, where it may be another one, `load` is called in line 4: `return self.load()`.',
    );
    // Where a class ends early its methods read as calls.
    expect(
      await askFact(
        'is last called',
        'class Half {\n  one(x) {\n    if (x) {\n  }\n  last() { return 1; }\n}\n',
        'a.ts',
      ),
    ).toBe('`last` stands in line 5: `last() { return 1; }`.');
    expect(await askFact('Where is `f` called?', 'function f() {}\nconst x = ;\n', 'a.ts')).toBeUndefined();
  });
});

describe('fields', () => {
  const TEXT = `interface Row { id: string; line?: number; read(): void }
type Pair = { left: string };
class Box extends Base {
  static count = 0;
  width = 1;
  run = () => { this.late = 1; };
  constructor(private readonly path: string, plain: string) {
    super();
    this.width = 2;
    [1].forEach(function () { this.other = 1; });
  }
  set size(value) { this.kept = value; this.size = 1; }
}
class Plain { go() {} }
`;
  it.each<[string, string, string, string | undefined]>([
    ['What fields does the interface Row have?', TEXT, 'a.ts', '`Row` has the fields `id` and `line` (from line 1).'],
    [
      'which properties does Box have?',
      TEXT,
      'a.ts',
      '`Box` has the fields `count`, `width`, `run`, `late`, `path` and `kept` (from line 3), besides those that it inherits.',
    ],
    ['What are the fields of Plain?', TEXT, 'a.ts', '`Plain` has no fields of its own (from line 14).'],
    ['How many methods does Row have?', TEXT, 'a.ts', '`Row` has the method `read` (from line 1).'],
    ['Quais campos a interface Row tem?', TEXT, 'a.ts', '`Row` tem os campos `id` e `line` (a partir da linha 1).'],
    ['Quais são as propriedades de Row?', TEXT, 'a.ts', '`Row` tem os campos `id` e `line` (a partir da linha 1).'],
    ['Quantos métodos tem Row?', TEXT, 'a.ts', '`Row` tem o método `read` (a partir da linha 1).'],
    ['What fields does Pair have?', TEXT, 'a.ts', undefined],
    ['what fields does Inner have', 'function f() {\n  class Inner { a = 1; }\n}\n', 'a.ts', undefined],
    [
      'what fields does Pool have',
      'class Pool:\n    a, b = 1, 2\n',
      'a.py',
      '`Pool` has the fields `a` and `b` (from line 1).',
    ],
    [
      'what variables are there',
      'class Pool:\n    a, b = 1, 2\n',
      'a.py',
      'This file defines no variables at its top level. What is imported, and variables of functions and loops, are not listed.',
    ],
    [
      'what fields does Deep have',
      'interface Deep { on: { click: string }; get size(): number }\n',
      'a.ts',
      '`Deep` has the field `on` (from line 1).',
    ],
    [
      'what methods does Deep have',
      'interface Deep { on: { click(): string }; go(): void; get size(): number }\n',
      'a.ts',
      '`Deep` has the method `go` and the accessor `size` (from line 1).',
    ],
    [
      'what fields does Deep have',
      'class Deep { on: { click: string }[] = []; }\n',
      'a.ts',
      '`Deep` has the field `on` (from line 1).',
    ],
    ['What fields does `Gone` have?', TEXT, 'a.ts', 'There is no `Gone` in `a.ts`.'],
    ['What fields does this class have?', TEXT, 'a.ts', undefined],
    [
      'What fields does Pool have?',
      'class Pool {\n  constructor(size) {\n    this.size = size;\n    const add = () => { this.all ??= []; };\n  }\n}\n',
      'a.js',
      '`Pool` has the fields `size` and `all` (from line 1).',
    ],
    [
      'What fields does Pool have?',
      'class Pool {\n  constructor(options) {\n    Object.assign(this, options);\n  }\n}\n',
      'a.js',
      undefined,
    ],
    [
      'what fields does Pool have',
      'class Pool {\n  go() { [this.a, { b: this.b }] = pair; }\n}\nPool.limit = 3;\nPool.make = () => 1;\nother.size = 2;\n',
      'a.js',
      '`Pool` has the fields `a`, `b` and `limit` (from line 1).',
    ],
    [
      'what fields does Pool have',
      'class Pool:\n    @classmethod\n    def make(cls):\n        cls.made, (cls.x, other.y) = 1, (2, 3)\nPool.limit = 3\n',
      'a.py',
      '`Pool` has the fields `made`, `x` and `limit` (from line 1).',
    ],
    [
      'What attributes does Pool have?',
      'class Pool:\n    limit: int = 3\n    def __init__(self, a):\n        self.a, self.b = a, 1\n        a.c = 2\n',
      'a.py',
      '`Pool` has the fields `limit`, `a` and `b` (from line 1).',
    ],
  ])('%s', async (question, text, path, expected) => expect(await askFact(question, text, path)).toBe(expected));
});

describe('parameters and signatures in few words', () => {
  const TEXT = `export async function load(
  path: string,
  depth = 2,
): Promise<Row> {
}
const add = (a: number, b?: number): number => a;
class Box {
  numPositions = 512;
  get(key: string): void {}
}
`;
  it.each<[string, string | undefined]>([
    ['params of load', '`load` takes `path` and `depth` (line 1).'],
    ['parâmetros de load', '`load` recebe `path` e `depth` (linha 1).'],
    [
      'signature of load',
      '`load` is declared in line 1: `async function load( path: string, depth = 2, ): Promise<Row>`.',
    ],
    ['What is the signature of `add`?', '`add` is declared in line 6: `add = (a: number, b?: number): number`.'],
    ['the signature of get of Box', '`get` is declared in line 9: `get(key: string): void`.'],
    ['qual é a assinatura de get?', 'A declaração de `get` está na linha 9: `get(key: string): void`.'],
    ['signature of `gone`', 'There is no `gone` in `a.ts`.'],
    ['signature of Box', undefined],
    ['default value of numPositions?', '`numPositions` is defined in line 8: `numPositions = 512;`.'],
    ['Qual é o valor padrão de numPositions?', 'A definição de `numPositions` está na linha 8: `numPositions = 512;`.'],
    ['default value of depth?', '`depth` of `load` defaults to `2` (line 1).'],
    ['params of training', '`training` does not stand in `a.ts`. This model knows only what stands in the file.'],
  ])('%s', async (question, expected) => expect(await askFact(question, TEXT, 'a.ts')).toBe(expected));
});

describe("what is not there, not surely meant, or somebody else's", () => {
  const TEXT = `export * from './legacy';
import { used } from './used';
class Store { save() {} }
export const registry = { Store: { destroy() {} } };
class Retry { retries = 3; constructor(retries: number, times: number) { const timeout = 5; } }
interface Opt { timeout?: number; run: () => void }
const typed: (a: string) => number = (a) => 1;
new Map();
`;
  it.each([
    ['what methods does Store have?', '`Store` has the method `save` (from line 3).'],
    ['What is the default value of retries in Retry?', undefined],
    ['What is the default value of times in Retry?', '`times` of `Retry` has no default value (line 5).'],
    ['what are the parameters of load_data in utils.py', undefined],
    ['where is load_data in utils.py defined?', undefined],
    [
      'is there any TypeScript',
      '`TypeScript` does not stand in `src/a.ts`. This model knows only what stands in the file.',
    ],
    [
      'does this file contain GitHub',
      '`GitHub` does not stand in `src/a.ts`. This model knows only what stands in the file.',
    ],
    ['does this file contain `GitHub`', 'There is no `GitHub` in `src/a.ts`.'],
    [
      'what parameters does JSON.parse take',
      'There is no `JSON.parse` in `src/a.ts`. This model knows only what stands in the file.',
    ],
    // What the file uses it does not define.
    [
      'what parameters does Map.groupBy take',
      'There is no `Map.groupBy` in `src/a.ts`. This model knows only what stands in the file.',
    ],
    ['where is Map.groupBy', 'There is no `groupBy` in `src/a.ts`.'],
    ['what parameters does Store.parse take', 'There is no `parse` in `src/a.ts`.'],
    [
      'what does typed.bind return',
      'There is no `typed.bind` in `src/a.ts`. This model knows only what stands in the file.',
    ],
    ['what parameters should Retry have', undefined],
    ['what is the return type of typed', undefined],
    ['where is the variable timeout', undefined],
    [
      'where is timeout defined',
      '`timeout` is defined in line 6: `interface Opt { timeout?: number; run: () => void }`. Variables or parameters inside functions are called so, too.',
    ],
    ['what does this file depend on?', 'This file imports `./used` (line 2). It exports from `./legacy` (line 1).'],
    ['which methods does Opt have?', undefined],
    [
      'Which class does destroy belong to?',
      '`destroy` is a method of `Store`, which is an object and no class (line 4).',
    ],
    ['o que importa aqui?', undefined],
    ['o que este arquivo importa?', 'Este arquivo importa `./used` (linha 2). Exporta de `./legacy` (linha 1).'],
  ])('%s', async (question, expected) => expect(await askFact(question, TEXT, 'src/a.ts')).toBe(expected));

  test('no list of what a class has where brackets do not match', async () => {
    expect(
      await askFact('which methods does Store have?', 'class Store {\n  a() {}\n  }\n  b() {}\n}\n', 'src/a.ts'),
    ).toBeUndefined();
  });

  test('in JavaScript types may stand in comments', async () => {
    expect(
      await askFact(
        'what is the return type of size?',
        '/** @returns {number} */\nfunction size(path) {}\n',
        'src/a.js',
      ),
    ).toBeUndefined();
    expect(await askFact('what is the return type of size?', 'function size(path) {}\n', 'src/a.js')).toBe(
      '`size` is declared without a return type (line 1).',
    );
  });

  test('in Python a line may go on', async () => {
    expect(await askFact('params of show', 'def show(a, \\\n         b=1):\n    pass\n', 'a.py')).toBe(
      '`show` takes `a` and `b` (line 1).',
    );
    expect(await askFact('what does f return', 'def f():\n    return \\\n        1\n', 'a.py')).toBe(
      '`f` returns `1` (line 3).',
    );
    expect(await askFact('what does Box extend', 'class Box(Base, \\\n    Other): pass\n', 'a.py')).toBe(
      '`Box` extends `Base` and `Other` (line 1).',
    );
    expect(await askFact('what does it export', '__all__ = ["a", \\\n    "b"]\n', 'a.py')).toBe(
      'By `__all__` (line 1), this file exports `a` and `b`.',
    );
  });

  test('in Python a module of the package, and a name with marks in it', async () => {
    expect(await askFact('what does this file import?', 'from . import views\n', 'src/a.py')).toBe(
      'This file imports `.views` (line 1).',
    );
    expect(await askFact('is os imported', 'import os\n', 'src/a.py')).toBe('Yes: `os` is imported (line 1).');
    expect(await askFact('este arquivo importa os', 'import os\n', 'src/a.py')).toBe(
      'Sim: `os` é importado (linha 1).',
    );
    expect(
      await askFact('what parameters does tmpl take?', 'function tmpl({ a = `x` }) {}\n', 'src/a.js'),
    ).toBeUndefined();
  });

  test('what a conversation is about besides the file', () => {
    const doc = new SourceDocument('src/a.ts', 'src/a.ts', TEXT);
    const after = (earlier: string, question: string) =>
      factAsked(
        [
          { role: 'user', content: 'x' },
          { role: 'assistant', content: earlier },
          { role: 'user', content: question },
        ],
        [doc],
      )?.question;
    expect(
      after('Here:\n```ts\nfunction makeUser(name: string) {}\n```', 'what parameters does makeUser take?'),
    ).toMatchObject({ sure: false });
    expect(after('Yes.', 'what parameters does makeUser take?')).toMatchObject({ sure: true });
    // Only files import, and only one is there.
    expect(after('Yes.', 'what does it import?')).toMatchObject({ kind: 'imports' });
    expect(after('As in `src/b.ts`.', 'what does it import?')).toBeUndefined();
    expect(after('```\nimport a\n```', 'what does it import?')).toBeUndefined();
    expect(after('Yes.', 'what does it define?')).toBeUndefined();
    expect(after('Yes.', 'Which classes?')).toBeUndefined();
  });
});

test('no two groups of a pattern have one name: Node 20 refuses them', () => {
  for (const source of PATTERN_SOURCES) {
    const names = [...source.matchAll(/\(\?<([a-zA-Z]\w*)>/g)].map(([, name]) => name);
    expect(new Set(names).size, source).toBe(names.length);
  }
});

test('chains, branches and objects of any depth take one walk', async () => {
  const texts = {
    'chain.js': `x${".command('c', { handler(argv) {} })".repeat(2000)};\n`,
    'branches.js': `function f(a) {\n${Array.from({ length: 1500 }, (_, i) => `if (a === ${i}) { g(() => ${i}); } else `).join('')} {}\n}\n`,
    'deep.js': `const o = ${'{ a: '.repeat(3000)}1${' }'.repeat(3000)};\n`,
  };
  for (const [file, text] of Object.entries(texts)) {
    const doc = new SourceDocument(file, file, `${text}const last = 1;\n`);
    const syntax = new Syntax(grammars);
    await syntax.prepare(doc);
    let numAsked = 0;
    // What searches from the root is never asked for.
    const parent = vi.spyOn(Node.prototype, 'parent', 'get').mockImplementation(() => {
      numAsked++;
      return null;
    });
    const facts = readFacts(syntax, doc);
    parent.mockRestore();
    expect(facts?.definitions.map(({ name }) => name)).toContain('last');
    expect(numAsked).toBe(0);
    syntax.forget();
  }
});
