/**
 * Segments: parts of a context as files. Keys, file names, the file format, and an index of those in a folder. Does not
 * read or write files.
 */
import { createHash } from 'node:crypto';

/*
 * A segment's key is a hash over all token ids of its context so far and over what rows depend on (model, precision,
 * kernels, codec). So contexts share the files of a common prefix, and a file name tells whether a context is on the
 * disk. The name has the key of the segment before, its own key, the owner and the number of tokens.
 *
 * The owner is a hash over the key and the path of the file that the segment was written for. With the path all its
 * segments can be found, of all models. File names reveal neither the path nor which segments belong together. The
 * owner does not hide a path from somebody who guesses it, but anybody who can list the folder can also read the rows,
 * which are the text.
 *
 * File format, little endian: magic "KVSG", version u32, tokens u32, position of the first token u32, SHA-256 of the
 * key and of the rest [32], then encoded runs (see KvCodec), each after its length u32.
 */

/** Tokens of a segment. The last one of a context may be shorter. Segments begin at multiples of it. */
export const SEGMENT_TOKENS = 256;
/** Must be raised when rows of the same key, or the file format, change. */
const VERSION = 4;
const MAGIC = 0x4753564b;
const HEADER_BYTES = 48;
/** Hexadecimal digits of a key: 128 bits. */
const KEY_DIGITS = 32;
const OWNER_DIGITS = 16;
const NAME = /^([0-9a-f]{32})-([0-9a-f]{32})-([0-9a-f]{16})-([1-9]\d{0,2})\.kv$/;
/** Files of earlier versions. They cannot be found by tokens or by path. */
export const FORMER_NAME = /^[0-9a-f]{32}-[0-9a-f]{32}-\d{1,3}\.kv$/;

export interface SegmentName {
  /** Key of the segment before it, or of the root. */
  readonly parent: string;
  readonly key: string;
  readonly numTokens: number;
}

/** A segment that is on the disk. */
export interface OwnedSegment extends SegmentName {
  /** See ownerOf. */
  readonly owner: string;
}

/** Key of the beginning of every context. `names`: what rows depend on besides their tokens. */
export function rootKey(...names: readonly string[]): string {
  return createHash('sha256')
    .update(JSON.stringify([VERSION, ...names]))
    .digest('hex')
    .slice(0, KEY_DIGITS);
}

/** `ids`: cache ids of the segment's tokens. */
export function segmentKey(parent: string, ids: readonly number[]): string {
  return createHash('sha256').update(parent).update(Int32Array.from(ids)).digest('hex').slice(0, KEY_DIGITS);
}

/** The owner of a segment that was written for the file with this path. */
export function ownerOf(key: string, path: string): string {
  return createHash('sha256')
    .update(JSON.stringify([key, path]))
    .digest('hex')
    .slice(0, OWNER_DIGITS);
}

export function fileName({ parent, key, owner, numTokens }: OwnedSegment): string {
  return `${parent}-${key}-${owner}-${numTokens}.kv`;
}

/** Null: it is not the name of a segment. */
export function parseName(name: string): OwnedSegment | null {
  const [, parent, key, owner, numTokens] = NAME.exec(name) ?? [];
  return owner && Number(numTokens) <= SEGMENT_TOKENS
    ? { parent: parent!, key: key!, owner, numTokens: Number(numTokens) }
    : null;
}

/** A segment of a context. */
export interface FoundSegment extends SegmentName {
  /** Position of its first token. */
  readonly startIndex: number;
}

/** `runs`: encoded, together the tokens of the segment. */
export function encodeSegment(runs: readonly Uint8Array[], { key, numTokens, startIndex }: FoundSegment): Uint8Array {
  let at = HEADER_BYTES;
  const bytes = new Uint8Array(at + runs.reduce((sum, run) => sum + 4 + run.length, 0));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, VERSION, true);
  view.setUint32(8, numTokens, true);
  view.setUint32(12, startIndex, true);
  for (const run of runs) {
    view.setUint32(at, run.length, true);
    bytes.set(run, at + 4);
    at += 4 + run.length;
  }
  bytes.set(digest(key, bytes), 16);
  return bytes;
}

/** Hash over everything but itself. */
function digest(key: string, bytes: Uint8Array): Buffer {
  return createHash('sha256').update(key).update(bytes.subarray(0, 16)).update(bytes.subarray(HEADER_BYTES)).digest();
}

/** The encoded runs, as views. Null: the file is cut short, damaged, of another version or of another segment. */
export function decodeSegment(bytes: Uint8Array, { key, numTokens, startIndex }: FoundSegment): Uint8Array[] | null {
  if (bytes.length < HEADER_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (
    view.getUint32(0, true) !== MAGIC ||
    view.getUint32(4, true) !== VERSION ||
    view.getUint32(8, true) !== numTokens ||
    view.getUint32(12, true) !== startIndex
  )
    return null;
  if (digest(key, bytes).compare(bytes.subarray(16, HEADER_BYTES)) !== 0) return null;
  const runs: Uint8Array[] = [];
  for (let at = HEADER_BYTES; at < bytes.length; ) {
    const length = at + 4 <= bytes.length ? view.getUint32(at, true) : Number.POSITIVE_INFINITY;
    if (at + 4 + length > bytes.length) return null;
    runs.push(new Uint8Array(bytes.buffer, bytes.byteOffset + at + 4, length));
    at += 4 + length;
  }
  return runs;
}

export interface SegmentEntry extends OwnedSegment {
  readonly bytes: number;
  /** The file's modification time, which all processes see; ms since 1970. */
  lastUse: number;
}

/** Which segments a folder has, by key and by the segment before them. */
export class SegmentIndex {
  /** Of all segments. */
  bytes = 0;
  readonly #byKey = new Map<string, SegmentEntry>();
  /** The segments that continue a segment, by its key. */
  readonly #byParent = new Map<string, SegmentEntry[]>();

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): SegmentEntry | undefined {
    return this.#byKey.get(key);
  }

  /** A copy, so that entries may be removed meanwhile. */
  entries(): SegmentEntry[] {
    return [...this.#byKey.values()];
  }

  add(entry: SegmentEntry): void {
    if (this.#byKey.has(entry.key)) return;
    this.#byKey.set(entry.key, entry);
    const siblings = this.#byParent.get(entry.parent);
    if (siblings) siblings.push(entry);
    else this.#byParent.set(entry.parent, [entry]);
    this.bytes += entry.bytes;
  }

  remove(entry: SegmentEntry): void {
    if (!this.#byKey.delete(entry.key)) return;
    const siblings = this.#byParent.get(entry.parent)!.filter((each) => each !== entry);
    if (siblings.length) this.#byParent.set(entry.parent, siblings);
    else this.#byParent.delete(entry.parent);
    this.bytes -= entry.bytes;
  }

  /** Removes these segments and all that continue them. Returns those that were there, the last of a context first. */
  removeAll(segments: readonly SegmentName[]): SegmentEntry[] {
    return segments.flatMap(({ key }) => {
      const entry = this.#byKey.get(key);
      if (!entry) return [];
      const next = this.#byParent.get(key) ?? [];
      this.remove(entry);
      return [...this.removeAll(next), entry];
    });
  }

  /** The segments of the beginning of a context, in order; of several that match the longest. */
  find(root: string, ids: readonly number[]): FoundSegment[] {
    const found: FoundSegment[] = [];
    let parent = root;
    for (let startIndex = 0; startIndex < ids.length; ) {
      const next = this.#longest(parent, ids, startIndex);
      if (!next) break;
      found.push({ parent, key: next.key, numTokens: next.numTokens, startIndex });
      parent = next.key;
      startIndex += next.numTokens;
      // A shorter segment is the end of its context.
      if (next.numTokens < SEGMENT_TOKENS) break;
    }
    return found;
  }

  /**
   * The longest segment behind `parent` that matches the tokens from `startIndex` on. Computes one key per length,
   * because a root has hundreds of segments.
   */
  #longest(parent: string, ids: readonly number[], startIndex: number): SegmentEntry | undefined {
    const lengths = new Set(this.#byParent.get(parent)?.map(({ numTokens }) => numTokens));
    for (const numTokens of [...lengths].sort((a, b) => b - a)) {
      const end = startIndex + numTokens;
      const entry = end <= ids.length ? this.#byKey.get(segmentKey(parent, ids.slice(startIndex, end))) : undefined;
      if (entry) return entry;
    }
    return undefined;
  }

  /** A segment and those before it, from the last to the first. */
  *chain(key: string): Generator<SegmentEntry> {
    for (let entry = this.#byKey.get(key); entry; entry = this.#byKey.get(entry.parent)) yield entry;
  }

  /** Segments of files with these paths, and those before them. */
  ofFiles(filePaths: readonly string[]): Set<SegmentEntry> {
    const found = new Set<SegmentEntry>();
    for (const { key, owner } of this.#byKey.values()) {
      if (!filePaths.some((filePath) => owner === ownerOf(key, filePath))) continue;
      for (const entry of this.chain(key)) {
        if (found.has(entry)) break;
        found.add(entry);
      }
    }
    return found;
  }

  /**
   * The order of eviction: least recently used segments first, only those that no other continues, never `kept`. The
   * caller removes each before it asks for the next.
   */
  *victims(kept: string | undefined): Generator<SegmentEntry> {
    const mayGo = ({ key }: SegmentEntry): boolean => key !== kept && this.#byKey.has(key) && !this.#byParent.has(key);
    for (const least of this.entries().sort((a, b) => a.lastUse - b.lastUse)) {
      // Segments before it that were used even earlier could not be removed until now.
      for (
        let entry: SegmentEntry | undefined = least;
        entry && mayGo(entry) && entry.lastUse <= least.lastUse;
        entry = this.#byKey.get(entry.parent)
      )
        yield entry;
    }
  }
}
