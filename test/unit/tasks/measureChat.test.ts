/** What a chat's prompt takes, part by part: the same prompt as the answer's, and nothing left out without a note. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ChatOptions, measureChat, prepareChat } from '../../../engine/tasks/chatTask.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { measureSummarize, prepareSummarize } from '../../../engine/tasks/summarizeTask.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';

let layout: Layout;
let general: Layout;

beforeAll(async () => {
  const root = join(import.meta.dirname, '../../..');
  layout = new Layout(await ModelText.load(join(root, 'model')), { contextTokens: 2048, numParameters: 7.5e6 });
  general = new Layout(await ModelText.load(join(root, 'test/fixtures/chat/chatml_qwen2.5')), {
    contextTokens: 4096,
    numParameters: 5e8,
  });
});

const code = (n: number) => Array.from({ length: n }, (_, i) => `export const value${i} = compute(${i});\r\n`).join('');
const ask = (content: string) => ({ role: 'user' as const, content });
const answer = (content: string) => ({ role: 'assistant' as const, content });
const small = new SourceDocument('a', 'src/a.ts', code(10));
const middling = new SourceDocument('b', 'src/b.ts', code(120));
const large = new SourceDocument('c', 'src/c.ts', code(900));

const CASES: Record<string, ChatOptions> = {
  'no file': { docs: [], messages: [ask('Hi')] },
  'one small file': { docs: [small], messages: [ask('What is this?')] },
  'a large file': { docs: [large], cursor: 9000, messages: [ask('What is this?')] },
  'three files and a selection': {
    docs: [small, middling, large],
    snippets: [{ path: 'src/a.ts', text: 'value1\r\nvalue2', startLine: 4 }],
    messages: [ask('What is this?')],
  },
  'a long conversation': {
    docs: [middling],
    messages: [
      ...Array.from({ length: 30 }, (_, i) => [ask(`Q${i} ${'word '.repeat(40)}`), answer('word '.repeat(40))]).flat(),
      ask('Last?'),
    ],
  },
};

describe.each(Object.entries(CASES))('%s', (_, options) => {
  it.each(['built-in', 'general'])('takes what its answer takes (%s model)', (which) => {
    const model = which === 'general' ? general : layout;
    const size = measureChat(model, options);
    const request = prepareChat(model, options);
    expect(size.promptTokens).toBe(request.promptIds.length);
    expect(size.notes).toEqual(request.notes);
    expect(size.promptTokens + size.answerTokens).toBeLessThanOrEqual(size.contextTokens);
    expect(size.parts.map(({ path }) => path)).toEqual(
      [...options.docs, ...(options.snippets ?? [])].map(({ path }) => path),
    );
    expect(size.parts.reduce((sum, part) => sum + part.tokens, 0)).toBeLessThan(size.promptTokens);
    for (const { path, omittedTokens } of size.parts)
      expect([path, size.notes.some((note) => note.startsWith(`${path}: `))]).toEqual([path, omittedTokens > 0]);
  });
});

describe.each<[string, SourceDocument, Parameters<typeof prepareSummarize>[2]]>([
  ['a file', small, undefined],
  ['a large file', large, undefined],
  ['a definition of a large file', large, { start: 9000, end: 9100, label: 'value200' }],
  ['a selection', small, { start: 0, end: 90 }],
])('a summary of %s', (_, doc, range) => {
  it.each([undefined, { maxTokens: 700 }])('has the measured size (sampling %j)', (sampling) => {
    const size = measureSummarize(layout, doc, range, sampling);
    const request = prepareSummarize(layout, doc, range, sampling);
    expect([size.promptTokens, size.notes]).toEqual([request.promptIds.length, request.notes]);
    expect(size.notes.length > 0).toBe(doc === large);
    expect(size.parts.map(({ path }) => path)).toEqual([doc.path]);
  });
});

it('counts the parts that are left out', () => {
  const whole = layout.text.tokenizer.encode(large.lf).length;
  const [part] = measureChat(layout, { docs: [large], cursor: 9000, messages: [ask('?')] }).parts;
  const header = layout.header(large.path).length;
  // It is counted in runs of lines, each of which may part one token into two.
  expect(Math.abs(part!.tokens - header + part!.omittedTokens - whole)).toBeLessThan(whole / 100);
});

it('small files leave the rest of their share to large ones', () => {
  const [, first, second] = measureChat(layout, { docs: [small, small, large], messages: [ask('?')] }).parts;
  expect(first!.omittedTokens).toBe(0);
  expect(second!.tokens).toBeGreaterThan(2 * first!.tokens);
});

it('a selection follows the last question with its lines, a file the first', () => {
  const snippets = [
    { path: '/x/src/b.ts', text: 'b();\r\n' },
    { path: '/x/src/a.ts', text: 'a();', startLine: 6 },
  ];
  const { promptIds } = prepareChat(layout, {
    docs: [],
    snippets,
    messages: [ask('One?'), answer('Yes.'), ask('Two?')],
  });
  const end = '<|im_end|>\n';
  expect(layout.text.tokenizer.decode(promptIds)).toBe(
    `<|im_start|>user\nOne?\nsrc/b.ts\n\`\`\`ts\nb();\n\`\`\`${end}<|im_start|>assistant\nYes.${end}<|im_start|>user\nTwo?\nsrc/a.ts, line 7\n\`\`\`ts\na();\n\`\`\`${end}<|im_start|>assistant\n`,
  );
});

it('throws the errors of an answer', () => {
  expect(() => measureChat(layout, { docs: [], messages: [ask('word '.repeat(5000))] })).toThrow(
    expect.objectContaining({ code: 'contextTooLong' }),
  );
});
