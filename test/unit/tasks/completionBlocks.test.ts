/** Completions of several lines with a syntax tree: how many lines, where they end, and that what was shown stays. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { prepareComplete } from '../../../engine/tasks/completeTask.ts';
import type { PreparedRequest } from '../../../engine/tasks/preparedRequest.ts';
import type { Layout } from '../../../engine/text/prompt/layout.ts';
import { starterLayout } from '../../support/starter.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../engine/text/syntax/syntax.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';

let layout: Layout;
const grammars = new Grammars();
const syntax = new Syntax(grammars);
beforeAll(async () => {
  layout = await starterLayout({ copies: false });
  await Promise.all(
    ['typescript', 'tsx', 'python', 'ruby', 'bash', 'css', 'cpp', 'go', 'php'].map((name) => grammars.load(name)),
  );
});

/** A completion at `|`; `multiline` is decided by the syntax when left out. */
function at(extension: string, marked: string, multiline?: boolean): PreparedRequest {
  const offset = marked.indexOf('|');
  const doc = new SourceDocument(
    `${extension} ${marked}`,
    `src/a.${extension}`,
    marked.slice(0, offset) + marked.slice(offset + 1),
  );
  return prepareComplete(layout, doc, { offset, multiline }, undefined, syntax);
}

describe('a completion of several lines', () => {
  it.each([
    [
      'ends with the block, not with what follows on its line',
      'ts',
      'if (a) {|',
      '\n  b();\n} else {\n  c();\n}\n',
      '\n  b();\n}',
    ],
    ['leaves the bracket that stands there', 'ts', 'if (a) {|\n}\n', '\n  b();\n} else {\n', '\n  b();'],
    [
      'closes an inner block before the bracket of the outer one',
      'ts',
      'function f() {\n  if (a) {|\n}\n',
      '\n    b();\n  }\n  c();\n}\n',
      '\n    b();\n  }',
    ],
    ['closes the call that it stands in', 'ts', 'on("a", () => {|\n', '\n  b();\n});\nc();\n', '\n  b();\n});'],
    ['is not misled by brackets in strings', 'ts', 'if (a) {|\n}\n', "\n  b('}');\n  c();\n}\n", "\n  b('}');\n  c();"],
    [
      'goes on through lines within brackets, however they are indented',
      'py',
      'def f():\n    |\n',
      'a = g("""\nb\n""", [\n1,\n])\n    return a\ndef g():\n',
      'a = g("""\nb\n""", [\n1,\n])\n    return a',
    ],
    [
      'ends with the paragraph in the midst of a block',
      'ts',
      'function f() {\n  a();\n  |\n}\n',
      'b();\n  c();\n\n  d();\n',
      'b();\n  c();',
    ],
    [
      'goes on over blank lines in an empty body',
      'ts',
      'function f() {\n  |\n}\n',
      'b();\n\n  d();\n}\n',
      'b();\n\n  d();',
    ],
    ['is one line where the line opens nothing', 'ts', 'const a = |\n', 'b;\nc;\n', 'b;'],
    ['is one line in a call', 'ts', 'f(\n  |\n);\n', 'a,\n  b,\n', 'a,'],
    ['is one line in a comment', 'ts', '/**\n * |\n */\n', 'Does.\n * And more.\n', 'Does.'],
    ['is one line after a type', 'ts', 'let a:|\n', ' string;\nlet b;\n', ' string;'],
    ['takes the word that ends its block', 'rb', 'def f|', '\n  a\nend\nb\n', '\n  a\nend'],
    ['leaves the word that stands there', 'rb', 'def f|\nend\n', '\n  a\nend\n', '\n  a'],
    [
      'ends a word of an inner block before the same word of the outer',
      'rb',
      'def f\n  if a|\nend\n',
      '\n    b\n  end\n  c\n',
      '\n    b\n  end',
    ],
    ['of a shell ends with its word', 'sh', 'if true; then|', '\n  a\nfi\nb\n', '\n  a\nfi'],
    [
      'brings its own indentation to a line without',
      'py',
      'def f():\n|\n',
      '    a = 1\n    return a\ndef g():\n',
      '    a = 1\n    return a',
    ],
    [
      'ends before a line is said twice',
      'ts',
      'function f() {\n  |\n}\n',
      'a = b[0];\n  a = b[0];\n  a = b[0];\n}\n',
      'a = b[0];',
    ],
    [
      'ends where nothing more is reached',
      'ts',
      'function f() {\n  |\n}\n',
      'return a.b(c);\n  return d ? e : 0;\n}\n',
      'return a.b(c);',
    ],
    [
      'ends where nothing more is reached, behind other lines',
      'py',
      'def f(a):\n    |\n',
      'if a:\n        raise b\n        c()\n    return d\n',
      'if a:\n        raise b',
    ],
    [
      'goes on behind what leaves an inner block',
      'py',
      'def f(a):\n    |\n',
      'if a:\n        return b\n    return c\n',
      'if a:\n        return b\n    return c',
    ],
    [
      'goes on to the next case',
      'ts',
      'switch (a) {|\n}\n',
      '\n  case 1:\n  return b;\n  case 2:\n  return c;\n',
      '\n  case 1:\n  return b;\n  case 2:\n  return c;',
    ],
    [
      'takes cases at the indentation of their switch',
      'go',
      'func f() {\n\tswitch a {|\n}\n',
      '\n\tcase 1:\n\t\tb()\n\tdefault:\n\t\tc()\n\t}\n\td()\n}\n',
      '\n\tcase 1:\n\t\tb()\n\tdefault:\n\t\tc()\n\t}',
    ],
    [
      'takes them on the line behind, and leaves the bracket that stands there',
      'go',
      'func f() {\n\tselect {\n\t|\n\t}\n}\n',
      'case <-a:\n\t\tb()\n\tcase <-c:\n\t\treturn\n\t}\n\td()\n',
      'case <-a:\n\t\tb()\n\tcase <-c:\n\t\treturn',
    ],
    ['ends before what is no case there', 'ts', 'switch (a) {|\n', '\ncase 1:\n  b();\nc();\n', '\ncase 1:\n  b();'],
    [
      'takes cases of Ruby at the indentation of theirs',
      'rb',
      'def f(a)\n  case a|\nend\n',
      '\n  when 1\n    b\n  else\n    c\n  end\n  d\nend\n',
      '\n  when 1\n    b\n  else\n    c\n  end',
    ],
    [
      'takes cases where there is no tree',
      'swift',
      'switch a {|\n',
      '\ncase .b:\n    c()\n@unknown default:\n    d()\n}\ne()\n',
      '\ncase .b:\n    c()\n@unknown default:\n    d()\n}',
    ],
    ['ends before the next case', 'go', 'switch a {\ncase 1:|\n}\n', '\n\tb()\ncase 2:\n\tc()\n', '\n\tb()'],
    [
      'of a shell goes on behind a pattern',
      'sh',
      'case $1 in|\n',
      '\n  -a | --all)\n    if b; then\n      c\n    fi\n    ;;\n  *) c $(d) ;;\nesac\ne\n',
      '\n  -a | --all)\n    if b; then\n      c\n    fi\n    ;;\n  *) c $(d) ;;\nesac',
    ],
    [
      'of a shell takes patterns at the indentation of their case',
      'sh',
      'f() {\n  case "$1" in|\n}\n',
      '\n  a)\n    b\n    ;;\n  *) c ;;\n  esac\n  d\n}\n',
      '\n  a)\n    b\n    ;;\n  *) c ;;\n  esac',
    ],
    [
      'of a shell ends where a bracket around it is closed',
      'sh',
      'a=$(\n  if b; then|\n)\n',
      '\n    c\n  fi\n)\n',
      '\n    c\n  fi',
    ],
    [
      'goes on where it is left on a condition only',
      'rb',
      'def f(a)|\nend\n',
      '\n  return 0 if a.size > max\n  raise ArgumentError unless b\n  c\nend\n',
      '\n  return 0 if a.size > max\n  raise ArgumentError unless b\n  c',
    ],
    [
      'ends behind a choice of what is returned',
      'py',
      'def f(a):|\n',
      '\n    return b if a else c\n    d()\n',
      '\n    return b if a else c',
    ],
    [
      'goes on with declarations of a style',
      'css',
      '.a {|\n}\n',
      '\n  break-inside: avoid;\n  color: red;\n',
      '\n  break-inside: avoid;\n  color: red;',
    ],
    [
      'goes on with members of such names',
      'ts',
      'interface A {|\n}\n',
      '\n  return?(a: B): C;\n  throw(a: B): C;\n  break: C;\n  next(): C;\n',
      '\n  return?(a: B): C;\n  throw(a: B): C;\n  break: C;\n  next(): C;',
    ],
    [
      'goes on behind a function of such a name',
      'c',
      'void f(void) {|\n}\n',
      '\n  raise(SIGINT);\n  g();\n',
      '\n  raise(SIGINT);\n  g();',
    ],
    ['goes on at a label', 'go', 'func f() {|\n}\n', '\n\treturn\n\tout:\n\tg()\n', '\n\treturn\n\tout:\n\tg()'],
    [
      'goes on with functions that are called above',
      'ts',
      'function f() {|\n}\n',
      '\n  return g();\n\n  async function g() {\n    a();\n  }\n',
      '\n  return g();\n\n  async function g() {\n    a();\n  }',
    ],
    [
      'goes on with the lines of a text',
      'php',
      '<?php\nfunction f() {|\n}\n',
      '\n  return <<<EOT\n  a\n  EOT;\n',
      '\n  return <<<EOT\n  a\n  EOT;',
    ],
    ['goes on in prose', 'md', 'Then:|\n', '\n  return to it\n  and go on\n', '\n  return to it\n  and go on', true],
    ['goes on with what is returned', 'ts', 'function f() {\n  |\n}\n', 'return a +\n  b;\n', 'return a +\n  b;'],
    [
      'of markup ends with its element',
      'tsx',
      'const a = (\n  <p>\n    |\n  </p>\n);\n',
      '<i>b</i>\n    c\n  </p>\n',
      '<i>b</i>\n    c',
    ],
  ] as [string, string, string, string, string, true?][])('%s', (_, extension, marked, raw, wanted, multiline) =>
    expect(at(extension, marked, multiline).shape(raw, true).text).toBe(wanted),
  );

  it('can be requested or refused explicitly', () => {
    expect(at('ts', 'const a = |\n', true).shape('b\n  .c();\n', true).text).toBe('b\n  .c();');
    expect(at('ts', 'if (a) {|\n}\n', false).shape('\n  b();\n', true).text).toBe('');
  });

  it('says when a file is too long to be parsed', () => {
    const doc = new SourceDocument('long', 'src/long.ts', 'let a = 1;\n'.repeat(50_000));
    expect(prepareComplete(layout, doc, { offset: 0 }, undefined, syntax).notes).toContain(
      'src/long.ts is too long to parse: the completion ends by indentation',
    );
  });

  it('stops decoding as soon as the block has ended', () => {
    const { shape } = at('ts', 'if (a) {|\n}\n');
    expect(shape('\n  b();\n', false)).toEqual({ text: '\n  b();', stop: false });
    expect(shape('\n  b();\n}', false)).toEqual({ text: '\n  b();', stop: false });
    expect(shape('\n  b();\n}\n', false)).toMatchObject({ text: '\n  b();', stop: true });
  });

  it('only ever adds to what it has shown', () => {
    const place = fc.constantFrom(
      ...([
        ['ts', 'if (a) {|\n}\n'],
        ['ts', 'if (a) {|'],
        ['ts', 'function f() {\n  if (a) {|\n}\n'],
        ['ts', 'on(() => {|\n'],
        ['ts', 'class A {\n  |\n}\n'],
        ['ts', 'a();\n|\nb();\n'],
        ['ts', 'const a = [|\n'],
        ['tsx', 'const a = (\n  <p>\n    |\n  </p>\n);\n'],
        ['py', 'def f():\n    |\n'],
        ['py', 'if a:|\n    b()\n'],
        ['rb', 'def f|'],
        ['rb', 'def f\n  if a|\nend\n'],
        ['sh', 'if true; then|\nfi\n'],
        ['sh', 'case $x in|\nesac\n'],
        ['sh', 'f() {\n  case $x in|\n}\n'],
        ['go', 'switch a {|'],
        ['go', 'select {\n|\n}\n'],
        ['rb', 'case a|\nend\n'],
        ['swift', 'switch a {|\n'],
      ] as [string, string][]),
    );
    const part = fc.constantFrom(
      'a',
      'foo(',
      ')',
      ');',
      "'",
      '"',
      '`',
      '${',
      ' ',
      '  ',
      '\n',
      '\n  ',
      '\n    ',
      '\n}',
      '}',
      '{',
      '[',
      ']',
      'return x;',
      '\n  return x;\n  ',
      'out',
      'async ',
      'function ',
      'case',
      '\ncase b:',
      '\ndefault:',
      '\nd',
      'ault',
      '\nwhen a',
      '\n  b)',
      '*)',
      ';;',
      '\nesac',
      '// ',
      '/*',
      '*/',
      '/',
      '<p>',
      '</p>',
      'end',
      '\nend',
      'e',
      'fi',
      '\nfi\n',
      'a)',
      '"""',
      '#',
      '\r\n',
      ': ',
      '=> {',
      '} else {',
    );
    fc.assert(
      fc.property(place, fc.array(part, { maxLength: 24 }), ([extension, marked], parts) => {
        const { shape } = at(extension, marked);
        let raw = '';
        let before = '';
        for (const piece of parts) {
          raw += piece;
          const { text, stop } = shape(raw, false);
          expect(text.startsWith(before)).toBe(true);
          expect(shape(raw, true).text.startsWith(text)).toBe(true);
          before = text;
          if (stop) break;
        }
      }),
      { numRuns: 500, seed: 29 },
    );
  });
});
