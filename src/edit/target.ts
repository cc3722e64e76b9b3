/** What `Kvasir: Edit Selection` changes: the selected lines, else the symbol around the cursor, else its line. */
import * as vscode from '../vscode.ts';
import { enclosing, symbolsOf } from '../symbols.ts';

export interface Target {
  range: vscode.Range;
  /** In words, for the input box that asks for the instruction. */
  name: string;
}

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
