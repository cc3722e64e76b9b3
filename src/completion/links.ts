/** Resolves symbolic links of files. Results are remembered for a few seconds, because every key asks. */
import { realpathSync } from 'node:fs';
import path from 'node:path';
import * as vscode from '../vscode.ts';

/** A new or changed link is noticed after this time at the latest. */
const FRESH_MS = 5000;
/** Number of remembered files: more than the chat's file picker asks about at once. */
const MAX_REMEMBERED = 10_000;

interface Target {
  readonly uri: vscode.Uri | undefined;
  /** Time of the lookup in ms. */
  readonly read: number;
}

/** By URI, oldest lookup first. */
const targets = new Map<string, Target>();
/** Real paths of the current workspace folders, by URI. */
const roots = new Map<string, string>();
/** The workspace folders that `roots` is valid for. */
let rooted = '';

/**
 * The real location of a file on the machine on which the extension runs; undefined if it is the same or cannot be
 * read. A target inside a workspace folder gets a URI under that folder, even if the folder is itself a link.
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
    if (targets.size < MAX_REMEMBERED) break;
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

/** Forgets everything when the workspace folders change, because the URIs of files change, too. */
function forgetOthers(folders: readonly vscode.WorkspaceFolder[]): void {
  const now = folders.map(({ uri }) => uri.toString()).join('\n');
  if (now === rooted) return;
  rooted = now;
  roots.clear();
  targets.clear();
}

function rootOf({ uri }: vscode.WorkspaceFolder): string | undefined {
  const key = uri.toString();
  // A folder that is missing now may appear later.
  const root = roots.get(key) ?? realPath(uri.fsPath);
  if (root !== undefined) roots.set(key, root);
  return root;
}

function realPath(file: string): string | undefined {
  try {
    return realpathSync.native(file);
  } catch {
    // The file is missing or unreadable, so nothing of it is read.
    return undefined;
  }
}
