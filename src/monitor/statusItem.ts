/**
 * The status bar item `kvasir.status`: what the engine is doing, what the cache holds, details in its hover. Asks the
 * engine for figures only while something is going on and shortly after; otherwise it has no timer.
 */
import * as vscode from '../vscode.ts';
import type { EngineStats } from '../../engine/protocol.ts';
import type { EngineState } from '../engineClient.ts';
import type { EngineHost } from '../engineHost.ts';
import { hoverMarkdown, statusText } from './hover.ts';

const POLL_MS = 500;
/** Idle work (a file's block is computed ahead) follows an edit by a second and takes a moment. */
const AFTERGLOW_MS = 5000;

export class StatusItem implements vscode.Disposable {
  readonly #host: EngineHost;
  readonly #item: vscode.StatusBarItem;
  readonly #subscriptions: vscode.Disposable[];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pollUntil = 0;
  #stats: EngineStats | null = null;

  constructor(host: EngineHost) {
    this.#host = host;
    this.#item = vscode.window.createStatusBarItem('kvasir.status', vscode.StatusBarAlignment.Right, 100);
    this.#item.name = 'Kvasir';
    this.#subscriptions = [
      host.onState((state) => {
        if (state.kind !== 'ready') this.#stats = null;
        else this.#poll();
        this.#draw();
      }),
      host.onActivity(() => this.#poll()),
    ];
    this.#draw();
    this.#item.show();
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#item.dispose();
  }

  /** Figures from now on until it has been quiet for a while. */
  #poll(): void {
    this.#pollUntil = Date.now() + AFTERGLOW_MS;
    if (this.#timer !== undefined) return;
    const ask = async () => {
      this.#stats = (await this.#host.client.stats().catch(() => null)) ?? this.#stats;
      const working = this.#host.client.numPending > 0;
      if (working) this.#pollUntil = Date.now() + AFTERGLOW_MS;
      this.#timer = Date.now() < this.#pollUntil && this.#host.client.state.kind !== 'failed' ? setTimeout(ask, POLL_MS) : undefined;
      this.#draw();
    };
    this.#timer = setTimeout(ask, 0);
  }

  #draw(): void {
    const { state } = this.#host.client;
    const failed = state.kind === 'failed';
    const { text, hover } = this.#content(state);
    this.#item.text = text;
    this.#item.accessibilityInformation = { label: `Kvasir: ${text.replace(/\$\([^)]*\)/g, '').replace('Kvasir', state.kind).trim()}`, role: 'button' };
    this.#item.tooltip = new vscode.MarkdownString(hover, true);
    this.#item.backgroundColor = failed ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
    this.#item.command = failed ? 'kvasir.showLog' : 'kvasir.openChat';
  }

  #content(state: EngineState): { text: string; hover: string } {
    const t = vscode.l10n.t;
    switch (state.kind) {
      case 'stopped':
        return { text: '$(database) Kvasir', hover: t('**Kvasir**: ready, not loaded. The model is loaded with the first request.') };
      case 'starting':
        return state.stage === 'import'
          ? { text: `$(loading~spin) Kvasir ${Math.round(state.fraction * 100)}%`, hover: t('**Kvasir** is importing the model. This is done once.') }
          : { text: '$(loading~spin) Kvasir', hover: t('**Kvasir** is loading the model.') };
      case 'failed':
        return { text: '$(error) Kvasir', hover: t('**Kvasir** is not working: {0}', state.message) };
      case 'ready': {
        const busy = this.#host.client.numPending > 0;
        const icon = busy ? '$(sync~spin)' : '$(database)';
        if (!this.#stats) return { text: `${icon} Kvasir`, hover: state.model.name };
        return { text: `${icon} ${statusText(this.#stats, busy)}`, hover: hoverMarkdown(this.#stats, t) };
      }
    }
  }
}
