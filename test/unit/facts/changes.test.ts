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
    'First values of `nextId`: `Ledger` (line 4).';
  const PLACES_PT =
    'Atribuições a `nextId`: `Ledger.add` (linha 9), `Ledger.reset` (linha 11). ' +
    'Primeiros valores de `nextId`: `Ledger` (linha 4).';
  it.each([
    ['Where is nextId changed?', PLACES],
    ['Where is `nextId` assigned?', PLACES],
    ['where does nextId get set', PLACES],
    ['Is nextId ever changed?', PLACES],
    ['Where is nextId initialized?', PLACES],
    ['On which lines is nextId modified?', PLACES],
    [
      'Which functions change nextId?',
      'Assignments to `nextId`: `Ledger.add` (line 9), `Ledger.reset` (line 11). First values of `nextId`: `Ledger` (line 4).',
    ],
    [
      'What modifies total?',
      'Assignments to `total`: `Ledger.reset` (line 11), `clear` (line 17).\n\nFirst values of `total`: outside functions (line 15).\n\nDeletions of `total`:\n\n- `clear` (line 17): `box.total`',
    ],
    [
      'Which method sets nextId?',
      'Assignments to `nextId`: `Ledger.add` (line 9), `Ledger.reset` (line 11). First values of `nextId`: `Ledger` (line 4).',
    ],
    [
      'Where is LIMIT changed?',
      'No assignment in `src/ledger.ts` changes `LIMIT`. A call may. First values of `LIMIT`: outside functions (line 16).',
    ],
    ['Onde nextId é alterado?', PLACES_PT],
    ['Onde é modificado o nextId?', PLACES_PT],
    ['Em que linha nextId é atribuído?', PLACES_PT],
    [
      'Quais funções alteram nextId?',
      'Atribuições a `nextId`: `Ledger.add` (linha 9), `Ledger.reset` (linha 11). Primeiros valores de `nextId`: `Ledger` (linha 4).',
    ],
    [
      'Quem muda total?',
      'Atribuições a `total`: `Ledger.reset` (linha 11), `clear` (linha 17).\n\nPrimeiros valores de `total`: fora de funções (linha 15).\n\nRemoções de `total`:\n\n- `clear` (linha 17): `box.total`',
    ],
  ])('%s', async (question, answer) => expect(await ask(question, FILES)).toBe(answer));

  test('a call on a name that is not assigned again may change it', async () => {
    expect(await ask('Where is entries changed?', FILES)).toBe(
      'No assignment in `src/ledger.ts` changes `entries`. A call may. First values of `entries`: `Ledger` (line 5).',
    );
  });

  test('a deletion is no assignment', async () => {
    expect(await ask('Where is total deleted?', { 'a.js': 'function f(box) { delete box.total; }\n' })).toBe(
      'No assignment in `a.js` changes `total`. A call may.\n\nDeletions of `total`:\n\n- `f` (line 1): `box.total`',
    );
    const python = 'def f(rows):\n    first = rows[0]\n    del first, rows[1]\n';
    expect(await ask('Where is `first` changed?', { 'a.py': python })).toBe(
      'Assignments to `first`: `f` (line 2). Deletions of `first`: `f` (line 3).',
    );
    expect(await ask('Where is `rows` changed?', { 'a.py': python })).toBe(
      'No assignment in `a.py` changes `rows`. A call may.\n\nDeletions of `rows`:\n\n- `f` (line 3): `rows[1]`',
    );
  });

  test('variables and fields of one name are told apart by function and object', async () => {
    const text =
      'function a() { let n = 1; n = 2; }\nfunction b(box) { let n = 3; box.n = 4; this.n = 5; }\nclass C { n = 6; }\n';
    expect(await ask('Where is `n` changed?', { 'a.js': text })).toBe(
      'Assignments to `n`:\n\n- `a` (line 1)\n- `b` (line 2): `box.n`\n- `b` (line 2)\n\n' +
        'First values of `n`: `a` (line 1), `b` (line 2), `C` (line 3).',
    );
    expect(await ask('Where is `box.n` changed?', { 'a.js': text })).toBeUndefined();
  });

  test('a loop and `with` assign in Python, which has no declarations', async () => {
    const files = { 'a.py': 'row = None\nwith open("a") as lines:\n    for row in lines:\n        pass\n' };
    expect(await ask('Where is row changed?', files)).toBe('Assignments to `row`: outside functions (line 1, line 3).');
    expect(await ask('Where is lines changed?', files)).toBe('Assignments to `lines`: outside functions (line 2).');
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
  it('are thrown by assertions of Python, and not surely by those of Java', async () => {
    const python = { 'a.py': 'def move(amount):\n    assert amount > 0, "none"\n    return amount\n' };
    expect(await ask('What does move raise?', python)).toBe(
      'Thrown in `move`:\n\n- `move` (line 2): `AssertionError`\n\nWhat it calls may throw.',
    );
    const java = { 'A.java': 'class A {\n  int move(int n) {\n    assert n > 0;\n    return n;\n  }\n}\n' };
    expect(await ask('What does move throw?', java)).toBe('`move` throws nothing directly. What it calls may throw.');
  });

  const THROWN = 'Code that throws `OverdraftError`: `Ledger.add` (line 7).';
  const THROWERS =
    'Thrown in `src/ledger.ts`:\n\n- `Ledger.add` (line 7): `OverdraftError`\n' +
    '- `Ledger.each` (line 12): `one`\n\nWhat it calls may throw.';
  const THROWERS_PT =
    'Lançado em `src/ledger.ts`:\n\n- `Ledger.add` (linha 7): `OverdraftError`\n' +
    '- `Ledger.each` (linha 12): `one`\n\nO que é chamado pode lançar.';
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
      'Thrown in `add`:\n\n- `Ledger.add` (line 7): `OverdraftError`\n\nWhat it calls may throw.',
    ],
    [
      'Which exceptions can be thrown in add?',
      'Thrown in `add`:\n\n- `Ledger.add` (line 7): `OverdraftError`\n\nWhat it calls may throw.',
    ],
    [
      'Does add throw anything?',
      'Thrown in `add`:\n\n- `Ledger.add` (line 7): `OverdraftError`\n\nWhat it calls may throw.',
    ],
    ['add lança alguma coisa?', undefined],
    [
      'O que pode ser lançado em add?',
      'Lançado em `add`:\n\n- `Ledger.add` (linha 7): `OverdraftError`\n\nO que é chamado pode lançar.',
    ],
    ['Does quiet throw?', '`quiet` throws nothing directly. What it calls may throw.'],
    [
      'O que add lança?',
      'Lançado em `add`:\n\n- `Ledger.add` (linha 7): `OverdraftError`\n\nO que é chamado pode lançar.',
    ],
    ['Where is log thrown?', '`log` is imported from `./log` (line 1).'],
    ['Where is TypeError thrown?', '`TypeError` does not appear in `src/ledger.ts`.'],
    [
      'Which methods of Ledger throw?',
      'Thrown in `Ledger`:\n\n- `Ledger.add` (line 7): `OverdraftError`\n- `Ledger.each` (line 12): `one`\n\nWhat it calls may throw.',
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
    const found = [...said.split('First values')[0]!.matchAll(/line (\d+)/g)].map(([, line]) => Number(line));
    expect(found).toEqual(lines);
    expect(said).toContain(`\`${name}\` (line ${lines.at(-1)})`);
    expect(await ask('Which functions change n?', files)).toBe(said);
    expect(await ask('Which functions throw?', files)).toBe(
      `Thrown in \`${path}\`:\n\n- \`${name}\` (line ${thrown}): \`Bad\`\n\nWhat it calls may throw.`,
    );
    expect(await ask('Where is Bad thrown?', files)).toBe(`Code that throws \`Bad\`: \`${name}\` (line ${thrown}).`);
  });

  it.each([
    ['a.go', 'package a\nfunc (s *A) f() {\n\ts.n, m = 1, 2\n\tpanic("x")\n}\n', 'A.f', 3, 4, 's.n'],
    [
      'a.rs',
      'impl A {\n    fn f(&mut self) {\n        self.n += 1;\n        panic!("x");\n    }\n}\n',
      'A.f',
      3,
      4,
      undefined,
    ],
  ] as const)('%s panics', async (path, text, name, line, thrown, target) => {
    const files = { [path]: text };
    const place = `\`${name}\` (line ${line})`;
    expect(await ask('What changes n?', files)).toBe(
      `Assignments to \`n\`:${target === undefined ? ` ${place}.` : `\n\n- ${place}: \`${target}\``}`,
    );
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
    '`load` has overloads. It is defined:\n\n- on line 1: `export function load(path: string): string;`\n- on line 2: `export function load(path: URL): string;`\n- on line 3: `export function load(path: unknown) {`',
  );
  expect(await ask('Onde está definida a função load?', { 'a.ts': text })).toBe(
    '`load` tem sobrecargas. A definição está:\n\n- na linha 1: `export function load(path: string): string;`\n- na linha 2: `export function load(path: URL): string;`\n- na linha 3: `export function load(path: unknown) {`',
  );
  expect(await ask('Where is one defined?', { 'a.ts': text })).toBe(
    '`one` is defined:\n\n- on line 6: `function one() {}`\n- on line 7: `class A { one() {} }`',
  );
  const merged = 'declare function one(a: string): void;\ndeclare namespace one { const x: 1; }\n';
  expect(await ask('Where is one defined?', { 'a.ts': merged })).toBe(
    '`one` is defined:\n\n- on line 1: `declare function one(a: string): void;`\n- on line 2: `declare namespace one { const x: 1; }`',
  );
});

test('a word of other questions can be the name', async () => {
  const files = { 'a.ts': 'export class Box {\n  /** Makes it new. */\n  update() {}\n  set(value) {}\n}\n' };
  expect(await ask('What does update do?', files)).toBe(
    'The comment of `Box.update` (line 3) says:\n\n> Makes it new.',
  );
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
    ['Which functions does this code define?', undefined],
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

test('a function with the name of a namespace’s member is one of the file', async () => {
  const text =
    'namespace Geo {\n  export function area(r: number) {\n    return r;\n  }\n}\nfunction area(x: number) {\n  return x;\n}\n';
  expect(await ask('/outline', { 'a.ts': text })).toBe(
    'Outline of `a.ts`:\n\nFunctions: `area` (line 6).\n\nNamespaces:\n\n- `Geo` (line 1): `area` (line 2)',
  );
});
