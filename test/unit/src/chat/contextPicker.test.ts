/** What can be attached: all open editors without secret files, and any file by its name, also in a large workspace. */
import { expect, test, vi } from 'vitest';

const world = vi.hoisted(() => ({ choose: '', files: ['/a.ts', '/b.ts', '/.env'] }));
vi.mock('../../../../src/vscode.ts', () => {
  const uri = (path: string): object => ({
    path,
    toString: () => path,
    with: (change: { path: string }) => uri(change.path),
  });
  class TabInputText {
    uri: unknown;
    constructor(path: string) {
      this.uri = uri(path);
    }
  }
  return {
    TabInputText,
    Uri: { parse: uri },
    l10n: { t: (text: string) => text },
    languages: {
      match: ({ pattern }: { pattern: string }, { uri: { path } }: { uri: { path: string } }) =>
        pattern === '**/.env' && path.endsWith('/.env') ? 1 : 0,
    },
    window: {
      tabGroups: { all: [{ tabs: ['/a.ts', '/.env', '/b.ts'].map((path) => ({ input: new TabInputText(path) })) }] },
      showQuickPick: async (items: Promise<{ label: string }[]>) =>
        (await items).find(({ label }) => label.includes(world.choose)),
    },
    workspace: {
      asRelativePath: ({ path }: { path: string }) => path.slice(1),
      findFiles: async (glob: string) =>
        (glob === '**/*'
          ? world.files
          : world.files.length > 8 && glob === '**/*[tT][aA][rR][gG]*'
            ? ['/Target.ts']
            : []
        ).map(uri),
      getWorkspaceFolder: () => undefined,
    },
  };
});
const { FileFinder } = await import('../../../../src/chat/fileFinder.ts');
const { pickContext } = await import('../../../../src/chat/contextPicker.ts');

test.each([
  ['All open editors', ['a.ts', 'b.ts']],
  ['b.ts', ['b.ts']],
  ['.env', []],
])('%s', async (label, names) => {
  world.choose = label;
  const refs = await pickContext(
    new FileFinder({ current: { completion: { exclude: ['**/.env'] } } } as never),
    undefined,
  );
  expect(refs.map(({ name }) => name)).toEqual(names);
});

test('a name with a line break is one line of the list and of the chip', async () => {
  world.files = ['/odd\nfolder/two\nlines.ts'];
  world.choose = 'two';
  const [ref] = await pickContext(new FileFinder({ current: { completion: { exclude: [] } } } as never), undefined);
  expect([ref?.name, ref?.path]).toEqual(['two\\nlines.ts', 'odd\\nfolder/two\\nlines.ts']);
  // The file is found by its own name.
  expect(ref?.uri).toBe('/odd\nfolder/two\nlines.ts');
});

test('a file beyond the limit of the list is found by its name', async () => {
  world.files = Array.from({ length: 8000 }, (_, i) => `/build/f${i}.o`);
  const finder = new FileFinder({ current: { completion: { exclude: [] } } } as never);
  expect((await finder.find('targ')).map(({ name }) => name)).toEqual(['Target.ts']);
});
