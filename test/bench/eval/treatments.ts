/**
 * Treatments of an idle context: a codec of the store codes its rows, or pruning drops some of them.
 * A treatment changes rows in the pool and returns the slots that later tokens attend to.
 */
import { AttentionMeter, inPlace, type MeterPart, probes } from '../../../engine/kv/approx/pruned/attentionMeter.ts';
import type { KvCodec } from '../../../engine/kv/approx/codecs/kvCodec.ts';
import { type CodecName, FORMATS } from '../../../engine/kv/approx/codecs/registry.ts';
import { codecNames, compressionOf } from '../../../engine/kv/approx/approximations.ts';
import { levelFor } from '../../../engine/kv/approx/compression.ts';
import {
  H2O,
  KEPT_CODEC,
  keptBytesPerToken,
  KEPT_SHARES,
  keptTokens,
  KVZIP,
  pieceLengths,
  type PruningName,
  RECENT_TOKENS,
  rowsOf,
} from '../../../engine/kv/approx/pruned/keptRows.ts';
import { canSketch, sketchBytes, sketchedAttention, sketchKeys } from '../../../engine/kv/approx/sparse/keySketch.ts';
import { chosenBlocks } from '../../../engine/kv/approx/sparse/residentBlocks.ts';
import { SPILLED_TOKENS } from '../../../engine/kv/approx/sparse/sparseBudget.ts';
import { ASKING, LAST_PART, SKETCH } from '../../../engine/kv/approx/sparse/sparseLeases.ts';
import { BLOCK_TOKENS } from '../../../engine/kv/storedBlocks.ts';
import type { ComputedContext, KvSubject } from './subject.ts';

/** Share of a context's tokens that `sketch` has in the pool. */
const CHOSEN_SHARE = 1 / 3;
/** Shorter contexts stay whole, as with pruning in the product. */
const MIN_PRUNED = 256;
/** The setting that chooses a codec by age and by how full memory is. */
const AUTO = 'auto';
/**
 * The situation in which `auto` is measured: memory is 90% full and nothing is coded yet. The first third of the
 * context was last used 1 minute ago, the second 6 and the last 12. A use of tokens also uses all tokens before them,
 * so the end of a context has always been unused for longest.
 */
const AUTO_SCENE = { fullness: 0.9, idleMinutes: [1, 6, 12] };

/**
 * Slots of a context, in order, that the following tokens attend to when `tokenIds` come next.
 * There are fewer slots than tokens if some were dropped.
 */
export type SlotsFor = (tokenIds: readonly number[]) => Promise<Int32Array>;

interface TreatedContext {
  readonly slotsFor: SlotsFor;
  /** Bytes that the treated context takes where it is kept. */
  readonly bytes: number;
}

/** The same slots for all tokens. */
const always =
  (slots: Int32Array): SlotsFor =>
  async () =>
    slots;

export interface Treatment {
  readonly name: string;
  /** Names of the codecs that the subject must have. */
  readonly codecs: readonly string[];
  /** Bytes per token in the middle of a long context. */
  bytesPerToken(subject: KvSubject): number;
  /** Changes rows of the context. They are in the pool as computed. */
  apply(subject: KvSubject, context: ComputedContext): Promise<TreatedContext>;
}

/** Encodes and decodes a context in blocks, as the store does with an unused file. */
export function codecTreatment(name: CodecName): Treatment {
  return {
    name,
    codecs: [name],
    bytesPerToken(subject) {
      const codec = subject.codec(name);
      return codec.bytesPerToken(codec.format.blockTokens);
    },
    apply: async (subject, { slots }) => ({
      slotsFor: always(slots),
      bytes: codeTokens(subject, subject.codec(name), slots, 0, slots.length),
    }),
  };
}

/** Encodes and decodes tokens [from, to) of a context block by block. Returns the encoded bytes. */
function codeTokens(
  { runner: { pool } }: KvSubject,
  codec: KvCodec,
  slots: Int32Array,
  from: number,
  to: number,
): number {
  const { blockTokens } = codec.format;
  let bytes = 0;
  for (let at = from; at < to; at += blockTokens) {
    const block = slots.subarray(at, Math.min(to, at + blockTokens));
    const encoded = codec.encode(pool.read(block), { startIndex: at, contextEnd: slots.length });
    pool.write(block, codec.decode(encoded).rows, 0, at);
    bytes += encoded.length;
  }
  return bytes;
}

/** One codec for each part of AUTO_SCENE, in the order of the context. Null leaves the part as it was. */
function autoCodecs(subject: KvSubject): (KvCodec | null)[] {
  const { levels } = compressionOf(
    AUTO,
    codecNames(AUTO).map((name) => subject.codec(name)),
  )!;
  return AUTO_SCENE.idleMinutes.map(
    (minutes) => levelFor(levels, 60_000 * minutes, AUTO_SCENE.fullness)?.codec ?? null,
  );
}

/** Codes each part of a context as `auto` does in AUTO_SCENE, and leaves parts without a codec as they were. */
const auto: Treatment = {
  name: AUTO,
  codecs: codecNames(AUTO),
  bytesPerToken(subject) {
    const parts = autoCodecs(subject).map(
      (codec) => codec?.bytesPerToken(codec.format.blockTokens) ?? rowBytes(subject),
    );
    return parts.reduce((sum, bytes) => sum + bytes, 0) / parts.length;
  },
  async apply(subject, { slots }) {
    const codecs = autoCodecs(subject);
    const size = BLOCK_TOKENS * Math.round(slots.length / codecs.length / BLOCK_TOKENS);
    let bytes = 0;
    for (const [i, codec] of codecs.entries()) {
      const from = Math.min(slots.length, i * size);
      const to = i + 1 < codecs.length ? Math.min(slots.length, from + size) : slots.length;
      bytes += codec ? codeTokens(subject, codec, slots, from, to) : (to - from) * rowBytes(subject);
    }
    return { slotsFor: always(slots), bytes };
  },
};

/** Bytes of a token that the store keeps losslessly. */
const rowBytes = ({ shape: { numLayers, kvHeads, headSize } }: KvSubject): number =>
  numLayers * kvHeads * (2 * headSize + 8);

async function metered(
  subject: KvSubject,
  { tokenIds, slots }: ComputedContext,
  parts: readonly MeterPart[],
): Promise<AttentionMeter> {
  const { numLayers, kvHeads } = subject.shape;
  const meter = new AttentionMeter(numLayers * kvHeads, tokenIds.length);
  for (const part of parts) {
    let free = tokenIds.length;
    subject.reserve(free + part.tokenIds.length);
    await meter.feed(
      subject.runner,
      part,
      slots,
      (n) => Int32Array.from({ length: n }, () => free++),
      () => false,
    );
  }
  return meter;
}

/**
 * Keeps the tokens with the most attention in each piece of the first `n` tokens and codes them.
 * Keeps all later tokens uncoded.
 * @param attention [heads, width], width >= n.
 */
function pruned(
  name: PruningName,
  subject: KvSubject,
  { slots }: ComputedContext,
  n: number,
  attention: Float32Array,
): TreatedContext {
  const { shape } = subject;
  const { pool } = subject.runner;
  const numHeads = shape.numLayers * shape.kvHeads;
  const width = attention.length / numHeads;
  const codec = subject.codec(KEPT_CODEC);
  let [from, to, bytes] = [0, 0, (slots.length - n) * rowBytes(subject)];
  for (const length of pieceLengths(n)) {
    const own = new Float32Array(numHeads * length);
    for (let h = 0; h < numHeads; h++)
      own.set(attention.subarray(h * width + from, h * width + from + length), h * length);
    const kept = keptTokens(shape, own, Math.ceil(KEPT_SHARES[name] * length), codec.neediest, from);
    const start = from;
    const positions = kept.map((token) => start + token);
    const encoded = codec.encode(rowsOf(kept, shape, pool.read(slots.subarray(from, from + length))), {
      startIndex: start,
      positions,
    });
    pool.write(slots.subarray(to, to + kept.length), codec.decode(encoded, positions).rows, 0, positions);
    bytes += encoded.length + positions.byteLength;
    from += length;
    to += kept.length;
  }
  return { slotsFor: always(Int32Array.from([...slots.subarray(0, to), ...slots.subarray(n)])), bytes };
}

const whole = (subject: KvSubject, { slots }: ComputedContext): TreatedContext => ({
  slotsFor: always(slots),
  bytes: slots.length * rowBytes(subject),
});

/** Keeps the rows that a repetition of parts of the context attends to, as the product does for files (after KVzip). */
const kvzip: Treatment = {
  name: KVZIP,
  codecs: [KEPT_CODEC],
  bytesPerToken: (subject) => keptBytesPerToken(subject.codec(KEPT_CODEC), KVZIP),
  async apply(subject, context) {
    const { tokenIds } = context;
    const n = tokenIds.length;
    if (n < MIN_PRUNED) return whole(subject, context);
    const { sum } = await metered(
      subject,
      context,
      probes(tokenIds, 0, n, subject.turn, subject.model.config.contextTokens),
    );
    return pruned(KVZIP, subject, context, n, sum);
  },
};

/**
 * Keeps the recent rows and those with the most attention from the context itself, as the product does for long
 * conversations (H2O).
 */
const h2o: Treatment = {
  name: H2O,
  codecs: [KEPT_CODEC],
  bytesPerToken: (subject) => keptBytesPerToken(subject.codec(KEPT_CODEC), H2O),
  async apply(subject, context) {
    const n = context.tokenIds.length - RECENT_TOKENS;
    if (n < MIN_PRUNED) return whole(subject, context);
    const { sum } = await metered(subject, context, inPlace(context.tokenIds, 0, 0));
    return pruned(H2O, subject, context, n, sum);
  },
};

/**
 * Keeps rows unchanged, but later tokens attend only to blocks that a sketch chooses at the end of the prompt, as with
 * a context longer than the pool. This measures the choice alone: the rows were computed with the whole context
 * visible, and blocks needed later in an answer are not brought back.
 */
const sketch: Treatment = {
  name: SKETCH,
  codecs: [],
  bytesPerToken: (subject) =>
    sketchBytes(subject.shape, SPILLED_TOKENS) / SPILLED_TOKENS + CHOSEN_SHARE * rowBytes(subject),
  async apply(subject, context) {
    const { tokenIds, slots } = context;
    const { shape, runner, model } = subject;
    const n = tokenIds.length;
    if (n < MIN_PRUNED || !canSketch(shape)) return whole(subject, context);
    const mostTokens = Math.floor(CHOSEN_SHARE * n);
    const blocks = Array.from({ length: Math.ceil(n / SPILLED_TOKENS) }, (_, b) => {
      const own = slots.subarray(b * SPILLED_TOKENS, (b + 1) * SPILLED_TOKENS);
      return { slots: own, numTokens: own.length, sketch: sketchKeys(shape, runner.pool.read(own)), attention: 0 };
    });
    const chosen = (attention?: Float32Array): Int32Array => {
      const there = chosenBlocks(
        blocks.map((block, b) => ({ ...block, attention: attention?.[b] ?? 0 })),
        mostTokens,
      );
      return Int32Array.from([...there].flatMap((block) => [...block.slots]).sort((a, b) => a - b));
    };
    const slotsFor: SlotsFor = async (ids) => {
      // If the prompt is short, the end of the context takes part in the choice.
      const again = Math.max(0, LAST_PART - ids.length);
      const before = chosen().filter((slot) => slot < n - again);
      const queries = await subject.ask(
        context,
        before,
        n - again,
        [...tokenIds.slice(n - again), ...ids],
        ASKING.last,
      );
      return chosen(sketchedAttention(shape, blocks, queries, new Set(model.biased)));
    };
    return {
      slotsFor,
      bytes: blocks.reduce((sum, block) => sum + block.sketch.length, 0) + mostTokens * rowBytes(subject),
    };
  },
};

/** All treatments. */
export const TREATMENTS: readonly Treatment[] = [
  ...FORMATS.map(({ name }) => codecTreatment(name)),
  auto,
  kvzip,
  h2o,
  sketch,
];
