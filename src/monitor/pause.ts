/** Why there are no automatic completions for now: snoozed, or on battery with that setting. */
import * as vscode from '../vscode.ts';
import type { Snooze } from '../completion/snooze.ts';
import type { Settings } from '../config.ts';
import type { Figures } from './figures.ts';

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
        const time = snooze.until?.toLocaleTimeString(vscode.env.language, { hour: '2-digit', minute: '2-digit' });
        return time === undefined
          ? t('Completions are snoozed until the window is reloaded')
          : t('Completions are snoozed until {0}', time);
      }
      const onBattery = settings.current.completion.pauseOnBattery && figures.machine?.onBattery === true;
      return onBattery ? t('Completions pause on battery') : undefined;
    },
  };
}
