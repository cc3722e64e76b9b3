/**
 * Measures what a codec of the KV store costs with a model. Computes a text, codes and decodes what would be
 * compressed of an unused file, and compares the next tokens with those over exact rows. The result decides whether
 * the model may use the codec. It is measured once per model.
 */
import type { RunFormat } from '../../kv/approx/codecs/codecFormat.ts';
import type { KvCodec } from '../../kv/approx/codecs/kvCodec.ts';
import { FORMATS, codecNamed } from '../../kv/approx/codecs/registry.ts';
import type { CodecQuality } from '../../protocol/stats.ts';
import type { ImportedModel } from '../load/importedModel.ts';
import type { OnnxRunner } from '../runtime/runner.ts';
import { type Divergence, addPosition, noDivergence } from './divergence.ts';
import { type NeedsMeasuring, layerNeeds } from './layerNeeds.ts';
import { measuredOnce } from './measuredOnce.ts';
import { SAMPLE_TEXT } from './sampleText.ts';
import { computeRows, scoreTokens, slotRange } from './scoring.ts';

/** Largest mean KL divergence, in nats, with which a codec is used. */
const MAX_CODEC_DIVERGENCE = 5e-2;
/** Version of the file. Raise it when the measurement changes. */
const FORMAT = 1;
/** Tokens compared behind each context. */
const SCORED = 64;
/** Where contexts end, as shares of the text. */
const ENDS = [0.5, 0.75, 1];
/** A longer text only costs time. */
const MAX_TOKENS = 2000;

/**
 * Divergence of the next tokens over coded rows from those over exact rows. Needs an int8 pool. Uses the runner's pool
 * and
 * scratch and leaves them empty; nothing else may hold slots. `onProgress` gets 0 .. 1.
 */
export async function measureCodec(
  runner: OnnxRunner,
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
  try {
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
  } finally {
    runner.releaseScratch();
    pool.resize(0);
  }
}

/**
 * The known quality of this model and codec, or a new measurement on the sample text, which is kept. Null: the context
 * of the model is too short.
 */
export function codecQuality(
  model: ImportedModel,
  runner: OnnxRunner,
  encode: (text: string) => number[],
  codec: KvCodec,
  contextTokens: number,
  onProgress: (fraction: number) => void,
): Promise<CodecQuality | null> {
  return measuredOnce(
    model.dir,
    `codec-${codec.name}.json`,
    { format: FORMAT, contextTokens, bound: MAX_CODEC_DIVERGENCE, ...(codec.format.finer && { order: codec.order }) },
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
      // In blocks of the store, far from either end, as for a long file. Compared with two bytes per value.
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

/** A codec of the KV store for a model. If it codes layers differently, measures which layers need most.
 * @throws Error that names the known codecs.
 */
export async function codecFor(name: string, measuring: NeedsMeasuring): Promise<KvCodec> {
  const format: RunFormat | undefined = FORMATS.find((each) => each.name === name);
  const needs = format?.finer ? await layerNeeds(format, measuring) : undefined;
  return codecNamed(name, measuring.runner.pool.shape, measuring.rope, needs);
}
