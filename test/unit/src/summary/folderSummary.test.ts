/** The map-reduce over a folder with a scripted engine: requests, cached summaries, cancel and failures. */
import MarkdownIt from 'markdown-it';
import { describe, expect, test, vi } from 'vitest';
import type { Task } from '../../../../engine/protocol/tasks.ts';
import { RequestError } from '../../../../engine/protocol/errors.ts';
import { type FolderFile, summarizeFolder } from '../../../../src/summary/folderSummary.ts';
import { SummaryCache } from '../../../../src/summary/summaryCache.ts';
import { t } from '../../../support/editor/translate.ts';

vi.mock('../../../../src/vscode.ts', () => ({ l10n: { t }, EventEmitter: class {} }));
const { reportOf } = await import('../../../../src/summary/folderReport.ts');
const { firstSentence } = await import('../../../../src/summary/symbolSummaries.ts');

function memory() {
  const stored = new Map<string, unknown>();
  return {
    stored,
    get: (key: string) => stored.get(key),
    update: async (key: string, value: unknown) =>
      void (value === undefined ? stored.delete(key) : stored.set(key, structuredClone(value))),
  };
}

/** `texts`: by path; null is a file that is not read. */
function folderOf(
  texts: Record<string, string | null>,
  {
    cache = new SummaryCache(memory() as never, () => 'model'),
    fail = (_: Task) => undefined as string | Error | undefined,
    answer = (_: Task) =>
      undefined as { text: string; diagnostics: string[]; source?: 'files'; usage?: object } | undefined,
    onFile = (_: AbortController) => {},
  } = {},
) {
  const abort = new AbortController();
  const asked: Task[] = [];
  const clientIds = new Set<string>();
  const open = new Map<string, string>();
  let mostOpen = 0;
  const files: FolderFile[] = Object.entries(texts).map(([name, text]) => ({
    path: name,
    read: async () => (text === null ? { skipped: 'binary' } : { text }),
    open: (of) => {
      open.set(name, of);
      mostOpen = Math.max(mostOpen, open.size);
      return name;
    },
    close: () => void open.delete(name),
  }));
  const client = {
    disposed: false,
    generate: async ({
      task,
      signal,
      priority,
      clientId,
    }: {
      task: () => Task;
      signal?: AbortSignal;
      priority: string;
      clientId: string;
    }) => {
      expect(priority).toBe('summary');
      clientIds.add(clientId);
      const built = task();
      asked.push(built);
      await new Promise((resolve) => setTimeout(resolve, 1));
      onFile(abort);
      const failure = fail(built);
      if (failure) throw failure instanceof Error ? failure : new Error(failure);
      const text =
        built.kind === 'summarizeFolder'
          ? 'All of it.'
          : built.kind === 'summarize'
            ? `About ${open.get(built.docId)}.`
            : '';
      return {
        text,
        finishReason: signal?.aborted ? 'abort' : 'stop',
        usage: { promptTokens: 10 },
        diagnostics: [],
        ...answer(built),
      };
    },
  };
  const progress: string[] = [];
  const run = () =>
    summarizeFolder({
      client: client as never,
      cache,
      folder: 'src',
      files,
      maxTokens: 0,
      signal: abort.signal,
      onProgress: (numDone, numTotal) => progress.push(`${numDone}/${numTotal}`),
    });
  return { run, asked, clientIds, progress, open, mostOpen: () => mostOpen, cache };
}

describe('a folder', () => {
  test('is summarized file by file, a few at a time, and then as a whole', async () => {
    const texts = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`f${i}.ts`, `text ${i}`]));
    const { run, asked, clientIds, progress, open, mostOpen } = folderOf(texts);
    const result = await run();
    // The files share one client id, so another summary gets half of the engine and not a small part.
    expect([...clientIds]).toEqual([expect.any(String)]);
    const other = folderOf({ a: 'A' });
    await other.run();
    expect(other.clientIds).not.toEqual(clientIds);
    expect(result?.files.map(({ summary }) => summary)).toEqual(
      Array.from({ length: 10 }, (_, i) => `About text ${i}.`),
    );
    expect(result).toMatchObject({ overview: 'All of it.', numComputed: 10, skipped: [] });
    expect(asked.at(-1)).toEqual({
      kind: 'summarizeFolder',
      path: 'src',
      docIds: [],
      summaries: result?.files.map(({ path: of, summary }) => ({ path: of, text: summary })),
    });
    expect(progress).toEqual(Array.from({ length: 11 }, (_, i) => `${i}/10`));
    expect(open.size).toBe(0);
    expect(mostOpen()).toBeLessThanOrEqual(4);
  });

  test('is summarized again only where it has changed, also in a later window', async () => {
    const stored = memory();
    const cacheOf = (model: string) => new SummaryCache(stored as never, () => model);
    await folderOf({ a: 'A', b: 'B' }, { cache: cacheOf('model') }).run();
    const same = folderOf({ a: 'A', b: 'B' }, { cache: cacheOf('model') });
    expect(await same.run()).toMatchObject({ overview: 'All of it.', numComputed: 0 });
    expect(same.asked).toEqual([]);
    const changed = folderOf({ a: 'A', b: 'B2' }, { cache: cacheOf('model') });
    expect((await changed.run())?.numComputed).toBe(1);
    expect(changed.asked.map((task) => task.kind)).toEqual(['summarize', 'summarizeFolder']);
    expect((await folderOf({ a: 'A', b: 'B' }, { cache: cacheOf('another model') }).run())?.numComputed).toBe(2);
  });

  test('that is cancelled gives no result, sends no more requests and keeps finished summaries', async () => {
    const texts = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`f${i}.ts`, `text ${i}`]));
    let ended = 0;
    const { run, asked, open, cache } = folderOf(texts, {
      onFile: (abort) => {
        if (++ended === 10) abort.abort();
      },
    });
    expect(await run()).toBeUndefined();
    expect(asked.length).toBeLessThan(16);
    expect(open.size).toBe(0);
    expect(cache.get(['file', 'f0.ts'], 'text 0')?.text).toBe('About text 0.');
  });

  test('continues without a file that fails, and names it; fails with the reason if all files fail', async () => {
    const one = await folderOf(
      { a: 'A', b: 'B', c: null },
      { fail: (task) => (task.kind === 'summarize' && task.docId === 'b' ? 'too long' : undefined) },
    ).run();
    expect(one?.files.map((file) => file.path)).toEqual(['a']);
    expect(one?.skipped).toEqual(
      expect.arrayContaining([
        { path: 'c', reason: 'binary' },
        { path: 'b', reason: 'too long' },
      ]),
    );
    await expect(folderOf({ a: 'A' }, { fail: () => 'the engine is down' }).run()).rejects.toThrow(
      'the engine is down',
    );
  });
});

test('summaries that are too long together are joined in halves; without an overview the list remains', async () => {
  const texts = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`f${i}.ts`, `text ${i}`]));
  const tooLong = (most: number) => (task: Task) =>
    task.kind === 'summarizeFolder' && (task.summaries?.length ?? 0) > most
      ? new RequestError('contextTooLong', 'too long')
      : undefined;
  const halves = folderOf(texts, { fail: tooLong(3) });
  expect(await halves.run()).toMatchObject({ overview: 'All of it.', notes: [] });
  const sizes = halves.asked.flatMap((task) => (task.kind === 'summarizeFolder' ? [task.summaries?.length] : []));
  expect(sizes).toEqual([9, 5, 3, 2, 2, 4, 2, 2, 2, 2]);
  expect(await folderOf(texts, { fail: tooLong(0) }).run()).toMatchObject({
    overview: '',
    notes: ['too long'],
    numComputed: 9,
  });
});

const summaryOf = (text: string) => ({ text, notes: [] });

test('notes follow their summary, also from the cache; a file without a summary is left out', async () => {
  const stored = memory();
  const answer = (task: Task) =>
    task.kind === 'summarizeFolder'
      ? { text: 'All, all, all.', diagnostics: ['stopped'] }
      : task.kind !== 'summarize'
        ? undefined
        : {
            a: { text: 'So, so, so.', diagnostics: ['it repeats *itself*'] },
            c: { text: '', diagnostics: ['the model gave no answer'] },
          }[task.docId];
  for (const numComputed of [3, 1]) {
    const result = (await folderOf(
      { a: 'A', b: 'B', c: 'C' },
      { cache: new SummaryCache(stored as never, () => 'model'), answer },
    ).run())!;
    expect(result).toMatchObject({
      overview: 'All, all, all.',
      notes: ['stopped'],
      numComputed,
      skipped: [{ path: 'c', reason: 'the model gave no answer' }],
    });
    const report = reportOf('src', result, result.notes, (name) => name);
    expect(report).toContain('- [a](<a>): So, so, so\\. *(it repeats \\*itself\\*)*\n- [b](<b>): About B\\.\n');
    expect(new MarkdownIt().render(report)).toContain('<em>(it repeats *itself*)</em>');
  }
});

test('a file that was not read is left out with the reason, and tried again the next time', async () => {
  const stored = memory();
  const answer = (task: Task) =>
    task.kind === 'summarize' && task.docId === 'b'
      ? {
          text: 'b was not read.',
          diagnostics: ['not written by the model'],
          source: 'files' as const,
          usage: { promptTokens: 0 },
        }
      : undefined;
  for (const asked of [['a', 'b'], ['b']]) {
    const folder = folderOf({ a: 'A', b: 'B' }, { cache: new SummaryCache(stored as never, () => 'model'), answer });
    expect(await folder.run()).toMatchObject({
      files: [{ path: 'a' }],
      numComputed: asked.length - 1,
      skipped: [{ path: 'b', reason: 'b was not read.' }],
    });
    expect(folder.asked.flatMap((task) => (task.kind === 'summarize' ? [task.docId] : []))).toEqual(asked);
  }
});

test('the cache is bounded and drops the least recently used summary first', async () => {
  const stored = memory();
  const cache = new SummaryCache(stored as never, () => 'model');
  for (let i = 0; i < 1000; i++) cache.set(['file', 'a'], `text ${i}`, summaryOf('x'.repeat(100)));
  expect(cache.get(['file', 'a'], 'text 0')).toBeDefined();
  cache.set(['file', 'a'], 'text 1000', summaryOf('y'));
  expect(cache.get(['file', 'a'], 'text 1')).toBeUndefined();
  expect(cache.get(['file', 'a'], 'text 0')).toBeDefined();
  for (let i = 0; i < 50; i++) cache.set(['file', 'long'], `text ${i}`, summaryOf('z'.repeat(20_000)));
  await cache.save();
  expect(JSON.stringify([...stored.stored]).length).toBeLessThan(500_000);
  expect(new SummaryCache(stored as never, () => 'model').get(['file', 'long'], 'text 49')).toEqual(
    summaryOf('z'.repeat(20_000)),
  );
  await cache.clear();
  expect(stored.stored.size).toBe(0);
});

test('the cache starts with any stored value', () => {
  const odd = new SummaryCache(
    { get: () => [['key', 1], 'no', ['a', 'b'], null], update: async () => {} } as never,
    () => 'model',
  );
  expect(odd.get(['file', 'a'], 'text')).toBeUndefined();
});

test.each([
  ['Adds articles. Then more.', 'Adds articles.'],
  ['Uses `a.b` and v1.2 only\nhere', 'Uses `a.b` and v1.2 only here'],
  ['x'.repeat(200), `${'x'.repeat(119)}…`],
])('the first sentence of %j', (text, wanted) => expect(firstSentence(text)).toBe(wanted));
