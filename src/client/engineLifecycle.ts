/**
 * The life of the engine: starts it and loads the model when asked, restarts it once after a crash and then keeps it
 * down. Does not know the requests that it serves: engineClient.ts sends them.
 */
import type { HostMessage, LoadOptions } from '../../engine/protocol/messages.ts';
import type { ModelInfo } from '../../engine/protocol/stats.ts';
import type { ErrorCode } from '../../engine/protocol/tasks.ts';
import { type Translate, messageOf } from '../format.ts';
import { RequestError } from '../../engine/protocol/errors.ts';
import { Connection, isDocumentError, type LoadStage } from './connection.ts';
import type { Transport } from './transport.ts';

export type EngineState =
  | { kind: 'stopped' }
  | { kind: 'starting'; stage: 'thread' | LoadStage; fraction: number }
  | { kind: 'ready'; model: ModelInfo }
  /** `retry`: the next request tries again, as after a model that cannot be loaded. Otherwise only `restart` helps. */
  | { kind: 'failed'; message: string; retry: boolean; code?: ErrorCode };

export interface LifecycleOptions {
  createTransport(): Transport;
  /** Throws an Error with a message for the user when the settings name no usable model. */
  loadOptions(): LoadOptions | Promise<LoadOptions>;
  onState(state: EngineState): void;
  /** Translations of the engine's messages; English without it. */
  language?: (HostMessage & { type: 'language' }) | undefined;
  log(level: 'info' | 'warn' | 'error', text: string): void;
  t: Translate;
}

/** A second crash within this time after an automatic restart counts as the same fault. */
const SAME_FAULT_MS = 5 * 60_000;

export class EngineLifecycle {
  readonly #options: LifecycleOptions;
  readonly #onStarted: () => void;
  #connection: Connection | null = null;
  #loading: Promise<ModelInfo> | null = null;
  #state: EngineState = { kind: 'stopped' };
  #ended: Promise<unknown> = Promise.resolve();
  #lastCrash = Number.NEGATIVE_INFINITY;
  #epoch = 0;
  /** Changes when the engine stops or crashes. A load that began before then is void. */
  #generation = 0;
  #disposed = false;

  /** @param onStarted called when the thread has been started or the model is loaded */
  constructor(options: LifecycleOptions, onStarted: () => void) {
    this.#options = options;
    this.#onStarted = onStarted;
  }

  get state(): EngineState {
    return this.#state;
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  /** See EngineClient.epoch. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Resolves when all stopped engines have ended. Until then they may write to the disk. */
  get ended(): Promise<unknown> {
    return this.#ended;
  }

  /** Starts the engine and loads the model, unless that has been done. */
  ready(): Promise<ModelInfo> {
    const refusal = this.#refusal();
    if (refusal) return Promise.reject(refusal);
    // In a later microtask, so that a failure in its first lines finds `#loading` set.
    const generation = this.#generation;
    this.#loading ??= Promise.resolve().then(() => this.#load(generation));
    return this.#loading;
  }

  /** Starts the engine without a model. Only `stop` undoes this; a later `ready` continues from it. */
  async open(): Promise<void> {
    const refusal = this.#refusal();
    if (refusal) throw refusal;
    if (!this.#connection) {
      this.#connection = this.#connect();
      this.#onStarted();
    }
    await this.#connection.opened;
  }

  /** The connection of a started engine. @throws RequestError if the engine was stopped in the meantime */
  connected(): Connection {
    if (!this.#connection) throw this.#stopped();
    return this.#connection;
  }

  /** Sends a message that has no answer. Drops it while no model is loaded. */
  notify(message: HostMessage): void {
    if (this.#state.kind === 'ready') this.#connection?.notify(message);
  }

  /** The engine has lost a document that was sent in `epoch`. Requests sent together share the new epoch. */
  documentLost(epoch: number): void {
    if (this.#epoch === epoch) this.#epoch++;
  }

  /** Stops the engine. The next request starts a new one. */
  async stop(reason: string): Promise<void> {
    const connection = this.#connection;
    this.#abandon();
    this.#lastCrash = Number.NEGATIVE_INFINITY;
    this.#setState({ kind: 'stopped' });
    const closed = connection?.close(reason);
    this.#ended = Promise.allSettled([this.#ended, closed]);
    await closed;
  }

  /** Stops for good. */
  dispose(reason: string): Promise<void> {
    this.#disposed = true;
    return this.stop(reason);
  }

  /** Why no engine may be started; undefined if one may. */
  #refusal(): RequestError | undefined {
    if (this.#disposed) return new RequestError('notLoaded', this.#options.t('Kvasir is switched off.'));
    return this.#state.kind === 'failed' && !this.#state.retry
      ? new RequestError('engineFailed', this.#state.message)
      : undefined;
  }

  /** Drops everything in progress. */
  #abandon(): void {
    this.#generation++;
    this.#connection = null;
    this.#loading = null;
  }

  #dropConnection(): void {
    const connection = this.#connection;
    this.#connection = null;
    void connection?.close(this.#options.t('the model could not be loaded'));
  }

  #stopped(): RequestError {
    return new RequestError('notLoaded', this.#options.t('The engine was stopped before the request could be sent.'));
  }

  async #load(generation: number): Promise<ModelInfo> {
    if (generation !== this.#generation) throw this.#stopped();
    try {
      const options = await this.#options.loadOptions();
      if (generation !== this.#generation) throw this.#stopped();
      const connection = this.#connection ?? this.#connect();
      this.#connection = connection;
      this.#setState({ kind: 'starting', stage: 'thread', fraction: 0 });
      await connection.opened;
      if (generation !== this.#generation) throw this.#stopped();
      const { model } = await connection.ask(
        'loaded',
        (requestId) => ({ type: 'load', requestId, ...options }),
        (stage, fraction) => this.#setState({ kind: 'starting', stage, fraction }),
      );
      if (generation !== this.#generation) throw this.#stopped();
      this.#options.log(
        'info',
        `loaded ${model.name} (${model.precision}, ${model.contextTokens} tokens, ` +
          `${model.kernels === undefined ? 'onnxruntime' : `native kernels for ${model.kernels}`}) ` +
          `in ${Math.round(model.loadMs)} ms` +
          (model.imported ? ', imported' : ''),
      );
      this.#setState({ kind: 'ready', model });
      this.#onStarted();
      return model;
    } catch (error) {
      // After a crash or a stop, this attempt must not change the state.
      if (generation === this.#generation) {
        this.#loading = null;
        // A library that failed to load stays failed in its thread, even after it is repaired. The next attempt gets a
        // new thread.
        if (error instanceof RequestError && error.code === 'engineFailed') this.#dropConnection();
        this.#fail(messageOf(error), true, error instanceof RequestError ? error.code : undefined);
      }
      throw error;
    }
  }

  #connect(): Connection {
    this.#epoch++;
    const connection: Connection = new Connection(
      this.#options.createTransport(),
      this.#options.t,
      {
        onClosed: (reason) => {
          if (this.#connection === connection) this.#crashed(reason);
        },
        onLog: (message) => this.#options.log('warn', message),
        onError: (error) => {
          this.#options.log(isDocumentError(error) ? 'warn' : 'error', error.message);
          if (this.#connection !== connection) return;
          // The next request sends its documents whole.
          if (isDocumentError(error)) this.#epoch++;
          // The engine has rebuilt itself once already and now stays down.
          if (error.code === 'engineFailed') this.#fail(error.message, false);
        },
      },
      this.#options.language,
    );
    return connection;
  }

  #crashed(reason: string): void {
    this.#abandon();
    const again = Date.now() - this.#lastCrash < SAME_FAULT_MS;
    this.#lastCrash = Date.now();
    if (again) {
      this.#fail(this.#options.t('The engine stopped again after a restart: {0}.', reason), false);
      return;
    }
    this.#options.log('warn', `the engine stopped: ${reason}; it is being restarted`);
    this.#setState({ kind: 'stopped' });
    this.ready().catch(() => {});
  }

  #fail(message: string, retry: boolean, code?: ErrorCode): void {
    this.#options.log('error', message);
    this.#setState({ kind: 'failed', message, retry, ...(code ? { code } : {}) });
  }

  #setState(state: EngineState): void {
    this.#state = state;
    this.#options.onState(state);
  }
}
