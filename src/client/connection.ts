/**
 * One engine from its start to its end: the version handshake, and each request's way from message to result. Whatever
 * happens to the channel, every request ends: in its result, or in an error with the reason. Owns no policy: when to
 * start, load and restart is engineClient.ts.
 */
import {
  type EngineMessage,
  type ErrorCode,
  type HostMessage,
  PROTOCOL_VERSION,
  type ReplyValue,
} from '../../engine/protocol.ts';
import type { Translate } from '../translate.ts';
import type { Transport } from './transport.ts';

export type Done = Extract<EngineMessage, { type: 'done' }>;
export type Generate = Omit<Extract<HostMessage, { type: 'generate' }>, 'type' | 'requestId'>;
export type LoadStage = Extract<EngineMessage, { type: 'loadProgress' }>['stage'];

export interface GenerateSignals {
  signal?: AbortSignal;
  hurry?: AbortSignal;
}

/** A request's end without a result; `message` is one sentence for the user. */
export class EngineError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.name = 'EngineError';
    this.code = code;
  }
}

/** Who hears of a request before its end: its text, and for one made of several sequences how many have ended. */
export type Listeners = Pick<Pending, 'onChunk' | 'onParts'>;

interface Pending {
  onChunk?: ((text: string) => void) | undefined;
  onProgress?: ((stage: LoadStage, fraction: number) => void) | undefined;
  onParts?: ((numDone: number, numTotal: number) => void) | undefined;
  resolve: (value: never) => void;
  reject: (error: EngineError) => void;
}

/** Starting the thread and reading its script takes well under a second; a machine under load gets many times that. */
const READY_MS = 30_000;
const SHUTDOWN_MS = 4_000;

/** What the owner of a connection is told besides its requests' results. */
export interface ConnectionEvents {
  /** The channel closed by itself; all pending requests have been rejected. */
  onClosed(reason: string): void;
  /** An error that belongs to no request. */
  onError(error: EngineError): void;
  /** A line for the log. */
  onLog(message: string): void;
}

export class Connection {
  /** Settles when the engine has said that it speaks our protocol. */
  readonly opened: Promise<void>;
  readonly #transport: Transport;
  readonly #t: Translate;
  readonly #events: ConnectionEvents;
  readonly #pending = new Map<string, Pending>();
  readonly #readyTimer: ReturnType<typeof setTimeout>;
  #open!: { resolve: () => void; reject: (error: EngineError) => void };
  #numRequests = 0;
  #ended: string | undefined;

  constructor(
    transport: Transport,
    t: Translate,
    events: ConnectionEvents,
    language?: HostMessage & { type: 'language' },
  ) {
    this.#transport = transport;
    this.#t = t;
    this.#events = events;
    this.opened = new Promise((resolve, reject) => {
      this.#open = { resolve, reject };
    });
    // Whoever starts the engine awaits `opened`; without that, its rejection is no unhandled one.
    this.opened.catch(() => {});
    this.#readyTimer = setTimeout(() => this.#end(t('it did not start within {0} s', READY_MS / 1000)), READY_MS);
    if (language) transport.send(language);
    transport.onMessage((message) => this.#receive(message));
    transport.onExit((reason) => this.#end(reason));
  }

  /** A message without an answer. */
  notify(message: HostMessage): void {
    if (this.#ended === undefined) this.#transport.send(message);
  }

  /** A message with one answer. */
  ask(message: (requestId: string) => HostMessage, onProgress?: Pending['onProgress']): Promise<ReplyValue> {
    const requestId = `a${++this.#numRequests}`;
    return this.#request<ReplyValue>(requestId, message(requestId), { onProgress });
  }

  /** Streams through `listeners`; after an abort by `signal` resolves with finishReason `abort`. Once `hurry` has fired somebody waits for it: it is a completion then. */
  generate(request: Generate, listeners: Listeners = {}, { signal, hurry }: GenerateSignals = {}): Promise<Done> {
    const requestId = `g${++this.#numRequests}`;
    const abort = () => this.notify({ type: 'abort', requestId });
    const raise = () => this.notify({ type: 'prioritise', requestId, priority: 'completion' });
    const done = this.#request<Done>(
      requestId,
      { type: 'generate', requestId, ...request, ...(hurry?.aborted ? { priority: 'completion' as const } : {}) },
      listeners,
    );
    signal?.addEventListener('abort', abort);
    if (request.priority !== 'completion') hurry?.addEventListener('abort', raise);
    return done.finally(() => {
      signal?.removeEventListener('abort', abort);
      hurry?.removeEventListener('abort', raise);
    });
  }

  /** Rejects what is pending, lets the engine finish its step and free its memory, then ends the channel. */
  async close(reason: string): Promise<void> {
    if (this.#ended !== undefined) return;
    const requestId = 'shutdown';
    this.#rejectAll(reason);
    clearTimeout(this.#readyTimer);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const bound = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), SHUTDOWN_MS);
    });
    const replied = this.#request<ReplyValue>(requestId, { type: 'shutdown', requestId }, {}).then(
      () => true,
      () => true,
    );
    const acknowledged = await Promise.race([replied, bound]);
    clearTimeout(timer);
    this.#ended ??= reason;
    this.#rejectAll(reason);
    this.#transport.dispose(acknowledged);
  }

  #request<T>(
    requestId: string,
    message: HostMessage,
    more: Pick<Pending, 'onChunk' | 'onProgress' | 'onParts'>,
  ): Promise<T> {
    if (this.#ended !== undefined) return Promise.reject(this.#failure(this.#ended));
    return new Promise<T>((resolve, reject) => {
      this.#pending.set(requestId, { ...more, resolve, reject });
      this.#transport.send(message);
    });
  }

  #receive(message: EngineMessage): void {
    const pending =
      'requestId' in message && message.requestId !== undefined ? this.#pending.get(message.requestId) : undefined;
    switch (message.type) {
      case 'ready':
        this.#greet(message.version);
        break;
      case 'log':
        this.#events.onLog(message.message);
        break;
      case 'chunk':
        pending?.onChunk?.(message.text);
        break;
      case 'progress':
        pending?.onParts?.(message.numDone, message.numTotal);
        break;
      case 'loadProgress':
        pending?.onProgress?.(message.stage, message.fraction);
        break;
      case 'reply':
      case 'done':
        this.#pending.delete(message.requestId);
        pending?.resolve((message.type === 'reply' ? message.value : message) as never);
        break;
      case 'error': {
        const error = new EngineError(message.code, message.message);
        if (message.requestId === undefined) this.#events.onError(error);
        else this.#pending.delete(message.requestId);
        pending?.reject(error);
      }
    }
  }

  #greet(version: number): void {
    clearTimeout(this.#readyTimer);
    if (version === PROTOCOL_VERSION) this.#open.resolve();
    else
      this.#end(
        this.#t(
          'it speaks version {0} of the protocol and the editor version {1}; reinstall the extension',
          version,
          PROTOCOL_VERSION,
        ),
        true,
      );
  }

  /** `idle`: the engine is known not to be computing. */
  #end(reason: string, idle = false): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    clearTimeout(this.#readyTimer);
    this.#transport.dispose(idle);
    this.#rejectAll(reason);
    this.#events.onClosed(reason);
  }

  #rejectAll(reason: string): void {
    const error = this.#failure(reason);
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    this.#open.reject(error);
    for (const request of pending) request.reject(error);
  }

  #failure(reason: string): EngineError {
    return new EngineError('engineFailed', this.#t('The engine stopped: {0}.', reason));
  }
}
