/** Definitions, imports, parameters and members are read off the syntax trees of three languages. */
import { beforeAll, describe, expect, it } from 'vitest';
import { ask, loadGrammars } from './askFacts.ts';

beforeAll(loadGrammars, 60_000);

describe('in TypeScript', () => {
  const TEXT = `import { open } from 'node:fs';
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
  it.each<[string, string | undefined]>([
    [
      '/outline',
      'Outline of `src/store.ts`:\n\nClasses:\n\n- `Store` (line 5): `#count` (line 6), `limit` (line 7), `constructor` (line 8), `size` (line 11), `flush` (line 14), `close` (line 18)\n\nFunctions: `join` (line 21), `take` (line 22), `over` (line 23).\n\nTypes:\n\n- `Closable` (line 27): `close` (line 28)\n\nVariables: `LIMIT` (line 30).',
    ],
    [
      '/imports',
      'Imports of `src/store.ts`: `node:fs` (line 1), `./row` (line 2), `./late` (line 16). It re-exports from `./other` (line 3).',
    ],
    ['/where LIMIT', '`LIMIT` is defined on line 30: `const LIMIT = 3;`.'],
    ['/where Line', '`Line` is imported from `./row` (line 2).'],
    ['/where close', '`close` is defined:\n\n- on line 18: `abstract close(): void;`\n- on line 28: `close(): void;`'],
    ['/where rest', '`rest` appears on line 14: `flush(force?: boolean, ...rest: string[]): Promise<void> {`.'],
    ['/where Store.close', '`Store.close` is defined on line 18: `abstract close(): void;`.'],
    ['/where gone', '`gone` does not appear in `src/store.ts`.'],
    [
      '/signature flush',
      'The signature of `Store.flush` is on line 14: `flush(force?: boolean, ...rest: string[]): Promise<void>`.',
    ],
    [
      '/signature Store',
      'The signature of `Store` is on line 8: `constructor(private readonly path: string, limit = 10)`.',
    ],
    ['/signature join', "The signature of `join` is on line 21: `join = (left: string, right = 'x')`."],
    [
      '/signature over',
      'The signature of `over` is on line 23: `function over(a: string): string`. The signature of `over` is on line 24: `function over(a: string, b?: number): string`.',
    ],
    ['/signature LIMIT', 'The signature of `LIMIT` is on line 30: `LIMIT = 3`.'],
    ['/signature Closable', 'The signature of `Closable` is on line 27: `interface Closable`.'],
    ['/callers LIMIT', 'Nothing in `src/store.ts` uses `LIMIT`.'],
    ['/callers inner', 'Nothing in `src/store.ts` uses `inner`.'],
  ])('%s', async (question, answer) => expect(await ask(question, { 'src/store.ts': TEXT })).toBe(answer));
});

describe('in JavaScript', () => {
  const TEXT = `'use strict';
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
  it.each<[string, string | undefined]>([
    ['/outline', 'Outline of `lib/pool.js`:\n\nFunctions:\n\n- `load` (line 4)\n- `Pool` (line 7): `drain` (line 8)'],
    ['/imports', 'Imports of `lib/pool.js`: `fs` (line 2), `path` (line 3), `late` (line 5).'],
    ['/where read', '`read` is imported from `fs` (line 2).'],
    [
      '/signature load',
      'The signature of `load` is on line 4: `exports.load = function load(file, { deep = true } = {}, done = () => {})`.',
    ],
    [
      '/signature drain',
      'The signature of `Pool.drain` is on line 8: `Pool.prototype.drain = function (now = false)`.',
    ],
    ['/where drain', '`Pool.drain` is defined on line 8: `Pool.prototype.drain = function (now = false) {};`.'],
    [
      '/callers Pool',
      '`Pool` appears:\n\n- on line 8: `Pool.prototype.drain = function (now = false) {};`\n- on line 9: `module.exports = class Queue extends Pool {`',
    ],
  ])('%s', async (question, answer) => expect(await ask(question, { 'lib/pool.js': TEXT })).toBe(answer));
});

describe('in Python', () => {
  const TEXT = `from __future__ import annotations
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
  it.each<[string, string | undefined]>([
    [
      '/outline',
      'Outline of `src/reader.py`:\n\nClasses:\n\n- `Reader` (line 7): `depth` (line 8), `__init__` (line 10), `name` (line 14), `make` (line 18)\n\nFunctions: `fetch` (line 21).\n\nVariables: `LIMIT` (line 24).',
    ],
    [
      '/imports',
      'Imports of `src/reader.py`: `__future__` (line 1), `os.path` (line 2), `sys` (line 2), `typing` (line 3), `json` (line 11).',
    ],
    ['/where p', '`p` is imported from `os.path` (line 2).'],
    ['/where depth', '`Reader.depth` is defined on line 8: `depth: int = 3`.'],
    [
      '/signature Reader',
      'The signature of `Reader` is on line 10: `def __init__(self, path: str, *, mode="r", **options: Any) -> None`.',
    ],
    ['/signature make', 'The signature of `Reader.make` is on line 18: `def make(cls_name, *args)`.'],
    [
      '/signature fetch',
      'The signature of `fetch` is on line 21: `async def fetch(url: str, timeout: float = 5.0) -> "Any"`.',
    ],
    ['/signature name', 'The signature of `Reader.name` is on line 14: `def name(self) -> str`.'],
    ['/callers fetch', 'Nothing in `src/reader.py` uses `fetch`.'],
  ])('%s', async (question, answer) => expect(await ask(question, { 'src/reader.py': TEXT })).toBe(answer));
});

describe('the members of a class', () => {
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
  it.each<[string, string | undefined]>([
    ['What fields does `Row` have?', 'Properties of `Row`: `id` (line 1), `line` (line 1).'],
    [
      'What fields does `Box` have?',
      'Properties of `Box`: `count` (line 4), `width` (line 5), `run` (line 6), `late` (line 6), `path` (line 7), `size` (line 12), `kept` (line 12). Base classes of `Box`: `Base` (line 3). Inherited members are not listed.',
    ],
    ['What fields does `Plain` have?', 'Properties of `Plain`: none.'],
    ['What methods does `Row` have?', 'Methods of `Row`: `read` (line 1).'],
    [
      'What members does `Box` have?',
      'Methods of `Box`: `constructor` (line 7). Properties of `Box`: `count` (line 4), `width` (line 5), `run` (line 6), `late` (line 6), `path` (line 7), `size` (line 12), `kept` (line 12). Base classes of `Box`: `Base` (line 3). Inherited members are not listed.',
    ],
    ['What fields does `Pair` have?', undefined],
  ])('%s', async (question, answer) => expect(await ask(question, { 'a.ts': TEXT })).toBe(answer));
});

describe('fields that methods assign', () => {
  it.each<[string, string, string, string | undefined]>([
    [
      'class Pool:\n    a, b = 1, 2\n',
      'a.py',
      'What fields does `Pool` have?',
      'Properties of `Pool`: `a` (line 2), `b` (line 2).',
    ],
    [
      'interface Pool { on: { click: string }; get size(): number }\n',
      'a.ts',
      'What fields does `Pool` have?',
      'Properties of `Pool`: `on` (line 1), `size` (line 1).',
    ],
    [
      'class Pool {\n  constructor(size) {\n    this.size = size;\n    const add = () => { this.all ??= []; };\n  }\n}\n',
      'a.js',
      'What fields does `Pool` have?',
      'Properties of `Pool`: `size` (line 3), `all` (line 4).',
    ],
    [
      'class Pool {\n  constructor(options) {\n    Object.assign(this, options);\n  }\n}\n',
      'a.js',
      'What fields does `Pool` have?',
      undefined,
    ],
    [
      'class Pool {\n  go() { [this.a, { b: this.b }] = pair; }\n}\nPool.limit = 3;\nPool.make = () => 1;\nother.size = 2;\n',
      'a.js',
      'What fields does `Pool` have?',
      'Properties of `Pool`: `a` (line 2), `b` (line 2), `limit` (line 4).',
    ],
    [
      'class Pool {\n  on = () => 1;\n  constructor(private size: number) { this.all = []; this.last = 1; }\n  set last(value) {}\n}\n',
      'a.ts',
      'Which fields are there?',
      'Outline of `a.ts`:\n\nClasses:\n\n- `Pool` (line 1): `on` (line 2), `constructor` (line 3), `last` (line 4)',
    ],
    [
      'class Pool:\n    @classmethod\n    def make(cls):\n        cls.made, (cls.x, other.y) = 1, (2, 3)\nPool.limit = 3\n',
      'a.py',
      'What fields does `Pool` have?',
      'Properties of `Pool`: `made` (line 4), `x` (line 4), `limit` (line 5).',
    ],
  ])('%j', async (text, path, question, answer) => expect(await ask(question, { [path]: text })).toBe(answer));
});

it('an outline has a method whose name a variable has, too', async () => {
  const text = 'var drain = 1;\nfunction Pool() {}\nPool.prototype.drain = function () {};\n';
  expect(await ask('/outline', { 'a.js': text })).toBe(
    'Outline of `a.js`:\n\nFunctions:\n\n- `Pool` (line 2): `drain` (line 3)\n\nVariables: `drain` (line 1).',
  );
});

it.each<[string, string, string]>([
  ["def f(a='#'):\n    # adds\n    return a\n", 'a.py', "The signature of `f` is on line 1: `def f(a='#')`."],
  ['def f(a): # adds\n    return a\n', 'a.py', 'The signature of `f` is on line 1: `def f(a)`.'],
  ['function f(a) /* adds */ // b\n{ return a; }\n', 'a.ts', 'The signature of `f` is on line 1: `function f(a)`.'],
])('a comment before the body is no part of the declaration: %j', async (text, path, answer) =>
  expect(await ask('/signature f', { [path]: text })).toBe(answer),
);

describe('calls by name', () => {
  it.each<[string, string, string, string | undefined]>([
    [
      "import { parse } from './parse';\nfunction add(a) { return parse(a) ?? JSON.parse(a); }\nnew Set().add(1).add(2);\n",
      'a.ts',
      '/callers parse',
      'Callers of `parse`: `add` (line 2).',
    ],
    [
      "import { parse } from './parse';\nfunction add(a) { return parse(a) ?? JSON.parse(a); }\nnew Set().add(1).add(2);\n",
      'a.ts',
      '/callers add',
      '`add` appears on line 3: `new Set().add(1).add(2);`.',
    ],
    [
      'function load() {}\nawait load<Row>(1);\nload!(2);\n(load)(3);\nload?.(4);\nnew load<Row>(5);\n(await load)(6);\nload`x`;\n(load as any)(7);\n',
      'a.ts',
      '/callers load',
      'Callers of `load`: outside functions (line 2, line 3, line 4, line 5, line 6, line 7, line 8). Its name also appears on line 9: `(load as any)(7);`.',
    ],
    [
      'from a import load\n@load(1)\ndef f():\n    return self.load()\n',
      'a.py',
      '/callers load',
      'Callers of `load`: outside functions (line 2). Its name also appears on line 4: `return self.load()`.',
    ],
    [
      'from a import load\n@load(1)\ndef f():\n    return self.load()\n',
      'a.py',
      '/callers self.load',
      'Callers of `load`: outside functions (line 2), `f` (line 4). Its name also appears on line 1: `from a import load`.',
    ],
  ])('%j', async (text, path, question, answer) => expect(await ask(question, { [path]: text })).toBe(answer));
});

describe('a file with syntax errors', () => {
  const TEXT = `class Half {
  one(x) {
    if (x) {
  }
  last() { return 1; }
}
`;
  it.each<[string, string | undefined]>([
    [
      '/outline',
      'Outline of `a.ts`:\n\nClasses:\n\n- `Half` (line 1): `one` (line 2)\n\nThe file has syntax errors: there may be more.',
    ],
    ['/signature last', '`last` appears on line 5: `last() { return 1; }`.'],
    ['/callers last', '`last` appears on line 5: `last() { return 1; }`.'],
    ['What methods does `Half` have?', undefined],
    ['Which class does `one` belong to?', '`one` is defined on line 2: `one(x) {`.'],
    [
      'Which functions are defined?',
      'Outline of `a.ts`:\n\nClasses:\n\n- `Half` (line 1): `one` (line 2)\n\nThe file has syntax errors: there may be more.',
    ],
  ])('%s', async (question, answer) => expect(await ask(question, { 'a.ts': TEXT })).toBe(answer));
});

describe('Python statements with continued lines', () => {
  const TEXT = `def show(a, \\
         b=1):
    pass
class Box(Base, \\
    Other): pass
`;
  it.each<[string, string | undefined]>([
    ['/signature show', 'The signature of `show` is on line 1: `def show(a, \\ b=1)`.'],
    ['What does Box extend?', 'Base classes of `Box`: `Base` (line 4), `Other` (line 4).'],
  ])('%s', async (question, answer) => expect(await ask(question, { 'a.py': TEXT })).toBe(answer));
});
