/** The chat's pure parts: slash commands, titles and export, matching names, and the parts of a question. */
import { describe, expect, test, vi } from 'vitest';
import { titleOf, toMarkdown } from '../../../../src/chat/exportChat.ts';
import { namedSymbol, parseSlash, slashQuestion } from '../../../../engine/protocol/slash.ts';
import { inlineParts, questionParts } from '../../../../src/webview/questionText.ts';

vi.mock('../../../../src/vscode.ts', () => ({ SymbolKind: {} }));
const { rank } = await import('../../../../src/chat/fileFinder.ts');

describe('slash commands', () => {
  test.each([
    ['/explain', { name: 'explain', rest: '' }],
    ['  /Fix  the bug ', { name: 'fix', rest: 'the bug' }],
    ['/tests flush', { name: 'tests', rest: 'flush' }],
    ['/etc/passwd', null],
    ['/unknown', null],
    ['explain /fix', null],
    ['/explainer', null],
  ])('%j', (text, command) => expect(parseSlash(text)).toEqual(command));

  test.each([
    ['/explain', { symbol: 'flush', selection: true }, false, 'What does `flush` do?'],
    ['/explain', { selection: true }, false, 'What does this code do?'],
    ['/explain', { selection: false }, false, 'Summarise this file.'],
    ['/doc flush', { symbol: 'flush', selection: true }, false, 'Write a docstring for `flush`.'],
    ['/explain why so slow?', { symbol: 'flush', selection: true }, false, 'What does `flush` do? why so slow?'],
  ] as const)(
    '%s with the target %j becomes a question that a small model was trained on',
    (text, target, canEdit, question) => expect(slashQuestion(parseSlash(text)!, target, canEdit)).toBe(question),
  );

  test('a model that follows instructions gets the full instruction and the problem', () => {
    expect(
      slashQuestion(
        parseSlash("/fix Type 'x' is not assignable (line 3)")!,
        { symbol: 'flush', selection: true },
        true,
      ),
    ).toMatch(/`flush`.*one code block.*Type 'x' is not assignable \(line 3\)$/);
  });

  test.each([
    ['flush', 'flush'],
    ['`Store.flush()`', 'Store.flush'],
    ['the bug', undefined],
    ['', undefined],
  ])('%j names %j', (rest, name) => expect(namedSymbol(rest)).toBe(name));
});

test('matches in names rank before matches in folders, consecutive letters before scattered ones', () => {
  const paths = ['src/cache/store.ts', 'src/store/window.ts', 'test/storage.test.ts', 'src/sort.ts', 'README.md'];
  const found = (query: string) =>
    paths
      .map((path) => ({ path, score: rank(query, path) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .map(({ path }) => path);
  expect(found('store')).toEqual(
    ['src/cache/store.ts', 'src/store/window.ts', 'test/storage.test.ts'].sort(
      (a, b) => rank('store', b) - rank('store', a),
    ),
  );
  expect(found('store')[0]).toBe('src/cache/store.ts');
  expect(found('readme')).toEqual(['README.md']);
  expect(found('zzz')).toEqual([]);
});

test('a question keeps its line breaks, and code in backticks is marked as code', () => {
  expect(questionParts('Is `a` <b>?\nSee:\n```ts\nlet a;\n```\nThanks')).toEqual([
    { kind: 'text', text: 'Is ' },
    { kind: 'code', text: 'a' },
    { kind: 'text', text: ' <b>?\nSee:' },
    { kind: 'block', language: 'ts', text: 'let a;\n' },
    { kind: 'text', text: 'Thanks' },
  ]);
  expect(questionParts('```\nopen')).toEqual([{ kind: 'block', language: '', text: 'open' }]);
  expect(questionParts('a ` b')).toEqual([{ kind: 'text', text: 'a ` b' }]);
  expect(inlineParts('`flush` does occur in a.ts: the `model` overlooks things')).toEqual([
    { kind: 'code', text: 'flush' },
    { kind: 'text', text: ' does occur in a.ts: the ' },
    { kind: 'code', text: 'model' },
    { kind: 'text', text: ' overlooks things' },
  ]);
});

describe('export', () => {
  const file = { kind: 'file', uri: 'file:///a/b.ts', name: 'b.ts', path: 'src/b.ts' } as const;
  test('a title is the first line of the first question, shortened', () => {
    expect(titleOf([])).toBe('');
    expect(titleOf([{ id: 't1', role: 'user', text: 'What is this?\nAnd that?', context: [] }])).toBe('What is this?');
    expect(
      titleOf([
        { id: 't1', role: 'user', text: '/explain', context: [file, { ...file, kind: 'selection', name: 'flush' }] },
      ]),
    ).toBe('/explain flush');
    expect(titleOf([{ id: 't1', role: 'user', text: 'word '.repeat(40), context: [] }])).toMatch(/^(word ){11}word…$/);
  });

  test('an unclosed code block is closed in the exported document', () => {
    const turns = [
      { id: 't1', role: 'user', text: 'Why?', context: [file] },
      {
        id: 't2',
        role: 'assistant',
        text: 'So:\n```ts\nlet a',
        state: 'done',
        notes: ['Stopped.'],
        modelNote: 'Often wrong.',
        footer: '1 of 2 tokens reused',
      },
      { id: 't3', role: 'user', text: 'Really?', context: [] },
      { id: 't4', role: 'assistant', text: '', state: 'error', notes: [], error: 'too long' },
    ] as const;
    expect(
      toMarkdown({ id: 'c', createdAt: 0, updatedAt: 0, turns: structuredClone(turns) as never }, 'Why?', 'Failed:'),
    ).toBe(
      '# Why?\n\n*1970-01-01 00:00 UTC*\n\n## Why?\n\n`src/b.ts`\n\nSo:\n```ts\nlet a\n```\n\n> Stopped.\n\n> Often wrong.\n\n<sub>1 of 2 tokens reused</sub>\n\n## Really?\n\n> Failed: too long\n',
    );
  });
});
