/** `Kvasir: Summarize File` and `Kvasir: Summarize Selection`: the request, shown as a turn of the chat. */
import * as vscode from '../vscode.ts';
import type { ChatView } from '../chat/chatView.ts';

/** `uri` comes from a menu; from the palette it is the active editor's file. */
export async function summarizeFile(chat: ChatView, uri?: vscode.Uri): Promise<void> {
  const document = uri instanceof vscode.Uri ? await vscode.workspace.openTextDocument(uri) : vscode.window.activeTextEditor?.document;
  if (!document) return tellNoFile();
  await chat.summarize(document, vscode.l10n.t('Summarize this file'), (docId) => ({ kind: 'summarize', docId }));
}

export async function summarizeSelection(chat: ChatView): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.selection.isEmpty) return tellNoFile();
  const { document, selection } = editor;
  const [first, last] = [selection.start.line + 1, selection.end.line + (selection.end.character ? 1 : 0)];
  const [start, end] = [document.offsetAt(selection.start), document.offsetAt(selection.end)];
  const question = first < last ? vscode.l10n.t('Summarize lines {0} to {1}', first, last) : vscode.l10n.t('Summarize line {0}', first);
  await chat.summarize(document, question, (docId) => ({ kind: 'summarize', docId, range: { start, end } }));
}

function tellNoFile(): void {
  void vscode.window.showInformationMessage(vscode.l10n.t('Open a file to summarize.'));
}
