/**
 * Looks into folders, within limits, so that no folder can hold a search up. What is missing or cannot be read is
 * empty. Does not know models.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, opendir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';

const MAX_FOLDERS = 3000;
const MAX_NAMES = 100_000;
/** Of one folder: what is made of them at once must not hold up the editor. */
const MAX_NAMES_OF_FOLDER = 20_000;
const MAX_FINDINGS = 1000;
/** Names of a folder that are read at once. */
const NAMES_AT_ONCE = 256;

export interface FoundFile {
  isFile: boolean;
  bytes: number;
  mtimeMs: number;
  /** The same for all names of a file or folder. */
  id: string;
}

/** What is in a folder. */
interface Inside {
  names: string[];
  /** Those that may be folders. */
  folders: string[];
}

/** The limits hold for one place, such as the folder of one tool. */
export class Look {
  readonly #wanted: ReadonlySet<string>;
  readonly #late: AbortSignal | undefined;
  #numFolders = 0;
  #numNames = 0;
  #numFindings = 0;
  #isCut = false;
  #denied: string | undefined;

  /**
   * @param wanted names that come first, in any case, so that no limit leaves them out
   * @param late ends the look
   */
  constructor(wanted: readonly string[] = [], late?: AbortSignal) {
    this.#wanted = new Set(wanted.map((name) => name.toLowerCase()));
    this.#late = late;
  }

  /** Whether a limit has left something out. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** The first folder that this user must not read. */
  get denied(): string | undefined {
    return this.#denied;
  }

  /** Counts a finding. False if it is one too many, or too late. */
  take(): boolean {
    if (this.#numFindings < MAX_FINDINGS && !this.#late?.aborted) {
      this.#numFindings++;
      return true;
    }
    this.cut();
    return false;
  }

  /** Something is left out. */
  cut(): void {
    this.#isCut = true;
  }

  async names(folder: string): Promise<string[]> {
    return (await this.read(folder)).names;
  }

  /** Sorted, without hidden ones. */
  async read(folder: string): Promise<Inside> {
    const [names, files]: [string[], Set<string>] = [[], new Set()];
    if (this.#numFolders >= MAX_FOLDERS || this.#late?.aborted) {
      this.cut();
      return { names, folders: [] };
    }
    try {
      const entries = await opendir(folder, { bufferSize: NAMES_AT_ONCE });
      // A file in place of a folder does not count.
      this.#numFolders++;
      for await (const entry of entries) {
        const isFull = names.length === MAX_NAMES_OF_FOLDER || ++this.#numNames > MAX_NAMES;
        if (isFull || this.#late?.aborted) {
          this.cut();
          break;
        }
        if (entry.name.startsWith('.')) continue;
        names.push(entry.name);
        if (entry.isFile()) files.add(entry.name);
      }
    } catch (error) {
      if (isDenial(error)) this.#denied ??= folder;
    }
    const rank = (name: string) => (this.#wanted.size > 0 && this.#wanted.has(name.toLowerCase()) ? 0 : 1);
    names.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
    return { names, folders: names.filter((name) => !files.has(name)) };
  }
}

/** Follows links. Null for what is missing, and for a link that leads nowhere or in a circle. */
export async function lookAt(file: string): Promise<FoundFile | null> {
  try {
    const info = await stat(file, { bigint: true });
    return {
      isFile: info.isFile(),
      bytes: Number(info.size),
      mtimeMs: Number(info.mtimeMs),
      // Some file systems number nothing.
      id: info.ino === 0n ? await realpath(file) : `${info.dev}:${info.ino}`,
    };
  } catch {
    return null;
  }
}

/** Whether this user must not see the folder. */
export async function isDenied(folder: string): Promise<boolean> {
  return stat(folder).then(() => false, isDenial);
}

function isDenial(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EACCES' || code === 'EPERM';
}

/** The text of a file with at most `maxBytes`. Null for anything else. */
export async function shortText(file: string, maxBytes: number): Promise<string | null> {
  return withFile(file, async (handle, { size }) =>
    size > maxBytes ? null : (await bytesAt(handle, 0, size)).toString(),
  );
}

/** `count` bytes from each of the places; less where the file ends. Null if it cannot be read. */
export async function pieces(file: string, places: readonly number[], count: number): Promise<Buffer | null> {
  return withFile(file, async (handle) =>
    Buffer.concat(await Promise.all(places.map((place) => bytesAt(handle, place, count)))),
  );
}

async function withFile<T>(
  file: string,
  read: (handle: FileHandle, info: { size: number }) => Promise<T>,
): Promise<T | null> {
  let handle: FileHandle | undefined;
  try {
    // O_NONBLOCK: a pipe is no file; opening it must not wait for a writer.
    handle = await open(path.resolve(file), constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const info = await handle.stat();
    return info.isFile() ? await read(handle, info) : null;
  } catch {
    return null;
  } finally {
    await handle?.close();
  }
}

async function bytesAt(handle: FileHandle, place: number, count: number): Promise<Buffer> {
  const buffer = Buffer.alloc(count);
  const { bytesRead } = await handle.read(buffer, 0, count, place);
  return buffer.subarray(0, bytesRead);
}
