/** Measures relative errors (root mean square) of K, V and attention outputs against the original rows. */
import type { KvRows } from '../../../engine/kv/kvRows.ts';
import type { KvSubject } from '../eval/subject.ts';
import type { ModelConfig } from '../../../engine/model/load/hfConfig.ts';
import { rotateBias } from '../../../engine/model/runtime/rope.ts';

export interface RowErrors {
  keys: number;
  values: number;
  /** Error of the attention outputs of all layers and heads. */
  attention: number;
}

/** Sum of squared differences over sum of squares. */
class Ratio {
  #differences = 0;
  #all = 0;

  add(value: number, other: number): void {
    this.#differences += (value - other) ** 2;
    this.#all += value ** 2;
  }

  get root(): number {
    return this.#all > 0 ? Math.sqrt(this.#differences / this.#all) : 0;
  }
}

/**
 * K and V of one head of a layer as floats, [n, headSize] each.
 * Keys stay without the key bias where the rows leave it out because it is large.
 */
function headFloats(rows: KvRows, head: number, headSize: number): { keys: Float32Array; values: Float32Array } {
  const n = rows.numTokens;
  const keys = new Float32Array(n * headSize);
  const values = new Float32Array(n * headSize);
  for (let t = 0; t < n; t++) {
    for (let d = 0; d < headSize; d++) {
      keys[t * headSize + d] = rows.keys[(head * headSize + d) * n + t]! * rows.keyScales[head * n + t]!;
      values[t * headSize + d] = rows.values[(head * n + t) * headSize + d]! * rows.valueScales[head * n + t]!;
    }
  }
  return { keys, values };
}

/**
 * Errors of `coded` against `rows`, which both hold tokens 0 .. n-1 of a text. The first `numCoded` went through a
 * codec. Compares K and V over those tokens, and attention of the queries at positions from `from` on.
 * @param queries see `queriesOf`.
 */
export function rowErrors(
  subject: KvSubject,
  rows: KvRows,
  coded: KvRows,
  numCoded: number,
  queries: readonly Float32Array[],
  from: number,
): RowErrors {
  const { config } = subject.model;
  const { kvHeads, headSize, numHeads } = config;
  const n = rows.numTokens;
  const errors = { keys: new Ratio(), values: new Ratio(), attention: new Ratio() };
  subject.rope.ensure(n);
  for (const [l, q] of queries.entries()) {
    for (let g = 0; g < kvHeads; g++) {
      const a = headFloats(rows, l * kvHeads + g, headSize);
      const b = headFloats(coded, l * kvHeads + g, headSize);
      for (const side of ['keys', 'values'] as const)
        for (let i = 0; i < numCoded * headSize; i++) errors[side].add(a[side][i]!, b[side][i]!);
      const bias = subject.biases.get(l);
      if (bias) {
        const turned = new Float32Array(headSize);
        for (let t = 0; t < n; t++) {
          rotateBias(bias, g * headSize, subject.rope, t, turned, 0);
          for (const { keys } of [a, b]) for (let d = 0; d < headSize; d++) keys[t * headSize + d]! += turned[d]!;
        }
      }
      for (let h = (g * numHeads) / kvHeads; h < ((g + 1) * numHeads) / kvHeads; h++) {
        for (let t = from; t < n; t++) {
          const before = attention(q, (t * numHeads + h) * headSize, a, t + 1, config);
          const after = attention(q, (t * numHeads + h) * headSize, b, t + 1, config);
          for (let d = 0; d < headSize; d++) errors.attention.add(before[d]!, after[d]!);
        }
      }
    }
  }
  return { keys: errors.keys.root, values: errors.values.root, attention: errors.attention.root };
}

/** Attention output of one query over the first n tokens: [headSize]. */
function attention(
  q: Float32Array,
  at: number,
  { keys, values }: { keys: Float32Array; values: Float32Array },
  n: number,
  { headSize }: ModelConfig,
): Float64Array {
  const shares = new Float64Array(n);
  let max = Number.NEGATIVE_INFINITY;
  for (let s = 0; s < n; s++) {
    let sum = 0;
    for (let d = 0; d < headSize; d++) sum += q[at + d]! * keys[s * headSize + d]!;
    shares[s] = sum / Math.sqrt(headSize);
    max = Math.max(max, shares[s]!);
  }
  const out = new Float64Array(headSize);
  let total = 0;
  for (let s = 0; s < n; s++) {
    const share = Math.exp(shares[s]! - max);
    total += share;
    for (let d = 0; d < headSize; d++) out[d]! += share * values[s * headSize + d]!;
  }
  return out.map((v) => v / total);
}
