/** The editor's client with a scripted engine: lazy start, one load, streams, aborts, and a closing channel. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type EngineMessage,
  type HostMessage,
  type LoadOptions,
  PROTOCOL_VERSION,
} from '../../../../engine/protocol/messages.ts';
import type { ModelInfo } from '../../../../engine/protocol/stats.ts';
import { EngineClient, type GenerateRequest } from '../../../../src/client/engineClient.ts';
import type { EngineState } from '../../../../src/client/engineLifecycle.ts';
import type { Transport } from '../../../../src/client/transport.ts';
import { t } from '../../../support/editor/translate.ts';

const MODEL = { name: 'scripted', precision: 'int8', contextTokens: 128, loadMs: 1, imported: false } as ModelInfo;
const OPTIONS: LoadOptions = { modelDir: '/model', cacheDir: '/cache', precision: 'int8', maxBytes: 0, threads: 0 };
const USAGE = { promptTokens: 4, cachedTokens: 3, completionTokens: 1, blockTokens: 2 };
const TIMINGS = { queueMs: 0, ttftMs: 1, tpotMs: 1 };

/** Sends `ready`, answers by `answers`, and records the messages that it gets. */
class ScriptedEngine implements Transport {
  readonly sent: HostMessage[] = [];
  disposed: boolean | undefined;
  #message: (message: EngineMessage) => void = () => {};
  #exit: (reason: string) => void = () => {};
  readonly #answers: (message: HostMessage, say: (message: EngineMessage) => void) => void;

  constructor(
    answers: (message: HostMessage, say: (message: EngineMessage) => void) => void,
    version = PROTOCOL_VERSION,
  ) {
    this.#answers = answers;
    queueMicrotask(() => this.say({ type: 'ready', version }));
  }

  send(message: HostMessage): void {
    this.sent.push(message);
    queueMicrotask(() => this.#answers(message, (answer) => this.say(answer)));
  }

  say(message: EngineMessage): void {
    if (this.disposed === undefined) this.#message(message);
  }

  exit(reason: string): void {
    this.#exit(reason);
  }

  onMessage(listener: (message: EngineMessage) => void): void {
    this.#message = listener;
  }

  onExit(listener: (reason: string) => void): void {
    this.#exit = listener;
  }

  dispose(acknowledged: boolean): void {
    this.disposed = acknowledged;
  }
}

/** Loads, and ends each generate at once with the two chunks "a" and "b". */
const WORKING = (message: HostMessage, say: (message: EngineMessage) => void): void => {
  if (message.type === 'load')
    say({ type: 'reply', requestId: message.requestId, value: { kind: 'loaded', model: MODEL } });
  else if (message.type === 'shutdown') say({ type: 'reply', requestId: message.requestId, value: { kind: 'ok' } });
  else if (message.type === 'countTokens')
    say({
      type: 'reply',
      requestId: message.requestId,
      value: { kind: 'count', numTokens: 'docId' in message ? message.docId.length : 0 },
    });
  else if (message.type === 'generate') {
    const { requestId } = message;
    for (const text of ['a', 'b']) say({ type: 'chunk', requestId, text, tokenIds: [1], logprobs: [0] });
    say({
      type: 'done',
      requestId,
      finishReason: 'stop',
      text: 'ab',
      tokenIds: [1, 1],
      logprobs: [0, 0],
      usage: USAGE,
      timings: TIMINGS,
      diagnostics: [],
    });
  }
};
/** Loads, and answers each generate only when it is aborted. */
const SLOW = (message: HostMessage, say: (message: EngineMessage) => void): void => {
  if (message.type === 'abort')
    say({
      type: 'done',
      requestId: message.requestId,
      finishReason: 'abort',
      text: '',
      tokenIds: [],
      logprobs: [],
      usage: USAGE,
      timings: TIMINGS,
      diagnostics: [],
    });
  else if (message.type !== 'generate') WORKING(message, say);
};

function clientOf(answers = WORKING, version?: number) {
  const engines: ScriptedEngine[] = [];
  const states: string[] = [];
  const activity: number[] = [];
  const script = { answers, loadOptions: () => OPTIONS };
  const client = new EngineClient({
    createTransport: () => {
      const engine = new ScriptedEngine((message, say) => script.answers(message, say), version);
      engines.push(engine);
      return engine;
    },
    loadOptions: () => script.loadOptions(),
    onState: (state: EngineState) => states.push(state.kind),
    onActivity: (numPending) => activity.push(numPending),
    log: () => {},
    t,
  });
  return { client, engines, states, activity, script };
}

const ASK: GenerateRequest = { task: () => ({ kind: 'raw', prompt: 'x' }), priority: 'chat' };
const settle = () => new Promise((resolve) => setImmediate(resolve));

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

describe('requests', () => {
  test('chunks stream before the result, and the activity counter goes up and down', async () => {
    const { client, activity } = clientOf();
    const chunks: string[] = [];
    const done = await client.generate({ ...ASK, onChunk: (text) => chunks.push(text) });
    expect(chunks).toEqual(['a', 'b']);
    expect(done).toMatchObject({ text: 'ab', usage: USAGE });
    expect(activity).toEqual([1, 0]);
  });

  test('an abort reaches the engine, and the request resolves with its answer', async () => {
    const { client, engines } = clientOf(SLOW);
    const abort = new AbortController();
    const pending = client.generate({ ...ASK, signal: abort.signal });
    await client.ready();
    await settle();
    abort.abort();
    expect((await pending).finishReason).toBe('abort');
    const [, generate, aborted] = engines[0]!.sent;
    expect(aborted).toEqual({ type: 'abort', requestId: (generate as { requestId: string }).requestId });
  });

  test('a request that the user starts to wait for gets the priority of a completion, also before it is sent', async () => {
    const { client, engines } = clientOf(SLOW);
    const [hurry, abort] = [new AbortController(), new AbortController()];
    const pending = client.generate({ ...ASK, priority: 'summary', hurry: hurry.signal, signal: abort.signal });
    await client.ready();
    await settle();
    hurry.abort();
    const late = client.generate({ ...ASK, priority: 'summary', hurry: hurry.signal, signal: abort.signal });
    await settle();
    abort.abort();
    await Promise.all([pending, late]);
    const [, first, raised, second] = engines[0]!.sent;
    expect(first).toMatchObject({ type: 'generate', priority: 'summary' });
    expect(raised).toEqual({
      type: 'prioritise',
      requestId: (first as { requestId: string }).requestId,
      priority: 'completion',
    });
    expect(second).toMatchObject({ type: 'generate', priority: 'completion' });
    expect(engines[0]!.sent.filter(({ type }) => type === 'prioritise')).toHaveLength(1);
  });

  test('an abort while the model loads ends the request at once and sends nothing', async () => {
    const { client, engines } = clientOf(() => {});
    const abort = new AbortController();
    const pending = client.generate({ ...ASK, signal: abort.signal });
    await settle();
    abort.abort();
    expect((await pending).finishReason).toBe('abort');
    expect(engines[0]!.sent.map((m) => m.type)).toEqual(['load']);
  });

  test('an error of one request does not affect others', async () => {
    const { client, engines, script } = clientOf(SLOW);
    const first = client.generate(ASK);
    const second = client.generate(ASK);
    await client.ready();
    await settle();
    const ids = engines[0]!.sent.filter((m) => m.type === 'generate').map((m) => m.requestId);
    engines[0]!.say({ type: 'error', requestId: ids[0]!, code: 'contextTooLong', message: 'too long' });
    await expect(first).rejects.toMatchObject({ code: 'contextTooLong' });
    script.answers = WORKING;
    WORKING(engines[0]!.sent.find((m) => m.type === 'generate' && m.requestId === ids[1])!, (message) =>
      engines[0]!.say(message),
    );
    expect((await second).text).toBe('ab');
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

describe('stop', () => {
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

describe('documents that the engine has lost', () => {
  test('an error about a document outside a request makes all documents be sent again', async () => {
    const { client, engines } = clientOf();
    await client.ready();
    const { epoch } = client;
    engines[0]!.say({
      type: 'error',
      code: 'badRequest',
      message: 'edits for version 3 of a do not follow version 1; send the whole text',
    });
    expect(client.epoch).toBe(epoch + 1);
    expect(client.state.kind).toBe('ready');
    engines[0]!.say({ type: 'error', code: 'badRequest', message: 'request id "g1" is in use' });
    expect(client.epoch).toBe(epoch + 1);
  });

  test('a request that fails because of it is built and sent once more', async () => {
    const { client, script } = clientOf();
    await client.ready();
    const { epoch } = client;
    let numSent = 0;
    script.answers = (message, say) => {
      if (message.type === 'generate' && numSent++ === 0)
        say({
          type: 'error',
          requestId: message.requestId,
          code: 'unknownDocument',
          message: 'a is not open; send its text first',
        });
      else WORKING(message, say);
    };
    const epochs: number[] = [];
    const task: GenerateRequest['task'] = () => {
      epochs.push(client.epoch);
      return { kind: 'raw', prompt: '' };
    };
    expect((await client.generate({ ...ASK, task })).text).toBe('ab');
    expect(epochs).toEqual([epoch, epoch + 1]);
  });
});
