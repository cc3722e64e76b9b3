/** Tasks: what is asked, and how raw text becomes what is shown. */
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { prepareChat, shapeAnswer } from '../../engine/tasks/chat.ts';
import { prepareComplete } from '../../engine/tasks/complete.ts';
import type { PreparedRequest } from '../../engine/tasks/preparedRequest.ts';
import { prepareRaw } from '../../engine/tasks/raw.ts';
import { repeatedEnd, runaway } from '../../engine/tasks/repetition.ts';
import { prepareSummarize, summarizeFolder } from '../../engine/tasks/summarize.ts';
import { Layout } from '../../engine/text/layout.ts';
import { ModelText } from '../../engine/text/modelText.ts';
import { SourceDocument } from '../../engine/text/sourceDocument.ts';

const root = join(import.meta.dirname, '../..');
let layout: Layout;
let general: Layout;

beforeAll(async () => {
  layout = new Layout(await ModelText.load(join(root, 'model')), { contextTokens: 2048, numParameters: 7.5e6 });
  general = new Layout(await ModelText.load(join(root, 'test/fixtures/chat/chatml_qwen2.5')), { contextTokens: 4096, numParameters: 5e8 });
});

/** A document with `|` at the cursor. */
function at(marked: string, multiline = false): PreparedRequest {
  const offset = marked.indexOf('|');
  const doc = new SourceDocument('a', 'src/a.ts', marked.slice(0, offset) + marked.slice(offset + 1));
  return prepareComplete(layout, doc, { offset, multiline });
}

function shown(marked: string, raw: string, multiline = false): string {
  return at(marked, multiline).shape(raw, true).text;
}

describe('a completion', () => {
  it.each([
    ['ends with the line', 'let a = |', 'f(1);\nlet b', 'f(1);'],
    ['loses what the rest of the line says', 'foo(|);', 'bar, 1);', 'bar, 1'],
    ['keeps a bracket of its own', 'print(|)', 'foo(bar)', 'foo(bar)'],
    ['keeps its own bracket and loses the rest', 'a(|);', 'b(c));', 'b(c)'],
    ['loses the semicolon behind its own bracket', 'a(|);', 'b(c);', 'b(c)'],
    ["keeps a string's own quote", "f(|')", "'x'", "'x'"],
    ['loses a quote that was opened before', "f('|')", "abc')", 'abc'],
    ['loses white space at its end', 'let a = |', '1;   ', '1;'],
    ['keeps white space before the rest of the line', 'a = |b;', 'c + ', 'c + '],
    ['is empty when the model starts a new line', 'let a = 1;|', '\nlet b', ''],
    ['is empty when only white space', 'let a = |', '   ', ''],
    ['is empty when the next line is the same', '  |\n  return x;\n', 'return x;', ''],
    ['is empty when it completes the line to the next one', '  ret|\n  return x;\n', 'urn x;', ''],
    ['is kept when it only starts like the next line', '  |\n  return x;\n', 'return x + 1;', 'return x + 1;'],
    ['is cut where it repeats itself', 'x = |', 'alpha, beta, alpha, beta, alpha, beta, alpha, beta, ', 'alpha, beta, '.trimEnd()],
    ['keeps a short list', 'x = [|', '0, 0, 0, 0];', '0, 0, 0, 0];'],
  ])('%s', (_, marked, raw, wanted) => expect(shown(marked, raw)).toBe(wanted));

  it.each([
    ['goes on to the end of the block it opens', 'if (a) {|\n', '\n  b();\n  c();\n}\nd();\n', '\n  b();\n  c();\n}'],
    ['leaves a closing bracket that stands there', 'if (a) {|\n}\n', '\n  b();\n}\nd();', '\n  b();'],
    ['ends where the block of its line ends', 'def f():\n    |', 'a = 1\n    return a\ndef g():', 'a = 1\n    return a'],
    ['ends before a line that stands there', 'a();\n|\nb();\n', 'x();\ny();\nb();\nc();', 'x();\ny();'],
    ['leaves out blank lines at its end', '|', 'x();\n\n\n', 'x();'],
    ['is one line in the middle of a line', 'f(|);\n', 'a\nb', 'a'],
  ])('of many lines %s', (_, marked, raw, wanted) => expect(shown(marked, raw, true)).toBe(wanted));

  it('says why nothing is shown', () => {
    expect(at('let a = |').shape('  \n', true).note).toBe('nothing but white space');
    expect(at('let a = 1;|').shape('', true).note).toBe('the model had nothing to add here');
    expect(at('let a = 1;|').shape('\nlet b', true).note).toBe('the model would start a new line here');
    expect(at('f(|);').shape(');', true).note).toBe('the model repeats what follows the cursor');
    expect(at('|\nreturn;\n').shape('return;\n', true).note).toBe('the same as the next line');
    expect(at('x = |').shape('abcdefgh'.repeat(4), true).note).toMatch(/repeat/);
  });

  it('stops as soon as nothing more can be shown', () => {
    expect(at('let a = |').shape('f(1);\n', false)).toEqual({ text: 'f(1);', stop: true });
    expect(at('let a = |').shape('f(1);', false).stop).toBe(false);
  });

  it('has the line ends of its document', () => {
    expect(shown('if (a) {|\r\n}\r\n', '\n  b();\n  c();\n}', true)).toBe('\r\n  b();\r\n  c();');
  });

  it('only ever adds to what it has shown', () => {
    const part = fc.constantFrom('a', 'b', 'foo', '(', ')', ');', "'", '"', ' ', '  ', '\n', '\n  ', '\n}', '}', 'return x;', 'return ', 'x;', '\r\n', '\r', '\t', 'ab'.repeat(5), '[0, ', ']');
    const context = fc.constantFrom('foo(|);', "x('|')", '  |\n  return x;\n', 'if (a) {|\n}\n', '    a = |\n\nb', 'if (a) {|\r\n}\r\n', '|', 'a |b(c)\n');
    fc.assert(
      fc.property(context, fc.boolean(), fc.array(part, { maxLength: 30 }), (marked, multiline, parts) => {
        const { shape } = at(marked, multiline);
        let raw = '';
        let before = '';
        for (const piece of parts) {
          raw += piece;
          const { text, stop } = shape(raw, false);
          expect(text.startsWith(before)).toBe(true);
          before = text;
          if (stop) break;
        }
        expect(shape(raw, true).text.startsWith(before)).toBe(true);
      }),
      { numRuns: 1500, seed: 11 },
    );
  });

  it('resolves its sampling', () => {
    const request = at('let a = |');
    expect(request.sampling).toMatchObject({ temperature: 0, maxTokens: 48, topP: 1, stop: [] });
    expect(request.stopTokenIds).toContain(0);
    expect(request.docId).toBe('a');
  });

  it('refuses a position outside the text', () => {
    expect(() => prepareComplete(layout, new SourceDocument('a', 'a.ts', 'abc'), { offset: 4 })).toThrow(/offset 4 lies outside a\.ts/);
  });
});

describe('an answer', () => {
  it.each([
    ['\n\nIt adds.\n', 'It adds.'],
    ['It adds.', 'It adds.'],
    ['    code', '    code'],
  ])('%j is shown as %j', (raw, wanted) => expect(shapeAnswer(raw, true).text).toBe(wanted));

  it('only ever adds to what it has shown', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', ' ', '\n', 'It is', '```\n', '\t'), { maxLength: 20 }), (parts) => {
        let raw = '';
        let before = '';
        for (const piece of parts) {
          raw += piece;
          const { text } = shapeAnswer(raw, false);
          expect(text.startsWith(before)).toBe(true);
          before = text;
        }
        expect(shapeAnswer(raw, true).text.startsWith(before)).toBe(true);
      }),
    );
  });

  it('that goes round in circles is stopped', () => {
    expect(shapeAnswer('It adds two numbers and returns them. '.repeat(12), false)).toMatchObject({ stop: true, note: expect.stringMatching(/repeats/) });
    expect(shapeAnswer(`| a | b |\n|---|---|\n${'| 1 | 2 |\n'.repeat(5)}`, false).stop).toBe(false);
  });

  it('ends with the turn', () => {
    const request = prepareChat(layout, { docs: [], messages: [{ role: 'user', content: 'Hi' }] });
    const { tokenizer } = layout.text;
    expect(request.stopTokenIds).toContain(tokenizer.idOf('<|im_end|>'));
    expect(request.stopTokenIds).toContain(tokenizer.idOf('<|endoftext|>'));
    expect(request.docId).toBeNull();
  });

  it('needs a question', () => {
    expect(() => prepareChat(layout, { docs: [], messages: [] })).toThrow(/last message/);
  });

  it('of a model that was not trained on instructions says so', () => {
    const request = prepareChat(layout, { docs: [], messages: [{ role: 'system', content: 'Be nice.' }, { role: 'user', content: 'Hi' }] });
    expect(layout.text.tokenizer.decode(request.promptIds)).not.toContain('Be nice');
    expect(request.notes).toEqual([expect.stringMatching(/system message is left out/)]);
  });
});

describe('a summary', () => {
  const code = 'class A {\r\n    b() {\r\n        return 1;\r\n    }\r\n}\r\n';
  const doc = new SourceDocument('a', 'src/a.ts', code);
  const prompt = (range?: { start: number; end: number; label?: string }): string => layout.text.tokenizer.decode(prepareSummarize(layout, doc, range).promptIds);

  it.each([
    ['a file', undefined, 'Summarise this file.'],
    ['a symbol', { start: 9, end: 20, label: 'b' }, 'What does `b` do?'],
    ['a selection', { start: code.indexOf('    b'), end: code.indexOf('\r\n}'), label: '' }, 'What does this code do?\n```ts\nb() {\n    return 1;\n}\n```'],
  ])('of %s is asked in the words that the model knows', (_, range, question) => {
    expect(prompt(range)).toBe(`<|file_sep|>src/a.ts\n${doc.lf}<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`);
  });

  it('refuses a range outside the text', () => {
    expect(() => prepareSummarize(layout, doc, { start: 5, end: 500 })).toThrow(/range 5-500 lies outside src\/a\.ts/);
  });

  it('of a folder is a list, or a request for models that can', () => {
    const files = [{ path: '/p/src/a.ts', text: 'Adds\nnumbers.' }, { path: '/p/src/b.ts', text: '' }];
    expect(summarizeFolder(layout, 'src', files)).toEqual({ kind: 'text', text: '- src/a.ts: Adds numbers.\n- src/b.ts: no summary' });
    const reduced = summarizeFolder(general, 'src', files);
    expect(reduced.kind === 'request' && general.text.tokenizer.decode(reduced.request.promptIds)).toContain('Folder src:\n- src/a.ts: Adds numbers.');
    expect(summarizeFolder(general, 'src', [])).toMatchObject({ kind: 'text' });
  });
});

describe('a raw prompt', () => {
  it('is continued as it is', () => {
    expect(prepareRaw(layout, [5, 6], { maxTokens: 3 })).toMatchObject({ promptIds: [5, 6], sampling: { maxTokens: 3 } });
    expect(prepareRaw(layout, '<|fim_prefix|>a').promptIds[0]).toBe(layout.text.tokenizer.idOf('<|fim_prefix|>'));
    expect(() => prepareRaw(layout, '')).toThrow(/empty/);
    expect(() => prepareRaw(layout, new Array(2048).fill(9))).toThrow(expect.objectContaining({ code: 'contextTooLong' }));
  });
});

describe('repetition', () => {
  it('agrees with trying every length', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 14 }), (parts) => {
        const text = parts.join('');
        let length = Math.max(0, text.length - 1);
        while (length > 0 && text.lastIndexOf(text.slice(text.length - length), text.length - length - 1) < 0) length--;
        expect(text.length - repeatedEnd(text)).toBe(length);
        const found = runaway(text, () => 3);
        let wanted: number | undefined;
        for (let start = 0; start < text.length && wanted === undefined; start++) {
          for (let period = 1; period * 3 <= text.length - start; period++) if (text.slice(start, text.length - period) === text.slice(start + period)) wanted ??= start;
        }
        expect(found?.start).toBe(wanted);
      }),
    );
  });
});
