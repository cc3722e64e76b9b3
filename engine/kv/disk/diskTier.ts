/**
 * The disk tier: segments of contexts as files in one folder, under a cap, so that the cache survives a restart. Owns
 * the folder, its
 * index and the order of removal. Does not decide what is written, or when.
 * Files are private (mode 0600), because rows can be turned back into text. Other processes may use the folder at the
 * same time: files
 * appear whole (renamed into place) and may disappear at any time. The cap is for all processes.
 */
import { randomBytes } from 'node:crypto';
import { chmod, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import path from 'node:path';
import { makeFolders, removeFiles } from './makeFolders.ts';
import {
  decodeSegment,
  encodeSegment,
  FORMER_NAME,
  type FoundSegment,
  fileName,
  type OwnedSegment,
  ownerOf,
  parseName,
  SEGMENT_TOKENS,
  type SegmentName,
  segmentKey,
} from './segment.ts';
import { SPILL_NAME } from './spillFile.ts';

const TEMPORARY = /^\.segment-[0-9a-f]{12}$/;
/** A temporary file so old is of a process that died. */
const STALE_MS = 10 * 60_000;

interface Entry extends OwnedSegment {
  readonly bytes: number;
  /** Of the file's times: across processes, in ms since 1970. */
  lastUse: number;
}

export class DiskTier {
  readonly folder: string;
  /** Cap, in bytes. */
  readonly maxBytes: number;
  /** Of all files, those of other models included. */
  bytes = 0;
  readonly #log: (line: string) => void;
  readonly #byParent = new Map<string, Entry[]>();
  readonly #byKey = new Map<string, Entry>();

  private constructor(folder: string, maxBytes: number, log: (line: string) => void) {
    this.folder = folder;
    this.maxBytes = maxBytes;
    this.#log = log;
  }

  /** Makes the folder if missing, and reads what is there. @throws an error of the file system. */
  static async open(folder: string, maxBytes: number, log: (line: string) => void): Promise<DiskTier> {
    const disk = new DiskTier(folder, maxBytes, log);
    await disk.#look();
    await chmod(folder, 0o700);
    await disk.#makeRoom(0);
    return disk;
  }

  get numSegments(): number {
    return this.#byKey.size;
  }

  has(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** The segments of a context's beginning, in order, the longest ones where there are several. Reads no file. */
  find(root: string, ids: readonly number[]): FoundSegment[] {
    const found: FoundSegment[] = [];
    let parent = root;
    for (let startIndex = 0; startIndex < ids.length; ) {
      const next = this.#longest(parent, ids, startIndex);
      if (!next) break;
      found.push({ parent, key: next.key, numTokens: next.numTokens, startIndex });
      parent = next.key;
      startIndex += next.numTokens;
      // What is shorter is the end of a context.
      if (next.numTokens < SEGMENT_TOKENS) break;
    }
    return found;
  }

  /**
   * The longest segment behind `parent` that the tokens from `startIndex` on begin with. One key for each length: a
   * root has hundreds of segments.
   */
  #longest(parent: string, ids: readonly number[], startIndex: number): Entry | undefined {
    const lengths = new Set(this.#byParent.get(parent)?.map(({ numTokens }) => numTokens));
    for (const numTokens of [...lengths].sort((a, b) => b - a)) {
      const end = startIndex + numTokens;
      const entry = end <= ids.length ? this.#byKey.get(segmentKey(parent, ids.slice(startIndex, end))) : undefined;
      if (entry) return entry;
    }
    return undefined;
  }

  /** The encoded runs of a segment; null when it is gone or damaged, and then it is forgotten. */
  async read(segment: FoundSegment): Promise<Uint8Array[] | null> {
    const entry = this.#byKey.get(segment.key);
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
      // What goes on from it would be found by nobody, not even to be removed.
      await this.remove([entry]);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') await this.remove([entry]).catch(() => {});
      else this.#log(`${file} cannot be read: ${(error as Error).message}`);
      this.#forget(entry);
    }
    return null;
  }

  /**
   * Writes a segment of a file with this path; others may have to go. False where the cap has no room beside the
   * segments before it.
   * @throws an error of the file system; nothing is left behind then.
   */
  async write(segment: FoundSegment, runs: readonly Uint8Array[], filePath: string): Promise<boolean> {
    if (this.has(segment.key)) return true;
    const bytes = encodeSegment(runs, segment);
    // The cap is for all processes together.
    await this.#look();
    if (this.has(segment.key)) return true;
    // Another process has removed what it goes on from: nobody would find it.
    if (segment.startIndex > 0 && !this.has(segment.parent)) return false;
    if (!(await this.#makeRoom(bytes.length, segment.parent))) return false;
    const { parent, key, numTokens } = segment;
    const entry: Entry = {
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
    this.#add(entry);
    return true;
  }

  /**
   * Removes these segments and all that continue them, the last ones first. @throws the first error of the file system,
   * after removing the rest.
   */
  async remove(segments: readonly SegmentName[]): Promise<void> {
    await removeFiles(this.#forgetAll(segments).map((entry) => path.join(this.folder, fileName(entry))));
  }

  /** Forgets these and all that goes on from them; returns those that were there, the last ones first. */
  #forgetAll(segments: readonly SegmentName[]): Entry[] {
    return segments.flatMap(({ key }) => {
      const entry = this.#byKey.get(key);
      if (!entry) return [];
      const next = this.#byParent.get(key) ?? [];
      this.#forget(entry);
      return [...this.#forgetAll(next), entry];
    });
  }

  /**
   * Removes all segments of files with this path, of any model, and all that continue them. @throws the first error,
   * after removing the rest.
   */
  async removeFile(filePath: string): Promise<void> {
    await this.#look();
    await this.remove([...this.#byKey.values()].filter(({ key, owner }) => owner === ownerOf(key, filePath)));
  }

  /**
   * Removes everything except segments of files with the `kept` paths and those before them. @throws the first error,
   * after removing the rest.
   */
  async clear(kept: readonly string[] = []): Promise<void> {
    await this.#look();
    const staying = new Set<Entry>();
    for (const { key, owner } of this.#byKey.values()) {
      if (!kept.some((filePath) => owner === ownerOf(key, filePath))) continue;
      for (let entry = this.#byKey.get(key); entry && !staying.has(entry); entry = this.#byKey.get(entry.parent))
        staying.add(entry);
    }
    for (const entry of [...this.#byKey.values()]) if (!staying.has(entry)) this.#forget(entry);
    const namesStaying = new Set(Array.from(staying, fileName));
    const names = await readdir(this.folder);
    const filesOf = (isOne: (name: string) => boolean): string[] =>
      names.filter(isOne).map((name) => path.join(this.folder, name));
    // Of a process that is alive it cannot be removed, nor must it.
    await removeFiles(filesOf((name) => SPILL_NAME.test(name))).catch(() => {});
    await removeFiles(
      filesOf(
        (name) =>
          (parseName(name) !== null && !namesStaying.has(name)) || FORMER_NAME.test(name) || TEMPORARY.test(name),
      ),
    );
  }

  /**
   * Updates the index with what other processes wrote and removed. Removes files that dead processes left half written,
   * files of
   * earlier versions, and one of two that two processes wrote for the same segment.
   */
  async #look(): Promise<void> {
    await makeFolders(this.folder, 0o700);
    const names = new Set(await readdir(this.folder));
    for (const entry of [...this.#byKey.values()]) if (!names.has(fileName(entry))) this.#forget(entry);
    for (const entry of this.#byKey.values()) names.delete(fileName(entry));
    const removed = { half: 0, former: 0 };
    await Promise.all(
      [...names].map(async (name) => {
        const file = path.join(this.folder, name);
        const info = await stat(file).catch(() => null);
        if (!info?.isFile()) return;
        const parsed = parseName(name);
        if (parsed) this.#add({ ...parsed, bytes: info.size, lastUse: info.mtimeMs });
        const isSecond = parsed !== null && fileName(this.#byKey.get(parsed.key)!) !== name;
        const isFormer = FORMER_NAME.test(name);
        const isHalf = TEMPORARY.test(name) && Date.now() - info.mtimeMs > STALE_MS;
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

  /** Removes least recently used segments that no other continues, never `kept`. False where that is not enough. */
  async #makeRoom(bytes: number, kept?: string): Promise<boolean> {
    let staying = 0;
    for (let entry = this.#byKey.get(kept ?? ''); entry; entry = this.#byKey.get(entry.parent)) staying += entry.bytes;
    if (staying + bytes > this.maxBytes) return false;
    const isFree = (): boolean => this.bytes + bytes <= this.maxBytes;
    if (isFree()) return true;
    const byUse = [...this.#byKey.values()].sort((a, b) => a.lastUse - b.lastUse);
    for (const least of byUse) {
      // With the last that goes on from it, what was used before goes, too: it has only waited for that.
      for (
        let entry: Entry | undefined = least;
        entry && this.#mayGo(entry, kept) && entry.lastUse <= least.lastUse;
        entry = this.#byKey.get(entry.parent)
      ) {
        await this.#remove(entry);
        if (isFree()) return true;
      }
    }
    return false;
  }

  #mayGo({ key }: Entry, kept: string | undefined): boolean {
    return key !== kept && this.#byKey.has(key) && !this.#byParent.has(key);
  }

  async #remove(entry: Entry): Promise<void> {
    this.#forget(entry);
    await rm(path.join(this.folder, fileName(entry)), { force: true }).catch(() => {});
  }

  #add(entry: Entry): void {
    if (this.#byKey.has(entry.key)) return;
    this.#byKey.set(entry.key, entry);
    const siblings = this.#byParent.get(entry.parent);
    if (siblings) siblings.push(entry);
    else this.#byParent.set(entry.parent, [entry]);
    this.bytes += entry.bytes;
  }

  #forget(entry: Entry): void {
    if (!this.#byKey.delete(entry.key)) return;
    const siblings = this.#byParent.get(entry.parent)!.filter((each) => each !== entry);
    if (siblings.length) this.#byParent.set(entry.parent, siblings);
    else this.#byParent.delete(entry.parent);
    this.bytes -= entry.bytes;
  }
}
