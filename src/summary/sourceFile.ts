/** Reads a file for a summary, from the editor or from disk, or says why it is not read. */
import * as vscode from '../vscode.ts';

/** In a folder, larger files are data or generated. */
const MAX_BYTES = 200_000;
/** Longer than anyone waits for, and ten times what a current model reads. */
const MAX_BYTES_BY_NAME = 5_000_000;
/** Names of files that hold no hand-written source. */
const NOT_SOURCE = /(?:^|\/)(?:package-lock\.json|.*\.(?:lock|map|svg|csv|tsv|log|ipynb|min\.\w+))$/i;

export type SourceFile = { text: string } | { skipped: string };

/** `byName`: the user asked for this file and not for its folder. */
export async function readSource(uri: vscode.Uri, byName = false): Promise<SourceFile> {
  if (!byName && NOT_SOURCE.test(uri.path)) return { skipped: vscode.l10n.t('not source code') };
  const max = byName ? MAX_BYTES_BY_NAME : MAX_BYTES;
  const open = openDocument(uri);
  try {
    if (!open && (await vscode.workspace.fs.stat(uri)).size > max) return { skipped: vscode.l10n.t('too large') };
    const text = open ? open.getText() : await readText(uri);
    if (text === undefined) return { skipped: vscode.l10n.t('a binary file') };
    if (text.length > max) return { skipped: vscode.l10n.t('too large') };
    return text.trim() ? { text } : { skipped: vscode.l10n.t('empty') };
  } catch (error) {
    if (error instanceof vscode.FileSystemError && error.code === 'FileNotFound')
      return { skipped: vscode.l10n.t('the file no longer exists') };
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
