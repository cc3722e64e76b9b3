/** What functions return, by their type or in the words of their `return` statements, and what parameters default to, whichever function has them. */
import { beforeAll, describe, expect, it } from 'vitest';
import { factQuestion } from '../../../engine/facts/factQuestion.ts';
import { askFact, loadGrammars } from '../../support/askFact.ts';

beforeAll(loadGrammars, 60_000);

const TS = `import { read } from './read';
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
const long = () => [${Array.from({ length: 60 }, (_, i) => i).join(', ')}];
`;

/** A template, as it is quoted. */
const ONE = `\`\` \`one \${x}\` \`\``;

describe('TypeScript', () => {
  it.each([
    ['What does foo return?', 'There is no `foo` in `src/basket.ts`.'],
    ['O que foo retorna?', 'Não há `foo` em `src/basket.ts`.'],
    [
      'What does Math.max return?',
      'There is no `Math.max` in `src/basket.ts`. This model knows only what stands in the file.',
    ],
    ['What does `send` return?', '`send` is `async`: awaited, it returns `null` (line 4) or `{ to, list }` (line 6).'],
    [
      'what does Basket.send() return',
      '`send` is `async`: awaited, it returns `null` (line 4) or `{ to, list }` (line 6).',
    ],
    ['What does size return?', '`size` returns `this.items.length` (line 9).'],
    ['What does `clear` return?', '`clear` returns `void` (line 12).'],
    ['What does reset return?', '`reset` returns nothing: no `return` in it has a value (line 13).'],
    [
      'what does the method walk return?',
      '`walk` is a generator and yields `1` (line 18) and `yield* this.items` (line 19).',
    ],
    [
      'what does later return?',
      '`later` is an asynchronous generator and yields nothing: no `yield` in it has a value (line 22).',
    ],
    ['What is returned by add?', '`add` returns `left + right` (line 25).'],
    ['What is the return value of twice?', '`twice` returns `{ n: n * 2 }` (line 26).'],
    [
      'what does choose return',
      `\`choose\` returns ${ONE} (line 29), \`'two'\` (line 30), \`null\` (line 31), what 2 other \`return\`s give (lines 33–34) or nothing (line 35).`,
    ],
    ['what does calling many return?', '`many` returns nothing: no `return` in it has a value (line 38).'],
    ['what does typed return', '`typed` returns `1` (line 42).'],
    ['what does loaded return', '`loaded` returns `read(1)` (line 43).'],
    [
      'what does over return?',
      '- `over` returns `string` (line 39).\n- `over` returns `number` (line 40).\n- `over` returns `a` (line 41).',
    ],
    ['what does long return', /^`long` returns `\[0, 1, 2, .*[\d,] …` \(line 44\)\.$/],
    ['O que send retorna?', '`send` é `async`: com `await`, retorna `null` (linha 4) ou `{ to, list }` (linha 6).'],
    ['o que a função reset devolve?', '`reset` não retorna nada: nenhum `return` ali tem valor (linha 13).'],
    [
      'Qual é o retorno de choose?',
      `\`choose\` retorna ${ONE} (linha 29), \`'two'\` (linha 30), \`null\` (linha 31), o que outros 2 \`return\` dão (linhas 33–34) ou nada (linha 35).`,
    ],
    ['o que retorna walk?', '`walk` é um gerador e produz `1` (linha 18) e `yield* this.items` (linha 19).'],
    [
      'o que later retorna?',
      '`later` é um gerador assíncrono e não produz nada: nenhum `yield` ali tem valor (linha 22).',
    ],
    // A class, a constructor, nothing to read, what is imported.
    ['what does Basket return?', undefined],
    ['what does the constructor return?', undefined],
    // Something that the program is about.
    [
      'what does the server return',
      '`server` does not stand in `src/basket.ts`. This model knows only what stands in the file.',
    ],
    ['what does server return', 'There is no `server` in `src/basket.ts`.'],
    ['what does load return?', undefined],
    ['what does read return?', '`read` is imported from `./read` (line 1). Its code is there, not in this file.'],
    ['what does `gone` return?', 'There is no `gone` in `src/basket.ts`.'],
    [
      'what does `items.map` return?',
      '`map` stands in line 5: `const list = this.items.map((item) => { return item.id; });`.',
    ],
    [
      'what does `JSON.stringify` return?',
      'There is no `JSON.stringify` in `src/basket.ts`. This model knows only what stands in the file.',
    ],
  ])('%s', async (question, expected) => {
    const answer = await askFact(question, TS, 'src/basket.ts');
    if (expected instanceof RegExp) expect(answer).toMatch(expected);
    else expect(answer).toBe(expected);
  });

  it('of several of one name each', async () => {
    expect(
      await askFact('what does size return?', 'class A { size() { return 1; } }\nclass B { size() {} }\n', 'src/a.ts'),
    ).toBe('`A.size` returns `1` (line 1). `B.size` returns nothing: no `return` in it has a value (line 2).');
  });

  it('not where errors may have spoilt it', async () => {
    expect(await askFact('what does f return?', 'function f(x) {\n  return x +;\n}\n', 'src/a.ts')).toBeUndefined();
  });
});

const PY = `async def load(path, *, limit=5):
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

describe('Python', () => {
  it.each([
    [
      'What does load return?',
      '`load` is `async`: awaited, it returns `(json.loads(path), limit)` (line 4) or nothing (line 3).',
    ],
    ['What does walk return?', '`walk` is a generator and yields `item` (line 8) and `yield from items` (line 9).'],
    ['What does size return?', '`size` returns `len(self.items)` (line 14).'],
    ['What does clear return?', '`clear` returns nothing: no `return` in it has a value (line 21).'],
    ['What does typed return?', '`typed` returns `"Store"` (line 24).'],
    ['O que double retorna?', '`double` retorna `n * 2` (linha 27).'],
    ['What does flush return?', undefined],
    ['What does stub return?', undefined],
    ['What does todo return?', undefined],
    ['What does Store return?', undefined],
    [
      'What is the default value of limit?',
      '`limit` of `load` defaults to `5` (line 1). `limit` of `walk` defaults to `None` (line 6).',
    ],
    [
      'Qual é o valor padrão de limit?',
      'O valor padrão de `limit` em `load` é `5` (linha 1). O valor padrão de `limit` em `walk` é `None` (linha 6).',
    ],
  ])('%s', async (question, expected) => expect(await askFact(question, PY, 'src/store.py')).toBe(expected));
});

describe('default values', () => {
  const TEXT = `class Retry { retries = 3; constructor(retries = 4, times = 5) {} }
function one(count = 1, left) {}
function two(left = 2) {}
function three({ inside = 3 }) {}
const outside = 4;
function four(outside = 5) {}
const five = (text = \`a\`) => text;
`;
  it.each([
    ['What is the default value of count?', '`count` of `one` defaults to `1` (line 2).'],
    ['default value of `count`', '`count` of `one` defaults to `1` (line 2).'],
    ['what does count default to?', '`count` of `one` defaults to `1` (line 2).'],
    ['what is the default of the parameter times?', '`times` of `Retry.constructor` defaults to `5` (line 1).'],
    [
      'What is the default value of left?',
      '`left` of `one` has no default value (line 2). `left` of `two` defaults to `2` (line 3).',
    ],
    ['valor padrão de count', 'O valor padrão de `count` em `one` é `1` (linha 2).'],
    ['qual é o padrão do parâmetro count?', 'O valor padrão de `count` em `one` é `1` (linha 2).'],
    ['default value of `gone`', 'There is no `gone` in `src/a.js`.'],
    ['default value of gone', '`gone` does not stand in `src/a.js`. This model knows only what stands in the file.'],
    // A field, a variable, a part of something: it may be theirs that is asked for.
    ['What is the default value of retries?', undefined],
    ['What is the default value of inside?', undefined],
    ['What is the default value of outside?', undefined],
    ['What is the default value of text?', undefined],
    ['What is the default value of the variable count?', undefined],
    ['What is the default value of one?', undefined],
  ])('%s', async (question, expected) => expect(await askFact(question, TEXT, 'src/a.js')).toBe(expected));
});

describe('for the model', () => {
  it.each([
    'What does X return when y is null?',
    'Why does `f` return 1?',
    'What does `f` return? And `g`?',
    'What does `f` return and why?',
    'What does this function return?',
    'What does it return?',
    'what does the function return',
    'What does `f` return in this case?',
    'What should `f` return?',
    'What does `f` return?\n```ts\nfunction f() {}\n```',
    'How can `f` return a list?',
    'What type of error does `f` return?',
    'Does `f` return null?',
    'What is returned?',
    'what does everything return',
    'Which values does the server return for `f`?',
    'O que X retorna quando y é nulo?',
    'Por que `f` retorna 1?',
    'O que isso retorna?',
    'o que a função retorna',
    'O que `f` retorna? E `g`?',
    'O que `f` deveria retornar?',
    'What is the default?',
    'What is the default value of this?',
    'What should the default value of `x` be?',
    'Why is the default value of `x` 3?',
    'Qual é o valor padrão?',
    'Qual deveria ser o valor padrão de `x`?',
  ])('%s', (message) => expect(factQuestion(message, 'src/a.ts')).toBeUndefined());
});
