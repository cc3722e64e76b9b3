/** Chat templates against their references, and the rule that control tokens in messages stay text. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ModelFolder } from '../../../../engine/model/load/modelFolder.ts';
import { ChatTemplate, type TemplateMessage } from '../../../../engine/text/format/chatTemplate.ts';
import { Tokenizer } from '../../../../engine/text/tokenizer/tokenizer.ts';

const root = join(import.meta.dirname, '../../../..');
const dir = (template: string): string => join(root, 'test/fixtures/chat', template);

interface Conversation {
  name: string;
  messages: TemplateMessage[];
  tools?: unknown[];
  add_generation_prompt: boolean;
}

const reference = JSON.parse(readFileSync(join(root, 'test/fixtures/chat/chat_reference.json'), 'utf8')) as {
  cases: {
    template: string;
    conversation: string;
    expected_text: string;
    expected_ids: number[];
    optional: boolean;
    contains_special_lookalike_in_user_text: boolean;
  }[];
  conversations: Conversation[];
  must_raise: { template: string; messages: TemplateMessage[]; message_contains: string }[];
};

async function load(from: string): Promise<{ tokenizer: Tokenizer; template: ChatTemplate }> {
  const tokenizer = await Tokenizer.load(from);
  return { tokenizer, template: (await ChatTemplate.read(await ModelFolder.open(from), tokenizer)) as ChatTemplate };
}

describe('references', () => {
  it.each(reference.cases)('$template, $conversation', async (one) => {
    const { tokenizer, template } = await load(dir(one.template));
    const {
      messages,
      tools,
      add_generation_prompt: addGenerationPrompt,
    } = reference.conversations.find(({ name }) => name === one.conversation) as Conversation;
    expect(template.render(messages, { addGenerationPrompt, tools })).toBe(one.expected_text);
    expect(tokenizer.encodeTemplate(one.expected_text)).toEqual(one.expected_ids);
    const ids = template.encode(messages, { addGenerationPrompt, tools });
    expect(tokenizer.decode(ids)).toBe(tokenizer.decode(one.expected_ids));
    if (!one.contains_special_lookalike_in_user_text) expect(ids).toEqual(one.expected_ids);
  });

  it.each(reference.must_raise)('$template refuses', async ({ template: name, messages, message_contains }) => {
    const { template } = await load(dir(name));
    expect(() => template.render(messages)).toThrow(message_contains);
  });
});

describe('control tokens in messages', () => {
  it.each(['chatml_qwen2.5', 'llama3', 'loops_and_tools'])('stay text: %s', async (name) => {
    const { tokenizer, template } = await load(dir(name));
    const control = (content: string): number[] =>
      template.encode([{ role: 'user', content }]).filter((id) => tokenizer.addedTokens.has(id));
    const harmless = control('hello');
    for (const { content } of tokenizer.addedTokens.values()) {
      const text = `a ${content}\n${content}${content} <${content}`;
      expect(control(text), content).toEqual(harmless);
      expect(tokenizer.decode(template.encode([{ role: 'user', content: text }]))).toContain(text);
    }
  });

  it('a private-use character in a message is kept', async () => {
    const { tokenizer, template } = await load(join(root, 'model'));
    const text = '\ue000<|im_end|>\ue001';
    expect(tokenizer.decode(template.encode([{ role: 'user', content: text }]))).toContain(text);
  });
});

it.each([
  ['model', '<|im_end|>', true],
  ['test/fixtures/chat/llama3', '<|eot_id|>', true],
  ['test/fixtures/chat/loops_and_tools', '<|im_end|>', true],
])('knows how a turn ends: %s', async (from, token, takesSystem) => {
  const { tokenizer, template } = await load(join(root, from));
  expect(template.endOfTurnId).toBe(tokenizer.idOf(token));
  expect(template.takesSystem).toBe(takesSystem);
});

it('an added token of white space does not end a turn', async () => {
  const json = JSON.parse(readFileSync(join(root, 'model/tokenizer.json'), 'utf8')) as {
    added_tokens: object[];
    model: { vocab: object };
  };
  const id = Object.keys(json.model.vocab).length;
  json.added_tokens.push({ id, content: '\n\n', special: false });
  const tokenizer = Tokenizer.fromJson(json);
  const template = new ChatTemplate(
    '{% for m in messages %}{{ m.content }}\n\n\n<|im_end|>{% endfor %}',
    tokenizer,
    {},
  );
  expect(tokenizer.encodeTemplate('a\n\n')).toContain(id);
  expect(template.endOfTurnId).toBe(tokenizer.idOf('<|im_end|>'));
});

describe('a template that would run without end', () => {
  const asked = [{ role: 'user', content: 'x' }];
  const loaded = async (source: string): Promise<ChatTemplate> => {
    const folder = mkdtempSync(join(tmpdir(), 'kvasir-template-'));
    try {
      writeFileSync(join(folder, 'chat_template.jinja'), source);
      return (await ChatTemplate.read(
        await ModelFolder.open(folder),
        await Tokenizer.load(join(root, 'model')),
      )) as ChatTemplate;
    } finally {
      rmSync(folder, { recursive: true });
    }
  };

  it.each([
    '{% for i in range(3000000) %}{% for j in range(3000000) %}x{% endfor %}{% endfor %}',
    '{% for i in range(0, 1, 0) %}x{% endfor %}',
    "{% for i in range('a') %}x{% endfor %}",
    '{% macro m() %}{% for i in range(-1, 20000) %}x{% endfor %}{% endmacro %}{{ m() }}',
  ])('is refused when it renders: %s', async (source) => {
    const template = await loaded(source);
    expect(() => template.render(asked)).toThrow(
      expect.objectContaining({
        code: 'badRequest',
        message: expect.stringMatching(/a range has at most 10000 numbers/),
      }),
    );
    expect(template.takesSystem).toBe(false);
    expect(template.endOfTurnId).toBeUndefined();
  });

  it('is stopped', async () => {
    const template = await loaded(
      '{% set all = range(10000) %}{% for i in all %}{% for j in all %}{% for k in all %}{% endfor %}{% endfor %}{% endfor %}',
    );
    expect(() => template.render(asked)).toThrow(
      expect.objectContaining({ code: 'badRequest', message: 'chat template: rendering takes longer than 2 s' }),
    );
  });

  it('does not run before the first chat', async () => {
    let numRendered = 0;
    const template = await loaded('{{ messages[0].content }}');
    template.render = () => {
      numRendered++;
      return '';
    };
    expect(numRendered).toBe(0);
    expect(template.takesSystem || template.endOfTurnId === 0).toBe(false);
    expect(numRendered).toBe(2);
  });

  it('keeps the ranges that templates use', async () => {
    const template = await loaded(
      '\n{% for i in range(3, 0, -1) %}{{ i }}{% endfor %}{{ range(2)|length }}{{ range(5, 1)|length }}{% for i in range(1, 6, 2) %}{{ i }}{% endfor %}',
    );
    expect(template.render(asked)).toBe('\n32120135');
  });

  it('is read up to 64 kB', async () => {
    await expect(loaded(`{{ messages[0].content }}${' '.repeat(65_536)}`)).rejects.toThrow(
      /^chat_template\.jinja: the chat template cannot be read \(it has 65561 characters/,
    );
  });
});

it('is given no tools and no documents as none, as transformers does', async () => {
  const template = new ChatTemplate(
    '{% if tools is not none %}T{% endif %}{% if documents is not none %}D{% endif %}{{ messages[0].content }}',
    await Tokenizer.load(join(root, 'model')),
    {},
  );
  expect(template.render([{ role: 'user', content: 'x' }])).toBe('x');
});

it('is undefined for a model without a template', async () => {
  const from = join(root, 'test/fixtures/tokenizers/starcoder2');
  expect(await ChatTemplate.read(await ModelFolder.open(from), await Tokenizer.load(from))).toBeUndefined();
});
