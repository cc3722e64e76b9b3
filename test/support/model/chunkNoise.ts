/** Measures the rounding noise of a graph: the largest change of a logit because the current load decides on chunks. */
import { type OtherNext, sample } from '../../../engine/sequence/sampler.ts';
import type { KvPool } from '../../../engine/kv/pool.ts';
import type { Runner } from '../../../engine/model/batch.ts';
import type { SamplingParams } from '../../../engine/protocol/tasks.ts';
import { below, seededRandom } from '../engine/workload.ts';

/**
 * Largest difference of a logit between chunkings of the same 1,000 positions into chunks of 64, 7 and 1. No other code
 * may use the pool meanwhile.
 */
export async function chunkNoise(runner: Runner, pool: KvPool, vocabSize: number): Promise<number> {
  const random = seededRandom(5);
  let noise = 0;
  for (let text = 0; text < 5; text++) {
    const ids = Array.from({ length: 200 }, () => below(random, vocabSize));
    if (pool.numSlots < 256) pool.resize(256);
    const all: Float32Array[] = [];
    for (const chunk of [64, 7, 1]) {
      const rows = new Float32Array(ids.length * vocabSize);
      // Each chunking uses other slots, because the place of a row must not matter.
      const slots = Int32Array.from(ids, (_, i) => (i * 37 + chunk) % 256);
      for (let start = 0; start < ids.length; start += chunk) {
        const part = ids.slice(start, start + chunk);
        const logits = await runner.run([
          {
            tokenIds: part,
            startIndex: start,
            contextSlots: slots.subarray(0, start),
            newSlots: slots.subarray(start, start + part.length),
            numLogits: part.length,
          },
        ]);
        rows.set(logits, start * vocabSize);
      }
      all.push(rows);
    }
    for (const other of all.slice(1))
      for (let i = 0; i < other.length; i++) noise = Math.max(noise, Math.abs(other[i]! - all[0]![i]!));
  }
  return noise;
}

/**
 * The tokens that the sampler may take after `tokenIds` if each logit is off by up to `noise`, from 1,000 seeded draws.
 * Greedy sampling gives only the best token of the unchanged logits.
 */
export async function drawsWithin(
  noise: number,
  runner: Runner,
  pool: KvPool,
  tokenIds: readonly number[],
  sampling: SamplingParams,
  other: OtherNext | null,
): Promise<Set<number>> {
  const params = {
    temperature: 0,
    topP: 1,
    topK: 0,
    repetitionPenalty: 1,
    topLogprobs: 0,
    seed: 0,
    ...sampling,
    logprobs: false,
  };
  if (pool.numSlots < tokenIds.length) pool.resize(tokenIds.length);
  const newSlots = Int32Array.from(tokenIds, (_, i) => i);
  const logits = Float32Array.from(
    await runner.run([
      { tokenIds: [...tokenIds], startIndex: 0, contextSlots: new Int32Array(0), newSlots, numLogits: 1 },
    ]),
  );
  if (params.temperature === 0)
    return new Set([sample(logits, params, tokenIds, tokenIds.length, null, other).tokenId]);
  const random = seededRandom(7);
  const draws = new Set<number>();
  for (let i = 0; i < 1000; i++)
    draws.add(
      sample(
        logits.map((logit) => logit + noise * (2 * random() - 1)),
        params,
        tokenIds,
        tokenIds.length,
        null,
        other,
      ).tokenId,
    );
  return draws;
}
