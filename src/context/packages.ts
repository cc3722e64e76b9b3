/**
 * Names of the packages that a project has, from the nearest package.json above a file. Reads it once and again after it
 * has changed. Sends nothing.
 */
import * as vscode from '../vscode.ts';

const NAME = 'package.json';
const LISTS = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'];
/** Folders above a file that are searched. */
const MAX_LEVELS = 20;

export class Packages implements vscode.Disposable {
  /** By folder. Undefined while it is read, and for a folder without packages. */
  readonly #known = new Map<string, readonly string[] | undefined>();
  readonly #watcher = vscode.workspace.createFileSystemWatcher(`**/${NAME}`);
  readonly #subscriptions: vscode.Disposable[];

  constructor() {
    const forget = () => this.#known.clear();
    this.#subscriptions = [
      this.#watcher.onDidChange(forget),
      this.#watcher.onDidCreate(forget),
      this.#watcher.onDidDelete(forget),
    ];
  }

  /** Undefined if they are not known, or not known yet: the first call only begins to read. */
  of({ uri }: Pick<vscode.TextDocument, 'uri'>): readonly string[] | undefined {
    const root = vscode.workspace.getWorkspaceFolder(uri)?.uri;
    if (!root) return undefined;
    const folder = vscode.Uri.joinPath(uri, '..');
    const key = folder.toString();
    if (!this.#known.has(key)) {
      this.#known.set(key, undefined);
      void this.#read(root, folder).then((names) => {
        // A change may have come while it was read.
        if (this.#known.has(key)) this.#known.set(key, names);
      });
    }
    return this.#known.get(key);
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#watcher.dispose();
  }

  /** The packages of all package.json files from a folder up to the root: a workspace has more than one. */
  async #read(root: vscode.Uri, start: vscode.Uri): Promise<readonly string[] | undefined> {
    let names: string[] | undefined;
    let folder = start;
    for (let i = 0; i < MAX_LEVELS; i++) {
      const here = await namesIn(vscode.Uri.joinPath(folder, NAME));
      if (here) names = [...(names ?? []), ...here];
      if (folder.path === root.path || folder.path === '/') break;
      folder = vscode.Uri.joinPath(folder, '..');
    }
    return names;
  }
}

/** Undefined if there is no such file, or it cannot be read. */
async function namesIn(file: vscode.Uri): Promise<string[] | undefined> {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(await vscode.workspace.fs.readFile(file)));
    if (typeof value !== 'object' || value === null) return undefined;
    const { name, ...lists } = value as Record<string, unknown>;
    const listed = LISTS.flatMap((list) => Object.keys(Object(lists[list])));
    return typeof name === 'string' ? [name, ...listed] : listed;
  } catch {
    return undefined;
  }
}
