/** Which files of a folder are summarised. */
import type * as vscode from '../vscode.ts';
import { isSecret } from '../completion/filter.ts';
import type { Config } from '../config.ts';
import { filtered } from '../context/inPieces.ts';
import { listedFiles, relativePath } from '../context/listedFiles.ts';

/** A summary of more files is read by nobody, and takes a small machine its time. */
export const MOST_FILES = 100;
/** More are not even looked at. */
export const MOST_LISTED = 5000;

export interface FolderFiles {
  /** Sorted by path, at most MOST_FILES. */
  files: vscode.Uri[];
  /** Relative paths of files left out as secrets. */
  secrets: string[];
  /** How many more there are than are summarised. */
  numMore: number;
  /** There are still more, which were not even looked at. */
  cutOff: boolean;
}

export async function filesOf(
  folder: vscode.Uri,
  settings: Config['completion'],
  token?: vscode.CancellationToken,
): Promise<FolderFiles> {
  const { files: all, cutOff } = await listedFiles(folder, { glob: '**/*', most: MOST_LISTED, token });
  const secrets = new Set(await filtered(all, (uri) => isSecret({ uri, languageId: '' }, settings)));
  const files = all.filter((uri) => !secrets.has(uri));
  return {
    files: files.slice(0, MOST_FILES),
    secrets: [...secrets].map((uri) => relativePath(folder, uri)),
    numMore: Math.max(0, files.length - MOST_FILES),
    cutOff,
  };
}
