/** What `inspect` says of a folder, by itself and through the engine's messages: with no model, and while one loads. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AssistantServer } from '../../../engine/server/assistantServer.ts';
import { inspectFolder } from '../../../engine/server/inspection.ts';
import { ModelText, selfTest } from '../../../engine/text/format/modelText.ts';
import type { EngineMessage } from '../../../engine/protocol/messages.ts';
import { completionPrompt } from '../../../engine/text/prompt/completionPrompt.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { BUILT_IN } from '../../support/builtIn.ts';

const root = join(import.meta.dirname, '../../..');
const fixture = (name: string) => join(root, 'test/fixtures', name);

describe('a folder', () => {
  it.each([
    [
      'model',
      {
        name: 'kvasir-starter',
        architecture: 'qwen3',
        parameters: BUILT_IN.parameters,
        contextTokens: BUILT_IN.contextTokens,
        canComplete: true,
        canChat: true,
        canEdit: false,
      },
    ],
    [
      'test/fixtures/models/qwen2-untied-bf16',
      { name: 'qwen2-untied-bf16', canComplete: true, canChat: true, canEdit: true, note: '' },
    ],
    ['test/fixtures/models/llama-mha-f16', { canComplete: false, canChat: true }],
    ['test/fixtures/models/gguf-llama', { canComplete: false, canChat: true }],
  ])('%s', async (name, expected) => {
    expect(await inspectFolder(join(root, name))).toMatchObject(expected);
  });

  it.each([
    ['bad/cfg_no_hidden_size', 'config.json: hidden_size'],
    ['bad/tok_invalid_json', 'tokenizer.json is not valid JSON'],
    ['unsupported/gpt-oss-config-only', 'gpt_oss'],
    ['nowhere', 'cannot be opened'],
  ])('%s is refused with a reason', async (name, reason) => {
    await expect(inspectFolder(fixture(name))).rejects.toThrow(reason);
  });
});

/** A folder whose tokenizer.json is changed. */
function folderWith(change: (json: Record<string, unknown>) => void): string {
  const dir = mkdtempSync(join(tmpdir(), 'kvasir-inspection-'));
  const good = fixture('models/qwen2-untied-bf16');
  for (const file of ['config.json', 'tokenizer_config.json', 'model.safetensors'])
    cpSync(join(good, file), join(dir, file));
  const json = JSON.parse(readFileSync(join(good, 'tokenizer.json'), 'utf8'));
  change(json);
  writeFileSync(join(dir, 'tokenizer.json'), JSON.stringify(json));
  return dir;
}

const split = (Regex: string) => ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false });

it.each<[string, (json: Record<string, unknown>) => void, RegExp]>([
  ['an invalid regular expression', (json) => (json.pre_tokenizer = split('(?<name')), /tokenizer\.json: .*Invalid/],
  ['an inline flag', (json) => (json.pre_tokenizer = split('(?i)a')), /tokenizer\.json: .*Invalid/],
  ['an unknown step', (json) => (json.normalizer = { type: 'Nmt' }), /tokenizer\.json: /],
  ['a step that is not supported', (json) => (json.normalizer = { type: 'Precompiled' }), /Precompiled, which is not/],
  [
    'no decoder',
    (json) => Object.assign(json, { decoder: { type: 'Fuse' }, pre_tokenizer: null }),
    /comes back changed/,
  ],
  ['a normalizer of another name', (json) => (json.normalizer = { type: 'Uppercase' }), /tokenizer\.json: /],
])('is refused as by a load: %s', async (_, change, reason) => {
  const dir = folderWith(change);
  try {
    const refusal = async (work: Promise<unknown>) =>
      await work.then(
        () => 'none',
        (error: Error) => error.message,
      );
    const loaded = await refusal(ModelText.load(dir).then((text) => selfTest(text, 1e6)));
    expect(loaded).toMatch(reason);
    expect(await refusal(inspectFolder(dir))).toBe(loaded);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

it('says why unknown fill-in-the-middle tokens are not used, until kvasir.json gives their order', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'kvasir-inspection-'));
  try {
    const good = fixture('models/qwen2-untied-bf16');
    for (const file of ['config.json', 'tokenizer_config.json', 'model.safetensors'])
      cpSync(join(good, file), join(dir, file));
    const text = readFileSync(join(good, 'tokenizer.json'), 'utf8');
    writeFileSync(join(dir, 'tokenizer.json'), text.replaceAll(/<\|fim_(\w+)\|>/g, '<fim-$1>'));
    const fault =
      'its fill-in-the-middle tokens (<fim-prefix>, <fim-middle>, <fim-suffix>, <fim-pad>) belong to no known family ' +
      'of models; kvasir.json can name them and their order (completion.fim)';
    expect(await inspectFolder(dir)).toMatchObject({ canComplete: false, canChat: true, completionFault: fault });
    const unknown = await ModelText.load(dir);
    expect([unknown.fim, unknown.fimFault]).toEqual([undefined, fault]);

    const fim = {
      order: 'suffix-prefix-middle',
      prefix: '<fim-prefix>',
      suffix: '<fim-suffix>',
      middle: '<fim-middle>',
    };
    writeFileSync(join(dir, 'kvasir.json'), JSON.stringify({ completion: { fim } }));
    expect(await inspectFolder(dir)).toMatchObject({ canComplete: true, completionFault: null });
    const prompt = async (): Promise<string> => {
      const text = await ModelText.load(dir);
      const layout = new Layout(text, { contextTokens: 512, numParameters: 1e6 });
      const { promptIds } = completionPrompt(layout, new SourceDocument('a', 'a.ts', 'x = y\n'), 4, {
        answerTokens: 8,
      });
      return text.tokenizer.decode(promptIds);
    };
    expect(await prompt()).toBe('<fim-suffix>y\n<fim-prefix>x = <fim-middle>');
    writeFileSync(join(dir, 'kvasir.json'), JSON.stringify({ completion: { fim: { ...fim, file: '<|file_sep|>' } } }));
    expect(await prompt()).toBe('<|file_sep|>a.ts\n<fim-suffix>y\n<fim-prefix>x = <fim-middle>');
  } finally {
    rmSync(dir, { recursive: true });
  }
});

it('takes abilities from the manifest, as a load does', async () => {
  const { note, kvBytesPerToken, weightsBytes } = await inspectFolder(join(root, 'model'));
  expect(note).toBe(BUILT_IN.manifest.note.en);
  expect(kvBytesPerToken.int8).toBe(BUILT_IN.kvBytesPerToken);
  expect(weightsBytes.int8).toBeLessThan(weightsBytes.float32);
});

describe('the engine', () => {
  /** Its load never ends. */
  function engine(): { assistant: AssistantServer; next: (requestId: string) => Promise<EngineMessage> } {
    const seen: EngineMessage[] = [];
    const assistant = new AssistantServer(
      (message) => void seen.push(message),
      () => new Promise(() => {}),
    );
    const next = async (requestId: string) => {
      await expect
        .poll(() => seen.find((message) => 'requestId' in message && message.requestId === requestId), {
          timeout: 10_000,
        })
        .toBeDefined();
      return seen.find((message) => 'requestId' in message && message.requestId === requestId) as EngineMessage;
    };
    return { assistant, next };
  }

  it('answers without a model', async () => {
    const { assistant, next } = engine();
    assistant.handle({ type: 'inspect', requestId: 'a', modelDir: join(root, 'model') });
    expect(await next('a')).toMatchObject({
      type: 'reply',
      value: { kind: 'inspected', model: { name: 'kvasir-starter', modelDir: join(root, 'model') } },
    });
  });

  it('replies with plain data', async () => {
    const { assistant, next } = engine();
    assistant.handle({ type: 'inspect', requestId: 'a', modelDir: join(root, 'model') });
    const message = await next('a');
    expect(JSON.parse(JSON.stringify(message))).toEqual(message);
    expect(JSON.stringify(message).length).toBeLessThan(2000);
  });

  it('answers while a model loads, and says why a folder cannot run', async () => {
    const { assistant, next } = engine();
    assistant.handle({
      type: 'load',
      requestId: 'load',
      modelDir: 'x',
      cacheDir: 'x',
      precision: 'int8',
      maxBytes: 0,
      threads: 0,
    });
    assistant.handle({ type: 'inspect', requestId: 'a', modelDir: fixture('bad/cfg_no_hidden_size') });
    expect(await next('a')).toMatchObject({
      type: 'error',
      code: 'modelInvalid',
      message: expect.stringContaining('config.json: hidden_size'),
    });
  });
});
