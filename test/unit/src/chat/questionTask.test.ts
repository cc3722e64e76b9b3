/**
 * From a question to the engine's task: the target of a slash command, its prompt, refusals, and that the meter
 * measures the same task.
 */
import { beforeEach, expect, test, vi } from 'vitest';
import type { ContextRef } from '../../../../src/chat/chatMessages.ts';

class Position {
  readonly line: number;
  readonly character: number;
  constructor(line: number, character: number) {
    this.line = line;
    this.character = character;
  }
}

const world = vi.hoisted(() => ({ documents: [] as unknown[] }));
vi.mock('../../../../src/vscode.ts', () => {
  class Range {
    start: Position;
    end: Position;
    constructor(startLine: number, startCharacter: number, endLine: number, endCharacter: number) {
      this.start = new Position(startLine, startCharacter);
      this.end = new Position(endLine, endCharacter);
    }
    get isEmpty(): boolean {
      return this.start.line === this.end.line && this.start.character === this.end.character;
    }
    contains(other: Range): boolean {
      return this.start.line <= other.start.line && other.end.line <= this.end.line;
    }
  }
  return {
    Range,
    Uri: { parse: (path: string) => ({ path, toString: () => path }) },
    SymbolKind: {},
    l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
    commands: { executeCommand: async () => undefined },
    workspace: {
      get textDocuments() {
        return world.documents;
      },
      asRelativePath: ({ path }: { path: string }) => path.slice(1),
      openTextDocument: async ({ path }: { path: string }) =>
        world.documents.find((document) => (document as { uri: { path: string } }).uri.path === path),
    },
  };
});
const { QuestionTasks } = await import('../../../../src/chat/questionTask.ts');

const TEXT = 'class Stock {\n  count() {\n    return 1;\n  }\n}\n\nfunction open() {\n  return 2;\n}\n';
const FILE: ContextRef = { kind: 'file', uri: '/a.ts', name: 'a.ts', path: 'a.ts' };

function documentOf(path: string, text: string) {
  const lines = text.split('\n');
  const offsetAt = ({ line, character }: Position) =>
    lines.slice(0, line).reduce((sum, each) => sum + each.length + 1, 0) + character;
  return {
    uri: { path, toString: () => path },
    lineCount: lines.length,
    offsetAt,
    validateRange: (range: unknown) => range,
    getText: (range?: { start: Position; end: Position }) =>
      range ? text.slice(offsetAt(range.start), offsetAt(range.end)) : text,
    lineAt: (line: number) => ({
      text: lines[line]!,
      range: { end: new Position(line, lines[line]!.length) },
      isEmptyOrWhitespace: !lines[line]!.trim(),
      firstNonWhitespaceCharacterIndex: /^\s*/.exec(lines[line]!)![0].length,
    }),
  };
}

function tasksOf(canEdit: boolean, cursor: Position) {
  const document = documentOf('/a.ts', TEXT);
  world.documents = [document];
  const model = { name: 'small', canEdit };
  return new QuestionTasks({
    client: { ready: async () => model, state: { kind: 'ready', model } } as never,
    mirror: { sync: ({ uri }: { uri: unknown }) => String(uri) } as never,
    settings: { current: { completion: { exclude: [] } } } as never,
    editor: () => ({ document, selection: { active: cursor, isEmpty: true } }) as never,
  });
}

const INSIDE_COUNT = new Position(2, 4);
const prepared = (result: Awaited<ReturnType<InstanceType<typeof QuestionTasks>['prepare']>>) => {
  if (!('task' in result)) throw new Error('not asked');
  return { ...result, task: result.task() };
};

beforeEach(() => {
  world.documents = [];
});

test.each([
  ['/explain', 'count', 'What does `count` do?'],
  ['/explain open', 'open', 'What does `open` do?'],
  ['/explain `Stock`', 'Stock', 'What does `Stock` do?'],
])('%s is about %s', async (question, symbol, prompt) => {
  const tasks = tasksOf(false, INSIDE_COUNT);
  const refs = await tasks.contextFor(question, [FILE]);
  expect(refs).toMatchObject([FILE, { kind: 'selection', name: symbol, symbol }]);
  // The wording that a small model was trained on, without repeating the definition.
  expect(prepared(await tasks.prepare(question, refs, [], false))).toMatchObject({
    prompt,
    task: { kind: 'chat', docIds: ['/a.ts'], messages: [{ role: 'user', content: prompt }] },
  });
  expect(prepared(await tasks.prepare(question, refs, [], false)).task).not.toHaveProperty('snippets');
});

test('a model that follows instructions gets the definition with its lines', async () => {
  const tasks = tasksOf(true, INSIDE_COUNT);
  const refs = await tasks.contextFor('/doc', [FILE]);
  const { task } = prepared(await tasks.prepare('/doc', refs, [], false));
  expect(task).toMatchObject({ snippets: [{ path: '/a.ts', startLine: 1, text: '  count() {\n    return 1;\n  }' }] });
});

test.each(['/fix', '/tests', '/doc'])(
  '%s is refused for a small model, unless the user asks anyway',
  async (question) => {
    const tasks = tasksOf(false, INSIDE_COUNT);
    expect(await tasks.prepare(question, [FILE], [], false)).toEqual({ refused: 'small' });
    expect(prepared(await tasks.prepare(question, [FILE], [], true)).task).toMatchObject({
      kind: 'chat',
      anyway: true,
    });
  },
);

test('a summary uses the summarize task, for the file or the selection', async () => {
  const tasks = tasksOf(false, INSIDE_COUNT);
  expect(await tasks.contextFor('/summarize', [FILE])).toEqual([FILE]);
  expect(prepared(await tasks.prepare('/summarize', [FILE], [], false)).task).toEqual({
    kind: 'summarize',
    docId: '/a.ts',
  });
  const selection: ContextRef = {
    ...FILE,
    kind: 'selection',
    range: { startLine: 6, startCharacter: 0, endLine: 9, endCharacter: 0 },
  };
  expect(prepared(await tasks.prepare('/summarize', [FILE, selection], [], false)).task).toEqual({
    kind: 'summarize',
    docId: '/a.ts',
    range: { start: TEXT.indexOf('function'), end: TEXT.length },
  });
});

test('a command without a target is not sent', async () => {
  const tasks = tasksOf(false, INSIDE_COUNT);
  for (const command of ['/summarize', '/explain'])
    expect(await tasks.prepare(command, [], [], false)).toEqual({
      missing: expect.stringMatching(/^Nothing is attached to the question/),
    });
  expect(prepared(await tasks.prepare('/explain what a monad is', [], [], false)).task).toMatchObject({ kind: 'chat' });
});

test.each(['/explain', '/explain open', '/explain `Stock.count`'])(
  '%s takes nothing from a file that is open but not attached',
  async (question) => {
    const tasks = tasksOf(true, INSIDE_COUNT);
    expect(await tasks.contextFor(question, [])).toEqual([]);
    expect(await tasks.contextFor(question, [{ ...FILE, uri: '/src', kind: 'folder' }])).toMatchObject([
      { kind: 'folder' },
    ]);
    // Measured at each key, before the question is sent.
    expect((await tasks.measure(question, [], []))?.task()).not.toHaveProperty('snippets');
  },
);

test('a selection that stays attached without its file still has its definition', async () => {
  const tasks = tasksOf(true, INSIDE_COUNT);
  const selection: ContextRef = {
    ...FILE,
    kind: 'selection',
    range: { startLine: 6, startCharacter: 9, endLine: 6, endCharacter: 13 },
  };
  expect(await tasks.contextFor('/explain', [selection])).toMatchObject([{ kind: 'selection', symbol: 'open' }]);
});

test('a summary leaves out other attachments and says so in a note', async () => {
  const tasks = tasksOf(false, INSIDE_COUNT);
  const refs: ContextRef[] = [
    FILE,
    { kind: 'file', uri: '/b.ts', name: 'b.ts', path: 'b.ts' },
    { kind: 'folder', uri: '/src', name: 'src', path: 'src' },
  ];
  const { task, notes } = prepared(await tasks.prepare('/summarize', refs, [], false));
  expect(task).toEqual({ kind: 'summarize', docId: '/a.ts' });
  expect(notes).toEqual([
    expect.stringMatching(/^b\.ts is left out: a summary covers one file/),
    expect.stringMatching(/^src is left out/),
  ]);
});

test.each(['Why?', '/explain', '/explain open', '/summarize', '/summarize open', '/summarize in two words'])(
  'the meter measures the task that is then sent: %s',
  async (question) => {
    const tasks = tasksOf(false, INSIDE_COUNT);
    const history = [
      { role: 'user' as const, content: 'Hi' },
      { role: 'assistant' as const, content: 'Yes.' },
    ];
    const measured = await tasks.measure(question, [FILE], history);
    const asked = prepared(await tasks.prepare(question, await tasks.contextFor(question, [FILE]), history, false));
    expect(measured?.task()).toEqual(asked.task);
    expect(measured?.gathered.notes).toEqual(asked.notes);
  },
);
