/** An answer that denies what was given is not shown; any other is, as it comes. */
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it, test } from 'vitest';
import type { EngineMessage } from '../../../engine/protocol/messages.ts';
import { Request } from '../../../engine/server/request.ts';
import { prepareChat, shapeAnswer } from '../../../engine/tasks/chatTask.ts';
import { withoutDenial } from '../../../engine/facts/denial.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';

const MODEL = join(import.meta.dirname, '../../../model');
const GIVEN = [
  { path: 'src/a.ts', text: 'class Store {\n  flush() {}\n  $count = `1`;\n}\n', startLine: 1 },
  { path: 'src/b.ts', text: 'x();\ntotal();\n', startLine: 40 },
  { path: 'src/c.ts', text: '/* spare */ late("lonely");\nfor (const key in word) count(1);' },
  { path: 'src/d.py', text: 'def rise():  # spare\n    """Of a hill: steep."""\n' },
  { path: 'notes', text: 'loose ends, and looseEnd' },
];
const ASKED =
  'What in the world do `Store.flush()`, Store, $count, `gone`, `Missing` and `loose` do? And total, late, word, Count, rise, spare, steep, lonely, absent, ends?';
const shape = withoutDenial(shapeAnswer, GIVEN, ['And what of looseEnd?', ASKED]);
const BEYOND =
  'This is beyond the model. It can be asked for facts of a file: what it imports, defines or exports, the parameters of a function, the members of a class, where a name is defined. `/summarize` sums a file up, and code is completed as you type. A larger model can be installed for more.';

/** What is shown after each character, where it changes; fails where something that was shown is taken back. */
function streamed(answer: string): string[] {
  const shown: string[] = [];
  let stopped = false;
  for (let n = 1; n <= answer.length && !stopped; n++) {
    const { text, stop } = shape(answer.slice(0, n), false);
    expect(text.startsWith(shown.at(-1) ?? '')).toBe(true);
    if (text !== (shown.at(-1) ?? '')) shown.push(text);
    stopped = stop;
  }
  const { text } = shape(answer, true);
  expect(text.startsWith(shown.at(-1) ?? '')).toBe(true);
  return text === shown.at(-1) ? shown : [...shown, text];
}

describe('denied, and there', () => {
  it.each([
    [
      'There is no `Store` in src/a.ts.',
      '`Store` stands in src/a.ts (line 1: `class Store {`). The model could not say more about it.',
    ],
    [
      'There is no `Store.flush` in src/a.ts. It has none.',
      '`flush` stands in src/a.ts (line 2: `flush() {}`). The model could not say more about it.',
    ],
    [
      'There is no `flush()`',
      '`flush` stands in src/a.ts (line 2: `flush() {}`). The model could not say more about it.',
    ],
    [
      'There is no `flush(key)` in src/a.ts.',
      '`flush` stands in src/a.ts (line 2: `flush() {}`). The model could not say more about it.',
    ],
    [
      'There is no ` flush` in src/a.ts.',
      '`flush` stands in src/a.ts (line 2: `flush() {}`). The model could not say more about it.',
    ],
    [
      'There is no `s flush` in src/a.ts.',
      '`flush` stands in src/a.ts (line 2: `flush() {}`). The model could not say more about it.',
    ],
    [
      'There is no `$count` in src/a.ts.',
      '`$count` stands in src/a.ts (line 3). The model could not say more about it.',
    ],
    [
      'There is no `total` in src/a.ts.',
      '`total` stands in src/b.ts (line 41: `total();`). The model could not say more about it.',
    ],
    ['There is no `late` in src/a.ts.', '`late` stands in src/c.ts. The model could not say more about it.'],
    // Plain words, too, as they are written.
    ['There is no `word` in src/c.ts.', '`word` stands in src/c.ts. The model could not say more about it.'],
    ['There is no `count` in src/c.ts.', '`count` stands in src/c.ts. The model could not say more about it.'],
    [
      'There is no `async flush` in src/a.ts.',
      '`flush` stands in src/a.ts (line 2: `flush() {}`). The model could not say more about it.',
    ],
    // A phrase of the question, in which one word is a name.
    ['There is no `word do` in src/c.ts.', '`word` stands in src/c.ts. The model could not say more about it.'],
    // Also in a comment, which says so itself.
    ['There is no `steep` in src/d.py.', '`steep` stands in src/d.py. The model could not say more about it.'],
    ['There is no `rise` in src/d.py.', '`rise` stands in src/d.py. The model could not say more about it.'],
    [
      'Não existe `Store` em src/a.ts.',
      '`Store` está em src/a.ts (linha 1: `class Store {`). Mais do que isso o modelo não soube dizer.',
    ],
    [
      'Não há `Store` em src/a.ts.',
      '`Store` está em src/a.ts (linha 1: `class Store {`). Mais do que isso o modelo não soube dizer.',
    ],
  ])('%s', (answer, expected) => {
    expect(streamed(answer)).toEqual([expected]);
    expect(shape(answer, true)).toEqual({ text: expected, stop: true, source: 'stock' });
  });
});

describe('what cannot be right, and what the model cannot answer, is answered with what it can', () => {
  it.each([
    // Words of the question that are no names of a program: also those of the language, which the code has.
    'There is no `in` in src/c.ts.',
    'There is no `what` in src/a.ts.',
    'Não existe `de` em src/a.ts.',
    'There is no `absent` in src/a.ts.',
    'There is no `absent(key)` in src/a.ts.',
    'There is no `what in the` in src/a.ts.',
    // Names that nobody has said.
    'There is no `Stor` in src/a.ts.',
    'There is no `key` in src/c.ts.',
    'There is no `a b` in src/a.ts.',
    'There is no `byte-id` in src/a.ts.',
    'There is no `*.[` in src/a.ts.',
    // In prose.
    'There is no `loose` in notes.',
    'There is no `ends` in notes.',
    'There is no `looseEnd` in notes.',
    'That is beyond this small starter model. I can complete code and answer short questions about the open file; a larger model can be installed for this.',
  ])('%s', (answer) => {
    expect(streamed(answer)).toEqual([BEYOND]);
    expect(shape(answer, true)).toEqual({ text: BEYOND, stop: true, source: 'stock' });
  });

  it('in the language of the question', () => {
    const { text } = withoutDenial(shapeAnswer, GIVEN, ['What is this?', 'Como isso funciona?'])(
      'That is beyond this small starter model. I',
      false,
    );
    expect(text).toMatch(/^Isso está além do modelo\. .*`\/summarize`/);
  });

  it('of a search for faults nothing is said that reads as if there were none', () => {
    for (const [question, denial] of [
      ['Is there an error in this code?', 'There is no `error` in src/a.ts.'],
      ['Há algum bug aqui?', 'Não existe `bug` em src/a.ts.'],
      ['Traduz isso para Rust', 'Não existe `Rust` em src/a.ts.'],
    ])
      expect(withoutDenial(shapeAnswer, GIVEN, [question!])(denial!, true).text).toMatch(
        /^(?:This is beyond the model|Isso está além do modelo)\./,
      );
  });

  it('of a name that a question for a fact asks for it is right', () => {
    for (const question of ['What does absent do?', 'How does absent work?', 'Explain absent', 'O que faz absent?'])
      expect(withoutDenial(shapeAnswer, GIVEN, [question])('There is no `absent` in src/a.ts.', true).text).toBe(
        'There is no `absent` in src/a.ts.',
      );
  });

  it('a method may be called like a word', () => {
    expect(
      withoutDenial(
        shapeAnswer,
        [{ path: 'a.ts', text: 'class A {\n  use() {}\n}', startLine: 1 }],
        ['How is use used?'],
      )('There is no `use used` in a.ts.', true).text,
    ).toBe('`use` stands in a.ts (line 2: `use() {}`). The model could not say more about it.');
  });

  it('a word that is marked as a name is one', () => {
    const denial = 'There is no `in` in src/c.ts.';
    expect(withoutDenial(shapeAnswer, GIVEN, ['What is `in`?'])(denial, true).text).toBe(
      '`in` stands in src/c.ts. The model could not say more about it.',
    );
    expect(withoutDenial(shapeAnswer, [], ['What is `in`?'])(denial, true).text).toBe(denial);
  });

  it('of no word that stands in the files a denial is shown', () => {
    fc.assert(
      fc.property(fc.constantFrom(...GIVEN), fc.nat(), fc.boolean(), ({ text, path }, at, isSaid) => {
        const words = text.match(/[\p{L}\p{N}_$]+/gu)!;
        const word = words[at % words.length]!;
        const denial = `There is no \`${word}\` in ${path}.`;
        expect(withoutDenial(shapeAnswer, GIVEN, isSaid ? [`What is ${word}?`] : [])(denial, true)).toMatchObject({
          source: 'stock',
          text: expect.not.stringContaining('There is no'),
        });
      }),
    );
  });
});

describe('anything else is shown as it is', () => {
  it.each([
    'There is no `gone` in src/a.ts.',
    'There is no `Store.gone` in src/a.ts.',
    'There is no `s gone` in src/a.ts.',
    'Não existe `gone` em src/a.ts.',
    'There is no `Missing` in src/a.ts.',
    'There is no limit to `flush`.',
    'There is no `flush` that takes a name.',
    'There is no method `flush` in src/a.ts.',
    'There are two.',
    'There',
    'There is no',
    'There is no `Sto',
    'That is it.',
    'That is beyond',
    'That is beyond this small',
    'There is no ``',
    '`Store` has no `flush`.',
    'Não',
    'T',
    '',
  ])('%s', (answer) => {
    expect(streamed(answer).at(-1) ?? '').toBe(answer);
    expect(shape(answer, true).text).toBe(answer);
  });

  it('and what cannot become a denial at once', () => {
    expect(streamed('This is it.')[0]).toBe('Thi');
    expect(streamed('There is no limit.')[0]).toBe('There is no l');
    expect(streamed('That is so.')[0]).toBe('That is s');
  });
});

describe('in a chat', () => {
  const doc = new SourceDocument('a', 'src/a.ts', 'class A {\r\n  b() {}\r\n}\r\n');
  const DENIAL = 'There is no `b` in src/a.ts.';
  let starter: ModelText;
  beforeAll(async () => {
    starter = await ModelText.load(MODEL);
  });
  const answerOf = (text: ModelText, snippets: { path: string; text: string; startLine?: number }[] = []) =>
    prepareChat(new Layout(text, { contextTokens: 2048, numParameters: 7e6 }), {
      docs: [doc],
      messages: [{ role: 'user', content: 'How does `b` work?' }],
      snippets,
    }).shape(DENIAL, true).text;

  test('of the built-in model', () =>
    expect(answerOf(starter)).toBe(
      '`b` stands in src/a.ts (line 2: `b() {}`). The model could not say more about it.',
    ));

  test('with a selection', () => {
    const { shape } = prepareChat(new Layout(starter, { contextTokens: 2048, numParameters: 7e6 }), {
      docs: [],
      messages: [{ role: 'user', content: 'How does `c` work?' }],
      snippets: [{ path: '/w/src/c.ts', text: '\r\nc();', startLine: 7 }],
    });
    expect(shape('There is no `c` in src/c.ts.', true).text).toBe(
      '`c` stands in src/c.ts (line 8: `c();`). The model could not say more about it.',
    );
  });

  test('a name may have been said before; what was beyond the model is not read again', () => {
    const layout = new Layout(starter, { contextTokens: 2048, numParameters: 7e6 });
    const ask = (...contents: string[]) =>
      prepareChat(layout, {
        docs: [doc],
        messages: contents.map((content, i) => ({ role: i % 2 ? 'assistant' : 'user', content })),
      });
    expect(ask('Is there a `gone`?', 'Hm.', 'Sure?').shape('There is no `gone` in src/a.ts.', true).text).toBe(
      'There is no `gone` in src/a.ts.',
    );
    expect(ask('Is it there?', 'Hm.', 'Sure?').shape('There is no `gone` in src/a.ts.', true).text).toBe(BEYOND);
    expect(ask('Fix it', BEYOND, 'Sure?').promptIds).toEqual(ask('Sure?').promptIds);
    expect(
      ask('What of b?', '`b` stands in src/a.ts (line 2: `b() {}`). The model could not say more about it.', 'Sure?')
        .promptIds,
    ).toEqual(ask('Sure?').promptIds);
    expect(ask('Fix it', 'Hm.', 'Sure?').promptIds).not.toEqual(ask('Sure?').promptIds);
  });

  test('what is said in its place, and in reply to a greeting, is told from what the model has thought up', () => {
    const endOf = (question: string, written: string) => {
      const sent: EngineMessage[] = [];
      const prepared = prepareChat(new Layout(starter, { contextTokens: 2048, numParameters: 7e6 }), {
        docs: [doc],
        messages: [{ role: 'user', content: question }],
      });
      const request = new Request('r', { ...prepared, withAlternatives: false }, (message) => sent.push(message));
      request.addText(written);
      request.finish({
        finishReason: 'stop',
        usage: { promptTokens: 9, cachedTokens: 0, completionTokens: 9, blockTokens: 0 },
        timings: { queueMs: 0, ttftMs: 1, tpotMs: 1 },
      });
      return sent.at(-1);
    };
    for (const [question, written] of [
      ['How does `b` work?', DENIAL],
      ['Fix it', 'That is beyond this small starter model. I'],
      ['Hi!', 'Hello! I can complete code.'],
    ] as const)
      expect(endOf(question, written)).toMatchObject({ type: 'done', source: 'stock' });
    for (const [question, written] of [
      ['Explain:\n```ts\nb();\n```', 'It works.'],
      ['How does `gone` work?', 'There is no `gone` in src/a.ts.'],
      ['What does this do?\n```ts\nclass A {}\n```', 'A class.'],
    ] as const)
      expect(endOf(question, written)).not.toHaveProperty('source');
  });

  test('what asks in Portuguese what a file is about is asked in the words that the model knows', () => {
    const layout = new Layout(starter, { contextTokens: 2048, numParameters: 7e6 });
    const ask = (content: string, snippets: { path: string; text: string; startLine?: number }[] = []) =>
      prepareChat(layout, { docs: [doc], messages: [{ role: 'user', content }], snippets }).promptIds;
    for (const message of [
      'Resuma o arquivo',
      'Resume esse arquivo.',
      'Explique o código',
      'Me explica esse código por favor',
      'Faça um resumo',
      'Faz um resumo deste arquivo!',
      'O que faz este módulo?',
    ])
      expect(ask(message), message).toEqual(ask('Summarise this file.'));
    for (const message of ['Resuma o método b', 'Explique o erro'])
      expect(ask(message), message).not.toEqual(ask('Summarise this file.'));
    const selection = [{ path: 'src/a.ts', text: '  b() {}', startLine: 2 }];
    expect(ask('Explique o código', selection)).not.toEqual(ask('Summarise this file.', selection));
  });

  test('of another model it is an answer, with a note', async () => {
    const other = await ModelText.load(MODEL);
    other.manifest = { ...other.manifest, chat: { ...other.manifest.chat, facts: false } };
    expect(answerOf(other)).toBe(DENIAL);
    const { shape } = prepareChat(new Layout(other, { contextTokens: 2048, numParameters: 7e6 }), {
      docs: [doc, new SourceDocument('r', 'README.md', 'A project.\n')],
      messages: [{ role: 'user', content: 'What is this `b`, and this project?' }],
    });
    expect(shape(DENIAL, true).note).toBe('`b` does occur in src/a.ts: the model overlooks things');
    expect(shape('There is no `project` in README.md.', true).note).toBeUndefined();
    // What may be any word, of which a large model says something.
    const switched = new SourceDocument('s', 'src/s.ts', 'switch (a) {\n  case 2: break;\n}\n');
    expect(
      prepareChat(new Layout(other, { contextTokens: 2048, numParameters: 7e6 }), {
        docs: [switched],
        messages: [{ role: 'user', content: 'Why does case 1 run on?' }],
      }).shape('There is no `break` in case 1, so execution falls through.', true).note,
    ).toBeUndefined();
  });
});
