/**
 * Converts what a request of VS Code's chat view is about (attachments, else the file in front of the user) to the
 * references of Kvasir's own chat. Reports what cannot be included.
 */
import * as vscode from '../vscode.ts';
import type { ContextRef } from '../chat/chatMessages.ts';
import { fileRef, selectionRef } from '../chat/contextRefs.ts';
import { DOCUMENTS, isSecret } from '../completion/filter.ts';
import type { Settings } from '../config.ts';

export interface About {
  refs: ContextRef[];
  /** Attached as text, without a file. */
  texts: string[];
  notes: string[];
}

/** The file in front of the user: while the chat view has the focus, no editor may be active. */
export function editorInFront(): vscode.TextEditor | undefined {
  const { activeTextEditor, visibleTextEditors } = vscode.window;
  return [activeTextEditor, ...visibleTextEditors].find(
    (each) => each && vscode.languages.match(DOCUMENTS, each.document) > 0,
  );
}

export async function aboutRequest(
  references: readonly vscode.ChatPromptReference[],
  settings: Settings,
): Promise<About> {
  const about: About = { refs: [], texts: [], notes: [] };
  // VS Code lists references from the last to the first.
  for (const { value, id } of [...references].reverse()) {
    if (value instanceof vscode.Uri) about.refs.push(fileRef(value));
    else if (value instanceof vscode.Location)
      about.refs.push(selectionRef(await vscode.workspace.openTextDocument(value.uri), value.range));
    else if (typeof value === 'string') about.texts.push(value);
    else if (value !== undefined)
      about.notes.push(vscode.l10n.t('{0} is left out: {1}', id, vscode.l10n.t('Kvasir reads text only')));
  }
  const editor = editorInFront();
  // As in Kvasir's own view: secret files are taken only when attached by hand.
  if (!about.refs.length && !about.texts.length && editor && !isSecret(editor.document, settings.current.completion)) {
    about.refs.push(fileRef(editor.document.uri));
    if (!editor.selection.isEmpty) about.refs.push(selectionRef(editor.document, editor.selection));
  }
  return about;
}
