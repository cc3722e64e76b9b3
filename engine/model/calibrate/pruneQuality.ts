/**
 * What letting rows go costs with a model: a text is computed, those rows are left of it that stay of a file that nobody uses, or
 * of a conversation (see pruning), coded as they are once they are out of the pool, and the next tokens are compared with those
 * over all rows. It decides whether it is done with that model; the result lies beside the imported model, so that it is measured
 * once.
 */
import { AttentionMeter, inPlace, type MeterPart, partSlots, probes, type TurnIds } from '../runtime/attentionMeter.ts';
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
import { addPosition, type Divergence, logProbabilities, noDivergence } from './divergence.ts';
import type { CodecQuality } from '../../protocol/stats.ts';
import type { ImportedModel } from '../load/importedModel.ts';
import { measuredOnce } from './measuredOnce.ts';
import type { OnnxRunner } from '../runtime/runner.ts';
import { SHIFT_SAMPLE } from './sampleText.ts';

/** Mean KL divergence, in nats, up to which rows are let go; as for codecs. */
const PRUNE_BOUND = 5e-2;
/** Of the file; raised when measuring changes. */
const FORMAT = 6;
const CHUNK = 256;
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

/** null: the model's context is too short. @param codec of what stays. @param turn see PruningOptions. */
export function pruneQuality(
  model: ImportedModel,
  runner: OnnxRunner,
  encode: (text: string) => number[],
  codec: KvCodec,
  turn: TurnIds,
  contextTokens: number,
  onProgress: (fraction: number) => void,
): Promise<PruneQuality | null> {
  return measuredOnce(
    model.dir,
    `pruning-${KVZIP}.json`,
    {
      format: FORMAT,
      contextTokens,
      bound: PRUNE_BOUND,
      shares: KEPT_SHARES,
      recent: RECENT_TOKENS,
      turn,
      codec: codec.name,
      order: codec.order,
    },
    async () => {
      const text = encode(SHIFT_SAMPLE).slice(0, Math.min(MAX_TOKENS, contextTokens));
      const most = text.length - SCORED - 1;
      if (most * ENDS[0]! < 2 * RECENT_TOKENS) return null;
      const { pool, vocabSize } = runner;
      const { numLayers, kvHeads, headSize } = pool.shape;
      const slots = (from: number, to: number): Int32Array =>
        Int32Array.from({ length: to - from }, (_, i) => from + i);
      // Behind the text there is room for as much again, and for what is fed at a time.
      pool.resize(2 * text.length + partSlots(turn) + SCORED);
      const rest = slots(text.length, text.length + SCORED);
      const sums = { files: noDivergence(), conversations: noDivergence() };
      const measure = async (parts: readonly MeterPart[], end: number): Promise<AttentionMeter> => {
        const meter = new AttentionMeter(numLayers * kvHeads, end);
        for (const part of parts) {
          let free = text.length;
          const allocate = (n: number): Int32Array => {
            free += n;
            return slots(free - n, free);
          };
          await meter.feed(runner, part, slots(0, end), allocate, () => false);
        }
        return meter;
      };
      /** Leaves of tokens 0 .. end what stays, in the first slots; `recent` tokens of its end all do. Returns the slots. */
      const leave = (name: PruningName, attention: Float32Array, end: number, recent: number): Int32Array => {
        let [from, to] = [0, 0];
        for (const length of [...pieceLengths(end - recent), recent]) {
          const rows = pool.read(slots(from, from + length));
          const own = new Float32Array(numLayers * kvHeads * length);
          for (let h = 0; h < numLayers * kvHeads; h++)
            own.set(attention.subarray(h * end + from, h * end + from + length), h * length);
          const stays = from + length > end - recent;
          const kept = keptTokens(
            pool.shape,
            own,
            stays ? length : Math.ceil(KEPT_SHARES[name] * length),
            codec.neediest,
            from,
          );
          const left = rowsOf(kept, pool.shape, rows);
          const start = from;
          const positions = kept.map((token) => start + token);
          pool.write(
            slots(to, to + kept.length),
            stays ? left : codec.through(left, { startIndex: start, positions }),
            0,
            positions,
          );
          from += length;
          to += kept.length;
        }
        return slots(0, to);
      };
      try {
        for (let at = 0; at < most; at += CHUNK) {
          const end = Math.min(most, at + CHUNK);
          await runner.run([
            {
              tokenIds: text.slice(at, end),
              startIndex: at,
              contextSlots: slots(0, at),
              newSlots: slots(at, end),
              lane: 'prefill',
              prefillEnd: most,
              numLogits: 0,
            },
          ]);
        }
        const exact = pool.read(slots(0, most));
        for (const [e, share] of ENDS.entries()) {
          const end = Math.floor(most * share);
          const score = async (contextSlots: Int32Array): Promise<Float64Array[]> => {
            const logits = await runner.run([
              {
                tokenIds: text.slice(end, end + SCORED),
                startIndex: end,
                contextSlots,
                newSlots: rest,
                numLogits: SCORED,
              },
            ]);
            return Array.from({ length: SCORED }, (_, i) =>
              logProbabilities(logits.subarray(i * vocabSize, (i + 1) * vocabSize)),
            );
          };
          const reference = await score(slots(0, end));
          const ways = {
            files: async (): Promise<Int32Array> =>
              leave(KVZIP, (await measure(probes(text.slice(0, end), 0, end, turn, contextTokens), end)).sum, end, 0),
            conversations: async (): Promise<Int32Array> =>
              leave(H2O, (await measure(inPlace(text.slice(0, end), 0, 0), end)).sum, end, RECENT_TOKENS),
          };
          for (const [w, way] of (['files', 'conversations'] as const).entries()) {
            const left = await ways[way]();
            for (const [i, row] of (await score(left)).entries()) addPosition(sums[way], reference[i]!, row);
            pool.write(slots(0, most), exact, 0, 0);
            onProgress((e + (w + 1) / 2) / ENDS.length);
          }
        }
        const quality = (name: PruningName, { klSum, klMax, agreed, numTokens }: Divergence): CodecQuality => {
          const bytesPerToken = keptBytesPerToken(codec, name);
          return {
            codec: name,
            klMean: klSum / numTokens,
            klMax,
            top1: agreed / numTokens,
            bound: PRUNE_BOUND,
            numTokens,
            bytesPerToken,
            compression: (numLayers * kvHeads * headSize * 2 * 2) / bytesPerToken,
          };
        };
        return { files: quality(KVZIP, sums.files), conversations: quality(H2O, sums.conversations) };
      } finally {
        runner.releaseScratch();
        pool.resize(0);
      }
    },
  );
}
