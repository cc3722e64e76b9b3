/** The life of the engine behind the client: lazy start, one load, a restart after a crash, stop and dispose. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { GenerateRequest } from '../../../../src/client/engineClient.ts';
import { PROTOCOL_VERSION } from '../../../../engine/protocol/messages.ts';
import { ASK, clientOf, OPTIONS, settle, SLOW, WORKING } from '../../../support/editor/scriptedChannel.ts';

describe('start', () => {
  test('nothing is started before the first request; then one engine and one load for all', async () => {
    const { client, engines, states } = clientOf();
    expect(await client.stats()).toBeNull();
    expect(await client.countTokens(() => 'abc')).toBeNull();
    client.notify({ type: 'evict' });
    expect(engines).toEqual([]);
    await Promise.all([client.generate(ASK), client.generate(ASK)]);
    expect(engines.length).toBe(1);
    expect(engines[0]!.sent.map((m) => m.type)).toEqual(['load', 'generate', 'generate']);
    expect(states).toEqual(['starting', 'ready']);
    expect(await client.countTokens(() => 'abc')).toBe(3);
  });

  test('the task is built when it is sent, after the load', async () => {
    const { client } = clientOf();
    const states: string[] = [];
    const task: GenerateRequest['task'] = () => {
      states.push(client.state.kind);
      return { kind: 'raw', prompt: '' };
    };
    await client.generate({ ...ASK, task });
    expect(states).toEqual(['ready']);
  });

  test('another protocol version is refused', async () => {
    const { client, engines } = clientOf(WORKING, PROTOCOL_VERSION + 1);
    await expect(client.generate(ASK)).rejects.toThrow(/version/);
    // The automatic restart gets the same engine.
    await settle();
    expect(client.state).toMatchObject({ kind: 'failed', retry: false });
    expect(engines.map((engine) => engine.sent)).toEqual([[], []]);
  });

  test('a folder without a model fails before the engine is started, and the next request tries again', async () => {
    const { client, engines, script } = clientOf();
    script.loadOptions = () => {
      throw new Error('no model here');
    };
    await expect(client.generate(ASK)).rejects.toThrow('no model here');
    expect(engines).toEqual([]);
    expect(client.state).toEqual({ kind: 'failed', message: 'no model here', retry: true });
    script.loadOptions = () => OPTIONS;
    expect((await client.generate(ASK)).text).toBe('ab');
  });

  test('a model that cannot be loaded fails the request; the thread stays for the next attempt', async () => {
    const { client, engines, script } = clientOf((message, say) => {
      if (message.type === 'load')
        say({ type: 'error', requestId: message.requestId, code: 'modelUnsupported', message: 'config.json: no' });
    });
    await expect(client.generate(ASK)).rejects.toMatchObject({ code: 'modelUnsupported', message: 'config.json: no' });
    script.answers = WORKING;
    expect((await client.generate(ASK)).text).toBe('ab');
    expect(engines.length).toBe(1);
  });
});

describe('the channel closes', () => {
  test('every pending request fails with the reason, the engine restarts once, and the next request works', async () => {
    const { client, engines, script } = clientOf(SLOW);
    const pending = [client.generate(ASK), client.generate(ASK)].map((p) => p.catch((error: Error) => error.message));
    await client.ready();
    await settle();
    const epoch = client.epoch;
    engines[0]!.exit('killed');
    expect(await Promise.all(pending)).toEqual(['The engine stopped: killed.', 'The engine stopped: killed.']);
    await settle();
    expect(client.state.kind).toBe('ready');
    expect(client.epoch).toBe(epoch + 1);
    script.answers = WORKING;
    expect((await client.generate(ASK)).text).toBe('ab');
    expect(engines.length).toBe(2);
  });

  test('after a second crash the engine stays down with one message, until it is restarted by hand', async () => {
    const { client, engines, states } = clientOf();
    await client.generate(ASK);
    engines[0]!.exit('killed');
    await settle();
    engines[1]!.exit('killed again');
    await settle();
    expect(client.state).toEqual({
      kind: 'failed',
      message: 'The engine stopped again after a restart: killed again.',
      retry: false,
    });
    await expect(client.generate(ASK)).rejects.toThrow('killed again');
    expect(engines.length).toBe(2);
    expect(states.filter((state) => state === 'failed').length).toBe(1);
    await client.stop('restart');
    expect((await client.generate(ASK)).text).toBe('ab');
  });

  test('the engine also restarts once after a crash during the load', async () => {
    const { client, engines } = clientOf(() => {});
    const pending = client.generate(ASK).catch((error: Error) => error.message);
    await settle();
    engines[0]!.exit('bad library');
    expect(await pending).toBe('The engine stopped: bad library.');
    engines[1]!.exit('bad library');
    await settle();
    expect(client.state).toMatchObject({ kind: 'failed', retry: false });
    expect(engines.length).toBe(2);
  });

  test('an engine that reports its own failure stays down', async () => {
    const { client, engines } = clientOf();
    await client.generate(ASK);
    engines[0]!.say({ type: 'error', code: 'engineFailed', message: 'the engine is down' });
    await expect(client.generate(ASK)).rejects.toThrow('the engine is down');
  });
});

describe('shutdown', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  test('the thread is ended only after it has answered shutdown', async () => {
    const { client, engines } = clientOf();
    await client.generate(ASK);
    const stopped = client.stop('test');
    expect(engines[0]!.disposed).toBeUndefined();
    await stopped;
    expect(engines[0]!.sent.at(-1)?.type).toBe('shutdown');
    expect(engines[0]!.disposed).toBe(true);
    expect(client.state.kind).toBe('stopped');
  });

  test('an engine that does not answer is given up after a while, and pending requests end', async () => {
    const { client, engines } = clientOf((message, say) => {
      if (message.type === 'load') WORKING(message, say);
    });
    const pending = client.generate(ASK).catch((error: Error) => error.message);
    await client.ready();
    await settle();
    const stopped = client.stop('test');
    expect(await pending).toBe('The engine stopped: test.');
    vi.advanceTimersByTime(10_000);
    await stopped;
    expect(engines[0]!.disposed).toBe(false);
  });
});

describe('stop and dispose', () => {
  test('a stop in the same tick as the first request prevents the start', async () => {
    const { client, engines } = clientOf();
    const pending = client.ready().catch((error: Error) => error.message);
    await client.stop('test');
    expect(await pending).toMatch('was stopped before');
    expect(engines).toEqual([]);
    expect(client.state.kind).toBe('stopped');
  });

  test('a stop and a new start in the same tick give one engine and one load', async () => {
    const { client, engines } = clientOf();
    client.ready().catch(() => {});
    void client.stop('test');
    await client.ready();
    expect(engines.map((engine) => engine.sent.map((m) => m.type))).toEqual([['load']]);
  });

  test('a stop between the handshake and the load sends no load to the stopped engine', async () => {
    const { client, engines } = clientOf();
    const pending = client.ready().catch(() => 'over');
    await Promise.resolve();
    await Promise.resolve();
    expect(engines.length).toBe(1);
    await client.stop('test');
    expect(await pending).toBe('over');
    expect(engines[0]!.sent.map((m) => m.type)).toEqual(['shutdown']);
    expect(client.state.kind).toBe('stopped');
  });

  test('after dispose, requests end as aborted, nothing is started and nothing is reported', async () => {
    const { client, engines, states } = clientOf(SLOW);
    const pending = client.generate(ASK);
    await client.ready();
    await settle();
    await client.dispose('test');
    expect((await pending).finishReason).toBe('abort');
    await expect(client.ready()).rejects.toMatchObject({ code: 'notLoaded' });
    expect((await client.generate(ASK)).finishReason).toBe('abort');
    expect(engines.length).toBe(1);
    expect(states).toEqual(['starting', 'ready', 'stopped']);
  });
});
