/**
 * Edits, commit messages and folder summaries through the whole engine, with a tiny random model. Its text has no
 * meaning; everything else is real.
 */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../engine/cli/cliClient.ts';
import type { Task } from '../../engine/protocol/tasks.ts';
import { MODELS, temporaryFolder } from '../support/model/fixtures.ts';

const folder = temporaryFolder();
const client = new Client();

beforeAll(async () => {
  const modelDir = join(folder.dir, 'model');
  cpSync(join(MODELS, 'qwen3-tied-sharded'), modelDir, { recursive: true });
  // The model's tokenizer has few tokens beyond bytes. A file and a question take more than its original 512 tokens.
  const config = join(modelDir, 'config.json');
  writeFileSync(config, JSON.stringify({ ...JSON.parse(readFileSync(config, 'utf8')), max_position_embeddings: 4096 }));
  await client.load({ modelDir, cacheDir: join(folder.dir, 'cache'), precision: 'int8', maxBytes: 50e6, threads: 1 });
});
afterAll(async () => {
  await client.close();
  folder.remove();
});

const SOURCE = 'export function twice(n: number): number {\n  return n + n;\n}\n\nexport const four = twice(2);\n';
const at = (path: string, text: string) =>
  client.send({ type: 'documentChanged', docId: path, version: 1, path, text });

async function run(task: Task, maxTokens = 24) {
  let streamed = '';
  const progress: number[] = [];
  const done = await client.generate(task, {
    sampling: { maxTokens },
    onChunk: ({ text }) => (streamed += text),
    onParts: (numDone, numTotal) => progress.push(numDone, numTotal),
  });
  return { done, streamed, progress };
}

test('an edit streams the new text of its range over the file block of a chat', async () => {
  at('src/twice.ts', SOURCE);
  const chat = await run({ kind: 'chat', docIds: ['src/twice.ts'], messages: [{ role: 'user', content: 'Why?' }] }, 4);
  const edit = await run({
    kind: 'edit',
    docId: 'src/twice.ts',
    range: { start: 43, end: 59 },
    instruction: 'multiply',
  });
  expect(edit.done.text).not.toBe('');
  expect(edit.streamed).toBe(edit.done.text);
  expect(edit.done.text.startsWith('  '), 'indented like the old line').toBe(true);
  expect(edit.done.usage.blockTokens).toBe(chat.done.usage.blockTokens);
  expect(edit.done.usage.cachedTokens).toBeGreaterThanOrEqual(edit.done.usage.blockTokens);
});

test('a commit message streams, with a note on the left-out part of the diff', async () => {
  const diff = `diff --git a/a.ts b/a.ts\n@@ -1 +1,2 @@\n${'+call();\n'.repeat(900)}`;
  const { done, streamed } = await run({ kind: 'commitMessage', diff, subjects: ['Add a'] });
  expect(streamed).toBe(done.text);
  expect(done.diagnostics.join()).toMatch(/the diff has 902 lines; only \d+ of them fit in this model/);
  expect(done.usage.promptTokens).toBeGreaterThan(3000);
});

test('a folder counts its files as they end, and uses existing summaries', async () => {
  for (const name of ['a', 'b', 'c']) at(`src/${name}.ts`, `export const ${name} = 1;\n`);
  const { done, progress } = await run(
    { kind: 'summarizeFolder', path: 'src', docIds: ['src/a.ts', 'src/b.ts', 'src/c.ts'] },
    8,
  );
  expect(progress).toEqual([1, 3, 2, 3, 3, 3]);
  const joined = await run(
    {
      kind: 'summarizeFolder',
      path: 'src',
      docIds: [],
      summaries: [
        { path: 'src/a.ts', text: 'One.' },
        { path: 'src/b.ts', text: 'Two.' },
      ],
    },
    8,
  );
  expect(joined.progress).toEqual([]);
  // Usage covers the prompts and answers of three files and of the summary made from them. The times cover all of it
  // too.
  const { usage, timings } = done;
  expect(usage.completionTokens).toBeGreaterThan(joined.done.usage.completionTokens);
  expect(timings.tpotMs).toBeGreaterThan(0);
  expect(timings.queueMs).toBeGreaterThan(0);
  expect(timings.ttftMs).toBeGreaterThan(timings.queueMs + 4 * timings.tpotMs);
  expect(joined.streamed).toBe(joined.done.text);
  expect(joined.done.usage.promptTokens).toBeLessThan(done.usage.promptTokens);
  expect(joined.done.usage.promptTokens).toBeGreaterThan(0);
});

test('the notes on the summaries of files are repeated for the folder', async () => {
  const names = ['src/a.ts', 'src/b.ts', 'src/c.ts', 'src/d.ts'];
  const marked: string[] = [];
  for (const name of names) {
    at(name, `export const ${name[4]} = 1;\n`.repeat(3));
    const { done } = await run({ kind: 'summarize', docId: name }, 700);
    // A random model does not end by itself. Most of its texts start to repeat themselves before the limit.
    marked.push(...done.diagnostics.map((note) => `${name}: ${note}`));
  }
  expect(marked).toContainEqual(expect.stringMatching(/only repeats itself/));
  const { done } = await run({ kind: 'summarizeFolder', path: 'src', docIds: names }, 700);
  expect(done.diagnostics.filter((note) => note.startsWith('src/'))).toEqual(marked);
});
