/** `kvasir summarize`: a file, one symbol of it, or a folder. */
import { stat } from 'node:fs/promises';
import { basename, join, resolve, sep } from 'node:path';
import { RequestError } from '../errors.ts';
import type { Task } from '../protocol.ts';
import type { Client, Done } from './client.ts';
import { FileError } from './files.ts';
import { LeftOut, sourceFiles } from './folder.ts';
import { type CommandLine, samplingOf, text, UsageError } from './options.ts';
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
    // With the summaries, as what qualifies them.
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

/** The range of a name's definition: its first line that looks like one, and what is indented deeper below. */
export function definitionOf(source: string, symbol: string, path: string): { start: number; end: number } {
  const name = escapeForRegExp(symbol);
  const defines = new RegExp(
    `^[ \\t]*(?:(?:export|default|public|private|protected|static|abstract|async|readonly|declare|override|get|set|pub|func|fn|def|class|function\\*?|interface|type|enum|struct|trait|impl|const|let|var|namespace|module)\\s+)+(?:\\([^)]*\\)\\s*)?${name}(?![\\w$])|^[ \\t]*(?:[\\w$<>]+[ \\t]+)*${name}[ \\t]*(?:<[^>]*>)?[(:=?]`,
    'm',
  );
  const found = defines.exec(source);
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
