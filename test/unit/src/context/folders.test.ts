/** Which folders an import can reach, and what they hold, on a fake disk. */
import path from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';

const fake = vi.hoisted(() => {
  const uri = (file: string, scheme = 'file'): object => ({
    path: file,
    scheme,
    toString: () => `${scheme}://${file}`,
  });
  return {
    files: new Map<string, number>(),
    listed: [] as string[],
    created: [] as ((uri: unknown) => void)[],
    deleted: [] as ((uri: unknown) => void)[],
    changed: {} as Record<string, (event: unknown) => void>,
    numJoined: 0,
    numDisposed: 0,
    glob: [] as unknown[],
    uri,
  };
});
vi.mock('../../../../src/vscode.ts', () => {
  const listen = (list: ((uri: unknown) => void)[]) => (listener: (uri: unknown) => void) => {
    list.push(listener);
    return { dispose: () => fake.numDisposed++ };
  };
  return {
    FileType: { File: 1, Directory: 2, SymbolicLink: 64 },
    Uri: {
      joinPath: ({ path: base }: { path: string }, part: string) => {
        fake.numJoined++;
        return fake.uri(path.posix.join(base, part));
      },
    },
    workspace: {
      ...Object.fromEntries(
        ['onDidCreateFiles', 'onDidDeleteFiles', 'onDidRenameFiles', 'onDidSaveTextDocument'].map((name) => [
          name,
          (listener: (event: unknown) => void) => {
            fake.changed[name] = listener;
            return { dispose: () => fake.numDisposed++ };
          },
        ]),
      ),
      createFileSystemWatcher: (...asked: unknown[]) => {
        fake.glob = asked;
        return {
          onDidCreate: listen(fake.created),
          onDidDelete: listen(fake.deleted),
          dispose: () => fake.numDisposed++,
        };
      },
      getWorkspaceFolder: ({ path: file }: { path: string }) =>
        file.startsWith('/w/') ? { uri: fake.uri('/w') } : undefined,
      fs: {
        readDirectory: async ({ path: folder }: { path: string }) => {
          fake.listed.push(folder);
          const below = [...fake.files].filter(([name]) => name.startsWith(`${folder}/`));
          if (below.length === 0) throw new Error('no such folder');
          const parts = below.map(([name, type]) => [name.slice(folder.length + 1).split('/'), type] as const);
          return [...new Map(parts.map(([[first, ...more], type]) => [first, more.length > 0 ? 2 : type]))];
        },
      },
    },
  };
});
vi.mock('../../../../src/completion/filter.ts', () => ({ FILES: new Set(['file']) }));
const { Folders, typedFolder } = await import('../../../../src/context/folders.ts');

const disk = (...files: string[]): void => {
  fake.files = new Map(files.map((file) => [file, 1]));
};
const document = (file: string, scheme?: string) => ({ uri: fake.uri(file, scheme) as never });
const FILE = document('/w/src/a/file.ts');

/** What is known after listing. */
async function known(before = '', file = FILE): Promise<Record<string, string[]> | undefined> {
  const folders = new Folders();
  folders.of(file, before);
  await folders.idle;
  const found = folders.of(file, before);
  folders.dispose();
  return found;
}

beforeEach(() => {
  disk('/w/src/a/file.ts', '/w/src/a/deep/x.ts', '/w/src/b/y.ts', '/w/package.json', '/w/docs/z.md');
  fake.listed = [];
  fake.created = [];
  fake.deleted = [];
});

test('the first call only begins to list, and each folder is listed once', async () => {
  const folders = new Folders();
  expect(folders.of(FILE, '')).toEqual({});
  await folders.idle;
  expect(folders.of(FILE, '')).toEqual({
    '/w/src/a': ['file.ts', 'deep/'],
    '/w/src': ['a/', 'b/'],
    '/w': ['src/', 'package.json', 'docs/'],
    '/w/src/a/deep': ['x.ts'],
    '/w/src/b': ['y.ts'],
    '/w/docs': ['z.md'],
  });
  expect(fake.listed).toEqual(['/w/src/a', '/w/src', '/w', '/w/src/a/deep', '/w/src/b', '/w/docs']);
  folders.of(document('/w/src/b/y.ts'), '');
  await folders.idle;
  expect(fake.listed).toHaveLength(6);
  folders.dispose();
});

test('the folder that is being typed comes right behind the own one', async () => {
  await known("import x from '../b/");
  expect(fake.listed.slice(0, 2)).toEqual(['/w/src/a', '/w/src/b']);
});

test('folders of others, hidden ones and those outside of the workspace folder are not listed', async () => {
  disk('/w/src/a/file.ts', '/w/node_modules/x/i.js', '/w/.git/config', '/w/__pycache__/a.pyc', '/other/a.ts');
  expect(Object.keys((await known("import x from '../../../other/")) ?? {})).toEqual(['/w/src/a', '/w/src', '/w']);
});

test('nothing is listed outside a workspace folder, or of files that are not on this machine', async () => {
  expect(await known('', document('/tmp/a.ts'))).toBeUndefined();
  expect(await known('', document('/w/a.ts', 'vscode-vfs'))).toBeUndefined();
  expect(fake.listed).toEqual([]);
});

test('there is a limit for the names of a folder, those of all, and the folders', async () => {
  const many = (folder: string, n: number) => Array.from({ length: n }, (_, i) => `${folder}/f${i}.ts`);
  disk('/w/src/a/file.ts', ...many('/w/src', 500));
  expect(Object.keys((await known()) ?? {})).toEqual(['/w/src/a', '/w']);
  disk('/w/src/a/file.ts', ...Array.from({ length: 9 }, (_, i) => many(`/w/src/d${i}`, 400)).flat());
  const names = Object.values((await known()) ?? {}).flat();
  expect(names.length).toBeGreaterThan(2600);
  expect(names.length).toBeLessThanOrEqual(3000);
  disk('/w/src/a/file.ts', ...Array.from({ length: 100 }, (_, i) => `/w/src/d${i}/x.ts`));
  expect(Object.keys((await known()) ?? {})).toHaveLength(64);
});

test('a link to nothing may be a file or a folder', async () => {
  fake.files.set('/w/src/a/gone', 64);
  fake.files.set('/w/src/a/linked', 66);
  expect((await known())?.['/w/src/a']).toEqual(['file.ts', 'deep/', 'gone', 'gone/', 'linked/']);
});

test('a folder is listed again after a file in it is created or deleted, or the folder itself', async () => {
  const folders = new Folders();
  const listedAfter = async (change: () => void): Promise<string[]> => {
    fake.listed = [];
    change();
    folders.of(FILE, '');
    await folders.idle;
    return fake.listed;
  };
  expect(await listedAfter(() => {})).toHaveLength(6);
  expect(await listedAfter(() => {})).toEqual([]);
  expect(await listedAfter(() => fake.created[0]?.(fake.uri('/w/src/b/new.ts')))).toEqual(['/w/src/b']);
  expect(await listedAfter(() => fake.deleted[0]?.(fake.uri('/w/src/a')))).toEqual([
    '/w/src/a',
    '/w/src',
    '/w/src/a/deep',
  ]);
  expect(fake.glob).toEqual(['**/*', false, true, false]);
  const before = fake.numDisposed;
  folders.dispose();
  expect(fake.numDisposed - before).toBe(7);
});

test('a folder is listed again after the editor changed or saved a file that is not known', async () => {
  const folders = new Folders();
  const listedAfter = async (name: string, event: object): Promise<string[]> => {
    fake.listed = [];
    fake.changed[name]?.(event);
    folders.of(FILE, '');
    await folders.idle;
    return fake.listed;
  };
  folders.of(FILE, '');
  await folders.idle;
  const [one, two] = [fake.uri('/w/src/b/new.ts'), fake.uri('/w/docs/new.md')];
  expect(await listedAfter('onDidCreateFiles', { files: [one, two] })).toEqual(['/w/src/b', '/w/docs']);
  expect(await listedAfter('onDidDeleteFiles', { files: [one] })).toEqual(['/w/src/b']);
  expect(await listedAfter('onDidRenameFiles', { files: [{ oldUri: one, newUri: two }] })).toEqual([
    '/w/src/b',
    '/w/docs',
  ]);
  expect(await listedAfter('onDidSaveTextDocument', { uri: fake.uri('/w/src/b/y.ts') })).toEqual([]);
  expect(await listedAfter('onDidSaveTextDocument', { uri: one })).toEqual(['/w/src/b']);
  folders.dispose();
});

test('a folder is listed again after a minute, and its old names count until then', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const folders = new Folders();
  folders.of(FILE, '');
  await folders.idle;
  disk('/w/src/a/file.ts', '/w/src/a/new.ts');
  vi.setSystemTime(Date.now() + 59_000);
  expect(folders.of(FILE, '')?.['/w/src/a']).toEqual(['file.ts', 'deep/']);
  await folders.idle;
  expect(fake.listed).toHaveLength(6);
  vi.setSystemTime(Date.now() + 2000);
  expect(folders.of(FILE, '')?.['/w/src/a']).toEqual(['file.ts', 'deep/']);
  await folders.idle;
  expect(folders.of(FILE, '')?.['/w/src/a']).toEqual(['file.ts', 'new.ts']);
  folders.dispose();
  vi.useRealTimers();
});

test('no more folders are looked at than can be sent', async () => {
  const numFolders = 64;
  const all = Array.from({ length: 300 * numFolders }, (_, i) => `/w/src/d${i % numFolders}/e${i}/x.ts`);
  disk('/w/src/a/file.ts', ...all);
  const folders = new Folders();
  folders.of(FILE, '');
  await folders.idle;
  fake.numJoined = 0;
  folders.of(FILE, '');
  expect(fake.numJoined).toBeLessThan(2 * numFolders);
  folders.dispose();
});

test('a listing during which the folder changes does not count', async () => {
  const folders = new Folders();
  folders.of(FILE, '');
  await Promise.resolve();
  disk('/w/src/a/file.ts', '/w/src/a/new.ts');
  fake.created[0]?.(fake.uri('/w/src/a/new.ts'));
  await folders.idle;
  folders.of(FILE, '');
  await folders.idle;
  expect(folders.of(FILE, '')?.['/w/src/a']).toEqual(['file.ts', 'new.ts']);
  folders.dispose();
});

test.each([
  ["import x from './", '.'],
  ["import x from './text", '.'],
  ["import x from '../a/b/te", '../a/b'],
  ['const x = require("../../', '../..'],
  ["import x from 'a/b/", '.'],
  ['x = ', '.'],
  ['from .', '.'],
  ['from .a.b', 'a/b'],
  ['from ..a import x', '../a'],
  ['from ... import ', '../..'],
  ['from a.b import ', '.'],
])('%s names %s', (before, folder) => {
  expect(typedFolder(before)).toBe(folder);
});
