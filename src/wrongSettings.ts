/** Warns once about each setting with an invalid value, and says what is used instead. */
import * as vscode from './vscode.ts';
import { openSettings } from './client/failure.ts';
import type { Settings, WrongSetting } from './config.ts';
import type { Log } from './log.ts';

/** Longest quoted value, in characters. */
const MAX_QUOTED = 60;
/** Number of settings named in one message. The log names all. */
const MAX_SHOWN = 3;
/** Warnings already shown. Kept when Kvasir is switched off and on. */
const told = new Set<string>();

export function tellOfWrongSettings(
  settings: Pick<Settings, 'wrong' | 'onDidChange'>,
  log: Pick<Log, 'warn'>,
): vscode.Disposable {
  const tell = async (): Promise<void> => {
    const texts = new Map(settings.wrong.map((each) => [textOf(each), each.key]));
    // A setting that was corrected and is wrong again is reported again.
    for (const text of told) if (!texts.has(text)) told.delete(text);
    const untold = [...texts].filter(([text]) => !told.has(text));
    if (untold.length === 0) return;
    for (const [text] of untold) {
      told.add(text);
      log.warn(text);
    }
    const open = vscode.l10n.t('Open Setting');
    const rest = untold.length > MAX_SHOWN ? [vscode.l10n.t('The log lists {0} more.', untold.length - MAX_SHOWN)] : [];
    const chosen = await vscode.window.showWarningMessage(
      `Kvasir: ${[...untold.slice(0, MAX_SHOWN).map(([text]) => text), ...rest].join(' ')}`,
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
  return text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text;
}
