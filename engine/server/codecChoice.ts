/** Chooses codecs for a model: measures those of the setting and rejects those that lose too much. Does not encode. */
import type { KvCodec } from '../kv/approx/codecs/kvCodec.ts';
import { codecNames, type Compression, compressionOf } from '../kv/approx/compression.ts';
import { KVZIP } from '../kv/approx/pruned/keptRows.ts';
import { codecFor, codecQuality } from '../model/calibrate/codecQuality.ts';
import type { ImportedModel } from '../model/load/importedModel.ts';
import { pruneQuality } from '../model/calibrate/pruneQuality.ts';
import type { RopeTable } from '../model/runtime/rope.ts';
import type { OnnxRunner } from '../model/runtime/runner.ts';
import type { CodecQuality } from '../protocol/stats.ts';
import type { TurnIds } from '../kv/approx/pruned/attentionMeter.ts';
import type { PruningOptions } from '../kv/approx/pruned/pruning.ts';

export interface ModelCompression {
  /** The codecs in use. Null for none. */
  readonly compression: Compression | null;
  /** The rows that pruning may drop. Null for none. */
  readonly prunes: Pick<PruningOptions, 'conversations' | 'layers'> | null;
  /** All measurements, also of rejected codecs (see ModelInfo). */
  readonly qualities: readonly CodecQuality[];
}

interface Measuring {
  readonly imported: ImportedModel;
  /** Its pool and its scratch are used and left empty. */
  readonly runner: OnnxRunner;
  readonly rope: RopeTable;
  readonly encode: (text: string) => number[];
  /** See PruningOptions. */
  readonly turn: TurnIds;
  readonly contextTokens: number;
  /** Gets the progress of all measurements, 0 .. 1, which never decreases. */
  readonly onProgress: (fraction: number) => void;
  /** Gets a line for each rejected codec that says why. */
  readonly log: (line: string) => void;
}

/** @param setting see LoadOptions.compress. Needs an int8 pool. */
export async function modelCompression(
  setting: string,
  { imported, runner, rope, encode, turn, contextTokens, onProgress, log }: Measuring,
): Promise<ModelCompression> {
  const names = codecNames(setting);
  let done = 0;
  const upTo = (end: number): ((fraction: number) => void) => {
    const from = done;
    return (fraction) => {
      done = from + (end - from) * fraction;
      onProgress(done);
    };
  };
  const codecOf = (name: string, end: number): Promise<KvCodec> =>
    codecFor(name, { model: imported, runner, rope, encode, contextTokens, onProgress: upTo(end) });
  if (setting === KVZIP) {
    const codec = await codecOf(names[0]!, 1 / 2);
    const pruned = await pruneQuality(imported, runner, encode, codec, turn, contextTokens, upTo(1));
    const isGood = isUsed(KVZIP, pruned?.files, log);
    const qualities = pruned ? [pruned.files, ...(isGood ? [pruned.conversations] : [])] : [];
    return {
      compression: isGood ? compressionOf(setting, [codec]) : null,
      prunes: isGood
        ? { layers: codec.neediest, conversations: isUsed(pruned!.conversations.codec, pruned!.conversations, log) }
        : null,
      qualities,
    };
  }
  const qualities: CodecQuality[] = [];
  const good = [];
  for (const [i, name] of names.entries()) {
    const codec = await codecOf(name, (i + 1 / 2) / names.length);
    const quality = await codecQuality(imported, runner, encode, codec, contextTokens, upTo((i + 1) / names.length));
    if (quality) qualities.push(quality);
    if (isUsed(codec.name, quality, log)) good.push(codec);
  }
  return { compression: compressionOf(setting, good), prunes: null, qualities };
}

function isUsed(name: string, quality: CodecQuality | null | undefined, log: (line: string) => void): boolean {
  if (quality && quality.klMean <= quality.bound) return true;
  log(
    `${name} is not used: ${
      quality
        ? `it loses too much with this model (mean KL divergence ${quality.klMean.toFixed(3)}, limit ${quality.bound})`
        : 'the context is too short to measure what it loses'
    }`,
  );
  return false;
}
