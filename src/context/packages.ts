/**
 * Names of the packages that a project has, from the nearest package.json above a file. Reads it once and again after it
 * has changed. Sends nothing.
 */
import * as vscode from '../vscode.ts';

/** The manifest comes first. The others may give names to paths of the project. */
const FILES = ['package.json', 'tsconfig.json', 'jsconfig.json'];
const LISTS = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'];
/** Folders above a file that are searched. */
const MAX_LEVELS = 20;

export class Packages implements vscode.Disposable {
  /** By folder. Undefined while it is read, and for a folder whose packages are not known. */
  #known = new Map<string, readonly string[] | undefined>();
  readonly #watcher = vscode.workspace.createFileSystemWatcher(`**/{${FILES.join()}}`);
  readonly #subscriptions: vscode.Disposable[];

  constructor() {
    const forget = () => {
      this.#known = new Map();
    };
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
    const known = this.#known;
    if (!known.has(key)) {
      known.set(key, undefined);
      // After a change there is a new map.
      void packagesAbove(root, folder).then((names) => known.set(key, names));
    }
    return known.get(key);
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#watcher.dispose();
  }
}

/**
 * The packages of all package.json files from a folder up to the root, because a workspace has more than one. Undefined
 * without any, with one that cannot be read, and where paths of the project look like packages.
 */
async function packagesAbove(root: vscode.Uri, start: vscode.Uri): Promise<readonly string[] | undefined> {
  const names: string[] = [];
  let folder = start;
  for (let i = 0; i < MAX_LEVELS; i++) {
    const [manifest, ...configurations] = await Promise.all(
      FILES.map((name) => textOf(vscode.Uri.joinPath(folder, name))),
    );
    if (configurations.some((text) => text !== undefined && /"(paths|baseUrl|extends)"/.test(text))) return undefined;
    const listed = manifest === undefined ? [] : namesIn(manifest);
    if (!listed) return undefined;
    names.push(...listed);
    if (folder.toString() === root.toString() || folder.path === '/') break;
    folder = vscode.Uri.joinPath(folder, '..');
  }
  return names.length > 0 ? names : undefined;
}

/** Undefined if there is no such file. */
async function textOf(file: vscode.Uri): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(file));
  } catch {
    return undefined;
  }
}

/** Undefined for a file that is not whole, and for one whose packages are in folders of the workspace. */
function namesIn(text: string): string[] | undefined {
  try {
    const { name, workspaces, ...lists } = JSON.parse(text) as Record<string, unknown>;
    if (workspaces !== undefined) return undefined;
    const listed = LISTS.flatMap((list) => Object.keys(Object(lists[list])));
    return typeof name === 'string' && listed.length > 0 ? [name, ...listed] : listed;
  } catch {
    return undefined;
  }
}
