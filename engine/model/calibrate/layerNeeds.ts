/**
 * Measures which layers of a model need exact rows most. Those of the last layer often tell what to copy, while four
 * values may be enough for others. Computes a text, codes the rows of one layer at a time with the fewest bits, and
 * compares the next tokens with those over exact rows. Measured once per model.
 */
import { KvCodec } from '../../kv/approx/codecs/kvCodec.ts';
import type { RunFormat } from '../../kv/approx/codecs/codecFormat.ts';
import { arraysOf, joinRows, type KvRows, sliceRows } from '../../kv/kvRows.ts';
import { addPosition, noDivergence } from './divergence.ts';
import type { ImportedModel } from '../load/importedModel.ts';
import { measuredOnce } from './measuredOnce.ts';
import type { RopeTable } from '../runtime/rope.ts';
import type { OnnxRunner } from '../runtime/runner.ts';
import { SAMPLE_TEXT } from './sampleText.ts';
import { computeRows, numChunks, scoreTokens, slotRange } from './scoring.ts';

/** Version of the file. Raise it when the measurement changes. */
const FORMAT = 2;
/** Tokens compared behind the text. */
const SCORED = 64;
/** A longer text only costs time. */
const MAX_TOKENS = 2000;

export interface NeedsMeasuring {
  readonly model: ImportedModel;
  /** A runner with an int8 pool. Its pool and scratch are used and left empty; nothing else may hold slots. */
  readonly runner: OnnxRunner;
  readonly rope: RopeTable;
  readonly encode: (text: string) => number[];
  readonly contextTokens: number;
  /** Gets 0 .. 1 during a measurement. An error that it throws ends the measurement. */
  readonly onProgress?: (fraction: number) => void;
}

/**
 * The layers in order of loss, largest first, when coded in the form that most layers have in this format. Undefined:
 * the context is too short.
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
    { format: FORMAT, mostTokens: maxTokens },
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

/** By layer, the sum of the KL divergences of the tokens behind text[0 .. end) with only that layer coded. */
async function lossByLayer(
  runner: OnnxRunner,
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

/** Swaps layer `l` of the two. */
function swapLayer(rows: KvRows, others: KvRows, l: number, numLayers: number): void {
  for (const [i, array] of arraysOf(rows).entries()) {
    const length = array.length / numLayers;
    const [one, other] = [array, arraysOf(others)[i]!].map((each) => each.subarray(l * length, (l + 1) * length));
    const kept = one!.slice();
    one!.set(other! as never);
    other!.set(kept as never);
  }
}
