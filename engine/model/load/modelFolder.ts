/**
 * Reads files of a model folder and nothing outside it: refuses names and symbolic links that leave the folder. Only in
 * the Hugging Face cache a link may end in the `blobs` folder of its repository. Does not know what the files mean.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { RequestError, reasonOf } from '../../protocol/errors.ts';
import { oneLine } from '../../protocol/oneLine.ts';
import { JsonTooLarge, parseBoundedJson } from './boundedJson.ts';

/** Far above any real tokenizer.json. The largest ones have about 40 MB. */
const MAX_TOKENIZER_BYTES = 64 * 2 ** 20;
/** Of every other text. Real ones have less than 4 MB. */
const MAX_TEXT_BYTES = 16 * 2 ** 20;
/** How a file begins that stands for one that Git has not fetched. */
const LFS_POINTER = 'version https://git-lfs.github.com/spec/';
const MAX_LFS_POINTER_BYTES = 1024;

export function invalid(message: string): RequestError {
  return new RequestError('modelInvalid', message);
}

export function unsupported(message: string): RequestError {
  return new RequestError('modelUnsupported', message);
}

export function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** What a folder in a snapshot of the Hugging Face cache belongs to: `models--Qwen--Qwen3-0.6B/snapshots/<revision>`. */
interface Repository {
  readonly dir: string;
  /** "Qwen3-0.6B" */
  readonly name: string;
  /** Whether the folder is the snapshot itself. */
  readonly isSnapshot: boolean;
}

/** Null for a folder that is not in the cache. */
function repositoryOf(dir: string): Repository | null {
  const parts = dir.split(path.sep);
  for (let i = 1; i < parts.length - 1; i++) {
    const name = parts[i] === 'snapshots' ? /^models--(?:.+?--)?(.+)$/s.exec(parts[i - 1]!)?.[1] : undefined;
    if (name !== undefined) return { dir: parts.slice(0, i).join(path.sep), name, isSnapshot: i === parts.length - 2 };
  }
  return null;
}

/**
 * The newest snapshot that has a config.json. `dir`: a repository in the Hugging Face cache, or its `snapshots` folder.
 * Null for any other folder.
 */
export async function newestSnapshot(dir: string): Promise<string | null> {
  const snapshots = path.basename(path.resolve(dir)) === 'snapshots' ? dir : path.join(dir, 'snapshots');
  let newest: { folder: string; mtimeMs: number } | null = null;
  for (const name of await readdir(snapshots).catch(() => [])) {
    const folder = path.join(snapshots, name);
    if ((await stat(path.join(folder, 'config.json')).catch(() => null)) === null) continue;
    const { mtimeMs } = await stat(folder);
    if (newest === null || mtimeMs > newest.mtimeMs) newest = { folder, mtimeMs };
  }
  return newest?.folder ?? null;
}

/** Whether a folder is in the Hugging Face cache, whose files are links to blobs. */
export async function inHubCache(dir: string): Promise<boolean> {
  return repositoryOf(await realpath(dir).catch(() => dir)) !== null;
}

export interface OpenFile {
  readonly name: string;
  readonly handle: FileHandle;
  readonly size: number;
  readonly mtimeMs: number;
}

export class ModelFolder {
  /** The path as given, for messages. */
  readonly dir: string;
  /** Says a fault as it is. A GGUF file says those of made files in its own words. */
  readonly said = (message: string): string => message;
  private readonly root: string;
  /** Only in the Hugging Face cache. */
  private readonly repository: Repository | null;

  private constructor(dir: string, root: string) {
    this.dir = dir;
    this.root = root;
    this.repository = repositoryOf(root);
  }

  /** The name that is shown to the user: of the folder, or of the Hugging Face repository of a snapshot. */
  get name(): string {
    return oneLine(this.repository?.isSnapshot ? this.repository.name : path.basename(path.resolve(this.dir)));
  }

  /** The names in the folder, sorted. Empty if it cannot be listed. */
  async names(): Promise<string[]> {
    return (await readdir(this.root).catch(() => [])).sort();
  }

  static async open(dir: string): Promise<ModelFolder> {
    let root: string;
    try {
      root = await realpath(dir);
      if (!(await stat(root)).isDirectory())
        throw invalid(
          `${dir} is no model; a model is a folder with config.json, safetensors weights and tokenizer.json, ` +
            'or a GGUF file.',
        );
    } catch (error) {
      if (error instanceof RequestError) throw error;
      throw invalid(
        `The model folder ${dir} cannot be opened: ${isMissing(error) ? 'there is no such folder' : reasonOf(error)}.`,
      );
    }
    return new ModelFolder(dir, root);
  }

  /** Opens a regular file of the folder. Null if there is none. `name` is not trusted. */
  async openFile(name: string): Promise<OpenFile | null> {
    if (
      name === '' ||
      name.includes('\0') ||
      name.includes('\\') ||
      path.isAbsolute(name) ||
      /^[a-zA-Z]:/.test(name) ||
      name.split('/').includes('..')
    ) {
      throw invalid(
        `The file name ${JSON.stringify(name.slice(0, 100))} leaves the model folder; only files inside it are read.`,
      );
    }
    const shown = name.slice(0, 100);
    let real: string;
    try {
      real = await realpath(path.join(this.root, name));
    } catch (error) {
      if (isMissing(error)) return null;
      throw invalid(`${shown} cannot be read: ${reasonOf(error)}.`);
    }
    // The files of a snapshot are in `blobs`. All links in `real` are resolved, so none of them is a link.
    const inside =
      real.startsWith(this.root.endsWith(path.sep) ? this.root : this.root + path.sep) ||
      (this.repository !== null && path.dirname(real) === path.join(this.repository.dir, 'blobs'));
    if (!inside) {
      throw invalid(
        `${shown} is a symbolic link that leaves the model folder; only files inside it are read: copy the file there.`,
      );
    }
    try {
      // O_NONBLOCK: opening a pipe must fail the regular-file check instead of waiting for a writer.
      const handle = await open(real, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
      const info = await handle.stat();
      if (info.isFile()) return { name, handle, size: info.size, mtimeMs: info.mtimeMs };
      await handle.close();
    } catch (error) {
      throw invalid(`${shown} cannot be read: ${reasonOf(error)}.`);
    }
    throw invalid(`${shown} is not a regular file.`);
  }

  /** The whole text of a file, or null if there is none. */
  async readText(name: string): Promise<string | null> {
    const file = await this.openFile(name);
    if (!file) return null;
    try {
      const most = name === 'tokenizer.json' ? MAX_TOKENIZER_BYTES : MAX_TEXT_BYTES;
      if (file.size > most)
        throw invalid(`${name} has ${file.size} bytes; at most ${most} are read: download it again.`);
      const text = await file.handle.readFile('utf8');
      refuseLfsPointer(name, text);
      return text;
    } catch (error) {
      throw error instanceof RequestError ? error : invalid(`${name} cannot be read: ${reasonOf(error)}.`);
    } finally {
      await file.handle.close();
    }
  }

  /** The JSON object in a file, with its text. Null if there is no such file. */
  async readJson(name: string): Promise<{ text: string; value: Record<string, unknown> } | null> {
    const text = await this.readText(name);
    return text === null ? null : { text, value: parseJsonObject(name, text) };
  }
}

/** `start`: at least the first bytes of a short file, as text. */
export function refuseLfsPointer(name: string, start: string): void {
  if (start.startsWith(LFS_POINTER) && start.length <= MAX_LFS_POINTER_BYTES)
    throw invalid(
      `${name} is a Git LFS pointer instead of the file: run "git lfs pull" in the folder, or download the file.`,
    );
}

/** Removes a byte order mark. */
export function withoutByteOrderMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/**
 * Parses the text of the file `name`. The error says where the text is wrong. It does not quote the text, because files
 * may be private and messages have one line.
 */
export function parseJsonObject(name: string, text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseBoundedJson(withoutByteOrderMark(text));
  } catch (error) {
    if (error instanceof JsonTooLarge)
      throw invalid(`${name} ${error.message}, so it is not a file of a model: download it again.`);
    if (/^\s*</.test(text)) throw invalid(`${name} is a web page instead of JSON: download the file again.`);
    // The runtime reports the position of most errors, but not of all.
    const message = error instanceof Error ? error.message : '';
    const at = /\bline \d+ column \d+\b/.exec(message) ?? /\bposition \d+\b/.exec(message);
    throw invalid(
      `${name} is not valid JSON${at ? ` at ${at[0]}` : /end of JSON input/.test(message) ? ': it ends too early' : ''}.`,
    );
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid(`${name} must hold a JSON object.`);
  return value as Record<string, unknown>;
}
