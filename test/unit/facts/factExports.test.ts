/** What a file exports, as its statements, its assignments or, in Python, its names say it. */
import { beforeAll, describe, expect, it, test } from 'vitest';
import { factQuestion } from '../../../engine/facts/factQuestion.ts';
import { askFact, loadGrammars } from '../../support/askFact.ts';

beforeAll(loadGrammars, 60_000);

const TS = `import { read } from './read';
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

describe('TypeScript', () => {
  const ALL =
    '`Basket` (line 2), `first` (line 3), `second` (line 3), `add` (line 3), `over` (line 5), `Row` (line 7), `Rows` (line 8), `Mode` (line 9), `later` (line 10), `Inner` (line 11), `double` (line 12), `read` (line 12), `tools` from `./tools` (line 14), `y` from `./x` (line 15) and `add` as the default (line 16)';
  const OPEN =
    'It exports `read` (line 12), `tools` from `./tools` (line 14) and `y` from `./x` (line 15), too, and does not say what that is. It passes on all exports of `./others` (line 13).';
  it.each([
    ['What does this file export?', `This file exports ${ALL}. It passes on all exports of \`./others\` (line 13).`],
    ['what is exported here?', `This file exports ${ALL}. It passes on all exports of \`./others\` (line 13).`],
    ['list the exports', `This file exports ${ALL}. It passes on all exports of \`./others\` (line 13).`],
    [
      'Which functions does this file export?',
      `This file exports the functions \`add\` (line 3), \`over\` (line 5), \`later\` (line 10), \`double\` (line 12) and \`add\` as the default (line 16). ${OPEN}`,
    ],
    ['which classes are exported', `This file exports the class \`Basket\` (line 2). ${OPEN}`],
    [
      'which types does it export?',
      `This file exports the types \`Row\` (line 7), \`Rows\` (line 8) and \`Mode\` (line 9). ${OPEN}`,
    ],
    [
      'which variables are exported?',
      `This file exports the variables \`first\` (line 3), \`second\` (line 3), \`add\` (line 3), \`double\` (line 12) and \`add\` as the default (line 16). ${OPEN}`,
    ],
    ['which enums are exported?', `This file exports the enum \`Mode\` (line 9). ${OPEN}`],
    [
      'Which classes and interfaces does this file export?',
      `This file exports the class \`Basket\` (line 2). This file exports the interface \`Row\` (line 7). ${OPEN}`,
    ],
    ["what's exported?", `This file exports ${ALL}. It passes on all exports of \`./others\` (line 13).`],
    [
      'Quais variáveis são exportadas?',
      'Este arquivo exporta as variáveis `first` (linha 3), `second` (linha 3), `add` (linha 3), `double` (linha 12) e `add` como padrão (linha 16). Exporta também `read` (linha 12), `tools` de `./tools` (linha 14) e `y` de `./x` (linha 15), sem dizer o que é. Repassa tudo o que exporta `./others` (linha 13).',
    ],
    ['What is the default export?', 'This file exports `add` as the default (line 16).'],
    [
      'Quais classes este arquivo exporta?',
      'Este arquivo exporta a classe `Basket` (linha 2). Exporta também `read` (linha 12), `tools` de `./tools` (linha 14) e `y` de `./x` (linha 15), sem dizer o que é. Repassa tudo o que exporta `./others` (linha 13).',
    ],
    ['Qual é a exportação padrão?', 'Este arquivo exporta `add` como padrão (linha 16).'],
  ])('%s', async (question, expected) => expect(await askFact(question, TS, 'src/basket.ts')).toBe(expected));

  it.each([
    ['export default class {}', 'This file exports a default (line 1).'],
    ['export default class Named {}', 'This file exports `Named` as the default (line 1).'],
    ["export { default } from './m';", 'This file exports a default from `./m` (line 1).'],
    ["export * from './a';\nexport * from './b';", 'It passes on all exports of `./a` and `./b` (lines 1–2).'],
    ['const x = 1;', 'There is no export in `src/a.ts`.'],
    ['export const a = 1;\nconst { b } = exports;\nexports.c = 2;', 'This file exports `a` (line 1).'],
    ['export = thing;', 'What it exports as a whole is `thing` (line 1).'],
    // What errors may have spoilt.
    ['export const a = ;\nexport function b( {', undefined],
  ])('%s', async (text, expected) =>
    expect(await askFact('What does this file export?', text, 'src/a.ts')).toBe(expected),
  );
});

describe('JavaScript', () => {
  it.each([
    [
      'module.exports = { a, b: 1, c() {}, "d": () => 1 };\nfunction a() {}',
      'This file exports `a` (line 1), `b` (line 1), `c` (line 1) and `d` (line 1).',
      'This file exports the functions `a` (line 1), `c` (line 1) and `d` (line 1). It exports `b` (line 1), too, and does not say what that is.',
    ],
    [
      'exports.size = function () {};\nmodule.exports.Pool = class Pool {};',
      'This file exports `size` (line 1) and `Pool` (line 2).',
      'This file exports the function `size` (line 1).',
    ],
    [
      'function make() {}\nmodule.exports = make;',
      'What it exports as a whole is `make` (line 2).',
      'What it exports as a whole is `make` (line 2).',
    ],
    [
      'module.exports = function () {};',
      'What it exports as a whole is a function (line 1).',
      'What it exports as a whole is a function (line 1).',
    ],
    [
      'exports = module.exports = make;',
      'What it exports as a whole is `make` (line 1).',
      'This file exports nothing that it defines as a function. What it exports as a whole is `make` (line 1).',
    ],
    [
      'Object.defineProperty(exports, "__esModule", { value: true });\nexports.a = exports.b = void 0;',
      'This file exports `a` (line 2) and `b` (line 2).',
      'This file exports nothing that it defines as a function. It exports `a` (line 2) and `b` (line 2), too, and does not say what that is.',
    ],
    [
      'const make = once(() => 1);\nmodule.exports = { make };',
      'This file exports `make` (line 2).',
      'This file exports nothing that it defines as a function.',
    ],
    // More may be exported than what is read here.
    ['module.exports = { ...others };', undefined, undefined],
    ['module.exports = { [name]: 1 };', undefined, undefined],
    ['module.exports = make();', undefined, undefined],
    ['var app = exports = module.exports = {};\napp.x = 1;', undefined, undefined],
    ['Object.assign(module.exports, others);', undefined, undefined],
    ['(function () { module.exports = 1; })();', undefined, undefined],
    ['exports["x"] = 1;', undefined, undefined],
    ['__exportStar(require("./x"), exports);', undefined, undefined],
  ])('%s', async (text, all, functions) => {
    expect(await askFact('What does this file export?', text, 'lib/a.js')).toBe(all);
    expect(await askFact('Which functions are exported?', text, 'lib/a.js')).toBe(functions);
  });
});

describe('Python', () => {
  const TEXT = `from x import helper

__all__ = ["Store", 'load', "helper"]
__all__ += ["LIMIT"]
__all__.append("_hidden")
LIMIT = 3
class Store: pass
def load(): pass
def _hidden(): pass
`;
  const UNLISTED = TEXT.replaceAll(/^__all__.*\n/gm, '');
  it.each([
    [
      'What does this file export?',
      TEXT,
      'By `__all__` (line 3), this file exports `Store` (line 7), `load` (line 8), `helper`, `LIMIT` (line 6) and `_hidden` (line 9).',
    ],
    [
      'Which functions does this module export?',
      TEXT,
      'By `__all__` (line 3), this file exports the functions `load` (line 8) and `_hidden` (line 9). It exports `helper`, too, and does not say what that is.',
    ],
    [
      'What does this file export?',
      UNLISTED,
      'There is no `__all__` in this file, so it exports what it defines at its top level under a public name: `LIMIT` (line 3), `Store` (line 4) and `load` (line 5).',
    ],
    [
      'which functions are exported',
      UNLISTED,
      'There is no `__all__` in this file, so it exports what it defines at its top level under a public name: the function `load` (line 5).',
    ],
    [
      'which types are exported',
      UNLISTED,
      'There is no `__all__` in this file, so it exports what it defines at its top level under a public name: the class `Store` (line 4).',
    ],
    [
      'which classes are exported',
      'def load(): pass\n',
      'There is no `__all__` in this file, and no class with a public name is defined at its top level.',
    ],
    [
      'O que este arquivo exporta?',
      UNLISTED,
      'Não há `__all__` neste arquivo, então ele exporta o que define no nível do arquivo com nome público: `LIMIT` (linha 3), `Store` (linha 4) e `load` (linha 5).',
    ],
    ['O que é exportado?', '__all__ = ["a"]\na = 1\n', 'Por `__all__` (linha 1), este arquivo exporta `a` (linha 2).'],
    ['What does this file export?', '__all__ = []\na = 1\n', 'By `__all__` (line 1), this file exports nothing.'],
    ['What does this file export?', '__all__ = ["a"] + other.__all__\n', undefined],
    ['What does this file export?', '__all__ = ["a"]\n__all__.extend(other.__all__)\n', undefined],
    ['What does this file export?', '__all__ = [name for name in names]\n', undefined],
    ['What does this file export?', 'globals()["__all__"] = 1\n', undefined],
    ['What is the default export?', TEXT, undefined],
  ])('%s', async (question, text, expected) => expect(await askFact(question, text, 'src/a.py')).toBe(expected));
});

test('what differs in its case alone is another name where both are there', async () => {
  expect(await askFact('is Foo exported', "export { default as Foo } from './b';\nfunction foo() {}\n", 'a.ts')).toBe(
    'Yes: this file exports `Foo` from `./b` (line 1).',
  );
});

test('what is in a module that a file declares is exported from that one', async () => {
  expect(
    await askFact('what does this file export', "declare module 'lib' {\n  export function go(): void;\n}\n", 'a.d.ts'),
  ).toBeUndefined();
});

describe('one name', () => {
  const SCRIPT = `import { read } from './read';
import type { Row } from './row';
export class Basket { fill() {} }
function add() {}
function hidden() { const inner = 1; }
export { add as plus, read };
export default hidden;
const App = 1;
`;
  it.each([
    ['is Basket exported?', SCRIPT, 'Yes: this file exports `Basket` (line 3).'],
    ['Is the class `basket` exported?', SCRIPT, 'Yes: this file exports `Basket` (line 3).'],
    ['does this file export add', SCRIPT, 'Yes: this file exports `add` as `plus` (line 6).'],
    ['is plus exported', SCRIPT, 'Yes: this file exports `add` as `plus` (line 6).'],
    ['is `read` exported', SCRIPT, 'Yes: this file exports `read` (line 6).'],
    ['is hidden exported?', SCRIPT, 'Yes: this file exports `hidden` as the default (line 7).'],
    ['is App exported?', SCRIPT, 'No: this file does not export `App` (line 8).'],
    ['is Row exported?', SCRIPT, 'No: this file does not export `Row` (line 2).'],
    ['A classe Basket é exportada?', SCRIPT, 'Sim: este arquivo exporta `Basket` (linha 3).'],
    ['este arquivo exporta add?', SCRIPT, 'Sim: este arquivo exporta `add` como `plus` (linha 6).'],
    ['App é exportado?', SCRIPT, 'Não: este arquivo não exporta `App` (linha 8).'],
    ['is `other` exported?', SCRIPT, 'There is no `other` in `src/a.ts`.'],
    // A member, a variable in a function, a word, or not to be told.
    ['is fill exported?', SCRIPT, undefined],
    ['is id exported?', 'export type Row = { id: string };\n', undefined],
    ['is inner exported?', SCRIPT, '`inner` stands in line 5: `function hidden() { const inner = 1; }`.'],
    ['is Basket.fill exported?', SCRIPT, undefined],
    [
      'is data exported?',
      SCRIPT,
      '`data` does not stand in `src/a.ts`. This model knows only what stands in the file.',
    ],
    ['is a exported?', "export * from './b';\nconst a = 1;\n", undefined],
    ['is a exported?', 'namespace N { export const a = 1; }\n', undefined],
    ['is a exported?', 'const a = 1;\nexport const b = ;\n', undefined],
    ['is a exported?', "export { a as c } from './b';\nconst b = 1;\n", undefined],
    ['is b exported?', '', '`src/a.ts` is empty: it exports nothing.'],
  ])('%s', async (question, text, expected) => expect(await askFact(question, text, 'src/a.ts')).toBe(expected));

  it.each([
    [
      'is two exported?',
      'function one() {}\nfunction two() {}\nmodule.exports = { one, three: two };\n',
      'a.js',
      'Yes: this file exports `two` as `three` (line 3).',
    ],
    [
      'is make exported?',
      'function make() {}\nmodule.exports = make;\n',
      'a.js',
      'Yes: this file exports `make` (line 2).',
    ],
    ['is two exported?', 'function two() {}\nmodule.exports = { ...others };\n', 'a.js', undefined],
    [
      'is load exported?',
      '__all__ = ["load"]\ndef load(): pass\ndef save(): pass\n',
      'a.py',
      'Yes: by `__all__` (line 1), this file exports `load` (line 2).',
    ],
    [
      'is save exported?',
      '__all__ = ["load"]\ndef load(): pass\ndef save(): pass\n',
      'a.py',
      'No: `__all__` (line 1) does not have `save` (line 3).',
    ],
    [
      'is load exported?',
      'def load(): pass\n',
      'a.py',
      'Yes: there is no `__all__` in this file, so it exports what it defines at its top level under a public name: `load` (line 1).',
    ],
    ['is _save exported?', 'def _save(): pass\n', 'a.py', undefined],
  ])('%s', async (question, text, path, expected) => expect(await askFact(question, text, path)).toBe(expected));
});

describe('the question', () => {
  it.each([
    ['Which functions does a.ts export?', 'exported'],
    ['what are the exports of this file?', 'exports'],
    ['What exports are there?', 'exports'],
    ['What can be imported from this file?', 'exports'],
    ['which of its functions are exported?', 'exported'],
    ['list the exported classes', 'exported'],
    ['what is the default export of this file', 'exported default'],
    ['please tell me what this file exports', 'exports'],
    ['O que ele exporta?', 'exports'],
    ['quais são os exports?', 'exports'],
    ['Que funções são exportadas?', 'exported'],
    ['quais tipos este módulo exporta?', 'exported'],
    ['o que exporta este arquivo?', 'exports'],
    ['liste as exportações', 'exports'],
    // More than that, or about something else.
    ['What are exports?', undefined],
    ['Which exports?', undefined],
    ['Why does this file export Basket?', undefined],
    ['What does this file export to the server?', undefined],
    ['What should this file export?', undefined],
    ['Which functions does this file export and what do they do?', undefined],
    ['What does this file export? Which of it is used?', undefined],
    ['What does other.ts export?', undefined],
    ['How do I export a function?', undefined],
    ['Por que este arquivo exporta Basket?', undefined],
    ['O que este arquivo exporta e para quem?', undefined],
  ])('%s', (message, kind) => expect(factQuestion(message, 'src/a.ts')?.kind).toBe(kind));
});
