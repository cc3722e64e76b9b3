/**
 * PURE: which blocks of a context that is longer than the pool are in it, and which of its tokens say so (see
 * sparseLeases).
 */

/** What it is called where codecs are named: rows that were computed from a part of their context. */
export const SKETCH = 'sketch';
/**
 * Of the chosen tokens beside the first block, the last of the context at most: where few blocks are there, more than
 * these are chosen (docs/decisions/0013-sparse-contexts.md).
 */
const RECENT_SHARE = 0.5;
/**
 * The last tokens of a prompt, the question's end as a rule, are computed twice: the first time they ask for what they
 * see the second time.
 */
export const LAST_PART = 16;
/** Tokens of an answer between two choices. */
export const STRIDE = 16;
/**
 * The last tokens before a choice, whose queries make it: of a prompt's end, of a stride. While a prompt is read the
 * newest blocks
 * are there: to ask for others at the end of each part gained nothing that shows
 * (docs/decisions/0013-sparse-contexts.md).
 */
export const ASKING = { last: 8, stride: 1 };

/** A block of a context, and what it receives of the attention of those that ask; 0 where nobody has asked. */
export interface Choosable {
  readonly numTokens: number;
  readonly attention: number;
}

/**
 * Of a context's blocks, in order, those that are there, at most `mostTokens` of them: the first, the last ones, and
 * those that receive most.
 */
export function chosenBlocks<T extends Choosable>(blocks: readonly T[], mostTokens: number): Set<T> {
  const chosen = new Set<T>();
  let left = mostTokens;
  const take = (block: T): void => {
    if (chosen.has(block) || block.numTokens > left) return;
    left -= block.numTokens;
    chosen.add(block);
  };
  if (blocks.length > 0) take(blocks[0]!);
  const others = left - Math.floor(RECENT_SHARE * left);
  for (let i = blocks.length - 1; i >= 0 && left - blocks[i]!.numTokens >= others; i--) take(blocks[i]!);
  // What nobody has asked for goes by age.
  for (const { block } of blocks
    .map((block, i) => ({ block, i }))
    .sort((a, b) => b.block.attention - a.block.attention || b.i - a.i))
    take(block);
  return chosen;
}

/** Of each of n tokens [numHeads, headSize]. @param queries [numHeads, n, headSize], the heads of all layers */
export function queriesByToken(queries: Float32Array, n: number, headSize: number): Float32Array[] {
  const numHeads = queries.length / (n * headSize);
  return Array.from({ length: n }, (_, i) => {
    const token = new Float32Array(numHeads * headSize);
    for (let h = 0; h < numHeads; h++)
      token.set(queries.subarray((h * n + i) * headSize, (h * n + i + 1) * headSize), h * headSize);
    return token;
  });
}
