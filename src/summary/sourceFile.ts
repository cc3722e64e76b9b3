/** Reads a file for a summary, as it is in the editor or on disk, or says why it is not read. */
import * as vscode from '../vscode.ts';

/** In a folder, larger files are data, or generated. */
const MOST_BYTES = 200_000;
/** Nobody waits for more, and no model of today reads a tenth of it. */
const MOST_BYTES_BY_NAME = 5_000_000;
/** Files of these names hold no source that anyone wrote. */
const NOT_SOURCE = /(?:^|\/)(?:package-lock\.json|.*\.(?:lock|map|svg|csv|tsv|log|ipynb|min\.\w+))$/i;

export type SourceFile = { text: string } | { skipped: string };

/** `byName`: the user asks for this very file, not for a folder that it is in. */
export async function readSource(uri: vscode.Uri, byName = false): Promise<SourceFile> {
  if (!byName && NOT_SOURCE.test(uri.path)) return { skipped: vscode.l10n.t('not source code') };
  const most = byName ? MOST_BYTES_BY_NAME : MOST_BYTES;
  const open = openDocument(uri);
  try {
    if (!open && (await vscode.workspace.fs.stat(uri)).size > most) return { skipped: vscode.l10n.t('too large') };
    const text = open ? open.getText() : await readText(uri);
    if (text === undefined) return { skipped: vscode.l10n.t('a binary file') };
    if (text.length > most) return { skipped: vscode.l10n.t('too large') };
    return text.trim() ? { text } : { skipped: vscode.l10n.t('empty') };
  } catch (error) {
    if (error instanceof vscode.FileSystemError && error.code === 'FileNotFound')
      return { skipped: vscode.l10n.t('the file is no longer there') };
    return { skipped: error instanceof Error ? error.message : String(error) };
  }
}

async function readText(uri: vscode.Uri): Promise<string | undefined> {
  const bytes = await vscode.workspace.fs.readFile(uri);
  return bytes.includes(0) ? undefined : new TextDecoder().decode(bytes);
}

export function openDocument(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
}
