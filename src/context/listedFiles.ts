/**
 * Files of a folder that people work on: without files.exclude, search.exclude and .gitignore. Includes secret files:
 * checking each of thousands would access the disk (`isSecret`). Reads no file but .gitignore.
 */
import { posix } from 'node:path';
import ignore, { type Ignore } from 'ignore';
import * as vscode from '../vscode.ts';
import { globMatches } from '../completion/filter.ts';

/** Length of a slice, in ms. */
const MAX_SLICE_MS = 5;

export interface ListedFiles {
  /** Sorted by path. */
  files: vscode.Uri[];
  /** There are more files, which were not looked at. */
  cutOff: boolean;
}

/** @param glob of the wanted files @param max of the files looked at, including ignored ones */
export async function listedFiles(
  folder: vscode.Uri,
  { glob, max, token }: { glob: string; max: number; token?: vscode.CancellationToken | undefined },
): Promise<ListedFiles> {
  const excluded = searchExcludes(folder);
  // Braces do not nest in the editor's globs: exclude patterns with braces are checked afterwards.
  const [nested, simple] = [true, false].map((nests) => excluded.filter((each) => /[{},]/.test(each) === nests)) as [
    string[],
    string[],
  ];
  const find = (glob: string, max?: number) =>
    vscode.workspace.findFiles(
      new vscode.RelativePattern(folder, glob),
      simple.length ? `{${simple.join(',')}}` : undefined,
      max,
      token,
    );
  const found = await find(glob, max + 1);
  const cutOff = found.length > max;
  // Only one search for .gitignore files: looking into each folder above the found files would be thousands of
  // accesses.
  const ignored = await ignoreFiles(folder, cutOff ? await find('**/.gitignore') : found.filter(isIgnoreFile));
  const files = await filtered(
    found,
    (uri) => !nested.some((each) => globMatches({ uri, languageId: '' }, each)) && !ignored(uri) && !isIgnoreFile(uri),
  );
  return { files: files.sort((a, b) => (a.path < b.path ? -1 : 1)), cutOff };
}

const isIgnoreFile = ({ path }: vscode.Uri): boolean => path.endsWith('/.gitignore');

export function relativePath(folder: vscode.Uri, uri: vscode.Uri): string {
  return uri.path.slice(folder.path.replace(/\/$/, '').length + 1);
}

function searchExcludes(folder: vscode.Uri): string[] {
  const setting = vscode.workspace.getConfiguration('search', folder).get<Record<string, unknown>>('exclude') ?? {};
  return Object.entries(setting)
    .filter(([, value]) => value === true)
    .map(([glob]) => glob);
}

/** The rules of the .gitignore files `found` in a folder and of those above it, up to the workspace's root. */
async function ignoreFiles(folder: vscode.Uri, found: readonly vscode.Uri[]): Promise<(uri: vscode.Uri) => boolean> {
  const root = vscode.workspace.getWorkspaceFolder(folder)?.uri ?? folder;
  const parts = relativePath(root, folder).split('/').filter(Boolean);
  const above = ['', ...parts.map((_, i) => parts.slice(0, i + 1).join('/'))];
  const folders = new Set([...above, ...found.map((uri) => posix.dirname(`/${relativePath(root, uri)}`).slice(1))]);
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
    // Most folders have no .gitignore.
    return undefined;
  }
}

/** Which files the .gitignore files of a folder exclude, following git's rules. */
export class IgnoreFiles {
  /** The folder of each file with a trailing slash (empty at the top), outermost first. */
  readonly #files: { folder: string; rules: Ignore }[];

  /** Texts by the path of their folder relative to the top, which is empty. */
  constructor(texts: ReadonlyMap<string, string>) {
    this.#files = [...texts]
      .map(([path, text]) => ({ folder: path === '' ? '' : `${path}/`, rules: ignore().add(text) }))
      .sort((a, b) => a.folder.length - b.folder.length);
  }

  /** `path` is a file's, relative to the top, with forward slashes. */
  ignores(path: string): boolean {
    // From the top down: files in an ignored folder stay ignored, whatever a .gitignore inside says.
    for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1))
      if (this.#verdict(path.slice(0, slash + 1))) return true;
    return this.#verdict(path);
  }

  /** The deepest file with a matching pattern decides. */
  #verdict(path: string): boolean {
    let verdict = false;
    for (const { folder, rules } of this.#files) {
      if (!path.startsWith(folder) || path === folder) continue;
      const { ignored, unignored } = rules.test(path.slice(folder.length));
      if (ignored || unignored) verdict = ignored;
    }
    return verdict;
  }
}

/**
 * The first `max` items that pass, in order. Works in slices, so that the extension host can do other work in between,
 * such as completions.
 */
export async function filtered<T>(
  items: Iterable<T>,
  passes: (item: T) => boolean,
  max = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const kept: T[] = [];
  let since = performance.now();
  for (const item of items) {
    if (kept.length >= max) break;
    if (performance.now() - since >= MAX_SLICE_MS) {
      await new Promise((resolve) => setImmediate(resolve));
      since = performance.now();
    }
    if (passes(item)) kept.push(item);
  }
  return kept;
}
