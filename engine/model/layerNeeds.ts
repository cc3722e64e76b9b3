/**
 * Which layers of a model need their rows most: those of the last one often say what to copy, and of others four values may be
 * enough. A text is computed, the rows of one layer at a time are replaced by what the fewest bits leave of them, and the next tokens
 * are compared with those over the rows as they were. The order lies beside the imported model, so that it is measured once.
 */
import { KvCodec } from '../cache/codecs/kvCodec.ts';
import type { RunFormat } from '../cache/codecs/codecFormat.ts';
import { arraysOf, joinRows, type KvRows, sliceRows } from '../cache/kvRows.ts';
import { addPosition, logProbabilities, noDivergence } from '../divergence.ts';
import type { ImportedModel } from './importModel.ts';
import { measuredOnce } from './measuredOnce.ts';
import type { RopeTable } from './rope.ts';
import type { OnnxRunner } from './runner.ts';
import { SHIFT_SAMPLE } from './shiftSample.ts';

/** Of the file; raised when measuring changes. */
const FORMAT = 1;
const CHUNK = 256;
/** Tokens compared behind the text. */
const SCORED = 64;
/** A longer text only costs time. */
const MOST_TOKENS = 2000;

export interface NeedsMeasuring {
  readonly model: ImportedModel;
  /** An int8 window, used and given back empty, as the scratch is; nothing else may hold slots. */
  readonly runner: OnnxRunner;
  readonly rope: RopeTable;
  readonly encode: (text: string) => number[];
  readonly contextTokens: number;
}

/** The layers, those first that lose most in the sides of this format that most layers have; undefined: the context is too short to say. */
export async function layerNeeds(format: RunFormat, { model, runner, rope, encode, contextTokens }: NeedsMeasuring): Promise<readonly number[] | undefined> {
  const needs = await measuredOnce(model.dir, `layers-${format.name}.json`, { format: FORMAT, contextTokens }, async () => {
    const text = encode(SHIFT_SAMPLE).slice(0, Math.min(MOST_TOKENS, contextTokens));
    const end = text.length - SCORED;
    if (end < 2 * SCORED) return null;
    const losses = await lossByLayer(runner, text, end, new KvCodec({ ...format, finer: [] }, runner.window.shape, rope));
    return losses.map((_, l) => l).sort((a, b) => losses[b]! - losses[a]! || a - b);
  });
  return needs ?? undefined;
}

/** Sums of the KL divergence of the tokens behind text[0 .. end), for each layer coded by itself. */
async function lossByLayer(runner: OnnxRunner, text: readonly number[], end: number, codec: KvCodec): Promise<number[]> {
  const { window, vocabSize } = runner;
  const { shape } = window;
  const slots = Int32Array.from(text, (_, i) => i);
  window.resize(text.length);
  try {
    for (let at = 0; at < end; at += CHUNK) {
      const to = Math.min(end, at + CHUNK);
      await runner.run([{ tokenIds: text.slice(at, to), startIndex: at, contextSlots: slots.subarray(0, at), newSlots: slots.subarray(at, to), lane: 'prefill', prefillEnd: end, numLogits: 0 }]);
    }
    const own = slots.subarray(0, end);
    const exact = window.read(own);
    const { blockTokens } = codec.format;
    const coded = joinRows(shape, Array.from({ length: Math.ceil(end / blockTokens) }, (_, i) => codec.through(sliceRows(shape, exact, i * blockTokens, Math.min(end, (i + 1) * blockTokens)), { startIndex: i * blockTokens })));
    const score = async (rows: KvRows): Promise<Float64Array[]> => {
      window.write(own, rows, 0, 0);
      const logits = await runner.run([{ tokenIds: text.slice(end), startIndex: end, contextSlots: own, newSlots: slots.subarray(end), numLogits: SCORED }]);
      return Array.from({ length: SCORED }, (_, i) => logProbabilities(logits.subarray(i * vocabSize, (i + 1) * vocabSize)));
    };
    const reference = await score(exact);
    const losses: number[] = [];
    for (let l = 0; l < shape.numLayers; l++) {
      const loss = noDivergence();
      for (const [i, row] of (await score(withLayer(exact, coded, l, shape.numLayers))).entries()) addPosition(loss, reference[i]!, row);
      losses.push(loss.klSum);
    }
    return losses;
  } finally {
    runner.releaseScratch();
    window.resize(0);
  }
}

/** A copy of `rows` that has layer `l` of others. */
function withLayer(rows: KvRows, others: KvRows, l: number, numLayers: number): KvRows {
  const copy = { ...rows, keys: rows.keys.slice(), keyScales: rows.keyScales.slice(), values: rows.values.slice(), valueScales: rows.valueScales.slice() };
  for (const [i, array] of arraysOf(copy).entries()) {
    const length = array.length / numLayers;
    array.set(arraysOf(others)[i]!.subarray(l * length, (l + 1) * length) as never, l * length);
  }
  return copy;
}
