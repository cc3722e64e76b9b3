/** The list behind the chat's "+": the open editors, then all files and folders. */
import * as vscode from '../vscode.ts';
import type { ContextRef, Found } from './chatMessages.ts';
import { fileRef, selectionRef } from './contextRefs.ts';
import type { FileFinder } from './fileFinder.ts';

interface Item extends vscode.QuickPickItem {
  refs: ContextRef[];
}

/**
 * What the user has chosen; empty after Escape. One item at a time: in a list with check boxes, a name and Enter would
 * select nothing.
 */
export async function pickContext(finder: FileFinder, editor: vscode.TextEditor | undefined): Promise<ContextRef[]> {
  const chosen = await vscode.window.showQuickPick(items(finder, editor), {
    matchOnDescription: true,
    title: vscode.l10n.t('Attach to the Question'),
    placeHolder: vscode.l10n.t('Files, folders, open editors'),
  });
  return chosen?.refs ?? [];
}

async function items(finder: FileFinder, editor: vscode.TextEditor | undefined): Promise<Item[]> {
  const open = finder.open().map((uri) => fileRef(uri));
  const special: Item[] = [];
  if (open.length > 1)
    special.push({
      label: `$(files) ${vscode.l10n.t('All open editors')}`,
      description: String(open.length),
      refs: open,
    });
  if (editor && !editor.selection.isEmpty) {
    const ref = selectionRef(editor.document, editor.selection);
    special.push({ label: `$(selection) ${vscode.l10n.t('Selection')}`, description: ref.path, refs: [ref] });
  }
  return [...special, ...(await finder.all()).map(toItem)];
}

function toItem({ kind, uri, name, detail }: Found): Item {
  return { label: `$(${kind}) ${name}`, description: detail, refs: [fileRef(vscode.Uri.parse(uri, true), kind)] };
}
