/**
 * Changes of a row of logits before a token is chosen: another distribution blended in, tokens that are not allowed,
 * the
 * repetition penalty. Each change is undone afterwards, because the caller's row must stay as it was.
 */

/** A distribution over few tokens that is blended into the model's. */
export interface OtherNext {
  /** Each token once. */
  readonly tokenIds: readonly number[];
  /** Probabilities of these tokens; their sum is 1. */
  readonly shares: readonly number[];
  /** Weight of this distribution, below 1, where the likeliest token of the model has this probability. */
  weight(likeliest: number): number;
}

/**
 * Changes logits so that their softmax is p = (1 - weight) model + weight other. All of the model's tokens would get
 * the factor
 * 1 - weight; it is left out, so only the other distribution's tokens change.
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

/** [vocabSize] of -Infinity between calls. */
let noScores = new Float32Array(0);

/** A row of the same length in which only these tokens can be chosen. `undo` has to be called before the next row. */
export function onlyThese(logits: Float32Array, allowed: readonly number[]): { scores: Float32Array; undo(): void } {
  if (noScores.length !== logits.length) noScores = new Float32Array(logits.length).fill(Number.NEGATIVE_INFINITY);
  const scores = noScores;
  for (const id of allowed) scores[id] = logits[id]!;
  return {
    scores,
    undo: () => {
      for (const id of allowed) scores[id] = Number.NEGATIVE_INFINITY;
    },
  };
}

/** Tokens that the penalty has changed, and their logits before; by token, the last row whose penalty has seen it. */
let changedIds = new Int32Array(0);
let changedLogits = new Float32Array(0);
let seenIn = new Float64Array(0);
let numRows = 0;

/** Applies the repetition penalty to the tokens of `previous`, as in transformers. */
export function penalise(logits: Float32Array, previous: readonly number[], penalty: number): { undo(): void } {
  if (seenIn.length < logits.length) {
    changedIds = new Int32Array(logits.length);
    changedLogits = new Float32Array(logits.length);
    seenIn = new Float64Array(logits.length);
  }
  const row = ++numRows;
  let numChanged = 0;
  for (let i = 0; i < previous.length; i++) {
    const id = previous[i]!;
    if (seenIn[id] === row) continue;
    seenIn[id] = row;
    const logit = logits[id]!;
    changedIds[numChanged] = id;
    changedLogits[numChanged++] = logit;
    logits[id] = logit > 0 ? logit / penalty : logit * penalty;
  }
  return {
    undo: () => {
      for (let i = 0; i < numChanged; i++) logits[changedIds[i]!] = changedLogits[i]!;
    },
  };
}
