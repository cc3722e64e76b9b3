/** Says once of each setting that cannot be what is written there what is used instead. */
import * as vscode from './vscode.ts';
import { openSettings } from './client/applyRemedy.ts';
import type { Settings, WrongSetting } from './config.ts';
import type { Log } from './log.ts';

/** Characters of a value that are quoted. */
const MOST_QUOTED = 60;
/** A message is read at a glance; the log has all. */
const MOST_TOLD = 3;
/** Switching Kvasir off and on is no news. */
const told = new Set<string>();

export function tellOfWrongSettings(
  settings: Pick<Settings, 'wrong' | 'onDidChange'>,
  log: Pick<Log, 'warn'>,
): vscode.Disposable {
  const tell = async (): Promise<void> => {
    const texts = new Map(settings.wrong.map((each) => [textOf(each), each.key]));
    // One that has been mended and is wrong again is news.
    for (const text of told) if (!texts.has(text)) told.delete(text);
    const untold = [...texts].filter(([text]) => !told.has(text));
    if (untold.length === 0) return;
    for (const [text] of untold) {
      told.add(text);
      log.warn(text);
    }
    const open = vscode.l10n.t('Open Setting');
    const rest =
      untold.length > MOST_TOLD ? [vscode.l10n.t('The log names further ones: {0}.', untold.length - MOST_TOLD)] : [];
    const chosen = await vscode.window.showWarningMessage(
      `Kvasir: ${[...untold.slice(0, MOST_TOLD).map(([text]) => text), ...rest].join(' ')}`,
      open,
    );
    if (chosen === open) await openSettings(untold.map(([, key]) => key));
  };
  void tell();
  return settings.onDidChange(() => void tell());
}

function textOf({ key, written, used }: WrongSetting): string {
  return vscode.l10n.t('The setting {0} cannot be {1}; {2} is used instead.', key, quoted(written), quoted(used));
}

function quoted(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > MOST_QUOTED ? `${text.slice(0, MOST_QUOTED)}…` : text;
}
