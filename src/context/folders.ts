/**
 * Names of what is in the folders that an import can reach: the file's own folder, the one that is being typed, those
 * above up to the workspace folder, and the nearest ones in these. Lists each again after a file in it is created or
 * deleted, and after a while: not all changes are seen. Reads no file.
 */
import { posix } from 'node:path';
import * as vscode from '../vscode.ts';
import { FILES } from '../completion/filter.ts';

/** Folders for one file, the nearest first. */
const MAX_FOLDERS = 64;
/** A folder with more names is data. */
const MAX_NAMES = 500;
/** Of all folders for one file. */
const MAX_ALL_NAMES = 3000;
/** Listed folders that are kept. */
const MAX_KEPT = 1000;
/** Then a folder is listed again. In milliseconds. */
const MAX_AGE = 60_000;
/** Folders that no relative import names. */
const OTHERS = /^(\.|(node_modules|__pycache__|venv|env|coverage)$)/;

interface Listing {
  /** Folders end with `/`. Undefined while it is read, for too many names, and for a folder that does not exist. */
  names?: readonly string[] | undefined;
  listedAt: number;
}

export class Folders implements vscode.Disposable {
  /** By URI. */
  readonly #listings = new Map<string, Listing>();
  readonly #watcher = vscode.workspace.createFileSystemWatcher('**/*', false, true, false);
  readonly #subscriptions: vscode.Disposable[];
  #listing = Promise.resolve();

  constructor() {
    this.#subscriptions = [
      this.#watcher.onDidCreate((uri) => this.#forget(uri)),
      this.#watcher.onDidDelete((uri) => this.#forget(uri)),
      // The watcher leaves out what the user's settings exclude.
      vscode.workspace.onDidCreateFiles(({ files }) => this.#forget(...files)),
      vscode.workspace.onDidDeleteFiles(({ files }) => this.#forget(...files)),
      vscode.workspace.onDidRenameFiles(({ files }) =>
        this.#forget(...files.flatMap(({ oldUri, newUri }) => [oldUri, newUri])),
      ),
      vscode.workspace.onDidSaveTextDocument(({ uri }) => {
        const { names } = this.#listings.get(folderOf(uri)) ?? {};
        if (names && !names.includes(posix.basename(uri.path))) this.#forget(uri);
      }),
    ];
  }

  /**
   * By path, the names in the folders that are known so far. Lists others in the background.
   * @param before the cursor's line up to the cursor
   */
  of({ uri }: Pick<vscode.TextDocument, 'uri'>, before: string): Record<string, string[]> | undefined {
    const root = FILES.has(uri.scheme) ? vscode.workspace.getWorkspaceFolder(uri)?.uri : undefined;
    if (!root) return undefined;
    const reachable = this.#reachable(root, uri, typedFolder(before));
    if (reachable.some((folder) => !this.#isListed(folder))) this.#list(root, uri, typedFolder(before));
    const known: Record<string, string[]> = {};
    let numNames = 0;
    for (const folder of reachable) {
      const { names } = this.#listings.get(folder.toString()) ?? {};
      numNames += names?.length ?? 0;
      if (numNames > MAX_ALL_NAMES) break;
      if (names) known[folder.path] = [...names];
    }
    return known;
  }

  /** Resolves when the listing has ended that goes on now. */
  get idle(): Promise<void> {
    return this.#listing;
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#watcher.dispose();
    this.#listings.clear();
  }

  /** In the order of their distance. Of a folder that is not listed yet, those in it are not known. */
  #reachable(root: vscode.Uri, file: vscode.Uri, typed: string): vscode.Uri[] {
    const own = vscode.Uri.joinPath(file, '..');
    const isIn = ({ path }: vscode.Uri): boolean => `${path}/`.startsWith(`${root.path.replace(/\/$/, '')}/`);
    const found = new Map<string, vscode.Uri>();
    const add = (folder: vscode.Uri): void => {
      if (isIn(folder)) found.set(folder.toString(), folder);
    };
    add(own);
    add(vscode.Uri.joinPath(own, typed));
    for (let folder = own; found.size < MAX_FOLDERS && isIn(folder) && folder.path !== root.path; ) {
      folder = vscode.Uri.joinPath(folder, '..');
      add(folder);
    }
    // The map grows while it is walked through.
    for (const [key, folder] of found)
      for (const name of this.#listings.get(key)?.names ?? [])
        if (found.size >= MAX_FOLDERS) return [...found.values()];
        else if (name.endsWith('/') && !OTHERS.test(name.slice(0, -1)))
          add(vscode.Uri.joinPath(folder, name.slice(0, -1)));
    return [...found.values()];
  }

  /** Lists one folder after the other, nearest first. */
  #list(root: vscode.Uri, file: vscode.Uri, typed: string): void {
    this.#listing = this.#listing.then(async () => {
      for (let numListed = 0; numListed < MAX_FOLDERS; numListed++) {
        const folder = this.#reachable(root, file, typed).find((each) => !this.#isListed(each));
        if (!folder) return;
        await this.#read(folder);
      }
    });
  }

  #isListed(folder: vscode.Uri): boolean {
    const { listedAt } = this.#listings.get(folder.toString()) ?? {};
    return listedAt !== undefined && Math.abs(Date.now() - listedAt) < MAX_AGE;
  }

  async #read(folder: vscode.Uri): Promise<void> {
    const key = folder.toString();
    // An old listing counts until there is a new one.
    const listing: Listing = { names: this.#listings.get(key)?.names, listedAt: Date.now() };
    if (this.#listings.size >= MAX_KEPT) this.#listings.clear();
    // After a change in the folder the map has another one.
    this.#listings.set(key, listing);
    try {
      const entries = await vscode.workspace.fs.readDirectory(folder);
      listing.names = entries.length <= MAX_NAMES ? entries.flatMap(([name, type]) => named(name, type)) : undefined;
    } catch {
      // There is no such folder, or it cannot be read.
      listing.names = undefined;
    }
  }

  #forget(...uris: readonly vscode.Uri[]): void {
    for (const uri of uris) {
      this.#listings.delete(folderOf(uri));
      const changed = uri.toString();
      if (!this.#listings.delete(changed)) continue;
      // For a folder, the editor does not name what is in it.
      for (const key of this.#listings.keys()) if (key.startsWith(`${changed}/`)) this.#listings.delete(key);
    }
  }
}

/** The key of the folder that a file is in. */
function folderOf(uri: vscode.Uri): string {
  const file = uri.toString();
  return file.slice(0, file.lastIndexOf('/'));
}

/** A link to nothing may be either. */
function named(name: string, type: vscode.FileType): string[] {
  if ((type & vscode.FileType.Directory) > 0) return [`${name}/`];
  return (type & vscode.FileType.File) > 0 ? [name] : [name, `${name}/`];
}

/** The folder in the path that a line ends with, from the file's own: in quotes, or of a module of Python. */
export function typedFolder(before: string): string {
  const [, path] = /['"`](\.{1,2}\/(?:[^'"`\s]*\/)?)[^'"`\s/]*$/.exec(before) ?? [];
  const [, dots = '.', module = ''] = /^\s*from\s+(\.+)([\w.]*?)(?:\s+import\b.*)?$/.exec(before) ?? [];
  return posix.join(path ?? '../'.repeat(dots.length - 1) + module.replaceAll('.', '/'), '.');
}
