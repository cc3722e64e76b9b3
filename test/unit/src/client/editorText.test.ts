/** Change events as edits, numbers in the user's language, and the texts of the status bar and its hover. */
import { expect, test } from 'vitest';
import type { EngineStats, FileStats } from '../../../../engine/protocol/stats.ts';
import { lengthAfter, toEdits } from '../../../../src/client/documentText.ts';
import { ENGLISH } from '../../../../src/format.ts';
import { escapeMarkdown, hoverMarkdown, statusText } from '../../../../src/monitor/hover.ts';
import { english, portuguese } from '../../../support/editor/translate.ts';

test('changes ordered last to first become edits; any other order asks for the whole text', () => {
  const edits = toEdits([
    { rangeOffset: 9, rangeLength: 0, text: 'xy' },
    { rangeOffset: 2, rangeLength: 3, text: '' },
  ]);
  expect(edits).toEqual([
    { start: 9, end: 9, text: 'xy' },
    { start: 2, end: 5, text: '' },
  ]);
  expect(lengthAfter(20, edits!)).toBe(19);
  expect(
    toEdits([
      { rangeOffset: 2, rangeLength: 3, text: '' },
      { rangeOffset: 9, rangeLength: 0, text: 'xy' },
    ]),
  ).toBeNull();
  expect(
    toEdits([
      { rangeOffset: 5, rangeLength: 1, text: '' },
      { rangeOffset: 3, rangeLength: 3, text: '' },
    ]),
  ).toBeNull();
});

test('numbers are formatted for the user', () => {
  expect([0, 999, 1000, 1_400_000, 134_000_000, 2e9].map((bytes) => ENGLISH.bytes(bytes))).toEqual([
    '0 B',
    '999 B',
    '1.0 kB',
    '1.4 MB',
    '134 MB',
    '2.0 GB',
  ]);
  expect([0, 0.001, 0.5, 0.999, 1].map(ENGLISH.share)).toEqual(['0%', '1%', '50%', '99%', '100%']);
  expect([0, 0.4, 61.3, 999.4, 999.6, 1234, 3_600_000].map(ENGLISH.duration)).toEqual([
    '0 ms',
    '0 ms',
    '61 ms',
    '999 ms',
    '1.0 s',
    '1.2 s',
    '3,600.0 s',
  ]);
  expect([1, 17.25, 99.9, 172.5, 1234.5].map(ENGLISH.figure)).toEqual(['1', '17.3', '99.9', '173', '1,235']);
});

test('numbers are formatted in Portuguese', () => {
  const { count, decimal, figure, bytes, share, percent, scientific, duration } = portuguese.numbers;
  expect([
    count(1234.4),
    decimal(1234.5),
    figure(17.25),
    bytes(1_234_567),
    bytes(1_999),
    share(0.96),
    percent(0.95),
    scientific(0.00123),
    scientific(0.005, 0),
    duration(1234),
  ]).toEqual(['1.234', '1.234,5', '17,3', '1,2 MB', '2,0 kB', '96%', '95,0%', '1,2e-3', '5e-3', '1,2 s']);
});

test('the status line and the hover show the engine’s figures', () => {
  const stats = {
    model: {
      name: 'kvasir-starter',
      precision: 'int8',
      kv: 'int8',
      weightsBytes: 11_600_000,
      residentBytes: 7_600_000,
      contextTokens: 2048,
      threads: 2,
    },
    memory: { processBytes: 3e8, totalBytes: 16e9, availableBytes: 9e9 },
    maxBytes: 2e9,
    poolBytes: 1.4e6,
    storeBytes: 0,
    scratchBytes: 0,
    bufferBytes: 0,
    kvBytesPerToken: 1400,
    tokensPerSecond: 44.4,
    poolSlots: { total: 1024, free: 100, held: 0 },
    requests: { waiting: 0, running: 1, done: 2, failed: 0, aborted: 0 },
    tokens: { prompt: 1000, promptCached: 960 },
    files: [
      {
        docId: 'a',
        path: '/home/me/a|b.ts',
        open: true,
        tokens: 500,
        bytes: 700_000,
        tier: 'pool',
        hits: 2,
        hitRate: 0.96,
      },
    ],
  } as unknown as EngineStats;
  expect(statusText(stats, false, english)).toBe('1.4 MB · 96% reused');
  expect(statusText(stats, true, english)).toBe('44 tok/s · 1.4 MB · 96% reused');
  const hover = hoverMarkdown(stats, undefined, english);
  expect(hover).toContain('**kvasir\\-starter** · int8 · 2,048 tokens of context · 2 threads');
  expect(hover).toContain('| me/a\\|b\\.ts | 500 | 700 kB | 96% |');
  expect(hover).not.toContain('On disk');
  // Everything that counts against the budget.
  expect(hoverMarkdown({ ...stats, bufferBytes: 1e6 }, undefined, english)).toContain('Cache: **2.4 MB** of 2.0 GB');
  // The part of the file that stays in memory.
  expect(hover).toContain('Memory: weights 7.6 MB, ');
  expect(hover).not.toContain('pproximated');
  expect(hover).not.toContain('share');
  expect(hoverMarkdown({ ...stats, numEngines: 2 }, undefined, english)).toContain(
    'The limit is this window’s share: 2 editor windows share the cache memory',
  );
  // Failed requests are shown although the engine is idle.
  expect(hover).not.toContain('failed');
  expect(hoverMarkdown({ ...stats, requests: { ...stats.requests, failed: 3 } }, undefined, english)).toContain(
    '2 done · $(warning) failed: 3',
  );
  // A file in pool and store has twice the bytes of its tokens. A refused file is not listed.
  const rows = (change: Partial<FileStats>): string =>
    hoverMarkdown({ ...stats, files: [{ ...stats.files[0]!, ...change }] }, undefined, english)
      .split('\n')
      .at(-1)!;
  expect(rows({ bytes: 1_400_000, twice: true })).toContain('| 500 | 1.4 MB | 96% |');
  expect(rows({ tokens: 0, bytes: 0, tier: 'none', hits: 0 })).toContain('| 0 | 0 B | – |');
  // The disk, and why nothing is written to it.
  const disk = (figures: Partial<EngineStats>): string | undefined =>
    hoverMarkdown({ ...stats, ...figures }, undefined, english)
      .split('\n')
      .find((line) => line.includes('On disk'));
  expect(disk({ diskBytes: 5e6, diskMaxBytes: 1e9 })).toBe('On disk: 5.0 MB of 1.0 GB');
  expect(disk({ diskBytes: 0, diskMaxBytes: 0, diskFault: '/kv cannot be written: EACCES' })).toBe(
    '$(warning) On disk: nothing is kept: /kv cannot be written\\: EACCES',
  );
  expect(disk({ diskBytes: 5e6, diskMaxBytes: 1e9, diskFault: 'the disk is full' })).toBe(
    '$(warning) On disk: 5.0 MB of 1.0 GB; nothing more is kept: the disk is full',
  );
  // With shifted reuse on: the number of approximated tokens, or why there are none.
  const measured = (klMean: number) =>
    ({
      ...stats,
      model: { ...stats.model, shifted: { klMean, bound: 5e-3 } },
      tokens: { ...stats.tokens, promptShifted: 1234 },
    }) as EngineStats;
  expect(hoverMarkdown(measured(0.0012), undefined, english)).toContain(
    'Approximated after edits: 1,234 tokens (mean KL divergence 1.2e-3)',
  );
  expect(hoverMarkdown(measured(0.006), undefined, english)).toContain(
    'Nothing is approximated after edits: with this model the mean KL divergence would be 6.0e-3, more than 5e-3',
  );
  // The separators of the language are used everywhere.
  const much = {
    ...measured(0.0012),
    tokensPerSecond: 1234,
    requests: { ...stats.requests, done: 4321 },
    tokens: { prompt: 12_000, promptCached: 11_000, promptShifted: 1234 },
    diskBytes: 5.5e6,
    diskMaxBytes: 1e9,
    files: [{ ...stats.files[0]!, tokens: 5000, diskTokens: 2000 }],
  } as unknown as EngineStats;
  const inPortuguese = hoverMarkdown(
    much,
    [{ name: 'G', totalBytes: 8.5e9, usedBytes: 2.5e9, estimated: false }],
    portuguese,
  );
  for (const part of [
    '2.048 tokens',
    '**1,4 MB** of 2,0 GB',
    '(11.000 of 12.000)',
    '1.234 tokens (mean KL divergence 1,2e-3)',
    '1.234 tok/s',
    '4.321 done',
    'weights 7,6 MB',
    '2,5 GB of 8,5 GB',
    'On disk: 5,5 MB of 1,0 GB',
    '| 5.000 + 2.000 | 700 kB |',
  ])
    expect(inPortuguese).toContain(part);
  expect(inPortuguese).not.toMatch(/\d,\d{3}|\d\.\d(?!\d\d)/);
  expect(statusText(much, true, portuguese)).toBe('1.234 tok/s · 1,4 MB · 92% reused');
});

test('text from a model’s files is plain in the hover: no link, no icon, no second line', () => {
  expect(escapeMarkdown('[x](command:y)\n$(zap) <b>')).toBe('\\[x\\]\\(command\\:y\\) \\$\\(zap\\) \\<b\\>');
});
