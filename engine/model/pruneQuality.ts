/**
 * What letting rows of a file go costs with a model: a text is computed, those rows are left of it that stay of a file that nobody
 * uses (see pruning), and the next tokens are compared with those over all rows. It decides whether it is done with that model;
 * the result lies beside the imported model, so that it is measured once.
 */
import { AttentionMeter, repeated } from '../attentionMeter.ts';
import { KEPT_SHARE, keptTokens, KVZIP, rowsOf } from '../cache/keptRows.ts';
import { kvBytesPerToken } from '../cache/kvRows.ts';
import { addPosition, logProbabilities, noDivergence } from '../divergence.ts';
import type { CodecQuality } from '../protocol.ts';
import type { ImportedModel } from './importModel.ts';
import { measuredOnce } from './measuredOnce.ts';
import type { OnnxRunner } from './runner.ts';
import { SHIFT_SAMPLE } from './shiftSample.ts';

/**
 * Mean KL divergence, in nats, up to which rows are let go. More than what codecs may cost: it is counted over the tokens right
 * behind the text, which need its end most, while KVzip keeps what is needed of all of it.
 */
const PRUNE_BOUND = 0.2;
/** Of the file; raised when measuring changes. */
const FORMAT = 1;
const CHUNK = 256;
/** Tokens compared behind each context. */
const SCORED = 64;
/** Where contexts end, as shares of the text. */
const ENDS = [0.6, 0.8, 1];
/** A longer text only costs time. */
const MOST_TOKENS = 2000;

/** null: the model's context is too short. @param request see PruningOptions. */
export function pruneQuality(model: ImportedModel, runner: OnnxRunner, encode: (text: string) => number[], request: readonly number[], contextTokens: number, onProgress: (fraction: number) => void): Promise<CodecQuality | null> {
  return measuredOnce(model.dir, `pruning-${KVZIP}.json`, { format: FORMAT, contextTokens, bound: PRUNE_BOUND, share: KEPT_SHARE }, async () => {
    const text = encode(SHIFT_SAMPLE).slice(0, Math.min(MOST_TOKENS, contextTokens));
    const most = text.length - SCORED - 1;
    if (most < 4 * SCORED) return null;
    const { window, vocabSize } = runner;
    const { numLayers, kvHeads, headSize } = window.shape;
    const slots = (from: number, to: number): Int32Array => Int32Array.from({ length: to - from }, (_, i) => from + i);
    // Behind the text there is room for as much again, with what asks for it.
    window.resize(2 * text.length + request.length + SCORED);
    const rest = slots(text.length, text.length + SCORED);
    const divergence = noDivergence();
    try {
      for (let at = 0; at < most; at += CHUNK) {
        const end = Math.min(most, at + CHUNK);
        await runner.run([{ tokenIds: text.slice(at, end), startIndex: at, contextSlots: slots(0, at), newSlots: slots(at, end), lane: 'prefill', prefillEnd: most, numLogits: 0 }]);
      }
      const exact = window.read(slots(0, most));
      for (const [e, share] of ENDS.entries()) {
        const end = Math.floor(most * share);
        const score = async (contextSlots: Int32Array): Promise<Float64Array[]> => {
          const logits = await runner.run([{ tokenIds: text.slice(end, end + SCORED), startIndex: end, contextSlots, newSlots: rest, numLogits: SCORED }]);
          return Array.from({ length: SCORED }, (_, i) => logProbabilities(logits.subarray(i * vocabSize, (i + 1) * vocabSize)));
        };
        const reference = await score(slots(0, end));
        const meter = new AttentionMeter(numLayers * kvHeads, end);
        for (const part of repeated(text.slice(0, end), end, request, contextTokens)) {
          let free = text.length;
          const allocate = (n: number): Int32Array => {
            free += n;
            return slots(free - n, free);
          };
          await meter.feed(runner, part, slots(0, end), allocate, () => false);
        }
        const rows = window.read(slots(0, end));
        const kept = keptTokens(window.shape, meter.most, Math.ceil(KEPT_SHARE * end), new Set(model.biased));
        window.write(slots(0, kept.count), rowsOf(kept, window.shape, rows), 0, kept.places);
        for (const [i, row] of (await score(slots(0, kept.count))).entries()) addPosition(divergence, reference[i]!, row);
        window.write(slots(0, most), exact, 0, 0);
        onProgress((e + 1) / ENDS.length);
      }
      const { klSum, klMax, agreed, numTokens } = divergence;
      const bytesPerToken = KEPT_SHARE * (kvBytesPerToken(window.shape) + 4);
      return { codec: KVZIP, klMean: klSum / numTokens, klMax, top1: agreed / numTokens, bound: PRUNE_BOUND, numTokens, bytesPerToken, compression: (numLayers * kvHeads * headSize * 2 * 2) / bytesPerToken };
    } finally {
      runner.releaseScratch();
      window.resize(0);
    }
  });
}
