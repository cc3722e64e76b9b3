/** A model that is not used is unloaded, and loaded again by the next request. */
import { afterEach, expect, test, vi } from 'vitest';
import { world } from '../../../support/editor/fakeHostEditor.ts';

vi.mock(
  '../../../../src/client/transport.ts',
  async () => (await import('../../../support/editor/fakeHostEditor.ts')).transport,
);
vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeHostEditor.ts')).vscodeApi);
const { focus, greet, last, loaded, settle } = await import('../../../support/editor/hostHarness.ts');

const MINUTE = 60_000;

afterEach(() => void vi.useRealTimers());

test('the model is unloaded after the time without a request, sooner in the background, and loaded by the next request', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const { host } = await loaded({ unloadAfterMinutes: 15 });
  vi.advanceTimersByTime(14 * MINUTE);
  const done = host.client.generate({ task: () => ({ kind: 'raw', prompt: '' }), priority: 'chat' });
  await settle();
  // The time of a long request does not count as idle.
  vi.advanceTimersByTime(60 * MINUTE);
  expect(host.client.state.kind).toBe('ready');
  last().say({ type: 'done', requestId: (last().sent.at(-1) as { requestId: string }).requestId } as never);
  await done;
  vi.advanceTimersByTime(14.9 * MINUTE);
  expect(host.client.state.kind).toBe('ready');
  vi.advanceTimersByTime(0.2 * MINUTE);
  expect(host.client.state.kind).toBe('stopped');
  await settle();
  expect(last().sent.at(-1)?.type).toBe('shutdown');
  expect(vi.getTimerCount()).toBe(0);

  const { epoch } = host.client;
  const ready = host.client.ready();
  const { requestId } = await greet();
  last().say({ type: 'reply', requestId, value: { kind: 'loaded', model: { name: 'm' } as never } });
  await ready;
  expect(world.engines.length).toBe(2);
  expect(host.client.epoch).toBeGreaterThan(epoch);
  vi.advanceTimersByTime(3 * MINUTE);
  focus(false);
  vi.advanceTimersByTime(4.9 * MINUTE);
  focus(true);
  vi.advanceTimersByTime(3 * MINUTE);
  expect(host.client.state.kind).toBe('ready');
  focus(false);
  vi.advanceTimersByTime(5.1 * MINUTE);
  expect(host.client.state.kind).toBe('stopped');
  await host.stop();
  expect(vi.getTimerCount()).toBe(0);
  expect(world.windowState.size).toBe(0);
});

test('0 keeps the model loaded; a changed time counts from the last request', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const { host, set } = await loaded({ unloadAfterMinutes: 0 });
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(600 * MINUTE);
  expect(host.client.state.kind).toBe('ready');
  set({ unloadAfterMinutes: 601 });
  vi.advanceTimersByTime(1.1 * MINUTE);
  expect(host.client.state.kind).toBe('stopped');
  await host.stop();
});

test('an engine that stays down keeps its message', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const { host } = await loaded({ unloadAfterMinutes: 15 });
  last().say({ type: 'error', code: 'engineFailed', message: 'the engine is down' });
  await host.client.generate({ task: () => ({ kind: 'raw', prompt: '' }), priority: 'chat' }).catch(() => {});
  vi.advanceTimersByTime(20 * MINUTE);
  expect(host.client.state).toMatchObject({ kind: 'failed', message: 'the engine is down' });
  await host.stop();
});
