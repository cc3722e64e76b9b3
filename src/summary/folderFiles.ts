/**
 * Which files of a folder are summarised: what files.exclude, search.exclude and .gitignore leave, without secrets.
 * Reads no file but .gitignore.
 */
import { posix } from 'node:path';
import * as vscode from '../vscode.ts';
import { globMatches, isSecret } from '../completion/filter.ts';
import type { Config } from '../config.ts';
import { IgnoreFiles } from './ignoreFiles.ts';

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

export async function filesOf(folder: vscode.Uri, settings: Config['completion'], token?: vscode.CancellationToken): Promise<FolderFiles> {
  const excluded = searchExcludes(folder);
  // Braces do not nest in the editor's globs: what holds some is sorted out afterwards.
  const simple = excluded.filter((glob) => !/[{},]/.test(glob));
  const pattern = (glob: string) => new vscode.RelativePattern(folder, glob);
  const found = await vscode.workspace.findFiles(pattern('**/*'), simple.length ? `{${simple.join(',')}}` : undefined, MOST_LISTED + 1, token);
  const ignored = await ignoreFiles(folder, found);
  const wanted = found.filter((uri) => !excluded.some((glob) => globMatches({ uri, languageId: '' }, glob)) && !ignored(uri) && !/\/\.gitignore$/.test(uri.path));
  const secrets = new Set(wanted.filter((uri) => isSecret({ uri, languageId: '' }, settings)));
  const files = wanted.filter((uri) => !secrets.has(uri)).sort((a, b) => (a.path < b.path ? -1 : 1));
  return { files: files.slice(0, MOST_FILES), secrets: [...secrets].map((uri) => relativePath(folder, uri)), numMore: Math.max(0, files.length - MOST_FILES), cutOff: found.length > MOST_LISTED };
}

export function relativePath(folder: vscode.Uri, uri: vscode.Uri): string {
  return uri.path.slice(folder.path.replace(/\/$/, '').length + 1);
}

function searchExcludes(folder: vscode.Uri): string[] {
  const setting = vscode.workspace.getConfiguration('search', folder).get<Record<string, unknown>>('exclude') ?? {};
  return Object.entries(setting).filter(([, value]) => value === true).map(([glob]) => glob);
}

/** The .gitignore files from the workspace's root down to the found files. */
async function ignoreFiles(folder: vscode.Uri, found: readonly vscode.Uri[]): Promise<(uri: vscode.Uri) => boolean> {
  const root = vscode.workspace.getWorkspaceFolder(folder)?.uri ?? folder;
  const folders = [''];
  const parts = relativePath(root, folder).split('/').filter(Boolean);
  for (let depth = 1; depth <= parts.length; depth++) folders.push(parts.slice(0, depth).join('/'));
  folders.push(...found.filter(({ path }) => path.endsWith('/.gitignore')).map((uri) => posix.dirname(relativePath(root, uri)).replace(/^\.$/, '')));
  const texts = new Map<string, string>();
  await Promise.all(
    folders.map(async (path) => {
      const text = await readText(vscode.Uri.joinPath(root, path, '.gitignore'));
      if (text !== undefined) texts.set(path, text);
    }),
  );
  const files = new IgnoreFiles(texts);
  return (uri) => files.ignores(relativePath(root, uri));
}

async function readText(uri: vscode.Uri): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  } catch {
    // Most folders have none.
    return undefined;
  }
}
