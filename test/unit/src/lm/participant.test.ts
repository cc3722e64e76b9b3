/** `@kvasir` with a scripted engine: the requests, refusals for a small model, and the results. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatTask, Task } from '../../../../engine/protocol/tasks.ts';
import type { GenerateRequest } from '../../../../src/client/engineClient.ts';

const editor = vi.hoisted(() => ({
  active: undefined as unknown,
  created: [] as string[],
  documents: [] as { uri: { toString(): string } }[],
}));
vi.mock('../../../../src/vscode.ts', () => {
  class Uri {
    readonly path: string;
    constructor(path: string) {
      this.path = path;
    }
    static joinPath = () => new Uri('/icon');
    static parse = (path: string) => new Uri(path);
    toString = () => this.path;
  }
  class Range {
    readonly start: { line: number; character: number };
    readonly end: { line: number; character: number };
    constructor(startLine: number, startCharacter: number, endLine: number, endCharacter: number) {
      this.start = { line: startLine, character: startCharacter };
      this.end = { line: endLine, character: endCharacter };
    }
  }
  class Location {
    readonly uri: Uri;
    readonly range: unknown;
    constructor(uri: Uri, range: unknown) {
      this.uri = uri;
      this.range = range;
    }
  }
  class MarkdownString {
    readonly value: string;
    constructor(value: string) {
      this.value = value;
    }
  }
  return {
    Uri,
    Range,
    Location,
    MarkdownString,
    SymbolKind: {},
    l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
    chat: {
      createChatParticipant: (id: string) => {
        editor.created.push(id);
        return { dispose: () => editor.created.pop() };
      },
    },
    commands: { executeCommand: async () => [] },
    languages: {
      match: (selector: { pattern?: string }, { uri }: { uri: Uri }) =>
        selector.pattern ? Number(uri.path.endsWith(selector.pattern)) : 1,
    },
    window: {
      get activeTextEditor() {
        return editor.active;
      },
      visibleTextEditors: [],
    },
    workspace: {
      asRelativePath: (uri: Uri) => uri.path.slice(1),
      get textDocuments() {
        return editor.documents;
      },
      openTextDocument: async (uri: Uri) =>
        editor.documents.find((document) => String(document.uri) === uri.path) ??
        Promise.reject(new Error('no such file')),
    },
  };
});
const vscode = await import('../../../../src/vscode.ts');
const { Participant } = await import('../../../../src/lm/participant.ts');

const file = (path: string) => new (vscode.Uri as unknown as new (path: string) => never)(path);
const lines = (first: number, last: number) => new vscode.Range(first, 0, last, 0);
function documentOf(path: string, text: string) {
  const document = {
    uri: file(path),
    text,
    languageId: 'typescript',
    getText: () => text,
    validateRange: (range: unknown) => range,
    offsetAt: () => 5,
    lineCount: 1,
    lineAt: () => ({ text: '', range: { end: {} } }),
  };
  editor.documents.push(document);
  return document;
}
const show = (document: unknown, selection: object = { isEmpty: true, active: {} }) => {
  editor.active = { document, selection };
};

beforeEach(() => {
  editor.active = undefined;
  editor.documents = [];
});

function setUp(options: { canEdit?: boolean; diagnostics?: string[]; fails?: string; waits?: boolean } = {}) {
  const tasks: Task[] = [];
  let aborted = false;
  const client = {
    state: { kind: 'ready', model: { canEdit: options.canEdit ?? false } },
    ready: async () => ({ name: 'tiny', canEdit: options.canEdit ?? false }),
    generate: async ({ task, onChunk, signal }: GenerateRequest) => {
      tasks.push(task());
      if (options.fails) throw new Error(options.fails);
      onChunk?.('An ');
      onChunk?.('answer.');
      if (options.waits) await new Promise((resolve) => signal?.addEventListener('abort', resolve));
      aborted = signal?.aborted === true;
      return { diagnostics: options.diagnostics ?? [] };
    },
  };
  const host = { client, quietly: (work: () => unknown) => work() };
  const settings = { current: { chat: { maxTokens: 0 }, completion: { exclude: ['.env'] } } };
  const participant = new Participant(
    file('/'),
    host as never,
    { sync: ({ uri }: { uri: unknown }) => String(uri) } as never,
    settings as never,
  );
  const said: string[] = [];
  const buttons: string[] = [];
  const stream = {
    reference() {},
    markdown: (text: string) => said.push(text),
    button: ({ command }: { command: string }) => buttons.push(command),
  };
  let cancel = (): void => {};
  const token = {
    onCancellationRequested: (listener: () => void) => {
      cancel = listener;
      return { dispose() {} };
    },
  };
  const ask = (prompt: string, more: { command?: string; references?: unknown[]; history?: unknown[] } = {}) =>
    participant.answer(
      { prompt, references: more.references ?? [], command: more.command } as never,
      { history: more.history ?? [] } as never,
      stream as never,
      token as never,
    );
  return { participant, ask, tasks, said, buttons, cancel: () => cancel(), wasAborted: () => aborted };
}

it('the participant is registered under the name in package.json and removed with the extension', () => {
  const { participant } = setUp();
  expect(editor.created.at(-1)).toBe('kvasir.assistant');
  const before = editor.created.length;
  participant.dispose();
  expect(editor.created.length).toBe(before - 1);
});

describe('a question', () => {
  it('about the active file streams its answer', async () => {
    show(documentOf('/a.ts', 'text'));
    const { ask, tasks, said } = setUp();
    expect(await ask('Why?')).toEqual({});
    expect(said).toEqual(['An ', 'answer.']);
    expect(tasks).toEqual([
      { kind: 'chat', messages: [{ role: 'user', content: 'Why?' }], docIds: ['/a.ts'], cursor: 5 },
    ]);
  });

  it('has the attached files, selections and texts in the order of the prompt', async () => {
    documentOf('/a.ts', 'A');
    documentOf('/b.ts', 'B');
    const { ask, tasks } = setUp();
    const location = new vscode.Location(file('/b.ts'), lines(3, 4));
    await ask('Why?', {
      references: [
        { id: '3', value: 'loose text' },
        { id: '2', value: location },
        { id: '1', value: file('/a.ts') },
      ],
    });
    expect(tasks[0]).toMatchObject({
      docIds: ['/a.ts'],
      messages: [{ content: 'Why?\n\nloose text' }],
      snippets: [{ text: 'B', startLine: 3 }],
    });
  });

  it('names what could not be attached and what the engine left out', async () => {
    const { ask, said } = setUp({ canEdit: true, diagnostics: ['a.ts: lines 1-9 left out'] });
    await ask('Why?', {
      references: [
        { id: 'x', value: file('/gone.ts') },
        { id: 'image', value: { data: 1 } },
      ],
    });
    expect(said.at(-1)).toBe(
      '\n\n*image is left out: Kvasir reads text only*  \n*gone.ts is left out: no such file*  \n*a.ts: lines 1-9 left out*',
    );
  });

  it('to a small model about nothing that can be read only says why', async () => {
    const { ask, said, tasks } = setUp();
    await ask('Why?', {
      references: [
        { id: 'x', value: file('/gone.ts') },
        { id: 'image', value: { data: 1 } },
      ],
    });
    expect(said).toEqual(['image is left out: Kvasir reads text only\n\ngone.ts is left out: no such file']);
    expect(tasks).toEqual([]);
  });

  it('does not attach secret files automatically', async () => {
    show(documentOf('/.env', 'KEY=1'));
    const { ask, tasks } = setUp();
    await ask('Why?');
    expect((tasks[0] as ChatTask).docIds).toEqual([]);
  });

  it('carries the earlier turns in pairs', async () => {
    const { ask, tasks } = setUp();
    const answer = (text: string, source?: string) => ({
      response: text ? [{ value: new vscode.MarkdownString(text) }] : [],
      result: source ? { metadata: { source } } : {},
    });
    await ask('third', {
      history: [
        { prompt: 'first' },
        answer('one'),
        { prompt: 'failed' },
        answer(''),
        { prompt: '', command: 'fix' },
        answer('of a command'),
        { prompt: 'second' },
        answer('two', 'files'),
        { prompt: 'too much' },
        answer('tiny is too small for this', 'refused'),
        { prompt: 'lost' },
      ],
    });
    const { messages } = tasks[0] as ChatTask;
    expect(messages.map(({ content }) => content)).toEqual(['first', 'one', 'second', 'two', 'third']);
    expect(messages.map(({ source }) => source)).toEqual([undefined, undefined, undefined, 'files', undefined]);
  });

  it('that is cancelled aborts the request in the engine', async () => {
    const { ask, tasks, cancel, wasAborted } = setUp({ waits: true });
    const answered = ask('Why?');
    await expect.poll(() => tasks.length).toBe(1);
    cancel();
    await answered;
    expect(wasAborted()).toBe(true);
  });

  it('that fails shows the reason', async () => {
    expect(await setUp({ fails: 'the question takes 9 tokens' }).ask('Why?')).toEqual({
      errorDetails: { message: 'the question takes 9 tokens' },
    });
  });
});

describe('a command', () => {
  it.each(['fix', 'tests', 'doc'])('/%s is not sent to a model that cannot change code', async (command) => {
    const { ask, tasks, said, buttons } = setUp();
    await ask('', { command });
    expect(tasks).toEqual([]);
    expect(said).toEqual([expect.stringContaining('tiny is too small for this')]);
    expect(buttons).toEqual(['kvasir.downloadModel', 'kvasir.chooseModel']);
  });

  it('without a target is not sent', async () => {
    const { ask, tasks, said } = setUp();
    expect(await ask('', { command: 'explain' })).toEqual({});
    expect([tasks, said]).toEqual([[], [expect.stringMatching(/^Nothing is attached/)]]);
  });

  it('/explain does not attach an active secret file', async () => {
    const text = 'def token():';
    const document = documentOf('/.env', text);
    show(
      Object.assign(document, {
        lineAt: () => ({ text, range: { end: {} }, firstNonWhitespaceCharacterIndex: 0, isEmptyOrWhitespace: false }),
      }),
      { isEmpty: true, active: { line: 0, character: 5 } },
    );
    const { ask, tasks, said } = setUp({ canEdit: true });
    await ask('', { command: 'explain' });
    expect([tasks, said]).toEqual([[], [expect.stringMatching(/^Nothing is attached/)]]);
    // With an attached text the command is sent, without a snippet.
    await ask('', { command: 'explain', references: [{ id: '1', value: 'loose text' }] });
    expect(tasks[0]).not.toHaveProperty('snippets');
  });

  it('/fix is sent to a capable model, about the selection, with the user’s further words', async () => {
    show(documentOf('/a.ts', 'A'), Object.assign(lines(2, 3), { isEmpty: false, active: {} }));
    const { ask, tasks } = setUp({ canEdit: true });
    expect(await ask('the loop', { command: 'fix' })).toEqual({});
    const { messages, snippets } = tasks[0] as ChatTask;
    expect(messages[0]?.content).toMatch(/^Find the fault in the selected code.* the loop$/);
    expect(snippets).toMatchObject([{ text: 'A', startLine: 2 }]);
  });

  it('/summarize of a file uses the summarize task', async () => {
    show(documentOf('/a.ts', 'A'));
    const { ask, tasks } = setUp();
    expect(await ask('', { command: 'summarize' })).toEqual({});
    expect(tasks).toEqual([{ kind: 'summarize', docId: '/a.ts' }]);
  });
});
