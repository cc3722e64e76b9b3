/**
 * The engine with its surroundings in the editor: settings and folders in, log and one clear message out, events for
 * the views. Owns the client; its features talk to `client` directly.
 */
import path from 'node:path';
import * as vscode from './vscode.ts';
import type { Settings } from './config.ts';
import { EngineClient, type EngineState } from './engineClient.ts';
import type { Log } from './log.ts';
import { locateModel, modelCacheDir } from './models/locate.ts';
import { ThreadTransport } from './threadTransport.ts';

export class EngineHost implements vscode.Disposable {
  readonly client: EngineClient;
  readonly #log: Log;
  readonly #state = new vscode.EventEmitter<EngineState>();
  readonly #activity = new vscode.EventEmitter<number>();
  readonly #subscription: vscode.Disposable;
  /** Whether a view is showing the failure of its own request, so that a notification would say it twice. */
  shownElsewhere: () => boolean = () => false;
  /** The failure that the user has been told of; told once until the engine has worked again. */
  #told = '';

  constructor(context: vscode.ExtensionContext, settings: Settings, log: Log) {
    this.#log = log;
    this.client = new EngineClient({
      createTransport: () => new ThreadTransport(path.join(context.extensionPath, 'dist', 'worker.js'), (text) => log.info(`engine: ${text.trimEnd()}`)),
      loadOptions: () => ({
        modelDir: locateModel(settings.current.model, context.extensionPath).modelDir,
        cacheDir: modelCacheDir(context.globalStorageUri),
        precision: 'int8',
        maxBytes: settings.current.cacheMaxBytes,
        threads: settings.current.threads,
      }),
      onState: (state) => this.#follow(state),
      onActivity: (numPending) => this.#activity.fire(numPending),
      log: (level, text) => log[level](text),
    });
    this.#subscription = settings.onDidChange(({ before, now }) => {
      const other = before.model !== now.model || before.threads !== now.threads || (before.cacheMaxBytes !== now.cacheMaxBytes && now.cacheMaxBytes === 0);
      if (other) void this.client.stop('the settings of the engine were changed');
      else if (before.cacheMaxBytes !== now.cacheMaxBytes) this.client.notify({ type: 'configure', maxBytes: now.cacheMaxBytes });
    });
  }

  get onState(): vscode.Event<EngineState> {
    return this.#state.event;
  }

  /** Fires with the number of requests under way whenever one starts or ends. */
  get onActivity(): vscode.Event<number> {
    return this.#activity.event;
  }

  async restart(): Promise<void> {
    await this.client.stop('the engine was restarted');
    await this.client.ready();
  }

  /** Stops the engine; settles when it has freed its memory. */
  async stop(): Promise<void> {
    this.dispose();
    await this.client.stop('Kvasir was switched off');
  }

  dispose(): void {
    this.#subscription.dispose();
    this.#state.dispose();
    this.#activity.dispose();
  }

  #follow(state: EngineState): void {
    this.#state.fire(state);
    if (state.kind === 'ready') this.#told = '';
    if (state.kind === 'failed' && state.message !== this.#told) {
      this.#told = state.message;
      if (!this.shownElsewhere()) void this.#tell(state.message);
    }
  }

  async #tell(message: string): Promise<void> {
    const showLog = vscode.l10n.t('Show Log');
    const restart = vscode.l10n.t('Restart');
    const chosen = await vscode.window.showErrorMessage(`Kvasir: ${message}`, showLog, restart);
    if (chosen === showLog) this.#log.show();
    // A new failure sets the state again and is told there.
    if (chosen === restart) {
      this.#told = '';
      await this.restart().catch(() => {});
    }
  }
}
