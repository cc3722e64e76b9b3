/** The list behind the chat's "+": all open editors are attached together, but a secret among them only by its own name. */
import { expect, test, vi } from 'vitest';

const world = vi.hoisted(() => ({ choose: '' }));
vi.mock('../../src/vscode.ts', () => {
  const uri = (path: string): object => ({ path, toString: () => path, with: (change: { path: string }) => uri(change.path) });
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
    languages: { match: ({ pattern }: { pattern: string }, { uri: { path } }: { uri: { path: string } }) => (pattern === '**/.env' && path.endsWith('/.env') ? 1 : 0) },
    window: {
      tabGroups: { all: [{ tabs: ['/a.ts', '/.env', '/b.ts'].map((path) => ({ input: new TabInputText(path) })) }] },
      showQuickPick: async (items: Promise<{ label: string }[]>) => (await items).filter(({ label }) => label.includes(world.choose)),
    },
    workspace: { asRelativePath: ({ path }: { path: string }) => path.slice(1), findFiles: async () => ['/a.ts', '/b.ts', '/.env'].map(uri), getWorkspaceFolder: () => undefined },
  };
});
const { FileFinder } = await import('../../src/chat/fileFinder.ts');
const { pickContext } = await import('../../src/chat/contextPicker.ts');

test.each([['All open editors', ['a.ts', 'b.ts']], ['b.ts', ['b.ts']], ['.env', []]])('%s', async (label, names) => {
  world.choose = label;
  const refs = await pickContext(new FileFinder({ current: { completion: { exclude: ['**/.env'] } } } as never), undefined);
  expect(refs.map(({ name }) => name)).toEqual(names);
});
