/**
 * Files near the current one that are not open, for completions to copy from: same language, nearest folders first,
 * read from the machine's disk. Read one at a time with pauses while the user works near them. Never excluded or
 * git-ignored files; nothing for a model that does not copy.
 */
import { posix } from 'node:path';
import * as vscode from '../vscode.ts';
import { MAX_COPIED } from '../../engine/protocol/tasks.ts';
import type { EngineClient } from '../client/engineClient.ts';
import { FILES, globMatches, isSecret, isWanted } from '../completion/filter.ts';
import { targetOf } from '../completion/links.ts';
import type { Settings } from '../config.ts';
import { filtered, listedFiles } from './listedFiles.ts';

/**
 * With 40 files a token costs 1.048 nats on the projects that copying was fitted on, with 100 files 1.025
 * (docs/decisions/0016-token-healing-and-copy-prior.md).
 */
const MAX_FILES = 100;
/** In bytes. Longer files are data. */
const MAX_FILE_BYTES = 200_000;
/** Files of one folder. */
const MAX_LISTED = 2000;
/** Pause between two files. Encoding one takes the engine 1 to 10 ms. */
const PAUSE_MS = 100;
/** Nothing watches the disk. After this time, changed files are looked for while the user types. */
const FRESH_MS = 5 * 60_000;
/** Groups of file extensions that import each other, by the editor's language ids. */
const LANGUAGES: Readonly<Record<string, string>> = {
  ts: 'typescript',
  tsx: 'typescriptreact',
  mts: 'typescript',
  cts: 'typescript',
  js: 'javascript',
  jsx: 'javascriptreact',
  mjs: 'javascript',
  cjs: 'javascript',
};
const SCRIPTS = Object.keys(LANGUAGES);
/**
 * Other code extensions. Data files (configuration, variables, tables) are not copied from: they may hold passwords
 * under any name.
 */
const CODE = new Set(
  [
    'py pyi pyw',
    'go',
    'rs',
    'java kt kts scala groovy',
    'c h cc cpp cxx hh hpp hxx m mm ino',
    'cs fs vb',
    'rb rake',
    'php',
    'swift dart',
    'css scss sass less',
    'html vue svelte astro',
    'sh bash zsh fish',
    'ps1 psm1',
    'lua pl pm r jl',
    'ex exs erl hs ml mli elm clj cljs lisp scm',
    'zig nim d v sv vhd',
    'sql proto graphql',
  ]
    .join(' ')
    .split(' '),
);

interface Sent {
  readonly uri: vscode.Uri;
  /** Modification time when the file was read; -1: saved since. */
  mtime: number;
}

export class ProjectFiles implements vscode.Disposable {
  readonly #client: Pick<EngineClient, 'state' | 'epoch' | 'notify'>;
  readonly #settings: Settings;
  readonly #subscriptions: vscode.Disposable[];
  /** What the engine has, by its id there. */
  readonly #sent = new Map<string, Sent>();
  #epoch = -1;
  /** The neighbourhood that is or was read, and when that began. */
  #around: { key: string; since: number } | undefined;
  #reading = Promise.resolve();

  constructor(client: Pick<EngineClient, 'state' | 'epoch' | 'notify'>, settings: Settings) {
    this.#client = client;
    this.#settings = settings;
    this.#subscriptions = [
      vscode.workspace.onDidSaveTextDocument(({ uri }) => {
        const sent = this.#sent.get(idOf(uri));
        if (sent) sent.mtime = -1;
      }),
      settings.onDidChange(() => this.forget()),
    ];
  }

  /** Ids of what the engine has so far, nearest first, without `open` ones. Continues reading in the background. */
  near(document: vscode.TextDocument, open: ReadonlySet<string>): string[] {
    if (!this.#isWanted(document)) return [];
    const root = vscode.workspace.getWorkspaceFolder(document.uri)?.uri;
    const extensions = familyOf(document.uri.path);
    if (!root || !extensions) return [];
    this.#follow(document, root, extensions);
    // Sources of the previous neighbourhood have another language or folder. They are used until this one is read.
    const fits = ({ uri }: Sent): boolean =>
      !open.has(uri.toString()) &&
      uri.toString() !== document.uri.toString() &&
      extensions.includes(extensionOf(uri.path)) &&
      vscode.workspace.getWorkspaceFolder(uri)?.uri.toString() === root.toString();
    const found = [...this.#sent]
      .filter(([, sent]) => fits(sent))
      .map(([id, { uri }]) => ({ id, shared: numSharedFolders(uri, document.uri) }));
    // The order does not depend on the order of reading: if a text occurs in many files, only some are used.
    return found.sort((a, b) => b.shared - a.shared || (a.id < b.id ? -1 : 1)).map(({ id }) => id);
  }

  /** Removes everything from the engine. Files that may be read are looked for again. */
  forget(): void {
    for (const id of this.#sent.keys()) this.#drop(id);
    this.#around = undefined;
  }

  /** Resolves when the current reading has ended. */
  get idle(): Promise<void> {
    return this.#reading;
  }

  dispose(): void {
    this.forget();
    for (const subscription of this.#subscriptions) subscription.dispose();
  }

  #isWanted(document: vscode.TextDocument): boolean {
    const { state } = this.#client;
    return (
      this.#settings.current.completion.snippets &&
      state.kind === 'ready' &&
      state.model.copiesFiles &&
      FILES.has(document.uri.scheme)
    );
  }

  #follow(document: vscode.TextDocument, root: vscode.Uri, extensions: readonly string[]): void {
    if (this.#epoch !== this.#client.epoch) {
      this.#epoch = this.#client.epoch;
      this.#sent.clear();
      this.#around = undefined;
    }
    const key = `${posix.dirname(document.uri.path)} ${extensions[0]}`;
    const isStale = [...this.#sent.values()].some(({ mtime }) => mtime < 0);
    if (this.#around?.key === key && !isStale && Date.now() - this.#around.since < FRESH_MS) return;
    const around = { key, since: Date.now() };
    this.#around = around;
    for (const sent of this.#sent.values()) if (sent.mtime < 0) sent.mtime = 0;
    // The current reading ends by itself, because it is for another neighbourhood.
    this.#reading = this.#reading
      .then(() => this.#read(document, root, extensions, () => this.#around === around))
      .catch(() => undefined);
  }

  async #read(
    at: vscode.TextDocument,
    root: vscode.Uri,
    extensions: readonly string[],
    goesOn: () => boolean,
  ): Promise<void> {
    const files = await this.#nearest(at, root, extensions, goesOn);
    const wanted = new Set(files.map(idOf));
    for (const id of [...this.#sent.keys()]) if (goesOn() && !wanted.has(id)) this.#drop(id);
    for (const uri of files) {
      if (!goesOn()) return;
      if (await this.#send(uri, goesOn)) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  /** Looks in the file's own folder first, and in more of the project while there are too few files. */
  async #nearest(
    { uri: at, languageId }: vscode.TextDocument,
    root: vscode.Uri,
    extensions: readonly string[],
    goesOn: () => boolean,
  ): Promise<vscode.Uri[]> {
    const glob = `**/{${[...extensions.map((extension) => `*.${extension}`), '.gitignore'].join(',')}}`;
    let files: vscode.Uri[] = [];
    for (let folder = vscode.Uri.joinPath(at, '..'); goesOn(); folder = vscode.Uri.joinPath(folder, '..')) {
      const listed = (await listedFiles(folder, { glob, max: MAX_LISTED })).files
        .map((uri) => ({ uri, shared: numSharedFolders(uri, at) }))
        .sort((a, b) => b.shared - a.shared);
      // Each check accesses the disk, so it stops after the wanted number.
      files = (
        await filtered(
          listed,
          ({ uri }) => uri.toString() !== at.toString() && this.#mayBeRead(uri, languageId),
          MAX_FILES,
        )
      ).map(({ uri }) => uri);
      if (files.length === MAX_FILES || folder.path.length <= root.path.length) break;
    }
    return files;
  }

  /**
   * Only files in which completions are wanted, and no links to files outside the workspace folders: a project's links
   * may lead anywhere.
   */
  #mayBeRead(uri: vscode.Uri, languageId: string): boolean {
    const own = LANGUAGES[extensionOf(uri.path)] ?? languageId;
    const { completion } = this.#settings.current;
    if (
      isSecret({ uri, languageId: own }, completion) ||
      !isWanted(completion.languages, own, (glob) => globMatches({ uri, languageId: own }, glob))
    )
      return false;
    const target = targetOf(uri);
    return target === undefined || vscode.workspace.getWorkspaceFolder(target) !== undefined;
  }

  /** Whether there was anything to send. */
  async #send(uri: vscode.Uri, goesOn: () => boolean): Promise<boolean> {
    const id = idOf(uri);
    const { epoch } = this.#client;
    try {
      const { mtime, size } = await vscode.workspace.fs.stat(uri);
      if (this.#sent.get(id)?.mtime === mtime) return false;
      const text = size > MAX_FILE_BYTES ? '' : new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
      // In the meantime the engine may have been replaced, or the file may have become secret.
      if (epoch !== this.#client.epoch || !goesOn()) return false;
      if (text.trim() === '' || text.includes('\0')) throw new Error('there is nothing to copy from');
      this.#client.notify({ type: 'sourceChanged', docId: id, path: uri.path, text: text.slice(0, MAX_COPIED) });
      this.#sent.set(id, { uri, mtime });
      return true;
    } catch {
      // Missing, unreadable or not text: skipped.
      this.#drop(id);
      return false;
    }
  }

  #drop(id: string): void {
    if (this.#sent.delete(id) && this.#epoch === this.#client.epoch)
      this.#client.notify({ type: 'sourceClosed', docId: id });
  }
}

/** The parts of a URI that tell where a file is. */
interface Location {
  readonly authority: string;
  readonly path: string;
}

/**
 * Number of common folders of two files, from the root; -1 on different machines. A file counts as one of its own
 * folders, so the cells of a notebook are nearest to each other.
 */
export function numSharedFolders(a: Location, b: Location): number {
  if (a.authority !== b.authority) return -1;
  const [first, second] = [a.path.split('/'), b.path.split('/')];
  const differs = first.findIndex((name, i) => name !== second[i]);
  return differs < 0 ? first.length : differs;
}

/** Open documents have their URI as id. */
function idOf(uri: vscode.Uri): string {
  return `copy ${uri.toString()}`;
}

/** Extensions of files that import each other; undefined for a name without a code extension. */
function familyOf(path: string): readonly string[] | undefined {
  const extension = extensionOf(path);
  if (SCRIPTS.includes(extension)) return SCRIPTS;
  return CODE.has(extension) ? [extension] : undefined;
}

function extensionOf(path: string): string {
  return posix.extname(path).slice(1);
}
