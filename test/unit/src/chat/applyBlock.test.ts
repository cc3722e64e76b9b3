/**
 * Where a block of code goes. Each case has the file before, with `[` and `]` around the selection or `|` at the
 * cursor, and after.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { definedNames, placeBlock } from '../../../../src/chat/applyBlock.ts';

const FILE = `import x from 'x';

export class Store {
  /** Empties it. */
  flush(): void {
    this.a = 1;
  }

  size(): number {
    return 2;
  }
}

export function open(path: string): Store {
  return new Store();
}
`;
const SYMBOLS: [string, string, string][] = [
  ['Store', 'export class Store', '}\n}'],
  ['flush', 'flush()', '1;\n  }'],
  ['size', 'size()', '2;\n  }'],
  ['open', 'export function open', 'Store();\n}'],
];

function symbolsOf(text: string): { name: string; start: number; end: number }[] {
  return SYMBOLS.flatMap(([name, from, to]) => {
    const at = text.indexOf(from);
    return at < 0 ? [] : [{ name, start: at, end: text.indexOf(to, at) + to.length }];
  });
}

/** `marked` is the file with the marks; symbols are located in it by their text. */
function apply(marked: string, block: string): string {
  const start = marked.search(/[[|](?!\])/);
  const text = marked.replace(/[[|\]]/g, '');
  const end = marked.includes('[') ? marked.indexOf(']') - 1 : start;
  const place = placeBlock(text, block, { selection: { start, end }, symbols: symbolsOf(text) });
  return text.slice(0, place.start) + place.text + text.slice(place.end);
}

test.each([
  [
    'the selection, indented like it',
    FILE.replace('    return 2;', '[    return 2;]'),
    'const n = 2;\nreturn n;\n',
    FILE.replace('    return 2;', '    const n = 2;\n    return n;'),
  ],
  [
    'selected whole lines keep their line break',
    FILE.replace('    return 2;\n', '[    return 2;\n]'),
    'return 3;',
    FILE.replace('return 2;', 'return 3;'),
  ],
  ['part of a line', FILE.replace('return 2;', 'return [2];'), '3', FILE.replace('return 2;', 'return 3;')],
  [
    'the definition of that name',
    `|${FILE}`,
    'size(): number {\n  return 5;\n}',
    FILE.replace('return 2;', 'return 5;'),
  ],
  [
    'with its comment, where the block has one',
    `|${FILE}`,
    '/** New. */\nflush(): void {\n  this.b = 2;\n}',
    FILE.replace('Empties it.', 'New.').replace('this.a = 1;', 'this.b = 2;'),
  ],
  [
    'a comment of the file stays above a block without one',
    `|${FILE}`,
    'flush(): void {}',
    FILE.replace('flush(): void {\n    this.a = 1;\n  }', 'flush(): void {}'),
  ],
  [
    'a function at the top level',
    `|${FILE}`,
    'export function open(): Store {\n  return new Store(1);\n}\n',
    FILE.replace('open(path: string)', 'open()').replace('new Store()', 'new Store(1)'),
  ],
  [
    'two definitions that follow one another',
    `|${FILE}`,
    'flush(): void {\n  this.b = 1;\n}\n\nsize(): number {\n  return 4;\n}',
    FILE.replace('this.a', 'this.b').replace('return 2', 'return 4'),
  ],
  [
    'the cursor, where something stands between its definitions',
    `|${FILE}`,
    'flush() {\n}\nexport function open() {\n}',
    `flush() {\n}\nexport function open() {\n}${FILE}`,
  ],
  [
    'the cursor, where one of its definitions is within another',
    `|${FILE}`,
    'class Store {\n}\nfunction flush() {\n}',
    `class Store {\n}\nfunction flush() {\n}${FILE}`,
  ],
  [
    'the cursor, where nothing fits',
    FILE.replace('    return 2;', '    |return 2;'),
    'check();',
    FILE.replace('return 2;', 'check();return 2;'),
  ],
])('%s', (_, marked, block, after) => expect(apply(marked, block)).toBe(after));

test('a block replaces the lines between its first and its last line', () => {
  const text = 'a();\n  if (ready(x)) {\n    one();\n  }\nb();\n';
  const place = placeBlock(text, 'if (ready(x)) {\n  two();\n  three();\n}\n', {
    selection: { start: 0, end: 0 },
    symbols: [],
  });
  expect(text.slice(0, place.start) + place.text + text.slice(place.end)).toBe(
    'a();\n  if (ready(x)) {\n    two();\n    three();\n  }\nb();\n',
  );
});

test('a block that is another version of the file replaces the whole file', () => {
  const block = FILE.replace("import x from 'x';", "import y from 'y';\nimport z from 'z';").replace(
    'return 2',
    'return 7',
  );
  for (const symbols of [[], symbolsOf(FILE)])
    expect(placeBlock(FILE, block, { selection: { start: 3, end: 3 }, symbols })).toEqual({
      start: 0,
      end: FILE.length,
      text: block,
    });
});

test.each([
  ['export async function readAll(a) {', 'readAll'],
  ['@cached\ndef flush(self):', 'flush'],
  ['if (a) {\n  go();\n}', undefined],
  ['class A {\n  b() {\n  }\n}\nfunction c() {\n  const d = 1;\n}', 'A,c'],
  ['fn open(p: &str) -> Store {', 'open'],
  ['func (s *Store) Flush() {', 'Flush'],
  ['class A extends B {', 'A'],
  ['const x = 1;', 'x'],
])('%j defines %j', (code, name) => expect(definedNames(code).join() || undefined).toBe(name));

test('for random texts, everything outside the place stays and the whole block is inserted', () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.array(fc.constantFrom('  a();', 'b {', '}', '', '\tc'), { minLength: 1 }),
      fc.nat(),
      (text, lines, at) => {
        const cursor = text.length ? at % text.length : 0;
        const place = placeBlock(text, lines.join('\n'), { selection: { start: cursor, end: cursor }, symbols: [] });
        expect(place.start).toBeLessThanOrEqual(place.end);
        expect(place.end).toBeLessThanOrEqual(text.length);
        const words = (of: string) =>
          of
            .split('\n')
            .map((line) => line.trim())
            .filter((line) => line);
        expect(words(place.text)).toEqual(words(lines.join('\n')));
      },
    ),
  );
});
