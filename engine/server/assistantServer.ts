/**
 * The engine behind its protocol: mirrored documents, the loaded model, the step loop, the idle refresh of file blocks,
 * and the error boundary. The worker thread and the command line both talk to it, in the same messages. Messages are
 * handled in order; those that arrive while a model loads wait for it.
 */
import { config as speak, t } from '@vscode/l10n';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Block } from '../kv/outline.ts';
import { Documents } from './documents.ts';
import { RequestError } from '../protocol/errors.ts';
import { FileLedger } from './fileLedger.ts';
import { speakBytes } from '../protocol/formatBytes.ts';
import { IdleWork } from './idlePrefill.ts';
import { inspectFolder } from './inspection.ts';
import { type LoadedModel, loadModel, type LoadProgress } from './loadedModel.ts';
import { type EngineMessage, type HostMessage, PROTOCOL_VERSION, type ReplyValue } from '../protocol/messages.ts';
import type { EngineStats } from '../protocol/stats.ts';
import { Machine } from './machine.ts';
import { memoryStats } from '../core/memoryBudget.ts';
import { Metrics } from '../core/metrics.ts';
import { Requests } from './requests.ts';
import { indexOf } from '../text/copy/copyPrior.ts';
import { Syntax } from '../text/syntax/syntax.ts';
import { chromeTrace } from '../core/trace.ts';

/** When a machine without work looks for what may be tidied up; if there is nothing, later each time, and in the end no more. */
const TIDY_MS = 10_000;
const LAST_TIDY_MS = 32 * TIDY_MS;
/** Most that leaving a model may take to put its cache on the disk: the editor waits for 4 s (src/client/connection.ts), and VS Code for 5. */
const SAVE_MS = 3000;

type Load = Extract<HostMessage, { type: 'load' }>;

export class AssistantServer {
  /** Settles after `shutdown`. */
  readonly closed: Promise<void>;
  readonly #emit: (message: EngineMessage) => void;
  readonly #load: typeof loadModel;
  readonly #documents = new Documents();
  /** What completions may copy from, of files that nobody has open. */
  readonly #sources = new Documents();
  readonly #files = new FileLedger();
  readonly #syntax = new Syntax();
  readonly #requests: Requests;
  readonly #idle = new IdleWork(this.#documents, this.#files);
  readonly #machine: Machine;
  #model: LoadedModel | null = null;
  /** Messages that wait for a load or unload to end. */
  #held: HostMessage[] | null = null;
  #loadCancelled = false;
  /** The step loop, while there is work. */
  #stepping: Promise<void> | null = null;
  #inStep = false;
  /** Ends the wait for more requests, if there is one. */
  #endPause: () => void = () => {};
  /** A bug that came up while a step was under way. */
  #fault: { reason: unknown } | null = null;
  /** Failures without a finished request in between; the second leaves the engine down. */
  #failures = 0;
  #idleTimer: NodeJS.Timeout | undefined;
  /** What a idle moment does, as long as nothing else happens. */
  #maintaining: Promise<boolean> | null = null;
  #flushes: string[] = [];
  #close: () => void = () => {};

  /** `load` and `machine` are replaced by tests that need ones that fail. */
  constructor(emit: (message: EngineMessage) => void, load: typeof loadModel = loadModel, machine = new Machine()) {
    this.#machine = machine;
    this.#emit = (message) => {
      if (message.type === 'done') this.#failures = 0;
      emit(message);
    };
    this.#load = load;
    this.#requests = new Requests(this.#documents, this.#sources, this.#files, this.#syntax, this.#emit);
    this.closed = new Promise((resolve) => {
      this.#close = resolve;
    });
    emit({ type: 'ready', version: PROTOCOL_VERSION });
  }

  handle(message: HostMessage): void {
    // Looking at a folder concerns no model: it does not wait for one to load, and no load waits for it.
    if (message.type === 'inspect') return void this.#inspect(message.requestId, message.modelDir);
    if (this.#held) {
      // Whoever waits behind an import that takes minutes no longer wants its result.
      if (message.type === 'load' || message.type === 'unload' || message.type === 'shutdown')
        this.#loadCancelled = true;
      this.#held.push(message);
      return;
    }
    try {
      this.#model?.followMemory();
      this.#dispatch(message);
    } catch (error) {
      // A document message has no request to fail; the next request for that document says what is wrong with it.
      this.#emit({
        type: 'error',
        ...('requestId' in message ? { requestId: message.requestId } : {}),
        ...explain(error),
      });
    }
  }

  /** A bug: every pending request ends with the reason, then the engine is rebuilt once; never under a step. */
  fail(reason: unknown): void {
    if (this.#maintaining) {
      clearTimeout(this.#idleTimer);
      this.#idleTimer = undefined;
      const engine = this.#model?.engine;
      return void this.#maintaining.then(() => {
        // It may have failed by itself, and be mended: twice in a row would be the end.
        if (this.#model?.engine === engine) this.fail(reason);
      });
    }
    this.#requests.failAll(
      new RequestError(
        'engineFailed',
        t('the engine failed ({0}); it was restarted, please try again', explain(reason).message),
      ),
    );
    this.#idle.forget();
    if (this.#inStep) this.#fault = { reason };
    else this.#mend(reason);
  }

  #mend(reason: unknown): void {
    const model = this.#model;
    if (!model) return;
    try {
      if (++this.#failures > 1) throw new Error(t('it failed twice in a row'));
      model.rebuild();
    } catch (again) {
      this.#model = null;
      this.#emit({
        type: 'error',
        code: 'engineFailed',
        message: t(
          'the engine is down: {0}; {1}. Restart it, or choose another model',
          explain(reason).message,
          explain(again).message,
        ),
      });
      model.dispose().catch(() => undefined);
    }
    this.#answerFlushes();
  }

  #dispatch(message: HostMessage): void {
    switch (message.type) {
      case 'language':
        speakBytes(message.language);
        this.#requests.language = message.language.startsWith('pt') ? 'pt' : 'en';
        return speak({ contents: message.texts });
      case 'load':
        return this.#hold(() => this.#loadModel(message));
      case 'unload':
        return this.#hold(() => this.#drop(message.requestId, t('the model was unloaded')));
      case 'shutdown':
        return this.#hold(async () => {
          clearTimeout(this.#idleTimer);
          await this.#drop(message.requestId, t('the engine was shut down'));
          this.#close();
        });
      case 'configure':
        if (message.idleWork !== undefined) this.#idle.enabled = message.idleWork;
        if (!this.#idle.enabled) this.#idle.stop(this.#model);
        if (message.maxBytes !== undefined) this.#model?.setBudget({ maxBytes: message.maxBytes });
        return this.#wake();
      case 'generate':
        // Without the id: it belongs to the request that is running, which goes on.
        if (this.#requests.has(message.requestId))
          return this.#emit({
            type: 'error',
            code: 'badRequest',
            message: `request id "${message.requestId}" is in use`,
          });
        this.#requests.start(message, this.#loaded(), () => this.#wake());
        return this.#wake();
      case 'abort':
        if (this.#model) this.#requests.abort(message.requestId, this.#model);
        // One that waits for the disk ends without a step.
        return this.#wake();
      case 'prioritise':
        return this.#model ? this.#requests.prioritise(message.requestId, message.priority, this.#model) : undefined;
      case 'documentChanged':
        if ('text' in message)
          this.#documents.open(message.docId, message.version, message.path, message.text, message.language);
        else this.#documents.edit(message.docId, message.version, message.edits);
        this.#files.changed(message.docId, { secret: 'text' in message && message.secret, unsaved: message.unsaved });
        // Whoever types is not away, whatever file is being read.
        this.#idle.stop(this.#model);
        this.#model?.engine.typed();
        return this.#wake();
      case 'documentSaved':
        this.#files.saved(message.docId, message.saved);
        return this.#wake();
      case 'documentClosed':
        this.#idle.stop(this.#model, message.docId);
        this.#idle.closed(message.docId);
        this.#model?.engine.pin(message.docId, null);
        this.#documents.close(message.docId);
        this.#syntax.forget(message.docId);
        return this.#files.close(message.docId);
      case 'sourceChanged': {
        const source = this.#sources.open(message.docId, 1, message.path, message.text);
        // Now, file by file, rather than all of them when a completion first needs them.
        if (this.#model?.info.copiesFiles) indexOf(this.#model.layout.beginning(source));
        return;
      }
      case 'sourceClosed':
        return this.#sources.close(message.docId);
      case 'countTokens':
        return this.#reply(message.requestId, { kind: 'count', numTokens: this.#countTokens(message) });
      case 'measure':
        return this.#reply(message.requestId, {
          kind: 'measured',
          size: this.#requests.measure(message.task, message.sampling, this.#loaded()),
        });
      case 'pin':
        return this.#pin(message.docId, message.pinned);
      case 'evict':
        return 'docId' in message ? this.#evict(message.docId, message.memoryOnly) : this.#clear(message.pinned);
      case 'flush':
        this.#flushes.push(message.requestId);
        return this.#wake();
      case 'stats':
        return this.#reply(message.requestId, { kind: 'stats', stats: this.#stats(message.tree ?? false) });
      case 'trace': {
        const { engine, info } = this.#loaded();
        return this.#reply(message.requestId, {
          kind: 'trace',
          json: chromeTrace(engine.trace(), { model: info.name, precision: info.precision, kv: info.kv }),
        });
      }
      case 'machine':
        // Not while requests run: they and the measurement would slow each other down.
        return void this.#machine
          .describe({
            graphics: message.graphics ?? true,
            speed: (message.speed ?? false) && this.#requests.size === 0,
          })
          .then((machine) => this.#reply(message.requestId, { kind: 'machine', machine }));
    }
  }

  /** Of a file that is not open there is nothing to keep. */
  #pin(docId: string, pinned: boolean): void {
    const document = this.#documents.find(docId);
    if (!document) return;
    this.#files.pin(docId, pinned);
    if (this.#model) this.#model.engine.pin(docId, pinned ? this.#files.blockIds(document, this.#model.layout) : null);
  }

  /** Everything that begins as the file does: its blocks, old and new, and what was asked about them. What stayed in memory would be written to the disk again. */
  #evict(docId: string, memoryOnly = false): void {
    const model = this.#model;
    if (!model) return;
    const file = this.#files.beginningOf(docId, this.#documents.find(docId), model.layout);
    if (!file) return;
    if (!memoryOnly) void model.engine.forgetDisk(file.path);
    // Nothing is the beginning of everything.
    if (file.tokenIds.length) model.engine.evict(file.tokenIds);
  }

  /** Everything but what is pinned, in memory and on the disk, unless that is to go, too. */
  #clear(pinned = false): void {
    const kept = pinned ? [] : this.#documents.all().filter(({ docId }) => this.#files.isPinned(docId));
    this.#model?.engine.evict([], { pinned });
    void this.#model?.engine.forgetDisk(
      undefined,
      kept.map((document) => document.path),
    );
    if (pinned) this.#files.forgetClosed();
  }

  #countTokens(message: Extract<HostMessage, { type: 'countTokens' }>): number {
    const { text, layout } = this.#loaded();
    return 'docId' in message
      ? this.#files.blockIds(this.#documents.get(message.docId), layout).length
      : text.tokenizer.encode(message.text).length;
  }

  // --- the step loop ---------------------------------------------------------

  #wake(): void {
    clearTimeout(this.#idleTimer);
    // Whoever flushes wants idle work done now.
    if (this.#flushes.length && this.#model && this.#requests.size === 0) this.#idle.start(this.#model);
    this.#endPause();
    if (!this.#stepping) this.#stepping = this.#steps().finally(() => this.#settle());
  }

  /** Resolves after so many ms, or when something has come. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #steps(): Promise<void> {
    try {
      // What has been sent at the same time shares the first step.
      await nextTurn();
      while (this.#model?.engine.hasWork()) {
        const pause = this.#model.engine.pauseMs();
        if (pause > 0) {
          await this.#pause(pause);
          continue;
        }
        this.#inStep = true;
        await this.#model.engine.step().finally(() => {
          this.#inStep = false;
        });
        const fault = this.#fault;
        this.#fault = null;
        if (fault) throw fault.reason;
        this.#model?.followMemory();
        // Messages get in between steps.
        await nextTurn();
      }
    } catch (error) {
      this.#fault = null;
      this.fail(error);
    }
  }

  #settle(): void {
    this.#stepping = null;
    const model = this.#model;
    if (!model) return this.#answerFlushes();
    if (model.engine.hasWork()) return this.#wake();
    // They wake the loop themselves.
    if (this.#requests.numWaiting > 0 || model.engine.isFetching) return;
    if (!this.#idle.due) {
      this.#maintainIn(TIDY_MS);
      return this.#answerFlushes();
    }
    if (this.#flushes.length) return this.#wake();
    const timer = setTimeout(async () => {
      // What can wait waits for mains power; what has come meanwhile has ended this wait.
      const onBattery = await this.#machine.onBattery();
      if (this.#idleTimer !== timer || this.#stepping) return;
      if (!onBattery && this.#model && this.#idle.start(this.#model)) this.#wake();
      else this.#maintainIn(TIDY_MS);
    }, IdleWork.DELAY_MS);
    this.#idleTimer = timer;
  }

  /** For idle maintenance: what can wait even longer than file blocks, a little at a time. */
  #maintainIn(ms: number): void {
    clearTimeout(this.#idleTimer);
    if (!this.#model || ms > LAST_TIDY_MS) return;
    const timer = setTimeout(async () => {
      const model = this.#model;
      const sparing = await this.#machine.onBattery();
      if (!model || this.#idleTimer !== timer || this.#stepping) return;
      const isOver = (): boolean => this.#idleTimer !== timer || this.#model !== model;
      const began = performance.now();
      let failure: unknown = null;
      this.#maintaining = model.engine
        .runMaintenance(this.#blocks(model), { secret: this.#blocks(model, true), mustEnd: isOver, sparing })
        .then(
          (more) => more,
          (error) => {
            failure = error;
            return false;
          },
        );
      const more = await this.#maintaining;
      this.#maintaining = null;
      if (failure) return this.fail(failure);
      // What has come meanwhile ends in another idle moment. Half the time it rests: nobody waits for it, and a laptop would get warm.
      if (this.#idleTimer === timer && !this.#stepping)
        this.#maintainIn(more ? performance.now() - began : Math.max(TIDY_MS, 2 * ms));
    }, ms);
    timer.unref();
    this.#idleTimer = timer;
  }

  /** Those that were used last first: there may not be time for all. */
  #blocks({ layout }: LoadedModel, secret = false): Block[] {
    const blocks = this.#files
      .blocks(this.#documents, layout)
      .filter(({ docId }) => this.#files.mayBeKept(docId) !== secret);
    return blocks.sort((a, b) => this.#files.lastUse(b.docId) - this.#files.lastUse(a.docId));
  }

  #answerFlushes(): void {
    for (const requestId of this.#flushes.splice(0)) this.#reply(requestId, { kind: 'ok' });
  }

  // --- the model -------------------------------------------------------------

  /** Runs `work` with all later messages held back. */
  #hold(work: () => Promise<void>): void {
    const held: HostMessage[] = [];
    this.#held = held;
    work().then(() => {
      this.#held = null;
      // One of them may be another load: what follows it then waits again, in order.
      for (const message of held) this.handle(message);
    });
  }

  async #loadModel(message: Load): Promise<void> {
    const { type: _, requestId, ...options } = message;
    try {
      this.#loadCancelled = false;
      await this.#free(t('another model was loaded'));
      const progress: LoadProgress = (stage, fraction) => {
        if (this.#loadCancelled) throw new RequestError('notLoaded', t('loading was cancelled'));
        this.#emit({ type: 'loadProgress', requestId, stage, fraction });
      };
      this.#model = await this.#load(options, progress, {
        onReady: () => this.#wake(),
        log: (message) => this.#emit({ type: 'log', message }),
      });
      this.#failures = 0;
      this.#idle.forget();
      this.#reply(requestId, { kind: 'loaded', model: this.#model.info });
    } catch (error) {
      this.#emit({ type: 'error', requestId, ...explain(error) });
    }
  }

  async #drop(requestId: string, why: string): Promise<void> {
    try {
      await this.#free(why);
      this.#reply(requestId, { kind: 'ok' });
    } catch (error) {
      this.#emit({ type: 'error', requestId, ...explain(error) });
    }
  }

  /** Ends what is running and frees the model, never in the middle of a step. */
  async #free(why: string): Promise<void> {
    this.#requests.failAll(new RequestError('notLoaded', why));
    this.#syntax.forget();
    const model = this.#model;
    this.#model = null;
    await this.#stepping;
    await this.#maintaining;
    if (!model) return;
    model.engine.close();
    const blocks = this.#blocks(model);
    for (const until = performance.now() + SAVE_MS; performance.now() < until && (await model.engine.save(blocks)); );
    await model.dispose();
  }

  async #inspect(requestId: string, modelDir: string): Promise<void> {
    try {
      const { model: _, ...found } = await inspectFolder(modelDir);
      this.#reply(requestId, { kind: 'inspected', model: found });
    } catch (error) {
      this.#emit({ type: 'error', requestId, ...explain(error) });
    }
  }

  #loaded(): LoadedModel {
    if (!this.#model) throw new RequestError('notLoaded', t('no model is loaded'));
    return this.#model;
  }

  #stats(tree: boolean): EngineStats {
    const memory = memoryStats();
    if (!this.#model) return { ...NOTHING, memory, files: [] };
    const { engine, info, layout, numEngines, diskFault } = this.#model;
    const blocks = this.#files.blocks(this.#documents, layout);
    return {
      model: info,
      ...(diskFault === null ? {} : { diskFault }),
      ...engine.stats(),
      ...(numEngines > 1 ? { numEngines } : {}),
      memory,
      files: this.#files.stats(blocks, engine),
      ...(tree ? { tree: engine.outline(blocks) } : {}),
    };
  }

  #reply(requestId: string, value: ReplyValue): void {
    this.#emit({ type: 'reply', requestId, value });
  }
}

const UNUSED = new Metrics();
const NOTHING: Omit<EngineStats, 'memory' | 'files'> = {
  model: null,
  maxBytes: 0,
  poolBytes: 0,
  storeBytes: 0,
  scratchBytes: 0,
  bufferBytes: 0,
  diskBytes: 0,
  diskMaxBytes: 0,
  kvBytesPerToken: 0,
  poolSlots: { total: 0, free: 0, held: 0 },
  requests: { waiting: 0, running: 0, done: 0, failed: 0, aborted: 0 },
  tokens: { ...UNUSED.tokens, promptFromDisk: 0, promptShifted: 0 },
  events: { steps: 0, evictions: 0, preemptions: 0, promotions: 0, demotions: 0 },
  tokensPerSecond: 0,
  utilisation: 0,
  busyMs: 0,
  stepMs: UNUSED.stepMs(),
  batchTokens: 0,
  batchSequences: 0,
  ttftMs: UNUSED.ttftMs(),
  classes: UNUSED.classes(),
};

function explain(error: unknown): { code: RequestError['code']; message: string } {
  if (error instanceof RequestError) return { code: error.code, message: error.message };
  return { code: 'engineFailed', message: error instanceof Error ? error.message : String(error) };
}
