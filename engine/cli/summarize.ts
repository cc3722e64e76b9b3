/** `kvasir summarize`: a file, one symbol of it, or a folder. */
import { readdir, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { RequestError } from '../errors.ts';
import type { Task } from '../protocol.ts';
import type { Client } from './client.ts';
import { type CommandLine, samplingOf, text, UsageError } from './options.ts';
import { log, printJson, statsLine } from './output.ts';
import { runTask, withClient } from './session.ts';

/** A summary of more files than this is not read by anyone. */
const MOST_FILES = 100;
const SKIPPED_FOLDERS = new Set(['node_modules', 'dist', 'build', 'out', 'target', 'vendor', 'coverage', '__pycache__', 'venv']);
const SOURCE = new Set('.ts .tsx .mts .cts .js .jsx .mjs .cjs .py .go .rs .java .kt .c .h .cc .cpp .hpp .cs .rb .php .swift .scala .sh .lua .vue .svelte'.split(' '));

export async function summarize(line: CommandLine): Promise<number> {
  const path = line.positionals[0];
  if (path === undefined) throw new UsageError('summarize: a file or a folder is needed');
  const symbol = text(line, 'symbol');
  const info = await stat(path).catch(() => {
    throw new RequestError('badRequest', `${path}: no such file or folder`);
  });
  if (info.isDirectory() && symbol !== undefined) throw new UsageError('summarize: --symbol needs a file');
  return withClient(line, async (client) => {
    const task = info.isDirectory() ? await folderTask(client, path) : await fileTask(client, path, symbol);
    await runTask(line, client, task, { id: 'summarize', sampling: samplingOf(line), onParts: (numDone, numTotal) => log(`${numDone} of ${numTotal} files`) });
    if (line.json) printJson(statsLine(await client.stats()));
    return 0;
  });
}

async function fileTask(client: Client, path: string, symbol: string | undefined): Promise<Task> {
  const { docId, text } = await client.openFile(path);
  if (!text.trim()) throw new RequestError('badRequest', `${path}: is empty`);
  return { kind: 'summarize', docId, ...(symbol === undefined ? {} : { range: { ...definitionOf(text, symbol, path), label: symbol } }) };
}

async function folderTask(client: Client, path: string): Promise<Task> {
  const files = await sourceFiles(path);
  if (!files.length) throw new RequestError('badRequest', `${path}: no source files in this folder`);
  if (files.length > MOST_FILES) log(`note: ${files.length} source files, the first ${MOST_FILES} are summarised`);
  const docIds: string[] = [];
  for (const file of files.slice(0, MOST_FILES)) {
    try {
      docIds.push((await client.openFile(file)).docId);
    } catch (error) {
      log(`note: ${(error as Error).message}`);
    }
  }
  if (!docIds.length) throw new RequestError('badRequest', `${path}: none of its files can be read as source code`);
  return { kind: 'summarizeFolder', path, docIds };
}

async function sourceFiles(folder: string): Promise<string[]> {
  const found = await readdir(folder, { withFileTypes: true }).catch((error: Error) => {
    log(`note: ${error.message}`);
    return [];
  });
  const entries = found.sort((a, b) => (a.name < b.name ? -1 : 1));
  const files: string[] = [];
  for (const entry of entries) {
    if (entry.name.startsWith('.')) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!SKIPPED_FOLDERS.has(entry.name)) files.push(...(await sourceFiles(path)));
    } else if (entry.isFile() && SOURCE.has(extname(entry.name))) files.push(path);
  }
  return files;
}

const escapeForRegExp = (name: string) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** The range of a name's definition: its first line that looks like one, and what is indented deeper below. */
export function definitionOf(source: string, symbol: string, path: string): { start: number; end: number } {
  const name = escapeForRegExp(symbol);
  const defines = new RegExp(`^[ \\t]*(?:(?:export|default|public|private|protected|static|abstract|async|readonly|declare|override|get|set|pub|func|fn|def|class|function\\*?|interface|type|enum|struct|trait|impl|const|let|var|namespace|module)\\s+)+(?:\\([^)]*\\)\\s*)?${name}(?![\\w$])|^[ \\t]*(?:[\\w$<>]+[ \\t]+)*${name}[ \\t]*(?:<[^>]*>)?[(:=?]`, 'm');
  const found = defines.exec(source);
  if (!found) throw new RequestError('badRequest', `${path}: no definition of "${symbol}" was found in this file`);
  const start = source.lastIndexOf('\n', found.index) + 1;
  const indent = /^[ \t]*/.exec(source.slice(start))![0].length;
  const lines = source.slice(start).split('\n');
  let numLines = 1;
  while (numLines < lines.length && (!lines[numLines]!.trim() || /^[ \t]*/.exec(lines[numLines]!)![0].length > indent || /^[ \t]*[)}\]]/.test(lines[numLines]!))) {
    const closes = /^[ \t]*[)}\]]/.test(lines[numLines]!) && /^[ \t]*/.exec(lines[numLines]!)![0].length <= indent;
    numLines++;
    if (closes) break;
  }
  return { start, end: start + lines.slice(0, numLines).join('\n').length };
}
