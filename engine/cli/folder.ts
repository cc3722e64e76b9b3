/** The files of a folder that `kvasir summarize` reads, and how many it leaves out, and why. */
import { readdir, realpath } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { isSecret } from './secrets.ts';

/** A summary of more files than this is not read by anyone. */
const MOST_FILES = 100;
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
/** Names of folders that are shown. */
const SHOWN_FOLDERS = 5;

/** What was left out, by reason. */
export class LeftOut {
  readonly #files = new Map<string, number>();
  readonly #folders = new Map<string, number>();

  file(reason: string, count = 1): void {
    this.#files.set(reason, (this.#files.get(reason) ?? 0) + count);
  }

  folder(name: string): void {
    this.#folders.set(name, (this.#folders.get(name) ?? 0) + 1);
  }

  /** "3 files not source code, 1 empty; the folders .git, node_modules"; empty where nothing was. */
  toString(): string {
    const files = [...this.#files]
      .map(([reason, count], i) => `${count}${i ? '' : count === 1 ? ' file' : ' files'} ${reason}`)
      .join(', ');
    const names = [...this.#folders]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, count]) => (count === 1 ? name : `${name} (${count})`));
    const more = names.length - SHOWN_FOLDERS;
    const folders = names.length
      ? `the ${names.length === 1 ? 'folder' : 'folders'} ${names.slice(0, SHOWN_FOLDERS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
      : '';
    return [files, folders].filter(Boolean).join('; ');
  }
}

/** Paths relative to the folder, sorted folder by folder. */
export async function sourceFiles(folder: string, leftOut: LeftOut): Promise<string[]> {
  const files = await walk(folder, await realpath(folder).catch(() => folder), '', leftOut);
  if (files.length > MOST_FILES) leftOut.file(`beyond the first ${MOST_FILES}`, files.length - MOST_FILES);
  return files.slice(0, MOST_FILES);
}

/** `real`: what it is where `folder` is the name of a link; links in it are left out. */
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
