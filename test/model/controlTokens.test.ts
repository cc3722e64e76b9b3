/** Control tokens end what a model writes, and none of them is shown, through the whole engine. */
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { Client } from '../../engine/cli/cliClient.ts';
import type { Task } from '../../engine/protocol/tasks.ts';
import { temporaryFolder } from '../support/model/fixtures.ts';
import { type ScriptedModel, writeScriptedModel } from '../support/model/scriptedModel.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
let numModels = 0;

const SOURCE = 'def f():\n    \n';
const CODE = 'return total(1)';
const BEHIND = '\nprint("junk")';
const LLAMA = `{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}`;

/** What a scripted model answers to a task about a.py. */
async function answers(model: ScriptedModel, tasks: readonly Task[]) {
  const modelDir = join(folder.dir, `model${numModels++}`);
  writeScriptedModel(modelDir, model);
  const client = new Client();
  await client.load({
    modelDir,
    cacheDir: join(folder.dir, 'cache'),
    precision: 'float32',
    maxBytes: 20e6,
    threads: 1,
  });
  client.send({ type: 'documentChanged', docId: 'a.py', version: 1, path: 'a.py', text: SOURCE });
  const texts: string[] = [];
  for (const task of tasks) {
    const { text, finishReason } = await client.generate(task, { sampling: { maxTokens: 8 } });
    expect(finishReason).toBe('stop');
    texts.push(text);
  }
  await client.close();
  return texts;
}

const special = (...tokens: string[]) => tokens.map((token) => [token, true] as const);
const plain = (...tokens: string[]) => tokens.map((token) => [token, false] as const);
const QWEN = [
  ...special('<|endoftext|>', '<|im_start|>', '<|im_end|>', '<|box_start|>'),
  ...plain('<tool_call>', '<|fim_prefix|>', '<|fim_middle|>', '<|fim_suffix|>', '<|fim_pad|>', '<think>', '</think>'),
];
const DEEPSEEK = [
  ...special('<｜begin▁of▁sentence｜>', '<｜end▁of▁sentence｜>', '<|EOT|>'),
  ...plain('<｜fim▁hole｜>', '<｜fim▁begin｜>', '<｜fim▁end｜>', '<|User|>'),
];
const STARCODER = special(
  '<|endoftext|>',
  '<fim_prefix>',
  '<fim_middle>',
  '<fim_suffix>',
  '<fim_pad>',
  '<filename>',
  '<gh_stars>',
);
const CODESTRAL = special('<s>', '</s>', '[PREFIX]', '[SUFFIX]', '[INST]');

describe('a completion ends with', () => {
  test.each([
    ['<tool_call>', '<|fim_middle|>', '<|im_end|>', QWEN],
    ['<think>', '<|fim_middle|>', '<|im_end|>', QWEN],
    ['<|box_start|>', '<|fim_middle|>', '<|im_end|>', QWEN],
    ['<｜fim▁begin｜>', '<｜fim▁end｜>', '<｜end▁of▁sentence｜>', DEEPSEEK],
    ['<|EOT|>', '<｜fim▁end｜>', '<｜end▁of▁sentence｜>', DEEPSEEK],
    ['<|User|>', '<｜fim▁end｜>', '<｜end▁of▁sentence｜>', DEEPSEEK],
    ['<fim_pad>', '<fim_middle>', '<|endoftext|>', STARCODER],
    ['<filename>', '<fim_middle>', '<|endoftext|>', STARCODER],
    ['[INST]', '[PREFIX]', '</s>', CODESTRAL],
  ] as const)('%s', async (token, middle, eos, added) => {
    // Codestral's prompt ends with the prefix.
    const starts = [middle, ' ', '\n'].map((after) => [after, CODE] as const);
    const script = [...starts, [CODE, token], [token, BEHIND], [BEHIND, eos]] as const;
    const tasks = [{ kind: 'complete', docId: 'a.py', offset: 13, multiline: true }] as const;
    expect(await answers({ added, script, eos }, tasks)).toEqual([CODE]);
  });
});

const ANSWER = 'It adds two numbers.';
const TURNS = [{ role: 'user', content: 'What is it?' }] as const;

describe('an answer ends with', () => {
  test.each(['<|start_header_id|>', '<|eom_id|>', '<|im_start|>', '<|endoftext|>', '<|python_tag|>', '<tool_call>'])(
    '%s',
    async (token) => {
      const script = [
        ['\n', ANSWER],
        [ANSWER, token],
        [token, BEHIND],
        [BEHIND, '<|eot_id|>'],
      ] as const;
      const marks = ['<|start_header_id|>', '<|end_header_id|>', '<|eot_id|>'];
      const others = ['<|eom_id|>', '<|im_start|>', '<|endoftext|>', '<|python_tag|>'];
      const added = [...special(...marks, ...others), ...plain('<tool_call>')];
      const texts = await answers({ added, script, eos: '<|eot_id|>', template: LLAMA }, [
        { kind: 'chat', docIds: ['a.py'], messages: [...TURNS] },
        { kind: 'summarize', docId: 'a.py' },
        { kind: 'commitMessage', diff: '-a\n+b\n' },
        { kind: 'edit', docId: 'a.py', range: { start: 0, end: 8 }, instruction: 'shorter' },
      ]);
      expect(texts).toEqual([ANSWER, ANSWER, ANSWER, ANSWER]);
    },
  );
});

test('an added token that is content is shown', async () => {
  const script = [
    ['\n', '<table>'],
    ['<table>', ANSWER],
    [ANSWER, '<|eot_id|>'],
  ] as const;
  const added = [...special('<|start_header_id|>', '<|end_header_id|>', '<|eot_id|>'), ...plain('<table>')];
  const tasks: Task[] = [{ kind: 'chat', docIds: [], messages: [...TURNS] }];
  expect(await answers({ added, script, eos: '<|eot_id|>', template: LLAMA }, tasks)).toEqual([`<table>${ANSWER}`]);
});
