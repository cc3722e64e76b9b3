/** An engine client over a scripted channel. Functions give the channel's answers, and everything sent is recorded. */
import {
  type EngineMessage,
  type HostMessage,
  type LoadOptions,
  PROTOCOL_VERSION,
} from '../../../engine/protocol/messages.ts';
import type { ModelInfo } from '../../../engine/protocol/stats.ts';
import { EngineClient, type GenerateRequest } from '../../../src/client/engineClient.ts';
import type { EngineState } from '../../../src/client/engineLifecycle.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { t } from './translate.ts';

const MODEL = { name: 'scripted', precision: 'int8', contextTokens: 128, loadMs: 1, imported: false } as ModelInfo;
export const OPTIONS: LoadOptions = {
  modelDir: '/model',
  cacheDir: '/cache',
  precision: 'int8',
  maxBytes: 0,
  threads: 0,
};
export const USAGE = { promptTokens: 4, cachedTokens: 3, completionTokens: 1, blockTokens: 2 };
const TIMINGS = { queueMs: 0, ttftMs: 1, tpotMs: 1 };

/** Sends `ready`, answers with the function `answers`, and records the messages that it receives. */
class ScriptedChannel implements Transport {
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
export const WORKING = (message: HostMessage, say: (message: EngineMessage) => void): void => {
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
export const SLOW = (message: HostMessage, say: (message: EngineMessage) => void): void => {
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

/** A client over channels that answer with `answers`. Also returns what the client reports. */
export function clientOf(answers = WORKING, version?: number) {
  const engines: ScriptedChannel[] = [];
  const states: string[] = [];
  const activity: number[] = [];
  /** The kinds of the tasks that were answered. */
  const answered: string[] = [];
  const script = { answers, loadOptions: () => OPTIONS };
  const client = new EngineClient({
    createTransport: () => {
      const engine = new ScriptedChannel((message, say) => script.answers(message, say), version);
      engines.push(engine);
      return engine;
    },
    loadOptions: () => script.loadOptions(),
    onState: (state: EngineState) => states.push(state.kind),
    onActivity: (numPending) => activity.push(numPending),
    onAnswer: ({ kind }) => answered.push(kind),
    log: () => {},
    t,
  });
  return { client, engines, states, activity, answered, script };
}

export const ASK: GenerateRequest = { task: () => ({ kind: 'raw', prompt: 'x' }), priority: 'chat' };
export const settle = () => new Promise((resolve) => setImmediate(resolve));
