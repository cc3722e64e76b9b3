/** Tasks: what is asked, and how raw text becomes what is shown. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { Documents } from '../../../engine/server/documents.ts';
import type { EngineMessage } from '../../../engine/protocol/messages.ts';
import type { SamplingParams } from '../../../engine/protocol/tasks.ts';
import { RequestOutput } from '../../../engine/server/requestOutput.ts';
import { isFactCommand, parseSlash } from '../../../engine/protocol/slash.ts';
import { measureChat, prepareChat, shapeAnswer } from '../../../engine/tasks/chatTask.ts';
import { prepareComplete } from '../../../engine/tasks/completeTask.ts';
import { type PreparedRequest, prepareRaw } from '../../../engine/tasks/preparedRequest.ts';
import { repeatedEnd, runaway } from '../../../engine/tasks/repetition.ts';
import { measureSummarize, prepareSummarize, summarizeFolder } from '../../../engine/tasks/summarizeTask.ts';
import { starterLayout } from '../../support/starter.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Tokenizer } from '../../../engine/text/tokenizer/tokenizer.ts';
import { tokensBehind, userRanges } from '../../../engine/text/prompt/chatPrompt.ts';

const root = join(import.meta.dirname, '../../..');
let layout: Layout;
let general: Layout;
let copying: Layout;

beforeAll(async () => {
  layout = await starterLayout({ copies: false });
  copying = await starterLayout({ copies: true });
  general = new Layout(await ModelText.load(join(root, 'test/fixtures/chat/chatml_qwen2.5')), {
    contextTokens: 4096,
    numParameters: 5e8,
  });
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
    ['ends before a bracket that stands there', 'if (|)', 'a > 0) {', 'a > 0'],
    ['ends before it behind brackets of its own', 'f(|);', 'g(a), [b]);  // c', 'g(a), [b]'],
    ['does not take a bracket in a string for it', 'f(|)', "')', a) + b", "')', a"],
    ['closes what the line has opened and not closed', 'f(g(|)', 'a));', 'a)'],
    ['closes nothing that the rest of the line closes', 'f(g(|));', 'a)) + b', 'a'],
    ["keeps a string's own quote", "f(|')", "'x'", "'x'"],
    ['loses a quote that was opened before', "f('|')", "abc')", 'abc'],
    ['loses white space at its end', 'let a = |', '1;   ', '1;'],
    ['keeps white space before the rest of the line', 'a = |b;', 'c + ', 'c + '],
    ['is empty when the model starts a new line', 'let a = 1;|', '\nlet b', ''],
    ['is empty when only white space', 'let a = |', '   ', ''],
    ['is empty when the next line is the same', '  |\n  return x;\n', 'return x;', ''],
    ['is empty when it completes the line to the next one', '  ret|\n  return x;\n', 'urn x;', ''],
    ['is kept when it only starts like the next line', '  |\n  return x;\n', 'return x + 1;', 'return x + 1;'],
    [
      'is cut where it repeats itself',
      'x = |',
      'alpha, beta, alpha, beta, alpha, beta, alpha, beta, ',
      'alpha, beta, '.trimEnd(),
    ],
    ['keeps a short list', 'x = [|', '0, 0, 0, 0];', '0, 0, 0, 0];'],
  ])('%s', (_, marked, raw, wanted) => expect(shown(marked, raw)).toBe(wanted));

  it.each([
    ['goes on to the end of the block it opens', 'if (a) {|\n', '\n  b();\n  c();\n}\nd();\n', '\n  b();\n  c();\n}'],
    ['leaves a closing bracket that stands there', 'if (a) {|\n}\n', '\n  b();\n}\nd();', '\n  b();'],
    [
      'ends where the block of its line ends',
      'def f():\n    |',
      'a = 1\n    return a\ndef g():',
      'a = 1\n    return a',
    ],
    ['ends before a line that stands there', 'a();\n|\nb();\n', 'x();\ny();\nb();\nc();', 'x();\ny();'],
    ['leaves out blank lines at its end', '|', 'x();\n\n\n', 'x();'],
    ['is one line in the middle of a line', 'f(|);\n', 'a\nb', 'a'],
  ])('of many lines %s', (_, marked, raw, wanted) => expect(shown(marked, raw, true)).toBe(wanted));

  it('says why nothing is shown', () => {
    expect(at('let a = |').shape('  \n', true).note).toBe('only white space');
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

  it('has the line ends of the document', () => {
    expect(shown('if (a) {|\r\n}\r\n', '\n  b();\n  c();\n}', true)).toBe('\r\n  b();\r\n  c();');
  });

  it('holds back text that may be cut as repetition or as the rest of the line', () => {
    const { shape } = at('const zeros = [0, 0, |, 0];');
    expect(shape('0, 0,', false).text).toBe('0');
    expect(shape('0, '.repeat(30), false)).toMatchObject({ text: '0', stop: true });
  });

  it('never takes shown text back when it repeats itself', () => {
    const marked = fc.constantFrom(
      'x = [0, |, 0];\n',
      'f(|);\n',
      'x = "a|"b',
      'x |ab',
      'f([|)',
      'x = |',
      '|, 0]  ',
      'x =|  c',
      '{|\n  a\n',
    );
    const text = fc
      .array(
        fc.constantFrom(
          '0',
          ', ',
          ', 0',
          ']',
          ';',
          '"',
          '"b',
          'a',
          'b',
          ' ',
          '(',
          ')',
          ', 0];',
          ');',
          '\\',
          '\n',
          '  ',
        ),
        { minLength: 1, maxLength: 5 },
      )
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(
        marked,
        fc.boolean(),
        fc.option(text, { nil: '' }),
        text,
        fc.nat(3),
        fc.nat(12),
        (cursor, multiline, prefix, unit, step, tail) => {
          const { shape } = at(cursor, multiline);
          const whole = prefix + unit.repeat(30) + unit.slice(0, tail);
          let before = '';
          for (let end = 1; end <= whole.length; end += 1 + step) {
            const { text: shown, stop } = shape(whole.slice(0, end), false);
            expect(shown.startsWith(before)).toBe(true);
            expect(shape(whole.slice(0, end), true).text.startsWith(shown)).toBe(true);
            before = shown;
            if (stop) break;
          }
        },
      ),
      { numRuns: 600, seed: 5 },
    );
  });

  it('never takes shown text back', () => {
    const part = fc.constantFrom(
      'a',
      'b',
      'foo',
      '(',
      ')',
      ');',
      "'",
      '"',
      ' ',
      '  ',
      '\n',
      '\n  ',
      '\n}',
      '}',
      'return x;',
      'return ',
      'x;',
      '\r\n',
      '\r',
      '\t',
      'ab'.repeat(5),
      '[0, ',
      ']',
    );
    const context = fc.constantFrom(
      'foo(|);',
      'f(g(|)',
      'a[|]',
      "x('|')",
      '  |\n  return x;\n',
      'if (a) {|\n}\n',
      '    a = |\n\nb',
      'if (a) {|\r\n}\r\n',
      '|',
      'a |b(c)\n',
    );
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

  it('gets a seed of its own when it is sampled', () => {
    const doc = new SourceDocument('a', 'a.ts', 'x');
    const seed = (sampling: SamplingParams): number =>
      prepareComplete(layout, doc, { offset: 1 }, sampling).sampling.seed;
    expect(seed({ temperature: 1 })).not.toBe(seed({ temperature: 1 }));
    expect(seed({ temperature: 1, seed: 7 })).toBe(7);
    expect(seed({})).toBe(0);
  });

  it('resolves its sampling', () => {
    const request = at('let a = |');
    expect(request.sampling).toMatchObject({ temperature: 0, maxTokens: 48, topP: 1, stop: [] });
    expect(request.stopTokenIds).toContain(0);
    expect(request.docId).toBe('a');
  });

  it('copies from the current text of the whole file, and not from removed passages', () => {
    const behind = `${'const filler = 1;\n'.repeat(200)}doSomething(alpha, beta);\n`;
    const source = `doSomething(\n${behind}`;
    const doc = new SourceDocument('a', 'a.ts', source);
    const { tokenizer } = layout.text;
    // The bracket, which has come off the prompt, is said again first.
    const copied = (prepared: PreparedRequest): string[] => {
      const prior = prepared.prior!();
      prior.push(tokenizer.encode('(')[0]!, '');
      return prior.next()?.tokenIds.map((id) => tokenizer.decode([id])) ?? [];
    };
    const prepared = prepareComplete(copying, doc, { offset: 'doSomething('.length });
    doc.text = 'all of it is another text now';
    expect(copied(prepared)[0]).toBe('alpha');
    doc.text = 'doSomething(';
    expect(copied(prepareComplete(copying, doc, { offset: doc.text.length }))).toEqual([]);
    doc.removed = ['doSomething(gamma);\n'];
    expect(copied(prepareComplete(copying, doc, { offset: doc.text.length }))).toEqual([]);
  });

  it('shows confident text only, and all text on request', () => {
    const doc = new SourceDocument('a', 'a.ts', 'let a = ');
    const sure = prepareComplete(layout, doc, { offset: 8 });
    expect(sure.confidence).toEqual({ line: expect.any(Number), words: expect.any(Number), lines: expect.any(Number) });
    expect(sure.sampling.logprobs).toBe(true);
    const all = prepareComplete(layout, doc, { offset: 8, showLowConfidence: true });
    expect(all.confidence).toBeUndefined();
    // What is drawn has its first line whatever it is worth.
    expect(prepareComplete(layout, doc, { offset: 8, showLowConfidence: 'line' })).toMatchObject({
      confidence: { line: 0, words: 0, lines: sure.confidence!.lines },
      sampling: { logprobs: true },
    });
    expect(all.sampling.logprobs).toBe(false);
  });

  it('drafts also from removed passages', () => {
    const doc = new SourceDocument('a', 'a.ts', 'let a = 1;\n');
    const sources = () =>
      prepareComplete(layout, doc, { offset: doc.text.length }).draftSources!().map((ids) =>
        layout.text.tokenizer.decode(ids),
      );
    expect(sources()).not.toContain('function gone(): void {}\n');
    doc.removed = ['function gone(): void {}\n'];
    expect(sources()[0]).toBe('function gone(): void {}\n');
  });

  it('encodes removed passages once, until they change', () => {
    const documents = new Documents();
    const doc = documents.open('a', 1, 'a.ts', 'const first = 1;\nconst second = 2;\n');
    const encode = vi.spyOn(layout.text.tokenizer, 'encode');
    const encoded = (): string[] => {
      encode.mockClear();
      prepareComplete(layout, doc, { offset: 0 }).draftSources!();
      prepareComplete(layout, doc.withInserted(0, 'x'), { offset: 1 }).draftSources!();
      return encode.mock.calls.flatMap(([text]) => (doc.removed.includes(text) ? [text] : []));
    };
    documents.edit('a', 2, [{ start: 0, end: 17, text: '' }]);
    expect(encoded()).toEqual(['const first = 1;\n']);
    documents.edit('a', 3, [{ start: 0, end: 0, text: '// one more\n' }]);
    expect(encoded()).toEqual([]);
    documents.edit('a', 4, [{ start: 12, end: 30, text: '' }]);
    expect(encoded()).toEqual(['const first = 1;\n', 'const second = 2;\n']);
    encode.mockRestore();
  });

  it('refuses a position outside the text', () => {
    expect(() => prepareComplete(layout, new SourceDocument('a', 'a.ts', 'abc'), { offset: 4 })).toThrow(
      /offset 4 is outside a\.ts/,
    );
  });
});

it('an empty file is not completed by a model that copies', () => {
  const known = (of: Layout, text: string) =>
    prepareComplete(of, new SourceDocument('e', 'src/e.py', text), { offset: 0, multiline: true }).known;
  for (const text of ['', '\n', '  \r\n'])
    expect(known(copying, text)).toEqual({ text: '', note: 'the file is empty', source: 'stock' });
  expect(known(copying, 'import os\n')).toBeUndefined();
  expect(known(general, '')).toBeUndefined();
});

describe('an answer', () => {
  it.each([
    ['\n\nIt adds.\n', 'It adds.'],
    ['It adds.', 'It adds.'],
    ['    code', '    code'],
  ])('%j is shown as %j', (raw, wanted) => expect(shapeAnswer(raw, true).text).toBe(wanted));

  it('never takes shown text back', () => {
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

  it('that repeats itself is stopped', () => {
    expect(shapeAnswer('It adds two numbers and returns them. '.repeat(12), false)).toMatchObject({
      stop: true,
      note: expect.stringMatching(/repeats/),
    });
    expect(shapeAnswer(`| a | b |\n|---|---|\n${'| 1 | 2 |\n'.repeat(5)}`, false).stop).toBe(false);
  });

  const end = {
    finishReason: 'stop' as const,
    usage: { promptTokens: 1, cachedTokens: 0, completionTokens: 1, blockTokens: 0 },
    timings: { queueMs: 0, ttftMs: 0, tpotMs: 0 },
  };

  it.each([
    '- [ ] TODO\n'.repeat(8),
    `| a | b | c |\n|---|---|---|\n${'|   |   |   |\n'.repeat(8)}`,
    `Title\n${'-'.repeat(120)}\ntext`,
    `Title\n${'-'.repeat(120)}`,
    `\`\`\`ts\n${'  a();\n'.repeat(12)}\`\`\``,
  ])('that the model has ended is never shortened: %j', (answer) => {
    const sent: EngineMessage[] = [];
    const request = new RequestOutput('r', { shape: shapeAnswer, notes: [], withAlternatives: false }, (message) =>
      sent.push(message),
    );
    // The last piece comes with the model's end.
    request.addText(answer);
    request.finish(end);
    expect(sent.at(-1)).toMatchObject({ type: 'done', text: answer.trimEnd() });
    expect(shapeAnswer(answer, true)).toEqual({ text: answer.trimEnd(), stop: true });
  });

  it('that repeats itself streams, and ends where it was stopped, with a note', () => {
    const sent: EngineMessage[] = [];
    const request = new RequestOutput('r', { shape: shapeAnswer, notes: [], withAlternatives: false }, (message) =>
      sent.push(message),
    );
    const round = 'It adds two numbers. ';
    let numRounds = 1;
    while (!request.addText(round)) numRounds++;
    request.finish(end);
    expect(sent.filter(({ type }) => type === 'chunk')).toHaveLength(numRounds);
    expect(numRounds).toBeLessThan(8);
    expect(sent.at(-1)).toMatchObject({
      type: 'done',
      text: round.repeat(numRounds).trimEnd(),
      diagnostics: [expect.stringMatching(/repeats/)],
    });
  });

  it.each([
    ['an answer', prepareChat, 'length', ['cut off after 1 tokens']],
    ['an answer that has ended', prepareChat, 'stop', []],
    ['raw text', () => ({}), 'length', []],
  ] as const)('that may have no more tokens says that it is cut: %s', (_, prepare, finishReason, diagnostics) => {
    const { isProse } = {
      isProse: undefined,
      ...prepare(layout, { docs: [], messages: [{ role: 'user', content: 'Hi' }] }),
    };
    const sent: EngineMessage[] = [];
    const request = new RequestOutput(
      'r',
      { shape: shapeAnswer, notes: [], withAlternatives: false, ...(isProse ? { isProse } : {}) },
      (message) => sent.push(message),
    );
    request.addText('It adds');
    request.finish({ ...end, finishReason });
    expect(sent.at(-1)).toMatchObject({ type: 'done', text: 'It adds', diagnostics });
  });

  it.each([
    ['abort', '', []],
    ['abort', 'It', []],
    ['stop', '', ['the model gave no answer']],
  ] as const)(
    "that is stopped before it begins is not the model's fault: %s, %j",
    (finishReason, text, diagnostics) => {
      const sent: EngineMessage[] = [];
      const request = new RequestOutput('r', { shape: shapeAnswer, notes: [], withAlternatives: false }, (message) =>
        sent.push(message),
      );
      if (text) request.addText(text);
      request.finish({ ...end, finishReason });
      expect(sent.at(-1)).toMatchObject({ type: 'done', text, diagnostics });
    },
  );

  it('of a small model has a prompt without earlier turns that the model did not write', () => {
    const doc = new SourceDocument('a', 'src/a.ts', 'export function parse(text: string) {}\n');
    const question = (content: string) => ({ role: 'user', content }) as const;
    const answer = (content: string, source?: 'files' | 'stock') =>
      ({ role: 'assistant', content, ...(source ? { source } : {}) }) as const;
    const known = [question('/where parse'), answer('`parse` is defined on line 1.', 'files')];
    const stock = [question('Hi'), answer('Hello!', 'stock')];
    const own = [question('Is it fast?'), answer('Yes.')];
    const last = question('Why?');
    const promptOf = (of: Layout, ...messages: ReturnType<typeof question | typeof answer>[]) =>
      prepareChat(of, { docs: [doc], messages }).promptIds;
    expect(promptOf(layout, ...known, ...own, ...stock, ...known, last)).toEqual(promptOf(layout, ...own, last));
    expect(measureChat(layout, { docs: [doc], messages: [...known, ...own, last] }).promptTokens).toBe(
      promptOf(layout, ...own, last).length,
    );
    expect(layout.text.tokenizer.decode(promptOf(layout, ...own, last))).toMatch(
      /Is it fast\?[\s\S]*Yes\.[\s\S]*Why\?/,
    );
    expect(general.text.tokenizer.decode(promptOf(general, ...known, last))).toContain('is defined on line 1.');
  });

  it('is shown as the text of the model', () => {
    const doc = new SourceDocument(
      'a',
      'src/shop.ts',
      "import { Money } from './money';\nclass Basket {\n  add() {}\n}\n",
    );
    for (const content of ['Which class has an add method?', 'Can I import Basket from this file?', 'What is it?'])
      for (const raw of [
        'There is no `has` in src/shop.ts.',
        'This file imports `./money`.',
        'It parses `text`.',
        'Yes.',
      ])
        for (const finished of [true, false]) {
          const shaped = prepareChat(layout, { docs: [doc], messages: [{ role: 'user', content }] }).shape(
            raw,
            finished,
          );
          expect(shaped.text).toBe(raw);
          expect(shaped).not.toHaveProperty('source');
        }
  });

  it('says without the model what Kvasir can do, and that a file is empty', () => {
    const empty = new SourceDocument('e', 'src/empty.ts', '\n');
    const reply = (content: string, docs: SourceDocument[] = [], snippets: { path: string; text: string }[] = []) =>
      prepareChat(layout, { docs, snippets, messages: [{ role: 'user', content }] }).known;
    expect(reply('What can you do?')).toMatchObject({ text: expect.stringContaining('/where NAME'), source: 'stock' });
    expect(reply('/help')).toMatchObject({ text: expect.stringContaining('/where NAME'), source: 'stock' });
    expect(reply('/foo')?.text).toMatch(
      /^There is no command `\/foo`\. The commands are `\/explain`, .*`\/callers`\.$/,
    );
    // The chat in the editor has the same commands.
    const commands =
      reply('/foo')
        ?.text.match(/`\/(?!foo)\w+`/g)
        ?.map((command) => command.slice(1, -1)) ?? [];
    expect(commands.filter((command) => !parseSlash(command) && !isFactCommand(command))).toEqual([]);
    expect(commands).toHaveLength(10);
    expect(reply('/usr/bin')?.source).not.toBe('stock');
    expect(reply('O que você sabe fazer?')?.text).toContain('/where NOME');
    const isEmpty = { text: '`src/empty.ts` is empty: there is nothing in it to answer from.', source: 'files' };
    for (const question of ['What is this file for?', 'Which functions are defined?', 'explain empty.ts'])
      expect(reply(question, [empty]), question).toMatchObject(isEmpty);
    expect(reply('O que faz este arquivo?', [empty])?.text).toMatch(/está vazio/);
    for (const question of ['Write a function here', 'What is recursion?', 'Escreva um teste para este arquivo'])
      expect(reply(question, [empty])?.source, question).toBe('refused');
    expect(reply('Hi', [empty])).toBeUndefined();
    expect(reply('What is this file for?', [empty], [{ path: 'b.ts', text: 'b();' }])).toBeUndefined();
  });

  describe('of a model that is too small for the question', () => {
    const doc = new SourceDocument('a', 'src/a.ts', 'export function parse(text: string) {}\n');
    const reply = (of: Layout, content: string, more: Partial<Parameters<typeof prepareChat>[1]> = {}) =>
      prepareChat(of, { docs: [doc], messages: [{ role: 'user', content }], ...more }).known;
    const WANTED = [
      'Why is it slow?',
      'Write a test for parse',
      'Como uso parse?',
      'Explain recursion',
      'Is it safe?',
      'Is `parse` safe?',
    ];

    it('is one short sentence that offers a larger model and recommends nothing else', () => {
      for (const question of WANTED)
        expect(reply(layout, question), question).toEqual({
          text: `${layout.text.manifest.name} is too small for this: choose a larger model.`,
          source: 'refused',
        });
      const portuguese = JSON.parse(readFileSync(join(root, 'l10n/bundle.l10n.pt-br.json'), 'utf8')) as Record<
        string,
        string
      >;
      for (const said of Object.entries(portuguese)
        .flat()
        .filter((text) => /too small for this|pequeno demais para isto/.test(text)))
        expect(said.split(/\s+/).length, said).toBeLessThanOrEqual(15);
    });

    it('is not given if the user insists, the model knows the question, or the message contains its own text', () => {
      for (const question of WANTED) expect(reply(layout, question, { anyway: true }), question).toBeUndefined();
      const known = [
        'Summarise this file.',
        'Summarize this file',
        'explain the code',
        'What is this?',
        'Resuma este arquivo',
        'Hi',
        'Thanks!',
        'Why?\nIt takes a second.',
        'x'.repeat(201),
      ];
      for (const question of known) expect(reply(layout, question), question).toBeUndefined();
      // It was not trained to sum up other files.
      const other = new SourceDocument('s', 'a.sql', 'create table a (b int);\n');
      expect(reply(layout, 'What is this?', { docs: [other] })?.source).toBe('refused');
      const snippets = [{ path: 'src/a.ts', text: 'return 1;', startLine: 3 }];
      for (const question of ['What does this code do?', 'O que faz este código?', 'Is it fast?'])
        expect(reply(layout, question, { snippets, isSummary: true })?.source, question).toBe('refused');
      expect(reply(layout, 'Summarize this file', { snippets, isSummary: true })).toBeUndefined();
      // A larger model is asked anything.
      for (const question of WANTED) expect(reply(general, question), question).toBeUndefined();
    });

    it('says of a name that stands nowhere that it does not appear', () => {
      for (const [question, name] of [
        ['What does parseAll do?', 'parseAll'],
        ['Why is next_id slow?', 'next_id'],
        ['Is `safe` used well?', 'safe'],
        ['Does load() throw, and why', 'load'],
        ['Como funciona parseTudo?', 'parseTudo'],
        // A plain word where only a name can stand.
        ['Who calls pay?', 'pay'],
        ['Where is pay called?', 'pay'],
        ['Where is pay defined?', 'pay'],
        ['What does pay return?', 'pay'],
        ['Which arguments does pay take?', 'pay'],
        ['Which methods does Wallet have?', 'Wallet'],
        ['Where is total changed?', 'total'],
        ['Quem chama pagar?', 'pagar'],
        ['Onde pagar é definida?', 'pagar'],
        ['O que pagar retorna?', 'pagar'],
      ])
        expect(reply(layout, question as string), question).toEqual({
          text: `\`${name}\` does not appear in \`src/a.ts\`.`,
          note: 'from the code of src/a.ts, not written by the model',
          source: 'files',
        });
      // Words, products, and names that stand somewhere.
      for (const question of [
        'Is it JavaScript?',
        'Which parameters does the constructor take?',
        'quais parâmetros o construtor recebe?',
        'Does it run on macOS?',
        'Why does PARSE() fail?',
        'What is `a` for?',
        'Does it use camelCase or snake_case?',
        'What does `npm install` do?',
        'Where is the bug?',
        'Who calls it?',
        'Who calls this method?',
        'Where is that defined?',
        'Where are variables changed?',
        'Who calls everything?',
        'Explain recursion',
        'What does recursion do?',
        'Quem chama isso?',
        'O que ele retorna?',
        'Who calls the last function?',
        'Where is the base class defined?',
        'What does the whole function return?',
        'Who calls my function?',
        'Who calls the constructor?',
        'What does Python return?',
        'Quem chama a função principal?',
        'Quem chama a função anterior?',
        'Quem muda a lista?',
        // An inflected form of a name that is there.
        'Who calls parses?',
        // The name is that of something new.
        'Write a function parseAll',
        'Can you add a method `toJson`?',
        'Crie uma função parseTudo',
      ])
        expect(reply(layout, question)?.source, question).toBe('refused');
      const asked = 'What does parseAll do?';
      expect(reply(layout, asked, { anyway: true })).toBeUndefined();
      expect(reply(general, asked)).toBeUndefined();
      // Asked twice, it is answered twice. What the user or the model said before may have the name.
      const docs = [new SourceDocument('s', 'src/a.ts', 'return 1;\n')];
      const again = (answer: object) =>
        prepareChat(layout, {
          docs,
          messages: [
            { role: 'user', content: asked },
            { role: 'assistant', content: '', ...answer },
            { role: 'user', content: asked },
          ],
        }).known;
      const first = prepareChat(layout, { docs, messages: [{ role: 'user', content: asked }] }).known;
      expect(first?.source).toBe('files');
      expect(again({ content: first?.text, source: 'files' })).toEqual(first);
      expect(again({ content: 'It parses.' })?.source).toBe('refused');
      // Another part of that file may have the name.
      const snippets = [{ path: 'src/b.ts', text: 'return 1;', startLine: 3 }];
      expect(reply(layout, asked, { snippets })?.source).toBe('refused');
    });

    it('is given also after the model has written code, but not after the user has', () => {
      const after = (role: 'user' | 'assistant', docs: SourceDocument[] = [doc]) =>
        prepareChat(layout, {
          docs,
          messages: [
            { role: 'user', content: role === 'user' ? 'See:\nlet a = 1;' : 'Document it.' },
            { role: 'assistant', content: role === 'user' ? 'Yes.' : '```ts\n/** Parses. */\n```' },
            { role: 'user', content: 'Why is it slow?' },
          ],
        }).known?.source;
      expect(after('assistant')).toBe('refused');
      expect(after('user')).toBeUndefined();
      expect(after('assistant', [])).toBe('unattached');
      expect(after('user', [])).toBeUndefined();
    });
  });

  it('says that no file is attached, instead of being about a file that does not exist', () => {
    const reply = (of: Layout, ...contents: string[]) =>
      prepareChat(of, {
        docs: [],
        messages: contents.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content })),
      }).known;
    const text = `No file is attached, and ${layout.text.manifest.name} answers only about files. Attach one, and ask again.`;
    for (const question of [
      'Where is nextId changed?',
      'what calls balance?',
      'Quem chama `add`?',
      'Explain recursion',
    ])
      expect(reply(layout, question), question).toEqual({ text, source: 'unattached' });
    for (const question of ['What does this file do?\nBe short.', 'Where is `foo` defined and what calls `bar`?'])
      expect(reply(layout, question)?.source, question).toBe('unattached');
    expect(reply(layout, 'What is `a`?', 'A fact.', 'And what is it for?')?.source).toBe('unattached');
    // These are not about a file.
    expect(reply(layout, 'Hi')).toBeUndefined();
    expect(reply(layout, 'Who are you?')?.source).toBe('stock');
    for (const question of ['Explain:\nlet a = 1;', 'Thanks!'])
      expect(reply(layout, question), question).toBeUndefined();
    for (const question of ['Explain `let a`', 'Explain const x = a ?? b', 'def f(x): return x -- what is it?'])
      expect(reply(layout, question)?.source, question).toBe('refused');
    // A larger model knows things by itself.
    expect(reply(general, 'Explain recursion')).toBeUndefined();
  });

  describe('about a file of which nothing fits', () => {
    let small: Layout;
    beforeAll(() => {
      small = new Layout(layout.text, { contextTokens: 64, numParameters: 0 });
    });
    const file = (name: string) =>
      new SourceDocument(name, `src/${name}.ts`, `${'export const value = compute(1, 2, 3);\n'.repeat(40)}`);
    const turn = (role: 'user' | 'assistant', content: string) => ({ role, content });
    const unread = (of: Layout, docs: SourceDocument[], ...messages: ReturnType<typeof turn>[]) =>
      prepareChat(of, { docs, messages }).known?.text;
    const question = turn('user', 'What is it for?');

    it('is answered without the model', () => {
      expect(unread(small, [file('a')], question)).toBe(
        `src/a.ts was not read: no part of it fits in the 64 tokens that ${layout.text.manifest.name} reads.`,
      );
      expect(unread(small, [file('a'), file('b')], question)).toMatch(/^src\/a\.ts, src\/b\.ts were not read: /);
      expect(prepareSummarize(small, file('a')).known?.text).toMatch(/^src\/a\.ts was not read: /);
      expect(prepareSummarize(small, file('a'), { start: 0, end: 4, label: 'value' }).known?.text).toMatch(
        /^src\/a\.ts was not read: /,
      );
    });

    it('goes to the model if a part of a file is read or there is other text', () => {
      expect(unread(layout, [file('a')], question)).toBeUndefined();
      expect(unread(small, [new SourceDocument('c', 'c.ts', 'c();\n'), file('a')], question)).toBeUndefined();
      expect(unread(small, [], question)).toMatch(/^No file is attached/);
      expect(unread(small, [file('a')], turn('user', 'Hi!'))).toBeUndefined();
      expect(unread(small, [file('a')], turn('user', 'Explain:\nlet a;'))).toBeUndefined();
      expect(
        unread(small, [file('a')], turn('user', 'See:\na();'), turn('assistant', 'Yes.'), question),
      ).toBeUndefined();
      // One without `chat.facts` is large enough to know things by itself; it is told with the answer.
      const little = new Layout(general.text, { contextTokens: 130, numParameters: 5e8 });
      expect(unread(little, [file('a')], question)).toBeUndefined();
      expect(prepareChat(little, { docs: [file('a')], messages: [question] }).notes).toEqual([
        expect.stringMatching(/^src\/a\.ts: /),
      ]);
      expect(prepareSummarize(small, file('a'), { start: 0, end: 12 }).known).toBeUndefined();
    });
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

  it('of a model that was not trained on instructions has a note on that', () => {
    const request = prepareChat(layout, {
      docs: [],
      messages: [
        { role: 'system', content: 'Be nice.' },
        { role: 'user', content: 'Hi' },
      ],
    });
    expect(layout.text.tokenizer.decode(request.promptIds)).not.toContain('Be nice');
    expect(request.notes).toEqual([expect.stringMatching(/system message is left out/)]);
  });
});

describe('a summary', () => {
  it('is shown as the model wrote it', () => {
    const file = new SourceDocument('a', 'src/a.ts', 'const a = 1;\nfunction parse() {}\n');
    expect(prepareSummarize(layout, file).shape('Defines the class `B`.', true)).toEqual({
      text: 'Defines the class `B`.',
      stop: true,
    });
  });

  const code = 'class A {\r\n    b() {\r\n        return 1;\r\n    }\r\n}\r\n';
  const doc = new SourceDocument('a', 'src/a.ts', code);
  const prompt = (range?: { start: number; end: number; label?: string }): string =>
    layout.text.tokenizer.decode(prepareSummarize(layout, doc, range).promptIds);

  it.each([
    ['a file', undefined, 'Summarise this file.'],
    ['a symbol', { start: 9, end: 20, label: 'b' }, 'What does `b` do?'],
    [
      'a selection',
      { start: code.indexOf('    b'), end: code.indexOf('\r\n}'), label: '' },
      'What does this code do?\n```ts\nb() {\n    return 1;\n}\n```',
    ],
  ])('of %s uses the question that the model knows', (_, range, question) => {
    expect(prompt(range)).toBe(
      `<|file_sep|>src/a.ts\n${doc.lf}<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`,
    );
  });

  it('that denies a name in the file gets a note, as any answer does', () => {
    const text = Object.create(layout.text, {
      manifest: { value: { ...layout.text.manifest, chat: { ...layout.text.manifest.chat, facts: false } } },
    }) as ModelText;
    const other = new Layout(text, { contextTokens: layout.contextTokens, numParameters: 7e6 });
    const note = (answer: string): string | undefined =>
      prepareSummarize(other, doc, { start: 0, end: 5, label: 'b' }).shape(answer, true).note;
    expect(note('There is no `b` in src/a.ts.')).toBe('`b` does occur in src/a.ts: the model overlooked it');
    expect(note('Não existe `b` em src/a.ts.')).toBe('`b` does occur in src/a.ts: the model overlooked it');
    expect(note('Não há `bb` em src/a.ts.')).toBeUndefined();
    expect(note('There is no `A.b`.')).toBe('`b` does occur in src/a.ts: the model overlooked it');
    expect(note('There is no method `b` in src/a.ts.'), 'it may well be something else').toBeUndefined();
    expect(note('There is no `bb` in src/a.ts.')).toBeUndefined();
    expect(note('There is no limit to what `b` returns.')).toBeUndefined();
    const { shape } = prepareChat(other, { docs: [doc], messages: [{ role: 'user', content: 'What does `A` do?' }] });
    expect(shape('There is no `A`', false).note).toBeUndefined();
    expect(shape('There is no `A` in src/a.ts.', true).note).toBe(
      '`A` does occur in src/a.ts: the model overlooked it',
    );
  });

  describe('of a long file', () => {
    const text = Array.from({ length: 140 }, (_, i) => `export const value${i} = compute(${i});\n`).join('');
    const outlines = (of: string) => () => [{ text: of, numLines: 90 }];
    const notesOf = (doc: SourceDocument, ...more: [range?: undefined, sampling?: undefined, outlines?: never]) =>
      prepareSummarize(layout, doc, ...more).notes;
    const promptOf = ({ promptIds }: PreparedRequest) => layout.text.tokenizer.decode(promptIds);

    it('reads all that its question and answer leave of the context, more than a chat does', () => {
      const file = new SourceDocument('a', 'src/a.ts', text);
      const chat = prepareChat(layout, { docs: [file], messages: [{ role: 'user', content: 'Where is `value3`?' }] });
      const summary = prepareSummarize(layout, file);
      expect(chat.notes).toEqual([expect.stringMatching(/^src\/a\.ts: lines \d+-140 of 140 left out$/)]);
      expect(summary.notes).toEqual([]);
      expect(promptOf(summary)).toContain(text);
      // They share the rows of the beginning.
      const numShared = chat.blockTokens;
      expect(summary.promptIds.slice(0, numShared)).toEqual(chat.promptIds.slice(0, numShared));
      expect(summary.promptIds.length + summary.sampling.maxTokens).toBeLessThanOrEqual(2048);
    });

    it('too long even for that is read as its outline, and says so', () => {
      const file = new SourceDocument('a', 'src/a.ts', text.repeat(3));
      expect(notesOf(file)).toEqual([expect.stringMatching(/lines \d+-420 of 420 left out/)]);
      const outlined = prepareSummarize(layout, file, undefined, undefined, outlines('const short = 1;\n'));
      expect(outlined.notes).toEqual(['src/a.ts: bodies of functions left out, 90 of 420 lines']);
      expect(promptOf(outlined)).toContain('const short = 1;');
      expect(promptOf(outlined)).not.toContain('value1');
      // The rows of the outline are not those of the file.
      expect([outlined.docId, outlined.blockTokens]).toEqual([null, 0]);
      const size = measureSummarize(layout, file, undefined, undefined, outlines('const short = 1;\n'));
      expect([size.notes, size.promptTokens]).toEqual([outlined.notes, outlined.promptIds.length]);
    });

    it('takes the longest outline that fits, and the beginning of the file if none does', () => {
      const file = new SourceDocument('a', 'src/a.ts', text.repeat(3));
      const both = () => [...outlines(text.repeat(2))(), ...outlines('const short = 1;\n')()];
      expect(promptOf(prepareSummarize(layout, file, undefined, undefined, both))).toContain('const short');
      const none = prepareSummarize(layout, file, undefined, undefined, outlines(text.repeat(2)));
      expect([none.notes, none.docId]).toEqual([[expect.stringMatching(/^src\/a\.ts: lines /)], 'a']);
    });

    it('that fits is read as it is', () => {
      const file = new SourceDocument('a', 'src/a.ts', text.slice(0, 600));
      expect(promptOf(prepareSummarize(layout, file, undefined, undefined, outlines('x\n')))).toContain('value10');
    });
  });

  it('refuses a range outside the text', () => {
    expect(() => prepareSummarize(layout, doc, { start: 5, end: 500 })).toThrow(/range 5-500 is outside src\/a\.ts/);
  });

  it('of a folder is a list, or a request for models that can write one', () => {
    const files = [
      { path: 'src/a.ts', text: 'Adds\nnumbers.' },
      { path: 'src/b.ts', text: '' },
    ];
    expect(summarizeFolder(layout, 'src', files)).toEqual({
      kind: 'text',
      text: '- src/a.ts: Adds numbers.\n- src/b.ts: no summary',
    });
    const reduced = summarizeFolder(general, 'src', files);
    expect(reduced.kind === 'request' && general.text.tokenizer.decode(reduced.request.promptIds)).toContain(
      'Folder src:\n- src/a.ts: Adds numbers.',
    );
    // What was cut short says so where people read it, and nothing to a model.
    const cut = files.map((file) => ({ ...file, note: 'cut' }));
    expect(summarizeFolder(layout, 'src', cut)).toEqual({
      kind: 'text',
      text: '- src/a.ts: Adds numbers. (cut)\n- src/b.ts: no summary (cut)',
    });
    const reducedCut = summarizeFolder(general, 'src', cut);
    expect(reducedCut.kind === 'request' && reduced.kind === 'request' && reducedCut.request).toMatchObject({
      promptIds: reduced.kind === 'request' && reduced.request.promptIds,
      notes: ['src/a.ts: cut', 'src/b.ts: cut'],
    });
    expect(summarizeFolder(general, 'src', [])).toMatchObject({ kind: 'text' });
  });
});

describe('a greeting', () => {
  const promptOf = (of: Layout, ...contents: string[]) =>
    prepareChat(of, {
      docs: [],
      messages: contents.map((content, i) => ({ role: i % 2 ? 'assistant' : 'user', content })),
    }).promptIds;

  it('is replaced by one that the built-in model knows in that language', () => {
    for (const message of ['hello', 'hi', 'Hi!', 'Good morning', 'hey there', ' Hello, Kvasir. ', 'good  evening!'])
      expect(promptOf(layout, message), message).toEqual(promptOf(layout, 'Hello there'));
    for (const message of ['oi', 'olá', 'Bom dia!', 'boa tarde'])
      expect(promptOf(layout, message), message).toEqual(promptOf(layout, 'Olá!'));
    expect(promptOf(layout, 'hi', 'hi', 'What is it?')).toEqual(promptOf(layout, 'Hello there', 'hi', 'What is it?'));
  });

  it('is no question about the files, which a small model does not get with it', () => {
    const docs = [new SourceDocument('a', 'src/a.ts', 'export function parse(text: string) {}\n')];
    const messages = [{ role: 'user' as const, content: 'hello' }];
    expect(prepareChat(layout, { docs, messages }).promptIds).toEqual(promptOf(layout, 'hello'));
    expect(prepareChat(general, { docs, messages }).promptIds).not.toEqual(promptOf(general, 'hello'));
  });

  it('is not replaced in a longer message, or for models without such words', () => {
    for (const message of ['hi, what does `a` do?', 'hello.ts', 'history', 'say hello', ''])
      expect(promptOf(layout, message), message).not.toEqual(promptOf(layout, 'Hello there'));
    expect(general.text.tokenizer.decode(promptOf(general, 'good morning'))).toContain('good morning');
  });
});

describe('a raw prompt', () => {
  it('is continued as it is', () => {
    expect(prepareRaw(layout, [5, 6], { maxTokens: 3 })).toMatchObject({
      promptIds: [5, 6],
      sampling: { maxTokens: 3 },
    });
    expect(prepareRaw(layout, '<|fim_prefix|>a').promptIds[0]).toBe(layout.text.tokenizer.idOf('<|fim_prefix|>'));
    expect(() => prepareRaw(layout, '')).toThrow(/empty/);
    expect(prepareRaw(layout, [5], { maxTokens: Number.NaN }).sampling.maxTokens).toBeNaN();
    expect(() => prepareRaw(layout, new Array(2048).fill(9))).toThrow(
      expect.objectContaining({ code: 'contextTooLong' }),
    );
  });
});

describe.each(readdirSync(join(root, 'test/fixtures/tokenizers')))('a raw prompt of %s', (kind) => {
  it('starts with the BOS of the model', async () => {
    const dir = join(root, 'test/fixtures/tokenizers', kind);
    const { strings } = JSON.parse(readFileSync(join(dir, 'tokenizer_reference.json'), 'utf8')) as {
      strings: { text: string; ids: number[]; ids_with_added: number[] }[];
    };
    const own = new Layout(await ModelText.load(dir), { contextTokens: 100_000, numParameters: 1e6 });
    const [head] = own.text.tokenizer.headIds;
    for (const { text, ids, ids_with_added: wanted } of strings) {
      if (ids.length === 0) continue;
      // A text that brings its own beginning gets no second one.
      expect(prepareRaw(own, text).promptIds, text).toEqual(ids[0] === head ? ids : wanted);
      expect(prepareRaw(own, ids).promptIds).toEqual(ids);
    }
  });
});

it('tokenizer_config.json decides whether a raw prompt starts with BOS', () => {
  const dir = join(root, 'test/fixtures/tokenizers');
  const json = (kind: string): unknown => JSON.parse(readFileSync(join(dir, kind, 'tokenizer.json'), 'utf8'));
  const starcoder = json('starcoder2');
  expect(Tokenizer.fromJson(starcoder, { bos_token: '<|endoftext|>' }).headIds).toEqual([]);
  expect(
    Tokenizer.fromJson(starcoder, { bos_token: { content: '<|endoftext|>' }, add_bos_token: true }).headIds,
  ).toHaveLength(1);
  expect(Tokenizer.fromJson(starcoder, { bos_token: null, add_bos_token: true }).headIds).toEqual([]);
  expect(Tokenizer.fromJson(json('llama3'), { add_bos_token: false }).headIds).toEqual([]);
});

describe('repetition', () => {
  it('is found as by trying every length', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 14 }), (parts) => {
        const text = parts.join('');
        let length = Math.max(0, text.length - 1);
        while (length > 0 && text.lastIndexOf(text.slice(text.length - length), text.length - length - 1) < 0) length--;
        expect(text.length - repeatedEnd(text)).toBe(length);
        const found = runaway(text, () => 3);
        let wanted: number | undefined;
        for (let start = 0; start < text.length && wanted === undefined; start++) {
          for (let period = 1; period * 3 <= text.length - start; period++)
            if (text.slice(start, text.length - period) === text.slice(start + period)) wanted ??= start;
        }
        expect(found?.start).toBe(wanted);
      }),
    );
  });
});

describe('the part of a prompt for the prefill lane', () => {
  const long = 'Please look at this text and say what it does. '.repeat(12);
  const asked = (layoutOf: Layout, ...turns: string[]): PreparedRequest => {
    const messages = turns.map((content, i) => ({
      role: i % 2 === 0 ? ('user' as const) : ('assistant' as const),
      content,
    }));
    const doc = new SourceDocument('a', 'src/a.ts', 'export const one = 1;\n'.repeat(40));
    return prepareChat(layoutOf, { docs: [doc], messages });
  };

  it.each([
    ['the built-in model', () => layout],
    ['a general one', () => general],
  ])(
    'the file and what the user wrote, not what the model did, and the same later in the conversation (%s)',
    (_, of) => {
      const turns = [
        long,
        'It does this and that, I think.',
        'Why?',
        'Because of the other thing.',
        long,
        'Yes.',
        'Thanks!',
      ];
      const [first, second, third, fourth] = [1, 3, 5, 7].map((n) => asked(of(), ...turns.slice(0, n)));
      expect(first!.prefill).toEqual([[0, first!.promptIds.length]]);
      // A short question is for the window lane.
      expect(second!.prefill).toEqual(first!.prefill);
      const [from, to] = third!.prefill[1]!;
      expect(third!.prefill[0]).toEqual(first!.prefill[0]);
      expect(third!.prefill.length).toBe(2);
      expect(to).toBe(third!.promptIds.length);
      // It begins where the answer before it ends, but for what the template writes there.
      const answer = of().text.tokenizer.encode(turns[3]!).length;
      expect(from - (second!.promptIds.length + answer)).toBeGreaterThanOrEqual(0);
      expect(from - (second!.promptIds.length + answer)).toBeLessThan(10);
      expect(fourth!.prefill).toEqual(third!.prefill);
      expect(fourth!.promptIds.slice(0, to)).toEqual(third!.promptIds);
    },
  );

  const encode = (text: string): number[] => [...text].map((c) => c.codePointAt(0)!);

  it('is found with a template that hides reasoning, a changed text, and a repeated message', () => {
    const words = 'abcdefghijklmnopqrstuvwxyz'.repeat(5);
    const other = words.toUpperCase();
    const conversation = `<user>${words}<end><model>yes<end><user>${words}<end><model>no<end><user>why<end><model>so<end><user>${other}<end><model>`;
    const behind = tokensBehind((content) => encode(`<user>${content}<end><model>`), encode);
    expect(behind).toEqual(encode('<end><model>'));
    const texts = userRanges(encode(conversation), [words, words, 'why', other], encode, behind).map(([from, to]) =>
      conversation.slice(from, to),
    );
    expect(texts).toEqual([`<user>${words}<end><model>`, `${words}<end><model>`, `${other}<end><model>`]);
    // What is not found has no place; the others keep theirs.
    expect(userRanges(encode(conversation), [words, 'x'.repeat(100), other], encode, behind)).toHaveLength(2);
    expect(userRanges(encode(conversation), ['why'], encode, behind)).toEqual([]);
    expect(tokensBehind(() => [1, 2, 3], encode)).toEqual([]);
  });

  it('has the messages of the user, trimmed or not, and not the same text in an answer', () => {
    const words = 'abcdefghijklmnopqrstuvwxyz'.repeat(5);
    const behind = encode('<end><model>');
    const placesIn = (conversation: string, contents: string[]): string[] =>
      userRanges(encode(conversation), contents, encode, behind).map(([from, to]) => conversation.slice(from, to));
    const trimmed = `<user>${words}<end><model>yes<end>`;
    expect(placesIn(trimmed, [`\n${words}\n\n`])).toEqual([`<user>${words}<end><model>`]);
    const quoted = `<user>why<end><model>because ${words} is<end><user>${words}<end><model>`;
    expect(placesIn(quoted, ['why', words])).toEqual([`${words}<end><model>`]);
    // Its end is written in another way: the message alone.
    expect(placesIn(`<user>${words}<stop>yes`, [words])).toEqual([`<user>${words}`]);
  });

  it('is the file alone with a short question', () => {
    const { prefill, blockTokens } = asked(layout, 'Why?');
    expect(prefill).toEqual([[0, blockTokens]]);
    expect(blockTokens).toBeGreaterThan(0);
  });

  it('is the file of a completion, or the whole prompt without a file block', () => {
    const doc = new SourceDocument('a', 'src/a.ts', 'export const one = 1;\n'.repeat(100));
    const complete = (of: Layout): PreparedRequest => prepareComplete(of, doc, { offset: doc.text.length });
    const [withBlock, without] = [complete(layout), complete(general)];
    expect(withBlock.blockTokens).toBeGreaterThan(0);
    expect(withBlock.prefill).toEqual([[0, withBlock.blockTokens]]);
    expect(without.prefill).toEqual([[0, without.promptIds.length]]);
  });
});
