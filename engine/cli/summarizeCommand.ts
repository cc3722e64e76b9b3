/** The command `kvasir summarize`: summarizes a file, one symbol of it, or a folder. Chooses the files of a folder. */
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, extname, join, resolve, sep } from 'node:path';
import { RequestError } from '../protocol/errors.ts';
import type { Task } from '../protocol/tasks.ts';
import type { Client, Done } from './cliClient.ts';
import { FileError, isSecret } from './cliFiles.ts';
import { type CommandLine, samplingOf, text } from './options.ts';
import { UsageError } from './usageError.ts';
import { folderFooter, log, print, printJson, progressOf, statsLine } from './output.ts';
import { runTask, withClient } from './session.ts';

export async function summarize(line: CommandLine): Promise<number> {
  const path = line.positionals[0];
  if (path === undefined) throw new UsageError('summarize: a file or a folder is needed');
  const symbol = text(line, 'symbol');
  const info = await stat(path).catch(() => {
    throw new RequestError('badRequest', `${path}: no such file or folder`);
  });
  if (info.isDirectory() && symbol !== undefined) throw new UsageError('summarize: --symbol needs a file');
  return withClient(line, async (client) => {
    const leftOut = new LeftOut();
    const task = info.isDirectory() ? await folderTask(client, path, leftOut) : await fileTask(client, path, symbol);
    const started = performance.now();
    const onParts = line.json ? undefined : progressOf('files');
    const footerOf =
      task.kind === 'summarizeFolder'
        ? (done: Done) => folderFooter(task.docIds.length, done, performance.now() - started)
        : undefined;
    await runTask(line, client, task, { id: 'summarize', sampling: samplingOf(line), onParts }, { footerOf });
    // On stdout, because the note belongs to the summaries.
    if (leftOut.toString()) (line.json ? log : print)(`note: left out: ${leftOut}`);
    if (line.json) printJson(statsLine(await client.stats()));
    return 0;
  });
}

async function fileTask(client: Client, path: string, symbol: string | undefined): Promise<Task> {
  const { docId, text } = await client.openFile(path);
  if (!text.trim()) throw new RequestError('badRequest', `${path}: is empty`);
  return {
    kind: 'summarize',
    docId,
    ...(symbol === undefined ? {} : { range: { ...definitionOf(text, symbol, path), label: symbol } }),
  };
}

async function folderTask(client: Client, folder: string, leftOut: LeftOut): Promise<Task> {
  const [docIds, paths]: [string[], string[]] = [[], []];
  for (const path of await sourceFiles(folder, leftOut)) {
    try {
      const { docId, text } = await client.openFile(join(folder, path));
      if (!text.trim()) {
        leftOut.file('empty');
        continue;
      }
      docIds.push(docId);
      paths.push(path.split(sep).join('/'));
    } catch (error) {
      leftOut.file(error instanceof FileError ? error.kind : 'that cannot be read');
    }
  }
  if (!docIds.length)
    throw new RequestError(
      'badRequest',
      `${folder}: no source file to summarize${leftOut.toString() && ` (left out: ${leftOut})`}`,
    );
  return { kind: 'summarizeFolder', path: basename(resolve(folder)), docIds, paths };
}

const escapeForRegExp = (name: string) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Words that may stand before the name in a definition. */
const DEFINITION_WORDS = [
  'export|default|public|private|protected|static|abstract|async|readonly|declare|override|get|set|pub',
  'func|fn|def|class|function\\*?|interface|type|enum|struct|trait|impl|const|let|var|namespace|module',
].join('|');

/**
 * The range of a definition: the line that looks most like one, and the lines below it that are indented more. A line
 * that is indented more may be a call or a local name. One without a word such as `function` may be a call, too.
 */
export function definitionOf(source: string, symbol: string, path: string): { start: number; end: number } {
  // `Store.flush` is the method. Of several classes the first one counts.
  const name = escapeForRegExp(symbol.slice(symbol.lastIndexOf('.') + 1));
  const withWord = `^([ \\t]*)(?:(?:${DEFINITION_WORDS})\\s+)+(?:\\([^)]*\\)\\s*)?${name}(?![\\w$])`;
  const withoutWord = `^([ \\t]*)(?:[\\w$<>]+[ \\t]+)*${name}[ \\t]*(?:<[^>]*>)?[(:=?]`;
  const all = [withWord, withoutWord].flatMap((each) => [...source.matchAll(new RegExp(each, 'gm'))]);
  const least = Math.min(...all.map(([, space = '']) => space.length));
  const found = all.find(([, space = '']) => space.length === least);
  if (!found) throw new RequestError('badRequest', `${path}: no definition of "${symbol}" was found in this file`);
  const start = source.lastIndexOf('\n', found.index) + 1;
  const indent = /^[ \t]*/.exec(source.slice(start))![0].length;
  const lines = source.slice(start).split('\n');
  let numLines = 1;
  while (
    numLines < lines.length &&
    (!lines[numLines]!.trim() ||
      /^[ \t]*/.exec(lines[numLines]!)![0].length > indent ||
      /^[ \t]*[)}\]]/.test(lines[numLines]!))
  ) {
    const closes = /^[ \t]*[)}\]]/.test(lines[numLines]!) && /^[ \t]*/.exec(lines[numLines]!)![0].length <= indent;
    numLines++;
    if (closes) break;
  }
  return { start, end: start + lines.slice(0, numLines).join('\n').length };
}

/** Most files of a folder that are summarized. */
const MAX_FILES = 100;
const SKIPPED_FOLDERS = new Set([
  'node_modules',
  'dist',
  'build',
  'out',
  'target',
  'vendor',
  'coverage',
  '__pycache__',
  'venv',
]);
const SOURCE = new Set(
  '.ts .tsx .mts .cts .js .jsx .mjs .cjs .py .go .rs .java .kt .c .h .cc .cpp .hpp .cs .rb .php .swift .scala .sh .lua .vue .svelte'.split(
    ' ',
  ),
);
/** Most left-out folders that are listed by name. */
const MAX_SHOWN_FOLDERS = 5;

/** Counts files and folders that were left out, by reason. */
export class LeftOut {
  readonly #files = new Map<string, number>();
  readonly #folders = new Map<string, number>();

  file(reason: string, count = 1): void {
    this.#files.set(reason, (this.#files.get(reason) ?? 0) + count);
  }

  folder(name: string): void {
    this.#folders.set(name, (this.#folders.get(name) ?? 0) + 1);
  }

  /** "3 files not source code, 1 empty; the folders .git, node_modules". Empty if nothing was left out. */
  toString(): string {
    const files = [...this.#files]
      .map(([reason, count], i) => `${count}${i ? '' : count === 1 ? ' file' : ' files'} ${reason}`)
      .join(', ');
    const names = [...this.#folders]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, count]) => (count === 1 ? name : `${name} (${count})`));
    const more = names.length - MAX_SHOWN_FOLDERS;
    const shown = `${names.slice(0, MAX_SHOWN_FOLDERS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
    const folders = names.length ? `the ${names.length === 1 ? 'folder' : 'folders'} ${shown}` : '';
    return [files, folders].filter(Boolean).join('; ');
  }
}

/** Paths relative to the folder, sorted folder by folder. */
export async function sourceFiles(folder: string, leftOut: LeftOut): Promise<string[]> {
  const files = await walk(folder, await realpath(folder).catch(() => folder), '', leftOut);
  if (files.length > MAX_FILES) leftOut.file(`beyond the first ${MAX_FILES}`, files.length - MAX_FILES);
  return files.slice(0, MAX_FILES);
}

/** Lists files below a folder. Leaves out links. @param real path of the folder with resolved links */
async function walk(folder: string, real: string, under: string, leftOut: LeftOut): Promise<string[]> {
  const found = await readdir(join(folder, under), { withFileTypes: true }).catch(() => null);
  if (!found) {
    leftOut.folder(`${under || folder} (cannot be read)`);
    return [];
  }
  const files: string[] = [];
  for (const entry of found.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(under, entry.name);
    if (entry.isDirectory()) {
      if (entry.name.startsWith('.') || SKIPPED_FOLDERS.has(entry.name)) leftOut.folder(entry.name);
      else files.push(...(await walk(folder, real, path, leftOut)));
    } else if (isSecret(join(folder, path)) || isSecret(join(real, path))) leftOut.file('with secrets');
    else if (!entry.isFile()) leftOut.file(entry.isSymbolicLink() ? 'a link' : 'of another kind');
    else if (entry.name.startsWith('.')) leftOut.file('hidden');
    else if (!SOURCE.has(extname(entry.name))) leftOut.file('not source code');
    else files.push(path);
  }
  return files;
}
