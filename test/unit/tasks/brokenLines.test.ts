/** Completions of several lines end before a line with an error. What they leave open is no error. */
import { beforeAll, expect, it } from 'vitest';
import { prepareComplete } from '../../../engine/tasks/completeTask.ts';
import type { Layout } from '../../../engine/text/prompt/layout.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../engine/text/syntax/syntax.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { starterLayout } from '../../support/starter.ts';

let layout: Layout;
const grammars = new Grammars();
const syntax = new Syntax(grammars);
beforeAll(async () => {
  layout = await starterLayout({ copies: true });
  await Promise.all(['typescript', 'tsx', 'python', 'go', 'java', 'rust', 'cpp'].map((name) => grammars.load(name)));
});

/** What is shown of `raw` at `|`, at its end, and after each of its characters. */
function shown(extension: string, marked: string, raw: string): { text: string; steps: string[] } {
  const offset = marked.indexOf('|');
  const doc = new SourceDocument(`${extension} ${marked}`, `src/a.${extension}`, marked.replace('|', ''));
  const { shape } = prepareComplete(layout, doc, { offset, multiline: true }, undefined, syntax);
  const steps = Array.from({ length: raw.length }, (_, end) => shape(raw.slice(0, end), false).text);
  return { text: shape(raw, true).text, steps };
}

it.each([
  ['a value that is missing', 'ts', 'function f() {\n  |\n}\n', 'const a = 1;\n  let e = ;\n  g(e);', 'const a = 1;'],
  ['an operand that is no expression', 'ts', 'function f() {\n  |\n}\n', 'const a = b;\n  if (a &&) {', 'const a = b;'],
  ['a declaration in Go', 'go', 'package p\n\nfunc f() {\n\t|\n}\n', 'a := 1\n\tb := := 2\n\tc()', 'a := 1'],
  [
    'a statement in Java',
    'java',
    'class A {\n  void f() {\n    |\n  }\n}\n',
    'int a = 1;\n    int = = 2;\n    g();',
    'int a = 1;',
  ],
  ['a statement in C++', 'cpp', 'void f() {\n  |\n}\n', 'int a = 1;\n  if (a b c) {\n    g();', 'int a = 1;'],
])('before %s', (_, extension, marked, raw, expected) => {
  const { text, steps } = shown(extension, marked, raw);
  expect(text).toBe(expected);
  for (const step of steps) expect(text.startsWith(step), step).toBe(true);
});

it.each([
  ['a block', 'ts', 'function f() {\n  |\n}\n', 'const a = b;\n  if (a) {\n    g(a);'],
  ['the beginning of a block', 'ts', 'function f() {\n  |\n}\n', 'const a = b;\n  if (a) {'],
  [
    'a call with a function',
    'ts',
    'function f() {\n  |\n}\n',
    "res.on('data', (a) => {\n    g(a);\n  });\n  res.on('end', () => {",
  ],
  ['an object', 'ts', 'function f() {\n  |\n}\n', 'items.push({\n    height: a.height,\n    width: a.width,'],
  ['an operator', 'ts', 'function f() {\n  |\n}\n', "g(\n    '<a>' +"],
  ['an element', 'tsx', 'function F() {\n  |\n}\n', 'return (\n    <View\n      style={a}'],
  ['a block of Python', 'py', 'def f(a):\n    |\n', 'try:\n        g(a)'],
  ['a block of Go', 'go', 'package p\n\nfunc f() {\n\t|\n}\n', 'a, err := g()\n\tif err != nil {'],
  ['a block of Rust', 'rs', 'fn f() {\n    |\n}\n', 'let a = g();\n    match a {'],
])('%s may be left open', (_, extension, marked, raw) => {
  const { text, steps } = shown(extension, marked, raw);
  expect(text).toBe(raw);
  for (const step of steps) expect(raw.startsWith(step), step).toBe(true);
});

it.each([
  ['py', 'def main():\n    reading = client.|\n', 'warmest(["Oslo"])))', 'warmest(["Oslo"])'],
  ['py', 'class A:\n    def run(self, |\n    ):\n        pass\n', 'text):', 'text'],
  ['py', 'class A:\n    def run(self, |\n\n    ) -> None:\n        pass\n', 'text: str):', 'text: str'],
  ['py', 'print(\n    describe(|\n)\n', 'text))', 'text)'],
  ['py', 'print([\n    describe(|\n])\n', 'text)])', 'text)'],
  ['py', 'rows = [\n    f(|\n)\n', 'text)]', 'text'],
  ['py', 'def run(self, |\n\ndef go(self):\n    return (1))\n', 'text)):', 'text)'],
  ['py', 'print(describe(\n    client.|\n', 'warmest(["Oslo"])))', 'warmest(["Oslo"])))'],
  ['py', "text = 'it is ('  # don't (\nrows = |\n", 'load(")")])', 'load(")")'],
  ['py', '"""Doc (it\'s)."""\nrows = |\n', 'load(a))\nprint(1)', 'load(a)'],
  ['py', 'def f(rows):\n    |\n', 'a = g(rows)\n    b = h(a))\n    return b', 'a = g(rows)\n    b = h(a)'],
  ['py', 'x = "a (|\n', 'b)', 'b)'],
  ['py', '# see f(|\n', 'a)', 'a)'],
  ['py', 'x = """a(\n|\n', 'b)', 'b)'],
  ['py', "x = 'a'\ny = |\n", 'g(b))', 'g(b)'],
  ['py', 'def f(x):\n    |\n', 'return g(x):', 'return g(x)'],
  ['py', 'def f(x):\n    total = sum(|\n', 'g(x)):', 'g(x))'],
  ['py', 'def f(x):\n    if x:\n        a = 1\n    |\n', 'else g(x):', 'else'],
  ['py', 'def f(x):\n    |\n', 'a = g(x) b', 'a = g(x)'],
  ['py', 'def f(x):\n    a = [g(b) |\n', 'for b in h(x)]:', 'for b in h(x)]'],
  ['ts', 'function f() {\n  const a = |\n}\n', 'g(b)));', 'g(b)'],
  ['ts', 'run(() => {\n  const a = |\n});\n', 'g(b)', 'g(b)'],
  ['ts', 'run(\n  a,\n  |\n', 'g(b));', 'g(b));'],
])('before a bracket or colon that does not fit: %s %j + %j', (extension, marked, raw, expected) => {
  const { text, steps } = shown(extension, marked, raw);
  expect(text).toBe(expected);
  for (const step of steps) expect(text.startsWith(step), step).toBe(true);
});

it.each([
  ['def f(x):\n    |\n', 'for a in g(x):'],
  ['def f(x):\n    |\n', 'if x and g(x[1]):'],
  ['def f(x):\n    if x:\n        a = 1\n    |\n', 'elif g(x):'],
  ['def f(x):\n    try:\n        g()\n    |\n', 'except (A, B):'],
  ['def f(x):\n    match x:\n        |\n', 'case P(a, b):'],
  ['def f(x):\n    |\n', 'with open(x) as a, open(g(x)):'],
  ['class A:\n    |\n', 'async def g(self, x: list[int]):'],
  ['class A:\n    |\n', '@g(1)'],
  ['class A:\n    a: |\n', 'dict[str, list[int]]'],
  ['a = {\n    |\n', 'g(x):'],
  ['def f(x):\n    return |\n', 'lambda: g(x)'],
  ['|\nimport a\n', '%matplotlib inline'],
  ['|\nimport a\n', '!pip install a'],
  ['def f(x):\n    |\n', 'case = case.lower()'],
  ['def f(x):\n    |\n', 'case, rest = g(x)'],
  ['def f(x):\n    |\n', 'case.run(x)'],
  ['def f(x):\n    |\n', 'key = lambda a'],
  ['def f(x):\n    |\n', 'a = (b if c'],
  ['d = {|\n', '(0, 1): 6, (1, 2'],
  ['d = [|\n', '(a, b) for a, (b, c'],
  ['def f(x):\n    |\n', 'assert x not'],
  ['def f(x):\n    |\n', 'for a, b in zip(x,'],
  ['def f(x):\n    |\n', 'with open(x) as a, open('],
  ['def f(x):\n    match x:\n        |\n', 'case P(a,'],
  ['class A:\n    |\n', '@g(1,'],
  ['class A:\n    |\n', 'def g(self, a=lambda b'],
  ['if a and \\\n        |\n', 'g(x):'],
  ['def f(x):\n    """Tells of\n    |\n', 'g(x):'],
])('the end of a line of Python stays: %j + %j', (marked, raw) => {
  expect(shown('py', marked, raw).text).toBe(raw);
});
