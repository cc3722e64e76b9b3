/** Where names are assigned and exceptions thrown, in all languages that have a grammar, and what is not claimed. */
import { beforeAll, describe, expect, it, test } from 'vitest';
import { ask, known, loadAllGrammars } from './askFacts.ts';

beforeAll(loadAllGrammars, 60_000);

const LEDGER = `import { log } from './log';
export class OverdraftError extends Error {}
export class Ledger {
  private nextId = 1;
  entries = [];
  add(cents) {
    if (cents < 0) throw new OverdraftError('x');
    this.entries.push(cents);
    return this.nextId++;
  }
  reset() { this.nextId = 1; [this.a, total] = [1, 2]; }
  each() { this.entries.forEach((one) => { if (!one) throw one; }); }
  quiet() { log(this.nextId); }
}
let total = 0;
const LIMIT = 3;
export const clear = () => { total = LIMIT; delete box.total; };
`;
const FILES = { 'src/ledger.ts': LEDGER };

describe('assignments', () => {
  const PLACES =
    'Assignments to `nextId`: `Ledger.add` (line 9), `Ledger.reset` (line 11). ' +
    'Its first value is on line 4: `private nextId = 1;`.';
  const PLACES_PT =
    'Atribuições a `nextId`: `Ledger.add` (linha 9), `Ledger.reset` (linha 11). ' +
    'Seu primeiro valor está na linha 4: `private nextId = 1;`.';
  it.each([
    ['Where is nextId changed?', PLACES],
    ['Where is `nextId` assigned?', PLACES],
    ['where does nextId get set', PLACES],
    ['Is nextId ever changed?', PLACES],
    ['Where is nextId initialized?', PLACES],
    ['On which lines is nextId modified?', PLACES],
    [
      'Which functions change nextId?',
      'Assignments to `nextId`: `Ledger.add` (line 9), `Ledger.reset` (line 11). Its first value is on line 4: `private nextId = 1;`.',
    ],
    [
      'What modifies total?',
      'Assignments to `total`: `Ledger.reset` (line 11), `clear` (line 17). Its first value is on line 15: `let total = 0;`.',
    ],
    [
      'Which method sets nextId?',
      'Assignments to `nextId`: `Ledger.add` (line 9), `Ledger.reset` (line 11). Its first value is on line 4: `private nextId = 1;`.',
    ],
    [
      'Where is LIMIT changed?',
      'No assignment in `src/ledger.ts` changes `LIMIT`. Its first value is on line 16: `const LIMIT = 3;`.',
    ],
    ['Onde nextId é alterado?', PLACES_PT],
    ['Onde é modificado o nextId?', PLACES_PT],
    ['Em que linha nextId é atribuído?', PLACES_PT],
    [
      'Quais funções alteram nextId?',
      'Atribuições a `nextId`: `Ledger.add` (linha 9), `Ledger.reset` (linha 11). Seu primeiro valor está na linha 4: `private nextId = 1;`.',
    ],
    [
      'Quem muda total?',
      'Atribuições a `total`: `Ledger.reset` (linha 11), `clear` (linha 17). Seu primeiro valor está na linha 15: `let total = 0;`.',
    ],
  ])('%s', async (question, answer) => expect(await ask(question, FILES)).toBe(answer));

  test('calls on a name that is not assigned again are named, because they may change it', async () => {
    expect(await ask('Where is entries changed?', FILES)).toMatch(
      /^No assignment .* changes `entries`\.\s+Its first value is on line 5: `entries = \[\];`\.\s+Calls on it may change it:\s+- on line 8: .*\s+- on line 12/,
    );
  });

  test('a loop and `with` assign in Python, which has no declarations', async () => {
    const files = { 'a.py': 'row = None\nwith open("a") as lines:\n    for row in lines:\n        pass\n' };
    expect(await ask('Where is row changed?', files)).toBe('Assignments to `row`: outside functions (line 1, line 3).');
    expect(await ask('Where is lines changed?', files)).toBe('Assignments to `lines`: outside functions (line 2).');
  });

  test('calls on a name are named if only its first values are assigned', async () => {
    const files = { 'a.py': 'waiting = deque()\ndef push(job):\n    waiting.append(job)\n' };
    expect(await ask('Where is waiting changed?', files)).toBe(
      'Assignments to `waiting`: outside functions (line 1). ' +
        'Calls on it may change it: on line 3: `waiting.append(job)`.',
    );
  });

  test('with syntax errors nothing is said to be unchanged', async () => {
    expect(await ask('Where is LIMIT changed?', { 'a.ts': 'const LIMIT = 1;\nfunction (\n' })).toBeUndefined();
  });

  it.each([
    'Change total',
    'Set nextId to 3',
    'What does total change?',
    'What does reset set?',
    'Why is nextId changed?',
    'Where is the total changed by the user?',
  ])('for the model: %s', async (question) => expect(await ask(question, FILES)).toBeUndefined());
});

describe('exceptions', () => {
  const THROWN = 'Code that throws `OverdraftError`: `Ledger.add` (line 7).';
  const THROWERS =
    'Directly thrown in `src/ledger.ts`:\n\n- `Ledger.add` (line 7): `OverdraftError`\n' +
    '- `Ledger.each` (line 12): `one` in an inner function\n\nWhat it calls may throw.';
  const THROWERS_PT =
    'Lançado diretamente em `src/ledger.ts`:\n\n- `Ledger.add` (linha 7): `OverdraftError`\n' +
    '- `Ledger.each` (linha 12): `one` em uma função interna\n\nO que é chamado pode lançar.';
  it.each([
    ['Where is `OverdraftError` thrown?', THROWN],
    ['Where is OverdraftError thrown?', THROWN],
    ['On which line is OverdraftError thrown?', THROWN],
    ['Which functions throw OverdraftError?', THROWN],
    ['Where is `OverdraftError` raised?', THROWN],
    ['Onde é lançado o OverdraftError?', 'Código que lança `OverdraftError`: `Ledger.add` (linha 7).'],
    ['Which methods can raise an exception?', THROWERS],
    ['which functions throw', THROWERS],
    ['Which errors can be thrown?', THROWERS],
    ['Where is an error thrown?', THROWERS],
    ['List all throw statements', THROWERS],
    ['Que erros podem ser lançados?', THROWERS_PT],
    ['What throws in this file?', THROWERS],
    ['Quais métodos podem lançar uma exceção?', THROWERS_PT],
    ['Quais funções lançam erros?', THROWERS_PT],
    [
      'What does add throw?',
      'Directly thrown in `add`: `Ledger.add` (line 7): `OverdraftError`. What it calls may throw.',
    ],
    [
      'Which exceptions can be thrown in add?',
      'Directly thrown in `add`: `Ledger.add` (line 7): `OverdraftError`. What it calls may throw.',
    ],
    [
      'Does add throw anything?',
      'Directly thrown in `add`: `Ledger.add` (line 7): `OverdraftError`. What it calls may throw.',
    ],
    ['add lança alguma coisa?', undefined],
    [
      'O que pode ser lançado em add?',
      'Lançado diretamente em `add`: `Ledger.add` (linha 7): `OverdraftError`. O que é chamado pode lançar.',
    ],
    ['Does quiet throw?', '`quiet` throws nothing directly. What it calls may throw.'],
    [
      'O que add lança?',
      'Lançado diretamente em `add`: `Ledger.add` (linha 7): `OverdraftError`. O que é chamado pode lançar.',
    ],
    ['Where is log thrown?', '`log` is imported from `./log` (line 1).'],
    ['Where is TypeError thrown?', '`TypeError` does not appear in `src/ledger.ts`.'],
    [
      'Which methods of Ledger throw?',
      'Directly thrown in `Ledger`:\n\n- `Ledger.add` (line 7): `OverdraftError`\n- `Ledger.each` (line 12): `one` in an inner function\n\nWhat it calls may throw.',
    ],
  ])('%s', async (question, answer) => expect(await ask(question, FILES)).toBe(answer));

  test('a file that throws nothing says so', async () => {
    expect(await ask('Which functions throw?', { 'a.py': 'def f():\n    g()\n' })).toBe(
      '`a.py` throws nothing directly. What it calls may throw.',
    );
  });

  it.each(['Throw OverdraftError', 'Why does add throw?', 'Por que add lança?', 'How do I raise an exception?'])(
    'for the model: %s',
    async (question) => expect(await ask(question, FILES)).toBeUndefined(),
  );
});

describe('in all languages', () => {
  it.each([
    ['a.py', 'n = 1\nclass A:\n    def f(self):\n        self.n += 1\n        raise Bad("x")\n', 'A.f', [1, 4], 5],
    ['a.js', 'let n = 1;\nclass A {\n  f() {\n    this.n = 1;\n    throw new Bad();\n  }\n}\n', 'A.f', [4], 5],
    ['a.java', 'class A {\n  int n = 1;\n  void f() {\n    n++;\n    throw new Bad();\n  }\n}\n', 'A.f', [4], 5],
    ['a.cs', 'class A {\n  int n = 1;\n  void f() {\n    --n;\n    throw new Bad();\n  }\n}\n', 'A.f', [4], 5],
    ['a.cpp', 'struct A {\n  int n;\n};\nvoid A::f() {\n  this->n = 2;\n  throw Bad("x");\n}\n', 'A.f', [5], 6],
    ['a.php', '<?php\nclass A {\n  function f() {\n    $this->n = 2;\n    throw new Bad();\n  }\n}\n', 'A.f', [4], 5],
    ['a.rb', 'class A\n  def f\n    @n ||= 2\n    raise Bad, "x"\n  end\nend\n', 'A.f', [3], 4],
    ['a.ps1', 'class A {\n  [void] f() {\n    $this.n = 1\n    throw [Bad]::new("x")\n  }\n}\n', 'A.f', [3], 4],
  ] as const)('%s', async (path, text, name, lines, thrown) => {
    const files = { [path]: text };
    const said = (await ask('Where is n assigned?', files)) ?? '';
    const found = [...said.split('Its first value')[0]!.matchAll(/line (\d+)/g)].map(([, line]) => Number(line));
    expect(found).toEqual(lines);
    expect(said).toContain(`\`${name}\` (line ${lines.at(-1)})`);
    expect(await ask('Which functions change n?', files)).toBe(said);
    expect(await ask('Which functions throw?', files)).toBe(
      `Directly thrown in \`${path}\`: \`${name}\` (line ${thrown}): \`Bad\`. What it calls may throw.`,
    );
    expect(await ask('Where is Bad thrown?', files)).toBe(`Code that throws \`Bad\`: \`${name}\` (line ${thrown}).`);
  });

  it.each([
    ['a.go', 'package a\nfunc (s *A) f() {\n\ts.n, m = 1, 2\n\tpanic("x")\n}\n', 'A.f', 3, 4],
    ['a.rs', 'impl A {\n    fn f(&mut self) {\n        self.n += 1;\n        panic!("x");\n    }\n}\n', 'A.f', 3, 4],
  ] as const)('%s panics', async (path, text, name, line, thrown) => {
    const files = { [path]: text };
    expect(await ask('What changes n?', files)).toBe(`Assignments to \`n\`: \`${name}\` (line ${line}).`);
    expect(await ask('Which functions panic?', files)).toContain(`\`${name}\` (line ${thrown}): a value`);
  });

  test('an error that is given more fields', async () => {
    const files = { 'a.ts': "function f() { throw Object.assign(new TypeError('x'), { code: 1 }); }\n" };
    expect(await ask('Where is TypeError thrown?', files)).toBe('Code that throws `TypeError`: `f` (line 1).');
  });

  test('a shell script', async () => {
    const files = { 'a.sh': 'total=1\nadd() {\n  total=$((total + 1))\n  ((total += 2)); ((total == 3))\n}\n' };
    expect(await ask('Which functions change total?', files)).toBe(
      'Assignments to `total`: outside functions (line 1), `add` (line 3, line 4).',
    );
  });

  test('a long chain of assignments is read in linear time', async () => {
    const text = `let sum = 0;\n${'sum = sum + 1; box.list[3].b = -sum; if (!sum) throw new Error();\n'.repeat(4000)}`;
    const before = process.cpuUsage();
    expect(await ask('Where is sum changed?', { 'a.ts': text })).toMatch(
      /^Assignments to `sum`: outside functions \(line 2, line 3, .*, line 21, 3980 more\)/,
    );
    // A quadratic walk takes minutes.
    expect(process.cpuUsage(before).user).toBeLessThan(10_000_000);
  });
});

test('overloads of a function are one definition', async () => {
  const text =
    'export function load(path: string): string;\nexport function load(path: URL): string;\n' +
    'export function load(path: unknown) {\n  return String(path);\n}\nfunction one() {}\nclass A { one() {} }\n';
  expect(await ask('Where is load defined?', { 'a.ts': text })).toBe(
    '`load` is defined:\n\n- on line 1: `export function load(path: string): string;`\n- on line 2: `export function load(path: URL): string;`\n- on line 3: `export function load(path: unknown) {`',
  );
  expect(await ask('Onde está definida a função load?', { 'a.ts': text })).toBe(
    'A definição de `load` está:\n\n- na linha 1: `export function load(path: string): string;`\n- na linha 2: `export function load(path: URL): string;`\n- na linha 3: `export function load(path: unknown) {`',
  );
  expect(await ask('Where is one defined?', { 'a.ts': text })).toBe(
    '`one` is defined:\n\n- on line 6: `function one() {}`\n- on line 7: `class A { one() {} }`',
  );
});

test('a word of other questions can be the name', async () => {
  const files = { 'a.ts': 'export class Box {\n  /** Makes it new. */\n  update() {}\n  set(value) {}\n}\n' };
  expect(await ask('What does update do?', files)).toBe('The comment of `update` (line 3) says:\n\n> Makes it new.');
  expect(await ask('Where is set defined?', files)).toBe('`Box.set` is defined on line 4: `set(value) {}`.');
  expect(await ask('What does write do?', files)).toBeUndefined();
});

describe('a question about selected code', () => {
  const selection = (text: string, path = 'src/ledger.ts') => ({ snippets: [{ path, text, startLine: 4 }] });
  const COMMENTED = '  /** Formats cents.\n   * @param cents whole\n   */\n  format(cents: number) {}\n';
  it.each([
    ['What does this code do?', 'The comment says:\n\n> Formats cents.'],
    ['Explain this', 'The comment says:\n\n> Formats cents.'],
    ['O que faz este código?', 'O comentário diz:\n\n> Formats cents.'],
    ['Explique o código selecionado', 'O comentário diz:\n\n> Formats cents.'],
    ['Is this fast?', undefined],
  ])('%s', async (question, answer) => expect(await ask(question, FILES, selection(COMMENTED))).toBe(answer));

  it.each([
    ['a.ts', '// Adds.\n// Then returns.\nreturn a + b;\n', 'Adds. Then returns.'],
    ['a.py', '@cached\ndef f(a: int = 3, b={}):\n    """Reads all.\n\n    More."""\n    return 1\n', 'Reads all.'],
    ['a.py', '# Reads it.\nx = 1\n', 'Reads it.'],
    ['a.go', '// Put stores.\nfunc Put() {}\n', 'Put stores.'],
    ['a.ts', 'const a = 1; // not about it\n', undefined],
    ['a.ts', '// eslint-disable-next-line\nfoo();\n', undefined],
    ['a.md', '# Title\n', undefined],
    ['a.py', 'x = """not a docstring"""\n', undefined],
  ])('%s %j', async (path, text, comment) => {
    const answer = await known('What does this code do?', FILES, selection(text, path));
    expect(answer?.text).toBe(comment === undefined ? undefined : `The comment says:\n\n> ${comment}`);
    if (comment !== undefined) expect(answer?.note).toBe(`from the code of ${path}, not written by the model`);
  });
});
