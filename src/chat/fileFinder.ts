/**
 * Finds what the user may attach to a question or name in it: files and folders of the workspace, and the names that
 * attached files define. Leaves out excluded and secret files. Starts no engine.
 */
import { oneLine } from '../../engine/protocol/oneLine.ts';
import * as vscode from '../vscode.ts';
import { isSecret } from '../completion/filter.ts';
import type { Settings } from '../config.ts';
import type { Found, ContextRef, FoundName } from './chatMessages.ts';
import { symbolsOf } from './chatSymbols.ts';

/** In addition to files.exclude: folders that would fill the list with files nobody asks about. */
const EXCLUDED = '**/{node_modules,.git,.venv,__pycache__}/**';
const MAX_FILES = 8000;
const FRESH_MS = 15_000;
const MAX_FOUND = 12;
const MAX_BEYOND = 50;
/** Files of a folder are counted up to this number. */
const MAX_COUNTED = 400;

/** The list is read at the first use and again after a while. Nothing watches the disk. */
export class FileFinder {
  readonly #settings: Settings;
  /** The workspace has more files than the list. */
  #cutOff = false;
  #list: { read: number; entries: Promise<Found[]> } | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** The best matches. Without a query, the files open in editors. */
  async find(query: string): Promise<Found[]> {
    const listed = await this.#entries();
    const entries = !this.#cutOff ? listed : [...listed, ...(await this.#beyond(query, listed))];
    const open = new Set(openFiles().map(String));
    if (!query)
      return [...entries.filter(({ uri }) => open.has(uri)), ...entries.filter(({ uri }) => !open.has(uri))].slice(
        0,
        MAX_FOUND,
      );
    const scored = entries.map((entry) => ({
      entry,
      score: rank(query, entry.detail ? `${entry.detail}/${entry.name}` : entry.name) + (open.has(entry.uri) ? 1 : 0),
    }));
    return scored
      .filter(({ score }) => score >= 2)
      .sort((a, b) => b.score - a.score || a.entry.name.length - b.entry.name.length)
      .slice(0, MAX_FOUND)
      .map(({ entry }) => entry);
  }

  /** All of them, open ones first. */
  async all(): Promise<Found[]> {
    const entries = await this.#entries();
    const open = new Set(openFiles().map(String));
    return [...entries.filter(({ uri }) => open.has(uri)), ...entries.filter(({ uri }) => !open.has(uri))];
  }

  /** The files open in editors. Secret files can be attached only by their full name. */
  open(): vscode.Uri[] {
    return openFiles().filter((uri) => !isSecret({ uri, languageId: '' }, this.#settings.current.completion));
  }

  #entries(): Promise<Found[]> {
    if (!this.#list || Date.now() - this.#list.read > FRESH_MS)
      this.#list = { read: Date.now(), entries: this.#read() };
    return this.#list.entries;
  }

  /** Files of that name in a workspace that is larger than the list. */
  async #beyond(query: string, listed: readonly Found[]): Promise<Found[]> {
    if (!/^[\w.-]{2,}$/.test(query)) return [];
    const anyCase = query.replace(/[a-z]/gi, (letter) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`);
    const known = new Set(listed.map(({ uri }) => uri));
    return (await this.#files(`**/*${anyCase}*`, MAX_BEYOND))
      .map((uri) => entry(uri, 'file'))
      .filter(({ uri }) => !known.has(uri));
  }

  async #files(glob: string, max: number): Promise<vscode.Uri[]> {
    const found = await vscode.workspace.findFiles(glob, EXCLUDED, max);
    if (max === MAX_FILES) this.#cutOff = found.length === max;
    return found.filter((uri) => !isSecret({ uri, languageId: '' }, this.#settings.current.completion));
  }

  async #read(): Promise<Found[]> {
    const files = await this.#files('**/*', MAX_FILES);
    const folders = new Map<string, vscode.Uri>();
    for (const uri of files) {
      const root = vscode.workspace.getWorkspaceFolder(uri)?.uri;
      for (let folder = parent(uri); root && folder.path.length > root.path.length; folder = parent(folder))
        folders.set(folder.toString(), folder);
    }
    return [
      ...files.map((uri) => entry(uri, 'file')),
      ...[...folders.values()].map((uri) => entry(uri, 'folder')),
    ].sort((a, b) => a.detail.localeCompare(b.detail) || a.name.localeCompare(b.name));
  }
}

/**
 * Up to `max` files of a folder, the number of files, and how many were left out as secret. `more`: there are more than
 * the few hundred that were looked at.
 */
export async function filesIn(
  folder: vscode.Uri,
  settings: Settings,
  max: number,
): Promise<{ taken: vscode.Uri[]; total: number; numSecret: number; more: boolean }> {
  const found = await vscode.workspace.findFiles(new vscode.RelativePattern(folder, '**/*'), EXCLUDED, MAX_COUNTED + 1);
  const more = found.length > MAX_COUNTED;
  // The extra file that shows that there are more is not counted.
  const counted = found.slice(0, MAX_COUNTED);
  const files = counted
    .filter((uri) => !isSecret({ uri, languageId: '' }, settings.current.completion))
    .sort((a, b) => a.path.localeCompare(b.path));
  return { taken: files.slice(0, max), total: files.length, numSecret: counted.length - files.length, more };
}

/** Files open in editors, the active group's first. */
function openFiles(): vscode.Uri[] {
  return vscode.window.tabGroups.all.flatMap(({ tabs }) =>
    tabs.flatMap(({ input }) => (input instanceof vscode.TabInputText ? [input.uri] : [])),
  );
}

function entry(uri: vscode.Uri, kind: Found['kind']): Found {
  const path = oneLine(vscode.workspace.asRelativePath(uri));
  const at = path.lastIndexOf('/');
  return { kind, uri: uri.toString(), name: path.slice(at + 1), detail: at < 0 ? '' : path.slice(0, at) };
}

function parent(uri: vscode.Uri): vscode.Uri {
  return uri.with({ path: uri.path.slice(0, uri.path.lastIndexOf('/')) });
}

/** Whether a URI is a folder. */
export async function kindOf(uri: vscode.Uri): Promise<Found['kind']> {
  return await Promise.resolve(vscode.workspace.fs.stat(uri)).then(
    ({ type }) => ((type & vscode.FileType.Directory) !== 0 ? 'folder' : 'file'),
    () => 'file',
  );
}

/**
 * How well a path matches what was typed; 0 is no match. The name counts more than its folders, consecutive letters
 * more than scattered ones.
 */
export function rank(query: string, path: string): number {
  const wanted = query.toLowerCase();
  const whole = path.toLowerCase();
  const name = whole.slice(whole.lastIndexOf('/') + 1);
  if (name === wanted) return 100;
  if (name.startsWith(wanted)) return 80;
  if (name.includes(wanted)) return 60;
  if (whole.includes(wanted)) return 40;
  if (isSubsequence(wanted, name)) return 20;
  return isSubsequence(wanted, whole) ? 10 : 0;
}

function isSubsequence(wanted: string, text: string): boolean {
  let at = 0;
  for (const letter of wanted) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

/**
 * The best matches among the names that the attached files define, for commands such as `/where`. Without a query, the
 * first names of the files.
 */
export async function namesIn(refs: readonly ContextRef[], query: string): Promise<FoundName[]> {
  const files = refs.filter(({ kind }) => kind === 'file');
  const found = await Promise.all(
    files.map(async ({ uri, name: detail }) => {
      const opened = Promise.resolve(vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true)));
      const document = await opened.catch(() => undefined);
      const names = document ? (await symbolsOf(document)).map(({ name }) => bareName(name)) : [];
      return names.filter((name) => name !== undefined).map((name) => ({ name, detail }));
    }),
  );
  const unique = [...new Map(found.flat().map((each) => [`${each.name} ${each.detail}`, each])).values()];
  if (!query) return unique.slice(0, MAX_FOUND);
  return unique
    .map((each) => ({ each, score: rank(query, each.name) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.each.name.length - b.each.name.length)
    .slice(0, MAX_FOUND)
    .map(({ each }) => each);
}

/**
 * Language extensions may add parameters or brackets to a name. Undefined for a text such as `<function>`, which is
 * not a name.
 */
const bareName = (name: string): string | undefined => /^[#\p{L}_$][\p{L}\p{N}_$]*/u.exec(name)?.[0];
