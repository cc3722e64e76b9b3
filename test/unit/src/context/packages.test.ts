/** Which packages a project has, from its manifests on a fake disk. */
import path from 'node:path';
import { expect, test, vi } from 'vitest';

const fake = vi.hoisted(() => {
  const uri = (file: string): object => ({ path: file, toString: () => file });
  return {
    files: new Map<string, string>(),
    changed: [] as (() => void)[],
    numDisposed: 0,
    uri,
  };
});
vi.mock('../../../../src/vscode.ts', () => {
  const listen = (listener: () => void) => {
    fake.changed.push(listener);
    return { dispose: () => fake.numDisposed++ };
  };
  return {
    Uri: { joinPath: ({ path: base }: { path: string }, part: string) => fake.uri(path.posix.join(base, part)) },
    workspace: {
      createFileSystemWatcher: () => ({
        onDidChange: listen,
        onDidCreate: listen,
        onDidDelete: listen,
        dispose: () => fake.numDisposed++,
      }),
      getWorkspaceFolder: ({ path: file }: { path: string }) =>
        file.startsWith('/project/') ? { uri: fake.uri('/project') } : undefined,
      fs: {
        readFile: async ({ path: file }: { path: string }) => {
          const text = fake.files.get(file);
          if (text === undefined) throw new Error('no such file');
          return new TextEncoder().encode(text);
        },
      },
    },
  };
});
const { Packages } = await import('../../../../src/context/packages.ts');

const document = (file: string) => ({ uri: fake.uri(file) as never });
const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

/** What is known of a file in /project/app after reading. */
async function read(
  files: Record<string, unknown>,
  file = '/project/app/src/a.ts',
): Promise<readonly string[] | undefined> {
  fake.files = new Map(
    Object.entries(files).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
  const packages = new Packages();
  expect(packages.of(document(file))).toBeUndefined();
  await settle();
  const known = packages.of(document(file));
  packages.dispose();
  return known;
}

const APP = { name: 'app', dependencies: { react: '1' }, devDependencies: { vitest: '1' } };

test.each([
  [
    'of the nearest manifest and those above',
    { '/project/app/package.json': APP, '/project/package.json': { dependencies: { zod: '1' } } },
    ['app', 'react', 'vitest', 'zod'],
  ],
  [
    'not of a folder above the workspace',
    { '/project/package.json': APP, '/package.json': { dependencies: { zod: '1' } } },
    ['app', 'react', 'vitest'],
  ],
  ['none without a manifest', {}, undefined],
  ['none of a manifest without lists', { '/project/package.json': { type: 'module' } }, undefined],
  [
    'none of a half-written manifest',
    { '/project/app/package.json': '{"name": ', '/project/package.json': APP },
    undefined,
  ],
  ['none of a manifest that is no object', { '/project/package.json': '[]' }, undefined],
  ['none of a workspace of packages', { '/project/package.json': { ...APP, workspaces: ['a'] } }, undefined],
  [
    'none where paths have names',
    { '/project/package.json': APP, '/project/tsconfig.json': '{ "compilerOptions": { "paths": {} } }' },
    undefined,
  ],
] as const)('%s', async (_, files, expected) => {
  expect(await read(files)).toEqual(expected);
});

test('nothing is read outside a workspace', async () => {
  expect(await read({ '/tmp/package.json': APP }, '/tmp/a.ts')).toBeUndefined();
});

test('a changed manifest is read again, and an older reading does not count', async () => {
  fake.files = new Map([['/project/package.json', JSON.stringify(APP)]]);
  fake.changed.length = 0;
  const packages = new Packages();
  const file = document('/project/a.ts');
  packages.of(file);
  fake.files = new Map([['/project/package.json', JSON.stringify({ dependencies: { zod: '1' } })]]);
  for (const changed of fake.changed) changed();
  packages.of(file);
  await settle();
  expect(packages.of(file)).toEqual(['zod']);
  const before = fake.numDisposed;
  packages.dispose();
  expect(fake.numDisposed - before).toBe(4);
});
