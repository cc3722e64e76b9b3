/** What the status bar item shows: the engine's state, its figures, and a pause. */
import { expect, test, vi } from 'vitest';
import type { EngineHost } from '../../../../src/client/engineHost.ts';
import type { Figures } from '../../../../src/monitor/figures.ts';
import { t } from '../../../support/editor/translate.ts';

const item = vi.hoisted(() => ({
  text: '',
  command: '',
  tooltip: { value: '', isTrusted: { enabledCommands: [] as string[] } },
  accessibilityInformation: { label: '' },
  show() {},
  dispose() {},
}));
vi.mock('../../../../src/vscode.ts', () => ({
  StatusBarAlignment: { Right: 2 },
  ThemeColor: class {},
  MarkdownString: class {
    value: string;
    isTrusted: unknown;
    constructor(value: string) {
      this.value = value;
    }
  },
  env: { language: 'pt-br' },
  l10n: { bundle: {}, t: (text: string, ...values: (string | number)[]) => t(text, ...values) },
  window: { createStatusBarItem: () => item },
}));
const { StatusItem } = await import('../../../../src/monitor/statusItem.ts');

const event = () => ({ dispose() {} });
const GPUS = [{ name: 'Some GPU', totalBytes: 8e9, usedBytes: 2e9, estimated: false }];
const STATS = {
  model: {
    name: 'm',
    precision: 'int8',
    kv: 'int8',
    contextTokens: 2048,
    threads: 2,
    weightsBytes: 9e6,
    residentBytes: 7e6,
  },
  maxBytes: 1e9,
  poolBytes: 2e6,
  storeBytes: 1e6,
  scratchBytes: 0,
  bufferBytes: 0,
  kvBytesPerToken: 1364,
  requests: { running: 0, waiting: 0, done: 3 },
  tokens: { prompt: 200, promptCached: 150 },
  tokensPerSecond: 40,
  memory: { processBytes: 3e8, totalBytes: 16e9, availableBytes: 9e9 },
  files: [
    { path: 'src/a.ts', open: true, tokens: 800, bytes: 1e6, tier: 'pool', hits: 2, hitRate: 0.9, pinned: true },
    { path: 'src/gone.ts', open: false, tokens: 0, bytes: 0, tier: 'none', hits: 0, hitRate: 0, pinned: false },
  ],
};

function show(state: object, more: { stats?: object; gpus?: object[]; paused?: string } = {}): void {
  const client = { state, numPending: 0 };
  const figures = { stats: more.stats ?? null, gpus: more.gpus, onChange: event };
  new StatusItem({ client, onActivity: event } as unknown as EngineHost, figures as unknown as Figures, {
    onDidChange: event,
    reason: () => more.paused,
    snoozed: more.paused !== undefined,
  });
}

test('the bar has short figures, the hover all of them', () => {
  show({ kind: 'ready', model: { name: 'm' } }, { stats: STATS, gpus: [] });
  expect(item.text).toBe('$(database) 3,0 MB · 75% reused');
  for (const part of [
    '2 threads',
    'Cache: **3,0 MB** of 1,0 GB',
    '40 tok/s',
    'weights 7,0 MB',
    'process 300 MB',
    'No GPU',
    'src/a\\.ts',
    'command:kvasir.showCache',
    'command:kvasir.chooseModel',
    'command:kvasir.snooze',
  ])
    expect(item.tooltip.value).toContain(part);
  expect(item.tooltip.value).not.toContain('gone');
  // Words of the cache's design are in the panel.
  expect(item.tooltip.value).not.toMatch(/pool|store|scratch|slots|buffers|Tier/);
  expect(item.tooltip.isTrusted).toEqual({
    enabledCommands: expect.arrayContaining([
      'kvasir.showCache',
      'kvasir.chooseModel',
      'kvasir.snooze',
      'kvasir.endSnooze',
    ]),
  });
});

test('graphics memory in use is shown as used by other programs', () => {
  show({ kind: 'ready', model: { name: 'm' } }, { stats: STATS, gpus: GPUS });
  expect(item.tooltip.value).toContain('Some GPU: 2,0 GB of 8,0 GB in use, none by Kvasir');
});

test('a pause is shown, is in the accessible label, and can be ended', () => {
  show({ kind: 'stopped' }, { paused: 'Snoozed until 12:00' });
  expect(item.text).toBe('$(bell-slash) Kvasir');
  expect(item.accessibilityInformation.label).toContain('Snoozed until 12:00');
  expect(item.tooltip.value).toContain('command:kvasir.endSnooze');
});

test('a failure message is plain text in the hover, without links', () => {
  show({ kind: 'failed', message: '[x](command:y)', retry: true });
  expect(item.tooltip.value).toContain('\\[x\\]\\(command\\:y\\)');
  expect(item.tooltip.isTrusted.enabledCommands).not.toContain('y');
  expect(item.command).toBe('kvasir.showLog');
});
