/**
 * Connects the engine to the editor: settings and folders in, log and one clear error message out, events for the
 * views. Owns the client, which the features use directly.
 */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import * as vscode from '../vscode.ts';
import { tickStep } from '../walkthrough.ts';
import type { Config, Settings } from '../config.ts';
import { compressOf, type LoadOptions } from '../../engine/protocol/messages.ts';
import type { ErrorCode } from '../../engine/protocol/tasks.ts';
import { applyRemedy, withoutLinks } from './failure.ts';
import { EngineClient } from './engineClient.ts';
import type { EngineState } from './engineLifecycle.ts';
import { IdleUnload } from './idleUnload.ts';
import { remedyLabel, remedyOf } from './remedy.ts';
import type { Log } from '../log.ts';
import { keptCacheDir, liveEnginesDir, locateModel, modelCacheDir } from '../models/locate.ts';
import { ThreadTransport } from './transport.ts';

/** Settings that require a new load of the model. */
const LOADED_WITH = [
  'model',
  'threads',
  'precision',
  'native',
  'cacheReuseShifted',
  'cacheCodec',
  'cacheDiskBytes',
] as const satisfies readonly (keyof Config)[];

const MAX_PROBLEMS = 10;

export class EngineHost implements vscode.Disposable {
  readonly client: EngineClient;
  readonly #settings: Settings;
  readonly #log: Log;
  readonly #keptCacheDir: string;
  readonly #state = new vscode.EventEmitter<EngineState>();
  readonly #activity = new vscode.EventEmitter<number>();
  readonly #idle: IdleUnload;
  readonly #subscriptions: vscode.Disposable[];
  /** Whether a view already shows the failure of its own request, so that a notification would repeat it. */
  shownElsewhere: () => boolean = () => false;
  /** The last warnings and errors of the engine, oldest first, for a problem report. */
  readonly problems: { at: Date; level: string; text: string }[] = [];
  #numQuiet = 0;
  /** The failure that was reported last. It is reported once until the engine works again. */
  #told = '';
  /** The setting for the memory budget that the engine was given. */
  #maxBytes = 0;
  /** Whether the engine has the disk cache folder. */
  #keeps = false;

  constructor(context: vscode.ExtensionContext, settings: Settings, log: Log) {
    this.#settings = settings;
    this.#log = log;
    this.#keptCacheDir = keptCacheDir(context.globalStorageUri);
    this.client = new EngineClient({
      createTransport: () =>
        new ThreadTransport(path.join(context.extensionPath, 'dist', 'worker.js'), vscode.l10n.t, (text) =>
          log.info(`engine: ${text.trimEnd()}`),
        ),
      loadOptions: async () => {
        const { modelDir } = await locateModel(settings.current, context.extensionPath);
        this.#maxBytes = settings.current.cacheMaxBytes;
        return {
          modelDir,
          cacheDir: modelCacheDir(context.globalStorageUri),
          precision: settings.current.precision,
          maxBytes: this.#maxBytes,
          threads: settings.current.threads,
          ...(settings.current.native ? {} : { native: false }),
          ...(settings.current.cacheReuseShifted ? { reuseShifted: true } : {}),
          ...compressOf(settings.current.cacheCodec),
          ...this.#disk(),
          enginesDir: liveEnginesDir(context.globalStorageUri),
        };
      },
      onState: (state) => this.#follow(state),
      onActivity: (numPending) => this.#activity.fire(numPending),
      onUse: (numUses) => this.#idle.used(numUses),
      onAnswer: (task) => void tickStep(task),
      language: vscode.l10n.bundle && { type: 'language', language: vscode.env.language, texts: vscode.l10n.bundle },
      log: (level, text) => {
        log[level](text);
        if (level !== 'info') this.#remember(level, text);
      },
      t: vscode.l10n.t,
    });
    this.#idle = new IdleUnload(
      () => settings.current.unloadAfterMinutes,
      (minutes) => this.#unload(minutes),
    );
    // It may have been set to 0 while the editor was closed.
    if (settings.current.cacheDiskBytes === 0) this.#removeKept();
    this.#subscriptions = [
      this.#idle,
      settings.onDidChange(({ before, now }) => {
        if (LOADED_WITH.some((name) => before[name] !== now[name])) void this.#stopFor(now);
        else this.#applyMemory();
        this.#idle.review();
      }),
      // While the window is in the background, nobody waits for file blocks computed ahead.
      vscode.window.onDidChangeWindowState(({ focused }) =>
        this.client.notify({ type: 'configure', idleWork: focused }),
      ),
    ];
  }

  get onState(): vscode.Event<EngineState> {
    return this.#state.event;
  }

  /** Fires with the number of running requests whenever one starts or ends. */
  get onActivity(): vscode.Event<number> {
    return this.#activity.event;
  }

  /** While `work` runs, the caller reports failures to the user. */
  async quietly<T>(work: () => Promise<T>): Promise<T> {
    this.#numQuiet++;
    try {
      return await work();
    } finally {
      this.#numQuiet--;
    }
  }

  async #stopFor({ cacheDiskBytes }: Config): Promise<void> {
    await this.client.stop(vscode.l10n.t('the engine settings have changed'));
    if (cacheDiskBytes === 0) this.#removeKept();
  }

  /**
   * Clears everything cached, in memory and on disk. Pinned files stay, unless `pinned` is set or no engine is running
   * that knows the pins.
   */
  clearCache({ pinned = false } = {}): void {
    const isReady = this.client.state.kind === 'ready';
    if (isReady) this.client.notify({ type: 'evict', pinned });
    if (!isReady || !this.#keeps) this.#removeKept();
  }

  /** Only other windows share the folder, and they cope with files that disappear. */
  #removeKept(): void {
    const remove = () =>
      rm(this.#keptCacheDir, { recursive: true, force: true }).catch((error) =>
        this.#log.warn(`${this.#keptCacheDir} cannot be removed: ${(error as Error).message}`),
      );
    // An engine that is stopping may still write.
    void remove()
      .then(() => this.client.ended)
      .then(remove);
  }

  async restart(): Promise<void> {
    // The user may click an old notification after switching Kvasir off.
    if (this.client.disposed) return;
    await this.client.stop(vscode.l10n.t('the engine was restarted'));
    await this.client.ready();
  }

  /** Stops the engine. Resolves when it has freed its memory. */
  async stop(): Promise<void> {
    this.dispose();
    await this.client.dispose(vscode.l10n.t('Kvasir was switched off'));
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#state.dispose();
    this.#activity.dispose();
  }

  /** Nothing of an untrusted workspace is kept on disk. Once it is trusted, the next start of the engine keeps it. */
  #disk(): Pick<LoadOptions, 'disk'> {
    const { cacheDiskBytes } = this.#settings.current;
    this.#keeps = cacheDiskBytes > 0 && vscode.workspace.isTrusted;
    return this.#keeps ? { disk: { dir: this.#keptCacheDir, maxBytes: cacheDiskBytes } } : {};
  }

  #follow(state: EngineState): void {
    this.#state.fire(state);
    if (state.kind === 'ready') {
      this.#told = '';
      // The setting may have changed while the model was loading.
      this.#applyMemory();
      if (!vscode.window.state.focused) this.client.notify({ type: 'configure', idleWork: false });
    }
    if (state.kind === 'stopped') this.#idle.stopped();
    if (state.kind === 'failed' && state.message !== this.#told) {
      this.#told = state.message;
      if (!this.#numQuiet && !this.shownElsewhere()) void this.#tell(state.message, state.code);
    }
  }

  #remember(level: string, text: string): void {
    this.problems.push({ at: new Date(), level, text });
    if (this.problems.length > MAX_PROBLEMS) this.problems.shift();
  }

  #unload(minutes: number): void {
    const { state } = this.client;
    // An engine that is down for good keeps its message.
    if (state.kind === 'failed' && !state.retry) return;
    this.#log.info(`unloaded after ${minutes} minutes without a request`);
    void this.client.stop(vscode.l10n.t('the model was unloaded'));
  }

  #applyMemory(): void {
    const { cacheMaxBytes } = this.#settings.current;
    if (cacheMaxBytes === this.#maxBytes || this.client.state.kind !== 'ready') return;
    this.#maxBytes = cacheMaxBytes;
    this.client.notify({ type: 'configure', maxBytes: cacheMaxBytes });
  }

  async #tell(message: string, code: ErrorCode | undefined): Promise<void> {
    const showLog = vscode.l10n.t('Show Log');
    const restart = vscode.l10n.t('Restart');
    const remedy = remedyOf(message, code);
    const label = remedy && remedyLabel(remedy, vscode.l10n.t);
    const chosen = await vscode.window.showErrorMessage(
      `Kvasir: ${withoutLinks(message)}`,
      ...(label === undefined ? [] : [label]),
      showLog,
      restart,
    );
    if (chosen === undefined) return;
    if (remedy && chosen === label) await applyRemedy(remedy);
    if (chosen === showLog) this.#log.show();
    // A new failure sets the state again and is reported there.
    if (chosen === restart) {
      this.#told = '';
      await this.restart().catch(() => {});
    }
  }
}
