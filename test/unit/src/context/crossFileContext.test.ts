/** Which other files a completion may copy from. */
import { beforeEach, expect, test, vi } from 'vitest';
import type { Settings } from '../../../../src/config.ts';
import { editor, FakeDocument } from '../../../support/editor/fakeEditor.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { copySources, crossFileContext } = await import('../../../../src/context/crossFileContext.ts');

const completion = { enable: true, languages: ['*'], exclude: ['**/*.key.ts'], snippets: true };
const settings = { current: { completion } } as unknown as Settings;
const code = 'export const a = 1;\nexport const b = 2;\n';

function choose(
  current: FakeDocument,
  others: FakeDocument[],
  { copiesFiles = true, project = [] as string[] } = {},
): string[] {
  editor.documents = [current, ...others];
  editor.tabs = [current, ...others];
  const sent: string[] = [];
  const sync = (document: { uri: { path: string } }): string => {
    sent.push(document.uri.path);
    return document.uri.path;
  };
  const near = (_: unknown, open: ReadonlySet<string>): string[] =>
    project.filter((path) => !open.has(`file://${path}`));
  const chosen = copySources(
    current as never,
    { state: { kind: 'ready', model: { copiesFiles } } } as never,
    { sync } as never,
    { near } as never,
    settings,
  );
  // Nothing else is sent.
  expect(sent).toEqual(chosen.filter((path) => !project.includes(path) || others.some(({ uri }) => uri.path === path)));
  return chosen;
}

const file = (path: string, languageId = 'typescript', text = code): FakeDocument =>
  Object.assign(new FakeDocument(text, path), { languageId });

beforeEach(() => {
  editor.reset();
  completion.snippets = true;
});

test('at most five open files are used: the nearest folders first, then in the order of their tabs', () => {
  const paths = [
    '/w/x/far.ts',
    '/w/src/a/deep/one.ts',
    '/w/src/other.ts',
    '/w/src/a/near.ts',
    '/w/src/b/side.ts',
    '/w/src/a/next.ts',
    '/w/y.ts',
  ];
  expect(
    choose(
      file('/w/src/a/this.ts'),
      paths.map((path) => file(path)),
    ),
  ).toEqual(['/w/src/a/deep/one.ts', '/w/src/a/near.ts', '/w/src/a/next.ts', '/w/src/other.ts', '/w/src/b/side.ts']);
});

test('only files with text, in languages that import each other, are used', () => {
  const others = [
    file('/w/a.py', 'python'),
    file('/w/b.tsx', 'typescriptreact'),
    file('/w/c.js', 'javascript'),
    file('/w/d.json', 'json'),
    file('/w/empty.ts', 'typescript', ''),
    file('/w/data.ts', 'typescript', `${code}${'x'.repeat(200_000)}`),
  ];
  expect(choose(file('/w/this.ts'), others)).toEqual(['/w/b.tsx', '/w/c.js']);
  expect(choose(file('/w/this.py', 'python'), others)).toEqual(['/w/a.py']);
});

test('excluded files are never used, and no file if the setting is off or the model does not copy', () => {
  const others = [file('/w/secret.key.ts'), file('/w/a.ts')];
  expect(choose(file('/w/this.ts'), others)).toEqual(['/w/a.ts']);
  expect(choose(file('/w/this.ts'), others, { copiesFiles: false })).toEqual([]);
  completion.snippets = false;
  expect(choose(file('/w/this.ts'), others)).toEqual([]);
});

test('files of the project that are not open come after the open ones', () => {
  expect(choose(file('/w/src/this.ts'), [file('/w/far/a.ts')], { project: ['/w/src/near.ts', '/w/far/a.ts'] })).toEqual(
    ['/w/far/a.ts', '/w/src/near.ts'],
  );
});

test.each([
  ['typescript', ['vitest'], ['a.ts']],
  ['python', ['vitest'], ['a.ts']],
  ['vue', undefined, ['a.ts']],
  ['go', undefined, undefined],
])('the packages of a project, and the names of its files, are sent with a file of %s', (languageId, names, files) => {
  const lines: string[] = [];
  const of = (_: unknown, before: string) => {
    lines.push(before);
    return { '/w': ['a.ts'] };
  };
  const given = crossFileContext(
    {
      snippets: { gather: () => [] },
      project: { near: () => [] },
      packages: { of: () => ['vitest'] },
      folders: { of },
    },
    { state: { kind: 'ready', model: { copiesFiles: true } } } as never,
    { sync: () => '' },
    settings,
  )(file('/w/a', languageId, 'a\nimport b') as never, 8);
  expect(given.packages).toEqual(names);
  expect(given.folders?.['/w']).toEqual(files);
  expect(lines).toEqual(files ? ['import'] : []);
});

test.each([
  ['', true],
  ['imp', true],
  ['const x', true],
  ['const x = ', true],
  ['  const { a, b } = await imp', true],
  ['  load: () => ', true],
  ['  load: req', true],
  ['} fr', true],
  ["export * from './", true],
  ['    from .', true],
  ['  }', false],
  ['  this.rows.', false],
  ['const x = rows.', false],
  ['  return rows', false],
])('names of files are sent only with a line that may become an import: %j', (line, isSent) => {
  let numAsked = 0;
  const of = () => {
    numAsked++;
    return { '/w': ['a.ts'] };
  };
  const given = crossFileContext(
    {
      snippets: { gather: () => [] },
      project: { near: () => [] },
      packages: { of: () => undefined },
      folders: { of },
    },
    { state: { kind: 'ready', model: { copiesFiles: true } } } as never,
    { sync: () => '' },
    settings,
  )(file('/w/a', 'typescript', line) as never, line.length);
  expect(given.folders).toEqual(isSent ? { '/w': ['a.ts'] } : undefined);
  expect(numAsked).toBe(isSent ? 1 : 0);
});
