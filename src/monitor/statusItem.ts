/**
 * The status bar item `kvasir.status`: what the engine is doing, what the cache holds, details in its hover. Asks the
 * engine for figures only while something is going on and shortly after; otherwise it has no timer.
 */
import * as vscode from '../vscode.ts';
import type { EngineStats } from '../../engine/protocol.ts';
import type { EngineState } from '../engineClient.ts';
import type { EngineHost } from '../engineHost.ts';
import { escapeMarkdown, hoverMarkdown, statusText } from './hover.ts';

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
  #disposed = false;

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
    this.#disposed = true;
    clearTimeout(this.#timer);
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#item.dispose();
  }

  /** Figures as they are now, once. */
  refresh(): void {
    this.#ask(0);
  }

  /** Figures from now on until it has been quiet for a while. */
  #poll(): void {
    this.#pollUntil = Date.now() + AFTERGLOW_MS;
    this.#ask(0);
  }

  #ask(delayMs: number): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(async () => {
      const { client } = this.#host;
      const stats = await client.stats().catch(() => null);
      this.#timer = undefined;
      if (this.#disposed) return;
      this.#stats = stats ?? this.#stats;
      if (client.numPending > 0) this.#pollUntil = Date.now() + AFTERGLOW_MS;
      if (Date.now() < this.#pollUntil && client.state.kind !== 'failed') this.#ask(POLL_MS);
      this.#draw();
    }, delayMs);
  }

  #draw(): void {
    const { state } = this.#host.client;
    const failed = state.kind === 'failed';
    const { text, hover, label } = this.#content(state);
    this.#item.text = text;
    this.#item.accessibilityInformation = { label: `Kvasir: ${label}`, role: 'button' };
    this.#item.tooltip = new vscode.MarkdownString(hover, true);
    this.#item.backgroundColor = failed ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
    this.#item.command = failed ? 'kvasir.showLog' : 'kvasir.openChat';
  }

  /** `label` is what a screen reader says. */
  #content(state: EngineState): { text: string; hover: string; label: string } {
    const t = vscode.l10n.t;
    switch (state.kind) {
      case 'stopped':
        return { text: '$(database) Kvasir', hover: t('**Kvasir**: ready, not loaded. The model is loaded with the first request.'), label: t('not loaded') };
      case 'starting':
        return state.stage === 'import'
          ? { text: `$(loading~spin) Kvasir ${Math.round(state.fraction * 100)}%`, hover: t('**Kvasir** is importing the model. This is done once.'), label: t('importing the model') }
          : { text: '$(loading~spin) Kvasir', hover: t('**Kvasir** is loading the model.'), label: t('loading the model') };
      case 'failed':
        return { text: '$(error) Kvasir', hover: t('**Kvasir** is not working: {0}', escapeMarkdown(state.message)), label: t('not working') };
      case 'ready': {
        const busy = this.#host.client.numPending > 0;
        const icon = busy ? '$(sync~spin)' : '$(database)';
        if (!this.#stats) return { text: `${icon} Kvasir`, hover: escapeMarkdown(state.model.name), label: t('ready') };
        const figures = statusText(this.#stats, busy, t);
        return { text: `${icon} ${figures}`, hover: hoverMarkdown(this.#stats, t), label: figures };
      }
    }
  }
}
