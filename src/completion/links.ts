/** Where files are that links of the file system lead to. */
import { realpathSync } from 'node:fs';
import path from 'node:path';
import * as vscode from '../vscode.ts';

/**
 * Of a file of the machine on which the extension runs, where it really is; undefined where that is no other place, or nobody can
 * tell. Within a workspace folder it has the folder's own address, wherever that one is: what stands above it is no matter of its files.
 */
export function targetOf(uri: vscode.Uri): vscode.Uri | undefined {
  const real = realPath(uri.fsPath);
  if (real === undefined || real === uri.fsPath) return undefined;
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    const root = realPath(folder.uri.fsPath);
    const within = root === undefined ? '..' : path.relative(root, real);
    if (within === '..' || within.startsWith(`..${path.sep}`) || path.isAbsolute(within)) continue;
    const target = vscode.Uri.joinPath(folder.uri, ...within.split(path.sep));
    return target.path === uri.path ? undefined : target;
  }
  return uri.with({ path: vscode.Uri.file(real).path });
}

function realPath(file: string): string | undefined {
  try {
    return realpathSync.native(file);
  } catch {
    // It is not there, or not to be read: then nothing of it is.
    return undefined;
  }
}
