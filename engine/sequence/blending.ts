/** PURE: a model's distribution mixed with another one over few tokens: p = (1 - weight) model + weight other. */

/** What may come next besides what the model says. */
export interface OtherNext {
  /** Each once. */
  readonly tokenIds: readonly number[];
  /** Of 1 together. */
  readonly shares: readonly number[];
  /** Weight of all of them, below 1, where the model's likeliest token has this probability. */
  weight(likeliest: number): number;
}

/**
 * Changes logits so that their softmax is the mixture: the model's all lack the factor 1 - weight, so only the other's tokens change.
 * @param logits [vocabSize]
 * @param logZ log of the sum of their exp; @param max the highest
 */
export function blend(
  logits: Float32Array,
  logZ: number,
  max: number,
  { tokenIds, shares, weight }: OtherNext,
): { /** Puts the logits back. */ undo(): void } {
  const ofOther = weight(Math.exp(max - logZ));
  const odds = ofOther / (1 - ofOther);
  const before = tokenIds.map((id) => logits[id]!);
  for (const [i, id] of tokenIds.entries())
    logits[id] = logZ + Math.log(Math.exp(before[i]! - logZ) + odds * shares[i]!);
  return {
    undo: () => {
      for (const [i, id] of tokenIds.entries()) logits[id] = before[i]!;
    },
  };
}
