/**
 * Files of a folder that somebody works on: what files.exclude, search.exclude and .gitignore leave. Secrets are among them: asking of
 * each takes a look at the disk (`isSecret`), and there may be thousands. Reads no file but .gitignore.
 */
import { posix } from 'node:path';
import * as vscode from '../vscode.ts';
import { globMatches } from '../completion/filter.ts';
import { IgnoreFiles } from './ignoreFiles.ts';

export interface ListedFiles {
  /** Sorted by path. */
  files: vscode.Uri[];
  /** There are more, which were not looked at. */
  cutOff: boolean;
}

/** @param glob of those that are wanted @param most that are looked at, ignored ones among them */
export async function listedFiles(folder: vscode.Uri, { glob, most, token }: { glob: string; most: number; token?: vscode.CancellationToken | undefined }): Promise<ListedFiles> {
  const excluded = searchExcludes(folder);
  // Braces do not nest in the editor's globs: what holds some is sorted out afterwards.
  const [nested, simple] = [true, false].map((nests) => excluded.filter((each) => /[{},]/.test(each) === nests)) as [string[], string[]];
  const found = await vscode.workspace.findFiles(new vscode.RelativePattern(folder, glob), simple.length ? `{${simple.join(',')}}` : undefined, most + 1, token);
  const ignored = await ignoreFiles(folder, found, found.length > most);
  const files = found.filter((uri) => !nested.some((each) => globMatches({ uri, languageId: '' }, each)) && !ignored(uri) && !/\/\.gitignore$/.test(uri.path));
  return { files: files.sort((a, b) => (a.path < b.path ? -1 : 1)), cutOff: found.length > most };
}

export function relativePath(folder: vscode.Uri, uri: vscode.Uri): string {
  return uri.path.slice(folder.path.replace(/\/$/, '').length + 1);
}

function searchExcludes(folder: vscode.Uri): string[] {
  const setting = vscode.workspace.getConfiguration('search', folder).get<Record<string, unknown>>('exclude') ?? {};
  return Object.entries(setting).filter(([, value]) => value === true).map(([glob]) => glob);
}

/** The .gitignore files from the workspace's root down to the found files; `cutOff`: not all of them are among those. */
async function ignoreFiles(folder: vscode.Uri, found: readonly vscode.Uri[], cutOff: boolean): Promise<(uri: vscode.Uri) => boolean> {
  const root = vscode.workspace.getWorkspaceFolder(folder)?.uri ?? folder;
  const folders = new Set(['']);
  const parts = relativePath(root, folder).split('/').filter(Boolean);
  for (let depth = 1; depth <= parts.length; depth++) folders.add(parts.slice(0, depth).join('/'));
  for (const uri of found) {
    if (!cutOff && !uri.path.endsWith('/.gitignore')) continue;
    for (let above = posix.dirname(relativePath(root, uri)); above !== '.' && !folders.has(above); above = posix.dirname(above)) folders.add(above);
  }
  const texts = new Map<string, string>();
  await Promise.all(
    [...folders].map(async (path) => {
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
