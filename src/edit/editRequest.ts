/** What `Kvasir: Edit Selection` changes, and the instruction that it asks for. Does not start the edit. */
import { enclosing, symbolsOf } from '../symbols.ts';
import * as vscode from '../vscode.ts';

/** Key in the workspace state: earlier instructions, newest first. */
const HISTORY = 'kvasir.edit.instructions';
const MAX_REMEMBERED = 20;

export interface Target {
  range: vscode.Range;
  /** In words, for the input box that asks for the instruction. */
  name: string;
}

/** The selected lines, else the symbol around the cursor, else its line. */
export async function targetOf({ document, selection }: vscode.TextEditor): Promise<Target> {
  if (!selection.isEmpty) {
    const range = selection.isSingleLine
      ? new vscode.Range(selection.start, selection.end)
      : wholeLines(document, selection);
    return { range, name: linesOf(range) };
  }
  const symbol = enclosing(await symbolsOf(document), selection.active);
  if (!symbol) {
    const { range } = document.lineAt(selection.active.line);
    return { range, name: linesOf(range) };
  }
  const range = wholeLines(document, symbol.range);
  return { range, name: `${symbol.name} (${linesOf(range)})` };
}

/** From the start of the first line to the end of the last, without a last line at whose start the range ends. */
function wholeLines(document: vscode.TextDocument, { start, end }: vscode.Range): vscode.Range {
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  return new vscode.Range(new vscode.Position(start.line, 0), document.lineAt(last).range.end);
}

function linesOf({ start, end }: vscode.Range): string {
  return start.line === end.line
    ? vscode.l10n.t('line {0}', start.line + 1)
    : vscode.l10n.t('lines {0} to {1}', start.line + 1, end.line + 1);
}

/** Asks what should be changed, and offers earlier instructions. Undefined when the user cancels. */
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
