/** What the store compresses, and when. PURE. */
import type { KvCodec } from './codecs/kvCodec.ts';

export interface Compression {
  /** Lossy. */
  readonly codec: KvCodec;
  /** Of runs that nobody has used for so long, in ms. */
  readonly idleMs: number;
  /** Share of the ceiling that must be taken, 0..1. */
  readonly fullness: number;
  /** Only what is left of runs that rows have been let go of; null: everything. */
  readonly only: 'kept' | null;
}

/** What is meant by compressing always, or when memory is short. */
export function compressionOf(when: 'short' | 'always', codec: KvCodec, only: 'kept' | null = null): Compression | null {
  if (codec.lossless) return null;
  return when === 'always' ? { codec, idleMs: 60_000, fullness: 0, only } : { codec, idleMs: 5 * 60_000, fullness: 0.75, only };
}
