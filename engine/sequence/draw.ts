/**
 * Draws a token of a surveyed row: temperature, top-k and top-p in this order, as in transformers. Does not know where
 * its random number comes from.
 */
import type { SamplingParams } from '../protocol/tasks.ts';
import {
  BLOCK,
  blockMass,
  blockMax,
  HALVINGS,
  highest,
  power,
  sorted,
  STEPS_PER_HALVING,
  sumOfExp,
} from './logitBlocks.ts';

/** See SamplingParams. */
export type CutParams = Required<Pick<SamplingParams, 'temperature' | 'topK' | 'topP'>>;

/**
 * A token with the probability exp((score - max) / temperature) after the cuts.
 * @param scores [vocabSize], the row that was surveyed last; @param max the highest of them; @param u uniform in [0, 1)
 */
export function draw(scores: Float32Array, max: number, params: CutParams, u: number): number {
  const { temperature, topK, topP } = params;
  const cutsK = topK > 0 && topK < scores.length;
  const total = cutsK ? 0 : sumOfExp(scores, max, 1 / temperature);
  if (!cutsK && topP === 1) return drawAny(scores, max, temperature, u * total);
  let ids = cutsK ? highest(scores, topK) : heaviest(scores, max, temperature, topP, total);
  const weights = ids.map((id) => Math.exp((scores[id]! - max) / temperature));
  if (topP < 1) {
    const mass = cutsK ? weights.reduce((sum, weight) => sum + weight, 0) : total;
    let length = 0;
    for (let held = 0; length < ids.length && held < topP * mass; length++) held += weights[length]!;
    ids = ids.slice(0, length);
  }
  // In the order of ids, not of ranks: rounding may swap the ranks of two tokens, and must not change the choice.
  const kept = Array.from(ids.keys()).sort((a, b) => ids[a]! - ids[b]!);
  let left = u * kept.reduce((sum, i) => sum + weights[i]!, 0);
  for (const i of kept) {
    left -= weights[i]!;
    if (left < 0) return ids[i]!;
  }
  return ids[kept.at(-1)!]!;
}

/** Without cuts no order is needed: finds the block in which `left` of the mass ends, then the token in it. */
function drawAny(scores: Float32Array, max: number, temperature: number, left: number): number {
  const factor = (Math.LOG2E * STEPS_PER_HALVING) / temperature;
  const end = HALVINGS * STEPS_PER_HALVING;
  let rest = left;
  let block = -1;
  for (let b = 0; b * BLOCK < scores.length; b++) {
    if (blockMass[b] === 0) continue;
    block = b;
    if (rest < blockMass[b]!) break;
    rest -= blockMass[b]!;
  }
  let chosen = -1;
  for (let id = block * BLOCK; id < Math.min((block + 1) * BLOCK, scores.length); id++) {
    const x = (max - scores[id]!) * factor;
    if (x >= end) continue;
    chosen = id;
    rest -= power(x);
    if (rest < 0) break;
  }
  return chosen;
}

const BINS_PER_HALVING = 4;
const bins = new Float64Array(HALVINGS * BINS_PER_HALVING);

/**
 * Tokens that hold at least `topP` of the mass, heaviest first, and few more. A histogram over the distance from the
 * best
 * token tells where to stop.
 */
function heaviest(scores: Float32Array, max: number, temperature: number, topP: number, total: number): number[] {
  const factor = (Math.LOG2E * STEPS_PER_HALVING) / temperature;
  const end = HALVINGS * STEPS_PER_HALVING;
  const perBin = STEPS_PER_HALVING / BINS_PER_HALVING;
  bins.fill(0);
  // The mass of each block is known: blocks that together hold less than the mass to be cut off are skipped.
  const spare = (total * (1 - topP)) / blockMax.length / 2;
  for (let b = 0, start = 0; start < scores.length; b++, start += BLOCK) {
    if (blockMass[b]! <= spare) continue;
    for (let id = start; id < Math.min(start + BLOCK, scores.length); id++) {
      const x = (max - scores[id]!) * factor;
      if (x < end) bins[(x / perBin) | 0]! += power(x);
    }
  }
  // A little more than asked, because of rounding at the edge.
  let left = total * Math.min(1, topP + 1e-5);
  let numBins = 0;
  while (left > 0 && numBins < bins.length) left -= bins[numBins++]!;
  return sorted(scores, max - (numBins / BINS_PER_HALVING) * Math.LN2 * temperature);
}
