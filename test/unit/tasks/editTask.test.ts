/** Edits and commit messages: what is asked, and how a raw answer becomes the text that takes the old one's place. */
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { prepareCommitMessage, shapeMessage } from '../../../engine/tasks/commitTask.ts';
import { diffExcerpt } from '../../../engine/tasks/commitTask.ts';
import { prepareEdit } from '../../../engine/tasks/editTask.ts';
import type { PreparedRequest } from '../../../engine/tasks/preparedRequest.ts';
import { prepareChat } from '../../../engine/tasks/chatTask.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';

const root = join(import.meta.dirname, '../../..');
let layout: Layout;
let starter: Layout;

beforeAll(async () => {
  layout = new Layout(await ModelText.load(join(root, 'test/fixtures/chat/chatml_qwen2.5')), {
    contextTokens: 4096,
    numParameters: 5e8,
  });
  starter = new Layout(await ModelText.load(join(root, 'model')), { contextTokens: 2048, numParameters: 7.5e6 });
});

/** An edit of what stands between « and ». */
function edit(marked: string, of = layout): PreparedRequest {
  const start = marked.indexOf('«');
  const end = marked.indexOf('»') - 1;
  const doc = new SourceDocument('a', 'src/a.ts', marked.replace(/[«»]/g, ''));
  return prepareEdit(of, doc, { range: { start, end }, instruction: 'make it asynchronous' });
}

const METHOD = 'class A {\n«  get(): number {\n    return 1;\n  }\n»}\n';

describe('the code of an answer', () => {
  it.each([
    [
      'is what stands before the closing fence',
      METHOD,
      '  async get() {\n    return 2;\n  }\n```\nThat is all.',
      '  async get() {\n    return 2;\n  }\n',
    ],
    ['may lack the closing fence', METHOD, '  get() {}', '  get() {}\n'],
    ['may begin with the fence once more', METHOD, '```ts\n  get() {}\n```', '  get() {}\n'],
    ['is indented like what it replaces', METHOD, 'get() {\n  return 2;\n}\n```', '  get() {\n    return 2;\n  }\n'],
    [
      'loses indentation that it has too much',
      METHOD,
      '      get() {\n        return 2;\n      }\n```',
      '  get() {\n    return 2;\n  }\n',
    ],
    ['takes tabs where tabs were', '«\tf();\n»', '    g();\n      h();\n```', '\tg();\n\t  h();\n'],
    ['keeps blank lines at both ends of the range', '«\n  f();\n\n»', '  g();\n```', '\n  g();\n\n'],
    ['goes behind the indentation that is not selected', '  «f();»\n', '  g();\n  h();\n```', 'g();\n  h();'],
    ['goes behind code that is not selected', 'let a = «1»;\n', '  2\n```', '2'],
    ['fills an empty line', 'a();\n«    »\nb();\n', 'c();\nd();\n```', '    c();\n    d();'],
    ['has the line ends of the file', '«a();\r\n»b();\r\n', 'c();\nd();\n```', 'c();\r\nd();\r\n'],
    ['may hold single backticks', '«a»', '`x`\n```', '`x`'],
  ])('%s', (_, marked, raw, wanted) => expect(edit(marked).shape(raw, true)).toEqual({ text: wanted, stop: true }));

  it('has a longer fence if the code contains a fence', () =>
    expect(edit('«`\n```\n`»').shape('x\n```\ny\n````', true).text).toBe('x\n```\ny'));

  it.each(['', '```', '\n\n```\nSorry, I cannot.'])('that holds none (%j) is empty and says so', (raw) =>
    expect(edit(METHOD).shape(raw, true)).toEqual({ text: '', stop: true, note: 'the model gave no code' }),
  );

  it('ends decoding at the closing fence, and when the code only repeats itself', () => {
    expect(edit(METHOD).shape('  a();\n```\n', false).stop).toBe(true);
    expect(edit(METHOD).shape('  a();\n``', false).stop).toBe(false);
    expect(edit(METHOD).shape('  a();\n'.repeat(100), false)).toMatchObject({
      stop: true,
      note: expect.stringContaining('repeats'),
    });
  });

  it('streams without taking text back, and ends as the whole answer', () => {
    const piece = fc.constantFrom(
      '```',
      '`',
      '```ts\n',
      '\n',
      '\n\n',
      '  ',
      '\t',
      'a();',
      'if (b) {',
      '}',
      '````',
      '\r\n',
      ' x',
      '``',
    );
    const places = [METHOD, '  «f();»\n', 'let a = «1»;\n', '«»', 'a\r\n«  b\r\n»c', '«\n\n  f();\n»'];
    fc.assert(
      fc.property(fc.constantFrom(...places), fc.array(piece, { maxLength: 30 }), (place, pieces) => {
        const { shape } = edit(place);
        let raw = '';
        let shown = '';
        for (const next of pieces) {
          raw += next;
          const { text, stop } = shape(raw, false);
          expect(text.startsWith(shown)).toBe(true);
          shown = text;
          if (stop) break;
        }
        expect(shape(raw, true).text.startsWith(shown)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('the prompt of an edit', () => {
  it('shares the file block with a chat turn, shows code and instruction, and opens the block', () => {
    const request = edit(METHOD);
    const doc = new SourceDocument('a', 'src/a.ts', METHOD.replace(/[«»]/g, ''));
    const chat = prepareChat(layout, { docs: [doc], messages: [{ role: 'user', content: 'Why?' }] });
    expect(request.promptIds.slice(0, request.blockTokens)).toEqual(chat.promptIds.slice(0, chat.blockTokens));
    const tail = layout.text.tokenizer.decode(request.promptIds.slice(request.blockTokens));
    expect(tail).toContain(
      'from line 2 on:\n```ts\n  get(): number {\n    return 1;\n  }\n```\nInstruction: make it asynchronous\n',
    );
    expect(tail.endsWith('assistant\n```ts\n')).toBe(true);
  });

  it('is refused for a model without instructions, a bad range, or too much code', () => {
    expect(() => edit(METHOD, starter)).toThrow('kvasir-starter cannot change code: it does not follow instructions');
    expect(() =>
      prepareEdit(layout, new SourceDocument('a', 'a.ts', 'x'), { range: { start: 0, end: 5 }, instruction: 'x' }),
    ).toThrow('outside');
    expect(() =>
      prepareEdit(layout, new SourceDocument('a', 'a.ts', 'x'), { range: { start: 0, end: 1 }, instruction: ' ' }),
    ).toThrow('empty');
    expect(() => edit(`«${'call(1);\n'.repeat(2000)}»`)).toThrow(/rewrite \d+ at a time. Select less/);
  });

  it('reserves tokens for an answer as long as the code, and notes which part of the file is left out', () => {
    const { promptIds, sampling, notes } = edit(`«${'call(1);\n'.repeat(150)}»${'other(2);\n'.repeat(1200)}`);
    const numTokens = layout.text.tokenizer.encode('call(1);\n'.repeat(150)).length;
    expect(sampling.maxTokens).toBeGreaterThan(numTokens);
    expect(promptIds.length + sampling.maxTokens).toBeLessThanOrEqual(4096);
    expect(notes.join()).toContain('left out');
  });
});

const fileDiff = (name: string, numLines: number) =>
  `diff --git a/${name} b/${name}\n--- a/${name}\n+++ b/${name}\n@@ -1 +1,${numLines} @@\n${Array.from({ length: numLines }, (_, i) => `+  call${i}(${name.length});\n`).join('')}`;

describe('a commit message', () => {
  it('is asked for with the diff and the last subjects, and opens its block', () => {
    const { promptIds, notes } = prepareCommitMessage(layout, {
      diff: fileDiff('a.ts', 3),
      subjects: ['Add a', 'Fix b'],
    });
    const prompt = layout.text.tokenizer.decode(promptIds);
    expect(prompt).toContain(fileDiff('a.ts', 3));
    expect(prompt).toContain('- Add a\n- Fix b\n');
    expect(prompt.endsWith('assistant\n```\n')).toBe(true);
    expect(notes).toEqual([]);
  });

  it('reads the part of a long diff that fits, and says so to the user and to the model', () => {
    const { promptIds, sampling, notes } = prepareCommitMessage(layout, {
      diff: fileDiff('small.ts', 2) + fileDiff('large.ts', 3000),
    });
    expect(promptIds.length + sampling.maxTokens).toBeLessThanOrEqual(4096);
    expect(promptIds.length).toBeGreaterThan(3000);
    expect(notes).toEqual([expect.stringMatching(/^the diff has 3010 lines; only \d+ of them fit in this model$/)]);
    const prompt = layout.text.tokenizer.decode(promptIds);
    expect(prompt).toContain(fileDiff('small.ts', 2));
    expect(prompt).toMatch(/\[\d+ more lines of this file's diff\]/);
  });

  it('gives small files all the tokens they need, and never more than there are', () => {
    const { tokenizer } = layout.text;
    fc.assert(
      fc.property(
        fc.array(fc.nat(200), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 64, max: 3000 }),
        (sizes, room) => {
          const diff = sizes.map((size, i) => fileDiff(`f${i}.ts`, size)).join('');
          const { text, omitted } = diffExcerpt(tokenizer, diff, room);
          expect(tokenizer.encode(text).length).toBeLessThanOrEqual(room + 2 * sizes.length);
          expect(omitted === '').toBe(text === diff.trimEnd());
        },
      ),
      { numRuns: 40 },
    );
  });

  it('is refused without a diff, and by a model that does not follow instructions', () => {
    expect(() => prepareCommitMessage(layout, { diff: ' \n' })).toThrow('no change');
    expect(() => prepareCommitMessage(starter, { diff: fileDiff('a.ts', 3) })).toThrow(
      'kvasir-starter cannot write commit messages',
    );
  });

  it('is shown without fences and blank lines', () => {
    expect(shapeMessage('\nAdd a\n\nBecause.\n```\nI hope this helps', '```', true)).toEqual({
      text: 'Add a\n\nBecause.',
      stop: true,
    });
    expect(shapeMessage('', '```', true).note).toBe('the model gave no message');
  });
});
