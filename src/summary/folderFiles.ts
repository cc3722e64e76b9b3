/** Which files of a folder are summarized. */
import type * as vscode from '../vscode.ts';
import { isSecret } from '../completion/filter.ts';
import type { Config } from '../config.ts';
import { filtered } from '../context/inPieces.ts';
import { listedFiles, relativePath } from '../context/listedFiles.ts';

/** Nobody reads the summary of more files, and a small machine would take long. */
export const MAX_FILES = 100;
/** Further files are not even looked at. */
export const MAX_LISTED = 5000;

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
