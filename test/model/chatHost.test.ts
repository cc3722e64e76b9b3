/**
 * The chat host over the real engine with the built-in model: stopping during the load, asking again, the exact meter,
 * parts that do not fit, commands, and a second question about a file.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { AssistantServer } from '../../engine/server/assistantServer.ts';
import type { EngineMessage } from '../../engine/protocol/messages.ts';
import { EngineClient } from '../../src/client/engineClient.ts';
import type { EngineState } from '../../src/client/engineLifecycle.ts';
import { BUILT_IN, counted } from '../support/builtIn.ts';
import { INVENTORY } from '../vscode/inventory.ts';

const editor = vi.hoisted(() => ({ active: undefined as unknown, documents: [] as unknown[] }));
vi.mock('../../src/vscode.ts', () => {
  const event = () => ({ dispose() {} });
  return {
    EventEmitter: class {
      #listeners: ((value: unknown) => void)[] = [];
      event = (listener: () => void) => {
        this.#listeners.push(listener);
        return event();
      };
      fire = (value: unknown) => {
        for (const listener of this.#listeners) listener(value);
      };
      dispose(): void {}
    },
    Range: class {
      start: { line: number; character: number };
      end: { line: number; character: number };
      constructor(line: number, character: number, endLine: number, endCharacter: number) {
        this.start = { line, character };
        this.end = { line: endLine, character: endCharacter };
      }
      contains = (other: { start: { line: number }; end: { line: number } }) =>
        this.start.line <= other.start.line && other.end.line <= this.end.line;
    },
    SymbolKind: {},
    TabInputTextDiff: class {},
    EndOfLine: { LF: 1, CRLF: 2 },
    Uri: { parse: (path: string) => ({ path, toString: () => path }) },
    l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
    env: { language: 'en' },
    languages: { match: () => 1 },
    commands: { executeCommand: async () => undefined },
    window: {
      get activeTextEditor() {
        return editor.active;
      },
      visibleTextEditors: [],
      tabGroups: { onDidChangeTabs: event, activeTabGroup: {} },
      onDidChangeActiveTextEditor: event,
      onDidChangeTextEditorSelection: event,
    },
    workspace: {
      get textDocuments() {
        return editor.documents;
      },
      openTextDocument: async ({ path }: { path: string }) =>
        editor.documents.find((document) => String((document as { uri: unknown }).uri) === path),
      asRelativePath: ({ path }: { path: string }) => path.slice(1),
      onDidChangeTextDocument: event,
      onDidSaveTextDocument: event,
      onDidCloseTextDocument: event,
    },
  };
});
const { ChatController } = await import('../../src/chat/chatController.ts');
const { DocumentMirror } = await import('../../src/client/documentMirror.ts');

const cacheDir = await mkdtemp(join(tmpdir(), 'kvasir-chat-'));
afterAll(() => rm(cacheDir, { recursive: true, force: true }));

function documentOf(path: string, text: string) {
  const lines = text.split('\n');
  const offsetAt = ({ line, character }: { line: number; character: number }) =>
    lines.slice(0, line).reduce((sum, each) => sum + each.length + 1, 0) + character;
  const lineAt = (line: number) => ({
    text: lines[line]!,
    range: { end: { line, character: lines[line]!.length } },
    isEmptyOrWhitespace: !lines[line]!.trim(),
    firstNonWhitespaceCharacterIndex: /^\s*/.exec(lines[line]!)![0].length,
  });
  return {
    uri: { path, toString: () => path },
    version: 1,
    eol: 1,
    lineCount: lines.length,
    offsetAt,
    lineAt,
    getText: (range?: { start: never; end: never }) =>
      range ? text.slice(offsetAt(range.start), offsetAt(range.end)) : text,
    validateRange: (range: unknown) => range,
  };
}

function open(path: string, text: string, line: number): void {
  const document = documentOf(path, text);
  editor.documents = [document];
  editor.active = {
    document,
    selection: {
      isEmpty: true,
      active: { line, character: 4 },
      start: { line, character: 4 },
      end: { line, character: 4 },
    },
  };
}

const listeners = new Set<(state: EngineState) => void>();
const client = new EngineClient({
  createTransport: () => {
    let receive = (_: EngineMessage): void => {};
    const waiting: EngineMessage[] = [];
    const engine = new AssistantServer((message) => {
      waiting.push(message);
      setImmediate(() => receive(waiting.shift()!));
    });
    return {
      send: (message) => engine.handle(structuredClone(message)),
      onMessage: (listener) => {
        receive = listener;
      },
      onExit() {},
      dispose() {},
    };
  },
  loadOptions: () => ({ modelDir: 'model', cacheDir, precision: 'int8', maxBytes: 50e6, threads: 1 }),
  onState: (state) => {
    for (const listener of listeners) listener(state);
  },
  onActivity() {},
  log() {},
  t: (text) => text,
});
afterAll(() => client.dispose('the test is over'));
const chatSettings = { maxTokens: 0 };
const settings = { current: { completion: { exclude: [] }, chat: chatSettings } } as never;
const newChat = () =>
  new ChatController(
    { get: () => undefined, update: async () => {}, keys: () => [] },
    {
      client,
      onState: (listener: never) => {
        listeners.add(listener);
        return { dispose() {} };
      },
    } as never,
    new DocumentMirror(client),
    settings,
  );

const footer = (text: string | undefined) => {
  const [, reused, prompt] = /^([\d,]+) of ([\d,]+) tokens reused/.exec(text ?? '') ?? [];
  return { reused: Number(reused?.replaceAll(',', '')), prompt: Number(prompt?.replaceAll(',', '')) };
};
const lastOf = (chat: InstanceType<typeof ChatController>) =>
  chat.current.turns.at(-1) as Extract<ReturnType<typeof chat.current.saved.turns.at>, { role: 'assistant' }>;

open('/w/src/inventory.ts', INVENTORY, 59);
const chat = newChat();
const measured = async (draft: string) => {
  chat.meter = null;
  chat.draft = draft;
  await vi.waitFor(() => expect(chat.meter).not.toBeNull(), { timeout: 120_000 });
  return chat.meter!;
};

test('a question that is stopped while the model loads can be asked again', async () => {
  chat.watch(true);
  const asked = chat.ask('What is this file for?');
  chat.stop();
  await asked;
  expect(lastOf(chat)).toMatchObject({ state: 'done', text: '', notes: ['Stopped.'] });
  await chat.regenerate();
  expect(lastOf(chat)).toMatchObject({
    state: 'done',
    text: expect.stringMatching(/./),
    footer: expect.stringMatching(/tokens reused/),
  });
  expect(chat.current.turns).toHaveLength(2);
});

test.each(['What is this?', '/summarize'])(
  'the meter is exact, and the file is not computed again: %s',
  async (question) => {
    const { label, notes } = await measured(question);
    expect(notes).toEqual([]);
    expect(chat.sizes.get('/w/src/inventory.ts')?.tokens).toMatch(/^\d+$/);
    await chat.ask(question);
    const { reused, prompt } = footer(lastOf(chat).footer);
    expect(label).toBe(`${counted(prompt)} of ${counted(BUILT_IN.contextTokens)} tokens`);
    expect(prompt - reused).toBeLessThan(60);
  },
);

test('a summary of a definition without a comment is what the code says', async () => {
  await chat.ask('/summarize StockEntry');
  expect(lastOf(chat)).toMatchObject({
    text: expect.stringMatching(
      /^No comment above `StockEntry` says what it does\. `StockEntry` is defined on line \d+: /,
    ),
    linesOf: { uri: '/w/src/inventory.ts' },
  });
  expect(lastOf(chat).footer).toBeUndefined();
});

test('/explain asks about the definition at the cursor; /fix is refused, and tried on request', async () => {
  await chat.ask('/explain');
  expect(chat.current.turns.at(-2)).toMatchObject({
    text: '/explain',
    prompt: 'What does `totalValue` do?',
    context: [{ kind: 'file' }, { kind: 'selection', name: 'totalValue' }],
  });
  // The definition's comment answers the question, so no model is asked.
  expect(lastOf(chat)).toMatchObject({
    text: expect.stringMatching(
      /^The comment of `Inventory\.totalValue` \(line \d+\) says:\n\n> The value of everything in stock\.$/,
    ),
    linesOf: { uri: '/w/src/inventory.ts' },
  });
  expect(lastOf(chat).footer).toBeUndefined();
  await chat.ask('/fix');
  expect(lastOf(chat)).toMatchObject({ refused: BUILT_IN.manifest.name, text: '' });
  await chat.regenerate(true);
  expect(lastOf(chat)).not.toHaveProperty('refused');
  expect(lastOf(chat).footer).toBeDefined();
});

test('parts that do not fit are reported before the question, for a chat and for a summary', async () => {
  // The content of the answer does not matter here.
  chatSettings.maxTokens = 32;
  chat.newChat();
  const numLines = Math.ceil(BUILT_IN.contextTokens / 5);
  open(
    '/w/src/large.ts',
    Array.from({ length: numLines }, (_, i) => `export const value${i} = compute(${i});\n`).join(''),
    numLines >> 1,
  );
  const other = newChat();
  other.watch(true);
  await vi.waitFor(() => expect(other.meter).not.toBeNull(), { timeout: 120_000 });
  expect(other.meter!.notes).toEqual([
    expect.stringMatching(new RegExp(`^src/large\\.ts: lines 1-\\d+, \\d+-${numLines} of ${numLines} left out$`)),
  ]);
  expect(other.sizes.get('/w/src/large.ts')?.omitted).toMatch(/^[\d,]+ left out$/);
  // A summary reads the file from its start, wherever the cursor is.
  other.draft = '/summarize';
  await vi.waitFor(
    () =>
      expect(other.meter!.notes).toEqual([
        expect.stringMatching(new RegExp(`^src/large\\.ts: lines \\d+-${numLines} of ${numLines} left out$`)),
      ]),
    { timeout: 120_000 },
  );
  const { label } = other.meter!;
  await other.ask('/summarize');
  // The model invents functions for such a file, so the outline of the whole file is shown.
  expect(lastOf(other).notes).toEqual(['from the code of src/large.ts, not written by the model']);
  expect(label).toBe(`${counted(footer(lastOf(other).footer).prompt)} of ${counted(BUILT_IN.contextTokens)} tokens`);
  await other.dispose();
  await chat.dispose();
});
