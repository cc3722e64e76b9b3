/**
 * The texts that a question is about: open documents, files on disk, folders and selections, with notes on what is left
 * out.
 */
import { beforeEach, expect, test, vi } from 'vitest';
import type { ContextRef } from '../../../../src/chat/chatMessages.ts';

const world = vi.hoisted(() => ({ files: new Map<string, string>(), open: new Map<string, string>(), secret: '' }));
vi.mock('../../../../src/vscode.ts', () => {
  const uriOf = (path: string) => ({ path, toString: () => path });
  const documentOf = (path: string, text: string) => ({
    uri: uriOf(path),
    getText: (range?: { start: { line: number }; end: { line: number } }) =>
      range ? text.split('\n').slice(range.start.line, range.end.line).join('\n') : text,
    validateRange: (range: unknown) => range,
    offsetAt: ({ line }: { line: number }) => (line < 0 ? text.length : line * 100),
    lineCount: 1,
    lineAt: () => ({ range: { end: { line: -1 } } }),
  });
  const read = (path: string) => {
    const text = world.files.get(path);
    if (text === undefined) throw new Error('no such file');
    return text;
  };
  return {
    Uri: { parse: uriOf },
    Range: class {
      start: { line: number; character: number };
      end: { line: number; character: number };
      constructor(startLine: number, startCharacter: number, endLine: number, endCharacter: number) {
        this.start = { line: startLine, character: startCharacter };
        this.end = { line: endLine, character: endCharacter };
      }
    },
    RelativePattern: class {
      base: { path: string };
      constructor(base: { path: string }) {
        this.base = base;
      }
    },
    l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
    languages: {
      match: (_: unknown, { uri }: { uri: { path: string } }) =>
        world.secret && uri.path.includes(world.secret) ? 10 : 0,
    },
    workspace: {
      get textDocuments() {
        return [...world.open].map(([path, text]) => documentOf(path, text));
      },
      openTextDocument: async (uri: { path: string }) => documentOf(uri.path, read(uri.path)),
      findFiles: async ({ base }: { base: { path: string } }, _: unknown, most: number) =>
        [...world.files.keys()]
          .filter((path) => path.startsWith(`${base.path}/`))
          .slice(0, most)
          .map(uriOf),
      fs: {
        stat: async ({ path }: { path: string }) => ({ size: read(path).length }),
        readFile: async ({ path }: { path: string }) => new TextEncoder().encode(read(path)),
      },
    },
  };
});
const { gather } = await import('../../../../src/chat/gather.ts');

const settings = { current: { completion: { exclude: ['**/.env'] } } } as never;
const ref = (kind: ContextRef['kind'], uri: string, more: Partial<ContextRef> = {}): ContextRef => ({
  kind,
  uri,
  name: uri.slice(1),
  path: uri.slice(1),
  ...more,
});

beforeEach(() => {
  world.files = new Map([
    ['/a.ts', 'a();'],
    ['/b.ts', 'b();'],
    ['/bin', 'x\0y'],
    ['/big.ts', 'x'.repeat(1_000_001)],
    ...Array.from({ length: 30 }, (_, i) => [`/src/f${i}.ts`, `f${i}();`] as [string, string]),
  ]);
  world.open = new Map([['/b.ts', 'unsaved();']]);
  world.secret = '';
});

test('the first file is the file block, open files are mirrored, other files are read from disk', async () => {
  const { documents, snippets, owners, notes } = await gather(
    [ref('file', '/a.ts'), ref('file', '/b.ts'), ref('file', '/src/f1.ts')],
    settings,
    undefined,
  );
  expect(documents.map((document) => document.getText())).toEqual(['a();', 'unsaved();']);
  expect(snippets).toEqual([{ path: '/src/f1.ts', text: 'f1();' }]);
  expect([owners, notes]).toEqual([['/a.ts', '/b.ts', '/src/f1.ts'], []]);
});

test('a selection is read from the current text of its file and sets the position shown of a large file', async () => {
  world.open.set('/a.ts', 'one\ntwo\nthree\n');
  const range = { startLine: 1, startCharacter: 0, endLine: 3, endCharacter: 0 };
  const { snippets, cursor } = await gather(
    [ref('file', '/a.ts'), ref('selection', '/a.ts', { range })],
    settings,
    undefined,
  );
  expect(snippets).toEqual([{ path: '/a.ts', text: 'two\nthree', startLine: 1 }]);
  expect(cursor?.()).toBe(100);
});

test('missing, binary and too large files are named in notes', async () => {
  const { documents, snippets, notes } = await gather(
    [ref('file', '/a.ts'), ref('file', '/gone.ts'), ref('file', '/bin'), ref('file', '/big.ts')],
    settings,
    undefined,
  );
  expect([documents.length, snippets]).toEqual([1, []]);
  expect(notes).toEqual([
    'gone.ts is left out: no such file',
    'bin is left out: it is not a text file',
    'big.ts is left out: it is larger than 1 MB',
  ]);
});

test('an open file that is too large is left out with a note, and the next file becomes the file block', async () => {
  world.open.set('/huge.ts', 'x'.repeat(10_000_001));
  const { documents, notes } = await gather([ref('file', '/huge.ts'), ref('file', '/b.ts')], settings, undefined);
  expect(documents.map(({ uri }) => uri.path)).toEqual(['/b.ts']);
  expect(notes).toEqual([
    'huge.ts is left out: huge.ts is too large for Kvasir: 11 million characters, the limit is 10 million.',
  ]);
});

test('a folder contributes its first files without secrets, and a note counts all of them', async () => {
  world.secret = 'f0.ts';
  const { snippets, owners, notes } = await gather([ref('folder', '/src')], settings, undefined);
  expect(snippets).toHaveLength(24);
  expect(snippets.some(({ path }) => path.includes('f0.ts'))).toBe(false);
  expect(new Set(owners)).toEqual(new Set(['/src']));
  expect(notes).toEqual(['src: 24 of 29 files are attached']);
});

test.each([
  [400, 'many: 24 of 400 files are attached'],
  [401, 'many: 24 of more than 400 files are attached'],
  [3000, 'many: 24 of more than 400 files are attached'],
])('a folder with %d files', async (numFiles, note) => {
  for (let i = 0; i < numFiles; i++) world.files.set(`/many/f${i}.ts`, 'f();');
  expect((await gather([ref('folder', '/many')], settings, undefined)).notes).toEqual([note]);
});

test.each([
  [
    500,
    'many: no file is attached: kvasir.completion.exclude leaves out the first 400, and the others were not checked',
  ],
  [400, 'many: no file is attached: kvasir.completion.exclude leaves all of them out'],
  [1, 'many: no file is attached: kvasir.completion.exclude leaves all of them out'],
])('a folder with %d files that are all secret', async (numFiles, note) => {
  world.secret = '/many/';
  for (let i = 0; i < numFiles; i++) world.files.set(`/many/f${i}.key`, 'secret');
  const { snippets, notes } = await gather([ref('folder', '/many')], settings, undefined);
  expect([snippets, notes]).toEqual([[], [note]]);
});
