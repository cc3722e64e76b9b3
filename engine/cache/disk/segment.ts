/**
 * PURE: segments of a context as files. A segment's key is a hash over all token ids from the first one on and over what makes
 * rows comparable (model, precision, kernels, codec), so that a prefix which several contexts share is one file, and nothing has
 * to be read to know whether a context is there. Its name tells its place: the key of what stands before it, its own, its tokens.
 *
 * A file is: magic "KVSG", version u16, token ids u16, tokens u32, position of the first one u32, SHA-256 of its key and of the rest
 * [32], token ids u32 each, then encoded runs (see KvCodec), each behind its length u32. Little endian. A context's first segment
 * has the ids of its tokens, so that all versions of a file can be told by what they begin with; the others have none.
 */
import { createHash } from 'node:crypto';

/** Tokens of a segment; the last one of a context may be shorter. Segments begin at multiples of it. */
export const SEGMENT_TOKENS = 256;
/** Raise it whenever rows of the same key would no longer be the same, or lie in a file otherwise. */
const VERSION = 3;
const MAGIC = 0x4753564b;
const HEADER_BYTES = 48;
/** Of a file, as many as its header and its token ids take at most. */
export const BEGINNING_BYTES = HEADER_BYTES + 4 * SEGMENT_TOKENS;
/** Hexadecimal digits of a key: 128 bits. */
const KEY_DIGITS = 32;
const NAME = /^([0-9a-f]{32})-([0-9a-f]{32})-([1-9]\d{0,2})\.kv$/;

export interface SegmentName {
  /** Key of the segment before it, or of the root. */
  readonly parent: string;
  readonly key: string;
  readonly numTokens: number;
}

/** What stands before the first token. @param names what rows depend on beside their tokens. */
export function rootKey(...names: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify([VERSION, ...names])).digest('hex').slice(0, KEY_DIGITS);
}

/** @param ids of the segment's tokens, as the cache knows them. */
export function segmentKey(parent: string, ids: readonly number[]): string {
  return createHash('sha256').update(parent).update(Int32Array.from(ids)).digest('hex').slice(0, KEY_DIGITS);
}

export function fileName({ parent, key, numTokens }: SegmentName): string {
  return `${parent}-${key}-${numTokens}.kv`;
}

/** null: no segment's. */
export function parseName(name: string): SegmentName | null {
  const [, parent, key, numTokens] = NAME.exec(name) ?? [];
  return key && Number(numTokens) <= SEGMENT_TOKENS ? { parent: parent!, key, numTokens: Number(numTokens) } : null;
}

/** A segment of a context. */
export interface FoundSegment extends SegmentName {
  /** Position of its first token. */
  readonly startIndex: number;
}

/** @param runs encoded, of the segment's tokens together. @param ids of its tokens if it is a context's first, otherwise none. */
export function encodeSegment(runs: readonly Uint8Array[], { key, numTokens, startIndex }: FoundSegment, ids: readonly number[] = []): Uint8Array {
  let at = HEADER_BYTES + 4 * ids.length;
  const bytes = new Uint8Array(at + runs.reduce((sum, run) => sum + 4 + run.length, 0));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint16(4, VERSION, true);
  view.setUint16(6, ids.length, true);
  view.setUint32(8, numTokens, true);
  view.setUint32(12, startIndex, true);
  for (const [i, id] of ids.entries()) view.setUint32(HEADER_BYTES + 4 * i, id, true);
  for (const run of runs) {
    view.setUint32(at, run.length, true);
    bytes.set(run, at + 4);
    at += 4 + run.length;
  }
  bytes.set(digest(key, bytes), 16);
  return bytes;
}

/** Of all but itself. */
function digest(key: string, bytes: Uint8Array): Buffer {
  return createHash('sha256').update(key).update(bytes.subarray(0, 16)).update(bytes.subarray(HEADER_BYTES)).digest();
}

/** The token ids that a file has, from its first BEGINNING_BYTES; none where they are no segment's. Whether they are damaged nobody asks. */
export function decodeIds(bytes: Uint8Array): number[] {
  if (bytes.length < HEADER_BYTES) return [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const numIds = view.getUint16(6, true);
  if (view.getUint32(0, true) !== MAGIC || view.getUint16(4, true) !== VERSION || HEADER_BYTES + 4 * numIds > bytes.length) return [];
  return Array.from({ length: numIds }, (_, i) => view.getUint32(HEADER_BYTES + 4 * i, true));
}

/** The encoded runs, as views. null: cut short, damaged, of another version or another segment. */
export function decodeSegment(bytes: Uint8Array, { key, numTokens, startIndex }: FoundSegment): Uint8Array[] | null {
  if (bytes.length < HEADER_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.getUint32(0, true) !== MAGIC || view.getUint16(4, true) !== VERSION || view.getUint32(8, true) !== numTokens || view.getUint32(12, true) !== startIndex) return null;
  if (digest(key, bytes).compare(bytes.subarray(16, HEADER_BYTES)) !== 0) return null;
  const runs: Uint8Array[] = [];
  for (let at = HEADER_BYTES + 4 * view.getUint16(6, true); at < bytes.length; ) {
    const length = at + 4 <= bytes.length ? view.getUint32(at, true) : Number.POSITIVE_INFINITY;
    if (at + 4 + length > bytes.length) return null;
    runs.push(new Uint8Array(bytes.buffer, bytes.byteOffset + at + 4, length));
    at += 4 + length;
  }
  return runs;
}
