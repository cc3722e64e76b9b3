/** The globs of the settings, compared with whole paths as in the editor. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { FakeDocument } from '../../../support/editor/fakeEditor.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { editor, vscodeApi } = await import('../../../support/editor/fakeEditor.ts');
const { globMatches, isSecret, mayBeKept } = await import('../../../../src/completion/filter.ts');

test.each<[glob: string, path: string, fits: boolean]>([
  ['**/*.key', '/w/a/b.key', true],
  ['**/*.key', '/w/a/b.keys', false],
  ['secrets.json', '/w/config/secrets.json', true],
  ['secrets.json', '/w/my-secrets.json', false],
  ['*.pem', '/w/a/b.pem', true],
  ['config/*.json', '/w/app/config/prod.json', true],
  ['./config/prod.json', '/w/config/prod.json', true],
  ['/w/a.ts', '/w/a.ts', true],
  ['private', '/w/private/deep/a.ts', true],
  ['private/', '/w/private/a.ts', true],
  ['**/private', '/w/private/a.ts', true],
  ['private/', '/w/public/a.ts', false],
])('the glob %s matches %s: %s', (glob, path, fits) =>
  expect(globMatches(new FakeDocument('', path) as never, glob)).toBe(fits),
);

test.each<[uri: string, kept: boolean]>([
  ['file:///w/a.ts', true],
  ['vscode-remote://host/w/a.ts', true],
  ['file:///w/b.key', false],
  ['untitled:Untitled-1', false],
  ['vscode-vfs://github/w/a.ts', false],
  ['vscode-notebook-cell:///w/a.ipynb', false],
])('%s may be kept on disk: %s', (uri, kept) => {
  const [, scheme, path] = /^([\w-]+):(?:\/\/)?(.*)$/.exec(uri)!;
  const document = new FakeDocument('', path!);
  Object.assign(document, { uri: { scheme, path } });
  expect(mayBeKept(document as never, { exclude: ['**/*.key'] } as never)).toBe(kept);
});

interface Address {
  scheme: string;
  path: string;
  fsPath: string;
  with(change: { path: string }): Address;
  toString(): string;
}

function address(path: string, scheme = 'file'): Address {
  return {
    scheme,
    path,
    fsPath: path,
    with: (change) => address(change.path, scheme),
    toString: () => `${scheme}://${path}`,
  };
}

describe.skipIf(process.platform === 'win32')('on a disk', () => {
  const outside = realpathSync(mkdtempSync(join(tmpdir(), 'kvasir-links-')));
  const [one, two] = ['one', 'two'].map((name) => join(outside, name)) as [string, string];
  const secret = (path: string, settings: object = {}, scheme = 'file'): boolean =>
    isSecret(
      { uri: address(path, scheme), languageId: '' } as never,
      { exclude: ['**/.env', 'private/'], ...settings } as never,
    );

  beforeAll(() => {
    for (const folder of ['private', 'one/private', 'one/src', 'two/private', 'two/src'])
      mkdirSync(join(outside, folder), { recursive: true });
    for (const file of [
      '.env',
      'one/.env',
      'one/src/a.ts',
      'one/private/a.ts',
      'two/private/a.ts',
      'two/src/a.ts',
      'private/a.ts',
    ])
      writeFileSync(join(outside, file), '');
    symlinkSync('.env', join(one, 'notes.txt'));
    symlinkSync('notes.txt', join(one, 'again.txt'));
    symlinkSync(join(outside, '.env'), join(one, 'outside.txt'));
    symlinkSync('private', join(one, 'docs'));
    symlinkSync(join(two, 'private', 'a.ts'), join(one, 'other.ts'));
    symlinkSync('src/a.ts', join(one, 'a.ts'));
    symlinkSync('nowhere', join(one, 'dangling.txt'));
    symlinkSync('circle.txt', join(one, 'circle.txt'));
    // A workspace folder that is itself a link, to a folder below one with a secret name.
    mkdirSync(join(outside, 'private', 'deep'));
    writeFileSync(join(outside, 'private', 'deep', 'a.ts'), '');
    writeFileSync(join(outside, 'private', 'deep', '.env'), '');
    symlinkSync('.env', join(outside, 'private', 'deep', 'notes.txt'));
    symlinkSync(join(outside, 'private', 'deep'), join(outside, 'three'));
    const folders = [one, two, join(outside, 'three')].map((path) => ({ uri: address(path) }));
    const inside = (path: string) => folders.find(({ uri }) => path.startsWith(`${uri.path}/`));
    Object.assign(vscodeApi, {
      Uri: {
        file: (path: string) => address(path),
        joinPath: ({ path, scheme }: Address, ...more: string[]) => address([path, ...more].join('/'), scheme),
      },
    });
    Object.assign(vscodeApi.workspace, {
      workspaceFolders: folders,
      getWorkspaceFolder: ({ path }: Address) => inside(path),
    });
  });
  afterAll(() => rmSync(outside, { recursive: true, force: true }));

  test.each<[path: string, isSecret: boolean]>([
    ['one/.env', true],
    ['one/notes.txt', true],
    ['one/again.txt', true],
    ['one/outside.txt', true],
    ['one/docs/a.ts', true],
    ['one/other.ts', true],
    ['one/a.ts', false],
    ['one/src/a.ts', false],
    ['one/dangling.txt', false],
    ['one/circle.txt', false],
    ['one/not-there.txt', false],
    ['three/a.ts', false],
    ['three/notes.txt', true],
  ])('a link is as secret as its target: %s: %s', (path, expected) => {
    expect(secret(join(outside, path))).toBe(expected);
    expect(secret(join(outside, path), {}, 'vscode-remote')).toBe(expected);
    expect(
      mayBeKept(
        { uri: address(join(outside, path)), languageId: '' } as never,
        { exclude: ['**/.env', 'private/'] } as never,
      ),
    ).toBe(!expected);
  });

  test('a file that is not on this machine is judged by its name alone', () => {
    expect(secret(join(one, 'notes.txt'), {}, 'vscode-vfs')).toBe(false);
  });

  test('a cell is as secret as its notebook, also for a notebook that is a link and for globs of its workspace folder', () => {
    const cell = (path: string, settings = {}): boolean =>
      secret(join(outside, path), settings, 'vscode-notebook-cell');
    expect([cell('one/notes.txt'), cell('one/docs/a.ts'), cell('one/a.ts')]).toEqual([true, true, false]);
    editor.notebooks = ['one/private/a.ts', 'one/docs/a.ts', 'one/src/a.ts'].map((path) => ({
      uri: address(join(outside, path)),
      cells: [],
    }));
    // Like the editor, which finds the folder of a file by the whole URI.
    const { getWorkspaceFolder } = vscodeApi.workspace;
    Object.assign(vscodeApi.workspace, {
      getWorkspaceFolder: (uri: Address) => (uri.scheme === 'file' ? getWorkspaceFolder(uri) : undefined),
    });
    const excludeIn = new Map([[`file://${one}`, ['src/']]]);
    expect([
      cell('one/private/a.ts', { excludeIn }),
      cell('one/docs/a.ts'),
      cell('one/src/a.ts', { excludeIn }),
    ]).toEqual([false, true, true]);
    editor.notebooks = [{ uri: address(join(one, 'notes.txt'), 'vscode-vfs'), cells: [] }];
    expect(cell('one/notes.txt')).toBe(false);
    editor.notebooks = [];
    Object.assign(vscodeApi.workspace, { getWorkspaceFolder });
  });

  test('links are resolved once in some seconds, workspace folders once; a moved link is noticed soon', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const asked: string[] = [];
    const native = realpathSync.native as (path: string) => string;
    const spy = vi.spyOn(realpathSync, 'native').mockImplementation(((path: string) => {
      asked.push(path);
      return native(path);
    }) as never);
    const link = join(one, 'moved.txt');
    const inside = (path: string) => vscodeApi.workspace.getWorkspaceFolder({ path });
    const { workspaceFolders } = vscodeApi.workspace as never as { workspaceFolders: object[] };
    try {
      symlinkSync('src/a.ts', link);
      vi.advanceTimersByTime(10_000);
      // With other folders, nothing is remembered.
      Object.assign(vscodeApi.workspace, { workspaceFolders: workspaceFolders.slice(0, 1) });
      for (let i = 0; i < 3; i++) expect([secret(link), secret(join(one, 'src/a.ts'))]).toEqual([false, false]);
      expect(asked.toSorted()).toEqual([one, link, join(one, 'src/a.ts')].toSorted());
      rmSync(link);
      symlinkSync('.env', link);
      vi.advanceTimersByTime(6000);
      expect(secret(link)).toBe(true);
      expect(asked.slice(3)).toEqual([link]);
      Object.assign(vscodeApi.workspace, { workspaceFolders });
      expect([secret(link), inside(link) !== undefined]).toEqual([true, true]);
      expect(asked.slice(4)).toEqual([link, one]);
      // The number of remembered files is bounded.
      for (let i = 0; i < 10_001; i++) secret(join(one, `none-${i}`));
      asked.length = 0;
      secret(join(one, 'none-10000'));
      secret(join(one, 'none-0'));
      expect(asked).toEqual([join(one, 'none-0')]);
    } finally {
      spy.mockRestore();
      vi.useRealTimers();
      rmSync(link);
    }
  });

  test('a workspace folder’s own globs apply to its files, also to those that a link leads to', () => {
    const excludeIn = new Map([[`file://${two}`, ['src/']]]);
    expect(
      ['one/private/a.ts', 'one/src/a.ts', 'two/private/a.ts', 'two/src/a.ts', 'one/other.ts'].map((path) => [
        path,
        secret(join(outside, path), { excludeIn }),
      ]),
    ).toEqual([
      ['one/private/a.ts', true],
      ['one/src/a.ts', false],
      ['two/private/a.ts', false],
      ['two/src/a.ts', true],
      ['one/other.ts', false],
    ]);
    const none = new Map([[`file://${one}`, []]]);
    expect(
      ['notes.txt', 'outside.txt', 'other.ts'].map((path) => secret(join(one, path), { excludeIn: none })),
    ).toEqual([false, true, true]);
  });
});
