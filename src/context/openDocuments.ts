/** The documents that the user has open in an editor, and the loaded document of a URI. */
import * as vscode from '../vscode.ts';

/**
 * Visible ones first, then in the order of their tabs. Documents loaded for other reasons, such as a search, are not
 * included.
 */
export function openDocuments(): vscode.TextDocument[] {
  const uris = new Set(vscode.window.visibleTextEditors.map(({ document }) => document.uri.toString()));
  const notebooks = new Set<string>();
  for (const { input } of vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs)) {
    if (input instanceof vscode.TabInputText) uris.add(input.uri.toString());
    else if (input instanceof vscode.TabInputTextDiff) uris.add(input.modified.toString());
    else if (input instanceof vscode.TabInputNotebook) notebooks.add(input.uri.toString());
  }
  for (const notebook of vscode.workspace.notebookDocuments) {
    if (notebooks.has(notebook.uri.toString()))
      for (const cell of notebook.getCells()) uris.add(cell.document.uri.toString());
  }
  const loaded = new Map(vscode.workspace.textDocuments.map((document) => [document.uri.toString(), document]));
  return [...uris].map((uri) => loaded.get(uri)).filter((document) => document !== undefined);
}

/** The loaded document of a URI, whether or not an editor shows it. */
export function openDocument(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
}
