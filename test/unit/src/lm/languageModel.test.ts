/**
 * The language model provider with a scripted engine: the listed model, the requests to the engine, and their results.
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ModelInfo } from '../../../../engine/protocol/stats.ts';
import type { Task } from '../../../../engine/protocol/tasks.ts';
import { BUILT_IN, counted } from '../../../support/builtIn.ts';

const editor = vi.hoisted(() => ({ registered: [] as string[], language: 'en' }));
vi.mock('../../../../src/vscode.ts', () => {
  class LanguageModelError extends Error {
    code: string;
    constructor(message?: string, code = '') {
      super(message);
      this.code = code;
    }
    static NotFound = (message: string) => new LanguageModelError(message, 'NotFound');
  }
  return {
    EventEmitter: class {
      event = () => ({ dispose() {} });
      fire(): void {}
      dispose(): void {}
    },
    LanguageModelError,
    LanguageModelTextPart: class {
      readonly value: string;
      constructor(value: string) {
        this.value = value;
      }
    },
    l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
    env: {
      get language() {
        return editor.language;
      },
    },
    lm: {
      registerLanguageModelChatProvider: (vendor: string) => {
        editor.registered.push(vendor);
        return { dispose: () => editor.registered.pop() };
      },
    },
  };
});
const vscode = await import('../../../../src/vscode.ts');
const { RequestError } = await import('../../../../engine/protocol/errors.ts');
const { LanguageModelProvider } = await import('../../../../src/lm/languageModelProvider.ts');
const { modelCard } = await import('../../../../src/lm/modelCard.ts');

/**
 * What the built-in model reads of a request: of its context, the answer is kept, and something for the chat template.
 */
const { contextTokens, manifest } = BUILT_IN;
const INPUT_TOKENS = contextTokens - manifest.chat.maxTokens - 64;

const text = (value: string) => ({ value });
const user = (...values: string[]) => ({ role: 1, content: values.map(text), name: undefined });

function setUp(
  options: {
    model?: string;
    maxTokens?: number;
    generate?: (request: {
      task: () => Task;
      onChunk: (text: string) => void;
      signal: AbortSignal;
    }) => Promise<unknown>;
    ready?: () => Promise<unknown>;
  } = {},
) {
  const requests: { task: () => Task; priority: string; sampling: unknown }[] = [];
  const client = {
    state: { kind: 'stopped' as const },
    ready: options.ready ?? (async () => {}),
    countText: async (counted: string) => counted.length,
    generate: async (request: never) => {
      requests.push(request);
      return (await options.generate?.(request)) ?? { diagnostics: [] };
    },
  };
  const host = { client, onState: () => ({ dispose() {} }), quietly: (work: () => unknown) => work() };
  const settings = {
    current: { model: options.model ?? '', chat: { maxTokens: options.maxTokens ?? 0 } },
    onDidChange: () => ({ dispose() {} }),
  };
  const provider = new LanguageModelProvider(process.cwd(), host as never, settings as never, { info() {} } as never);
  const parts: string[] = [];
  let cancel = (): void => {};
  const token = {
    isCancellationRequested: false,
    onCancellationRequested: (listener: () => void) => {
      cancel = listener;
      return { dispose() {} };
    },
  };
  const ask = (messages: unknown[], modelOptions?: Record<string, unknown>) =>
    provider.provideLanguageModelChatResponse(
      {} as never,
      messages as never,
      { modelOptions } as never,
      { report: (part) => parts.push((part as { value: string }).value) },
      token as never,
    );
  return { provider, ask, requests, parts, cancel: () => cancel() };
}

describe('the listed model', () => {
  it('is the built-in model, from its folder', async () => {
    const { provider } = setUp();
    expect(await provider.provideLanguageModelChatInformation()).toMatchObject([
      {
        id: 'kvasir-starter',
        family: 'qwen3',
        version: manifest.version,
        maxInputTokens: INPUT_TOKENS,
        maxOutputTokens: manifest.chat.maxTokens,
        capabilities: { toolCalling: false, imageInput: false },
      },
    ]);
  });

  it('has the answer length of the setting, up to the engine’s share of the context', async () => {
    const listed = async (maxTokens: number) =>
      (await setUp({ maxTokens }).provider.provideLanguageModelChatInformation())[0];
    expect(await listed(100)).toMatchObject({
      maxOutputTokens: 100,
      maxInputTokens: contextTokens - 100 - 64,
    });
    expect(await listed(4000)).toMatchObject({
      maxOutputTokens: Math.floor(contextTokens / 6),
    });
  });

  it('is absent if the setting names no model, and the registration ends with the provider', async () => {
    const { provider } = setUp({ model: '/nowhere' });
    expect(await provider.provideLanguageModelChatInformation()).toEqual([]);
    const before = editor.registered.length;
    provider.dispose();
    expect(editor.registered.length).toBe(before - 1);
  });
});

describe('the card of a folder', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'kvasir-card-'));
    cpSync('test/fixtures/models/qwen3-tied-sharded', dir, { recursive: true });
  });
  afterEach(() => {
    editor.language = 'en';
    rmSync(dir, { recursive: true });
  });

  it('has defaults without a manifest', () => {
    expect(modelCard(dir, 0, null)).toMatchObject({
      family: 'qwen3',
      version: '',
      note: '',
      parameters: null,
      canChat: true,
      maxOutputTokens: 85,
      maxInputTokens: 512 - 85 - 64,
    });
  });
  it('cannot chat without a chat template', () => {
    rmSync(join(dir, 'chat_template.jinja'));
    expect(modelCard(dir, 0, null)?.canChat).toBe(false);
  });
  it('cannot chat if its manifest says so', () => {
    writeFileSync(join(dir, 'kvasir.json'), '{"name":"mine","can":{"chat":false}}');
    expect(modelCard(dir, 0, null)).toMatchObject({ name: 'mine', canChat: false });
  });
  it.each([
    ['en', '{"en":"Small.","pt":"Pequeno."}', 'Small.'],
    ['pt-br', '{"en":"Small.","pt":"Pequeno."}', 'Pequeno.'],
    ['de', '{"en":"Small.","pt":"Pequeno."}', 'Small.'],
    ['pt-br', '"Small."', 'Small.'],
    ['en', '{"pt":"Pequeno."}', 'Pequeno.'],
    ['en', '[1]', ''],
    ['en', '3', ''],
  ])('has its note in the language of the editor (%s): %s', (language, note, shown) => {
    editor.language = language;
    writeFileSync(join(dir, 'kvasir.json'), `{"note":${note}}`);
    expect(modelCard(dir, 0, null)?.note).toBe(shown);
  });
  it('is null for another architecture or a broken folder', () => {
    writeFileSync(join(dir, 'config.json'), '{"model_type":"bert"}');
    expect(modelCard(dir, 0, null)).toBeNull();
    writeFileSync(join(dir, 'config.json'), '{');
    expect(modelCard(dir, 0, null)).toBeNull();
  });
  it('is the engine’s information for a loaded model', () => {
    const loaded = {
      name: 'L',
      architecture: 'llama',
      parameters: 5,
      contextTokens: 1000,
      canChat: false,
      note: { en: 'Small.', pt: 'Pequeno.' },
    } as ModelInfo;
    expect(modelCard(dir, 0, loaded)).toMatchObject({
      name: 'L',
      family: 'llama',
      parameters: 5,
      canChat: false,
      note: 'Small.',
      maxOutputTokens: 166,
      maxInputTokens: 1000 - 166 - 64,
    });
    editor.language = 'pt-br';
    expect(modelCard(dir, 0, loaded)?.note).toBe('Pequeno.');
  });
  it('leaves room for reasoning, as the engine does', () => {
    const loaded = { architecture: 'qwen3', contextTokens: 6000, note: { en: '', pt: '' } } as ModelInfo;
    expect(modelCard(dir, 100, loaded)).toMatchObject({ maxOutputTokens: 100, maxInputTokens: 6000 - 100 - 64 });
    const reasons = { ...loaded, reasoningTokens: 8192 };
    expect(modelCard(dir, 100, reasons)).toMatchObject({ maxOutputTokens: 100, maxInputTokens: 6000 - 1000 - 64 });
  });
});

describe('a request', () => {
  it('is sent with the priority "chat", and its text streams', async () => {
    const { ask, requests, parts } = setUp({
      generate: async ({ onChunk }) => {
        for (const piece of ['a', 'b']) onChunk(piece);
        return { diagnostics: [] };
      },
    });
    await ask([user('one '), user('two'), { role: 2, content: [text('three')] }, user('four')], {
      maxTokens: 7,
      temperature: 0.5,
    });
    expect(parts).toEqual(['a', 'b']);
    expect(requests[0]).toMatchObject({ priority: 'chat', sampling: { maxTokens: 7, temperature: 0.5 } });
    expect(requests[0]?.task()).toEqual({
      kind: 'chat',
      docIds: [],
      asIs: true,
      messages: [
        { role: 'user', content: 'one \n\ntwo' },
        { role: 'assistant', content: 'three' },
        { role: 'user', content: 'four' },
      ],
    });
  });

  it('that is cancelled aborts the request in the engine', async () => {
    let aborted = false;
    const { ask, cancel, requests } = setUp({
      generate: ({ signal }) =>
        new Promise((resolve) =>
          signal.addEventListener('abort', () => {
            aborted = true;
            resolve({ diagnostics: [] });
          }),
        ),
    });
    const answered = ask([user('x')]);
    await expect.poll(() => requests.length).toBe(1);
    cancel();
    await answered;
    expect(aborted).toBe(true);
  });

  it.each([
    [
      'too long',
      [user('x'.repeat(INPUT_TOKENS + 1))],
      '',
      `The request takes ${counted(INPUT_TOKENS + 1)} tokens, but kvasir-starter reads ${counted(INPUT_TOKENS)}.`,
    ],
    [
      'with a picture',
      [{ role: 1, content: [{ mimeType: 'image/png', data: new Uint8Array(1) }] }],
      '',
      'this request contains a part of type image/png',
    ],
    ['that ends with an answer', [user('x'), { role: 2, content: [text('y')] }], '', 'must be the user’s'],
    ['of nothing', [user(' ')], '', 'must be the user’s'],
  ])('%s is refused with a message', async (_, messages, code, message) => {
    const { ask, requests } = setUp();
    const error = await ask(messages).catch((refusal: Error) => refusal);
    expect(error).toBeInstanceOf(vscode.LanguageModelError);
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
    expect(requests).toEqual([]);
  });

  it('without an engine fails as a missing model, with the reason', async () => {
    const { ask, provider } = setUp({
      ready: () => Promise.reject(new RequestError('modelInvalid', 'config.json: hidden_size is missing.')),
    });
    await expect(ask([user('x')])).rejects.toMatchObject({
      code: 'NotFound',
      message: 'config.json: hidden_size is missing.',
    });
    await expect(provider.provideTokenCount({} as never, 'four')).resolves.toBe(4);
    await expect(provider.provideTokenCount({} as never, user('a', 'b') as never)).resolves.toBe(2);
  });
});
