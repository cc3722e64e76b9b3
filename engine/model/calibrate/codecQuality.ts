/**
 * Measures what a codec of the KV store costs with a model, and which layers need exact rows most. Compares the next
 * tokens over coded rows with those over exact rows. Measures once per model. Does not choose codecs.
 */
import type { RunFormat } from '../../kv/approx/codecs/codecFormat.ts';
import { KvCodec } from '../../kv/approx/codecs/kvCodec.ts';
import { FORMATS, codecNamed } from '../../kv/approx/codecs/registry.ts';
import type { CodecQuality } from '../../protocol/stats.ts';
import type { ImportedModel } from '../load/importedModel.ts';
import type { Runner } from '../batch.ts';
import {
  type Divergence,
  addPosition,
  noDivergence,
  measuredOnce,
  releasing,
  computeRows,
  scoreTokens,
  slotRange,
  numChunks,
} from './measurement.ts';
import { SAMPLE_TEXT } from './sampleText.ts';
import { arraysOf, joinRows, type KvRows, sliceRows } from '../../kv/kvRows.ts';
import type { RopeTable } from '../runtime/rope.ts';

/** Largest mean KL divergence, in nats, with which a codec is used. */
const MAX_CODEC_DIVERGENCE = 5e-2;
/** Versions of the files. Raise one when its measurement changes. */
const QUALITY_FORMAT = 1;
const NEEDS_FORMAT = 2;
/** Tokens compared behind each context. */
const SCORED = 64;
/** Where contexts end, as shares of the text. */
const ENDS = [0.5, 0.75, 1];
/** A longer text only costs time. */
const MAX_TOKENS = 2000;

/**
 * Divergence of the next tokens over coded rows from those over exact rows. Codes the text as an unused file is
 * compressed. Needs an int8 pool. Uses the pool and the scratch of the runner and leaves them empty, so nothing else
 * may hold slots. `onProgress` gets 0 .. 1.
 */
export async function measureCodec(
  runner: Runner,
  ids: readonly number[],
  codec: KvCodec,
  contextTokens: number,
  onProgress: (fraction: number) => void,
): Promise<Divergence> {
  const result = noDivergence();
  const text = ids.slice(0, Math.min(MAX_TOKENS, contextTokens));
  const { pool } = runner;
  const numContext = text.length - SCORED - 1;
  if (numContext < 2 * SCORED) return result;
  pool.resize(text.length + SCORED);
  const scored = slotRange(text.length, text.length + SCORED);
  return releasing(runner, async () => {
    await computeRows(runner, text, slotRange(0, text.length), { end: numContext });
    const exact = pool.read(slotRange(0, numContext));
    const { blockTokens } = codec.format;
    for (const [e, share] of ENDS.entries()) {
      const end = Math.floor(numContext * share);
      const score = () => scoreTokens(runner, text.slice(end, end + SCORED), end, slotRange(0, end), scored);
      const reference = await score();
      for (let at = 0; at < end; at += blockTokens) {
        const part = slotRange(at, Math.min(end, at + blockTokens));
        pool.write(part, codec.through(pool.read(part), { startIndex: at, contextEnd: end }), 0, at);
      }
      for (const [i, row] of (await score()).entries()) addPosition(result, reference[i]!, row);
      pool.write(slotRange(0, end), exact, 0, 0);
      onProgress((e + 1) / ENDS.length);
    }
    return result;
  });
}

/**
 * The quality of a codec with this model, as recorded or newly measured on the sample text. Decides whether the model
 * may use the codec. Null if the context of the model is too short.
 */
export function codecQuality(
  model: ImportedModel,
  runner: Runner,
  encode: (text: string) => number[],
  codec: KvCodec,
  contextTokens: number,
  onProgress: (fraction: number) => void,
): Promise<CodecQuality | null> {
  return measuredOnce(
    model.dir,
    `codec-${codec.name}.json`,
    {
      format: QUALITY_FORMAT,
      contextTokens,
      bound: MAX_CODEC_DIVERGENCE,
      ...(codec.format.finer && { order: codec.order }),
    },
    async () => {
      const { klSum, klMax, agreed, numTokens } = await measureCodec(
        runner,
        encode(SAMPLE_TEXT),
        codec,
        contextTokens,
        onProgress,
      );
      if (numTokens === 0) return null;
      const { numLayers, kvHeads, headSize } = runner.pool.shape;
      // For whole blocks of the store, as in a long file. Compared with two bytes per value.
      const bytesPerToken = codec.bytesPerToken(codec.format.blockTokens);
      return {
        codec: codec.name,
        klMean: klSum / numTokens,
        klMax,
        top1: agreed / numTokens,
        bound: MAX_CODEC_DIVERGENCE,
        numTokens,
        bytesPerToken,
        compression: (numLayers * kvHeads * headSize * 2 * 2) / bytesPerToken,
      };
    },
  );
}

/**
 * A codec of the KV store for a model. Measures which layers need exact rows most if the codec treats layers
 * differently.
 * @throws Error that names the known codecs
 */
export async function codecFor(name: string, measuring: NeedsMeasuring): Promise<KvCodec> {
  const format: RunFormat | undefined = FORMATS.find((each) => each.name === name);
  const needs = format?.finer ? await layerNeeds(format, measuring) : undefined;
  return codecNamed(name, measuring.runner.pool.shape, measuring.rope, needs);
}

export interface NeedsMeasuring {
  readonly model: ImportedModel;
  /** A runner with an int8 pool. Its pool and scratch are used and left empty; nothing else may hold slots. */
  readonly runner: Runner;
  readonly rope: RopeTable;
  readonly encode: (text: string) => number[];
  readonly contextTokens: number;
  /** Gets 0 .. 1 during a measurement. An error that it throws ends the measurement. */
  readonly onProgress?: (fraction: number) => void;
}

/**
 * The layers by loss, largest first, each coded alone in the form that most layers have in this format. The rows of the
 * last layer often tell what to copy, while 2 bits may be enough for others. Undefined if the context is too short.
 */
export async function layerNeeds(
  format: RunFormat,
  { model, runner, rope, encode, contextTokens, onProgress }: NeedsMeasuring,
): Promise<readonly number[] | undefined> {
  const { numLayers } = runner.pool.shape;
  const maxTokens = Math.min(MAX_TOKENS, contextTokens);
  const needs = await measuredOnce(
    model.dir,
    `layers-${format.name}.json`,
    { format: NEEDS_FORMAT, mostTokens: maxTokens },
    async () => {
      const text = encode(SAMPLE_TEXT).slice(0, maxTokens);
      const end = text.length - SCORED;
      if (end < 2 * SCORED) return null;
      const losses = await lossByLayer(
        runner,
        text,
        end,
        new KvCodec({ ...format, finer: [] }, runner.pool.shape, rope),
        onProgress,
      );
      return losses.map((_, l) => l).sort((a, b) => losses[b]! - losses[a]! || a - b);
    },
  );
  // The file may hold anything.
  return needs && [...needs].sort((a, b) => a - b).every((layer, l) => layer === l) && needs.length === numLayers
    ? needs
    : undefined;
}

/** By layer, the sum of the KL divergences of the tokens behind text[0 .. end) when only that layer is coded. */
async function lossByLayer(
  runner: Runner,
  text: readonly number[],
  end: number,
  codec: KvCodec,
  onProgress?: (fraction: number) => void,
): Promise<number[]> {
  const { pool } = runner;
  const { shape } = pool;
  const numSteps = numChunks(end) + 1 + shape.numLayers;
  let numDone = 0;
  const done = (): void => onProgress?.(++numDone / numSteps);
  const slots = slotRange(0, text.length);
  pool.resize(text.length);
  try {
    await computeRows(runner, text, slots, { end, onChunk: done });
    const own = slots.subarray(0, end);
    const exact = pool.read(own);
    const { blockTokens } = codec.format;
    const coded = joinRows(
      shape,
      Array.from({ length: Math.ceil(end / blockTokens) }, (_, i) =>
        codec.through(sliceRows(shape, exact, i * blockTokens, Math.min(end, (i + 1) * blockTokens)), {
          startIndex: i * blockTokens,
        }),
      ),
    );
    const score = async (rows: KvRows): Promise<Float64Array[]> => {
      pool.write(own, rows, 0, 0);
      const scores = await scoreTokens(runner, text.slice(end), end, own, slots.subarray(end));
      done();
      return scores;
    };
    const reference = await score(exact);
    const losses: number[] = [];
    for (let l = 0; l < shape.numLayers; l++) {
      const loss = noDivergence();
      swapLayer(exact, coded, l, shape.numLayers);
      for (const [i, row] of (await score(exact)).entries()) addPosition(loss, reference[i]!, row);
      swapLayer(exact, coded, l, shape.numLayers);
      losses.push(loss.klSum);
    }
    return losses;
  } finally {
    runner.releaseScratch();
    pool.resize(0);
  }
}

/** Swaps layer `l` of the two rows. */
function swapLayer(rows: KvRows, others: KvRows, l: number, numLayers: number): void {
  for (const [i, array] of arraysOf(rows).entries()) {
    const length = array.length / numLayers;
    const [one, other] = [array, arraysOf(others)[i]!].map((each) => each.subarray(l * length, (l + 1) * length));
    const kept = one!.slice();
    one!.set(other! as never);
    other!.set(kept as never);
  }
}
