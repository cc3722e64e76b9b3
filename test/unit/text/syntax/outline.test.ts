/** The outline of a file: without the bodies of its functions, in every grammar with functions. */
import { beforeAll, describe, expect, it } from 'vitest';
import { outlinesOf } from '../../../../engine/text/syntax/outline.ts';
import { SourceDocument } from '../../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../../engine/text/syntax/syntax.ts';
import { GRAMMARS, Grammars } from '../../../../engine/text/syntax/syntaxTrees.ts';

const grammars = new Grammars();
beforeAll(() => Promise.all(Object.keys(GRAMMARS).map((name) => grammars.load(name))), 60_000);

async function outlines(path: string, text: string) {
  const doc = new SourceDocument('a', path, text);
  const syntax = new Syntax(grammars);
  await syntax.prepare(doc);
  const found = syntax.read(doc, (tree, _, lf) => outlinesOf(tree, lf));
  syntax.forget();
  return found;
}

const CLASS = `import { x } from './x.ts';

/** Holds numbers. */
export class Box<T> {
  #items: T[] = [];

  get size(): number {
    const { length } = this.#items;
    return length;
  }

  short() { return 1; }
}

export const add = (a: number): number => {
  const b = a + 1;
  return b;
};
`;

it('keeps signatures, fields, comments and short bodies', async () => {
  expect(await outlines('src/box.ts', CLASS)).toEqual([
    {
      text: `import { x } from './x.ts';

/** Holds numbers. */
export class Box<T> {
  #items: T[] = [];

  get size(): number { ... }

  short() { return 1; }
}

export const add = (a: number): number => { ... };
`,
      numLines: 6,
    },
  ]);
});

it('keeps as much as it can of a function around others, in the first outline', async () => {
  const text = `describe('a', () => {
  const one = 1;
  test('b', () => {
    one();
    two();
  });
});
`;
  expect(await outlines('a.test.ts', text)).toEqual([
    { text: "describe('a', () => {\n  const one = 1;\n  test('b', () => { ... });\n});\n", numLines: 3 },
    { text: "describe('a', () => { ... });\n", numLines: 6 },
  ]);
});

const BRACED = '{\n  a;\n  b;\n}';
describe.each([
  ['a.py', 'def f(a):\n    b = a\n    c = b\n    return c\n', 'def f(a):\n    ...\n', 3],
  ['a.go', `package a\n\nfunc f(a int) ${BRACED}\n`, 'package a\n\nfunc f(a int) { ... }\n', 3],
  ['a.rs', `fn f(a: i32) ${BRACED}\n`, 'fn f(a: i32) { ... }\n', 3],
  ['A.java', `class A {\n  void f() ${BRACED}\n}\n`, 'class A {\n  void f() { ... }\n}\n', 3],
  ['a.cpp', `int f(int a) ${BRACED}\n`, 'int f(int a) { ... }\n', 3],
  ['A.cs', `class A {\n  void F() ${BRACED}\n}\n`, 'class A {\n  void F() { ... }\n}\n', 3],
])('%s', (path, text, outline, numLines) => {
  it('is outlined', async () => {
    expect(await outlines(path, text)).toEqual([{ text: outline, numLines }]);
  });
});

it('has none for a file without long functions', async () => {
  expect(await outlines('a.ts', 'export const a = 1;\nfunction f() {\n  return 1; }\n')).toEqual([]);
  expect(await outlines('a.css', 'a {\n  b: c;\n  d: e;\n}\n')).toEqual([]);
});
