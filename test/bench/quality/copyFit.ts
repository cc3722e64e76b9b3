/**
 * PURE: fits the weights of copying (engine/text/copy/copyPrior.ts) so that the written text is as likely as possible.
 */
import type { CopyWeights } from '../../../engine/text/copy/copyPrior.ts';

/** Probabilities that the model and the copies gave a written token. */
export interface CopyCase {
  /** The model's probability of the written token, and of its likeliest token. */
  readonly model: number;
  readonly likeliest: number;
  /** Probability of the written token and of the likeliest one by the copies, and tokens of the longest match. */
  readonly copied: number;
  readonly agreement: number;
  readonly longest: number;
}

export type FittedWeights = Omit<CopyWeights, 'share' | 'others'>;

const NAMES = ['doubt', 'match', 'agreement', 'confidence'] as const;
const STEPS = 600;
/** Same value as in CopyPrior. */
const MAX_WEIGHT = 0.98;
const MIN_PROBABILITY = 1e-9;

/** Mean nats per token. */
export function copyLoss(cases: readonly CopyCase[], { doubt, match, agreement, confidence }: FittedWeights): number {
  let sum = 0;
  for (const given of cases) {
    const weight = Math.min(
      MAX_WEIGHT,
      sigmoid(match * Math.log(given.longest) + agreement * given.agreement - confidence * given.likeliest - doubt),
    );
    sum -= Math.log(Math.max(MIN_PROBABILITY, (1 - weight) * given.model + weight * given.copied));
  }
  return sum / cases.length;
}

/** Optimises with Adam from `start`, over the cases that have something to copy. */
export function fitCopy(cases: readonly CopyCase[], start: FittedWeights): FittedWeights {
  const at: Record<(typeof NAMES)[number], number> = { ...start };
  const moments = NAMES.map(() => ({ mean: 0, square: 0 }));
  for (let step = 1; step <= STEPS; step++) {
    const gradients = [0, 0, 0, 0];
    for (const { model, likeliest, copied, agreement, longest } of cases) {
      const inputs = [-1, Math.log(longest), agreement, -likeliest];
      const weight = sigmoid(NAMES.reduce((sum, name, i) => sum + at[name] * inputs[i]!, 0));
      if (weight >= MAX_WEIGHT) continue;
      const slope =
        (-(copied - model) * weight * (1 - weight)) /
        Math.max(MIN_PROBABILITY, (1 - weight) * model + weight * copied) /
        cases.length;
      for (let i = 0; i < NAMES.length; i++) gradients[i]! += slope * inputs[i]!;
    }
    for (const [i, name] of NAMES.entries()) {
      const moment = moments[i]!;
      moment.mean = 0.9 * moment.mean + 0.1 * gradients[i]!;
      moment.square = 0.99 * moment.square + 0.01 * gradients[i]! ** 2;
      at[name] -= (0.03 * (moment.mean / (1 - 0.9 ** step))) / (Math.sqrt(moment.square / (1 - 0.99 ** step)) + 1e-9);
    }
  }
  return at;
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
