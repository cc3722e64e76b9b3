/**
 * The status bar item `kvasir.status`: what the engine is doing and what the cache holds, with details in its hover,
 * and its menu. Has no timer: Figures tells it when to update.
 */
import { knownLanguage } from '../format.ts';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import type { EngineState } from '../client/engineLifecycle.ts';
import type { EngineHost } from '../client/engineHost.ts';
import type { Figures } from './figures.ts';
import { escapeMarkdown, hoverMarkdown, statusText } from './hover.ts';
import type { Snooze } from '../completion/snooze.ts';
import type { Settings } from '../config.ts';

/** Not in the command palette, which lists these commands itself. */
export const STATUS_MENU = 'kvasir.statusMenu';

/** Commands that the hover may run. */
const LINKED = ['kvasir.showCache', 'kvasir.chooseModel', 'kvasir.snooze', 'kvasir.endSnooze', 'kvasir.showLog'];

/** Why there are no automatic completions for now: snoozed, or on battery with that setting. */
export interface Pause {
  readonly onDidChange: vscode.Event<unknown>;
  reason(): string | undefined;
  /** Whether the user can end it. */
  readonly snoozed: boolean;
}

export function pauseOf(snooze: Snooze, settings: Settings, figures: Figures): Pause {
  const t = vscode.l10n.t;
  return {
    onDidChange: snooze.onDidChange,
    get snoozed() {
      return snooze.active;
    },
    reason() {
      if (snooze.active) {
        const time = snooze.until?.toLocaleTimeString(knownLanguage(vscode.env.language), {
          hour: '2-digit',
          minute: '2-digit',
        });
        return time === undefined
          ? t('Completions are snoozed until the window is reloaded')
          : t('Completions are snoozed until {0}', time);
      }
      const onBattery = settings.current.completion.pauseOnBattery && figures.machine?.onBattery === true;
      return onBattery ? t('Completions pause on battery') : undefined;
    },
  };
}

export class StatusItem implements vscode.Disposable {
  readonly #host: EngineHost;
  readonly #figures: Figures;
  readonly #pause: Pause;
  readonly #item: vscode.StatusBarItem;
  readonly #subscriptions: vscode.Disposable[];

  constructor(host: EngineHost, figures: Figures, pause: Pause) {
    this.#host = host;
    this.#figures = figures;
    this.#pause = pause;
    this.#item = vscode.window.createStatusBarItem('kvasir.status', vscode.StatusBarAlignment.Right, 100);
    this.#item.name = 'Kvasir';
    this.#subscriptions = [
      host.onActivity(() => this.#draw()),
      figures.onChange(() => this.#draw()),
      pause.onDidChange(() => this.#draw()),
    ];
    this.#draw();
    this.#item.show();
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#item.dispose();
  }

  #draw(): void {
    const { state } = this.#host.client;
    const failed = state.kind === 'failed';
    const paused = this.#pause.reason();
    const { text, hover, label } = this.#content(state, paused !== undefined);
    this.#item.text = text;
    this.#item.accessibilityInformation = {
      label: `Kvasir: ${label}${paused === undefined ? '' : `, ${paused}`}`,
      role: 'button',
    };
    const tooltip = new vscode.MarkdownString(
      [
        hover,
        ...(paused === undefined ? [] : [`$(bell-slash) ${escapeMarkdown(paused)}`]),
        '---',
        this.#links(failed),
      ].join('\n\n'),
      true,
    );
    tooltip.isTrusted = { enabledCommands: LINKED };
    this.#item.tooltip = tooltip;
    this.#item.backgroundColor = failed ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
    this.#item.command = failed ? 'kvasir.showLog' : STATUS_MENU;
  }

  #links(failed: boolean): string {
    const t = vscode.l10n.t;
    const links = [
      `[${t('Show Cache')}](command:kvasir.showCache)`,
      `[${t('Choose Model')}](command:kvasir.chooseModel)`,
      failed
        ? `[${t('Show Log')}](command:kvasir.showLog)`
        : this.#pause.snoozed
          ? `[${t('End Snooze')}](command:kvasir.endSnooze)`
          : `[${t('Snooze')}](command:kvasir.snooze)`,
    ];
    return links.join(' · ');
  }

  /** `label` is for screen readers. */
  #content(state: EngineState, paused: boolean): { text: string; hover: string; label: string } {
    const t = vscode.l10n.t;
    switch (state.kind) {
      case 'stopped':
        return {
          text: `${paused ? '$(bell-slash)' : '$(database)'} Kvasir`,
          hover: t('**Kvasir** is ready. The first request loads the model.'),
          label: t('not loaded'),
        };
      case 'starting':
        return state.stage === 'import'
          ? {
              text: `$(loading~spin) Kvasir ${speech().numbers.share(state.fraction)}`,
              hover: t('**Kvasir** is importing the model. This is done once.'),
              label: t('importing the model'),
            }
          : {
              text: '$(loading~spin) Kvasir',
              hover: t('**Kvasir** is loading the model.'),
              label: t('loading the model'),
            };
      case 'failed':
        return {
          text: '$(error) Kvasir',
          hover: t('**Kvasir** is not working: {0}', escapeMarkdown(state.message)),
          label: t('not working'),
        };
      case 'ready': {
        const busy = this.#host.client.numPending > 0;
        const icon = busy ? '$(sync~spin)' : paused ? '$(bell-slash)' : '$(database)';
        const { stats, gpus } = this.#figures;
        if (!stats) return { text: `${icon} Kvasir`, hover: escapeMarkdown(state.model.name), label: t('ready') };
        const figures = statusText(stats, busy, speech());
        return { text: `${icon} ${figures}`, hover: hoverMarkdown(stats, gpus, speech()), label: figures };
      }
    }
  }
}

type Entry = vscode.QuickPickItem & { command?: string; argument?: string };

/** The menu of the status bar item. */
export async function showStatusMenu(snoozed: boolean): Promise<void> {
  const t = vscode.l10n.t;
  const entry = (icon: string, label: string, command: string, argument?: string): Entry => ({
    label: `$(${icon}) ${label}`,
    command,
    ...(argument ? { argument } : {}),
  });
  const entries: Entry[] = [
    entry('comment-discussion', t('Open Chat'), 'kvasir.openChat'),
    entry('graph', t('Show Cache'), 'kvasir.showCache'),
    snoozed
      ? entry('bell', t('End Snooze'), 'kvasir.endSnooze')
      : entry('bell-slash', t('Snooze Completions'), 'kvasir.snooze'),
    { label: '', kind: vscode.QuickPickItemKind.Separator },
    entry('server-environment', t('Choose Model'), 'kvasir.chooseModel'),
    entry('question', t('Explain Last Completion'), 'kvasir.explainLastCompletion'),
    entry('output', t('Show Log'), 'kvasir.showLog'),
    entry('settings-gear', t('Settings'), 'workbench.action.openSettings', '@ext:kvasir.kvasir'),
  ];
  const chosen = await vscode.window.showQuickPick(entries, {
    title: 'Kvasir',
    placeHolder: t('What would you like to do?'),
  });
  if (chosen?.command)
    await vscode.commands.executeCommand(chosen.command, ...(chosen.argument ? [chosen.argument] : []));
}
