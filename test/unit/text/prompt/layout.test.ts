/** Prompt layout: what is shared, what typing changes, and what a large file costs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ChatTemplate } from '../../../../engine/text/format/chatTemplate.ts';
import { chatPrompt } from '../../../../engine/text/prompt/chatPrompt.ts';
import { completionPrompt } from '../../../../engine/text/prompt/completionPrompt.ts';
import { Layout } from '../../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../../engine/text/format/modelText.ts';
import { SourceDocument } from '../../../../engine/text/syntax/sourceDocument.ts';

const root = join(import.meta.dirname, '../../../..');
let starter: ModelText;
let chatml: ModelText;
let layout: Layout;

beforeAll(async () => {
  starter = await ModelText.load(join(root, 'model'));
  chatml = await ModelText.load(join(root, 'test/fixtures/chat/chatml_qwen2.5'));
  layout = new Layout(starter, { contextTokens: 2048, numParameters: 7.5e6 });
});

const source = readFileSync(join(root, 'test/fixtures/samples/layout.ts.txt'), 'utf8');
const document = (text: string, path = 'project/engine/layout.ts'): SourceDocument =>
  new SourceDocument('a', path, text);
const complete = (text: string, offset: number, on = layout) =>
  completionPrompt(on, document(text), offset, { answerTokens: 48 });

/** Lines of code, some blank, some long; files from small to far beyond the context. */
const line = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom(
      '',
      '    return value;',
      '}',
      'function add(a, b) {',
      '\t\tif (x) {',
      "const s = 'é🙂';",
      '# comment',
      '      });',
      'x = 1',
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom('word '.repeat(200), 'x'.repeat(900), ' '.repeat(60)) },
);
const file = fc
  .tuple(fc.array(line, { maxLength: 70 }), fc.integer({ min: 1, max: 12 }), fc.boolean())
  .map(([lines, times, crlf]) => Array.from({ length: times }, () => lines.join(crlf ? '\r\n' : '\n')).join('\n'));
const runs = { numRuns: 60, seed: 3 };

describe('tokens around a place that are known from an earlier encoding', () => {
  it('are those of the lines above and below, and stay the same while the user types there', () => {
    const doc = document(source);
    const used = new Layout(starter, { contextTokens: 8192, numParameters: 7.5e6 });
    expect(used.knownAround(doc, 0, 0)).toEqual({ before: [], behind: [] });
    used.fileBlock(doc);
    const text = (ids: readonly number[]): string => {
      const detokenizer = starter.tokenizer.createDetokenizer();
      return ids.map((id) => detokenizer.push(id)).join('') + detokenizer.flush();
    };
    const [start, end] = [doc.lineStart(29), doc.lineStart(59) + 3];
    const known = used.knownAround(doc, start, end);
    // Tokens may span line breaks: the one at the border goes behind.
    expect(source.slice(0, start).startsWith(text(known.before))).toBe(true);
    expect(text(known.before).trimEnd()).toBe(source.slice(0, start).trimEnd());
    expect(text(known.behind)).toContain(source.slice(doc.lineStart(60)).trimStart());
    expect(text(known.behind).length).toBeLessThan(source.length - doc.lineStart(60) + 30);
    doc.text = `${source.slice(0, end)}typed${source.slice(end)}`;
    expect(used.knownAround(doc, start, end + 5)).toEqual(known);
    doc.text = '';
    expect(used.knownAround(doc, start, end)).toEqual({ before: [], behind: [] });
  });
});

describe('a completion prompt', () => {
  it('depends on text and cursor only, not on what came before', () => {
    fc.assert(
      fc.property(file, fc.nat(), fc.array(fc.nat(), { maxLength: 3 }), (text, at, others) => {
        const doc = document(text);
        const used = new Layout(starter, { contextTokens: 1024, numParameters: 7.5e6 });
        for (const other of others) completionPrompt(used, doc, other % (doc.lf.length + 1), { answerTokens: 48 });
        doc.text = `inserted\n${text}`;
        completionPrompt(used, doc, 0, { answerTokens: 48 });
        doc.text = text;
        const offset = at % (doc.lf.length + 1);
        const fresh = new Layout(starter, { contextTokens: 1024, numParameters: 7.5e6 });
        const wanted = completionPrompt(fresh, document(text), offset, { answerTokens: 48 });
        expect(completionPrompt(used, doc, offset, { answerTokens: 48 })).toEqual(wanted);
        expect(wanted.promptIds.length).toBeLessThanOrEqual(1024 - 48);
      }),
      runs,
    );
  });

  it('starts with a true prefix of the file block', () => {
    fc.assert(
      fc.property(file, fc.nat(), (text, at) => {
        const doc = document(text);
        const offset = at % (doc.lf.length + 1);
        const { promptIds, numBlockTokens } = completionPrompt(layout, doc, offset, { answerTokens: 48 });
        const block = layout.fileBlock(doc, { cursorOffset: offset });
        expect(promptIds.slice(0, numBlockTokens)).toEqual(block.tokenIds.slice(0, numBlockTokens));
        expect(numBlockTokens).toBeLessThanOrEqual(block.tokenIds.length);
      }),
      runs,
    );
  });

  it('changes only at its end when a character is typed', () => {
    const kept = (typed: string) =>
      fc.property(file, fc.nat(), (raw, at) => {
        const text = raw.replaceAll('\r\n', '\n');
        const offset = at % (text.length + 1);
        const before = complete(text, offset);
        const after = complete(text.slice(0, offset) + typed + text.slice(offset), offset + 1);
        // A line that outgrows the tail moves the tail's start: the one allowed change.
        fc.pre(!/[^\n]{700}/.test(text.slice(Math.max(0, offset - 4000), offset)));
        expect(after.numBlockTokens).toBe(before.numBlockTokens);
        let same = 0;
        while (before.promptIds[same] === after.promptIds[same] && same < before.promptIds.length) same++;
        expect(before.promptIds.length - same).toBeLessThanOrEqual(24);
      });
    fc.assert(kept('x'), runs);
    fc.assert(kept(' '), runs);
    fc.assert(kept(')'), runs);
  });

  it('keeps the block when typing after many blank lines', () => {
    for (const numBlank of [15, 16, 17, 31, 40]) {
      const text = `${'let a = f();\n'.repeat(64)}${'\n'.repeat(numBlank)}`;
      const before = complete(text, text.length);
      for (const typed of ['x', '\t']) {
        const after = complete(text + typed, text.length + 1);
        expect(after.promptIds.slice(0, after.numBlockTokens)).toEqual(
          before.promptIds.slice(0, before.numBlockTokens),
        );
      }
    }
  });

  it('is the trained layout', () => {
    const text = 'export function add(a: number, b: number): number {\n  return a + b;\n}\n';
    const { promptIds, numBlockTokens, opening } = complete(text, text.indexOf('b;'));
    // The space belongs to what follows (see healing).
    expect(opening).toBe(' ');
    expect(starter.tokenizer.decode(promptIds)).toBe(
      '<|file_sep|>engine/layout.ts\n<|fim_prefix|><|fim_suffix|>b;\n}\n<|fim_middle|>export function add(a: number, b: number): number {\n  return a +',
    );
    expect(numBlockTokens).toBe(0);
  });

  it('of a file with CRLF equals that of the same file with LF', () => {
    const crlf = source.replaceAll('\n', '\r\n');
    const doc = document(crlf);
    const offset = 2000;
    const at = offset + crlf.slice(0, offset).split('\r\n').length - 1;
    expect(doc.lf).toBe(source);
    const lfOffset = doc.toLf(at);
    expect(completionPrompt(layout, doc, lfOffset, { answerTokens: 48 })).toEqual(complete(source, lfOffset));
  });

  it('after a pending completion equals that of the text with the completion', () => {
    fc.assert(
      fc.property(
        file,
        fc.nat(),
        fc.array(fc.constantFrom('x', 'f();', '\n', '\r\n', '  ', '🙂'), { minLength: 1, maxLength: 6 }),
        fc.boolean(),
        (text, at, parts, twice) => {
          const doc = document(text);
          const inserted = parts.join('');
          // Not between the two characters of a line end.
          const offset = (at % (text.length + 1)) - (text[(at % (text.length + 1)) - 1] === '\r' ? 1 : 0);
          const used = new Layout(starter, { contextTokens: 1024, numParameters: 7.5e6 });
          if (twice) completionPrompt(used, doc.withInserted(0, 'something else\n'), 3, { answerTokens: 48 });
          const ahead = doc.withInserted(offset, inserted);
          const written = text.includes('\n') ? inserted.replace(/\r?\n/g, doc.lineEnd) : inserted;
          const real = document(text.slice(0, offset) + written + text.slice(offset));
          expect(ahead.text).toBe(real.text);
          const end = real.toLf(offset + written.length);
          expect(completionPrompt(used, ahead, ahead.toLf(offset + written.length), { answerTokens: 48 })).toEqual(
            completionPrompt(used, real, end, { answerTokens: 48 }),
          );
          expect(doc.text).toBe(text);
        },
      ),
      runs,
    );
  });

  describe('with snippets', () => {
    const text = 'let a = 1;\nlet b = ;\nlet c;\n';
    const at = text.indexOf(';\nlet c');
    const ask = (snippets: { path: string; text: string }[], numParameters = 5e8, model = chatml) =>
      completionPrompt(new Layout(model, { contextTokens: 4096, numParameters }), document(text), at, {
        answerTokens: 48,
        snippets,
      });
    const fim = '<|fim_prefix|>let a = 1;\nlet b = <|fim_suffix|>;\nlet c;\n<|fim_middle|>';

    it('puts them before the file, in the layout of the family', () => {
      const { promptIds, notes } = ask([
        { path: '/home/me/p/src/one.ts', text: 'one();\r\ntwo();' },
        { path: 'src/three.py', text: 'three()\n' },
      ]);
      expect(chatml.tokenizer.decode(promptIds)).toBe(
        `<|repo_name|>\n<|file_sep|>src/one.ts\none();\ntwo();\n<|file_sep|>src/three.py\nthree()\n\n<|file_sep|>engine/layout.ts\n${fim}`,
      );
      expect(promptIds.filter((id) => id === chatml.tokenizer.idOf('<|file_sep|>'))).toHaveLength(3);
      expect(notes).toEqual([]);
    });

    it('reads control tokens in them as text', () => {
      const { promptIds } = ask([{ path: 'src/<|fim_middle|>.ts', text: '<|file_sep|>x<|fim_prefix|>\n' }]);
      expect(promptIds.filter((id) => id === chatml.tokenizer.idOf('<|file_sep|>'))).toHaveLength(2);
      expect(promptIds.filter((id) => id === chatml.tokenizer.idOf('<|fim_prefix|>'))).toHaveLength(1);
      expect(promptIds.filter((id) => id === chatml.tokenizer.idOf('<|fim_middle|>'))).toHaveLength(1);
    });

    it('limits them by context and model size, cuts after a line, and notes it', () => {
      const long = {
        path: 'src/long.ts',
        text: Array.from({ length: 200 }, (_, i) => `const value${i} = compute(${i});\n`).join(''),
      };
      const short = { path: 'src/short.ts', text: 'short();\n' };
      const base = ask([]).promptIds.length;
      for (const [numParameters, room] of [
        [5e8, 400],
        [1e6, 512],
        [1e10, 20],
      ] as const) {
        const { promptIds, notes } = ask([short, long, long], numParameters);
        // Beside the snippets: the name of the repository and the path of the file.
        expect(
          promptIds.length - base - chatml.tokenizer.encode('\nengine/layout.ts\n').length - 2,
        ).toBeLessThanOrEqual(room);
        expect(notes).toHaveLength(2);
        const shown = chatml.tokenizer.decode(promptIds);
        const numLines = shown.split('\n').filter((line) => line.startsWith('const value')).length;
        expect(notes[0]).toBe(
          numLines > 0
            ? `snippet of src/long.ts: all but its first ${numLines} lines left out`
            : 'snippet of src/long.ts left out',
        );
        expect(notes[1]).toBe('snippet of src/long.ts left out');
        expect(shown).toContain('short();');
        if (numParameters < 1e10) expect(promptIds.length - base).toBeGreaterThan(room - 40);
      }
    });

    it('keeps their tokens at the start while the user types', () => {
      const snippets = [{ path: 'src/one.ts', text: 'one();\n' }];
      const typed = completionPrompt(
        new Layout(chatml, { contextTokens: 4096, numParameters: 5e8 }),
        document(text.replace('= ;', '= x;')),
        at + 1,
        { answerTokens: 48, snippets },
      );
      const before = ask(snippets).promptIds;
      const same = before.findIndex((id, i) => typed.promptIds[i] !== id);
      expect(chatml.tokenizer.decode(before.slice(0, same))).toContain('one();');
    });

    it('leaves them out for a model that was not trained on them', () => {
      expect(ask([{ path: 'src/one.ts', text: 'one();' }], 7.5e6, starter).promptIds).toEqual(
        ask([], 7.5e6, starter).promptIds,
      );
    });
  });

  it('of a large model leaves the block out', () => {
    const large = new Layout(starter, { contextTokens: 2048, numParameters: 5e8 });
    const { numBlockTokens } = complete(source, 3000, large);
    expect(numBlockTokens).toBe(0);
    expect(complete(source, 3000).numBlockTokens).toBeGreaterThan(200);
  });
});

describe('a file block', () => {
  it('has the same tokens for completion, chat and summary', () => {
    const doc = document(source.slice(0, 3800));
    const block = layout.fileBlock(doc);
    expect(block.omitted).toBe('');
    const chat = chatPrompt(layout, { doc, messages: [{ role: 'user', content: 'What is this?' }], answerTokens: 100 });
    expect(chat.promptIds.slice(0, chat.numBlockTokens)).toEqual(block.tokenIds);
    expect(starter.tokenizer.decode(chat.promptIds)).toBe(
      `<|file_sep|>engine/layout.ts\n${doc.lf}<|im_start|>user\nWhat is this?<|im_end|>\n<|im_start|>assistant\n`,
    );
  });

  it('says which lines of a large file are left out, and shows the cursor', () => {
    const text = Array.from({ length: 900 }, (_, i) => `const value${i} = compute(${i});`).join('\n');
    const doc = document(text);
    const cursorOffset = doc.lineStart(600);
    const block = layout.fileBlock(doc, { cursorOffset });
    expect(block.startLine % 16).toBe(0);
    expect(block.startLine).toBeLessThanOrEqual(584);
    expect(block.endLine).toBeGreaterThan(600);
    expect(block.omitted).toBe(`lines 1-${block.startLine}, ${block.endLine + 1}-900 of 900 left out`);
    // A final line break is no line.
    expect(layout.fileBlock(document(`${text}\n`), { cursorOffset }).omitted).toBe(block.omitted);
    expect(block.tokenIds.length).toBeLessThanOrEqual(2048 - layout.reservedTokens);
    const shown = starter.tokenizer.decode(block.tokenIds);
    expect(shown).toContain(`engine/layout.ts\nconst value${block.startLine} =`);
    expect(shown).toContain(`const value${block.endLine - 1} =`);
    expect(shown).not.toContain(`const value${block.endLine} =`);
  });

  it('of a large file starts at the same line for all cursor lines of a grid cell and while the user types', () => {
    const text = Array.from({ length: 900 }, (_, i) => `const value${i} = compute(${i});`).join('\n');
    const doc = document(text);
    const starts = new Set(
      Array.from({ length: 900 }, (_, i) => layout.fileBlock(doc, { cursorOffset: doc.lineStart(i) }).startLine),
    );
    expect(starts.size).toBeLessThan(30);
    const at = doc.lineStart(600);
    const wanted = layout.fileBlock(doc, { cursorOffset: at }).startLine;
    for (let i = 0; i < 40; i++) {
      doc.text = `${doc.text.slice(0, at)}y${doc.text.slice(at)}`;
      expect(layout.fileBlock(doc, { cursorOffset: at + 1 }).startLine).toBe(wanted);
    }
  });

  it('is cut only at its end for a longer conversation', () => {
    const doc = document(source.repeat(3));
    const usual = layout.fileBlock(doc);
    const short = layout.fileBlock(doc, { reserveTokens: 1200 });
    expect(short.tokenIds.length).toBeLessThanOrEqual(2048 - 1200);
    expect(usual.tokenIds.slice(0, short.tokenIds.length)).toEqual(short.tokenIds);
    expect(short.omitted).toMatch(/^lines \d+-\d+ of \d+ left out$/);
  });

  it('of one endless line is empty, and notes it', () => {
    const doc = document('x'.repeat(1_000_000));
    expect(layout.fileBlock(doc).omitted).toBe('all 1 lines left out: too long for this model');
    expect(complete(doc.lf, 500_000).promptIds.length).toBeLessThan(700);
  });

  it('of a large file is cheap to update after a keystroke', () => {
    const part = 'export function add(a: number, b: number): number {\n  return a + b;\n}\n\n';
    const doc = document(part.repeat(Math.ceil(1e6 / part.length)));
    const large = new Layout(starter, { contextTokens: 32_768, numParameters: 1e5 });
    let at = 500_000;
    const prompt = (): number => {
      const started = performance.now();
      completionPrompt(large, doc, at, { answerTokens: 48 });
      return performance.now() - started;
    };
    const first = prompt();
    const times = [];
    for (let i = 0; i < 12; i++) {
      doc.text = `${doc.text.slice(0, at)}x${doc.text.slice(at)}`;
      at++;
      times.push(prompt());
    }
    // Tells incremental encoding from encoding 100 kB anew, in the same run.
    expect(Math.min(...times)).toBeLessThan(first / 2);
  });
});

describe('a chat prompt', () => {
  const ask = (text: string) => ({ role: 'user' as const, content: text });
  const answer = (text: string) => ({ role: 'assistant' as const, content: text });

  it('puts other files after the first question', () => {
    const other = { path: 'src/b.py', text: 'x = 1\ny = 2\n' };
    const { promptIds, notes } = chatPrompt(layout, {
      doc: document('let a;\n'),
      attached: [other],
      messages: [ask('Compare.')],
      answerTokens: 50,
    });
    expect(starter.tokenizer.decode(promptIds)).toBe(
      '<|file_sep|>engine/layout.ts\nlet a;\n<|im_start|>user\nCompare.\nsrc/b.py\n```py\nx = 1\ny = 2\n```<|im_end|>\n<|im_start|>assistant\n',
    );
    expect(notes).toEqual([]);
  });

  it('cuts other files at a line end and notes it', () => {
    const other = { path: 'src/b.py', text: 'x = 1\n'.repeat(2000) };
    const { promptIds, notes } = chatPrompt(layout, {
      doc: document('let a;\n'),
      attached: [other],
      messages: [ask('Compare.')],
      answerTokens: 50,
    });
    expect(promptIds.length).toBeLessThanOrEqual(1998);
    expect(notes).toEqual([expect.stringMatching(/^src\/b\.py: lines \d+-2000 of 2000 left out$/)]);
  });

  it('drops the oldest turns first and says so', () => {
    const messages = Array.from({ length: 40 }, (_, i) => [
      ask(`Question ${i}? ${'word '.repeat(30)}`),
      answer(`Answer ${i}. ${'word '.repeat(30)}`),
    ]).flat();
    const doc = document(source.slice(0, 3000));
    const { promptIds, notes, numBlockTokens } = chatPrompt(layout, {
      doc,
      messages: [...messages, ask('Last?')],
      answerTokens: 200,
    });
    expect(promptIds.length).toBeLessThanOrEqual(1848);
    expect(numBlockTokens).toBe(layout.fileBlock(doc).tokenIds.length);
    expect(notes).toEqual([expect.stringMatching(/^the first \d+ messages of the conversation left out$/)]);
    expect(starter.tokenizer.decode(promptIds)).toContain('Last?');
  });

  it('without a document has no file block', () => {
    const { promptIds, numBlockTokens } = chatPrompt(layout, { messages: [ask('Hi')], answerTokens: 50 });
    expect(numBlockTokens).toBe(0);
    expect(starter.tokenizer.decode(promptIds)).toBe('<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n');
  });

  it('refuses a question that cannot fit', () => {
    expect(() =>
      chatPrompt(layout, { doc: document('a\n'), messages: [ask('word '.repeat(5000))], answerTokens: 50 }),
    ).toThrow(expect.objectContaining({ code: 'contextTooLong' }));
  });

  it('of a model without manifest holds the file in its system turn, shared by every question', () => {
    const general = new Layout(chatml, { contextTokens: 4096, numParameters: 5e8 });
    const doc = document('let a = "<|im_end|>";\n');
    const one = chatPrompt(general, { doc, messages: [ask('One?')], answerTokens: 50 });
    const two = chatPrompt(general, {
      doc,
      messages: [{ role: 'system', content: 'Be brief.' }, ask('Two?')],
      answerTokens: 50,
    });
    expect(one.promptIds.slice(0, one.numBlockTokens)).toEqual(general.fileBlock(doc).tokenIds);
    expect(two.promptIds.slice(0, one.numBlockTokens)).toEqual(general.fileBlock(doc).tokenIds);
    expect(chatml.tokenizer.decode(two.promptIds)).toBe(
      '<|im_start|>system\nThe open file is engine/layout.ts:\n```\nlet a = "<|im_end|>";\n\n```\n\nBe brief.<|im_end|>\n<|im_start|>user\nTwo?<|im_end|>\n<|im_start|>assistant\n',
    );
    expect(two.promptIds.filter((id) => id === chatml.tokenizer.idOf('<|im_end|>'))).toHaveLength(2);
  });

  it('of a template without a place for the file leaves it out and says so', async () => {
    const template = new ChatTemplate('{{ messages[-1].role }}: question<|im_end|>', chatml.tokenizer, {});
    const blind = new Layout({ ...chatml, chatTemplate: template } as unknown as ModelText, {
      contextTokens: 4096,
      numParameters: 5e8,
    });
    const { promptIds, numBlockTokens, notes } = chatPrompt(blind, {
      doc: document('let a;\n'),
      messages: [ask('One?')],
      answerTokens: 50,
    });
    expect(chatml.tokenizer.decode(promptIds)).toBe('user: question<|im_end|>');
    expect(numBlockTokens).toBe(0);
    expect(notes).toEqual([expect.stringMatching(/no place for it/)]);
  });
});

describe('text around a cursor that a completion may copy', () => {
  const rows = Array.from({ length: 12_000 }, (_, i) => `const value${i} = compute(${i});\n`);
  const encoded = (doc: SourceDocument, line: number): { before: string; behind: string } => {
    const { before, behind } = layout.around(doc, doc.lineStart(line), doc.lineStart(line));
    return { before: starter.tokenizer.decode([...before]), behind: starter.tokenizer.decode([...behind]) };
  };

  it('is the text above and below; in long files its ends rarely move', () => {
    const doc = document(rows.join(''));
    const { before, behind } = encoded(doc, 6000);
    expect(before.endsWith(rows[5999]!)).toBe(true);
    expect(behind.startsWith(rows[6001]!)).toBe(true);
    for (const text of [before, behind]) expect(text.length).toBeGreaterThan(40_000);
    for (const text of [before, behind]) expect(text.length).toBeLessThan(70_000);
    const encode = vi.spyOn(starter.tokenizer, 'encodeWithOffsets');
    encoded(doc, 6001);
    // A line lower, what is encoded is what has moved.
    expect(encode.mock.calls.reduce((sum, [text]) => sum + text.length, 0)).toBeLessThan(6000);
    encode.mockRestore();
  });

  it('is the beginning of another file, encoded once', () => {
    const doc = document(rows.join(''));
    const ids = layout.beginning(doc);
    const text = starter.tokenizer.decode([...ids]);
    expect(doc.lf.startsWith(text)).toBe(true);
    expect(text.length).toBeGreaterThan(20_000);
    expect(text.length).toBeLessThan(30_000);
    const encode = vi.spyOn(starter.tokenizer, 'encodeWithOffsets');
    expect(layout.beginning(doc)).toEqual(ids);
    expect(encode).not.toHaveBeenCalled();
    encode.mockRestore();
  });

  it('is empty for files with endless lines', () => {
    const doc = document(`first\n${'x'.repeat(5000)}\nlast\n`);
    expect(encoded(doc, 0).behind).toBe('');
    expect(encoded(document('first\nsecond\nlast\n'), 0).behind).toBe('second\nlast\n');
    for (const [length, copied] of [
      [4095, true],
      [4096, false],
    ] as const)
      for (const text of [`a;\n${'x'.repeat(length)}\nlast`, `a;\n${'x'.repeat(length)}`])
        expect(layout.beginning(document(text)).length > 0).toBe(copied);
  });

  it('costs a keystroke almost nothing for a hundred unchanged files, even with long lines', () => {
    const wide = rows
      .join('')
      .replaceAll(';\n', '; ')
      .replace(/.{2000}/g, '$&\n');
    const docs = Array.from({ length: 100 }, (_, i) => document(`${i}\n${wide}`));
    for (const doc of docs) layout.beginning(doc);
    const started = performance.now();
    for (let key = 0; key < 5; key++) for (const doc of docs) layout.beginning(doc);
    expect(performance.now() - started).toBeLessThan(500);
  });
});
