/** Segments of one context with known contents. A writing and a reading process share them. */
import { type FoundSegment, rootKey, SEGMENT_TOKENS, segmentKey } from '../../../engine/kv/disk/segment.ts';
import { seededRandom } from '../engine/workload.ts';

export const CHAIN_ROOT = rootKey('chain');
/** Large enough for a write to take some time. */
const RUN_BYTES = 1 << 19;

export interface ChainSegment extends FoundSegment {
  readonly ids: readonly number[];
}

/** The first `length` segments of the context with this seed. */
export function chain(seed: number, length: number): ChainSegment[] {
  const segments: ChainSegment[] = [];
  let parent = CHAIN_ROOT;
  for (let i = 0; i < length; i++) {
    const ids = Array.from({ length: SEGMENT_TOKENS }, (_, token) => seed * 1_000_000 + i * SEGMENT_TOKENS + token);
    const key = segmentKey(parent, ids);
    segments.push({ parent, key, numTokens: SEGMENT_TOKENS, startIndex: i * SEGMENT_TOKENS, ids });
    parent = key;
  }
  return segments;
}

/** Contents of a segment: two runs that follow from its key. The long run repeats a page; the other one is short. */
export function runsOf({ key }: FoundSegment): Uint8Array[] {
  const random = seededRandom(Number.parseInt(key.slice(0, 8), 16));
  const page = new Uint8Array(Uint32Array.from({ length: 1024 }, () => random() * 2 ** 32).buffer);
  const long = new Uint8Array(RUN_BYTES);
  for (let at = 0; at < RUN_BYTES; at += page.length) long.set(page, at);
  // Makes the pages different, so that a swap of pages is detected.
  for (let at = 0; at < RUN_BYTES; at += page.length) long[at] = (at / page.length) & 255;
  return [long, page.slice(0, 1000)];
}
