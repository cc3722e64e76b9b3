/** Where files are that links of the file system lead to. What has been asked of the disk is remembered for seconds: each key asks. */
import { realpathSync } from 'node:fs';
import path from 'node:path';
import * as vscode from '../vscode.ts';

/** A link that is made or moved counts after so long at the latest. */
const FRESH_MS = 5000;
/** Addresses that are remembered: more than the chat's picker asks about at once. */
const MOST_REMEMBERED = 10_000;

interface Target {
  readonly uri: vscode.Uri | undefined;
  /** In ms. */
  readonly read: number;
}

/** By address, first read first. */
const targets = new Map<string, Target>();
/** Of workspace folders as they are now, by address. */
const roots = new Map<string, string>();
/** Addresses of the folders that these are of. */
let rooted = '';

/**
 * Of a file of the machine on which the extension runs, where it really is; undefined where that is no other place, or nobody can
 * tell. Within a workspace folder it has the folder's own address, wherever that one is: what stands above it is no matter of its files.
 */
export function targetOf(uri: vscode.Uri): vscode.Uri | undefined {
  const folders = vscode.workspace.workspaceFolders ?? [];
  forgetOthers(folders);
  const key = uri.toString();
  const known = targets.get(key);
  const now = Date.now();
  if (known && now >= known.read && now - known.read < FRESH_MS) return known.uri;
  const found = { uri: readTarget(uri, folders), read: now };
  targets.delete(key);
  for (const oldest of targets.keys()) {
    if (targets.size < MOST_REMEMBERED) break;
    targets.delete(oldest);
  }
  targets.set(key, found);
  return found.uri;
}

function readTarget(uri: vscode.Uri, folders: readonly vscode.WorkspaceFolder[]): vscode.Uri | undefined {
  const real = realPath(uri.fsPath);
  if (real === undefined || real === uri.fsPath) return undefined;
  for (const folder of folders) {
    const root = rootOf(folder);
    const within = root === undefined ? '..' : path.relative(root, real);
    if (within === '..' || within.startsWith(`..${path.sep}`) || path.isAbsolute(within)) continue;
    const target = vscode.Uri.joinPath(folder.uri, ...within.split(path.sep));
    return target.path === uri.path ? undefined : target;
  }
  return uri.with({ path: vscode.Uri.file(real).path });
}

/** Other workspace folders: files have other addresses in them. */
function forgetOthers(folders: readonly vscode.WorkspaceFolder[]): void {
  const now = folders.map(({ uri }) => uri.toString()).join('\n');
  if (now === rooted) return;
  rooted = now;
  roots.clear();
  targets.clear();
}

function rootOf({ uri }: vscode.WorkspaceFolder): string | undefined {
  const key = uri.toString();
  // One that is not there may come.
  const root = roots.get(key) ?? realPath(uri.fsPath);
  if (root !== undefined) roots.set(key, root);
  return root;
}

function realPath(file: string): string | undefined {
  try {
    return realpathSync.native(file);
  } catch {
    // It is not there, or not to be read: then nothing of it is.
    return undefined;
  }
}
