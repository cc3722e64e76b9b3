/**
 * Snippets of other open editors for a completion: similar lines, recent edits, imported declarations; without secrets,
 * within a time budget.
 */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Settings } from '../../../../src/config.ts';
import { declarations, importedNames, importName } from '../../../../src/context/imports.ts';
import { RecentEdits } from '../../../../src/context/recentEdits.ts';
import { jaccard, WINDOW_LINES, Windows, wordsOf } from '../../../../src/context/similarity.ts';
import { editor, FakeDocument } from '../../../support/editor/fakeEditor.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { BUDGET_MS, SnippetSource } = await import('../../../../src/context/snippetSource.ts');

const filler = (n: number, word = 'filler') => Array.from({ length: n }, (_, i) => `${word} = other[${i}]`).join('\n');

describe('similar windows', () => {
  test('the similarity of two texts is the share of common words', () => {
    expect(jaccard(wordsOf('let alpha = beta'), wordsOf('const alpha = beta'))).toBe(0.5);
    expect(jaccard(new Set(), wordsOf('alpha'))).toBe(0);
  });

  test('the window with the most common words is found, with its first line', () => {
    const windows = new Windows(
      `${filler(90)}\nfunction addArticle(article, count) {\n  entries.set(article, count);\n}\n${filler(90, 'more')}`,
    );
    expect(windows.build(() => false)).toBe(true);
    const best = windows.best(wordsOf('removeArticle(article, count) { entries.get(article) addArticle'));
    expect(best?.startLine).toBe(90);
    expect(best?.text.startsWith('function addArticle')).toBe(true);
    expect(best?.text.split('\n').length).toBe(WINDOW_LINES);
    expect(windows.best(wordsOf('nothing in common here'))).toBeUndefined();
  });

  test('windows built in slices cover all lines', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), (numLines) => {
        const windows = new Windows(Array.from({ length: numLines }, (_, i) => `word${i}x`).join('\n'));
        let patience = 2;
        while (!windows.build(() => patience-- === 0)) patience = 2;
        for (const line of [0, Math.floor(numLines / 2), numLines - 1]) {
          // One common word of 60 is below the minimum similarity.
          const nearby = Array.from({ length: 20 }, (_, i) => Math.min(numLines - 1, Math.max(0, line - 10 + i)));
          const best = windows.best(new Set(nearby.map((i) => `word${i}x`)));
          expect(best?.text).toContain(`word${line}x`);
        }
      }),
    );
  });
});

describe('recent edits', () => {
  test('regions are newest first, near edits are one region, and regions follow later edits', () => {
    const edits = new RecentEdits();
    edits.add('a', 100, 100, 0);
    edits.add('b', 5, 5, 0);
    edits.add('a', 10, 10, 3);
    edits.add('a', 14, 14, 0);
    expect(edits.regions).toEqual([
      { docId: 'a', startLine: 10, endLine: 14 },
      { docId: 'b', startLine: 5, endLine: 5 },
      { docId: 'a', startLine: 103, endLine: 103 },
    ]);
    edits.forget('a');
    expect(edits.regions.map(({ docId }) => docId)).toEqual(['b']);
  });

  test('regions stay ordered after any deletion', () => {
    const edit = fc.record({
      startLine: fc.nat(50),
      length: fc.nat(20),
      lineChange: fc.integer({ min: -20, max: 20 }),
    });
    fc.assert(
      fc.property(fc.array(edit), (list) => {
        const edits = new RecentEdits();
        for (const { startLine, length, lineChange } of list)
          edits.add('a', startLine, startLine + length, Math.max(-length, lineChange));
        for (const region of edits.regions) {
          expect(region.startLine).toBeGreaterThanOrEqual(0);
          expect(region.endLine).toBeGreaterThanOrEqual(region.startLine);
        }
        expect(edits.regions.length).toBeLessThanOrEqual(12);
      }),
    );
  });
});

describe('imports', () => {
  test.each([
    ["import { a } from './lib/cache.ts';", 'cache'],
    ["const x = require('../window');", 'window'],
    ['from lib.cache import Cache', 'cache'],
    ['import lib.cache', 'cache'],
    ['#include "lib/cache.h"', 'cache'],
    ['use crate::lib::cache;', 'cache'],
  ])('%s', (line, name) => expect([...importedNames(line)]).toContain(name));

  test('a file’s import name is its stem, or its folder’s name for an index file', () => {
    expect(importName('/w/lib/cache.ts')).toBe('cache');
    expect(importName('/w/lib/index.ts')).toBe('lib');
    expect(importName('/w/lib/__init__.py')).toBe('lib');
  });

  test('declarations are extracted without their bodies', () =>
    expect(declarations('import x;\nexport class A {\n  run() {\n    return 1;\n  }\n}\ndef f():\n    pass\n')).toBe(
      'export class A {\ndef f():',
    ));
});

describe('gathering', () => {
  const model = { readsSnippets: true };
  const completion = { enable: true, languages: ['*'], exclude: ['**/*.key'], snippets: true };
  const settings = { current: { completion } } as unknown as Settings;
  const source = (readsSnippets = true) =>
    new SnippetSource({ state: { kind: 'ready', model: { ...model, readsSnippets } } } as never, settings);
  const code = 'function addArticle(article, count) {\n  entries.set(article, count);\n}\n';

  function open(...documents: FakeDocument[]): FakeDocument {
    editor.documents = documents;
    editor.tabs = documents;
    editor.select(documents[0]!, documents[0]!.text.length);
    return documents[0]!;
  }

  beforeEach(() => {
    editor.reset();
    completion.snippets = true;
    // The time budget has its own test, so that a busy machine does not affect the others.
    vi.spyOn(performance, 'now').mockReturnValue(0);
  });
  afterEach(() => vi.restoreAllMocks());

  test('similar code comes from other open editors, not from loaded files or secret ones', () => {
    const current = open(
      new FakeDocument(code, '/w/a.ts'),
      new FakeDocument(code, '/w/b.ts'),
      new FakeDocument(code, '/w/c.key'),
    );
    editor.documents = [...editor.documents, new FakeDocument(code, '/w/loaded.ts')];
    expect(
      source()
        .gather(current as never, 20)
        .map(({ path }) => path),
    ).toEqual(['/w/b.ts']);
  });

  test('the other cells of a notebook count as open', () => {
    const cells = [0, 1, 2].map((i) =>
      Object.assign(new FakeDocument(code, '/w/n.ipynb', 'vscode-notebook-cell'), {
        uri: {
          scheme: 'vscode-notebook-cell',
          path: '/w/n.ipynb',
          toString: () => `vscode-notebook-cell:/w/n.ipynb#${i}`,
        },
      }),
    );
    const current = open(cells[0]!);
    editor.tabs = [];
    editor.documents = cells;
    editor.notebooks = [{ uri: { toString: () => 'file:///w/n.ipynb' }, cells }];
    cells[1]!.text = `// first\n${code}`;
    cells[2]!.text = `// second\n${code}`;
    expect(
      source()
        .gather(current as never, 20)
        .map(({ text }) => text.split('\n')[0]),
    ).toEqual(['// first', '// second']);
  });

  test('at most four snippets are gathered', () => {
    const current = open(...Array.from({ length: 10 }, (_, i) => new FakeDocument(code, `/w/${i}.ts`)));
    expect(source().gather(current as never, 20).length).toBe(4);
  });

  test('recent edits come first, except those around the cursor', () => {
    const other = new FakeDocument(filler(100), '/w/b.ts');
    const current = open(new FakeDocument(code, '/w/a.ts'), other);
    const snippets = source();
    snippets.gather(current as never, 0);
    other.change({ offset: other.offsetAt({ line: 50, character: 0 }), deleted: 0, text: 'edited ' });
    current.change({ offset: 0, deleted: 0, text: 'x' });
    const [first, ...more] = snippets.gather(current as never, 1);
    expect(first).toMatchObject({ path: '/w/b.ts', startLine: 45 });
    expect(first?.text).toContain('edited');
    expect(more).toEqual([]);
    snippets.dispose();
    expect(editor.numListeners).toBe(0);
  });

  test('declarations of an imported open file are gathered', () => {
    const cache = new FakeDocument(`export class Cache {\n${filler(200)}\n}\n`, '/w/cache.ts');
    const current = open(new FakeDocument("import { Cache } from './cache.ts';\n\n", '/w/a.ts'), cache);
    expect(source().gather(current as never, 30)).toEqual([{ path: '/w/cache.ts', text: 'export class Cache {' }]);
  });

  test('snippets stay the same while the cursor stays near, and change elsewhere', () => {
    const other = new FakeDocument(
      `${code}\n${filler(100)}\nclass Zebra {\n  stripes(zebra, count) {}\n}\n`,
      '/w/b.ts',
    );
    const current = open(new FakeDocument(`${code}\n${filler(30)}\n`, '/w/a.ts'), other);
    const snippets = source();
    const first = snippets.gather(current as never, 40);
    expect(first.length).toBe(1);
    current.change({ offset: 40, deleted: 0, text: 'zebra stripes Zebra ' });
    expect(snippets.gather(current as never, 50)).toBe(first);
    other.change({ offset: 0, deleted: 0, text: '// changed\n' });
    expect(snippets.gather(current as never, 50)).not.toBe(first);
    snippets.dispose();
  });

  test('nothing is read or watched for a model without snippets, or while the setting is off', () => {
    const other = new FakeDocument(code, '/w/b.ts');
    const current = open(new FakeDocument(code, '/w/a.ts'), other);
    expect(source(false).gather(current as never, 20)).toEqual([]);
    completion.snippets = false;
    expect(source().gather(current as never, 20)).toEqual([]);
    expect(other.numRead + current.numRead).toBe(0);
    expect(editor.numListeners).toBe(0);
  });

  test('each version of a file is searched once; a search stops at the time budget and continues the next time', () => {
    const now = vi.mocked(performance.now);
    let clock = 0;
    now.mockImplementation(() => clock++ * (BUDGET_MS / 4));
    const large = new FakeDocument(`${filler(300)}\n${code}`, '/w/b.ts');
    const current = open(new FakeDocument(code, '/w/a.ts'), large);
    const snippets = source();
    expect(snippets.gather(current as never, 20)).toEqual([]);
    for (let i = 0; i < 10; i++) snippets.gather(current as never, i);
    now.mockReturnValue(0);
    const { numRead } = large;
    expect(snippets.gather(current as never, 20).map(({ path }) => path)).toEqual(['/w/b.ts']);
    expect(large.numRead).toBe(numRead);
  });
});
