/**
 * Names of the packages that a project has, from package.json or the lists of Python above a file. For Python, also the
 * names of its folders and modules. Reads them once and again after a list has changed. Sends nothing.
 */
import * as vscode from '../vscode.ts';
import { isList, isOtherList, listedIn } from './pythonPackageLists.ts';

const LISTS = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'];
/** Their changes are seen. A new file of Python may make a folder a package. */
const WATCHED =
  '**/{package.json,tsconfig*.json,jsconfig*.json,pyproject.toml,setup.py,setup.cfg,*requirements*.txt,__init__.py}';
/** Folders above a file that are searched. */
const MAX_LEVELS = 20;
/** Files of one folder that are read. */
const MAX_READ = 20;

export class Packages implements vscode.Disposable {
  /** By folder. Undefined while it is read, and for a folder whose packages are not known. */
  #known = new Map<string, readonly string[] | undefined>();
  readonly #watcher = vscode.workspace.createFileSystemWatcher(WATCHED);
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
  of({ uri, languageId }: Pick<vscode.TextDocument, 'uri' | 'languageId'>): readonly string[] | undefined {
    const root = vscode.workspace.getWorkspaceFolder(uri)?.uri;
    if (!root) return undefined;
    const folder = vscode.Uri.joinPath(uri, '..');
    const isPython = languageId === 'python';
    const key = `${isPython} ${folder.toString()}`;
    const known = this.#known;
    if (!known.has(key)) {
      known.set(key, undefined);
      // After a change there is a new map.
      void packagesAbove(root, folder, isPython).then((names) => known.set(key, names));
    }
    return known.get(key);
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#watcher.dispose();
  }
}

/** What a folder lists. Undefined if that is not known. */
type Reader = (folder: vscode.Uri, files: readonly string[]) => Promise<readonly string[] | undefined>;

/**
 * The packages that all folders from one up to the root list, for scripts up to that of the file system: a project may
 * have more than one list. For Python, with the names of what is in these folders. Undefined without a list, and if one
 * cannot be read.
 */
async function packagesAbove(
  root: vscode.Uri,
  start: vscode.Uri,
  isPython: boolean,
): Promise<readonly string[] | undefined> {
  const read: Reader = isPython ? pythonIn : scriptsIn;
  const names: string[] = [];
  const own: string[] = [];
  let folder = start;
  for (let i = 0; i < MAX_LEVELS; i++) {
    const entries = await entriesOf(folder);
    const listed = await read(folder, entries.files);
    if (!listed) return undefined;
    names.push(...listed);
    const sources = isPython ? [entries, await entriesOf(vscode.Uri.joinPath(folder, 'src'))] : [];
    for (const { folders, files } of sources)
      own.push(...folders, ...files.filter((name) => /\.pyi?$/.test(name)).map((name) => name.replace(/\.pyi?$/, '')));
    // Above the folder that is open, a project may list packages for all of its parts.
    if ((isPython && folder.toString() === root.toString()) || folder.path === '/') break;
    folder = vscode.Uri.joinPath(folder, '..');
  }
  return names.length > 0 ? [...new Set([...names, ...own])] : undefined;
}

/** Names that a configuration gives to folders, or folders that it has packages in. */
const NAMED = new RegExp(
  String.raw`"(paths|baseUrl|extends)"|\balias\b|\bmodules:\s*\[|moduleNameMapper|moduleDirectories|modulePaths|` +
    'module-resolver',
);

/** Undefined where paths of the project look like packages. */
const scriptsIn: Reader = async (folder, files) => {
  if (files.some((name) => /^(pnpm-workspace\.ya?ml|(lerna|nx|rush|deno)\.jsonc?)$/.test(name))) return undefined;
  const configurations = await textsOf(
    folder,
    files.filter((name) => /^[jt]sconfig.*\.json$|\.config\.[cm]?[jt]s$|^\.babelrc/.test(name)),
  );
  if (configurations.some((text) => NAMED.test(text))) return undefined;
  const [manifest] = await textsOf(
    folder,
    files.filter((name) => name === 'package.json'),
  );
  return manifest === undefined ? [] : namesIn(manifest);
};

const pythonIn: Reader = async (folder, files) => {
  if (files.some(isOtherList)) return undefined;
  const more = await entriesOf(vscode.Uri.joinPath(folder, 'requirements'));
  const names = [
    ...files.filter(isList),
    ...more.files.filter((name) => /\.(txt|in)$/.test(name)).map((name) => `requirements/${name}`),
  ];
  const texts = await textsOf(folder, names);
  const lists = texts.map((text, i) => listedIn(names[i] as string, text));
  // Only pyproject.toml may leave its list to the others.
  const isOpen = lists.some((list, i) => !list && names[i] !== 'pyproject.toml');
  const listed = lists.flatMap((list) => list ?? []);
  return isOpen || (listed.length === 0 && lists.includes(undefined)) ? undefined : listed;
};

async function entriesOf(folder: vscode.Uri): Promise<{ files: string[]; folders: string[] }> {
  try {
    const entries = await vscode.workspace.fs.readDirectory(folder);
    const named = (isFolder: boolean): string[] =>
      entries.filter(([, type]) => (type & vscode.FileType.Directory) > 0 === isFolder).map(([name]) => name);
    return { files: named(false), folders: named(true) };
  } catch {
    return { files: [], folders: [] };
  }
}

const textsOf = (folder: vscode.Uri, names: readonly string[]): Promise<string[]> =>
  Promise.all(names.slice(0, MAX_READ).map((name) => textOf(vscode.Uri.joinPath(folder, name))));

/** Empty for a file that is gone. */
async function textOf(file: vscode.Uri): Promise<string> {
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(file));
  } catch {
    return '';
  }
}

/** Undefined for a file that is not whole, and for one whose packages are in folders of the workspace or renamed. */
function namesIn(text: string): string[] | undefined {
  try {
    const { name, workspaces, ...lists } = JSON.parse(text) as Record<string, unknown>;
    if (
      workspaces !== undefined ||
      /"(alias|_moduleAliases|moduleNameMapper|moduleDirectories|modulePaths)"|NODE_PATH/.test(text)
    )
      return undefined;
    const listed = LISTS.flatMap((list) => Object.keys(Object(lists[list])));
    return typeof name === 'string' && listed.length > 0 ? [name, ...listed] : listed;
  } catch {
    return undefined;
  }
}
