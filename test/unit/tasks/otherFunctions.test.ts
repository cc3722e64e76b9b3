/** Lines of other functions that have other types, or names that only those functions declare. */
import { beforeAll, expect, it } from 'vitest';
import { nameIn } from '../../../engine/tasks/alike.ts';
import { prepareComplete } from '../../../engine/tasks/completeTask.ts';
import type { Layout } from '../../../engine/text/prompt/layout.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Scopes } from '../../../engine/text/syntax/scopes.ts';
import { type PlaceSyntax, Syntax } from '../../../engine/text/syntax/syntax.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { invisibleNames } from '../../../engine/text/syntax/visibleNames.ts';
import { starterLayout } from '../../support/starter.ts';

const grammars = new Grammars();
const syntax = new Syntax(grammars);
let layout: Layout;
beforeAll(async () => {
  layout = await starterLayout({ copies: true });
  await Promise.all(['typescript', 'javascript', 'python'].map((name) => grammars.load(name)));
});

/** What is shown of a line at `|`. */
function shown(path: string, marked: string, raw: string, others: string[] = []): string {
  const offset = marked.indexOf('|');
  const doc = new SourceDocument(path, path, marked.slice(0, offset) + marked.slice(offset + 1));
  const copySources = others.map((text, i) => new SourceDocument(`${i}`, `other${i}.ts`, text));
  return prepareComplete(layout, doc, { offset, copySources, showLowConfidence: true }, undefined, syntax).shape(
    raw,
    true,
  ).text;
}

/** Two functions of a file, the second one with the cursor. */
const two = (one: string, line: string, other: string) => `${one}\n  ${line}\n  work();\n}\n\n${other}\n  |\n}\n`;

it.each([
  ['(rows: Row[]): number {', '(rows: Row[]): number {', true],
  ['(rows: Row[]): number {', '(rows: unknown): number {', false],
  ['(rows: Map<string, A>): number {', '(rows: Map<string, B>): number {', false],
  ['(rows: Row[]): number {', '(rows: Row[]): rows is Named[] {', false],
  ['(rows: Row[], size: number): number {', '(rows: Row[], size: string): number {', true],
  ['(rows): number {', '(rows: Row[]): number {', true],
])('a returned value has the same types: %s and %s', (one, other, isShown) => {
  const line = 'return listed(rows).filter(Boolean).length;';
  const marked = two(`function count${one}`, line, `function check${other}`);
  expect(shown('a.ts', marked, line)).toBe(isShown ? line : '');
});

it('functions about the same thing may have other types, but not another `this`', () => {
  const line = 'return this.rows.filter(fits).length;';
  const pair = (type: string) => `(this: Table, fits: ${type}): number {`;
  const marked = two(`function countRows${pair('A')}`, line, `function countAllRows${pair('B')}`);
  expect(shown('a.ts', marked, line)).toBe(line);
  expect(shown('a.ts', marked.replace('(this: Table, fits: B)', '(this: List, fits: B)'), line)).toBe('');
});

it('`this` as a parameter does not tell what a function is about', () => {
  const line = 'const options = { ...this.options, isWhole: true };';
  const marked = two('function print(this: Page, depth: A): A {', line, 'function count(this: Page, rows: B): B {');
  expect(shown('a.ts', marked, line)).toBe('');
});

it.each([
  ['', ['domain']],
  ['function third() {\n  use(domain);\n}\n', []],
])('a name is not visible because the function that has it assigns it (%j)', (third, names) => {
  const line = "const parts = domain.split('@');";
  const above = `function mapDomain(domain, fn) {\n  domain = domain.trim();\n}\n${third}function map(list, fn) {\n  `;
  const doc = new SourceDocument('a.js', 'a.js', `${above}\n}\n`);
  const { length: start } = above;
  const place = syntax.at(doc, start) as PlaceSyntax;
  const found = place.withText(line, (tree, text) => {
    const added = { grammar: 'javascript', text, start, end: start + line.length, others: [] };
    return Scopes.read(tree, text, (scopes) => invisibleNames({ scopes, ...added }));
  });
  expect(found).toEqual(names);
});

it('a body does not begin itself again', () => {
  const marked = 'visit(this, (node) => {\n  |\n});\n';
  expect(shown('a.js', marked, 'if (node) {\n    visit(this, (node) => {\n')).not.toContain('visit');
  expect(shown('a.js', marked, 'if (node) {\n    visit(this, (child) => {\n')).toContain('visit');
});

it('a function does not declare what the file has outside of functions', () => {
  const line = "const names = 'a,b,c'.split(',');";
  const body = 'function f() {\n  |\n}\n';
  expect(shown('a.js', `${line}\n${body}`, line)).toBe('');
  expect(shown('a.js', `export ${line}\n${body}`, line)).toBe('');
  expect(shown('a.js', body, line)).toBe(line);
});

it.each([
  ["this.type = 'root';", false],
  ['this.names = [];', false],
  ['this.rows = [];', true],
  ['this.type = type;', true],
])('a constructor does not say what another class is: %s', (line, isShown) => {
  const one = `class Root extends Node {\n  constructor(type) {\n    super(type);\n    ${line}\n    work();\n  }\n}\n`;
  const two = 'class Rule extends Node {\n  constructor(type) {\n    |\n  }\n  rows() {\n  }\n}\n';
  const [first, both] = ['super(type);', `super(type);\n    ${line}`];
  expect(shown('a.js', two, both, [one])).toBe(isShown ? both : first);
});

it.each([
  ['const MAX_WIDTH = 2;\n', false],
  ['export const MAX_WIDTH = 2;\n', true],
  ['const MAX_WIDTH = 2;\nexport {\n  MAX_WIDTH,\n};\n', true],
])('a name that another module does not export is not visible: %j', (text, isShown) => {
  const line = 'const width = new Value(MAX_WIDTH);';
  const other = `import a from 'a';\n${text}`;
  const marked = 'function draw(page: Page) {\n  |\n}\n';
  expect(shown('a.ts', marked, line, [other])).toBe(isShown ? line : '');
  expect(shown('a.ts', marked, line, [other, 'import b from "b";\nconst MAX_WIDTH = 3;\n'])).toBe(line);
  expect(shown('a.ts', marked, line, [text.replaceAll('export', 'f')])).toBe(line);
});

it('a line of names is a list of exports', () => {
  const other = (list: string) => `import a from 'a';\nclass Header {}\nclass Footer {}\n${list}`;
  const [marked, line] = ['function draw(page: Page) {\n  |\n}\n', 'page.add(new Footer());'];
  expect(shown('a.ts', marked, line, [other('export {\n  Header, Footer,\n};\n')])).toBe(line);
  expect(shown('a.ts', marked, line, [other('export {\n  Header as default, type A,\n  B, Footer };\n')])).toBe(line);
  expect(shown('a.ts', marked, line, [other('export { Header };\n')])).toBe('');
});

it.each([
  ['new ResizeObserver(work);', 'class ResizeObserver {}\nwindow.ResizeObserver = ResizeObserver;\n', true],
  ['new HTMLElement();', 'class HTMLElement {}\n', true],
  ["confirm('Delete?');", 'function f() {\n  const confirm = useConfirm();\n}\n', true],
  ["confirmAll('Delete?');", 'function f() {\n  const confirmAll = useConfirm();\n}\n', false],
  ['new OwnObserver2(work);', 'class OwnObserver2 {}\nwindow.OwnObserver2 = OwnObserver2;\n', true],
  ['new OwnObserver2(work);', 'class OwnObserver2 {}\n', false],
])('a name of browsers, or of the window, is visible: %s, %j', (line, text, isShown) => {
  const marked = 'function draw(page: Page) {\n  |\n}\n';
  expect(shown('a.ts', marked, line, [`import a from 'a';\n${text}`])).toBe(isShown ? line : '');
});

it.each(['||', '??'])('a function behind %s has the name that it is assigned to', (sign) => {
  expect(nameIn(`exports.hasOwn = Object.hasOwn ${sign} function (object, property) {`)).toBe('hasOwn');
  expect(nameIn(`const hasOwn = Object.hasOwn ${sign} ((object, property) => {`)).toBe('hasOwn');
});

it('a function that stands in for a missing one has the name that it is assigned to', () => {
  const line = "return object !== null && typeof object === 'object';";
  const one = `work();\nexports.isObject = object => {\n  ${line}\n};\n`;
  const marked = `${one}exports.hasOwn = Object.hasOwn ?? function (object, property) {\n  |\n};\n`;
  expect(shown('a.js', marked, line)).toBe('');
  expect(shown('a.js', marked.replace('hasOwn =', 'isOwnObject ='), line)).toBe(line);
});

it.each([
  ["this.type = 'root';", false],
  ['this.rows = [];', true],
])('a line behind the call of the base class is judged: %s', (line, isShown) => {
  const one = `class Root extends Node {\n  constructor(type) {\n    super(type);\n    ${line}\n    work();\n  }\n}\n`;
  const marked = 'class Rule extends Node {\n  constructor(type) {\n    super(type);\n    |\n  }\n  rows() {\n  }\n}\n';
  expect(shown('a.js', marked, line, [one])).toBe(isShown ? line : '');
});

it('a line of another function does not call or make what is written here', () => {
  const line = 'return this.setLatLngs(this.boundsOf(bounds));';
  const marked = (name: string) =>
    `class Box {\n  setBounds(bounds: B) {\n    ${line}\n  }\n\n  ${name}(bounds: B) {\n    |\n  }\n}\n`;
  expect(shown('a.ts', marked('boundsOf'), line)).toBe('');
  expect(shown('a.ts', marked('setWorldBounds'), line)).toBe(line);
  const made = 'this.source = new Stream(source).interval(0, source.length);';
  const inConstructor = (name: string) =>
    `function withSource(source: S) {\n  ${made}\n}\n\nclass ${name} {\n  constructor(source: S) {\n    |\n  }\n}\n`;
  expect(shown('a.ts', inConstructor('Stream'), made)).toBe('');
});

it.each([
  ['a.ts', 'entry = this.entries.get(key);'],
  ['a.ts', 'entry = this.parent?.get(key, size);'],
  ['a.ts', 'entry = super.get(key) ?? this.entries.size;'],
  ['a.py', 'entry = self.entries.get(key, size)'],
])('a method of the same name on another object is no call of what is written here: %s: %s', (path, line) => {
  const isPython = path === 'a.py';
  const method = (name: string, body: string) =>
    isPython
      ? `    def ${name}(self, key, size):\n        ${body}\n`
      : `  ${name}(key: K, size: number) {\n    ${body}\n  }\n`;
  const marked = `class Cache${isPython ? ':' : ' {'}\n${method('peek', `${line}\n    work()`)}\n${method('get', '|')}${isPython ? '' : '}\n'}`;
  expect(shown(path, marked.replace('\n    work()', `\n${isPython ? '    ' : ''}    work()`), line)).toBe(line);
  const own = line.replace(/\b(?:this\.entries|this\.parent\?|super|self\.entries)\./, isPython ? 'self.' : 'this.');
  expect(shown(path, marked.replace(line, own), own)).toBe('');
});

it.each([
  ['for (const child of node.children) walk(child);', true],
  ['for (const child of node.children) {\n    walk(child);\n  }', true],
  ['node.children.forEach((child) => walk(child));', true],
  ['walk(node.left, depth);', true],
  ['for (const child of roots) walk(child);', false],
  ['for (const child of node.children) walk(node);', false],
])('a function may call itself for parts of what it is given: %s', (lines, isShown) => {
  const marked = `function walkAll(node) {\n  ${lines}\n  work();\n}\n\nfunction walk(node, depth) {\n  |\n}\n`;
  expect(shown('a.js', marked, lines)).toBe(isShown ? lines : '');
});

it('a comment about classes names no class', () => {
  const line = 'this.isNew = !seen.has(name);';
  const maker = `  // Each class has its own set.\n  constructor(seen, name) {\n    |\n  }\n`;
  const marked = `export class Foo {\n  isNew = true;\n  init(seen, name) {\n    ${line}\n    this.go();\n  }\n${maker}}\n`;
  expect(shown('a.js', marked, line)).toBe(line);
});

it('a line about what only the other function is named for is not copied', () => {
  const [first, second] = ['const match = lastMatch(field.appearance);', 'const fontSize = Number(match[2]);'];
  const marked = (name: string) =>
    `function getDefaultFontSize(field: F) {\n  ${first}\n  ${second}\n  return fontSize;\n}\n\nfunction ${name}(field: F) {\n  |\n}\n`;
  expect(shown('a.ts', marked('getDefaultColor'), `${first}\n  ${second}`)).toBe(first);
  expect(shown('a.ts', marked('getFontSizes'), `${first}\n  ${second}`)).toBe(`${first}\n  ${second}`);
});

it('a function of another name shares four lines at most', () => {
  const lines = [1, 2, 3, 4, 5].map((n) => `draw(layer, ${n});`);
  const body = lines.join('\n  ');
  const marked = (name: string) =>
    `function updateShape(layer: L) {\n  ${body}\n}\n\nfunction ${name}(layer: L) {\n  |\n}\n`;
  expect(shown('a.ts', marked('updateView'), body)).toBe(lines.slice(0, 4).join('\n  '));
});

it.each([
  ['const view = (props: P) => {', false],
  ['const view = function (props: P) {', true],
  ['class View {\n  props = {};\n  draw = (props: P) => {', true],
])('`this` needs a class or function: %s', (header, isShown) => {
  const line = 'return render(this.props);';
  const end = header.startsWith('class') ? '  };\n}' : '};';
  expect(shown('a.ts', `export const a = 1;\n${header}\n  |\n${end}\n`, line)).toBe(isShown ? line : '');
});

it.each(['bind(this: A, size: number): void;', '(this: A, size: number): void;', 'isA(): this is A;'])(
  '`this` may be a type of a member of an interface: %s',
  (line) => {
    expect(shown('a.ts', `import type { A } from './a';\n\nexport interface B {\n  |\n}\n`, line)).toBe(line);
  },
);

const CACHE = `package cache

func (c *Cache) Get(key string) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.items[key]
	return v, ok
}

func HEADER {
	|
}
`;
it.each([
  [
    '(c *Cache) Put(key string, value int)',
    'c.mu.Lock()\n\tdefer c.mu.Unlock()\n\tv, ok := c.items[key]\n\treturn v, ok',
    'c.mu.Lock()',
  ],
  [
    '(c *Cache) Put(key string, value int)',
    'c.mu.Lock()\n\tc.items[key] = value',
    'c.mu.Lock()\n\tc.items[key] = value',
  ],
  ['(c *Cache) Peek(key string) int', 'v, ok := c.items[key]\n\treturn v, ok', 'v, ok := c.items[key]'],
  [
    '(c *Queue) Get(key string) (int, bool)',
    'c.mu.Lock()\n\tdefer c.mu.Unlock()\n\tv, ok := c.items[key]\n\treturn v, ok',
    'c.mu.Lock()\n\tdefer c.mu.Unlock()\n\tv, ok := c.items[key]\n\treturn v, ok',
  ],
])('in Go, the body of another method is not that of %s: %j', (header, raw, expected) => {
  expect(shown('cache.go', CACHE.replace('HEADER', header), raw)).toBe(expected);
});
