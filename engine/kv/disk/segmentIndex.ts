/** Which segments a folder has, by key and by the segment before them. Knows no file. */
import {
  type FoundSegment,
  type OwnedSegment,
  ownerOf,
  SEGMENT_TOKENS,
  type SegmentName,
  segmentKey,
} from './segment.ts';

export interface SegmentEntry extends OwnedSegment {
  readonly bytes: number;
  /** The file's modification time, which all processes see; ms since 1970. */
  lastUse: number;
}

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
