/** How far the next-token distributions of a model are from those of a reference. Pure functions. */

/** Sums over positions. */
export interface Divergence {
  /** KL(reference || row) in nats. */
  klSum: number;
  klMax: number;
  /** Positions with the same most probable token. */
  agreed: number;
  numTokens: number;
}

export function noDivergence(): Divergence {
  return { klSum: 0, klMax: 0, agreed: 0, numTokens: 0 };
}

/** log softmax of a row, in float64. */
export function logProbabilities(logits: Float32Array): Float64Array {
  let max = Number.NEGATIVE_INFINITY;
  for (const v of logits) if (v > max) max = v;
  let sum = 0;
  for (const v of logits) sum += Math.exp(v - max);
  const norm = max + Math.log(sum);
  return Float64Array.from(logits, (v) => v - norm);
}

/** Adds one position, both as log-probabilities. */
export function addPosition(to: Divergence, reference: Float64Array, row: Float64Array): void {
  let kl = 0;
  for (let i = 0; i < row.length; i++) kl += Math.exp(reference[i]!) * (reference[i]! - row[i]!);
  to.klSum += kl;
  to.klMax = Math.max(to.klMax, kl);
  to.agreed += argmax(row) === argmax(reference) ? 1 : 0;
  to.numTokens++;
}

/** Adds the positions of another measurement. */
export function addDivergence(to: Divergence, { klSum, klMax, agreed, numTokens }: Divergence): void {
  to.klSum += klSum;
  to.klMax = Math.max(to.klMax, klMax);
  to.agreed += agreed;
  to.numTokens += numTokens;
}

function argmax(row: Float64Array): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i]! > row[best]!) best = i;
  return best;
}
