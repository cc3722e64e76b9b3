/**
 * What the store codes with loss, and when: the rungs of a ladder, of which each run takes the one that its age and the fullness of
 * the budget call for. PURE.
 *
 * A block that has been through a lossy codec is never coded again, by no rung: it would lose twice, and what is measured with the
 * model is the loss of coding once. So a run that was coded mildly stays so when it gets older, and runs, even parts of one, end in
 * different codecs.
 */
import type { KvCodec } from './codecs/kvCodec.ts';
import type { CodecName } from './codecs/registry.ts';
import { KEPT_CODEC, KVZIP } from './keptRows.ts';

export interface Rung {
  /** Lossy. */
  readonly codec: KvCodec;
  /** Of runs that nobody has used for so long, in ms. */
  readonly idleMs: number;
  /** Share of the ceiling that must be taken, 0..1. */
  readonly fullness: number;
}

export interface Compression {
  /** Mildest first; not empty. */
  readonly rungs: readonly Rung[];
  /** Only what is left of runs that rows have been let go of; null: everything. */
  readonly only: 'kept' | null;
}

const MINUTE = 60_000;
/** The setting that chooses by age and fullness. */
const AUTO = 'auto';
/**
 * Of `auto`. turboquant is four tenths smaller than 4 bits and diverges twice as much, so it is for what is hardly read again: a file
 * left for half an hour is come back to seven times more rarely than one left for five to ten minutes, one left for ten to thirty
 * minutes twice (test/bench/eviction/returns.ts, days of the model of behaviour). Nearly full, runs are about to be dropped, and
 * to compute them again costs more than any codec: then ten minutes are enough.
 */
const LADDER: readonly (Omit<Rung, 'codec'> & { name: CodecName })[] = [
  { name: 'int4-kivi', idleMs: 5 * MINUTE, fullness: 0.75 },
  { name: 'turboquant', idleMs: 30 * MINUTE, fullness: 0.75 },
  { name: 'turboquant', idleMs: 10 * MINUTE, fullness: 0.9 },
];
/** Of a codec that is asked for by name. */
const ALWAYS = { idleMs: MINUTE, fullness: 0 };

/** The codecs that a setting may use, mildest first. */
export function codecNames(setting: string): string[] {
  if (setting === AUTO) return [...new Set(LADDER.map(({ name }) => name))];
  return [setting === KVZIP ? KEPT_CODEC : setting];
}

/** What is meant by a setting with those of its codecs that may be used; null: nothing is coded. */
export function compressionOf(setting: string, codecs: readonly KvCodec[]): Compression | null {
  const lossy = codecs.filter(({ lossless }) => !lossless);
  const rungs =
    setting === AUTO
      ? LADDER.flatMap(({ name, ...when }) =>
          lossy.filter((codec) => codec.name === name).map((codec) => ({ codec, ...when })),
        )
      : lossy.map((codec) => ({ codec, ...ALWAYS }));
  return rungs.length > 0 ? { rungs, only: setting === KVZIP ? 'kept' : null } : null;
}

/** The last rung that is for a run which nobody has used for so long, with such a share of the ceiling taken; null: it stays as it is. */
export function rungFor(rungs: readonly Rung[], idleMs: number, fullness: number): Rung | null {
  return rungs.findLast((rung) => idleMs >= rung.idleMs && fullness >= rung.fullness) ?? null;
}
