// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold code.
/** Completions that are copied: what does not fit the place is not shown, and what was shown stays. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { prepareComplete } from '../../../engine/tasks/completeTask.ts';
import type { Layout } from '../../../engine/text/prompt/layout.ts';
import { starterLayout } from '../../support/starter.ts';
import { Scopes } from '../../../engine/text/syntax/scopes.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../engine/text/syntax/syntax.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { Parser } from 'web-tree-sitter';

let layout: Layout;
const grammars = new Grammars();
const syntax = new Syntax(grammars);
const LANGUAGES = ['typescript', 'python', 'go', 'rust', 'java', 'c-sharp', 'cpp', 'ruby', 'php'];
beforeAll(async () => {
  layout = await starterLayout({ copies: true });
  await Promise.all(LANGUAGES.map((name) => grammars.load(name)));
});

const document = (path: string, text: string) => new SourceDocument(path, path, text);

/** What is shown at `|` when the model writes `written`. */
function shown(
  path: string,
  marked: string,
  written: string,
  others: readonly string[] | Record<string, string> = [],
  {
    finished = true,
    packages,
    folders,
    multiline = true,
    showLowConfidence,
  }: {
    finished?: boolean;
    packages?: string[];
    folders?: Record<string, string[]>;
    multiline?: boolean;
    showLowConfidence?: boolean;
  } = {},
): string {
  const offset = marked.indexOf('|');
  const doc = document(path, marked.slice(0, offset) + marked.slice(offset + 1));
  const copySources = Object.entries(others).map(([name, text]) =>
    document(/^\d+$/.test(name) ? `other${name}.${path.split('.').at(-1)}` : name, text),
  );
  return prepareComplete(
    layout,
    doc,
    { offset, copySources, packages, folders, multiline, showLowConfidence },
    undefined,
    syntax,
  ).shape(written, finished).text;
}

const LEDGER = `import { round } from './numbers.ts';

const CURRENCY = 'EUR';

/** Formats cents as euros with two digits. */
export function formatCents(cents: number): string {
  const euros = Math.floor(cents / 100);
  const rest = String(cents % 100).padStart(2, '0');
  return \`\${euros}.\${rest} \${CURRENCY}\`;
}

/** The balance of an account, in cents. */
export function balance(entries: Entry[], account: string): number {
  let sum = 0;
  for (const entry of entries) {
    if (entry.account === account) sum += entry.cents;
  }
  return sum;
}

export class Book {
  private readonly entries: Entry[] = [];

  add(entry: Entry): void {
    if (entry.cents <= 0) throw new RangeError('an entry needs an amount');
    this.entries.push(entry);
  }

  close(year: number): void {
    |
  }
}
`;
const NEW = (header: string, body = '  |') =>
  `${LEDGER.replace('    |', '    this.entries.length = 0;')}\n${header} {\n${body}\n}\n`;

describe('a copied body', () => {
  it.each([
    [
      'uses a parameter of another function',
      NEW('export function isOverdrawn(ledger: Book, account: string): boolean'),
      "const euros = Math.floor(cents / 100);\n  const rest = String(cents % 100).padStart(2, '0');\n  return '';",
      '',
    ],
    [
      'is the whole body of another function',
      NEW('export function average(entries: Entry[]): number'),
      'let sum = 0;\n  for (const entry of entries) {\n    if (entry.account === account) sum += entry.cents;\n  }\n  return sum;',
      'let sum = 0;',
    ],
    [
      'ends before a name that does not exist here',
      NEW('export function isOverdrawn(entries: Entry[]): boolean'),
      'const limit = round(0);\n  return rest.length > limit;',
      'const limit = round(0);',
    ],
    [
      'may be that of a function with a similar name',
      NEW('export function formatCentsShort(cents: number): string'),
      'const euros = Math.floor(cents / 100);\n  return `${euros} ${CURRENCY}`;',
      'const euros = Math.floor(cents / 100);\n  return `${euros} ${CURRENCY}`;',
    ],
    [
      'may use what the file imports, declares and the function takes',
      LEDGER,
      'const total = round(balance(this.entries, CURRENCY) / year);\n    return console.log(total);',
      'const total = round(balance(this.entries, CURRENCY) / year);\n    return console.log(total);',
    ],
    [
      'may use what it declares itself',
      NEW('export function isOverdrawn(book: Book)', '  |'),
      'const rest = round(2);\n  return [1].map((cents) => cents - rest);',
      'const rest = round(2);\n  return [1].map((cents) => cents - rest);',
    ],
    [
      'may begin as a guard about an own parameter',
      NEW('export function post(book: Book, entry: Entry): void'),
      "if (entry.cents <= 0) throw new RangeError('an entry needs an amount');\n  book.add(entry);",
      "if (entry.cents <= 0) throw new RangeError('an entry needs an amount');\n  book.add(entry);",
    ],
  ])('%s', (_, marked, written, expected) => {
    expect(shown('ledger.ts', marked, written)).toBe(expected);
  });

  it.each([
    'prices.show = function (cents: number): string',
    'prices.show = cents =>',
    'const prices = {\n  show: (cents: number): string =>',
    'const prices = {\n  show: async function (cents: number): string',
    "const prices = {\n  'show': (cents) =>",
    'class Prices {\n  private readonly show: Formatter = (cents: number): string =>',
  ])('is cut in a function without a keyword before its name: %s', (header) => {
    const body =
      "const euros = Math.floor(cents / 100);\n    const rest = String(cents % 100).padStart(2, '0');\n    return '';";
    const indent = header.includes('\n') ? '    ' : '  ';
    const marked = `${NEW(header, `${indent}|`)}${header.includes('\n') ? '}\n' : ''}`;
    expect(shown('ledger.ts', marked, body.replaceAll('    ', indent))).toBe('const euros = Math.floor(cents / 100);');
    expect(shown('ledger.ts', marked.replaceAll('show', 'format'), body.replaceAll('    ', indent))).toContain('rest');
  });

  describe('of a function whose name says the opposite', () => {
    const QUEUE = (name: string) => `const timers = new Map<string, number>();

export const ${name} = (id: string, delay: number) => {
  if (timers.has(id)) {
    return;
  }
  timers.set(id, start(delay));
};
`;
    const ADDED = 'if (timers.has(id)) {\n    return;\n  }\n  timers.set(id, start(delay));';
    const written = (name: string, other: string, header = '(id: string, delay: number) =>') =>
      shown('queue.ts', `${QUEUE(name)}\nexport const ${other} = ${header} {\n  |\n};\n`, ADDED);

    it.each([
      ['addToQueue', 'removeFromQueue'],
      ['addToRemoveQueue', 'clearFromRemoveQueue'],
      ['stopTimer', 'startTimer'],
      ['lock_timer', 'unlock_timer'],
      ['connectTimer', 'disconnectTimer'],
      ['encodeTimer', 'decodeTimer'],
      ['setTimer', 'clearTimer'],
      ['pushTimer', 'popTimer'],
      ['activateTimer', 'deactivateTimer'],
    ])('is not offered: %s, %s', (name, other) => {
      expect(written(name, other)).toBe('');
      expect(written(other, name, '(id: string) =>')).toBe('');
    });

    it.each([
      ['addToQueue', 'addToQueueLater'],
      ['openTimer', 'openTimerAndClose'],
      ['removeAndAddTimer', 'addAndRemoveTimer'],
      ['timerOf', 'timerOfUnion'],
    ])('does not say so: %s, %s', (name, other) => {
      expect(written(name, other)).toBe(ADDED);
    });

    it('may share a line that is no guard', () => {
      const opened = 'open(name: string) {\n    const file = this.files.get(name);\n    file.open();\n  }';
      const marked = `class Store {\n  files = new Map();\n  ${opened}\n\n  close(name: string) {\n    |\n  }\n}\n`;
      const copied = 'const file = this.files.get(name);\n    file.open();';
      expect(shown('store.ts', marked, copied)).toBe('const file = this.files.get(name);');
    });
  });

  it('is cut behind the bracket that opens the block, too', () => {
    const marked = NEW('export function isOverdrawn(entries: Entry[]): boolean').replace('{\n  |\n}', '{|\n}');
    const body = '\n  let sum = 0;\n  for (const each of entries) {\n    sum += each.cents;\n  }';
    const copied =
      '\n  let sum = 0;\n  for (const entry of entries) {\n    if (entry.account === account) sum += 1;\n  }';
    expect(shown('ledger.ts', marked, body)).toBe(body);
    expect(shown('ledger.ts', marked, copied)).toBe('\n  let sum = 0;');
  });

  it('is cut if a copy of its file is open, too', () => {
    const marked = NEW('export function isOverdrawn(ledger: Book, cents: number): boolean');
    const body = "const euros = Math.floor(cents / 100);\n  const rest = String(cents % 100).padStart(2, '0');";
    expect(shown('ledger.ts', marked, body, [LEDGER])).toBe('const euros = Math.floor(cents / 100);');
    // Two functions have these lines: they are usual.
    expect(
      shown('ledger.ts', marked, body, [LEDGER.replace('formatCents(cents: number)', 'show(cents: number)')]),
    ).toBe(body);
  });

  it('may be that of a function with the same parameters', () => {
    const marked = NEW('export function total(entries: Entry[], account: string): number');
    const body =
      'let sum = 0;\n  for (const entry of entries) {\n    if (entry.account === account) sum += entry.cents;\n  }';
    expect(shown('ledger.ts', marked, body)).toBe(body);
    expect(shown('ledger.ts', marked.replace('account: string)', 'account: Account)'), body)).not.toBe(body);
    const untyped = marked.replaceAll('(entries: Entry[], account: string): number', '(entries, account)');
    expect(shown('ledger.js', untyped, body)).not.toBe(body);
  });

  it('is cut if it stands in the last of many files', () => {
    const marked = NEW('export function isOverdrawn(ledger: Book, cents: number): boolean');
    const body = "const euros = Math.floor(cents / 100);\n  const rest = String(cents % 100).padStart(2, '0');";
    const far = LEDGER.replace('cents / 100)', 'cents / 10)');
    const many = [...Array.from({ length: 60 }, (_, i) => `export const a${i} = ${i};\n`), far];
    const fromFar = body.replace('/ 100', '/ 10');
    expect(shown('ledger.ts', marked, fromFar, many)).toBe(fromFar.split('\n')[0]);
    expect(shown('ledger.ts', marked, fromFar, many.slice(0, -1))).toBe(fromFar);
  });

  it('is not that of a function which only takes any arguments, too', () => {
    const file = `def check(self: "Index", *args: Any, **kwargs: Any) -> T:
    if self.path != self.index_path():
        raise ValueError(self.path)
    return run(self, *args, **kwargs)

def change_folder(self: "Index", *args: Any, **kwargs: Any) -> T:
    |
`;
    const body = 'if self.path != self.index_path():\n        raise ValueError(self.path)';
    expect(shown('a.py', file, body)).toBe('');
    const typed = file.replaceAll('*args: Any', 'root: Path, mode: Mode');
    expect(shown('a.py', typed, body)).toBe(body);
  });

  it.each([
    ['mirrored', 'widthOf', 'heightOf', 'width'],
    ['opposite by other words', 'appendRows', 'clearRows', 'row'],
    ['asking and changing', 'findRow', 'deleteRow', 'row'],
  ])('is not that of a function of a %s name', (_, one, other, word) => {
    const body = `const ${word} = this.all.${word};\n    this.draw(${word} + 1);`;
    const marked = `class A {\n  ${one}() {\n    ${body}\n  }\n  ${other}() {\n    |\n  }\n}\n`;
    expect(shown('a.ts', marked, body)).toBe(`const ${word} = this.all.${word};`);
    expect(shown('a.ts', marked.replace(`${other}(`, `${one}Now(`), body)).toBe(body);
  });

  it('has no message of another file, unless several have it', () => {
    const line = "throw new Error('the input must be a buffer or a string');";
    const other = `function write(input) {\n  ${line}\n}\n`;
    const marked = 'function check(data, fn) {\n  |\n}\n';
    expect(shown('a.js', marked, line, { 'b.js': other })).toBe('');
    expect(shown('a.js', marked, line, { 'b.js': other, 'c.js': other.replace('write', 'read') })).toBe(line);
    const own = other.replace('write', 'read');
    expect(shown('a.js', `${own}${marked}`, line, { 'b.js': other })).toBe(line);
    expect(shown('a.js', marked.replace('check', 'write'), line, { 'b.js': other })).toBe(line);
    const short = "log(data, 'not a string');";
    expect(shown('a.js', marked, short, { 'b.js': `${short}\n` })).toBe(short);
  });

  it('of a method that each class has for itself is cut', () => {
    const one = 'class A(Base):\n    def __repr__(self):\n        return "<%s of %s>" % (self.name, self.owner)\n';
    const line = 'return "<%s of %s>" % (self.name, self.owner)';
    const marked = `${one}\n\nclass B(Base):\n    def __repr__(self):\n        |\n`;
    expect(shown('a.py', marked, line)).toBe('');
    expect(shown('a.py', `${one.replace('A(', 'C(')}\n\n${marked}`, line)).toBe(line);
    expect(shown('a.py', marked.replaceAll('__repr__', 'describe'), line)).toBe(line);
  });

  it('uses no member that only the other file has', () => {
    const entry = 'class Entry:\n    def describe(self):\n        return "(%s, %s)" % (self.mode, self.sha)\n';
    const marked =
      'class Log(Base):\n    def describe(self):\n        |\n\n    def size(self):\n        return self.sum\n';
    const line = 'return "(%s, %s)" % (self.mode, self.sha)';
    expect(shown('log.py', marked, line, { 'entry.py': entry })).toBe('');
    expect(shown('log.py', `${marked}\n\n# mode sha\n`, line, { 'entry.py': entry })).toBe(line);
    expect(shown('log.py', marked, line, { 'entry.py': entry, 'b.py': 'mode = sha = 1\n' })).toBe(line);
  });

  it.each([
    ['a.ts', 'export async function readBody(event: Event): Promise<Body> {\n  |\n}\n', 'return readBody(event);', ''],
    ['a.ts', 'export const readBody = (event: E) => {\n  |\n};\n', 'const body = await readBody(event);', ''],
    ['a.py', 'def read_body(event, size):\n    |\n', 'return read_body(event, size)', ''],
    ['a.py', 'def read_body(event, size):\n    |\n', 'return read_body(event, size - 1)', undefined],
    ['a.py', 'class A:\n    def read(self, event):\n        |\n', 'return read(event)', undefined],
    ['a.ts', 'class A {\n  read(event: E) {\n    |\n  }\n}\n', 'return read(event);', undefined],
    ['a.ts', 'function read(event: E) {\n  |\n}\n', 'return event ? read(event) : 0;', undefined],
    ['a.ts', 'function read(event: E) {\n  |\n}\n', 'return this.read(event);', undefined],
    ['a.ts', 'function read(event: E) {\n  |\n}\n', 'return () => read(event);', undefined],
  ])('does not begin with a call of itself: %s %j, %s', (path, marked, line, expected) => {
    expect(shown(path, marked, line)).toBe(expected ?? line);
  });

  it('may complete a word that it uses', () => {
    const marked = 'def each(rows):\n    e = 1\n    return rows\n\n\ndef drop(store):\n    store.update(lambda tabl|\n';
    expect(shown('a.py', marked, 'e: table.clear())')).toBe('e: table.clear())');
    expect(shown('a.py', marked.replace('lambda tabl|', '|'), 'rows)')).toBe('');
  });

  it('has no name that another function assigns more than once', () => {
    const file = `def head_of(version, status):
    return (version, status)

def trace(info):
    if info:
        version, status = info
        show(version, status)
    else:
        version = 2
        show(version, 200)

def show_answer(answer):
    |
`;
    expect(shown('a.py', file, 'text = head_of(version, 200)\n    print(text)')).toBe('');
    expect(shown('a.py', file, 'text = head_of(answer, 200)')).toBe('text = head_of(answer, 200)');
  });

  it('does not begin with the comment of a definition', () => {
    const doc = '/**\n     * @private\n     * @param {string} name A name.\n     */\n    go();';
    expect(shown('a.ts', 'class A {\n  constructor(name: string) {\n    |\n  }\n}\n', doc)).toBe('');
    expect(shown('a.ts', 'class A {\n  |\n}\n', doc)).toContain('@param');
    expect(shown('a.ts', 'class A extends mixed(B) {\n  |\n}\n', doc)).toContain('@param');
  });

  it('does not come from another file whose names are unknown here', () => {
    const marked = "import http from 'node:http';\n\nhttp.createServer((req, res) => {\n  |\n});\n";
    const body = "const euros = Math.floor(cents / 100);\n  const rest = String(cents % 100).padStart(2, '0');";
    expect(shown('server.ts', marked, body)).toBe(body);
    expect(shown('server.ts', marked, body, [LEDGER])).toBe('');
    expect(shown('server.ts', marked, 'res.end(String(req.url));\n  Math.max(1, 2);', [LEDGER])).toBe(
      'res.end(String(req.url));\n  Math.max(1, 2);',
    );
  });

  it('is cut in Python, too', () => {
    const marked = `def monthly_totals(entries):
    """The total of each month."""
    totals = {}
    for entry in entries:
        month = entry.date[:7]
        totals[month] = totals.get(month, 0) + entry.cents
    return totals


def average(entries):
    |
`;
    const body = marked.slice(marked.indexOf('totals = {}'), marked.indexOf('\n\n\n'));
    expect(shown('report.py', marked, body)).toBe('totals = {}');
    expect(shown('report.py', marked, '"""The total of each month."""\n    return 0')).toBe('');
    expect(shown('report.py', marked, '"""\n    """\n    """')).toBe('"""');
    expect(shown('report.py', marked, 'return sum(e.cents for e in entries) / len(entries)')).toBe(
      'return sum(e.cents for e in entries) / len(entries)',
    );
  });
});

describe('a header that the text itself has', () => {
  const TWICE = (header: string, end = '}') =>
    `${header}\n        a(1);\n    ${end}\n    b();\n    ${header}\n        c(2);\n    ${end}`;
  it.each([
    ['a.kt', 'fun f() {\n    |\n}\n', TWICE('Row(Modifier.fillMaxWidth()) {')],
    ['a.swift', 'func f() {\n    |\n}\n', TWICE('HStack(spacing: 8) {')],
    ['a.swift', 'func f() {\n    |\n}\n', TWICE('guard d() else {')],
    ['a.dart', 'void f() {\n    |\n}\n', TWICE('setState(() {', '});')],
    ['a.scss', '.a {\n    |\n}\n', TWICE('@include up(md) {').replaceAll('(1)', ': 1').replace('b();', 'b: c;')],
    ['a.go', 'package p\n\nfunc f() {\n    |\n}\n', TWICE('defer func() {', '}()')],
    ['a.go', 'package p\n\nfunc f() {\n    |\n}\n', TWICE('go func() {', '}()')],
    ['a.rs', 'fn f() {\n    |\n}\n', TWICE('let Some(x) = g() else {', '};')],
    ['a.cpp', 'void f() {\n    |\n}\n', TWICE('FOREACH(x, y) {')],
    ['a.rs', 'mod m {\n    |\n}\n', '#[cfg(unix)]\n    fn g() {}\n\n    #[cfg(windows)]\n    /// Doc.\n    fn g() {}'],
    [
      'a.py',
      'class A:\n    |\n',
      '@single\n    def g(self, x):\n        pass\n\n    @g.register(\n        int\n    )\n    def g(self, x):\n        pass',
    ],
  ])('may be that of a block, or of another variant: %s %j', (file, marked, written) => {
    expect(shown(file, marked, written)).toBe(written);
  });

  it.each([
    ['a.swift', 'class A {\n    |\n}\n', 'func get(a: Int) -> Int {'],
    ['a.rs', 'impl A {\n    |\n}\n', 'pub(crate) async fn get(&self) -> u8 {'],
    ['a.kt', 'class A {\n    |\n}\n', 'override fun get(a: Int): Int {'],
    ['a.java', 'class A {\n    |\n}\n', 'public static Map<String, Integer> get(int a) {'],
    ['a.cs', 'class A {\n    |\n}\n', 'int Get(int a) {'],
    ['a.ts', 'class A {\n    |\n}\n', 'get(a: number) {'],
    ['a.ts', 'function f() {\n    |\n}\n', 'const get = async (a: number): Promise<void> => {'],
    ['a.php', 'class A {\n    |\n}\n', 'private function get(int $a): int {'],
  ])('may not be that of a function: %s %j', (file, marked, header) => {
    const text = shown(file, marked, TWICE(header).replaceAll('b();\n    ', ''));
    expect(text.split(header)).toHaveLength(2);
  });
});

it.each([
  ['a.py', '    """|"""\n', 'Takes n articles into stock.', ''],
  ['a.py', '    """Takes |"""\n', 'n articles into stock.', ''],
  ['a.py', '    """|\n', 'Takes n articles into stock."""', ''],
  ['a.py', '    """|"""\n', 'Takes n articles out of the stock.', 'Takes n articles out of the stock.'],
  ['a.py', '    # |\n', 'The price is that of one article.', ''],
  ['a.py', '    # |\n', 'The price is that of a pallet.', 'The price is that of a pallet.'],
  ['a.py', '    say("|")\n', 'The price is that of one article.', 'The price is that of one article.'],
])('a comment that the user has begun is not copied: %s %j + %j', (path, marked, written, expected) => {
  const file = `def receive(sku, n):
    """Takes n articles into stock."""
    # The price is that of one article.
    add(sku, n)


def pick(sku, n):
${marked}    return take(sku, n)
`;
  expect(shown(path, file, written)).toBe(expected);
});

describe('copied lines between functions', () => {
  const FILE = `import { describe, expect, it } from 'vitest';

/** Makes an empty book for tests. */
function makeBook(): Book {
  return new Book();
}

describe('a book of entries', () => {
  it('adds an entry', () => {
    expect(makeBook().size).toBe(0);
  });
  |
});
`;
  it.each([
    ['a comment is not copied', '/** Makes an empty book for tests. */\n  function x() {}', ''],
    ['a test is not repeated', "it('adds an entry', () => {\n    expect(1).toBe(1);\n  });", ''],
    ['nor is a suite', "describe('a book of entries', () => {\n", ''],
    [
      'nor a test that the text itself has, with other lines between',
      "it('is empty', () => {\n    expect(makeBook().size).toBe(0);\n  });\n  it('is new', () => {\n    run();\n  });\n  it('is empty', () => {\n    run(1);\n  });",
      "it('is empty', () => {\n    expect(makeBook().size).toBe(0);\n  });\n  it('is new', () => {\n    run();\n  });",
    ],
    [
      'nor a function',
      'function a() {\n    return 1;\n  }\n  function b() {\n    function a() {\n      return 2;\n    }\n  }\n  function a() {\n    return 3;',
      'function a() {\n    return 1;\n  }\n  function b() {\n    function a() {\n      return 2;\n    }\n  }',
    ],
    [
      'but a loop may be',
      'function a() {\n    for (const b of c) {\n      f(b);\n    }\n    for (const b of c) {\n      g(b);\n    }\n  }',
      'function a() {\n    for (const b of c) {\n      f(b);\n    }\n    for (const b of c) {\n      g(b);\n    }\n  }',
    ],
    [
      'another test of the same form is shown',
      "it('adds two entries', () => {\n    expect(makeBook().size).toBe(0);\n  });",
      "it('adds two entries', () => {\n    expect(makeBook().size).toBe(0);\n  });",
    ],
  ])('%s', (_, written, expected) => {
    expect(shown('book.test.ts', FILE, written)).toBe(expected);
  });

  it('a function is not defined again, but another class may have a method of the same name', () => {
    const marked =
      'class A {\n  size() {\n    return 1;\n  }\n\n  |\n}\nclass B {\n  clear() {\n    return 2;\n  }\n}\n';
    expect(shown('a.ts', marked, 'size() {\n    return 3;\n  }')).toBe('');
    expect(shown('a.ts', marked, 'clear() {\n    return 3;\n  }')).toBe('clear() {\n    return 3;\n  }');
  });

  it('a comment has no bracket that nothing closes', () => {
    expect(shown('a.py', '# Reads the file|\nx = open(path)\n', ' (path')).toBe('');
    expect(shown('a.ts', 'if (typeof p !== "stri|\nf();\n', 'ng") {', [], { multiline: false })).toBe('ng") {');
    expect(shown('a.py', '# Reads|\nx = open(path)\n', ' the file (once) and (path, mode')).toBe(
      ' the file (once) and',
    );
  });

  it.each([
    ['a.ts', '// Reads|\nopen(path);\n', ' the list [0', ' the list'],
    ['a.ts', '/* Reads| */\nopen(path);\n', ' the file (path', ' the file'],
    ['a.ts', '/**\n * Reads|\n */\nfunction open(path) {}\n', ' the file (path', ' the file'],
    ['a.go', '// Reads|\nfunc open() {}\n', ' the map {key', ' the map'],
    ['a.rb', '# Reads|\nopen(path)\n', ' all (a, [b', ' all'],
    ['a.rs', '/// Reads|\nfn open() {}\n', " the file's rows (once)", " the file's rows (once)"],
  ])('nor has one of %s: %j + %j', (path, marked, written, expected) => {
    expect(shown(path, marked, written, [], { multiline: false })).toBe(expected);
  });
});

describe('a name in a statement that is not finished', () => {
  const SCRIPT = `class Option {
  constructor(flags) {
    this.flags = flags;
  }
}
class Missing extends Error {
  constructor(name) {
    |
  }
}
`;
  const PYTHON = 'def parse(flags):\n    return flags.split()\n\n\ndef fail(name):\n    |\n\n\nparse("")\n';
  it.each([
    ['stands in a string', 'a.ts', SCRIPT, 'super(`the option ${flags} is miss', ''],
    ['stands in brackets', 'a.ts', SCRIPT, 'super(name, flags', ''],
    ['stands on a further line', 'a.ts', SCRIPT, 'super(\n      name,\n      flags,', 'super(\n      name,'],
    ['stands before an operand', 'a.ts', SCRIPT, 'if (flags &&', ''],
    ['is a parameter', 'a.ts', SCRIPT, 'const next = (flags,', 'const next = (flags,'],
    [
      'is a parameter with others',
      'a.ts',
      SCRIPT,
      'const next = async ({ flags }, [name],',
      'const next = async ({ flags }, [name],',
    ],
    ['may be a key', 'a.ts', SCRIPT, 'log({ name, flags', 'log({ name, flags'],
    ['may be a key', 'a.py', PYTHON, 'run(name, flags', 'run(name, flags'],
    ['is declared', 'a.ts', SCRIPT, 'for (const flags of', 'for (const flags of'],
    ['stands in a string', 'a.py', PYTHON, 'raise KeyError(name, f"no {flags', ''],
    ['stands before a block', 'a.py', PYTHON, 'if flags:', ''],
    ['may be bound by what follows', 'a.py', PYTHON, 'return any(flags', 'return any(flags'],
    ['is a parameter', 'a.py', PYTHON, 'def inner(flags,', 'def inner(flags,'],
    ['fits', 'a.py', PYTHON, 'raise KeyError(f"no {name', 'raise KeyError(f"no {name'],
  ])('%s: %s %s', (_, path, marked, written, text) => {
    expect(shown(path, marked, written)).toBe(text);
  });

  it('has a member that its object does not have', () => {
    expect(shown('a.ts', "import fs from 'node:fs';\n|\n", 'open(fs.readFil,')).toBe('');
  });
});

describe('a member that its object does not have is not shown', () => {
  const SCRIPT = `class Basket {
  readonly items: string[] = [];
  add(item: string): void {}
}
class Open extends Foreign {}
export function f(names: string[], text: string, by: Map<string, number>, other: Foreign, open: Open): void {
  const basket = new Basket();
  const list = [1, 2];
  |
}
`;
  it.each([
    ['names.append(text);', false],
    ['names.push(text);', true],
    ['text.strip();', false],
    ['text.trim();', true],
    ['by.put(text, 1);', false],
    ['by.set(text, list.length);', true],
    ['list.size();', false],
    ['basket.remove(text);', false],
    ['basket.add(text);', true],
    ['basket.items.push(text);', true],
    ['open.remove(text);', true],
    ['other.anything(text);', true],
    ['Math.max(list.length, 2);', true],
    ["text.length > 0 && names.includes('a.b');", true],
    ['basket.later = 1;', true],
  ])('%s', (written, fits) => expect(shown('a.ts', SCRIPT, written)).toBe(fits ? written : ''));

  it('of an object before the cursor', () => {
    const marked = SCRIPT.replace('  |', '  names.|');
    expect(shown('a.ts', marked, 'append(text);')).toBe('');
    expect(shown('a.ts', marked, 'sort();')).toBe('sort();');
  });

  const PYTHON = `class Basket:
    def add(self, item):
        self.items.append(item)

def f(names: list, text: str, other, basket: Basket):
    totals = {}
    rows = []
    for row in rows:
        pass
    |
`;
  it.each([
    ['names.push(text)', false],
    ['names.append(text)', true],
    ['text.trim()', false],
    ['text.strip().lower()', true],
    ['totals.put(1)', false],
    ['totals.setdefault(text, 1)', true],
    ['rows.length', false],
    ['row.anything()', true],
    ['other.anything()', true],
    ['basket.remove(text)', false],
    ['basket.add(text)', true],
    ['return list.atime', false],
  ])('%s', (written, fits) => expect(shown('a.py', PYTHON, written)).toBe(fits ? written : ''));

  const MODULES =
    "import * as fs from 'node:fs';\nimport path from 'path';\nconst os = require('os');\nfunction f(p) {\n  |\n}\n";
  it.each([
    ['a.ts', MODULES, 'fs.readAll(p);', false],
    ['a.ts', MODULES, 'fs.readFileSync(p);', true],
    ['a.ts', MODULES, 'path.combine(p);', false],
    ['a.ts', MODULES, 'let x: fs.PathLike;', true],
    ['a.ts', MODULES, 'os.cpuCount();', false],
    ['a.ts', MODULES, 'os.cpus();', true],
    ['a.ts', MODULES, 'Math.clamp(p);', false],
    ['a.ts', `${MODULES}Math.clamp = 1;\n`, 'Math.clamp(p);', true],
    ['a.ts', `class Math {\n  static clamp() {}\n}\n${MODULES}`, 'Math.clamp(p);', true],
    ['a.ts', MODULES, 'Object.entries(p);', true],
    ['a.py', 'import os, sys\nimport os.path as osp\n\nprint(|\n', 'os.homedir())', false],
    ['a.py', 'import os, sys\nimport os.path as osp\n\nprint(|\n', 'os.getcwd())', true],
    ['a.py', 'import os, sys\nimport os.path as osp\n\nprint(|\n', 'osp.combine(1))', false],
    ['a.py', 'import os, sys\nimport os.path as osp\n\nprint(|\n', 'sys.arguments)', false],
    ['a.py', 'import json\n\ndef f(json):\n    |\n', 'json.anything()', true],
    ['a.py', 'from datetime import datetime, time\n\nprint(|\n', 'datetime.now())', true],
  ] as const)('of a module: %s %j %s', (path, marked, written, fits) =>
    expect(shown(path, marked, written)).toBe(fits ? written : ''),
  );

  const OWN = `class Queue {
  readonly #items: string[] = [];
  size = 0;
  constructor(private readonly limit: number) {}
  push(item: string): void {
    this.#items.push(item);
  }
  flush(): void {
    [1].forEach(() => {
      |
    });
  }
}
`;
  it.each([
    ['this.push(String(this.limit));', true],
    ['this.size;', true],
    ['this.later = 1;', true],
    ['this.toString();', true],
    ['this.drain();', false],
    ['return this.items.length;', false],
  ])('of the own class: %s', (written, fits) => {
    expect(shown('a.ts', OWN, written)).toBe(fits ? written : '');
    // A base class may have it.
    expect(shown('a.ts', OWN.replace('Queue {', 'Queue extends Base {'), written)).toBe(written);
    expect(shown('a.ts', OWN.replace('() =>', 'function ()'), written)).toBe(written);
  });

  const OWN_PYTHON =
    'class Queue:\n    kind = 1\n    def __init__(self):\n        self.items = []\n    def put(self, limit):\n        |\n';
  it.each([
    ['self.items.append(limit)', true],
    ['self.put(self.kind)', true],
    ['self.limit.append(limit)', false],
    ['self.limit = limit', true],
    ['return self.__class__', true],
  ])('of the own class in Python: %s', (written, fits) => {
    expect(shown('a.py', OWN_PYTHON, written)).toBe(fits ? written : '');
    expect(shown('a.py', OWN_PYTHON.replace('Queue:', 'Queue(Base):'), written)).toBe(written);
  });

  it.each([
    ['let x = make();\nfunction make() {}\n|', 'x.atime;', false],
    ['let x = make();\nfunction make() {}\n|', 'x.trim();', true],
    ['let x = make();\nfunction make() {}\n|', 'x.atime = 1;', true],
    ["import { make } from 'pkg';\nlet x = make();\n|", 'x.atime;', true],
    ['function f(x) {\n  |\n}\n', 'x.atime;', true],
  ])('that no text and no object of the language has: %j %s', (marked, written, fits) => {
    expect(shown('a.ts', marked, written)).toBe(fits ? written : '');
    expect(shown('a.ts', marked, written, ['const y = stat.atime;\n'])).toBe(written);
    expect(shown('a.ts', marked, written, [], { showLowConfidence: true })).toBe(written);
  });
});

describe('an import from a path that the project contradicts is not shown', () => {
  const FILES = {
    'src/util/text.ts': 'export function trimAll(text: string) {}\nexport const LIMIT = 3;\n',
    'src/a/user.ts': "import { trimAll } from '../util/text.js';\nimport { Node } from '@pkg/model';\n",
    'src/index.ts': "export { trimAll } from './util/text.ts';\n",
  };
  it.each([
    ["import { trimAll } from '|'", './trimAll', false],
    ["import { trimAll } from '|'", '../util/text.js', true],
    ["import { trimAll } from '|'", '../index.js', true],
    ["import { trimAll } from '|'", '..', true],
    ["import { LIMIT, other } from '|'", './limits', false],
    ["import { other } from '|'", './other', true],
    ["import { Node } from '|'", './node', false],
    ["import { Node } from '|'", '@pkg/model', true],
    ["import { Node } from '|'", '@other/model', false],
    ["import {\n  Node,\n  Other,\n} from '|'", './node', false],
    ["import {\n  Other,\n} from '|'", './node', true],
    ["const { trimAll } = require('|')", './trimAll', false],
    // No file of this folder is known, so it may have a module with the name, too.
    ["import { trimAll } from '|'", '../more/text.js', true],
    ["import { trimAll } from '|'", '../util/trim.js', false],
  ])('%j %s', (marked, written, fits) => {
    expect(shown('src/a/new.ts', `${marked};\n`, written, FILES)).toBe(fits ? written : '');
  });

  it.each([
    ['from .text import |', 'trim_all', false],
    ['from ..util.text import |', 'trim_all', true],
    ['from app.util.text import |', 'trim_all', true],
    ['from .fresh import |', 'other', true],
    ['from ..more.text import |', 'trim_all', true],
  ])('%s%s', (marked, written, fits) => {
    const files = {
      'app/util/text.py': 'def trim_all(text):\n    pass\n',
      'app/a/user.py': 'from ..util.text import trim_all\n',
    };
    expect(shown('app/a/new.py', `${marked}\n`, written, files)).toBe(fits ? written : '');
  });
});

describe('an import of a file that does not exist is not shown', () => {
  const folders = { src: ['a.ts', 'b.ts', 'lib/', 'x.vue', 'c.py'], 'src/lib': ['text.ts'] };
  it.each([
    ['src/a.ts', "import { b } from '|'", './b', true],
    ['src/a.ts', "import { b } from '|'", './text.js', false],
    ['src/a.ts', "import { b } from './|'", 'lib/text.js', true],
    ['src/a.ts', "import { b } from './|'", 'text.js', false],
    ['src/a.ts', "import {\n  b,\n} from '|'", './text.js', false],
    ['src/a.ts', '|', "import { b } from './text.js';", false],
    ['src/a.ts', '|', "import { b } from './b.js';\nimport { c } from './text.js';", "import { b } from './b.js';"],
    ['src/a.ts', "vi.mock('|')", './text', false],
    ['src/x.vue', "<script>\nimport b from '|'", './b', true],
    ['src/x.vue', "<script>\nimport b from '|'", './text', false],
    ['src/x.vue', '<style lang="scss">\n@import \'|\'', './text', true],
    ['src/c.py', '|', 'from .text import b', false],
    ['src/c.rb', '|', "require_relative 'text'", false],
    ['src/c.rs', '|', 'mod text;', false],
    ['src/c.rs', '|', '#[path = "unix.rs"]\nmod text;', true],
  ])('%s %j %j', (path, marked, written, expected) => {
    const fits = expected === true ? written : expected || '';
    expect(shown(path, `${marked}\n`, written, [], { folders })).toBe(fits);
    expect(shown(path, `${marked}\n`, written, [], { folders, showLowConfidence: true })).toBe(fits);
    expect(shown(path, `${marked}\n`, written)).toBe(written);
  });

  it('of a file that another one imports is shown', () => {
    const others = { 'src/b.ts': "import { text } from './text';\n" };
    expect(shown('src/a.ts', "import { b } from '|'\n", './text', others, { folders })).toBe('./text');
  });

  it('is judged by names only where all of the file is known', () => {
    const text = `export const a = 1;\n${'//\n'.repeat(8188)}`;
    const importOf = (name: string, length: number) =>
      shown('src/a.ts', "import { | } from './b.ts';\n", name, { 'src/b.ts': text.slice(0, length) });
    expect([importOf('late', 24_576), importOf('late', 24_000), importOf('a', 24_576)]).toEqual(['late', '', 'a']);
  });
});

describe('an import that the project contradicts is not shown', () => {
  const TEST = "import { describe, expect, it } from 'vitest';\n";
  it.each([
    ['the project has another', '|', "import { it } from '@jest/globals';", { packages: ['vitest'] }, false],
    ['the project has it', '|', "import { it } from 'vitest';", { packages: ['vitest'] }, true],
    ['a part of a package', '|', "import { run } from 'vitest/node';", { packages: ['vitest'] }, true],
    ['a part of a name', '|', "const plugin = require('babel-plugin-' + name);", { packages: ['vitest'] }, true],
    ['a name alone', '|', "const plugin = require('babel-plugin-x');", { packages: ['vitest'] }, false],
    ['a style sheet that is made', '|', "import 'uno.css';", { packages: ['unocss'] }, true],
    ['a module of Node', '|', "import { join } from 'node:path';", { packages: ['vitest'] }, true],
    ['a path of the project', '|', "import { a } from '@/a';", { packages: ['vitest'] }, true],
    ['a message', '|', "import { a } from 'node:cannot read ${file}';", {}, false],
    ['a file with a space', '|', "import a from './a b.svg';", {}, true],
    ['an alias of SvelteKit', '|', "import { a } from '$lib/a';", {}, true],
    [
      'imports nearby say another',
      '|',
      "import { it } from '@jest/globals';",
      { others: { 'b.test.ts': TEST } },
      false,
    ],
    ['text that looks like one', '|', 'print("moved from \'jest\'");', { packages: ['vitest'] }, true],
    ['types of a package', '|', "import { parse } from '@babel/core';", { packages: ['@types/babel__core'] }, true],
    ['a name of a bundler', '|', "import { a } from '$lib/a';", { packages: ['vitest'] }, true],
    ['nothing is known', '|', "import { it } from '@jest/globals';", {}, true],
    ['in quotes', "import { it } from '|';", '@jest/globals', { packages: ['vitest'] }, false],
    ['what stands there stays', "import { it } from 'jest'|", ';', { packages: ['vitest'] }, true],
    [
      'the file does not have the name',
      "import { | } from './numbers.ts';",
      'flatten',
      { others: { 'numbers.ts': 'export const round = 1;\n' } },
      false,
    ],
    [
      'the file has the name',
      "import { | } from './numbers.ts';",
      'round',
      { others: { 'numbers.ts': 'export const round = 1;\n' } },
      true,
    ],
  ] as const)('%s', (_, marked, written, known, fits) => {
    const { others = {}, packages } = known as { others?: Record<string, string>; packages?: string[] };
    expect(shown('a.test.ts', `${marked}\n`, written, others, packages ? { packages } : {})).toBe(fits ? written : '');
  });

  it('in Python', () => {
    const others = { 'shop/stock.py': 'class Stock:\n    pass\n' };
    expect(shown('main.py', 'from shop.stock import |\n', 'Storage', others)).toBe('');
    expect(shown('main.py', 'from shop.stock import |\n', 'Stock', others)).toBe('Stock');
    expect(shown('main.py', 'from os import |\n', 'path', others)).toBe('path');
  });
});

describe('correct text is not cut', () => {
  it('in a file that ends with the header of a method', () => {
    const body =
      "if (entry.cents <= 0) throw new RangeError('an entry needs an amount');\n    this.entries.push(entry);\n  }";
    const begun = `${LEDGER.slice(0, LEDGER.indexOf('    if (entry.cents <= 0)'))}    |`;
    expect(shown('begun.ts', begun, body, [LEDGER.replace('|', '')])).toBe(body);
    const long = LEDGER.slice(LEDGER.indexOf('const euros'), LEDGER.indexOf('}`;\n}') + 3);
    const other = `${LEDGER.slice(0, LEDGER.indexOf('const euros'))}|`;
    expect(shown('begun.ts', other, long, [LEDGER.replace('|', '')])).toBe(long);
  });
  it.each([
    [
      'a name of the file',
      'a.ts',
      'function f(x) {\n  const result = x;\n  return result;\n}\n|',
      'const result = f(1);',
      [],
    ],
    ['an import', 'a.ts', 'function f(fs) {\n  return fs;\n}\n|', "import * as fs from 'node:fs';", []],
    ['an import in Python', 'a.py', 'def f(json):\n    return json\n\n|', 'import json', []],
    ['a field', 'a.py', 'def f(size):\n    return size\n\nclass A:\n    |', 'size: int', []],
    [
      'parameters of an unfinished line',
      'a.js',
      "app.get('/a', (req, res) => {\n  res.send(req.x);\n});\n\n|",
      "app.get('/b', (req, res) => {\n  res.send(1);\n});",
      [],
    ],
    [
      'a comprehension over two lines',
      'a.py',
      'def f(rows):\n    row = rows[0]\n    return row\n\ndef g(rows):\n    |',
      'return [\n        row.name\n        for row in rows\n    ]',
      [],
    ],
    [
      'a type of another file',
      'a.ts',
      '|',
      "import type { Result } from './b.ts';",
      { 'b.ts': 'export interface Result {}\nfunction f() {\n  const result: Result = {};\n}\n' },
    ],
    [
      'a rest parameter',
      'a.ts',
      'function g(args) { return args; }\nfunction f(...args: string[]) {\n  |\n}',
      'return args.length;',
      [],
    ],
    [
      'a parameter that hides a name',
      'a.ts',
      'const items = [];\nfunction f(items) {\n  |\n}',
      'items.fetchAll();',
      [],
    ],
    [
      'an imported name that a parameter elsewhere has',
      'a.ts',
      "import path from 'node:path';\nfunction f(path: string) {}\nfunction g() {\n  |\n}",
      "return path.join('a', 'b');",
      [],
    ],
    [
      'a class of a library',
      'a.ts',
      "import { Map } from 'maplibre-gl';\nconst map = new Map({});\n|",
      'map.addLayer(1);',
      [],
    ],
    ['a name that is assigned again', 'a.ts', 'let x = [];\nx = foo();\n|', 'x.trim();', []],
    [
      'a decorator',
      'a.py',
      'def d(wrapper):\n    return wrapper\n\ndef e(f):\n    def wrapper():\n        pass\n    |',
      'return wrapper',
      [],
    ],
    ['a name of the language', 'a.py', 'def f(type):\n    return type\n\ndef g(x):\n    |', 'return type(x)', []],
    [
      'a field that another class has, too',
      'a.ts',
      'class A {\n  readonly #cache: KvCache;\n}\nclass B {\n  |\n}',
      'readonly #cache: KvCache;',
      [],
    ],
    [
      'a directive',
      'a.ts',
      '// eslint-disable-next-line no-console\nf();\n|',
      '// eslint-disable-next-line no-console',
      [],
    ],
    [
      'the same test in another suite',
      'a.ts',
      "describe('a', () => {\n  it('is empty', () => {\n  });\n});\ndescribe('b', () => {\n  |\n});",
      "it('is empty', () => {\n  });",
      [],
    ],
  ] as const)('%s', (_, path, marked, written, others) => {
    expect(shown(path, marked, written, others)).toBe(written);
  });
});

it('what was shown stays while the text grows', () => {
  const parts = [
    'const euros = Math.floor(cents / 100);',
    'let sum = 0;',
    'for (const entry of entries) {',
    'return sum;',
    '// The balance (in',
    "it('x', () => {",
    'add(entry: Entry): void {',
    'export class Book {',
    '"""',
    'const a = rest;',
    '}',
  ];
  const marked = NEW('export function average(entries: Entry[]): number');
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 6 }), fc.nat(), (lines, seed) => {
      const text = lines.join('\n  ');
      const at = seed % (text.length + 1);
      const early = shown('ledger.ts', marked, text.slice(0, at), [], { finished: false });
      expect(shown('ledger.ts', marked, text).startsWith(early)).toBe(true);
    }),
    { numRuns: 300 },
  );
});

describe('names and where they are declared', () => {
  /** Names that are no members; `!` for declared ones, with the number of functions around them. */
  const names = (grammar: string, text: string): string => {
    const tree = new Parser().setLanguage(grammars.get(grammar) ?? null).parse(text);
    if (!tree) throw new Error(`${grammar} does not parse`);
    const found = Scopes.read(tree, text, (scopes) =>
      [...text.matchAll(/[\p{L}_$][\p{L}\p{N}_$]*/gu)]
        .flatMap(({ 0: name, index }) => {
          const { isName, declares, functions } = scopes.at(index);
          return isName ? [`${name}${declares ? '!' : ''}${functions.length}`] : [];
        })
        .join(' '),
    );
    tree.delete();
    return found;
  };
  it.each([
    [
      'typescript',
      'import a, {b} from "c"; class X { m(p: T, {q, r: s}: U, ...t: V[]): W { const k = p + this.p; for (const z of q) f(z); return (y) => y + (w, v = k) => w; } }',
      'a0 b0 p!1 q!1 s!1 t!1 k!1 p1 z!1 q1 f1 z1 y!2 y2 w!3 v!3 k3 w3',
    ],
    [
      'python',
      'import os\ndef f(a, b: int = 3, *args, **kw):\n    c, d = a\n    with open(a) as fh:\n        pass\n    for i, j in c: g(x=i)\n    return [m for m in a]\n',
      'os0 f!0 a!1 b!1 int1 args!1 kw!1 c!1 d!1 a1 open1 a1 fh!1 i!1 j!1 c1 g1 i1 m1 m!1 a1',
    ],
    [
      'go',
      'package m\nfunc (r *T) F(a int, b string) (int, error) { x, err := g(a); for i, v := range x { h(i) }; var q int; return q, err }',
      'r!1 a!1 b!1 x!1 err!1 g1 a1 i!1 v!1 x1 h1 i1 q!1 q1 err1',
    ],
    [
      'rust',
      'impl X { fn f(&self, a: u8, (b, c): (u8,u8)) -> u8 { let mut d = a; for e in 0..3 {} ; let g = |h| h + d; if let Some(k) = z {} d } }',
      'f!0 a!1 b!1 c!1 d!1 a1 e!1 g!1 h!2 h2 d2 Some1 k!1 z1 d1',
    ],
    [
      'java',
      'class A { int f(int a, String b) { int c = a; for (String d : e) g(d); try { } catch (Exception x) { } h.forEach(y -> y + 1); return c; } }',
      'A0 f!0 a!1 b!1 c!1 a1 d!1 e1 g1 d1 x!1 h1 y!2 c1',
    ],
    [
      'c-sharp',
      'class A { int F(int a, string b) { var c = a; foreach (var d in e) G(d); try { } catch (Exception x) { } return c; } }',
      'A0 F!0 a!1 b!1 c!1 a1 d!1 e1 G1 d1 Exception1 x!1 c1',
    ],
    [
      'cpp',
      'int f(int a, const char *b) { int c = a, *d; for (auto e : g) h(e); auto l = [&](int m) { return m; }; return c; }',
      'f1 a!1 b!1 c!1 a1 d!1 e!1 g1 h1 e1 l!1 m!2 m2 c1',
    ],
    [
      'ruby',
      'class A\n def f(a, b = 1, *c)\n d = a\n e.each { |x| puts x }\n d\n end\nend',
      'f!0 a!1 b!1 c!1 d!1 a1 e1 x!1 puts1 x1 d1',
    ],
    [
      'php',
      '<?php function f($a, $b = 1) { $c = $a; foreach ($a as $d) { g($d); } return $c; }',
      '$a!1 $b!1 $c!1 $a1 $a1 $d1 $d1 $c1',
    ],
  ])('%s', (grammar, text, expected) => {
    expect(names(grammar, text)).toBe(expected);
  });
});

describe('what several places say in the same way is not cut', () => {
  it.each([
    [
      'a function under another condition',
      'a.py',
      'if NEW:\n    def read(path):\n        return 1\nelse:\n    |\n',
      'def read(path):\n        return 2',
      [],
    ],
    [
      'a function that is an argument',
      'a.tsx',
      'function A() {\n  useEffect(() => {\n    start();\n  });\n  |\n}\n',
      'useEffect(() => {\n    stop();\n  });',
      [],
    ],
    [
      'an exception that another file catches',
      'a.py',
      'def f(x):\n    |\n',
      'raise ValueError(x)',
      ['def g(x):\n    try:\n        x()\n    except (TypeError, ValueError):\n        pass\n'],
    ],
    [
      'a comment about what stands below',
      'a.go',
      'package a\n\n// Close implements io.Closer here.\nfunc (a A) Close() {}\n\n|\nfunc (b B) Close() {}\n',
      '// Close implements io.Closer here.',
      [],
    ],
    [
      'a condition of safety',
      'a.rs',
      '|\nfn f() {}\n',
      '// SAFETY: the index is below the length',
      ['// SAFETY: the index is below the length\n'],
    ],
    [
      'the terms of a license in several files',
      'a.go',
      '|\npackage a\n',
      '// Use of this code is as stated in the file',
      [
        '// Use of this code is as stated in the file\npackage b\n',
        '// Use of this code is as stated in the file\npackage c\n',
      ],
    ],
    [
      'what a function of the same name says',
      'a.py',
      'class A:\n    def key(self):\n        |\n',
      '"""The newest entry of the list of keys."""',
      ['class B:\n    def key(self):\n        """The newest entry of the list of keys."""\n        return 1\n'],
    ],
    [
      'arguments on lines of their own',
      'a.rs',
      'fn f(s: &[u8]) {\n    other(\n        |\n    );\n}\nfn g(s: &[u8]) {\n    memchr(\n        s.as_ptr().cast_mut(),\n    );\n}\n',
      's.as_ptr().cast_mut(),',
      [],
    ],
  ])('%s', (_, path, marked, written, others) => {
    expect(shown(path, marked, written, others)).toBe(written);
  });

  it('but a file that begins with a blank line is read as well', () => {
    const marked = '\n\nfunction f() {\n  return 1;\n}\n|';
    expect(shown('a.ts', marked, 'function f() {\n  return 2;\n}')).toBe('');
  });

  it.each([
    ['useEffect(() => {', 'useEffect(() => {'],
    ['items.map((line, i) => {', 'items.map((option) => {'],
  ])('and the body of %s is not that of %s', (header, other) => {
    const body = 'const left = timers.filter(Boolean);\n    timers.length = left.length + 1;';
    const marked = `const timers = [];\nfunction A(items) {\n  ${header}\n    |\n  });\n}\n`;
    const elsewhere = `const timers = [];\nfunction B(items) {\n  ${other}\n    ${body}\n  });\n}\n`;
    expect(shown('a.ts', marked, body, [elsewhere])).not.toContain('timers.length');
  });
});
