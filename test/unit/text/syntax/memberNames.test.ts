/** Members that an object does not have are found, and members that it has in any way are not. */
import { beforeAll, describe, expect, it } from 'vitest';
import { unknownMembers } from '../../../../engine/text/syntax/memberNames.ts';
import { Scopes } from '../../../../engine/text/syntax/scopes.ts';
import { SourceDocument } from '../../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../../engine/text/syntax/syntax.ts';
import { Grammars, grammarFor } from '../../../../engine/text/syntax/syntaxTrees.ts';

const grammars = new Grammars();
const syntax = new Syntax(grammars);
beforeAll(async () => {
  await Promise.all(['typescript', 'javascript', 'python'].map((name) => grammars.load(name)));
});

/** What is found in a line that is written at `|`. */
function found(path: string, marked: string, written: string, everywhere?: readonly string[]): string {
  const offset = marked.indexOf('|');
  const doc = new SourceDocument(path, path, marked.replace('|', ''));
  const place = syntax.at(doc, offset);
  if (!('scan' in place)) throw new Error(`no tree of ${path}`);
  const names = place.withText(written, (tree, text, old) => {
    const grammar = grammarFor(doc) ?? '';
    const end = offset + written.length;
    const start = offset + written.lastIndexOf('\n') + 1;
    const about = { grammar, text, offset, start, end, others: [], everywhere };
    return Scopes.read(tree, text, (scopes) =>
      Scopes.read(old, doc.lf, (before) => unknownMembers({ scopes, before, ...about })),
    );
  });
  return names?.join() ?? 'no tree';
}

/** Lines whose members exist, and lines with one that does not. */
function check(path: string, marked: string, lines: { true?: readonly string[]; invented?: readonly string[] }): void {
  for (const line of lines.true ?? []) expect.soft(found(path, marked, line), `${line} in ${marked}`).toBe('');
  for (const line of lines.invented ?? []) expect.soft(found(path, marked, line), `${line} in ${marked}`).not.toBe('');
}

describe('a class of a script', () => {
  const QUEUE = `
class Base<T> {
  protected kept = new Set<T>();
}
export class Queue<T> extends Base<T> implements Iterable<T> {
  static limit = 3;
  static from(items: string[]) { return new Queue<string>(items); }
  #open = true;
  'quoted': number;
  declare late: string;
  onDrain = () => {};
  constructor(private readonly items: T[], size: number) { super(); this.width = size; }
  get length() { return this.items.length; }
  set length(value) {}
  async *each() {}
  [Symbol.iterator]() {}
  overloaded(a: string): void;
  overloaded(a: unknown): void { const { started } = this; }
  run() {
    |
  }
}
class Small extends Queue<string> { only = 1; }
`;
  it('has fields, methods, accessors, parameter properties, and those of its bases and subclasses', () => {
    check('a.ts', QUEUE, {
      true: [
        'this.items; this.length; this.each(); this.onDrain(); this.#open; this.quoted; this.late; this.width; this.started;',
        'this.overloaded(1); this.kept.add(1); this.only; this.constructor; this.toString();',
        'return () => this.items.map((item) => this.kept.has(item));',
        'this.anything = 1; this.count += 1;',
        '[this.a, this.b] = [1, 2];',
        'run(function () { this.anything(); });',
        'return { get size() { return this.anything; } };',
      ],
      invented: [
        'this.size;',
        'this.open;',
        'this.#items;',
        'return () => this.value;',
        'log({ a: () => this.value });',
        'if (this.isEmpty()) {',
        'for (const item of this.entries()) {',
        'const { length } = this.drained;',
      ],
    });
  });

  it('has static members itself', () => {
    const marked = `${QUEUE.replace('|', '')}function f() {\n  |\n}\n`;
    check('a.ts', marked, {
      true: ['Queue.from([]); Queue.limit; Queue.name; Queue.prototype; Queue.bind(1);', 'Queue.instance ??= 1;'],
      invented: ['Queue.create();'],
    });
    const own = QUEUE.replace('  run() {', '  static run() {');
    check('a.ts', own, { true: ['this.limit; this.name; this.from([]);'], invented: ['this.parse();'] });
    check('a.ts', QUEUE.replace('run() {\n    |\n  }', 'static {\n    |\n  }'), {
      true: ['this.name;'],
      invented: ['this.parse();'],
    });
  });

  it('is found behind names, expressions and functions', () => {
    const at = (code: string) => `${QUEUE.replace('|', '')}${code}`;
    for (const code of [
      'const q = new Queue<string>([], 1);\n|\n',
      'let q: Queue<string>;\n|\n',
      'function f(a: number, q?: Queue<string>) {\n  |\n}\n',
      'const make = () => new Queue([], 1);\nconst q = make();\n|\n',
      'const make = (): Queue<string> => other();\nconst q = make();\n|\n',
      'function make(a) {\n  if (a) return null;\n  return new Queue([], 1);\n}\nconst q = make();\n|\n',
      'let q = null;\nif (a) q = new Queue([], 1);\nelse q = new Queue([], 2);\n|\n',
      'const first = new Queue([], 1);\nconst q = first;\n|\n',
    ])
      check('a.ts', at(code), { true: ['q.items; q.length; q.kept;'], invented: ['q.drain();'] });
    for (const code of [
      'let q = new Queue([], 1);\nq = other();\n|\n',
      'const q = make();\nfunction make(a) {\n  if (a) return other();\n  return new Queue([], 1);\n}\n|\n',
      'const make = async () => new Queue([], 1);\nconst q = make();\n|\n',
      'const { q } = new Queue([], 1);\n|\n',
      'const [q] = [new Queue([], 1)];\n|\n',
      'const q = new Queue([], 1);\nlist.map((q) => {\n  |\n});\n',
      'const q = new other.Queue([], 1);\n|\n',
      'let q: Queue<string> & Other;\n|\n',
      'Object.assign(Queue.prototype, { drain() {} });\nconst q = new Queue([], 1);\n|\n',
      'interface Queue<T> { drain(): void }\nconst q = new Queue([], 1);\n|\n',
      'namespace Queue { export const a = 1; }\nconst q = new Queue([], 1);\n|\n',
    ])
      check('a.ts', at(code), { true: ['q.drain();'] });
  });

  it('may be an expression, or stand in another class', () => {
    check('a.js', 'const Queue = class { size = 1; run() {\n  |\n} };\n', {
      true: ['this.size;', 'new Queue().size;'],
      invented: ['this.drain();'],
    });
    check('a.js', 'const Queue = class { size = 1; };\nconst q = new Queue();\n|\n', {
      true: ['q.size;'],
      invented: ['q.drain();'],
    });
    check(
      'a.js',
      'class A {\n  outer = 1;\n  run() {\n    return class {\n      inner = 1;\n      go() {\n        |\n      }\n    };\n  }\n}\n',
      {
        true: ['this.inner; this.go();'],
        invented: ['this.outer;', 'this.other;'],
      },
    );
  });

  it('may get any member from a mixin, a decorator, a base elsewhere or an index', () => {
    for (const head of [
      'class A extends mixin(Base) {',
      'class A extends Elsewhere {',
      '@component class A {',
      'class A { [name: string]: unknown;',
      'class A { constructor(o) { Object.assign(this, o); }',
      'class A { constructor(o) { return new Proxy(this, o); }',
      'class A { constructor(o) { Emitter.call(this); }',
      'class A { set(name, value) { this[name] = value; }',
    ])
      check('a.ts', `${head}\n  run() {\n    |\n  }\n}\n`, { true: ['this.anything;'] });
    check('a.ts', '@component\nexport class A {\n  run() {\n    |\n  }\n}\n', { true: ['this.anything;'] });
  });

  it('is read without the completion where that breaks it', () => {
    const marked = 'class A {\n  run() {\n    |\n  }\n  push(item: string): void {\n    this.items = [item];\n  }\n}\n';
    check('a.ts', marked, {
      true: ['if (this.push(1)) {', 'this.items.map((item) => {'],
      invented: ['if (this.drain()) {'],
    });
  });

  it('may be written by the completion itself', () => {
    const marked = 'class A {\n  a = 1;\n|\n}\n';
    check('a.ts', marked, {
      true: ['  drain() {}\n  run() {\n    if (this.drain()) {', '  run() { const a = new A();\n    a.run();\n  }'],
      invented: ['  drain() {}\n  run() { this.flush(); }'],
    });
  });
});

describe('an interface, enum or literal of a script', () => {
  const TYPES = `
interface Named { name: string }
interface Options extends Named { width?: number; draw(): void }
interface Open { [name: string]: number }
interface Far extends Elsewhere { a: 1 }
type Point = { x: number; y: number };
enum Color { Red, Green = 2 }
const SIZES = {
  small: 1,
  'large': 2,
  medium() {
    return 3;
  },
};
const some = { ...SIZES, a: 1 };
function f(options: Options, point: Point, open: Open, far: Far, inline: { a: 1 }) {
  |
}
`;
  it('has what is written in it', () => {
    check('a.ts', TYPES, {
      true: [
        'options.width; options.name; options.draw(); options.toString();',
        'point.x + point.y; inline.a; open.anything; far.anything;',
        'Color.Red; Color.Green; SIZES.small; SIZES.large; SIZES.medium(); some.anything;',
      ],
      invented: ['options.height;', 'point.z;', 'inline.b;', 'Color.Blue;', 'SIZES.huge;'],
    });
  });

  it('may get members where a literal is used', () => {
    for (const line of ['SIZES[name] = 1;', 'SIZES.huge = 4;', 'Object.assign(SIZES, more);', 'fill(SIZES);'])
      check('a.ts', `${line}${TYPES}`, { true: ['SIZES.huge;'] });
    check('a.js', 'const all = {};\n|\n', { true: ['all.anything;'] });
  });
});

describe('a value of the language', () => {
  it('has the members of its type', () => {
    check('a.ts', 'function f(list: readonly string[], text: string, n: number, when = new Date()) {\n  |\n}\n', {
      true: ['list.at(-1); text.trim(); n.toFixed(1); when.anything;'],
      invented: ['list.size;', 'text.strip();', 'n.format();'],
    });
    check('a.js', 'const rows = [\n  1,\n  2,\n];\nconst text = `\n`;\nconst map = new Map();\n|\n', {
      true: ['rows.push(3); text.length; map.get(1);'],
      invented: ['rows.append(3);', 'text.strip();', 'map.put(1);'],
    });
    check('a.ts', 'interface Array<T> { last(): T }\nconst rows = [1];\n|\n', {
      true: ['rows.last();', 'rows.push(1);'],
    });
    check('a.ts', 'Array.prototype.last = function () {};\nconst rows = [1];\n|\n', { true: ['rows.last();'] });
    check('a.js', 'function f(rows = []) {\n  |\n}\n', { true: ['rows.anything;'] });
  });

  it('is known of modules that are imported under another name', () => {
    check('a.ts', "import * as files from 'node:fs';\nimport way, { join } from 'path';\n|\n", {
      true: ['files.readFileSync(a); way.join(a); join.anything;'],
      invented: ['files.readAll(a);', 'way.combine(a);'],
    });
    check('a.js', "const files = require('fs');\nconst { sep } = require('path');\n|\n", {
      true: ['files.existsSync(a); sep.anything;'],
      invented: ['files.exist(a);'],
    });
    check('a.py', 'import os.path\nimport json as j, sys\nfrom os import path as p\n|\n', {
      true: ['os.getcwd(); os.path; j.dumps(1); sys.argv; p.anything'],
      invented: ['j.stringify(1)', 'sys.arguments', 'os.homedir()'],
    });
  });
});

describe('a class of Python', () => {
  const QUEUE = `
from dataclasses import dataclass
class Base:
    kept = 1
@dataclass(frozen=True)
class Point:
    x: int = 0
    y: int = 0
class Queue(Base):
    __slots__ = ("slot", "other_slot")
    a, b = 1, 2
    c = d = 3
    class Inner:
        pass
    def __init__(self, limit):
        self.items, self.extra = [], limit
        for self.last in self.items:
            pass
    @property
    def size(self):
        return 1
    @classmethod
    def make(cls, limit):
        return cls(limit)
    async def put(self, limit):
        |
class Small(Queue):
    only = 1
def make():
    return Queue(1)
`;
  it('has what its body and its methods declare', () => {
    check('a.py', QUEUE, {
      true: [
        'self.slot, self.a, self.b, self.c, self.d, self.Inner, self.items, self.extra, self.last, self.size',
        'self.make(1), self.put(1), self.kept, self.only, self.__class__',
        'return sorted(self.items, key=lambda item: self.size)',
        'self.later: int = 1',
        'self.one, self.two = 1, 2',
      ],
      invented: ['self.limit', 'self.drain()', 'if self.is_empty():', 'return [x for x in self.rows]'],
    });
    check(
      'a.py',
      QUEUE.replace('(cls, limit):\n        return', '(cls, limit):\n        |\n        return').replace(
        /\|(?=\nclass Small)/,
        'pass',
      ),
      {
        true: ['cls.a, cls.__name__, cls.mro()'],
        invented: ['cls.create()'],
      },
    );
  });

  it('is found behind names, types and functions', () => {
    const file = QUEUE.replace('        |', '        pass');
    for (const code of [
      'q = Queue(1)\n|\n',
      'def f(q: Queue, n=1):\n    |\n',
      'q = make()\n|\n',
      'q: Queue = other()\n|\n',
    ])
      check('a.py', file + code, { true: ['q.items, q.kept, q.size'], invented: ['q.drain()'] });
    for (const code of [
      'q = Queue(1)\nq = other()\n|\n',
      'for q in [Queue(1)]:\n    |\n',
      'with Queue(1) as q:\n    |\n',
      'q, r = Queue(1), 2\n|\n',
      'def f(q=Queue(1)):\n    |\n',
      'def f(q: "Queue"):\n    |\n',
      'q = None\ndef f():\n    global q\n    q = other()\nq = Queue(1)\n|\n',
    ])
      check('a.py', file + code, { true: ['q.drain()'] });
    check('a.py', `${file}p = Point(1, 2)\n|\n`, { true: ['p.x, p.y, p.__eq__'], invented: ['p.z'] });
  });

  it('may answer for any name', () => {
    for (const line of [
      'def __getattr__(self, name): pass',
      'def load(self, o): self.__dict__.update(o)',
      'def load(self, o): setattr(self, o, 1)',
      'def load(self, o): vars(self).update(o)',
    ])
      check('a.py', `class A:\n    ${line}\n    def run(self):\n        |\n`, { true: ['self.anything'] });
    for (const head of ['class A(Enum):', 'class A(metaclass=Meta):', 'class A(Base, Other):', '@attr.s\nclass A:'])
      check('a.py', `${head}\n    def run(self):\n        |\n`, { true: ['self.anything'] });
  });

  it('has the values of the language', () => {
    check('a.py', 'from typing import List\ndef f(names: List[int], by: dict[str, int], text: str):\n    |\n', {
      true: ['names.append(1); by.get(1); text.strip()'],
      invented: ['names.push(1)', 'by.put(1)', 'text.trim()'],
    });
    check('a.py', 'rows = [\n    1,\n]\nby = {\n    1: 2,\n}\none = {1}\nraw = b"a"\n|\n', {
      true: ['rows.sort(); by.items(); one.add(2); raw.decode()'],
      invented: ['rows.length', 'by.has(1)', 'one.has(1)'],
    });
  });
});

it('a value that the file makes alone has no member that stands nowhere', () => {
  const marked = 'const x = make({ a: [1] });\nfunction make(o) {\n  if (o) return { b: 1 };\n  return [2];\n}\n|\n';
  expect(found('a.ts', marked, 'x.atime;', [])).toBe('x.atime');
  expect(found('a.ts', marked, 'x.atime;', ['stat.atime'])).toBe('');
  expect(found('a.ts', marked, 'x.atime;')).toBe('');
  expect(found('a.ts', marked.replace('[1]', 'other'), 'x.atime;', [])).toBe('');
  expect(found('a.ts', marked.replace('[2]', 'other()'), 'x.atime;', [])).toBe('');
});
