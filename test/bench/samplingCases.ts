/**
 * Measures the choice of a token from one row of logits, to compare with the step that computes the logits. Rows are
 * normally distributed, which is flatter than the rows of a trained model.
 */
import { type SamplerParams, sample } from '../../engine/sequence/sampler.ts';
import type { Random } from '../support/engine/workload.ts';
import type { Case } from './engineCases.ts';
import { median } from './spread.ts';

const PLAIN: SamplerParams = {
  temperature: 0,
  topP: 1,
  topK: 0,
  repetitionPenalty: 1,
  logprobs: false,
  topLogprobs: 0,
  seed: 1,
};
const WAYS: Record<string, SamplerParams> = {
  greedy: PLAIN,
  'greedy, log-probability': { ...PLAIN, logprobs: true },
  'greedy, repetition penalty': { ...PLAIN, repetitionPenalty: 1.1 },
  'temperature 0.8': { ...PLAIN, temperature: 0.8 },
  'temperature 0.8, top-k 20': { ...PLAIN, temperature: 0.8, topK: 20 },
  'temperature 0.8, top-p 0.95': { ...PLAIN, temperature: 0.8, topP: 0.95 },
};
const NUM_ROWS = 8;
const REPEATS = 40;
const HISTORY = 2000;

export function samplingCases(vocabSize: number, random: Random): Case[] {
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const rows = Array.from({ length: NUM_ROWS }, () => Float32Array.from({ length: vocabSize }, () => 2.5 * normal()));
  const history = Array.from({ length: HISTORY }, () => Math.floor(random() * vocabSize));
  return Object.entries(WAYS).map(([way, params]) => ({
    group: 'sampling',
    key: { way, vocabulary: vocabSize },
    measure: async () => {
      const times = Array.from({ length: REPEATS }, (_, i) => {
        const start = performance.now();
        sample(rows[i % NUM_ROWS]!, params, history, i);
        return performance.now() - start;
      });
      return { ms: median(times) };
    },
  }));
}
