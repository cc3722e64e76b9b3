/**
 * The disk tier: segments of contexts as files in one folder, under a cap, so that the cache survives a restart. Owns
 * the folder and the order of removal. Does not decide what is written, or when.
 */
import { randomBytes } from 'node:crypto';
import { chmod, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import path from 'node:path';
import { makeFolders } from './makeFolders.ts';
import {
  decodeSegment,
  encodeSegment,
  FORMER_NAME,
  type FoundSegment,
  fileName,
  ownerOf,
  parseName,
  type SegmentName,
  type SegmentEntry,
  SegmentIndex,
} from './segment.ts';
import { SPILL_NAME } from './spillFile.ts';

const TEMPORARY = /^\.segment-[0-9a-f]{12}$/;
/** An older temporary file was left by a process that died. */
const MAX_TEMPORARY_AGE_MS = 10 * 60_000;

/**
 * Files are private (mode 0600), because rows can be turned back into text. Other processes may use the folder at the
 * same time: files appear whole (renamed into place) and may disappear at any time. The cap is for all processes.
 */
export class DiskTier {
  readonly folder: string;
  /** Cap, in bytes. */
  readonly maxBytes: number;
  readonly #log: (line: string) => void;
  readonly #index = new SegmentIndex();

  private constructor(folder: string, maxBytes: number, log: (line: string) => void) {
    this.folder = folder;
    this.maxBytes = maxBytes;
    this.#log = log;
  }

  /** Makes the folder if it is missing, and reads its file names. @throws an error of the file system. */
  static async open(folder: string, maxBytes: number, log: (line: string) => void): Promise<DiskTier> {
    const disk = new DiskTier(folder, maxBytes, log);
    await disk.#look();
    await chmod(folder, 0o700);
    await disk.#evictFor(0);
    return disk;
  }

  /** Bytes of all files, including those of other models. */
  get bytes(): number {
    return this.#index.bytes;
  }

  get numSegments(): number {
    return this.#index.size;
  }

  has(key: string): boolean {
    return this.#index.get(key) !== undefined;
  }

  /** The segments of the beginning of a context, in order. Reads no file. */
  find(root: string, ids: readonly number[]): FoundSegment[] {
    return this.#index.find(root, ids);
  }

  /** The encoded runs of a segment. Null when it is gone or damaged; then it leaves the index. */
  async read(segment: FoundSegment): Promise<Uint8Array[] | null> {
    const entry = this.#index.get(segment.key);
    if (!entry) return null;
    const file = path.join(this.folder, fileName(entry));
    try {
      const runs = decodeSegment(await readFile(file), segment);
      if (runs) {
        entry.lastUse = Date.now();
        await utimes(file, entry.lastUse / 1000, entry.lastUse / 1000).catch(() => {});
        return runs;
      }
      this.#log(`${file} is damaged and is not used: what it had is computed anew`);
      // Segments that continue it could not be found any more, not even to be removed.
      await this.remove([entry]);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') await this.remove([entry]).catch(() => {});
      else this.#log(`${file} cannot be read: ${(error as Error).message}`);
      this.#index.remove(entry);
    }
    return null;
  }

  /**
   * Writes a segment of a file with this path. May remove others. Returns false when the cap leaves no space beside the
   * segments before it. @throws an error of the file system; then no file is left behind.
   */
  async write(segment: FoundSegment, runs: readonly Uint8Array[], filePath: string): Promise<boolean> {
    if (this.has(segment.key)) return true;
    const bytes = encodeSegment(runs, segment);
    // Other processes count towards the cap too.
    await this.#look();
    if (this.has(segment.key)) return true;
    // Another process has removed the segment before it, so it could not be found.
    if (segment.startIndex > 0 && !this.has(segment.parent)) return false;
    if (!(await this.#evictFor(bytes.length, segment.parent))) return false;
    const { parent, key, numTokens } = segment;
    const entry: SegmentEntry = {
      parent,
      key,
      owner: ownerOf(key, filePath),
      numTokens,
      bytes: bytes.length,
      lastUse: Date.now(),
    };
    const temporary = path.join(this.folder, `.segment-${randomBytes(6).toString('hex')}`);
    try {
      const file = await open(temporary, 'wx', 0o600);
      try {
        await file.writeFile(bytes);
      } finally {
        await file.close();
      }
      await rename(temporary, path.join(this.folder, fileName(entry)));
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {});
      // Another process has cleared the folder meanwhile.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      throw error;
    }
    this.#index.add(entry);
    return true;
  }

  /**
   * Removes these segments and all that continue them, the last ones first. @throws the first error of the file system,
   * after removing the rest.
   */
  async remove(segments: readonly SegmentName[]): Promise<void> {
    await removeFiles(this.#index.removeAll(segments).map((entry) => path.join(this.folder, fileName(entry))));
  }

  /**
   * Removes all segments of files with this path, of any model, and all that continue them. @throws the first error,
   * after removing the rest.
   */
  async removeFile(filePath: string): Promise<void> {
    await this.#look();
    await this.remove(this.#index.entries().filter(({ key, owner }) => owner === ownerOf(key, filePath)));
  }

  /**
   * Removes everything except segments of files with the `kept` paths and those before them. @throws the first error,
   * after removing the rest.
   */
  async clear(kept: readonly string[] = []): Promise<void> {
    await this.#look();
    const staying = this.#index.ofFiles(kept);
    for (const entry of this.#index.entries()) if (!staying.has(entry)) this.#index.remove(entry);
    const namesStaying = new Set(Array.from(staying, fileName));
    const names = await readdir(this.folder);
    const filesOf = (isOne: (name: string) => boolean): string[] =>
      names.filter(isOne).map((name) => path.join(this.folder, name));
    // On Windows the spill file of a running process cannot be removed. That is no error.
    await removeFiles(filesOf((name) => SPILL_NAME.test(name))).catch(() => {});
    await removeFiles(
      filesOf(
        (name) =>
          (parseName(name) !== null && !namesStaying.has(name)) || FORMER_NAME.test(name) || TEMPORARY.test(name),
      ),
    );
  }

  /**
   * Updates the index with what other processes wrote and removed. Removes half-written files of dead processes, files
   * of earlier versions, and the second of two files that two processes wrote for the same segment.
   */
  async #look(): Promise<void> {
    await makeFolders(this.folder, 0o700);
    const names = new Set(await readdir(this.folder));
    for (const entry of this.#index.entries()) if (!names.delete(fileName(entry))) this.#index.remove(entry);
    const removed = { half: 0, former: 0 };
    await Promise.all(
      [...names].map(async (name) => {
        const file = path.join(this.folder, name);
        const info = await stat(file).catch(() => null);
        if (!info?.isFile()) return;
        const parsed = parseName(name);
        if (parsed) this.#index.add({ ...parsed, bytes: info.size, lastUse: info.mtimeMs });
        const isSecond = parsed !== null && fileName(this.#index.get(parsed.key)!) !== name;
        const isFormer = FORMER_NAME.test(name);
        const isHalf = TEMPORARY.test(name) && Date.now() - info.mtimeMs > MAX_TEMPORARY_AGE_MS;
        if (!isSecond && !isFormer && !isHalf) return;
        const isGone = await rm(file, { force: true }).then(
          () => true,
          () => false,
        );
        if (isGone && isFormer) removed.former++;
        if (isGone && isHalf) removed.half++;
      }),
    );
    if (removed.half > 0)
      this.#log(
        `Files that a process had not written to their end, removed from ${this.folder}: ${removed.half}; what they had is computed anew`,
      );
    if (removed.former > 0)
      this.#log(`Files of an earlier version, which nothing can use, removed from ${this.folder}: ${removed.former}`);
  }

  /**
   * Removes segments until so many bytes fit under the cap; never `kept` and those before it. Returns false when that
   * is not enough.
   */
  async #evictFor(bytes: number, kept?: string): Promise<boolean> {
    let staying = 0;
    for (const entry of this.#index.chain(kept ?? '')) staying += entry.bytes;
    if (staying + bytes > this.maxBytes) return false;
    if (this.bytes + bytes <= this.maxBytes) return true;
    for (const entry of this.#index.victims(kept)) {
      this.#index.remove(entry);
      await rm(path.join(this.folder, fileName(entry)), { force: true }).catch(() => {});
      if (this.bytes + bytes <= this.maxBytes) return true;
    }
    return false;
  }
}

/** Removes files. @throws the first error of the file system, after removing the others. */
async function removeFiles(files: readonly string[]): Promise<void> {
  let failure: unknown = null;
  for (const file of files) {
    await rm(file, { force: true }).catch((error: unknown) => {
      failure ??= error;
    });
  }
  if (failure) throw failure;
}
