/**
 * The engine as the editor's features see it. Starts with the first request, loads the model once, restarts by itself
 * once after a crash and then stays down with one message. Free of the editor's API, so that it is tested with a scripted
 * engine; engineHost.ts gives it settings, folders and a way to tell the user.
 */
import type { EngineStats, HostMessage, LoadOptions, ModelInfo } from '../engine/protocol.ts';
import { Connection, type Done, EngineError, type Generate, type LoadStage } from './connection.ts';
import type { Transport } from './transport.ts';

export type EngineState =
  | { kind: 'stopped' }
  | { kind: 'starting'; stage: 'thread' | LoadStage; fraction: number }
  | { kind: 'ready'; model: ModelInfo }
  /** `retry`: the next request tries again (a model that cannot be loaded); otherwise only `restart` helps. */
  | { kind: 'failed'; message: string; retry: boolean };

export interface GenerateRequest extends Omit<Generate, 'task'> {
  /** Built when the message is sent, so that it describes the documents as they are then. */
  task: () => Generate['task'];
  onChunk?: (text: string) => void;
  signal?: AbortSignal;
}

export interface EngineClientOptions {
  createTransport(): Transport;
  /** Throws an Error whose message is for the user when the settings name no usable model. */
  loadOptions(): LoadOptions;
  onState(state: EngineState): void;
  /** A generate request has started or ended; `numPending` counts those under way. */
  onActivity(numPending: number): void;
  log(level: 'info' | 'warn' | 'error', text: string): void;
}

/** A second crash this soon after an automatic restart is the same fault. */
const SAME_FAULT_MS = 5 * 60_000;

export class EngineClient {
  readonly #options: EngineClientOptions;
  #connection: Connection | null = null;
  #loading: Promise<ModelInfo> | null = null;
  #state: EngineState = { kind: 'stopped' };
  #lastCrash = Number.NEGATIVE_INFINITY;
  #numPending = 0;
  #epoch = 0;

  constructor(options: EngineClientOptions) {
    this.#options = options;
  }

  get state(): EngineState {
    return this.#state;
  }

  get numPending(): number {
    return this.#numPending;
  }

  /** Changes with every new engine: what an earlier one had been told, this one has not. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Starts the engine and loads the model, if that has not been done. */
  ready(): Promise<ModelInfo> {
    if (this.#state.kind === 'failed' && !this.#state.retry) return Promise.reject(new EngineError('engineFailed', this.#state.message));
    // Later, so that a failure in its first lines finds `#loading` set.
    this.#loading ??= Promise.resolve().then(() => this.#load());
    return this.#loading;
  }

  /** Resolves with finishReason `abort` after `signal`, also when that came before the model was loaded. */
  async generate(request: GenerateRequest): Promise<Done> {
    const { task, onChunk, signal, ...rest } = request;
    this.#count(1);
    try {
      const aborted = signal && new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }));
      if (signal?.aborted || (await (aborted ? Promise.race([this.ready(), aborted]) : this.ready())) === null || signal?.aborted) return ABORTED;
      return await this.#connection!.generate({ ...rest, task: task() }, onChunk, signal);
    } finally {
      this.#count(-1);
    }
  }

  /** A message without an answer; dropped while no model is loaded, as there is nothing that it could concern. */
  notify(message: HostMessage): void {
    if (this.#state.kind === 'ready') this.#connection?.notify(message);
  }

  /** null while no model is loaded: counting must not start the engine. */
  async countTokens(text: string): Promise<number | null> {
    if (this.#state.kind !== 'ready' || !this.#connection) return null;
    const value = await this.#connection.ask((requestId) => ({ type: 'countTokens', requestId, text }));
    return value.kind === 'count' ? value.numTokens : null;
  }

  /** null while no model is loaded. */
  async stats(): Promise<EngineStats | null> {
    if (this.#state.kind !== 'ready' || !this.#connection) return null;
    const value = await this.#connection.ask((requestId) => ({ type: 'stats', requestId }));
    return value.kind === 'stats' ? value.stats : null;
  }

  /** Ends the engine; the next request starts a new one. */
  async stop(reason: string): Promise<void> {
    const connection = this.#connection;
    this.#connection = null;
    this.#loading = null;
    this.#lastCrash = Number.NEGATIVE_INFINITY;
    this.#setState({ kind: 'stopped' });
    await connection?.close(reason);
  }

  async #load(): Promise<ModelInfo> {
    let connection: Connection | null = null;
    try {
      const options = this.#options.loadOptions();
      connection = this.#connection ??= this.#connect();
      this.#setState({ kind: 'starting', stage: 'thread', fraction: 0 });
      await connection.opened;
      const value = await connection.ask(
        (requestId) => ({ type: 'load', requestId, ...options }),
        (stage, fraction) => this.#setState({ kind: 'starting', stage, fraction }),
      );
      if (value.kind !== 'loaded') throw new EngineError('engineFailed', `The engine answered "load" by "${value.kind}".`);
      const { model } = value;
      this.#options.log('info', `loaded ${model.name} (${model.precision}, ${model.contextTokens} tokens) in ${Math.round(model.loadMs)} ms${model.imported ? ', imported' : ''}`);
      this.#setState({ kind: 'ready', model });
      return model;
    } catch (error) {
      // After a crash or a stop the state is no longer this attempt's to set.
      if (this.#connection === connection) {
        this.#loading = null;
        this.#fail(error instanceof Error ? error.message : String(error), true);
      }
      throw error;
    }
  }

  #connect(): Connection {
    this.#epoch++;
    const connection: Connection = new Connection(this.#options.createTransport(), {
      onClosed: (reason) => {
        if (this.#connection === connection) this.#crashed(reason);
      },
      onError: (error) => {
        this.#options.log('error', error.message);
        // The engine has rebuilt itself once already and now stays down.
        if (error.code === 'engineFailed' && this.#connection === connection) this.#fail(error.message, false);
      },
    });
    return connection;
  }

  #crashed(reason: string): void {
    this.#connection = null;
    this.#loading = null;
    const again = Date.now() - this.#lastCrash < SAME_FAULT_MS;
    this.#lastCrash = Date.now();
    if (again) {
      this.#fail(`The engine stopped again after a restart: ${reason}.`, false);
      return;
    }
    this.#options.log('warn', `the engine stopped: ${reason}; it is being restarted`);
    this.#setState({ kind: 'stopped' });
    this.ready().catch(() => {});
  }

  #fail(message: string, retry: boolean): void {
    this.#options.log('error', message);
    this.#setState({ kind: 'failed', message, retry });
  }

  #setState(state: EngineState): void {
    this.#state = state;
    this.#options.onState(state);
  }

  #count(change: number): void {
    this.#numPending += change;
    this.#options.onActivity(this.#numPending);
  }
}

const ABORTED: Done = {
  type: 'done',
  requestId: '',
  finishReason: 'abort',
  text: '',
  tokenIds: [],
  logprobs: [],
  usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0, blockTokens: 0 },
  timings: { queueMs: 0, ttftMs: 0, tpotMs: 0 },
  diagnostics: [],
};
