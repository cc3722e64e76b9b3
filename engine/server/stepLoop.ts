/**
 * Runs the engine: steps while there are requests, then idle prefill, then maintenance. Rebuilds a failed engine. Does
 * not read messages.
 */
import { t } from '@vscode/l10n';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Block } from '../kv/treeOutline.ts';
import { RequestError, toRequestError } from '../protocol/errors.ts';
import type { EngineMessage } from '../protocol/messages.ts';
import type { Documents } from './documents.ts';
import type { FileLedger } from './fileLedger.ts';
import { IdlePrefill } from './idlePrefill.ts';
import type { LoadedModel } from './loadedModel.ts';
import type { Machine } from './machine.ts';
import type { Requests } from './requests.ts';

/** Delay before maintenance. Doubles when there is nothing to do. Above the maximum, maintenance stops. */
const MIN_MAINTENANCE_MS = 10_000;
const MAX_MAINTENANCE_MS = 32 * MIN_MAINTENANCE_MS;
/**
 * Time limit for writing the cache to disk when a model is unloaded. The client of the editor waits 4 s, and VS Code
 * waits 5 s.
 */
const MAX_SAVE_MS = 3000;

interface Parts {
  readonly requests: Requests;
  readonly documents: Documents;
  readonly files: FileLedger;
  readonly idle: IdlePrefill;
  readonly machine: Machine;
  readonly emit: (message: EngineMessage) => void;
}

export class StepLoop {
  /** The model whose engine runs. Set by `use`, cleared by `unload` and by a second failure. */
  #model: LoadedModel | null = null;
  readonly #parts: Parts;
  /** The running loop. Null without work. */
  #stepping: Promise<void> | null = null;
  #isInStep = false;
  /** Ends the pause between two steps, if there is one. */
  #endPause: () => void = () => {};
  /** A bug that was reported during a step. It is handled after the step. */
  #fault: { reason: unknown } | null = null;
  /** Failures since the last request that succeeded. After the second one, the engine is down. */
  #numFailures = 0;
  #idleTimer: NodeJS.Timeout | undefined;
  /** The running maintenance. Resolves to whether there is more to do. */
  #maintaining: Promise<boolean> | null = null;
  /** Ids of the `flush` messages to answer. */
  #flushes: string[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get model(): LoadedModel | null {
    return this.#model;
  }

  use(model: LoadedModel): void {
    this.#model = model;
    this.succeeded();
    this.#parts.idle.forget();
  }

  /** A request has succeeded, so the next failure counts as the first. */
  succeeded(): void {
    this.#numFailures = 0;
  }

  /** Answers the `flush` message when no work is left. */
  flush(requestId: string): void {
    this.#flushes.push(requestId);
    this.wake();
  }

  /** Starts the loop, or ends its pause. */
  wake(): void {
    clearTimeout(this.#idleTimer);
    const { requests, idle } = this.#parts;
    // A flush does not wait for the idle delay.
    if (this.#flushes.length && this.#model && requests.size === 0) idle.start(this.#model);
    this.#endPause();
    if (!this.#stepping) this.#stepping = this.#steps().finally(() => this.#settle());
  }

  stopIdle(): void {
    clearTimeout(this.#idleTimer);
  }

  /** Handles a bug: ends all requests with an error and rebuilds the engine, but not during a step. */
  fail(reason: unknown): void {
    const { requests, idle } = this.#parts;
    if (this.#maintaining) {
      clearTimeout(this.#idleTimer);
      this.#idleTimer = undefined;
      const engine = this.#model?.engine;
      return void this.#maintaining.then(() => {
        // If maintenance failed, too, the engine is already rebuilt, and this must not count as a second failure.
        if (this.#model?.engine === engine) this.fail(reason);
      });
    }
    const { message } = toRequestError(reason);
    requests.failAll(
      new RequestError('engineFailed', t('the engine failed ({0}); it was restarted, please try again', message)),
    );
    idle.forget();
    if (this.#isInStep) this.#fault = { reason };
    else this.#recover(reason);
  }

  /** Ends all requests, writes the cache to disk, and frees the model. */
  async unload(why: string): Promise<void> {
    this.#parts.requests.failAll(new RequestError('notLoaded', why));
    const model = this.#model;
    this.#model = null;
    await this.#stepping;
    await this.#maintaining;
    if (!model) return;
    model.engine.close();
    const blocks = this.#blocks(model);
    const until = performance.now() + MAX_SAVE_MS;
    while (performance.now() < until && (await model.engine.save(blocks)));
    await model.dispose();
  }

  #recover(reason: unknown): void {
    const model = this.#model;
    if (!model) return;
    try {
      if (++this.#numFailures > 1) throw new Error(t('it failed twice in a row'));
      model.rebuild();
    } catch (again) {
      this.#model = null;
      const message = t(
        'the engine is down: {0}; {1}. Restart it, or choose another model',
        toRequestError(reason).message,
        toRequestError(again).message,
      );
      this.#parts.emit({ type: 'error', code: 'engineFailed', message });
      model.dispose().catch(() => undefined);
    }
    this.#answerFlushes();
  }

  /** Resolves after `ms`, or at the next `wake`. */
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
      // Requests that were sent together share the first step.
      await nextTurn();
      while (this.#model?.engine.hasWork()) {
        const pauseMs = this.#model.engine.pauseMs();
        if (pauseMs > 0) {
          await this.#pause(pauseMs);
          continue;
        }
        this.#isInStep = true;
        await this.#model.engine.step().finally(() => {
          this.#isInStep = false;
        });
        const fault = this.#fault;
        this.#fault = null;
        if (fault) throw fault.reason;
        this.#model?.followMemory();
        // Messages are handled between steps.
        await nextTurn();
      }
    } catch (error) {
      this.#fault = null;
      this.fail(error);
    }
  }

  /** Decides what comes after the last step: idle prefill or maintenance. */
  #settle(): void {
    this.#stepping = null;
    const { requests, idle } = this.#parts;
    const model = this.#model;
    if (!model) return this.#answerFlushes();
    if (model.engine.hasWork()) return this.wake();
    // Requests that wait for syntax trees or for the disk wake the loop themselves.
    if (requests.numWaiting > 0 || model.engine.isFetching) return;
    if (!idle.due) {
      this.#maintainIn(MIN_MAINTENANCE_MS);
      return this.#answerFlushes();
    }
    if (this.#flushes.length) return this.wake();
    this.#prefillSoon();
  }

  #prefillSoon(): void {
    const { idle, machine } = this.#parts;
    const timer = setTimeout(async () => {
      const onBattery = await machine.onBattery();
      if (this.#idleTimer !== timer || this.#stepping) return;
      // Idle prefill waits for mains power.
      if (!onBattery && this.#model && idle.start(this.#model)) this.wake();
      else this.#maintainIn(MIN_MAINTENANCE_MS);
    }, IdlePrefill.DELAY_MS);
    this.#idleTimer = timer;
  }

  #maintainIn(ms: number): void {
    clearTimeout(this.#idleTimer);
    if (!this.#model || ms > MAX_MAINTENANCE_MS) return;
    const timer = setTimeout(() => void this.#maintain(timer, ms), ms);
    timer.unref();
    this.#idleTimer = timer;
  }

  /** Runs maintenance until it has nothing to do or another event comes, then plans the next one. */
  async #maintain(timer: NodeJS.Timeout, waitedMs: number): Promise<void> {
    const model = this.#model;
    const sparing = await this.#parts.machine.onBattery();
    if (!model || this.#idleTimer !== timer || this.#stepping) return;
    const mustEnd = (): boolean => this.#idleTimer !== timer || this.#model !== model;
    const began = performance.now();
    let failure: unknown = null;
    this.#maintaining = model.engine
      .runMaintenance(this.#blocks(model), { secret: this.#blocks(model, true), mustEnd, sparing })
      .catch((error: unknown) => {
        failure = error;
        return false;
      });
    const hasMore = await this.#maintaining;
    this.#maintaining = null;
    if (failure) return this.fail(failure);
    if (this.#idleTimer !== timer || this.#stepping) return;
    // Half of the time is a pause, so that a laptop stays cool.
    this.#maintainIn(hasMore ? performance.now() - began : Math.max(MIN_MAINTENANCE_MS, 2 * waitedMs));
  }

  /**
   * File blocks that may be written to disk, or those that may not (`secret`). Last used first, as time may run out.
   */
  #blocks({ layout }: LoadedModel, secret = false): Block[] {
    const { files, documents } = this.#parts;
    const blocks = files.blocks(documents, layout).filter(({ docId }) => files.mayBeKept(docId) !== secret);
    return blocks.sort((a, b) => files.lastUse(b.docId) - files.lastUse(a.docId));
  }

  #answerFlushes(): void {
    for (const requestId of this.#flushes.splice(0))
      this.#parts.emit({ type: 'reply', requestId, value: { kind: 'ok' } });
  }
}
