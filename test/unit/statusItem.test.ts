/** The status bar asks for figures when there is something to see, and once after the cache was cleared. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { EngineHost } from '../../src/engineHost.ts';
import { t } from './translate.ts';

const item = vi.hoisted(() => ({ text: '', tooltip: { value: '' }, show() {}, dispose() {} }));
vi.mock('../../src/vscode.ts', () => ({
  StatusBarAlignment: { Right: 2 },
  ThemeColor: class {},
  MarkdownString: class {
    value: string;
    constructor(value: string) {
      this.value = value;
    }
  },
  l10n: { t: (text: string, ...values: (string | number)[]) => t(text, ...values) },
  window: { createStatusBarItem: () => item },
}));
const { StatusItem } = await import('../../src/monitor/statusItem.ts');

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const event = () => ({ dispose() {} });

test('after the cache was cleared it asks once and shows what is left', async () => {
  let numAsked = 0;
  const stats = { model: null, maxBytes: 1e9, windowBytes: 0, storeBytes: 0, kvBytesPerToken: 1, windowSlots: { total: 1, free: 1 }, requests: { running: 0, waiting: 0, done: 0 }, tokens: { prompt: 0, promptCached: 0 }, files: [] };
  const client = { state: { kind: 'ready', model: { name: 'm' } }, numPending: 0, stats: async () => {
    numAsked++;
    return stats;
  } };
  const status = new StatusItem({ client, onState: event, onActivity: event } as unknown as EngineHost);
  status.refresh();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(numAsked).toBe(1);
  expect(item.text).toBe('$(database) 0 B');
  expect(vi.getTimerCount()).toBe(0);
});

test('a failure’s words are text in the hover', () => {
  const client = { state: { kind: 'failed', message: '[x](command:y)', retry: true }, numPending: 0 };
  new StatusItem({ client, onState: event, onActivity: event } as unknown as EngineHost);
  expect(item.tooltip.value).toContain('\\[x\\]\\(command\\:y\\)');
});
