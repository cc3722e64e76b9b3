/** Globs of the settings, held against whole paths as the editor does. */
import { expect, test, vi } from 'vitest';
import { FakeDocument } from './fakeEditor.ts';

vi.mock('../../src/vscode.ts', async () => (await import('./fakeEditor.ts')).vscodeApi);
const { globMatches, mayBeKept } = await import('../../src/completion/filter.ts');

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
])('%s for %s: %s', (glob, path, fits) => expect(globMatches(new FakeDocument('', path) as never, glob)).toBe(fits));

test.each<[uri: string, kept: boolean]>([
  ['file:///w/a.ts', true],
  ['vscode-remote://host/w/a.ts', true],
  ['file:///w/b.key', false],
  ['untitled:Untitled-1', false],
  ['vscode-vfs://github/w/a.ts', false],
  ['vscode-notebook-cell:///w/a.ipynb', false],
])('%s may be kept on the disk: %s', (uri, kept) => {
  const [, scheme, path] = /^([\w-]+):(?:\/\/)?(.*)$/.exec(uri)!;
  const document = new FakeDocument('', path!);
  Object.assign(document, { uri: { scheme, path } });
  expect(mayBeKept(document as never, { exclude: ['**/*.key'] } as never)).toBe(kept);
});
