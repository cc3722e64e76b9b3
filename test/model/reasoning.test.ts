/** Models that reason before they answer, through the whole engine. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Client } from '../../engine/cli/cliClient.ts';
import type { SamplingParams, Task } from '../../engine/protocol/tasks.ts';
import { prepareChat } from '../../engine/tasks/chatTask.ts';
import { prepareCommitMessage } from '../../engine/tasks/commitTask.ts';
import { prepareEdit } from '../../engine/tasks/editTask.ts';
import { prepareSummarize, summarizeFolder } from '../../engine/tasks/summarizeTask.ts';
import { ModelText } from '../../engine/text/format/modelText.ts';
import { Layout } from '../../engine/text/prompt/layout.ts';
import { SourceDocument } from '../../engine/text/syntax/sourceDocument.ts';
import { temporaryFolder } from '../support/model/fixtures.ts';
import { type ScriptedModel, writeScriptedModel } from '../support/model/scriptedModel.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const ADDED = [
  ...['<|endoftext|>', '<|im_start|>', '<|im_end|>'].map((token) => [token, true] as const),
  ...['<think>', '</think>'].map((token) => [token, false] as const),
];
const THOUGHT = '\nThe user asks what it does.\n';
const ANSWER = '\n\nIt adds two numbers.';
const TURNS = `{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}`;
const HYBRID = `${TURNS}{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}`;
const OPENED = `${TURNS}{{ '<think>\\n' }}{% endif %}`;
const ENDS = [
  ['</think>', ANSWER],
  [ANSWER, '<|im_end|>'],
] as const;

const QUESTION: Task = { kind: 'chat', docIds: ['a.ts'], messages: [{ role: 'user', content: 'What is it?' }] };
const SOURCE = 'export function add(n: number) {\n  return n + 1;\n}\n';

/** Runs tasks with a scripted model. */
async function start(name: string, model: Omit<ScriptedModel, 'added' | 'eos'> & Partial<ScriptedModel>) {
  const modelDir = join(folder.dir, name);
  writeScriptedModel(modelDir, { added: ADDED, eos: '<|im_end|>', ...model });
  const client = new Client();
  const info = await client.load({
    modelDir,
    cacheDir: join(folder.dir, 'cache'),
    precision: 'float32',
    maxBytes: 20e6,
    threads: 1,
  });
  for (const docId of ['a.ts', 'b.ts'])
    client.send({ type: 'documentChanged', docId, version: 1, path: docId, text: SOURCE });
  const run = async (task: Task, sampling: SamplingParams = {}) => {
    let streamed = '';
    let thought = '';
    const done = await client.generate(task, {
      sampling: { temperature: 0, ...sampling },
      onChunk: ({ text, reasoning = '' }) => {
        streamed += text;
        thought += reasoning;
      },
    });
    expect(streamed).toBe(done.text);
    expect(thought).toBe(done.reasoning ?? '');
    return done;
  };
  return { client, run, info };
}

const OTHERS: Record<string, Task> = {
  'a file': { kind: 'summarize', docId: 'a.ts' },
  'a symbol': { kind: 'summarize', docId: 'a.ts', range: { start: 0, end: 31, label: 'add' } },
  'a folder': { kind: 'summarizeFolder', path: 'src', docIds: ['a.ts', 'b.ts'] },
};

describe.each([
  ['whose template opens the reasoning', OPENED, [['\n', THOUGHT]]],
  [
    'that opens its reasoning itself',
    `${TURNS}{% endif %}`,
    [
      ['\n', '<think>'],
      ['<think>', THOUGHT],
    ],
  ],
  ['that is asked to reason, and only closes it', HYBRID, [['\n', THOUGHT]]],
] as const)('a model %s', (name, template, begins) => {
  let engine: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    engine = await start(name, { template, script: [...begins, [THOUGHT, '</think>'], ...ENDS] });
  });
  afterAll(() => engine.client.close());

  test('says whether it is asked to reason', () =>
    expect(engine.info.reasoningTokens).toBe(template === HYBRID || template === OPENED ? 8192 : undefined));

  test('answers in the chat without it, and sends it apart', async () => {
    const { text, reasoning, usage, finishReason } = await engine.run(QUESTION);
    expect(text).toBe(ANSWER.trim());
    expect(reasoning?.trim()).toBe(THOUGHT.trim());
    expect([usage.reasoningTokens, usage.completionTokens]).toEqual([begins.length + 1, begins.length + 3]);
    expect(finishReason).toBe('stop');
  });

  // Of held back text nobody knows what it is. This one is asked not to reason in summaries.
  if (template === HYBRID) return;

  test('reasons at no cost for the answer', async () => {
    const { text, diagnostics } = await engine.run(QUESTION, { maxTokens: 1 });
    expect(text).toBe(ANSWER.trim());
    expect(diagnostics).toEqual(['cut off after 1 tokens']);
  });

  test.each(Object.entries(OTHERS))('summarizes %s without it', async (_, task) => {
    const { text, reasoning } = await engine.run(task, { maxTokens: 8 });
    expect(text).toBe(ANSWER.trim());
    expect(reasoning).toBeUndefined();
  });
});

test('a model that may be asked not to reason is asked so for all but the chat', async () => {
  const modelDir = join(folder.dir, 'hybrid');
  writeScriptedModel(modelDir, { added: ADDED, eos: '<|im_end|>', script: ENDS, template: HYBRID });
  const text = await ModelText.load(modelDir);
  const layout = new Layout(text, { contextTokens: 2048, numParameters: 1e6 });
  const doc = new SourceDocument('a.ts', 'a.ts', SOURCE, 1);
  const messages = [{ role: 'user' as const, content: 'x' }];
  const folderSummary = summarizeFolder(layout, 'src', [{ path: 'a.ts', text: 'One.' }]);
  const quick = [
    prepareSummarize(layout, doc),
    prepareSummarize(layout, doc, { start: 0, end: 31, label: 'add' }),
    folderSummary.kind === 'request' ? folderSummary.request : expect.fail(),
    prepareEdit(layout, doc, { range: { start: 0, end: 31 }, instruction: 'shorter' }),
    prepareCommitMessage(layout, { diff: '-a\n+b\n' }),
  ].map(({ promptIds }) => text.tokenizer.decode(promptIds));
  for (const prompt of quick) expect(prompt).toMatch(/assistant\n<think>\n\n<\/think>\n\n(?:```\w*\n)?$/);
  const chat = prepareChat(layout, { messages, docs: [doc] });
  expect(text.tokenizer.decode(chat.promptIds)).toMatch(/assistant\n$/);
});

describe('the code of a model', () => {
  const BLOCK = '```ts\nreturn m;\n```';
  test.each([
    ['whose template opens the reasoning', OPENED, `\n\nHere it is:\n${BLOCK}`, [['\n', THOUGHT]]],
    [
      'that reasons inside the block',
      `${TURNS}{% endif %}`,
      `\n\n${BLOCK}`,
      [
        ['\n', '<think>'],
        ['<think>', THOUGHT],
      ],
    ],
  ] as const)('%s comes after it', async (name, template, code, begins) => {
    const { client, run } = await start(`code ${name}`, {
      template,
      script: [...begins, [THOUGHT, '</think>'], ['</think>', code], [code, '<|im_end|>']],
    });
    for (const task of [
      { kind: 'commitMessage', diff: '-a\n+b\n' },
      { kind: 'edit', docId: 'a.ts', range: { start: 0, end: 20 }, instruction: 'x' },
    ] as const) {
      const { text, reasoning, usage } = await run(task, { maxTokens: 2 });
      expect([text, reasoning, usage.reasoningTokens]).toEqual(['return m;', undefined, begins.length + 1]);
    }
    await client.close();
  });
});

test('marks that are special tokens end nothing', async () => {
  const { client, run } = await start('mistral', {
    added: [...ADDED, ['[THINK]', true], ['[/THINK]', true]],
    template: `${TURNS}{% endif %}`,
    script: [['\n', '[THINK]'], ['[THINK]', THOUGHT], [THOUGHT, '[/THINK]'], ['[/THINK]', ANSWER], ENDS[1]],
  });
  const { text, reasoning } = await run(QUESTION);
  expect([text, reasoning?.trim()]).toEqual([ANSWER.trim(), THOUGHT.trim()]);
  await client.close();
});

test('reasoning without end is told, and bounded by the context', async () => {
  const { client, run } = await start('endless', {
    template: OPENED,
    script: [
      ['\n', 'Hm. '],
      ['Hm. ', 'Hm. '],
    ],
    contextTokens: 512,
  });
  const { text, finishReason, usage, diagnostics } = await run({ ...QUESTION, docIds: [] } as Task, { maxTokens: 4 });
  expect([text, finishReason]).toEqual(['', 'length']);
  expect(usage.promptTokens + usage.completionTokens).toBe(512);
  expect(diagnostics.join()).toContain(`the model was still reasoning after ${usage.reasoningTokens} tokens`);
  await client.close();
});
