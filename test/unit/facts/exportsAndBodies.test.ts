/** Exports, comments and returned values are read off the syntax tree as they are written. */
import { beforeAll, describe, expect, it } from 'vitest';
import { ask, loadGrammars } from './askFacts.ts';

beforeAll(loadGrammars, 60_000);

/** A template, as it is quoted. */
const ONE = `\`\` \`one \${x}\` \`\``;

describe('exports in TypeScript', () => {
  const TEXT = `import { read } from './read';
export abstract class Basket {}
export const { first, rest: [second] } = pair, add = (a: number) => a;
const twice = (n: number) => n * 2;
export function over(a: string): void;
export function over(a: number): void;
export interface Row { id: string }
export type Rows = Row[];
export enum Mode { on }
export declare function later(): void;
export namespace Inner { export const hidden = 1; }
export { twice as double, read };
export * from './others';
export * as tools from './tools';
export { x as y } from './x';
export default add;
`;
  it.each<[string, string | undefined]>([
    [
      'What does this file export?',
      'Exports of `src/basket.ts`:\n\n- `Basket` (line 2)\n- `first` (line 3)\n- `second` (line 3)\n- `add` (line 3)\n- `over` (line 5)\n- `Row` (line 7)\n- `Rows` (line 8)\n- `Mode` (line 9)\n- `later` (line 10)\n- `Inner` (line 11)\n- `double` (line 12)\n- `read` (line 12)\n- `tools` (line 14)\n- `y` (line 15)\n- `default` (line 16)\n\nIt re-exports from `./others` (line 13).',
    ],
    [
      'O que este arquivo exporta?',
      'Exportações de `src/basket.ts`:\n\n- `Basket` (linha 2)\n- `first` (linha 3)\n- `second` (linha 3)\n- `add` (linha 3)\n- `over` (linha 5)\n- `Row` (linha 7)\n- `Rows` (linha 8)\n- `Mode` (linha 9)\n- `later` (linha 10)\n- `Inner` (linha 11)\n- `double` (linha 12)\n- `read` (linha 12)\n- `tools` (linha 14)\n- `y` (linha 15)\n- `default` (linha 16)\n\nReexporta de `./others` (linha 13).',
    ],
  ])('%s', async (question, answer) => expect(await ask(question, { 'src/basket.ts': TEXT })).toBe(answer));
});

describe('one kind of export in TypeScript', () => {
  it.each<[string, string, string, string | undefined]>([
    [
      'export default class {}',
      'src/a.ts',
      'What does this file export?',
      'Exports of `src/a.ts`: `default` (line 1).',
    ],
    [
      'export default class Named {}',
      'src/a.ts',
      'What does this file export?',
      'Exports of `src/a.ts`: `default` (line 1).',
    ],
    [
      "export { default } from './m';",
      'src/a.ts',
      'What does this file export?',
      'Exports of `src/a.ts`: `default` (line 1).',
    ],
    [
      "export * from './a';\nexport * from './b';",
      'src/a.ts',
      'What does this file export?',
      'Exports of `src/a.ts`: none. It re-exports from `./a` (line 1), `./b` (line 2).',
    ],
    ['const x = 1;', 'src/a.ts', 'What does this file export?', 'Exports of `src/a.ts`: none.'],
    [
      'export const a = 1;\nconst { b } = exports;\nexports.c = 2;',
      'src/a.ts',
      'What does this file export?',
      'Exports of `src/a.ts`: `a` (line 1).',
    ],
    ['export = thing;', 'src/a.ts', 'What does this file export?', 'Exports of `src/a.ts`: `module.exports` (line 1).'],
    [
      'export const a = ;\nexport function b( {',
      'src/a.ts',
      'What does this file export?',
      'It is not certain what `src/a.ts` exports.',
    ],
  ])('%j', async (text, path, question, answer) => expect(await ask(question, { [path]: text })).toBe(answer));
});

describe('exports in JavaScript', () => {
  it.each<[string, string, string, string | undefined]>([
    [
      'module.exports = { a, b: 1, c() {}, "d": () => 1 };\nfunction a() {}',
      'lib/a.js',
      'What does this file export?',
      'Exports of `lib/a.js`: `a` (line 1), `b` (line 1), `c` (line 1), `d` (line 1).',
    ],
    [
      'exports.size = function () {};\nmodule.exports.Pool = class Pool {};',
      'lib/a.js',
      'What does this file export?',
      'Exports of `lib/a.js`: `size` (line 1), `Pool` (line 2).',
    ],
    [
      'function make() {}\nmodule.exports = make;',
      'lib/a.js',
      'What does this file export?',
      'Exports of `lib/a.js`: `module.exports` (line 2).',
    ],
    [
      'module.exports = function () {};',
      'lib/a.js',
      'What does this file export?',
      'Exports of `lib/a.js`: `module.exports` (line 1).',
    ],
    [
      'exports = module.exports = make;',
      'lib/a.js',
      'What does this file export?',
      'Exports of `lib/a.js`: `module.exports` (line 1).',
    ],
    [
      'Object.defineProperty(exports, "__esModule", { value: true });\nexports.a = exports.b = void 0;',
      'lib/a.js',
      'What does this file export?',
      'Exports of `lib/a.js`: `a` (line 2), `b` (line 2).',
    ],
    [
      'module.exports = { ...others };',
      'lib/a.js',
      'What does this file export?',
      'It is not certain what `lib/a.js` exports.',
    ],
    [
      'module.exports = make();',
      'lib/a.js',
      'What does this file export?',
      'It is not certain what `lib/a.js` exports.',
    ],
    [
      'var app = exports = module.exports = {};\napp.x = 1;',
      'lib/a.js',
      'What does this file export?',
      'It is not certain what `lib/a.js` exports.',
    ],
    [
      'Object.assign(module.exports, others);',
      'lib/a.js',
      'What does this file export?',
      'It is not certain what `lib/a.js` exports.',
    ],
    [
      '(function () { module.exports = 1; })();',
      'lib/a.js',
      'What does this file export?',
      'It is not certain what `lib/a.js` exports.',
    ],
    ['exports["x"] = 1;', 'lib/a.js', 'What does this file export?', 'It is not certain what `lib/a.js` exports.'],
  ])('%j', async (text, path, question, answer) => expect(await ask(question, { [path]: text })).toBe(answer));
});

describe('exports in Python', () => {
  it.each<[string, string, string, string | undefined]>([
    [
      'from x import helper\n\n__all__ = ["Store", \'load\', "helper"]\n__all__ += ["LIMIT"]\n__all__.append("_hidden")\nLIMIT = 3\nclass Store: pass\ndef load(): pass\ndef _hidden(): pass\n',
      'src/a.py',
      'What does this file export?',
      'Exports of `src/a.py`: `Store` (line 3), `load` (line 3), `helper` (line 3), `LIMIT` (line 4), `_hidden` (line 5).',
    ],
    [
      'from x import helper\n\nLIMIT = 3\nclass Store: pass\ndef load(): pass\ndef _hidden(): pass\n',
      'src/a.py',
      'What does this file export?',
      'Public names of `src/a.py`: `LIMIT` (line 3), `Store` (line 4), `load` (line 5).',
    ],
    [
      'from x import helper\n\nLIMIT = 3\nclass Store: pass\ndef load(): pass\ndef _hidden(): pass\n',
      'src/a.py',
      'O que este arquivo exporta?',
      'Nomes públicos de `src/a.py`: `LIMIT` (linha 3), `Store` (linha 4), `load` (linha 5).',
    ],
    ['__all__ = []\na = 1\n', 'src/a.py', 'What does this file export?', 'Exports of `src/a.py`: none.'],
    [
      '__all__ = ["a"] + other.__all__\n',
      'src/a.py',
      'What does this file export?',
      'It is not certain what `src/a.py` exports.',
    ],
    [
      '__all__ = [name for name in names]\n',
      'src/a.py',
      'What does this file export?',
      'It is not certain what `src/a.py` exports.',
    ],
  ])('%j', async (text, path, question, answer) => expect(await ask(question, { [path]: text })).toBe(answer));
});

describe('comments of definitions', () => {
  const TEXT = `import { read } from './read';
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
 A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. A sentence of it. 
 */
function long() {}
/** As text. */
function over(a: string): void;
/** As a number. */
function over(a: number): void;
function over(a: unknown) {}
`;
  it.each([
    [
      'What does `Basket` do?',
      'The comment of `Basket` (line 10) says:\n\n> Keeps orders until they are sent. Two lines of it, see Basket.send and reading.',
    ],
    ['What does `count` do?', 'The comment of `Basket.count` (line 13) says:\n\n> How many.'],
    [
      'What does `Basket.send` do?',
      'The comment of `Basket.send` (line 18) says:\n\n> Sends what is there, all of it.',
    ],
    ['What does `add` do?', 'The comment of `add` (line 25) says:\n\n> Adds two numbers.'],
    ['What does `Row` do?', 'The comment of `Row` (line 33) says:\n\n> What is kept of one.'],
    ['What does `described` do?', 'The comment of `described` (line 35) says:\n\n> Reads all of it.'],
    ['What does `one` do?', 'The comment of `one` (line 48) says:\n\n> Of one.'],
    ['What does `four` do?', 'The comment of `four` (line 51) says:\n\n> Of four.'],
    [
      'What does `over` do?',
      'The comment of `over` (line 57) says:\n\n> As text.\n\nThe comment of `over` (line 59) says:\n\n> As a number.',
    ],
  ])('%s', async (question, answer) => expect(await ask(question, { 'src/basket.ts': TEXT })).toBe(answer));

  it('may begin a line with the name of a package, which is no tag', async () => {
    const text = '/**\n * Adds to\n * @some-scope/package what is missing.\n * @returns all\n */\nfunction fill() {}\n';
    expect(await ask('What does `fill` do?', { 'a.ts': text })).toBe(
      'The comment of `fill` (line 6) says:\n\n> Adds to @some-scope/package what is missing.',
    );
  });

  it('of a member may be apart from it', async () => {
    const text =
      'class Command {\n  /**\n   * Ends the process.\n   */\n\n  exit() {}\n\n  // Next.\n\n  next() {}\n}\n';
    expect(await ask('What does `exit` do?', { 'a.js': text })).toContain('> Ends the process.');
    expect(await ask('What does `next` do?', { 'a.js': text })).toMatch(/^No comment/);
  });

  it('may be one word with a full stop', async () => {
    const files = { 'a.js': '// Adds.\nfunction add() {}\n// Private\nfunction drop() {}\n' };
    expect(await ask('What does add do?', files)).toBe('The comment of `add` (line 2) says:\n\n> Adds.');
    expect(await ask('What does drop do?', files)).toMatch(/^No comment/);
  });

  it('at the end of the line is shown with the line', async () => {
    expect(await ask('What does `plain` do?', { 'src/basket.ts': TEXT })).toMatch(
      / `Basket.plain` is defined on line 20: `plain\(\) \{\} \/\/ Beside it\.`/,
    );
    const files = { 'a.py': 'LIMIT = 3  # The most boxes.\n\ndef run():  # Runs it.\n    pass\n' };
    expect(await ask('What does LIMIT mean?', files)).toBe(
      'No comment above `LIMIT` says what it does. `LIMIT` is defined on line 1: `LIMIT = 3  # The most boxes.`.',
    );
    expect(await ask('What does run do?', files)).toBe(
      'No comment above `run` says what it does. `run` is defined on line 3: `def run():  # Runs it.`. ' +
        '`run` returns nothing (line 3).',
    );
  });

  it.each(['label', 'other', 'bare', 'section', 'tagged', 'unwritten', 'replaced', 'licensed', 'apart', 'three'])(
    '%s has none',
    async (name) => {
      const answer = await ask(`What does \`${name}\` do?`, { 'src/basket.ts': TEXT });
      expect(answer).toMatch(
        new RegExp(`^No comment above \`${name}\` says what it does\\. \`[\\w.]*${name}\` is defined on line `),
      );
      expect(answer).not.toContain('>');
    },
  );
});

describe('returned values in TypeScript', () => {
  const TEXT = `import { read } from './read';
export class Basket {
  async send(to: string, retries = 3) {
    if (!to) return null;
    const list = this.items.map((item) => { return item.id; });
    return { to, list };
  }
  get size() {
    return this.items.length;
  }
  set size(value) {}
  clear(): void {}
  reset() {
    this.count = 0;
  }
  constructor(private limit = 10) {}
  *walk() {
    yield 1;
    yield* this.items;
    return 2;
  }
  async *later() {}
  abstract load();
}
const add = (left: number, right = 1) => left + right;
const twice = (n) => ({ n: n * 2 });
function choose(x) {
  switch (x) {
    case 1: return \`one \${x}\`;
    case 2: return 'two';
    case 3: return null;
    case 4: return null;
    case 5: return (x);
    case 6: return 6;
    default: return;
  }
}
function many(limit = 20, { deep = true } = {}) {}
function over(a: string): string;
function over(a: number): number;
function over(a: unknown) { return a; }
const typed: (a: string) => number = (a) => 1;
const loaded = () => read(1);
const long = () => [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59];
`;
  it.each<[string, string | undefined]>([
    ['What does `send` return?', '`Basket.send` (`async`) returns `null` (line 4), `{ to, list }` (line 6).'],
    ['What does `size` return?', '`Basket.size` returns `this.items.length` (line 9).'],
    ['What does `clear` return?', '`Basket.clear` returns `void` (line 12).'],
    ['What does `reset` return?', '`Basket.reset` returns nothing (line 13).'],
    ['O que `reset` retorna?', '`Basket.reset` não retorna nada (linha 13).'],
    ['What does `walk` return?', undefined],
    ['What does `later` return?', undefined],
    ['What does `add` return?', '`add` returns `left + right` (line 25).'],
    ['What does `twice` return?', '`twice` returns `{ n: n * 2 }` (line 26).'],
    [
      'What does `choose` return?',
      `\`choose\` returns ${ONE} (line 29), \`'two'\` (line 30), \`null\` (line 31), \`x\` (line 33), \`6\` (line 34), nothing (line 35).`,
    ],
    ['What does `many` return?', '`many` returns nothing (line 38).'],
    ['What does `typed` return?', '`typed` returns `1` (line 42).'],
    ['What does `loaded` return?', '`loaded` returns `read(1)` (line 43).'],
    [
      'What does `over` return?',
      '`over` returns `string` (line 39). `over` returns `number` (line 40). `over` returns `a` (line 41).',
    ],
    ['What does `Basket` return?', undefined],
    ['What does `load` return?', undefined],
  ])('%s', async (question, answer) => expect(await ask(question, { 'src/basket.ts': TEXT })).toBe(answer));
});

describe('returned values in Python', () => {
  const TEXT = `async def load(path, *, limit=5):
    if not path:
        return
    return (json.loads(path), limit)

def walk(items, limit=None):
    for item in items:
        yield item
    yield from items

class Store:
    @property
    def size(self):
        return len(self.items)
    @abstractmethod
    def flush(self): pass
    def stub(self): ...
    def todo(self):
        """Writes it."""
        raise NotImplementedError
    def clear(self):
        self.items = sorted(self.items, key=lambda item: item.id)

def typed() -> "Store":
    return Store()

double = lambda n: n * 2
`;
  it.each<[string, string | undefined]>([
    ['What does `load` return?', '`load` (`async`) returns `(json.loads(path), limit)` (line 4), nothing (line 3).'],
    ['What does `walk` return?', undefined],
    ['What does `size` return?', '`Store.size` returns `len(self.items)` (line 14).'],
    ['What does `clear` return?', '`Store.clear` returns nothing (line 21).'],
    ['What does `typed` return?', '`typed` returns `"Store"` (line 24).'],
    ['What does `double` return?', '`double` returns `n * 2` (line 27).'],
    ['What does `flush` return?', undefined],
    ['What does `stub` return?', undefined],
    ['What does `todo` return?', undefined],
    ['What does `Store` return?', undefined],
  ])('%s', async (question, answer) => expect(await ask(question, { 'src/store.py': TEXT })).toBe(answer));
});
