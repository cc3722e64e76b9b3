/**
 * The engine as the features see it: starts with the first request, loads the model once, restarts once after a crash
 * and then stays down. Does not use the editor's API; engineHost.ts supplies settings, folders and messages.
 */
import type { HostMessage, LoadOptions, ReplyValue } from '../../engine/protocol/messages.ts';
import type { EngineStats, InspectedModel, MachineInfo, ModelInfo, PromptSize } from '../../engine/protocol/stats.ts';
import type { ChatTask, ErrorCode, SamplingParams, SummarizeTask } from '../../engine/protocol/tasks.ts';
import {
  Connection,
  type Done,
  EngineError,
  type Generate,
  type GenerateSignals,
  type LoadStage,
} from './connection.ts';
import type { Translate } from '../format.ts';
import type { Transport } from './transport.ts';

export type EngineState =
  | { kind: 'stopped' }
  | { kind: 'starting'; stage: 'thread' | LoadStage; fraction: number }
  | { kind: 'ready'; model: ModelInfo }
  /** `retry`: the next request tries again, as after a model that cannot be loaded. Otherwise only `restart` helps. */
  | { kind: 'failed'; message: string; retry: boolean; code?: ErrorCode };

export interface GenerateRequest extends Omit<Generate, 'task'>, GenerateSignals {
  /** Called when the message is sent, so that the task describes the documents as they are then. */
  task: () => Generate['task'];
  onChunk?: (text: string) => void;
  /** For a request of several sequences: how many have ended. */
  onParts?: (numDone: number, numTotal: number) => void;
}

export interface EngineClientOptions {
  createTransport(): Transport;
  /** Throws an Error with a message for the user when the settings name no usable model. */
  loadOptions(): LoadOptions;
  onState(state: EngineState): void;
  /** A generate request has started or ended; `numPending` are running. */
  onActivity(numPending: number): void;
  /** A use of the engine has begun or ended; `numUses` are running. Reading statistics does not count. */
  onUse?(numUses: number): void;
  /** Translations of the engine's messages; English without it. */
  language?: (HostMessage & { type: 'language' }) | undefined;
  log(level: 'info' | 'warn' | 'error', text: string): void;
  t: Translate;
}

/** A second crash within this time after an automatic restart counts as the same fault. */
const SAME_FAULT_MS = 5 * 60_000;

export class EngineClient {
  readonly #options: EngineClientOptions;
  #connection: Connection | null = null;
  #loading: Promise<ModelInfo> | null = null;
  #state: EngineState = { kind: 'stopped' };
  #ended: Promise<unknown> = Promise.resolve();
  #lastCrash = Number.NEGATIVE_INFINITY;
  #numPending = 0;
  #numUses = 0;
  #epoch = 0;
  /** Changes when the engine stops or crashes. A load that began before then is void. */
  #generation = 0;
  #disposed = false;

  constructor(options: EngineClientOptions) {
    this.#options = options;
  }

  get state(): EngineState {
    return this.#state;
  }

  get numPending(): number {
    return this.#numPending;
  }

  /**
   * Changes with every new engine, and when the engine has lost a document. Everything sent before must then be sent
   * again.
   */
  get epoch(): number {
    return this.#epoch;
  }

  /** Starts the engine and loads the model, unless that has been done. */
  ready(): Promise<ModelInfo> {
    if (this.#disposed) return Promise.reject(new EngineError('notLoaded', this.#options.t('Kvasir is switched off.')));
    if (this.#state.kind === 'failed' && !this.#state.retry)
      return Promise.reject(new EngineError('engineFailed', this.#state.message));
    // In a later microtask, so that a failure in its first lines finds `#loading` set.
    const generation = this.#generation;
    this.#loading ??= Promise.resolve().then(() => this.#load(generation));
    return this.#loading;
  }

  /** Resolves with finishReason `abort` after `signal` aborts, even before the model is loaded. */
  async generate(request: GenerateRequest): Promise<Done> {
    const { task, onChunk, onParts, signal, hurry, ...rest } = request;
    this.#count(1);
    this.#used(1);
    try {
      const aborted =
        signal && new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }));
      if (
        signal?.aborted ||
        (await (aborted ? Promise.race([this.ready(), aborted]) : this.ready())) === null ||
        signal?.aborted
      )
        return ABORTED;
      const send = () => {
        const built = task();
        // Building the task may abort the request.
        return signal?.aborted
          ? ABORTED
          : this.#connected().generate(
              { ...rest, task: built },
              { onChunk, onParts },
              { ...(signal && { signal }), ...(hurry && { hurry }) },
            );
      };
      const { epoch } = this;
      try {
        return await send();
      } catch (error) {
        if (!isDocumentError(error) || signal?.aborted) throw error;
        // Try once more with the documents as they are now: nothing has been written yet. Requests sent together share
        // the new epoch.
        if (this.#epoch === epoch) this.#epoch++;
        return await send();
      }
    } catch (error) {
      // Kvasir was switched off, so the caller is being disposed, too.
      if (this.#disposed) return ABORTED;
      throw error;
    } finally {
      this.#used(-1);
      this.#count(-1);
    }
  }

  /** Sends a message that has no answer. Drops it while no model is loaded. */
  notify(message: HostMessage): void {
    if (this.#state.kind === 'ready') this.#connection?.notify(message);
  }

  /**
   * Tokens of a mirrored document's file block. Returns null while no model is loaded, because counting must not start
   * the engine.
   */
  async countTokens(docId: () => string): Promise<number | null> {
    if (this.#state.kind !== 'ready' || !this.#connection) return null;
    // First, because this may send the document.
    const id = docId();
    const value = await this.#connection.ask((requestId) => ({ type: 'countTokens', requestId, docId: id }));
    return value.kind === 'count' ? value.numTokens : null;
  }

  /** Tokens of a text. Loads the model if needed. */
  async countText(text: string): Promise<number> {
    return this.#use(async () => {
      await this.ready();
      return (await this.#ask('count', (requestId) => ({ type: 'countTokens', requestId, text }))).numTokens;
    });
  }

  /** Size of a question's prompt, part by part; null while no model is loaded. */
  async measure(task: () => ChatTask | SummarizeTask, sampling?: SamplingParams): Promise<PromptSize | null> {
    if (this.#state.kind !== 'ready') return null;
    const built = task();
    return this.#use(
      async () =>
        (
          await this.#ask('measured', (requestId) => ({
            type: 'measure',
            requestId,
            task: built,
            ...(sampling ? { sampling } : {}),
          }))
        ).size,
    );
  }

  /** Reads a model folder. Starts the engine but loads no model. Rejects with the reason why the model cannot run. */
  async inspect(modelDir: string): Promise<InspectedModel> {
    return this.#use(async () => {
      await this.#open();
      return (await this.#ask('inspected', (requestId) => ({ type: 'inspect', requestId, modelDir }))).model;
    });
  }

  /**
   * Memory, processors, graphics and battery of this machine. Starts the engine but loads no model. Fast without
   * `graphics`; `speed` also measures how fast memory is read.
   */
  async machine(options: { graphics?: boolean; speed?: boolean } = {}): Promise<MachineInfo> {
    await this.#open();
    return (await this.#ask('machine', (requestId) => ({ type: 'machine', requestId, ...options }))).machine;
  }

  /** The last steps as Chrome trace JSON; null while no model is loaded. */
  async trace(): Promise<string | null> {
    if (this.#state.kind !== 'ready') return null;
    return (await this.#ask('trace', (requestId) => ({ type: 'trace', requestId }))).json;
  }

  /** null while no model is loaded. */
  async stats(options: { tree?: boolean } = {}): Promise<EngineStats | null> {
    if (this.#state.kind !== 'ready') return null;
    return (await this.#ask('stats', (requestId) => ({ type: 'stats', requestId, ...options }))).stats;
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

  /** Resolves when all stopped engines have ended. Until then they may write to the disk. */
  get ended(): Promise<unknown> {
    return this.#ended;
  }

  /** Stops for good. Later requests end as aborted and start nothing. */
  dispose(reason: string): Promise<void> {
    this.#disposed = true;
    return this.stop(reason);
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  /** Starts the engine without a model. Only `stop` undoes this; a later `ready` continues from it. */
  async #open(): Promise<void> {
    if (this.#disposed) throw new EngineError('notLoaded', this.#options.t('Kvasir is switched off.'));
    if (this.#state.kind === 'failed' && !this.#state.retry) throw new EngineError('engineFailed', this.#state.message);
    if (!this.#connection) {
      this.#connection = this.#connect();
      this.#used(0);
    }
    await this.#connection.opened;
  }

  async #ask<K extends ReplyValue['kind']>(
    kind: K,
    message: (requestId: string) => HostMessage,
  ): Promise<Extract<ReplyValue, { kind: K }>> {
    const value = await this.#connected().ask(message);
    if (value.kind !== kind)
      throw new EngineError('engineFailed', this.#options.t('The engine answered "{0}" with "{1}".', kind, value.kind));
    return value as Extract<ReplyValue, { kind: K }>;
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

  #connected(): Connection {
    // The engine was stopped between the end of the load and this request.
    if (!this.#connection) throw this.#stopped();
    return this.#connection;
  }

  #stopped(): EngineError {
    return new EngineError('notLoaded', this.#options.t('The engine was stopped before the request could be sent.'));
  }

  async #load(generation: number): Promise<ModelInfo> {
    if (generation !== this.#generation) throw this.#stopped();
    try {
      const options = this.#options.loadOptions();
      const connection = this.#connection ?? this.#connect();
      this.#connection = connection;
      this.#setState({ kind: 'starting', stage: 'thread', fraction: 0 });
      await connection.opened;
      if (generation !== this.#generation) throw this.#stopped();
      const value = await connection.ask(
        (requestId) => ({ type: 'load', requestId, ...options }),
        (stage, fraction) => this.#setState({ kind: 'starting', stage, fraction }),
      );
      if (generation !== this.#generation) throw this.#stopped();
      if (value.kind !== 'loaded')
        throw new EngineError(
          'engineFailed',
          this.#options.t('The engine answered "{0}" with "{1}".', 'load', value.kind),
        );
      const { model } = value;
      this.#options.log(
        'info',
        `loaded ${model.name} (${model.precision}, ${model.contextTokens} tokens) in ${Math.round(model.loadMs)} ms` +
          (model.imported ? ', imported' : ''),
      );
      this.#setState({ kind: 'ready', model });
      this.#used(0);
      return model;
    } catch (error) {
      // After a crash or a stop, this attempt must not change the state.
      if (generation === this.#generation) {
        this.#loading = null;
        // A library that failed to load stays failed in its thread, even after it is repaired. The next attempt gets a
        // new thread.
        if (error instanceof EngineError && error.code === 'engineFailed') this.#dropConnection();
        this.#fail(
          error instanceof Error ? error.message : String(error),
          true,
          error instanceof EngineError ? error.code : undefined,
        );
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

  async #use<T>(work: () => Promise<T>): Promise<T> {
    this.#used(1);
    try {
      return await work();
    } finally {
      this.#used(-1);
    }
  }

  #used(change: number): void {
    this.#numUses += change;
    this.#options.onUse?.(this.#numUses);
  }

  #count(change: number): void {
    this.#numPending += change;
    this.#options.onActivity(this.#numPending);
  }
}

/** The engine's copy of a document is missing or unusable. */
function isDocumentError(error: unknown): boolean {
  return (
    error instanceof EngineError &&
    (error.code === 'unknownDocument' || (error.code === 'badRequest' && error.message.includes('send the whole text')))
  );
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
