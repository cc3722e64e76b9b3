/**
 * What `Kvasir: Add to Chat` attaches from the explorer and from an editor, and undoing the deletion of conversations.
 */
import { beforeEach, expect, test, vi } from 'vitest';
import type { ContextRef } from '../../../../src/chat/chatMessages.ts';

interface Pick {
  items: { label: string; conversation?: unknown }[];
  delete(label: string): void;
  hide(): void;
}
const world = vi.hoisted(() => ({
  commands: new Map<string, (...args: unknown[]) => unknown>(),
  editor: undefined as unknown,
  messages: [] as { text: string; choose(button: string | undefined): void }[],
  pick: undefined as Pick | undefined,
}));
vi.mock('../../../../src/vscode.ts', () => ({
  FileType: { Directory: 2 },
  Range: class {},
  commands: {
    registerCommand: (name: string, run: (...args: unknown[]) => unknown) => void world.commands.set(name, run),
  },
  env: { language: 'en' },
  l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
  ThemeIcon: class {},
  QuickPickItemKind: { Separator: -1 },
  window: {
    get activeTextEditor() {
      return world.editor;
    },
    showInformationMessage: (text: string) =>
      new Promise((choose) => {
        // Like the editor, which keeps the last of equal messages.
        const before = world.messages.findIndex((message) => message.text === text);
        if (before >= 0) world.messages.splice(before, 1)[0]!.choose(undefined);
        world.messages.push({ text, choose });
      }),
    createQuickPick: () => {
      const on = {} as Record<'button' | 'hide', (event?: unknown) => void>;
      const pick = {
        items: [] as Pick['items'],
        onDidTriggerItemButton: (listener: never) => {
          on.button = listener;
        },
        onDidHide: (listener: never) => {
          on.hide = listener;
        },
        onDidAccept: () => {},
        show() {},
        dispose() {
          pick.items = [];
        },
        delete: (label: string) => on.button({ item: pick.items.find((item) => item.label === label) }),
        hide: () => on.hide(),
      };
      world.pick = pick;
      return pick;
    },
  },
  workspace: { asRelativePath: ({ path }: { path: string }) => path.slice(1), fs: { stat: async () => ({ type: 1 }) } },
}));
const { registerChatCommands } = await import('../../../../src/chat/chatCommands.ts');

let added: string[] = [];
const uri = (path: string) => ({ path, toString: () => path });

beforeEach(() => {
  added = [];
  const selection = { isEmpty: false, start: { line: 2, character: 0 }, end: { line: 4, character: 0 } };
  world.editor = { document: { uri: uri('/a.ts') }, selection };
  registerChatCommands({
    chat: {
      context: {
        add: (refs: ContextRef[]) => {
          added = refs.map(({ name }) => name);
        },
      },
    },
    open: async () => {},
  } as never);
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

const saved = (id: string, text: string) => ({
  id,
  createdAt: 0,
  updatedAt: 0,
  turns: [{ id: 't1', role: 'user', text, context: [] }],
});

/** Conversations as the commands see them; `current` is the one that is shown. */
function listOf(...titles: string[]) {
  const chat = {
    conversations: titles.map((title, i) => saved(`c${i}`, title)),
    current: { id: 'c0' },
    delete: (id: string) => {
      const at = chat.conversations.findIndex((each) => each.id === id);
      const [deleted] = chat.conversations.splice(at, at < 0 ? 0 : 1);
      return deleted && (() => void chat.conversations.splice(at, 0, deleted));
    },
  };
  world.messages = [];
  registerChatCommands({ chat, open: async () => {} } as never);
  const choose = async (index: number, button: string | undefined) => {
    world.messages.splice(index, 1)[0]!.choose(button);
    await new Promise(setImmediate);
  };
  return {
    ids: () => chat.conversations.map(({ id }) => id),
    texts: () => world.messages.map(({ text }) => text),
    choose,
  };
}

test('Clear Chat can be undone; for an empty conversation no undo is offered', async () => {
  const { ids, texts, choose } = listOf('One');
  world.commands.get('kvasir.clearChat')!();
  expect([ids(), texts()]).toEqual([[], ['The conversation is deleted.']]);
  await choose(0, 'Undo');
  expect(ids()).toEqual(['c0']);
  world.commands.get('kvasir.clearChat')!();
  await choose(0, undefined);
  world.commands.get('kvasir.clearChat')!();
  expect([ids(), texts()]).toEqual([[], []]);
});

test('the list stays open after a deletion, and an undone deletion shows the conversation in it again', async () => {
  const { ids, texts, choose } = listOf('One', 'Two', 'Three');
  world.commands.get('kvasir.showConversations')!();
  const pick = world.pick!;
  for (const title of ['One', 'Two', 'Three']) pick.delete(title);
  expect([ids(), texts()]).toEqual([
    [],
    [
      'The conversation "One" is deleted.',
      'The conversation "Two" is deleted.',
      'The conversation "Three" is deleted.',
    ],
  ]);
  expect(pick.items.filter(({ conversation }) => conversation)).toEqual([]);
  await choose(1, 'Undo');
  expect(ids()).toEqual(['c1']);
  expect(pick.items.filter(({ conversation }) => conversation).map(({ label }) => label)).toEqual(['Two']);
  pick.hide();
  await choose(1, 'Undo');
  expect(ids()).toContain('c2');
  expect(pick.items, 'a closed list is left alone').toEqual([]);
});

test('if the editor shows one message for two deletions, Undo restores both', async () => {
  const { ids, texts, choose } = listOf('Summarize this file', 'Summarize this file');
  world.commands.get('kvasir.showConversations')!();
  for (let i = 0; i < 2; i++) {
    world.pick!.delete('Summarize this file');
    await new Promise(setImmediate);
  }
  expect([ids(), texts()]).toEqual([[], ['The conversation "Summarize this file" is deleted.']]);
  await choose(0, 'Undo');
  expect([...ids()].sort()).toEqual(['c0', 'c1']);
});
