/** Times codecs on a context, and computing the same tokens. Both take turns in each round. */
import { type CodecName, FORMATS } from '../../../engine/kv/approx/codecs/registry.ts';
import type { KvSubject } from '../eval/subject.ts';
import { below, seededRandom } from '../../support/engine/workload.ts';
import { type Figure, figure } from '../spread.ts';

/** Start position of the runs: after the attention sinks and before recent tokens. */
const START = 1024;

interface CodecSpeed {
  codec: CodecName;
  bytesPerToken: number;
  /** Size at 2 bytes per value over `bytesPerToken`. */
  compression: number;
  /** Megabytes of pool rows per second. */
  encode: Figure;
  decode: Figure;
  /** Time to encode and decode over time to compute, in the same round. */
  ofRecompute: Figure;
}

export interface SpeedResult {
  model: string;
  numTokens: number;
  runTokens: number;
  /** Tokens per second from an empty context, where computing costs least. */
  recompute: Figure;
  codecs: CodecSpeed[];
}

/** @param runTokens tokens that are encoded together, like a block of the store. */
export async function measureSpeed(
  subject: KvSubject,
  numTokens: number,
  runTokens: number,
  rounds: number,
): Promise<SpeedResult> {
  const random = seededRandom(3);
  const tokenIds = Array.from({ length: numTokens }, () => below(random, subject.runner.vocabSize));
  const { slots } = await subject.compute(tokenIds);
  const runs = Array.from({ length: Math.ceil(numTokens / runTokens) }, (_, i) =>
    subject.runner.pool.read(slots.subarray(i * runTokens, (i + 1) * runTokens)),
  );
  const { numLayers, kvHeads, headSize } = subject.shape;
  const rowBytes = numTokens * numLayers * kvHeads * (2 * headSize + 8);
  const codecs = FORMATS.map(({ name }) => subject.codec(name));
  const once = (codec: (typeof codecs)[number]): { encode: number; decode: number } => {
    const start = performance.now();
    const encoded = runs.map((rows, i) => codec.encode(rows, { startIndex: START + i * runTokens }));
    const middle = performance.now();
    for (const bytes of encoded) codec.decode(bytes);
    return { encode: middle - start, decode: performance.now() - middle };
  };
  // Warms up until the JIT compiler has optimised the codecs.
  for (const codec of codecs) for (const until = performance.now() + 300; performance.now() < until; ) once(codec);
  const recompute: number[] = [];
  const times = codecs.map(() => ({ encode: [] as number[], decode: [] as number[] }));
  for (let round = 0; round < rounds; round++) {
    recompute.push((await subject.compute(tokenIds)).ms);
    for (const [i, codec] of codecs.entries()) {
      const { encode, decode } = once(codec);
      times[i]!.encode.push(encode);
      times[i]!.decode.push(decode);
    }
  }
  return {
    model: subject.name,
    numTokens,
    runTokens,
    recompute: figure(recompute.map((ms) => (numTokens / ms) * 1000)),
    codecs: codecs.map((codec, i) => {
      const bytesPerToken = codec.bytesPerToken(runTokens);
      const { encode, decode } = times[i]!;
      return {
        codec: codec.name as CodecName,
        bytesPerToken,
        compression: subject.float16Bytes / bytesPerToken,
        encode: figure(encode.map((ms) => rowBytes / ms / 1000)),
        decode: figure(decode.map((ms) => rowBytes / ms / 1000)),
        ofRecompute: figure(encode.map((ms, r) => (ms + decode[r]!) / recompute[r]!)),
      };
    }),
  };
}
