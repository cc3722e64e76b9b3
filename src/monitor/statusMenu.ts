/** The menu of the status bar item. */
import * as vscode from '../vscode.ts';

/** Not in the command palette, which lists these commands itself. */
export const STATUS_MENU = 'kvasir.statusMenu';

type Entry = vscode.QuickPickItem & { command?: string; argument?: string };

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
