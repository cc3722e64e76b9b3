/**
 * The engine's requests, as the features make them. The first one starts the engine (engineLifecycle.ts). Does not use
 * the editor's API; engineHost.ts supplies settings, folders and messages.
 */
import type { HostMessage } from '../../engine/protocol/messages.ts';
import type { EngineStats, InspectedModel, MachineInfo, ModelInfo, PromptSize } from '../../engine/protocol/stats.ts';
import type { ChatTask, SamplingParams, SummarizeTask } from '../../engine/protocol/tasks.ts';
import { type Done, type Generate, type GenerateSignals, isDocumentError } from './connection.ts';
import { EngineLifecycle, type EngineState, type LifecycleOptions } from './engineLifecycle.ts';

export interface GenerateRequest extends Omit<Generate, 'task'>, GenerateSignals {
  /** Called when the message is sent, so that the task describes the documents as they are then. */
  task: () => Generate['task'];
  onChunk?: (text: string) => void;
  /** What the model reasons before its answer, in chat. */
  onReasoning?: (text: string) => void;
  /** For a request of several sequences: how many have ended. */
  onParts?: (numDone: number, numTotal: number) => void;
}

export interface EngineClientOptions extends LifecycleOptions {
  /** A generate request has started or ended; `numPending` are running. */
  onActivity(numPending: number): void;
  /** A use of the engine has begun or ended; `numUses` are running. Reading statistics does not count. */
  onUse?(numUses: number): void;
  /** A task has been answered, not aborted. */
  onAnswer?(task: Generate['task']): void;
}

export class EngineClient {
  readonly #options: EngineClientOptions;
  readonly #lifecycle: EngineLifecycle;
  #numPending = 0;
  #numUses = 0;

  constructor(options: EngineClientOptions) {
    this.#options = options;
    this.#lifecycle = new EngineLifecycle(options, () => this.#used(0));
  }

  get state(): EngineState {
    return this.#lifecycle.state;
  }

  get numPending(): number {
    return this.#numPending;
  }

  /**
   * Changes with every new engine, and when the engine has lost a document. Everything sent before must then be sent
   * again.
   */
  get epoch(): number {
    return this.#lifecycle.epoch;
  }

  /** Starts the engine and loads the model, unless that has been done. */
  ready(): Promise<ModelInfo> {
    return this.#lifecycle.ready();
  }

  /** Resolves with finishReason `abort` after `signal` aborts, even before the model is loaded. */
  async generate(request: GenerateRequest): Promise<Done> {
    this.#count(1);
    try {
      return await this.#use(() => this.#generate(request));
    } catch (error) {
      // Kvasir was switched off, so the caller is being disposed, too.
      if (this.disposed) return ABORTED;
      throw error;
    } finally {
      this.#count(-1);
    }
  }

  /** Sends a message that has no answer. Drops it while no model is loaded. */
  notify(message: HostMessage): void {
    this.#lifecycle.notify(message);
  }

  /**
   * Tokens of a mirrored document's file block. Returns null while no model is loaded, because counting must not start
   * the engine.
   */
  async countTokens(docId: () => string): Promise<number | null> {
    if (this.state.kind !== 'ready') return null;
    // First, because this may send the document.
    const id = docId();
    const ask = this.#lifecycle
      .connected()
      .ask('count', (requestId) => ({ type: 'countTokens', requestId, docId: id }));
    return (await ask).numTokens;
  }

  /** Tokens of a text. Loads the model if needed. */
  async countText(text: string): Promise<number> {
    return this.#use(async () => {
      await this.ready();
      const connection = this.#lifecycle.connected();
      return (await connection.ask('count', (requestId) => ({ type: 'countTokens', requestId, text }))).numTokens;
    });
  }

  /** Size of a question's prompt, part by part; null while no model is loaded. */
  async measure(task: () => ChatTask | SummarizeTask, sampling?: SamplingParams): Promise<PromptSize | null> {
    if (this.state.kind !== 'ready') return null;
    const built = task();
    return this.#use(async () => {
      const { size } = await this.#lifecycle.connected().ask('measured', (requestId) => ({
        type: 'measure',
        requestId,
        task: built,
        ...(sampling ? { sampling } : {}),
      }));
      return size;
    });
  }

  /**
   * Reads a model folder. Starts the engine but loads no model. `native`: as in LoadOptions. Rejects with the reason why
   * the model cannot run.
   */
  async inspect(modelDir: string, native: boolean): Promise<InspectedModel> {
    return this.#use(async () => {
      await this.#lifecycle.open();
      const connection = this.#lifecycle.connected();
      return (await connection.ask('inspected', (requestId) => ({ type: 'inspect', requestId, modelDir, native })))
        .model;
    });
  }

  /**
   * Memory, processors, graphics and battery of this machine. Starts the engine but loads no model. Fast without
   * `graphics`; `speed` also measures how fast memory is read.
   */
  async machine(options: { graphics?: boolean; speed?: boolean } = {}): Promise<MachineInfo> {
    await this.#lifecycle.open();
    const connection = this.#lifecycle.connected();
    return (await connection.ask('machine', (requestId) => ({ type: 'machine', requestId, ...options }))).machine;
  }

  /** The last steps as Chrome trace JSON; null while no model is loaded. */
  async trace(): Promise<string | null> {
    if (this.state.kind !== 'ready') return null;
    return (await this.#lifecycle.connected().ask('trace', (requestId) => ({ type: 'trace', requestId }))).json;
  }

  /** null while no model is loaded. */
  async stats(options: { tree?: boolean } = {}): Promise<EngineStats | null> {
    if (this.state.kind !== 'ready') return null;
    const connection = this.#lifecycle.connected();
    return (await connection.ask('stats', (requestId) => ({ type: 'stats', requestId, ...options }))).stats;
  }

  /** Stops the engine. The next request starts a new one. */
  stop(reason: string): Promise<void> {
    return this.#lifecycle.stop(reason);
  }

  /** Resolves when all stopped engines have ended. Until then they may write to the disk. */
  get ended(): Promise<unknown> {
    return this.#lifecycle.ended;
  }

  /** Stops for good. Later requests end as aborted and start nothing. */
  dispose(reason: string): Promise<void> {
    return this.#lifecycle.dispose(reason);
  }

  get disposed(): boolean {
    return this.#lifecycle.disposed;
  }

  async #generate({ task, onChunk, onReasoning, onParts, signal, hurry, ...rest }: GenerateRequest): Promise<Done> {
    const aborted =
      signal && new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }));
    if (
      signal?.aborted ||
      (await (aborted ? Promise.race([this.ready(), aborted]) : this.ready())) === null ||
      signal?.aborted
    )
      return ABORTED;
    const send = async () => {
      const built = task();
      // Building the task may abort the request.
      if (signal?.aborted) return ABORTED;
      const done = await this.#lifecycle
        .connected()
        .generate(
          { ...rest, task: built },
          { onChunk, onReasoning, onParts },
          { ...(signal && { signal }), ...(hurry && { hurry }) },
        );
      if (done.finishReason !== 'abort') this.#options.onAnswer?.(built);
      return done;
    };
    const { epoch } = this;
    try {
      return await send();
    } catch (error) {
      if (!isDocumentError(error) || signal?.aborted) throw error;
      // Try once more with the documents as they are now: nothing has been written yet.
      this.#lifecycle.documentLost(epoch);
      return await send();
    }
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
