/**
 * The view `kvasir.cache`: sends statistics to its page while it is visible, and passes on the user's actions. Never
 * starts the engine; without one it says what would start it.
 */
import { oneLine } from '../../engine/protocol/oneLine.ts';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import { attachPage } from '../pageView.ts';
import type { EngineClient } from '../client/engineClient.ts';
import type { EngineState } from '../client/engineLifecycle.ts';
import type { EngineHost } from '../client/engineHost.ts';
import type { CacheFigures, FromCachePage, NoFigures, ToCachePage } from './cacheMessages.ts';
import { cacheStrings } from './cacheStrings.ts';
import { codecNotes } from './codecTexts.ts';
import type { Figures } from './figures.ts';
import type { EngineStats } from '../../engine/protocol/stats.ts';

export const CACHE_VIEW = 'kvasir.cache';

export class CacheView implements vscode.WebviewViewProvider, vscode.Disposable {
  readonly #extensionUri: vscode.Uri;
  readonly #host: EngineHost;
  readonly #figures: Figures;
  readonly #pins: PinnedFiles;
  readonly #subscription: vscode.Disposable;
  #view: vscode.WebviewView | undefined;
  /** The page handles messages only after its `ready`. */
  #pageReady = false;

  constructor(extensionUri: vscode.Uri, host: EngineHost, figures: Figures) {
    this.#extensionUri = extensionUri;
    this.#host = host;
    this.#figures = figures;
    this.#pins = new PinnedFiles(host.client);
    this.#subscription = figures.onChange(() => {
      if (figures.stats) this.#pins.review(figures.stats);
      this.#show();
    });
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    this.#pageReady = false;
    attachPage(view, this.#extensionUri, {
      title: `Kvasir: ${vscode.l10n.t('Cache')}`,
      script: 'dist/webview/cache.js',
      // The first one is that of the charts' library.
      styles: ['dist/webview/cache.css', 'media/cache.css'],
      strings: cacheStrings(),
      receive: (message: FromCachePage) => void this.#receive(message),
      shown: (visible) => {
        if (!visible) this.#pageReady = false;
        this.#figures.watch(visible);
      },
      closed: () => {
        if (this.#view !== view) return;
        this.#view = undefined;
        this.#pageReady = false;
        this.#figures.watch(false);
      },
    });
  }

  async open(): Promise<void> {
    await vscode.commands.executeCommand(`${CACHE_VIEW}.focus`);
  }

  dispose(): void {
    this.#figures.watch(false);
    this.#subscription.dispose();
  }

  async #receive(message: FromCachePage): Promise<void> {
    switch (message.type) {
      case 'ready':
        this.#pageReady = true;
        this.#post({ type: 'samples', samples: [...this.#figures.samples.all] });
        return this.#show();
      case 'command':
        return void (await vscode.commands.executeCommand(`kvasir.${message.command}`));
      case 'pin':
        this.#pins.set(message.docId, message.pinned);
        return this.#figures.refresh();
      case 'evict':
        this.#host.client.notify({ type: 'evict', docId: message.docId });
        return this.#figures.refresh();
      case 'open':
        return void (await vscode.commands.executeCommand('vscode.open', vscode.Uri.parse(message.docId)));
    }
  }

  #show(): void {
    if (!this.#view?.visible || !this.#pageReady) return;
    const figures = this.#current();
    this.#post(figures ? { type: 'figures', figures } : { type: 'nothing', why: whyNothing(this.#host.client.state) });
  }

  #current(): CacheFigures | null {
    if (!this.#figures.stats) return null;
    const { files, tree = [], ...stats } = this.#figures.stats;
    return {
      stats,
      files: files.map((file) => ({
        ...file,
        name: oneLine(vscode.workspace.asRelativePath(vscode.Uri.parse(file.docId))),
        codecNote: codecNotes(file.codecs, stats.model, speech()),
        shiftedBytes: file.shiftedTokens * stats.kvBytesPerToken,
      })),
      tree,
      machine: this.#figures.machine,
      sample: this.#figures.samples.all.at(-1) ?? null,
    };
  }

  #post(message: ToCachePage): void {
    void this.#view?.webview.postMessage(message);
  }
}

function whyNothing(state: EngineState): NoFigures {
  const { t, numbers } = speech();
  switch (state.kind) {
    case 'stopped':
      return {
        kind: 'stopped',
        title: t('Nothing is loaded'),
        text: [
          t('The engine starts with the first request: a completion, a question or a summary.'),
          t('Until then it uses no memory and no processor time.'),
        ].join(' '),
      };
    case 'failed':
      return { kind: 'failed', title: t('The engine is not working'), text: state.message };
    case 'starting':
      return {
        kind: 'starting',
        title: t('The engine is starting'),
        text:
          state.stage === 'import'
            ? t('Importing the model: {0}', numbers.share(state.fraction))
            : t('Loading the model'),
      };
    case 'ready':
      return { kind: 'starting', title: t('The engine is starting'), text: t('Reading statistics') };
  }
}

/**
 * The files that the user has pinned. The engine forgets pins when it is unloaded or restarted, so they are sent again
 * when such a file is in its cache again. Closing a file ends its pin.
 */
export class PinnedFiles {
  readonly #client: Pick<EngineClient, 'notify'>;
  readonly #docIds = new Set<string>();

  constructor(client: Pick<EngineClient, 'notify'>) {
    this.#client = client;
  }

  set(docId: string, pinned: boolean): void {
    if (pinned) this.#docIds.add(docId);
    else this.#docIds.delete(docId);
    this.#client.notify({ type: 'pin', docId, pinned });
  }

  /** Compares with the engine's statistics. */
  review({ files }: Pick<EngineStats, 'files'>): void {
    for (const { docId, open, pinned } of files) {
      if (!this.#docIds.has(docId)) continue;
      if (!open) this.#docIds.delete(docId);
      else if (!pinned) this.#client.notify({ type: 'pin', docId, pinned: true });
    }
  }
}
