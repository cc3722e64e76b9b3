/**
 * Measures what pruning costs with a model. Keeps only the rows that pruning keeps of an unused file or of a
 * conversation, codes them, and compares the next tokens with those over all rows. Measures once per model.
 */
import type { KvCodec } from '../../kv/approx/codecs/kvCodec.ts';
import {
  H2O,
  keptBytesPerToken,
  KEPT_SHARES,
  keptTokens,
  KVZIP,
  pieceLengths,
  type PruningName,
  RECENT_TOKENS,
  rowsOf,
} from '../../kv/approx/pruned/keptRows.ts';
import type { CodecQuality } from '../../protocol/stats.ts';
import type { ImportedModel } from '../load/importedModel.ts';
import {
  AttentionMeter,
  inPlace,
  type MeterPart,
  partSlots,
  probes,
  type TurnIds,
} from '../../kv/approx/pruned/attentionMeter.ts';
import type { Runner } from '../batch.ts';
import {
  addPosition,
  type Divergence,
  noDivergence,
  measuredOnce,
  computeRows,
  scoreTokens,
  slotRange,
} from './measurement.ts';
import { SAMPLE_TEXT } from './sampleText.ts';

/** Largest mean KL divergence, in nats, with which rows are pruned. The same as for codecs. */
const MAX_PRUNE_DIVERGENCE = 5e-2;
/** Version of the file. Raise it when the measurement changes. */
const FORMAT = 6;
/** Tokens compared behind each context. */
const SCORED = 64;
/** Where contexts end, as shares of the text. */
const ENDS = [0.6, 0.8, 1];
/** A longer text only costs time. */
const MAX_TOKENS = 2000;

export interface PruneQuality {
  files: CodecQuality;
  conversations: CodecQuality;
}

/**
 * What pruning costs, as recorded or newly measured. Decides whether the model may prune. Null if the context of the
 * model is too short. `codec` codes the rows that stay. `turn`: see PruningOptions.
 */
export function pruneQuality(
  model: ImportedModel,
  runner: Runner,
  encode: (text: string) => number[],
  codec: KvCodec,
  turn: TurnIds,
  contextTokens: number,
  onProgress: (fraction: number) => void,
): Promise<PruneQuality | null> {
  const key = {
    format: FORMAT,
    contextTokens,
    bound: MAX_PRUNE_DIVERGENCE,
    shares: KEPT_SHARES,
    recent: RECENT_TOKENS,
    turn,
    codec: codec.name,
    order: codec.order,
  };
  return measuredOnce(model.dir, `pruning-${KVZIP}.json`, key, async () => {
    const text = encode(SAMPLE_TEXT).slice(0, Math.min(MAX_TOKENS, contextTokens));
    if ((text.length - SCORED - 1) * ENDS[0]! < 2 * RECENT_TOKENS) return null;
    const sums = await new PruneMeasurement(runner, text, codec, turn, contextTokens).run(onProgress);
    return {
      files: qualityOf(runner, codec, KVZIP, sums.files),
      conversations: qualityOf(runner, codec, H2O, sums.conversations),
    };
  });
}

function qualityOf(runner: Runner, codec: KvCodec, name: PruningName, divergence: Divergence): CodecQuality {
  const { numLayers, kvHeads, headSize } = runner.pool.shape;
  const { klSum, klMax, agreed, numTokens } = divergence;
  const bytesPerToken = keptBytesPerToken(codec, name);
  return {
    codec: name,
    klMean: klSum / numTokens,
    klMax,
    top1: agreed / numTokens,
    bound: MAX_PRUNE_DIVERGENCE,
    numTokens,
    bytesPerToken,
    compression: (numLayers * kvHeads * headSize * 2 * 2) / bytesPerToken,
  };
}

/** Divergence of the next tokens over pruned rows of files and of conversations. */
type Divergences = Record<keyof PruneQuality, Divergence>;

class PruneMeasurement {
  readonly #runner: Runner;
  readonly #text: readonly number[];
  readonly #codec: KvCodec;
  readonly #turn: TurnIds;
  readonly #contextTokens: number;

  constructor(runner: Runner, text: readonly number[], codec: KvCodec, turn: TurnIds, contextTokens: number) {
    this.#runner = runner;
    this.#text = text;
    this.#codec = codec;
    this.#turn = turn;
    this.#contextTokens = contextTokens;
  }

  /** Uses the runner's pool and scratch and leaves them empty. `onProgress` gets 0 .. 1. */
  async run(onProgress: (fraction: number) => void): Promise<Divergences> {
    const text = this.#text;
    const { pool } = this.#runner;
    const numContext = text.length - SCORED - 1;
    const sums = { files: noDivergence(), conversations: noDivergence() };
    // The slots after those of the text: as many again for pruned rows, and those that are fed at a time.
    pool.resize(2 * text.length + partSlots(this.#turn) + SCORED);
    const scored = slotRange(text.length, text.length + SCORED);
    try {
      await computeRows(this.#runner, text, slotRange(0, text.length), { end: numContext });
      const exact = pool.read(slotRange(0, numContext));
      for (const [e, share] of ENDS.entries()) {
        const end = Math.floor(numContext * share);
        const score = (contextSlots: Int32Array) =>
          scoreTokens(this.#runner, text.slice(end, end + SCORED), end, contextSlots, scored);
        const reference = await score(slotRange(0, end));
        for (const [k, kind] of (['files', 'conversations'] as const).entries()) {
          const left = kind === 'files' ? await this.#pruneFile(end) : await this.#pruneConversation(end);
          for (const [i, row] of (await score(left)).entries()) addPosition(sums[kind], reference[i]!, row);
          pool.write(slotRange(0, numContext), exact, 0, 0);
          onProgress((e + (k + 1) / 2) / ENDS.length);
        }
      }
      return sums;
    } finally {
      this.#runner.releaseScratch();
      pool.resize(0);
    }
  }

  async #pruneFile(end: number): Promise<Int32Array> {
    const parts = probes(this.#text.slice(0, end), 0, end, this.#turn, this.#contextTokens);
    return this.#prune(KVZIP, await this.#measure(parts, end), end, 0);
  }

  async #pruneConversation(end: number): Promise<Int32Array> {
    return this.#prune(H2O, await this.#measure(inPlace(this.#text.slice(0, end), 0, 0), end), end, RECENT_TOKENS);
  }

  /** The attention that rows 0 .. end-1 receive: [numLayers * kvHeads, end]. */
  async #measure(parts: readonly MeterPart[], end: number): Promise<Float32Array> {
    const { numLayers, kvHeads } = this.#runner.pool.shape;
    const meter = new AttentionMeter(numLayers * kvHeads, end);
    for (const part of parts) {
      let free = this.#text.length;
      const allocate = (n: number): Int32Array => {
        free += n;
        return slotRange(free - n, free);
      };
      await meter.feed(this.#runner, part, slotRange(0, end), allocate, () => false);
    }
    return meter.sum;
  }

  /**
   * Prunes tokens 0 .. end-1 in place. Returns the slots of the rows that stay. The last `recent` tokens all stay and
   * are not coded.
   */
  #prune(name: PruningName, attention: Float32Array, end: number, recent: number): Int32Array {
    const { pool } = this.#runner;
    const { numLayers, kvHeads } = pool.shape;
    let [from, to] = [0, 0];
    for (const length of [...pieceLengths(end - recent), recent]) {
      const rows = pool.read(slotRange(from, from + length));
      const own = new Float32Array(numLayers * kvHeads * length);
      for (let h = 0; h < numLayers * kvHeads; h++)
        own.set(attention.subarray(h * end + from, h * end + from + length), h * length);
      const stays = from + length > end - recent;
      const numKept = stays ? length : Math.ceil(KEPT_SHARES[name] * length);
      const kept = keptTokens(pool.shape, own, numKept, this.#codec.neediest, from);
      const left = rowsOf(kept, pool.shape, rows);
      const startIndex = from;
      const positions = kept.map((token) => startIndex + token);
      const written = stays ? left : this.#codec.through(left, { startIndex, positions });
      pool.write(slotRange(to, to + kept.length), written, 0, positions);
      from += length;
      to += kept.length;
    }
    return slotRange(0, to);
  }
}
