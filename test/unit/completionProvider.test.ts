/** Ghost text between an editor and an engine that both take their time: nothing old, nothing twice, nothing after switching off. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Settings } from '../../src/config.ts';
import type { Done } from '../../src/connection.ts';
import type { DocumentMirror } from '../../src/documentMirror.ts';
import type { EngineClient, GenerateRequest } from '../../src/engineClient.ts';
import type { Log } from '../../src/log.ts';

const editor = vi.hoisted(() => ({ changed: new Set<(event: unknown) => void>(), triggered: 0, active: undefined as unknown }));
vi.mock('../../src/vscode.ts', () => ({
  EndOfLine: { LF: 1, CRLF: 2 },
  InlineCompletionTriggerKind: { Invoke: 0, Automatic: 1 },
  Range: class {},
  languages: { match: () => 0 },
  commands: { executeCommand: async () => void editor.triggered++ },
  window: { get activeTextEditor() { return editor.active; } },
  workspace: {
    asRelativePath: () => 'b.ts',
    onDidChangeTextDocument: (listener: (event: unknown) => void) => {
      editor.changed.add(listener);
      return { dispose: () => editor.changed.delete(listener) };
    },
  },
}));
const { CompletionProvider } = await import('../../src/completion/provider.ts');

const DONE: Done = {
  type: 'done', requestId: '', finishReason: 'stop', text: 'xyz', tokenIds: [], logprobs: [], diagnostics: [],
  usage: { promptTokens: 4, cachedTokens: 3, completionTokens: 1, blockTokens: 2 }, timings: { queueMs: 0, ttftMs: 1, tpotMs: 1 },
};

class FakeDocument {
  uri = { scheme: 'file', toString: () => 'file:///b.ts' };
  languageId = 'typescript';
  eol = 1;
  isClosed = false;
  version = 1;
  text = 'f(';
  numRead = 0;

  getText(): string {
    this.numRead++;
    return this.text;
  }

  offsetAt = ({ character }: { character: number }) => character;

  type(text: string): void {
    this.text += text;
    this.version++;
    for (const listener of editor.changed) listener({ document: this });
  }
}

function providerOf(generate: (request: GenerateRequest) => Promise<Done>, completion: Partial<Settings['current']['completion']> = {}) {
  const logged: string[] = [];
  const log = { info: (line: string) => logged.push(line), debug: () => {} } as unknown as Log;
  const settings = { current: { completion: { enable: true, debounceMs: 20, maxTokens: 0, languages: ['*'], exclude: [], ...completion } } } as unknown as Settings;
  const requests: GenerateRequest[] = [];
  const client = {
    state: { kind: 'ready', model: { canComplete: true } },
    generate: (request: GenerateRequest) => {
      requests.push(request);
      return generate(request);
    },
  } as unknown as EngineClient;
  const document = new FakeDocument();
  const provider = new CompletionProvider(client, { sync: () => document.uri.toString() } as unknown as DocumentMirror, settings, log);
  const provide = async (line = 0): Promise<string[]> => {
    const position = { line, character: document.text.length };
    editor.active = { document, selection: { active: position } };
    const token = { isCancellationRequested: false, onCancellationRequested: () => ({ dispose() {} }) };
    const items = await provider.provideInlineCompletionItems(document as never, position as never, { triggerKind: 1 } as never, token as never);
    return items.map((item) => String(item.insertText));
  };
  return { provider, document, provide, requests, logged };
}

beforeEach(() => {
  editor.changed.clear();
  editor.triggered = 0;
});

test('typed on during the debounce: nothing is asked, nothing is kept under the old text', async () => {
  const { provider, document, provide, requests } = providerOf(async () => DONE);
  await provide();
  provider.forget();
  document.type('a');
  const asked = provide();
  document.type('b');
  expect(await asked).toEqual([]);
  expect(provider.last?.reason).toBe('superseded by further typing');
  expect(requests.length).toBe(1);
});

test('switched off during the debounce: nothing is asked', async () => {
  const { provider, document, provide, requests } = providerOf(async () => DONE);
  await provide();
  document.type('a');
  const asked = provide();
  provider.dispose();
  expect(await asked).toEqual([]);
  expect(requests.length).toBe(1);
});

test('while completions are off no text is read, and that is logged once', async () => {
  const { document, provide, logged } = providerOf(async () => DONE, { enable: false });
  for (let i = 0; i < 3; i++) {
    document.type('a');
    expect(await provide()).toEqual([]);
  }
  expect(document.numRead).toBe(0);
  expect(logged.length).toBe(1);
});

test('the log counts what was written and does not quote it', async () => {
  const { provide, logged, provider } = providerOf(async () => ({ ...DONE, text: 'secret\nword' }));
  expect(await provide()).toEqual(['secret\nword']);
  expect(logged[0]).toContain('11 characters, 2 lines from engine');
  expect(logged[0]).not.toContain('secret');
  expect(provider.last?.shown).toBe('secret\nword');
});

describe('an answer that comes after the editor’s patience', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));

  async function late(first: string, whole: string, numQuestions: number): Promise<void> {
    let end = (_: Done): void => {};
    const { provide } = providerOf(({ onChunk }) => {
      if (first) onChunk?.(first);
      return new Promise((resolve) => {
        end = resolve;
      });
    });
    const asked = Array.from({ length: numQuestions }, () => provide());
    await vi.advanceTimersByTimeAsync(1000);
    expect(await Promise.all(asked)).toEqual(Array(numQuestions).fill(first ? [first] : []));
    end({ ...DONE, text: whole });
    await vi.advanceTimersByTimeAsync(1);
    vi.useRealTimers();
  }

  test.each([
    ['nothing was returned', '', 'xyz', 1],
    ['the whole goes on from what was returned', 'x', 'xyz', 1],
    ['the whole is what was returned', 'xyz', 'xyz', 0],
    ['the whole is another text', 'ab', 'xyz', 0],
  ])('%s', async (_, first, whole, numTriggered) => {
    await late(first, whole, 2);
    expect(editor.triggered).toBe(numTriggered);
  });
});
