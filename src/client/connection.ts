/**
 * One engine from start to end: the version handshake, and each request from message to result. Every request ends with
 * a result or an error, whatever happens to the channel. Does not decide when to start, load or restart:
 * engineLifecycle.ts does.
 */
import {
  type EngineMessage,
  type HostMessage,
  PROTOCOL_VERSION,
  type ReplyValue,
} from '../../engine/protocol/messages.ts';
import { RequestError } from '../../engine/protocol/errors.ts';
import type { Translate } from '../format.ts';
import type { Transport } from './transport.ts';

export type Done = Extract<EngineMessage, { type: 'done' }>;
export type Generate = Omit<Extract<HostMessage, { type: 'generate' }>, 'type' | 'requestId'>;
export type LoadStage = Extract<EngineMessage, { type: 'loadProgress' }>['stage'];

export interface GenerateSignals {
  signal?: AbortSignal;
  hurry?: AbortSignal;
}

/** Whether the engine's copy of a document is missing or unusable. */
export function isDocumentError(error: unknown): boolean {
  return (
    error instanceof RequestError &&
    (error.code === 'unknownDocument' || (error.code === 'badRequest' && error.message.includes('send the whole text')))
  );
}

/** Listeners for a running request: its text, and for a request of several sequences how many have ended. */
export type Listeners = Pick<Pending, 'onChunk' | 'onReasoning' | 'onParts'>;

interface Pending {
  onChunk?: ((text: string) => void) | undefined;
  onReasoning?: ((text: string) => void) | undefined;
  onProgress?: ((stage: LoadStage, fraction: number) => void) | undefined;
  onParts?: ((numDone: number, numTotal: number) => void) | undefined;
  resolve: (value: never) => void;
  reject: (error: RequestError) => void;
}

/**
 * Starting the thread and reading its script takes well under a second. The limit is much longer for machines under
 * load.
 */
const READY_MS = 30_000;
const SHUTDOWN_MS = 4_000;

/** Events of a connection that belong to no single request. */
export interface ConnectionEvents {
  /** The channel closed without `close`. All pending requests have been rejected. */
  onClosed(reason: string): void;
  /** An error that belongs to no request. */
  onError(error: RequestError): void;
  /** A line for the log. */
  onLog(message: string): void;
}

export class Connection {
  /** Resolves when the engine has sent `ready` with our protocol version. */
  readonly opened: Promise<void>;
  readonly #transport: Transport;
  readonly #t: Translate;
  readonly #events: ConnectionEvents;
  readonly #pending = new Map<string, Pending>();
  readonly #readyTimer: ReturnType<typeof setTimeout>;
  #open!: { resolve: () => void; reject: (error: RequestError) => void };
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
    // The caller that starts the engine awaits `opened`. This keeps a rejection from being reported as unhandled.
    this.opened.catch(() => {});
    this.#readyTimer = setTimeout(() => this.#end(t('it did not start within {0} s', READY_MS / 1000)), READY_MS);
    if (language) transport.send(language);
    transport.onMessage((message) => this.#receive(message));
    transport.onExit((reason) => this.#end(reason));
  }

  /** Sends a message that has no answer. */
  notify(message: HostMessage): void {
    if (this.#ended === undefined) this.#transport.send(message);
  }

  /** Sends a message that has one answer, which is of a `kind`. */
  async ask<K extends ReplyValue['kind']>(
    kind: K,
    message: (requestId: string) => HostMessage,
    onProgress?: Pending['onProgress'],
  ): Promise<Extract<ReplyValue, { kind: K }>> {
    const requestId = `a${++this.#numRequests}`;
    const value = await this.#request<ReplyValue>(requestId, message(requestId), { onProgress });
    if (value.kind !== kind)
      throw new RequestError('engineFailed', this.#t('The engine answered "{0}" with "{1}".', kind, value.kind));
    return value as Extract<ReplyValue, { kind: K }>;
  }

  /**
   * Streams through `listeners`. After `signal` aborts, resolves with finishReason `abort`. When `hurry` fires, the
   * request gets the priority of a completion, because the user waits for it.
   */
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

  /** Rejects all pending requests, lets the engine finish its step and free its memory, then closes the channel. */
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

  #request<T>(requestId: string, message: HostMessage, more: Listeners & Pick<Pending, 'onProgress'>): Promise<T> {
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
        if (message.reasoning !== undefined) pending?.onReasoning?.(message.reasoning);
        else pending?.onChunk?.(message.text);
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
        const error = new RequestError(message.code, message.message);
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
          'its protocol version is {0}, but the editor needs {1}; reinstall the extension',
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

  #failure(reason: string): RequestError {
    return new RequestError('engineFailed', this.#t('The engine stopped: {0}.', reason));
  }
}
