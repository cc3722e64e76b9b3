/**
 * Handles the messages of the protocol in order. Messages wait while a model loads. Used by the worker thread and by
 * the command line. Does not run steps (see stepLoop.ts).
 */
import { config as speak, t } from '@vscode/l10n';
import { chromeTrace } from '../core/trace.ts';
import { RequestError, toRequestError } from '../protocol/errors.ts';
import { speakBytes } from '../protocol/formatBytes.ts';
import { type EngineMessage, type HostMessage, PROTOCOL_VERSION, type ReplyValue } from '../protocol/messages.ts';
import { Syntax } from '../text/syntax/syntax.ts';
import { statsOf } from './engineStats.ts';
import { inspectFolder } from './inspection.ts';
import type { LoadedModel } from './loadedModel.ts';
import { loadModel, type LoadProgress } from './loadModel.ts';
import { Machine } from './machine.ts';
import { OpenFiles } from './openFiles.ts';
import { Requests } from './requests.ts';
import { StepLoop } from './stepLoop.ts';

type Message<T extends HostMessage['type']> = Extract<HostMessage, { type: T }>;

export class AssistantServer {
  /** Settles after `shutdown`. */
  readonly closed: Promise<void>;
  readonly #emit: (message: EngineMessage) => void;
  readonly #load: typeof loadModel;
  readonly #syntax = new Syntax();
  readonly #files = new OpenFiles(this.#syntax);
  readonly #machine: Machine;
  readonly #requests: Requests;
  readonly #loop: StepLoop;
  /** Messages that wait for a load or an unload to end. */
  #held: HostMessage[] | null = null;
  #isLoadCancelled = false;
  #close: () => void = () => {};

  /** `load` and `machine` are replaced in tests. */
  constructor(emit: (message: EngineMessage) => void, load: typeof loadModel = loadModel, machine = new Machine()) {
    this.#machine = machine;
    this.#emit = (message) => {
      if (message.type === 'done') this.#loop.succeeded();
      emit(message);
    };
    this.#load = load;
    const { documents, sources, ledger, idle } = this.#files;
    this.#requests = new Requests(documents, sources, ledger, this.#syntax, this.#emit);
    this.#loop = new StepLoop({
      requests: this.#requests,
      documents,
      files: ledger,
      idle,
      machine,
      emit: this.#emit,
    });
    this.closed = new Promise((resolve) => {
      this.#close = resolve;
    });
    emit({ type: 'ready', version: PROTOCOL_VERSION });
  }

  handle(message: HostMessage): void {
    // Needs no model, so it does not wait for a load.
    if (message.type === 'inspect') return void this.#inspect(message);
    if (this.#held) {
      // The running load is not needed any more, and an import may take minutes.
      if (message.type === 'load' || message.type === 'unload' || message.type === 'shutdown')
        this.#isLoadCancelled = true;
      this.#held.push(message);
      return;
    }
    try {
      this.#model?.followMemory();
      this.#dispatch(message);
    } catch (error) {
      // A document message has no request id. The next request for this document reports the error again.
      this.#emitError('requestId' in message ? message.requestId : undefined, error);
    }
  }

  /** Reports a bug: all requests end with an error, and the engine is rebuilt. */
  fail(reason: unknown): void {
    this.#loop.fail(reason);
  }

  get #model(): LoadedModel | null {
    return this.#loop.model;
  }

  #dispatch(message: Exclude<HostMessage, { type: 'inspect' }>): void {
    switch (message.type) {
      case 'language':
        return this.#setLanguage(message);
      case 'load':
        return this.#hold(() => this.#loadModel(message));
      case 'unload':
        return this.#hold(() => this.#unload(message.requestId, t('the model was unloaded')));
      case 'shutdown':
        return this.#hold(() => this.#shutDown(message.requestId));
      case 'configure':
        return this.#configure(message);
      case 'generate':
        return this.#generate(message);
      case 'abort':
        if (this.#model) this.#requests.abort(message.requestId, this.#model);
        // A request that waits for the disk ends without a step, so the loop must wake up.
        return this.#loop.wake();
      case 'prioritise':
        return this.#model ? this.#requests.prioritise(message.requestId, message.priority, this.#model) : undefined;
      case 'documentChanged':
        this.#files.changed(message, this.#model);
        return this.#loop.wake();
      case 'documentSaved':
        this.#files.ledger.saved(message.docId, message.saved);
        return this.#loop.wake();
      case 'documentClosed':
        return this.#files.closed(message.docId, this.#model);
      case 'sourceChanged':
        return this.#files.sourceChanged(message, this.#model);
      case 'sourceClosed':
        return this.#files.sources.close(message.docId);
      case 'pin':
        return this.#files.pin(message.docId, message.pinned, this.#model);
      case 'evict':
        return this.#evict(message);
      case 'flush':
        return this.#loop.flush(message.requestId);
      default:
        return this.#query(message);
    }
  }

  /** Messages that ask for a value. */
  #query(message: Message<'countTokens' | 'measure' | 'stats' | 'trace' | 'machine'>): void {
    const { requestId } = message;
    switch (message.type) {
      case 'countTokens':
        return this.#reply(requestId, {
          kind: 'count',
          numTokens: this.#files.countTokens(message, this.#loaded()),
        });
      case 'measure':
        return this.#requests.measure(message, this.#loaded(), (size) =>
          this.#reply(requestId, { kind: 'measured', size }),
        );
      case 'stats':
        return this.#reply(requestId, {
          kind: 'stats',
          stats: statsOf(this.#model, this.#files, message.tree ?? false),
        });
      case 'trace': {
        const { engine, info } = this.#loaded();
        const { name: model, precision, kv } = info;
        return this.#reply(requestId, { kind: 'trace', json: chromeTrace(engine.trace(), { model, precision, kv }) });
      }
      case 'machine': {
        const { graphics = true, speed = false } = message;
        // Measuring the speed and running requests would slow each other down.
        void this.#machine
          .describe({ graphics, speed: speed && this.#requests.size === 0 })
          .then((machine) => this.#reply(requestId, { kind: 'machine', machine }));
      }
    }
  }

  #setLanguage({ language, texts }: Message<'language'>): void {
    speakBytes(language);
    this.#requests.facts.language = language.startsWith('pt') ? 'pt' : 'en';
    speak({ contents: texts });
  }

  #configure({ maxBytes, idleWork }: Message<'configure'>): void {
    const { idle } = this.#files;
    if (idleWork !== undefined) idle.enabled = idleWork;
    if (!idle.enabled) idle.stop(this.#model);
    if (maxBytes !== undefined) this.#model?.setBudget(maxBytes);
    this.#loop.wake();
  }

  #generate(message: Message<'generate'>): void {
    const { requestId } = message;
    // Reported without the id, because the id belongs to the running request.
    if (this.#requests.has(requestId))
      return this.#emitError(undefined, new RequestError('badRequest', `request id "${requestId}" is in use`));
    this.#requests.start(message, this.#loaded(), () => this.#loop.wake());
    this.#loop.wake();
  }

  #evict(message: Message<'evict'>): void {
    if (!('docId' in message)) this.#files.evictAll(message.pinned ?? false, this.#model);
    else if (this.#model) this.#files.evict(message.docId, message.memoryOnly ?? false, this.#model);
  }

  // --- loading and unloading ---------------------------------------------------

  /** Runs `work` while all later messages wait. */
  #hold(work: () => Promise<void>): void {
    const held: HostMessage[] = [];
    this.#held = held;
    work().then(() => {
      this.#held = null;
      // If one of them is another load, `handle` holds the rest again, in order.
      for (const message of held) this.handle(message);
    });
  }

  async #loadModel(message: Message<'load'>): Promise<void> {
    const { type: _, requestId, ...options } = message;
    try {
      this.#isLoadCancelled = false;
      await this.#free(t('another model was loaded'));
      const progress: LoadProgress = (stage, fraction) => {
        if (this.#isLoadCancelled) throw new RequestError('notLoaded', t('loading was cancelled'));
        this.#emit({ type: 'loadProgress', requestId, stage, fraction });
      };
      const model = await this.#load(options, progress, {
        onReady: () => this.#loop.wake(),
        log: (line) => this.#emit({ type: 'log', message: line }),
      });
      this.#loop.use(model);
      this.#reply(requestId, { kind: 'loaded', model: model.info });
    } catch (error) {
      this.#emitError(requestId, error);
    }
  }

  async #unload(requestId: string, why: string): Promise<void> {
    try {
      await this.#free(why);
      this.#reply(requestId, { kind: 'ok' });
    } catch (error) {
      this.#emitError(requestId, error);
    }
  }

  async #shutDown(requestId: string): Promise<void> {
    this.#loop.stopIdle();
    await this.#unload(requestId, t('the engine was shut down'));
    this.#close();
  }

  #free(why: string): Promise<void> {
    this.#syntax.forget();
    return this.#loop.unload(why);
  }

  // --- answers -------------------------------------------------------------------

  async #inspect({ requestId, modelDir, native }: Extract<HostMessage, { type: 'inspect' }>): Promise<void> {
    try {
      const { model: _, ...found } = await inspectFolder(modelDir, native);
      this.#reply(requestId, { kind: 'inspected', model: found });
    } catch (error) {
      this.#emitError(requestId, error);
    }
  }

  #loaded(): LoadedModel {
    if (!this.#model) throw new RequestError('notLoaded', t('no model is loaded'));
    return this.#model;
  }

  #reply(requestId: string, value: ReplyValue): void {
    this.#emit({ type: 'reply', requestId, value });
  }

  #emitError(requestId: string | undefined, error: unknown): void {
    const { code, message } = toRequestError(error);
    this.#emit({ type: 'error', ...(requestId === undefined ? {} : { requestId }), code, message });
  }
}
