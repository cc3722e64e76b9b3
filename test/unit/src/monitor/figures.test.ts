/**
 * Statistics are polled twice a second while the panel is visible or requests run, and never otherwise. Polling starts
 * no engine.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { EngineStats, MachineInfo } from '../../../../engine/protocol/stats.ts';
import type { EngineState } from '../../../../src/client/engineLifecycle.ts';
import type { EngineHost } from '../../../../src/client/engineHost.ts';

vi.mock('../../../../src/vscode.ts', () => ({
  EventEmitter: class {
    listeners = new Set<(value: unknown) => void>();
    event = (listener: (value: unknown) => void) => {
      this.listeners.add(listener);
      return { dispose: () => this.listeners.delete(listener) };
    };
    fire(value: unknown) {
      for (const listener of this.listeners) listener(value);
    }
    dispose() {
      this.listeners.clear();
    }
  },
}));
const { Figures, POLL_MS } = await import('../../../../src/monitor/figures.ts');
const { EventEmitter } = await import('../../../../src/vscode.ts');

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const GPU = { name: 'G', totalBytes: 8, usedBytes: 1, estimated: false };

function setUp(options: { state?: EngineState['kind']; gpus?: MachineInfo['gpus'] } = {}) {
  const onState = new EventEmitter<EngineState>();
  const onActivity = new EventEmitter<number>();
  const kept = new Map<string, unknown>();
  const asked = { stats: 0, trees: 0, machine: 0 };
  const client = {
    state: { kind: options.state ?? 'ready' } as EngineState,
    numPending: 0,
    stats: async ({ tree = false } = {}) => {
      if (client.state.kind !== 'ready') return null;
      asked.stats++;
      if (tree) asked.trees++;
      return {
        events: { steps: asked.stats },
        tokens: { prompt: 0, promptCached: 0 },
        ttftMs: { p95: 0 },
        batchSequences: 1,
      } as EngineStats;
    },
    machine: async () => {
      asked.machine++;
      return { gpus: options.gpus ?? [] } as MachineInfo;
    },
  };
  const memento = {
    get: (key: string) => kept.get(key),
    update: async (key: string, value: unknown) => void kept.set(key, value),
  };
  const figures = new Figures(
    { client, onState: onState.event, onActivity: onActivity.event } as unknown as EngineHost,
    memento as never,
  );
  const become = (kind: EngineState['kind']) => {
    client.state = { kind } as EngineState;
    onState.fire(client.state);
  };
  return { figures, asked, client, become, onActivity };
}

test('while visible, statistics with the tree are polled twice a second; when hidden, there is no timer', async () => {
  const { figures, asked } = setUp();
  figures.watch(true);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked.stats).toBeGreaterThanOrEqual(10_000 / POLL_MS - 1);
  expect(asked.stats).toBeLessThanOrEqual(10_000 / POLL_MS + 1);
  expect(asked.trees).toBe(asked.stats);
  figures.watch(false);
  await vi.advanceTimersByTimeAsync(10);
  const { stats } = asked;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked.stats).toBe(stats);
  expect(vi.getTimerCount()).toBe(0);
});

test('without an engine nothing is polled and no timer runs; polling starts and ends with the engine', async () => {
  const { figures, asked, become } = setUp({ state: 'stopped' });
  figures.watch(true);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toEqual({ stats: 0, trees: 0, machine: 0 });
  expect(vi.getTimerCount()).toBe(0);
  become('ready');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked.stats).toBeGreaterThan(15);
  expect(figures.stats).not.toBeNull();
  become('stopped');
  expect(figures.stats).toBeNull();
  await vi.advanceTimersByTimeAsync(1000);
  expect(vi.getTimerCount()).toBe(0);
});

test('statistics are polled during a request and shortly after it', async () => {
  const { asked, client, onActivity, figures } = setUp();
  client.numPending = 1;
  onActivity.fire(1);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(asked.stats).toBeGreaterThan(35);
  expect(asked.trees).toBe(0);
  client.numPending = 0;
  onActivity.fire(0);
  await vi.advanceTimersByTimeAsync(10_000);
  const { stats } = asked;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked.stats).toBe(stats);
  expect(vi.getTimerCount()).toBe(0);
  expect(figures.samples.all.length).toBe(stats);
});

test('a refresh during a query causes another query', async () => {
  const { figures, asked } = setUp();
  figures.refresh();
  vi.advanceTimersByTime(0);
  figures.refresh();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked.stats).toBe(2);
  expect(vi.getTimerCount()).toBe(0);
});

test('the machine is queried once after the first request, and again only for visible graphics memory', async () => {
  const none = setUp();
  none.onActivity.fire(0);
  await vi.advanceTimersByTimeAsync(100);
  none.onActivity.fire(0);
  none.figures.watch(true);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(none.asked.machine).toBe(1);
  expect(none.figures.gpus).toEqual([]);
  const some = setUp({ gpus: [GPU] });
  some.figures.watch(true);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(some.asked.machine).toBeGreaterThanOrEqual(5);
  expect(some.asked.machine).toBeLessThanOrEqual(7);
});

test('nothing is polled after dispose', async () => {
  const { figures, asked } = setUp();
  figures.watch(true);
  await vi.advanceTimersByTimeAsync(1000);
  figures.dispose();
  const { stats } = asked;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked.stats).toBe(stats);
  expect(vi.getTimerCount()).toBe(0);
});
