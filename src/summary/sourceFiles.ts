/**
 * Which files of a folder are summarized, and the text of a file that is summarized: from the editor or from disk. Says
 * why a file is left out. Does not summarize.
 */
import { messageOf } from '../format.ts';
import { isSecret } from '../completion/filter.ts';
import type { Config } from '../config.ts';
import { filtered, listedFiles, relativePath } from '../context/listedFiles.ts';
import { openDocument } from '../context/openDocuments.ts';
import * as vscode from '../vscode.ts';

/** The summary of more files is too long to read, and a small machine would take long. */
export const MAX_FILES = 100;
/** Further files are not even looked at. */
export const MAX_LISTED = 5000;
/** In a folder, larger files are data or generated. */
const MAX_BYTES = 200_000;
/** Ten times what a current model reads; its summary would take too long. */
const MAX_BYTES_BY_NAME = 5_000_000;
/** Names of files that hold no hand-written source. */
const NOT_SOURCE = /(?:^|\/)(?:package-lock\.json|.*\.(?:lock|map|svg|csv|tsv|log|ipynb|min\.\w+))$/i;

export interface FolderFiles {
  /** Sorted by path, at most MAX_FILES. */
  files: vscode.Uri[];
  /** Relative paths of files left out as secret. */
  secrets: string[];
  /** Number of further files that are not summarized. */
  numMore: number;
  /** There are still more files, which were not looked at. */
  cutOff: boolean;
}

export async function filesOf(
  folder: vscode.Uri,
  settings: Config['completion'],
  token?: vscode.CancellationToken,
): Promise<FolderFiles> {
  const { files: all, cutOff } = await listedFiles(folder, { glob: '**/*', max: MAX_LISTED, token });
  const secrets = new Set(await filtered(all, (uri) => isSecret({ uri, languageId: '' }, settings)));
  const files = all.filter((uri) => !secrets.has(uri));
  return {
    files: files.slice(0, MAX_FILES),
    secrets: [...secrets].map((uri) => relativePath(folder, uri)),
    numMore: Math.max(0, files.length - MAX_FILES),
    cutOff,
  };
}

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
    return { skipped: messageOf(error) };
  }
}

async function readText(uri: vscode.Uri): Promise<string | undefined> {
  const bytes = await vscode.workspace.fs.readFile(uri);
  return bytes.includes(0) ? undefined : new TextDecoder().decode(bytes);
}
