/** A text side that does not fit together is told in a sentence when it is loaded, and what still fits goes on. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { config as speak } from '@vscode/l10n';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inspectFolder } from '../../../engine/server/inspection.ts';
import { switchOff } from '../../../engine/server/loadModel.ts';
import { ModelText, selfTest } from '../../../engine/text/format/modelText.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { describeInspected } from '../../../src/models/modelItems.ts';
import { english } from '../../support/editor/translate.ts';

const root = join(import.meta.dirname, '../../..');
let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kvasir-selftest-'));
  cpSync(join(root, 'test/fixtures/models/qwen2-untied-bf16'), dir, { recursive: true });
});
afterEach(() => rmSync(dir, { recursive: true }));

interface TokenizerFile {
  added_tokens: { id: number; content: string }[];
  model: { vocab: Record<string, number>; merges: unknown[] };
}

function change(name: string, edit: (json: never) => void): void {
  const json = JSON.parse(readFileSync(join(dir, name), 'utf8')) as never;
  edit(json);
  writeFileSync(join(dir, name), JSON.stringify(json));
}
const tokenizer = (edit: (json: TokenizerFile) => void) => change('tokenizer.json', edit);
const template = (source: string) => writeFileSync(join(dir, 'chat_template.jinja'), source);
const faults = async (vocabSize = 435) => selfTest(await ModelText.load(dir), vocabSize);

describe('models that fit', () => {
  it.each([
    'models/qwen2-untied-bf16',
    'models/qwen3-tied-sharded',
    'models/llama-mha-f16',
    'tokenizers/codellama',
    'tokenizers/deepseek',
    'tokenizers/starcoder2',
    'chat/llama3',
    'chat/loops_and_tools',
  ])('%s', async (name) => {
    const text = await ModelText.load(join(root, 'test/fixtures', name));
    expect(selfTest(text, text.tokenizer.vocabSize)).toEqual({});
  });

  it('the built-in model', async () => {
    const text = await ModelText.load(join(root, 'model'));
    expect(selfTest(text, text.tokenizer.vocabSize)).toEqual({});
  });
});

describe('chat templates', () => {
  it.each([
    [
      '{% for m in messages %}<|user|>\n{{ m.content }}<|end|>\n{% endfor %}<|assistant|>',
      'it ends an answer with <|end|>, which is not in tokenizer.json; it belongs to another model',
    ],
    ['<|im_start|>system\nhello<|im_end|>', 'it leaves the question out'],
    ["{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", 'it leaves earlier answers out'],
    ["{{ raise_exception('only with tools') }}", 'only with tools'],
  ])('%j', async (source, reason) => {
    template(source);
    expect((await faults()).chat).toContain(reason);
    expect((await faults()).complete).toBeUndefined();
  });

  it('a turn that ends with plain text is accepted if a known token ends the answer', async () => {
    template('{% for m in messages %}<|user|>\n{{ m.content }}<|endoftext|>\n{% endfor %}<|assistant|>');
    expect(await faults()).toEqual({});
  });

  it('a template without a token that ends an answer is a fault', async () => {
    template('{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}');
    for (const name of ['config.json', 'generation_config.json', 'tokenizer_config.json'])
      change(name, (json: Record<string, unknown>) => {
        delete json.eos_token_id;
        delete json.eos_token;
      });
    expect((await faults()).chat).toContain('names a token that ends an answer');
  });

  it('tokens that the model does not have are a fault', async () => {
    expect((await faults(418)).chat).toContain('<|im_end|>');
  });
});

describe('a chat template that cannot be used', () => {
  const rendersMessages = '{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}';

  it.each([
    [
      'cannot be parsed',
      `${rendersMessages}\n\n{% include 'x' %}`,
      /^chat_template\.jinja: .* read \(line 5: .*include/,
    ],
    ['is too long', ' '.repeat(65_537), /^chat_template\.jinja: .* 65537 characters/],
    ['fails when it runs', `${rendersMessages}{{ 'a'.nothing() }}`, /^chat_template\.jinja: .* used \(.*function/],
  ])('that %s switches off chat alone', async (_, source, reason) => {
    template(source);
    const text = await ModelText.load(dir);
    switchOff(text, selfTest(text, 435));
    expect(text.manifest.can).toEqual({ complete: true, chat: false, summarize: false, edit: false });
    expect(text.faults.chat).toMatch(reason);
    // What completions and the cache read of the template.
    expect(text.turn).toEqual({ before: [], after: [] });
    expect(new Layout(text, { contextTokens: 512, numParameters: 0 }).header('a.ts')).toEqual([]);
    expect(text.completionStopIds).not.toEqual([]);

    const inspected = await inspectFolder(dir);
    expect(inspected).toMatchObject({ canComplete: true, canChat: false, canEdit: false });
    expect(inspected.chatFault).toMatch(reason);
    expect(inspected.note).toContain(`It is not used for chat (${inspected.chatFault}).`);
    const found = {
      name: 'a/b',
      current: false,
      builtIn: false,
      bytes: 0,
      availableBytes: null,
      precision: 'int8',
    } as const;
    expect(describeInspected(inspected, found, english).detail).toContain(
      `completions only: ${inspected.chatFault} · reads`,
    );
  });

  it('is told in the language of the user', async () => {
    template(`${rendersMessages}{% include 'x' %}`);
    const bundle = readFileSync(join(root, 'l10n/bundle.l10n.pt-br.json'), 'utf8');
    try {
      speak({ contents: bundle });
      const text = await ModelText.load(dir);
      switchOff(text, selfTest(text, 435));
      // The reason in brackets quotes the template.
      expect(text.manifest.note.pt).toMatch(
        /Ele não é usado para conversas \(chat_template\.jinja: o formato de conversa não pode ser lido \(.*include/,
      );
      expect(text.manifest.note.pt).not.toMatch(/not used|cannot be/);
    } finally {
      speak({ contents: {} });
    }
  });

  it('refuses a model that can do nothing else, also when it is inspected', async () => {
    template('{% include "x" %}');
    tokenizer(({ added_tokens: tokens }) => {
      for (const token of tokens) token.content = token.content.replace('fim_', 'other_');
    });
    const text = await ModelText.load(dir);
    const reason = /^chat_template\.jinja: the chat template cannot be read/;
    expect(() => switchOff(text, selfTest(text, 435))).toThrow(reason);
    await expect(inspectFolder(dir)).rejects.toThrow(reason);
  });

  it('that is only slow has no fault when it is inspected', async () => {
    const loop = (body: string) => `{% for i in range(10000) %}${body}{% endfor %}`;
    template(loop(loop(loop('x'))));
    expect((await inspectFolder(dir)).chatFault).toBeNull();
  });
});

describe('fill-in-the-middle tokens', () => {
  it('that the model does not have are a fault', async () => {
    expect((await faults(422)).complete).toBe(
      'tokenizer.json: <|fim_suffix|> has the id 423, but the model has only 422 tokens',
    );
  });

  it('with the same id are a fault', async () => {
    tokenizer(({ added_tokens: tokens, model: { vocab } }) => {
      for (const { content, id } of tokens) vocab[content] = content === '<|fim_middle|>' ? 421 : id;
    });
    expect((await faults()).complete).toContain('same id as another');
  });
});

describe('unusable tokenizers', () => {
  it('a tokenizer with an incomplete vocabulary is refused', async () => {
    tokenizer(({ model: { vocab } }) => {
      vocab['two bytes'] = vocab['1']!;
      delete vocab['1'];
    });
    await expect(faults()).rejects.toThrow(/comes back changed/);
  });

  it('a tokenizer of a larger model is refused', async () => {
    await expect(faults(100)).rejects.toThrow('the file belongs to another model');
  });
});

describe('tasks that are switched off', () => {
  it('are named in the note, and the other tasks still work', async () => {
    const text = await ModelText.load(dir);
    switchOff(text, { chat: 'chat template: broken' });
    expect(text.manifest.can).toEqual({ complete: true, chat: false, summarize: false, edit: false });
    expect(text.manifest.note).toEqual({
      en: 'It is not used for chat (chat template: broken).',
      pt: 'It is not used for chat (chat template: broken).',
    });
  });

  it('are all: the model is refused', async () => {
    const text = await ModelText.load(dir);
    expect(() => switchOff(text, { chat: 'a', complete: 'b' })).toThrow('b; a.');
  });
});
