/** Which questions the files answer, and that no answer is about a name that was not asked for. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { ask, known, loadGrammars } from './askFacts.ts';

beforeAll(loadGrammars, 60_000);

const SHOP = `/** Sells things. */

import { Money } from './money';

/** Holds what a customer buys. */
export class Basket extends Map<string, number> {
  limit = 10;
  constructor(private readonly owner: string, max = 3) { super(); }
  /** Adds one item. */
  add(item: string, count = 1): void {}
  get total(): number { return 1; }
}
export function format(cents: number) {
  if (!cents) return null;
  return cents + ' EUR';
}
function printAll() { return format(3); }
`;
const FILES = { 'src/shop.ts': SHOP };

describe('each intent', () => {
  const FORMAT = 'The signature of `format` is on line 13: `function format(cents: number)`.';
  const FUNCTIONS = 'Functions of `src/shop.ts`: `format` (line 13), `printAll` (line 17).';
  const METHODS =
    'Methods of `Basket`: `constructor` (line 8), `add` (line 10). Base classes of `Basket`: `Map` (line 6). Inherited members are not listed.';
  const CALLED = 'Callers of `format`: `printAll` (line 17).';
  const BASE = 'Base classes of `Basket`: `Map` (line 6).';
  const OWNER = '`Basket.add` is defined on line 10: `add(item: string, count = 1): void {}`.';
  const RETURNS = "`format` returns `null` (line 14), `cents + ' EUR'` (line 15).";
  it.each([
    ['Which functions does this file define?', FUNCTIONS],
    ['what functions are there in shop.ts', FUNCTIONS],
    ['How many functions does this file define?', FUNCTIONS],
    ['Is there a function called `remove`?', '`remove` does not appear in `src/shop.ts`.'],
    ['Does `remove` exist?', '`remove` does not appear in `src/shop.ts`.'],
    ['What is the value of `limit`?', '`Basket.limit` is defined on line 7: `limit = 10;`.'],
    ['Is Money used?', 'Nothing in `src/shop.ts` uses `Money`.'],
    ['Where is limit used?', 'Nothing in `src/shop.ts` uses `limit`.'],
    ['list all functions', FUNCTIONS],
    [
      'Which classes and types are defined?',
      'Outline of `src/shop.ts`:\n\nClasses:\n\n- `Basket` (line 6): `limit` (line 7), `constructor` (line 8), `add` (line 10), `total` (line 11)\n\nFunctions: `format` (line 13), `printAll` (line 17).',
    ],
    ['Where is printAll defined?', '`printAll` is defined on line 17: `function printAll() { return format(3); }`.'],
    [
      'On which line is the format function declared?',
      '`format` is defined on line 13: `export function format(cents: number) {`.',
    ],
    ['Where does Money come from?', '`Money` is imported from `./money` (line 3).'],
    ['What parameters does format take?', FORMAT],
    ['What are the parameters of format()?', FORMAT],
    ['What is the type of `cents` in `format`?', FORMAT],
    ['What is the default value of cents in format?', FORMAT],
    ['What is the type of the cents parameter of format()?', FORMAT],
    ['What does format return?', RETURNS],
    ['What is the return type of Basket.add?', '`Basket.add` returns `void` (line 10).'],
    ['Where is the total defined?', '`Basket.total` is defined on line 11: `get total(): number { return 1; }`.'],
    ['How is format used?', CALLED],
    ['What does this file import?', 'Imports of `src/shop.ts`: `./money` (line 3).'],
    ['what does it export?', 'Exports of `src/shop.ts`: `Basket` (line 6), `format` (line 13).'],
    ['What calls format?', CALLED],
    ['Which methods call format?', CALLED],
    ['Where is format used?', CALLED],
    ['Which methods does Basket have?', METHODS],
    ['What is the base class of Basket?', BASE],
    ['What does `Basket` extend?', BASE],
    ['Which class does add belong to?', OWNER],
    ['Which class has an add method?', OWNER],
    ['What does Basket do?', 'The comment of `Basket` (line 6) says:\n\n> Holds what a customer buys.'],
    ['Tell me what Basket does', 'The comment of `Basket` (line 6) says:\n\n> Holds what a customer buys.'],
    ['Can you explain what Basket is for?', 'The comment of `Basket` (line 6) says:\n\n> Holds what a customer buys.'],
    ['What is Basket?', 'The comment of `Basket` (line 6) says:\n\n> Holds what a customer buys.'],
    ['What is add() for?', 'The comment of `Basket.add` (line 10) says:\n\n> Adds one item.'],
    ['What is this file for?', 'Sells things.'],
    ['Where is `gone` defined?', '`gone` does not appear in `src/shop.ts`.'],
    ['Where is nextId defined?', '`nextId` does not appear in `src/shop.ts`.'],
    ['Explain Basket', 'The comment of `Basket` (line 6) says:\n\n> Holds what a customer buys.'],
    ['What does Money do?', '`Money` is imported from `./money` (line 3).'],
    [
      'What does format do?',
      'No comment above `format` says what it does. `format` is defined on line 13: `export function format(cents: number) {`. ' +
        "`format` returns `null` (line 14), `cents + ' EUR'` (line 15).",
    ],
  ])('%s', async (question, answer) => {
    expect(await ask(question, FILES)).toBe(answer);
    // Of one line, of a whole conversation, with other marks at the end.
    const earlier = [
      { role: 'user' as const, content: 'Hi' },
      { role: 'assistant' as const, content: 'Hello' },
    ];
    if (!/\bit\b/.test(question))
      expect(await ask(` ${question.replace(/\?$/, '')} ??`, FILES, { earlier })).toBe(answer);
  });

  it.each([
    ['Quais funções este arquivo define?', 'Funções de `src/shop.ts`: `format` (linha 13), `printAll` (linha 17).'],
    ['Quantas funções há?', 'Funções de `src/shop.ts`: `format` (linha 13), `printAll` (linha 17).'],
    ['Este arquivo lança alguma exceção?', '`src/shop.ts` não lança nada diretamente. O que é chamado pode lançar.'],
    ['Existe uma função chamada `remove`?', '`remove` não aparece em `src/shop.ts`.'],
    ['quais funcoes ha neste arquivo', 'Funções de `src/shop.ts`: `format` (linha 13), `printAll` (linha 17).'],
    [
      'Onde está definida a função printAll?',
      'A definição de `printAll` está na linha 17: `function printAll() { return format(3); }`.',
    ],
    [
      'Quais são os parâmetros de format()?',
      'A assinatura de `format` está na linha 13: `function format(cents: number)`.',
    ],
    [
      'Qual é o tipo de `cents` em `format`?',
      'A assinatura de `format` está na linha 13: `function format(cents: number)`.',
    ],
    ['O que format retorna?', "`format` retorna `null` (linha 14), `cents + ' EUR'` (linha 15)."],
    ['O que este arquivo importa?', 'Importações de `src/shop.ts`: `./money` (linha 3).'],
    ['O que este arquivo exporta?', 'Exportações de `src/shop.ts`: `Basket` (linha 6), `format` (linha 13).'],
    ['Quem chama format?', 'Quem chama `format`: `printAll` (linha 17).'],
    ['Onde format é usado?', 'Quem chama `format`: `printAll` (linha 17).'],
    [
      'Quais campos Basket tem?',
      'Propriedades de `Basket`: `limit` (linha 7), `owner` (linha 8), `total` (linha 11). Classes base de `Basket`: `Map` (linha 6). Membros herdados não são listados.',
    ],
    ['Qual é a classe base de Basket?', 'Classes base de `Basket`: `Map` (linha 6).'],
    [
      'A qual classe pertence add?',
      'A definição de `Basket.add` está na linha 10: `add(item: string, count = 1): void {}`.',
    ],
    ['O que faz a classe Basket?', 'O comentário de `Basket` (linha 6) diz:\n\n> Holds what a customer buys.'],
    ['O que faz Basket?', 'O comentário de `Basket` (linha 6) diz:\n\n> Holds what a customer buys.'],
    ['Me explica o que Basket faz', 'O comentário de `Basket` (linha 6) diz:\n\n> Holds what a customer buys.'],
    ['O que é Basket?', 'O comentário de `Basket` (linha 6) diz:\n\n> Holds what a customer buys.'],
    ['Onde `gone` é definido?', '`gone` não aparece em `src/shop.ts`.'],
    ['Onde está `gone`?', '`gone` não aparece em `src/shop.ts`.'],
  ])('%s', async (question, answer) => expect(await ask(question, FILES)).toBe(answer));
});

/** For the model: something else is asked, or perhaps so. */
const OTHERS = [
  'What does remove() do?',
  'Which functions are exported?',
  'What is the type of `gone` in `format`?',
  // A word that is not known and not marked is no name.
  'Where is gone defined?',
  'Does remove exist?',
  'What does withdraw do?',
  'Onde gone é definido?',
  'Where is JSON used?',
  'What is GitHub?',
  'What is gRPC?',
  'What is macOS?',
  'O que é jQuery?',
  'What does `npm install` do?',
  'What does `await` do?',
  'How are functions defined?',
  'How can types be declared?',
  'What are functions?',
  'O que são métodos?',
  // A question begins with a question word.
  'signature of `format`',
  'exports',
  'Call format',
  'Export all functions',
  'What imports this file?',
  'Is this file imported?',
  'O que é chamado em format?',
  'Can I import Basket from this file?',
  'Why does format return null?',
  'How does Basket work?',
  'Write a test for Basket',
  'Add parameters',
  'Add a method to Basket',
  'Remove imports',
  'What does format call?',
  'Which functions are called in format?',
  'Which functions are called by format?',
  'Which class extends Basket?',
  'Which classes inherit from Map?',
  'What takes Basket?',
  'What returns null?',
  'Which function returns null?',
  'Which functions take cents?',
  'Which functions are unused?',
  'Which functions are not exported?',
  'Which functions does format use?',
  'Which methods of Basket are async?',
  'Is format exported?',
  'Is add async?',
  'Does Basket have a remove method?',
  'Where is the error handled?',
  'Where are Basket and format defined?',
  'Where is format defined in money.ts?',
  'Where should I put the import?',
  'What is the type of cents?',
  'What is the default value of count?',
  'What is a class?',
  'Como funciona Basket?',
  'What does Map do?',
  'What does total count?',
  'What does the file do with Basket?',
  'What does format do if cents is 0?',
  'What should add return?',
  'What parameters should format have?',
  'What would break if format returned undefined?',
  'What happens when add is called?',
  'What does `Basket` do and where is it used?',
  'What does Basket do? And format?',
  'Which file imports Basket?',
  'What imports Basket?',
  'Who wrote Basket?',
  'When is format called?',
  'Compare Basket and Map',
  'Rename format to formatCents',
  'Translate the comments',
  'Is this file correct?',
  'Find bugs',
  'Where is `format`:\n```\nformat();\n```',
  'return type',
  'functions()',
  'where',
  'O que format chama?',
  'Por que format retorna null?',
  'Which parameters are optional?',
  'Which methods are private?',
  'Which structs exist?',
  'What does the first function do?',
  'What is wrong?',
  'Where is validation?',
  'Where is caching implemented?',
  'What is React?',
  'What does main.py do?',
  'Where is `money.ts`?',
  'What does idempotent mean?',
  'Does it use recursion?',
  'Where is sells defined?',
  'Quais parâmetros são opcionais?',
  'Quais são os métodos privados?',
  'O que faz a função principal?',
  'O que significa idempotente?',
  'Existe alguma função recursiva?',
  'Existe algum erro?',
  'Como funciona Basket?',
  'Escreva um teste para Basket',
  'Qual função recebe Basket?',
  'Quais classes herdam de Map?',
  'Onde está o erro?',
  'Onde o total é calculado?',
  'Posso importar Basket deste arquivo?',
];

test.each(OTHERS)('for the model: %s', async (question) => expect(await ask(question, FILES)).toBeUndefined());

test('property: no answer names anything that the question did not name', async () => {
  const words =
    'what which where is are does do the a an of in this file class function method add total format Basket Map printAll cents parameters return returns take calls called used uses extend base type import exports exported has have belong to for purpose not by and from its `gone` gone()'.split(
      ' ',
    );
  const own = ['add', 'total', 'format', 'Basket', 'Map', 'printAll', 'cents', 'gone'];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 8 }), async (picked) => {
      const answer = await known(picked.join(' '), FILES);
      if (!answer) return;
      const asked = own.filter((name) => picked.some((word) => word.replace(/[`()]/g, '') === name));
      const subject = /^(?:The (?:comment|signature) of |(?:Methods|Accessors|Fields|Callers) of )?`([\w.]+)`/.exec(
        answer.text,
      )?.[1];
      expect(asked.length, answer.text).toBeLessThanOrEqual(1);
      if (asked.length === 1) expect(subject?.split('.').at(-1)).toBe(asked[0]);
      else expect(answer.text).toMatch(/^(?:\w+(?: \([\w ]+\))? of `src\/shop\.ts`|Sells things)/);
    }),
    { numRuns: 400, seed: 7 },
  );
}, 60_000);

describe('a conversation', () => {
  const said = (content: string) => [
    { role: 'user' as const, content: 'x' },
    { role: 'assistant' as const, content },
  ];

  it('"it" is the file only in the first message', async () => {
    expect(await ask('What does it import?', FILES)).toMatch(/^Imports/);
    expect(await ask('What does it import?', FILES, { earlier: said('Yes.') })).toBeUndefined();
  });

  it('a missing name may be asked for again', async () => {
    const [first, again] = ['`gone` does not appear in `src/ledger.ts`.', 'Where is `gone` defined?'];
    const earlier = [
      { role: 'user' as const, content: again },
      { role: 'assistant' as const, content: first, source: 'files' as const },
    ];
    expect(await ask(again, FILES, { earlier })).toMatch(/does not appear/);
  });

  it('a name from code in an earlier message is not reported as missing', async () => {
    expect(await ask('Where is `gone` defined?', FILES, { earlier: said('```\ngone();\n```') })).toBeUndefined();
    expect(await ask('Where is `gone` defined?', FILES, { earlier: said('Yes.') })).toMatch(/does not appear/);
  });

  it('with selected code, "this file" may be the selection', async () => {
    const snippets = [{ path: 'src/shop.ts', text: 'add() {}', startLine: 2 }];
    expect(await ask('Which functions are defined?', FILES, { snippets })).toBeUndefined();
    expect(await ask('What does format return?', FILES, { snippets })).toMatch(/^`format` returns/);
  });
});

describe('of several files', () => {
  const TWO = {
    'src/a.ts': 'export function load(path: string) {}\n',
    'src/b.ts': "import { load } from './a';\nload('x');\n",
  };
  it.each([
    [
      'Which functions are defined?',
      'Functions of `src/a.ts`: `load` (line 1).\n\n`src/b.ts` defines nothing at its top level.',
    ],
    ['Which functions are defined in b.ts?', '`src/b.ts` defines nothing at its top level.'],
    [
      'What parameters does load take?',
      '`src/a.ts`: The signature of `load` is on line 1: `function load(path: string)`.',
    ],
    ['Where is `gone` defined?', '`gone` does not appear in `src/a.ts`, `src/b.ts`.'],
    ['Where is load defined in b.ts?', '`load` is imported from `./a` (line 1).'],
  ])('%s', async (question, answer) => expect(await ask(question, TWO)).toBe(answer));
});

test('a verb that is a name, too, is a verb behind its subject', async () => {
  const files = { 'a.js': 'let value = 1;\nfunction update() { value = 2; }\nfunction set(type) { return type; }\n' };
  expect(await ask('What does update set?', files)).toBeUndefined();
  expect(await ask('What does set return?', files)).toBe('`set` returns `type` (line 3).');
  const other = { 'a.js': 'function get() { return 1; }\nfunction run() { throw new Error("a"); }\n' };
  expect(await ask('What does get throw?', other)).toBe('`get` throws nothing directly. What it calls may throw.');
  expect(await ask('What does get return?', other)).toBe('`get` returns `1` (line 1).');
});

test('in other languages functions, their places and their comments are answered, and nothing that is not read', async () => {
  const files = { 'main.go': 'package main\n\n// Runs it all.\nfunc run() {}\nfunc stop() {}\n' };
  expect(await ask('Where is `run` defined?', files)).toBe('`run` is defined on line 4: `func run() {}`.');
  expect(await ask('Which functions are defined?', files)).toMatch(/^Functions of `main.go`: `run` \(line 4\), `stop`/);
  expect(await ask('What does run do?', files)).toBe('The comment of `run` (line 4) says:\n\n> Runs it all.');
  expect(await ask('What does stop do?', files)).toBe(
    'No comment above `stop` says what it does. `stop` is defined on line 5: `func stop() {}`.',
  );
  for (const question of ['What does run return?', 'What does this file export?', 'What does run extend?'])
    expect(await ask(question, files), question).toBeUndefined();
  expect(await ask('Where is `gone` defined?', files)).toBe('`gone` does not appear in `main.go`.');
  // Types and constants are not read, so that there are none cannot be said.
  const others = { 'job.go': 'package main\n\ntype Job struct{}\n\nconst maxJobs = 64\n' };
  for (const question of ['Which types are defined?', 'Which constants are there?', 'Which interfaces are there?'])
    expect(await ask(question, others), question).toBeUndefined();
  expect(await ask('/outline', { 'max.go': 'package main\n\nconst maxJobs = 64\n' })).not.toMatch(/defines nothing/);
});

it('the type of a member is not that of a parameter of the constructor', async () => {
  const files = {
    'a.ts': 'class User {\n  name: string | null = null;\n  constructor(name: string, size = 4) {}\n}\n',
  };
  expect(await ask('What is the type of `name` in `User`?', files)).toBeUndefined();
  expect(await ask('What is the default of `size` in `User`?', files)).toBe(
    'The signature of `User` is on line 3: `constructor(name: string, size = 4)`.',
  );
});
