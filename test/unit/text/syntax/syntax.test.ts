/** What the syntax tree says of a cursor: line or block, and that it depends on the text alone. */
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { type Language, Parser, type Tree } from 'web-tree-sitter';
import { SourceDocument } from '../../../../engine/text/syntax/sourceDocument.ts';
import { type PlaceSyntax, Syntax } from '../../../../engine/text/syntax/syntax.ts';
import {
  GRAMMARS,
  Grammars,
  grammarFolder,
  grammarFor,
  MAX_PARSED_TEXT,
  SyntaxTrees,
} from '../../../../engine/text/syntax/syntaxTrees.ts';

const grammars = new Grammars();
beforeAll(() => Promise.all(Object.keys(GRAMMARS).map((name) => grammars.load(name))), 60_000);

/** The place of `|`, or of `‸` where there are others, in a file of that extension. */
async function at(extension: string, marked: string): Promise<PlaceSyntax> {
  const offset = marked.indexOf(marked.includes('‸') ? '‸' : '|');
  const doc = new SourceDocument('a', `src/a.${extension}`, marked.slice(0, offset) + marked.slice(offset + 1));
  const syntax = new Syntax(grammars);
  await syntax.prepare(doc);
  const place = syntax.at(doc, offset);
  syntax.forget();
  if (!('scan' in place)) throw new Error(`no syntax for .${extension}: ${place.note}`);
  return place;
}

function languageOf(name: string): Language {
  const language = grammars.get(name);
  if (!language) throw new Error(`${name} is not loaded`);
  return language;
}

/** Every node with its place. */
function outline(tree: Tree): string {
  const nodes: string[] = [];
  const cursor = tree.walk();
  for (;;) {
    nodes.push(`${cursor.nodeType} ${cursor.startIndex}-${cursor.endIndex}${cursor.nodeIsMissing ? ' missing' : ''}`);
    if (cursor.gotoFirstChild()) continue;
    while (!cursor.gotoNextSibling())
      if (!cursor.gotoParent()) {
        cursor.delete();
        return nodes.join('\n');
      }
  }
}

const kindOf = ({ inText, openIndent, statementStart }: PlaceSyntax): string =>
  inText ? 'text' : openIndent !== undefined ? 'block' : statementStart ? 'statement' : 'line';

describe('the place of a cursor', () => {
  it.each([
    // Something opens at the line's end.
    ['ts', 'function f() {|\n}\n', 'block'],
    ['ts', 'class A {\n  go() {|\n  }\n}\n', 'block'],
    ['ts', 'xs.map((x) => {|\n', 'block'],
    ['ts', 'const f = () =>|\n', 'block'],
    ['ts', 'const x = {|\n', 'block'],
    ['ts', 'switch (a) {\n  case 1:|\n}\n', 'block'],
    ['py', 'def f():|\n\ndef g():\n    pass\n', 'block'],
    ['py', 'for x in xs:|', 'block'],
    ['rb', 'def foo(a)|\nend\n', 'block'],
    ['rb', 'xs.each do |x|‸\n', 'block'],
    ['sh', 'if true; then|\n', 'block'],
    ['go', 'func f() {|\n', 'block'],
    ['rs', 'fn f() {|\n', 'block'],
    ['java', 'class A {\n  void f() {|\n  }\n}\n', 'block'],
    ['cpp', 'void f() {|\n', 'block'],
    ['cs', 'class A { void F()\n{|\n', 'block'],
    ['php', '<?php\nfunction f() {|\n', 'block'],
    ['css', 'a {|\n', 'block'],
    ['ps1', 'function F {|\n}\n', 'block'],
    ['tsx', 'const a = <p>{xs.map((x) => {|\n})}</p>;\n', 'block'],
    // An empty body.
    ['ts', 'function f() {\n  |\n}\n', 'block'],
    ['py', 'class A:\n    def f(self):\n        |\n\n    def g(self):\n        pass\n', 'block'],
    ['rb', 'class A\n  def foo\n    |\n  end\nend\n', 'block'],
    // A blank line between statements.
    ['ts', 'a();\n|\nb();\n', 'statement'],
    ['ts', 'function f() {\n  a();\n  |\n  b();\n}\n', 'statement'],
    ['ts', 'class A {\n  a = 1;\n\n  |\n  b() {}\n}\n', 'statement'],
    ['py', 'def f():\n    a = 1\n    |\n    return a\n', 'statement'],
    ['go', 'func f() {\n\ta()\n\t|\n}\n', 'statement'],
    ['tsx', 'const a = () => (\n  <p>\n    |\n  </p>\n);\n', 'statement'],
    ['ts', '|', 'statement'],
    // A blank line where none may start.
    ['ts', 'f(\n  a,\n  |\n);\n', 'line'],
    ['ts', 'const x = {\n  a: 1,\n  |\n};\n', 'line'],
    ['ts', 'const x = {\n  |\n', 'line'],
    ['ts', 'const x = [\n  |\n];\n', 'line'],
    ['ts', 'const x =\n  |\n', 'line'],
    ['py', 'x = {\n    "a": 1,\n    |\n}\n', 'line'],
    ['rs', 'struct A {\n    a: u32,\n    |\n}\n', 'line'],
    // The end of a line that opens nothing.
    ['ts', 'let a = |\n', 'line'],
    ['ts', 'const a: |\n', 'line'],
    ['ts', 'a ? b :|\n', 'line'],
    ['py', 'x:|\n', 'line'],
    ['py', 'f = {"a":|\n', 'line'],
    // Comments and strings, and code in them.
    ['ts', '// if (a) {|\nb();\n', 'text'],
    ['ts', '/**\n * |\n */\nb();\n', 'text'],
    ['ts', 'const a = `{|\n`;\n', 'text'],
    ['ts', 'const a = `abc {|', 'text'],
    ['ts', `const a = \`\${f(() => {|\n})}\`;\n`, 'block'],
    ['py', 'def f():\n    """Does.\n\n    |\n    """\n', 'text'],
    ['py', '# for x in xs:|\n', 'text'],
    ['go', '// {|\n', 'text'],
    ['rb', '# def foo|\n', 'text'],
    ['sh', 'echo "then|\n', 'text'],
  ])('in .%s %j is a %s', async (extension, marked, wanted) =>
    expect(kindOf(await at(extension, marked))).toBe(wanted),
  );
});

describe('the end of a block', () => {
  it.each([
    ['keeps what it opens itself', 'ts', 'if (a) {|\n}\n', '\n  b({ c: [1] });\n', undefined],
    ['is before the bracket that stands there', 'ts', 'if (a) {|\n}\n', '\n  b();\n} else {\n', '\n  b();\n'],
    [
      'is behind the bracket that is missing',
      'ts',
      'function f() {\n  if (a) {|\n}\n',
      '\n    b();\n  } else {\n',
      '\n    b();\n  }',
    ],
    ['takes what ends its statement along', 'ts', 'on(() => {|\n', '\n  b();\n}); c();\n', '\n  b();\n});'],
    ['leaves what ends its statement where it stands', 'ts', 'on(() => {|\n});\n', '\n  b();\n});\n', '\n  b();\n'],
    ['does not count strings and comments', 'ts', 'if (a) {|\n}\n', "\n  b('}'); // }\n  /* } */ c(`}`);\n", undefined],
    [
      'is that of the class, too',
      'ts',
      'class A {\n  a() {}\n  |\n}\n',
      'b() {\n    return 1;\n  }\n}\n',
      'b() {\n    return 1;\n  }\n',
    ],
    [
      'of a call over several lines',
      'ts',
      'function f(\n  a: string,\n): void {|\n',
      '\n  b();\n}\nc();\n',
      '\n  b();\n}',
    ],
    ['in Go', 'go', 'func f() {|\n}\n', '\n\ta()\n}\n\nfunc g() {\n', '\n\ta()\n'],
    ['in Java', 'java', 'class A {\n  void f() {|\n}\n', '\n    a();\n  }\n  void g() {\n', '\n    a();\n  }'],
    ['in Rust', 'rs', 'fn f() {|\n}\n', "\n    let a = '}';\n}\n", "\n    let a = '}';\n"],
  ])('%s', async (_, extension, marked, written, wanted) => {
    const { end } = (await at(extension, marked)).scan(written);
    expect(end === undefined ? undefined : written.slice(0, end)).toBe(wanted);
  });

  it('tells where the indentation of a line says nothing', async () => {
    const { scan } = await at('py', 'def f():\n    |\n');
    expect(scan('a = g(\n').nested).toBe(true);
    expect(scan('a = """\n').nested).toBe(true);
    expect(scan('a = g()\n').nested).toBe(false);
  });
});

describe('grammars', () => {
  it('are the files in dist, one per known grammar', () => {
    const files = readdirSync(grammarFolder()).sort();
    expect(files).toEqual(
      [...Object.keys(GRAMMARS).map((name) => `tree-sitter-${name}.wasm`), 'web-tree-sitter.wasm'].sort(),
    );
    expect(grammarFor({ path: 'a/b.test.TS' })).toBe('typescript');
    expect(grammarFor({ path: 'app/Gemfile' })).toBe('ruby');
    expect(grammarFor({ path: 'ts' })).toBe('typescript');
    expect(grammarFor({ path: 'notes.txt' })).toBeUndefined();
    expect(grammarFor({ path: 'Untitled-1' })).toBeUndefined();
    expect(
      ['python', 'typescriptreact', 'shellscript', 'markdown'].map((language) =>
        grammarFor({ path: 'a/b.ipynb', language }),
      ),
    ).toEqual(['python', 'tsx', 'bash', undefined]);
  });

  it('that are missing or broken are reported once, and other languages still work', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kvasir-grammars-'));
    writeFileSync(join(folder, 'web-tree-sitter.wasm'), readFileSync(join(grammarFolder(), 'web-tree-sitter.wasm')));
    writeFileSync(join(folder, 'tree-sitter-go.wasm'), 'not wasm');
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    const syntax = new Syntax(new Grammars(folder));
    for (const path of ['a/b.go', 'a/c.go', 'a/d.py']) {
      const doc = new SourceDocument(path, path, 'x\n');
      await syntax.prepare(doc);
      expect(syntax.at(doc, 0)).toEqual({ note: expect.stringContaining(path) });
    }
    expect(said.mock.calls.map(([text]) => String(text))).toEqual([
      expect.stringMatching(/^no syntax tree for go: /),
      expect.stringMatching(/^no syntax tree for python: .*tree-sitter-python\.wasm/),
    ]);
    said.mockRestore();
  });

  it('that fail while parsing are not used any more, and other languages still work', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    const own = new Grammars();
    const syntax = new Syntax(own);
    const doc = new SourceDocument('a', 'src/a.go', 'func f() {\n}\n');
    await syntax.prepare(doc);
    const place = syntax.at(doc, 10) as PlaceSyntax;
    const parse = vi.spyOn(Parser.prototype, 'parse').mockImplementation(() => {
      throw new Error('unreachable');
    });
    expect(place.scan('\n')).toEqual({ end: undefined, nested: false });
    parse.mockRestore();
    expect(syntax.at(doc, 10)).toEqual({ note: expect.stringContaining('src/a.go') });
    expect(syntax.prepare(doc)).toBeUndefined();
    const other = new SourceDocument('b', 'src/b.css', 'a {\n}\n');
    await syntax.prepare(other);
    expect(syntax.at(other, 3)).toHaveProperty('scan');
    expect(said.mock.calls).toEqual([[expect.stringMatching(/^no syntax tree for go: unreachable/)]]);
    said.mockRestore();
  });

  it('do not parse texts that are too long', async () => {
    const syntax = new Syntax(grammars);
    const doc = new SourceDocument('a', 'src/a.ts', 'let a = 1;\n');
    await syntax.prepare(doc);
    doc.text = 'x'.repeat(MAX_PARSED_TEXT + 1);
    expect(syntax.prepare(doc)).toBeUndefined();
    expect(syntax.at(doc, 5)).toEqual({
      note: 'src/a.ts is too long to parse: the completion ends by indentation',
    });
  });
});

const SAMPLES: Record<string, string> = {
  typescript: readFileSync('test/fixtures/samples/layout.ts.txt', 'utf8').slice(0, 3000),
  tsx: 'export const A = ({ b }: P) => (\n  <p className="x">\n    {b.map((c) => <i key={c}>{c} d</i>)}\n  </p>\n);\n'.repeat(
    4,
  ),
  python:
    'import os\n\nclass A:\n    """Text."""\n    def f(self, x):\n        if x:\n            return [y for y in x]\n        return f"{x} a"\n\n'.repeat(
      4,
    ),
  go: 'package a\n\nfunc F(x int) error {\n\tif x > 1 {\n\t\treturn nil\n\t}\n\tfor _, y := range []int{1} {\n\t\tprint(`a`, y)\n\t}\n}\n'.repeat(
    4,
  ),
  ruby: 'class A\n  def f(x)\n    x.each do |y|\n      puts "a #{y}"\n    end\n  end\nend\n'.repeat(4),
  bash: `f() {\n  if [ -n "$1" ]; then\n    echo "a \${b}"\n  fi\n}\ncase $x in\n  a) echo b ;;\nesac\n`.repeat(4),
  cpp: '#include <a>\ntemplate <typename T> class A : B {\n public:\n  void f(int x) {\n    if (x) { g("a"); }\n  }\n};\n'.repeat(
    4,
  ),
  php: '<?php\nclass A {\n  function f($x) {\n    return "a {$x}";\n  }\n}\n?>\n<p>a</p>\n'.repeat(4),
};
const PIECES = [
  '{',
  '}',
  '(',
  ')',
  '\n',
  '\n  ',
  'if (a) {',
  '"',
  '`',
  "'",
  '// c\n',
  '/*',
  '*/',
  '# ',
  'foo(bar)',
  '=>',
  'a',
  'return ',
  'end\n',
  'def f():\n',
  '"""',
  '<p>',
  '${',
  'é🙂',
  ';',
  ': ',
];

/** Gives others a turn at every halt, and at none: the clock's extremes. */
const ALWAYS = 0;
const NEVER = Number.POSITIVE_INFINITY;

describe('a tree', () => {
  it.each(Object.keys(SAMPLES))('of %s depends on the text alone, not on earlier parses', async (name) => {
    const language = languageOf(name);
    const sample = SAMPLES[name] as string;
    const edit = fc.record({
      at: fc.nat(sample.length + 50),
      remove: fc.nat(20),
      insert: fc.constantFrom('', ...PIECES),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 12 }), async (edits) => {
        const used = new SyntaxTrees();
        let text = sample;
        for (const { at: from, remove, insert } of edits) {
          const base = text;
          text = base.slice(0, from) + insert + base.slice(from + remove);
          const fresh = new SyntaxTrees();
          expect(used.withEdited('a', language, base, text, outline)).toBe(
            fresh.withEdited('b', language, base, text, outline),
          );
          await used.update('a', language, text);
          expect(used.withTree('a', language, text, outline)).toBe(fresh.withTree('b', language, text, outline));
          fresh.forget();
        }
        used.forget();
      }),
      { numRuns: 25, seed: 17 },
    );
  });

  it('of a long, broken text does not depend on work between its slices', async () => {
    const language = languageOf('typescript');
    const sample = (SAMPLES.typescript as string).repeat(20);
    const edit = fc.record({ at: fc.nat(sample.length), remove: fc.nat(20), insert: fc.constantFrom('', ...PIECES) });
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 4 }), async (edits) => {
        const [sliced, whole] = [new SyntaxTrees(ALWAYS), new SyntaxTrees(NEVER)];
        let text = sample;
        const texts = edits.map(({ at: from, remove, insert }) => {
          text = text.slice(0, from) + insert + text.slice(from + remove);
          return text;
        });
        const parsing = texts.map((next) => sliced.update('long', language, next));
        expect(parsing[0]).toBeDefined();
        let done = false;
        const all = Promise.all(parsing).then(() => {
          done = true;
        });
        for (let turn = 0; !done; turn++) {
          expect(
            sliced.withEdited('other', language, 'let a = ;', `let a = ${turn};`, (tree) => tree.rootNode.toString()),
          ).toContain('lexical_declaration');
          await nextTurn();
        }
        await all;
        const tree = sliced.get('long', language, text);
        expect(tree).toBeDefined();
        expect(whole.update('whole', language, text)).toBeUndefined();
        expect(outline(tree as Tree)).toBe(whole.withTree('whole', language, text, outline));
        for (const trees of [sliced, whole]) trees.forget();
      }),
      { numRuns: 12, seed: 5 },
    );
  });

  it('of a long text without errors is the same with and without pauses', async () => {
    const text = readFileSync('test/fixtures/samples/layout.ts.txt', 'utf8').repeat(12);
    const language = languageOf('typescript');
    const parser = new Parser().setLanguage(language);
    const unhalted = parser.parse(text) as Tree;
    expect(unhalted.rootNode.hasError).toBe(false);
    const trees = new SyntaxTrees(ALWAYS);
    const parsing = trees.update('a', language, text);
    expect(parsing).toBeDefined();
    await parsing;
    expect(trees.withTree('a', language, text, outline)).toBe(outline(unhalted));
    unhalted.delete();
    parser.delete();
    trees.forget();
  });

  it('of a long text is parsed in slices, and other trees can be read between them', async () => {
    const language = languageOf('typescript');
    const text = (SAMPLES.typescript as string).repeat(80);
    const trees = new SyntaxTrees(ALWAYS);
    const parsing = trees.update('long', language, text);
    expect(parsing).toBeDefined();
    expect(trees.get('long', language, text)).toBeUndefined();
    expect(trees.withTree('other', language, 'let a;', (tree) => tree.rootNode.toString())).toContain(
      'lexical_declaration',
    );
    // Two edits in between: the last one and the one before stay.
    const [first, last] = [`// a\n${text}`, `// ab\n${text}`];
    await Promise.all([first, last].map((next) => trees.update('long', language, next)));
    await parsing;
    for (const next of [first, last])
      expect(outline(trees.get('long', language, next) as Tree)).toBe(
        new SyntaxTrees().withTree('whole', language, next, outline),
      );
    expect(trees.get('long', language, text)).toBeUndefined();
    expect(trees.get('other', language, 'let a;')).toBeDefined();
    trees.forget();
    expect(trees.get('long', language, last)).toBeUndefined();
  });

  it('gives the same results after any earlier reads', async () => {
    const sample = SAMPLES.typescript as string;
    const used = new Syntax(grammars);
    const doc = new SourceDocument('a', 'src/a.ts', sample);
    await used.prepare(doc);
    await fc.assert(
      fc.asyncProperty(
        fc.nat(sample.length),
        fc.constantFrom(...PIECES),
        fc.constantFrom('', '}\n', 'b();\n}\n', '"}"\n', '`\n'),
        async (offset, typed, written) => {
          doc.text = sample.slice(0, offset) + typed + sample.slice(offset);
          const fresh = new Syntax(grammars);
          await fresh.prepare(doc);
          const [one, two] = [used, fresh].map((syntax) => {
            const place = syntax.at(doc, offset + typed.length) as PlaceSyntax;
            const parses = place.parses(written);
            const continues = place.continues?.(written);
            return {
              ...place,
              parses,
              continues,
              scan: place.scan(written),
              withText: place.withText(written, outline),
            };
          });
          expect(one).toEqual(two);
          fresh.forget();
        },
      ),
      { numRuns: 150, seed: 23 },
    );
  });
});
