/** Asks what should be changed, and offers earlier instructions. */
import * as vscode from '../vscode.ts';

const HISTORY = 'kvasir.edit.instructions';
const MAX_REMEMBERED = 20;

/** Undefined when the user cancels. */
export async function askInstruction(memory: vscode.Memento, target: string): Promise<string | undefined> {
  const earlier = memory.get<string[]>(HISTORY, []);
  const pick = vscode.window.createQuickPick();
  const past = earlier.map((label) => ({ label, iconPath: new vscode.ThemeIcon('history') }));
  pick.title = vscode.l10n.t('Kvasir: Edit {0}', target);
  pick.placeholder = vscode.l10n.t('What should be changed?');
  pick.items = past;
  const instruction = await new Promise<string | undefined>((resolve) => {
    pick.onDidChangeValue((value) => {
      const typed = value.trim();
      // The typed text comes first and is always offered, whatever earlier instructions match.
      pick.items = typed
        ? [
            { label: typed, alwaysShow: true, iconPath: new vscode.ThemeIcon('edit-sparkle') },
            ...past.filter(({ label }) => label !== typed),
          ]
        : past;
    });
    pick.onDidAccept(() => resolve(pick.activeItems[0]?.label ?? pick.value.trim()));
    pick.onDidHide(() => resolve(undefined));
    pick.show();
  });
  pick.dispose();
  if (!instruction) return undefined;
  await memory.update(
    HISTORY,
    [instruction, ...earlier.filter((label) => label !== instruction)].slice(0, MAX_REMEMBERED),
  );
  return instruction;
}
