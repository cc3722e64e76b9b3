/**
 * Chooses the approximate techniques for a model: measures those that the options ask for and rejects what loses too
 * much. Does not encode. To remove a technique, see CONTRIBUTING.md.
 */
import { type ApproximationOptions, codecNames, compressionOf, dropsRows } from '../kv/approx/approximations.ts';
import type { KvCodec } from '../kv/approx/codecs/kvCodec.ts';
import { codecFor, codecQuality } from '../model/calibrate/codecQuality.ts';
import { pruneQuality } from '../model/calibrate/pruneQuality.ts';
import { shiftQuality } from '../model/calibrate/shiftQuality.ts';
import type { ImportedModel } from '../model/load/importedModel.ts';
import { RopeTable } from '../model/runtime/rope.ts';
import type { Runner } from '../model/batch.ts';
import type { LoadOptions } from '../protocol/messages.ts';
import type { CodecQuality, ModelInfo } from '../protocol/stats.ts';
import type { ModelText } from '../text/format/modelText.ts';

/** Pruning drops KV rows that are idle for longer. The disk tier writes them earlier. */
const MIN_UNUSED_MS = 2 * 60_000;

export interface ApproximationChoice {
  /** The techniques in use. */
  readonly approximations: ApproximationOptions;
  /** All measurements, also of rejected techniques. */
  readonly info: Pick<ModelInfo, 'shifted' | 'compressed'>;
}

interface Measuring {
  readonly imported: ImportedModel;
  /** Its pool and its scratch are used and left empty. */
  readonly runner: Runner;
  readonly text: Pick<ModelText, 'tokenizer' | 'turn'>;
  readonly contextTokens: number;
  /** Gets the progress, 0 .. 1. It never decreases within a technique, and begins again at 0 for the next one. */
  readonly onProgress: (fraction: number) => void;
  /** Gets a line for each rejected codec that says why. */
  readonly log: (line: string) => void;
}

/** All techniques need an int8 pool. */
export async function chooseApproximations(
  options: Pick<LoadOptions, 'reuseShifted' | 'compress'>,
  measuring: Measuring,
): Promise<ApproximationChoice> {
  const { imported, runner, text, contextTokens, onProgress } = measuring;
  if (runner.pool.shape.kv !== 'int8') return { approximations: {}, info: {} };
  const encode = (source: string): number[] => text.tokenizer.encode(source);
  const shifted = options.reuseShifted ? await shiftQuality(imported, runner, encode, contextTokens, onProgress) : null;
  const compressed = options.compress ? await chooseCompression(options.compress, measuring) : null;
  return {
    approximations: {
      biased: new Set(imported.biased),
      reuseShifted: shifted !== null && shifted.klMean <= shifted.bound,
      ...compressed?.approximations,
    },
    info: {
      ...(shifted ? { shifted } : {}),
      ...(compressed?.qualities.length ? { compressed: compressed.qualities } : {}),
    },
  };
}

interface CompressionChoice {
  readonly approximations: Pick<ApproximationOptions, 'compression' | 'pruning'>;
  readonly qualities: readonly CodecQuality[];
}

/** @param setting see LoadOptions.compress */
async function chooseCompression(setting: string, measuring: Measuring): Promise<CompressionChoice> {
  const { imported, runner, text, contextTokens, onProgress, log } = measuring;
  const encode = (source: string): number[] => text.tokenizer.encode(source);
  const rope = RopeTable.of(imported.config);
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
  const names = codecNames(setting);
  if (dropsRows(setting)) {
    const codec = await codecOf(names[0]!, 1 / 2);
    const lost = await pruneQuality(imported, runner, encode, codec, text.turn, contextTokens, upTo(1));
    if (!isUsed(setting, lost?.files, log)) return { approximations: {}, qualities: lost ? [lost.files] : [] };
    const { files, conversations } = lost!;
    const pruning = {
      idleMs: MIN_UNUSED_MS,
      turn: text.turn,
      layers: codec.neediest,
      conversations: isUsed(conversations.codec, conversations, log),
    };
    return {
      approximations: { compression: compressionOf(setting, [codec]), pruning },
      qualities: [files, conversations],
    };
  }
  const qualities: CodecQuality[] = [];
  const good: KvCodec[] = [];
  for (const [i, name] of names.entries()) {
    const codec = await codecOf(name, (i + 1 / 2) / names.length);
    const quality = await codecQuality(imported, runner, encode, codec, contextTokens, upTo((i + 1) / names.length));
    if (quality) qualities.push(quality);
    if (isUsed(codec.name, quality, log)) good.push(codec);
  }
  return { approximations: { compression: compressionOf(setting, good) }, qualities };
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
