/** What `Kvasir: Add to Chat` attaches: the explorer names files, an editor its selection. */
import { beforeEach, expect, test, vi } from 'vitest';
import type { ContextRef } from '../../src/chat/chatMessages.ts';

const world = vi.hoisted(() => ({ commands: new Map<string, (...args: unknown[]) => unknown>(), editor: undefined as unknown }));
vi.mock('../../src/vscode.ts', () => ({
  FileType: { Directory: 2 },
  Range: class {},
  commands: { registerCommand: (name: string, run: (...args: unknown[]) => unknown) => void world.commands.set(name, run) },
  window: { get activeTextEditor() { return world.editor; } },
  workspace: { asRelativePath: ({ path }: { path: string }) => path.slice(1), fs: { stat: async () => ({ type: 1 }) } },
}));
const { registerChatCommands } = await import('../../src/chat/chatCommands.ts');

let added: string[] = [];
const uri = (path: string) => ({ path, toString: () => path });

beforeEach(() => {
  added = [];
  const selection = { isEmpty: false, start: { line: 2, character: 0 }, end: { line: 4, character: 0 } };
  world.editor = { document: { uri: uri('/a.ts') }, selection };
  registerChatCommands({ chat: { context: { add: (refs: ContextRef[]) => { added = refs.map(({ name }) => name); } } }, open: async () => {} } as never);
});

test.each([
  ['from the palette, what is selected', [], ['a.ts:3-4']],
  ['from the editor’s menu, what is selected', [uri('/a.ts'), {}], ['a.ts:3-4']],
  ['from the explorer, the file, though something is selected in it', [uri('/a.ts'), [uri('/a.ts')]], ['a.ts']],
  ['several files', [uri('/a.ts'), [uri('/a.ts'), uri('/b.ts')]], ['a.ts', 'b.ts']],
])('%s', async (_, args, names) => {
  await world.commands.get('kvasir.addToChat')!(...args);
  expect(added).toEqual(names);
});
