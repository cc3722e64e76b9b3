/**
 * Rotary position embedding: inverse frequencies of the supported types, a table of cosines and sines, and the
 * rotation of stored keys and key biases to other positions. Does not move rows between slots.
 */
import type { ModelConfig } from '../load/hfConfig.ts';
import type { Llama3Rope, Rope, YarnRope } from '../load/ropeConfig.ts';
import type { KvRows, KvShape } from '../../kv/kvRows.ts';

/**
 * [headSize / 2], rounded to float32 as transformers does; 0 for pairs that are not rotated. Formulas: transformers
 * modeling_rope_utils `_compute_default_rope_parameters` and those of the other types.
 */
export function inverseFrequencies(rope: Rope, headSize: number): Float32Array {
  const { rotated = headSize } = rope;
  const result = new Float32Array(headSize / 2);
  for (let i = 0; i < rotated / 2; i++) {
    const frequency = rope.theta ** ((-2 * i) / rotated);
    if (rope.type === 'default') result[i] = frequency;
    else if (rope.type === 'linear') result[i] = frequency / rope.factor;
    else if (rope.type === 'factors') result[i] = frequency / rope.factors[i]!;
    else {
      const kept = rope.type === 'yarn' ? yarnShare(rope, rope.theta, rotated, i) : llama3Share(rope, frequency);
      result[i] = (1 - kept) * (frequency / rope.factor) + kept * frequency;
    }
  }
  return result;
}

/** How much of a frequency is kept, from 0 to 1. The rest is divided by the factor. */
function llama3Share({ lowFreqFactor, highFreqFactor, originalContext }: Llama3Rope, frequency: number): number {
  const turns = (originalContext * frequency) / (2 * Math.PI);
  return within((turns - lowFreqFactor) / (highFreqFactor - lowFreqFactor));
}

function yarnShare(rope: YarnRope, theta: number, rotated: number, pair: number): number {
  const pairOf = (turns: number): number =>
    (rotated * Math.log(rope.originalContext / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const [first, last] = [pairOf(rope.betaFast), pairOf(rope.betaSlow)];
  const low = Math.max(rope.truncate ? Math.floor(first) : first, 0);
  const high = Math.min(rope.truncate ? Math.ceil(last) : last, rotated - 1);
  return 1 - within((pair - low) / (low === high ? 0.001 : high - low));
}

function within(share: number): number {
  return Math.min(1, Math.max(0, share));
}

export class RopeTable {
  readonly half: number;
  private readonly frequencies: Float32Array;
  private numPositions = 0;
  /** [numPositions, half]; replaced when it grows. */
  cos: Float32Array = new Float32Array(0);
  sin: Float32Array = new Float32Array(0);

  /** Layers whose keys are not rotated. */
  readonly unrotated: readonly number[];

  /** Of the layers with their own rope. */
  readonly local: { readonly table: RopeTable; readonly layers: readonly number[] } | null;

  constructor(rope: Rope, headSize: number, sliding: ModelConfig['sliding'] = null) {
    this.local = sliding?.rope ? { table: new RopeTable(sliding.rope, headSize), layers: sliding.layers } : null;
    this.unrotated = rope.unrotated ?? [];
    this.frequencies = inverseFrequencies(rope, headSize);
    this.half = headSize / 2;
  }

  static of({ rope, headSize, sliding }: Pick<ModelConfig, 'rope' | 'headSize' | 'sliding'>): RopeTable {
    return new RopeTable(rope, headSize, sliding);
  }

  /** Makes rows 0 .. numPositions-1 available. */
  ensure(numPositions: number): void {
    this.local?.table.ensure(numPositions);
    if (numPositions <= this.numPositions) return;
    const grown = Math.max(256, 2 ** Math.ceil(Math.log2(numPositions)));
    const cos = new Float32Array(grown * this.half);
    const sin = new Float32Array(grown * this.half);
    cos.set(this.cos);
    sin.set(this.sin);
    for (let p = this.numPositions; p < grown; p++) {
      for (let i = 0; i < this.half; i++) {
        // The angle is rounded to float32, as in training.
        const angle = Math.fround(p * this.frequencies[i]!);
        cos[p * this.half + i] = Math.cos(angle);
        sin[p * this.half + i] = Math.sin(angle);
      }
    }
    this.cos = cos;
    this.sin = sin;
    this.numPositions = grown;
  }
}

/**
 * Rotates all keys of `rows` by `by` positions, in place. Negative numbers rotate back. Int8 keys are coded again,
 * which costs one more rounding. Keys without their bias (see keyBias.ts) are rotated in the same way, because the bias
 * is added by the position of the slot.
 */
export function shiftKeys(rows: KvRows, shape: KvShape, rope: RopeTable, by: number): void {
  if (by === 0) return;
  const { headSize, kv } = shape;
  const { half } = rope;
  const n = rows.numTokens;
  const distance = Math.abs(by);
  rope.ensure(distance + 1);
  const turned = kv === 'int8' ? new Float32Array(headSize * n) : rows.keys;
  const largest = new Float32Array(n);
  for (let head = 0; head < shape.numLayers * shape.kvHeads; head++) {
    const layer = Math.floor(head / shape.kvHeads);
    if (rope.unrotated.includes(layer)) continue;
    const { cos, sin } = rope.local?.layers.includes(layer) ? rope.local.table : rope;
    const first = head * headSize * n;
    const target = kv === 'int8' ? 0 : first;
    largest.fill(0);
    for (let d = 0; d < half; d++) {
      const c = cos[distance * half + d]!;
      const s = Math.sign(by) * sin[distance * half + d]!;
      const low = d * n;
      const high = (d + half) * n;
      for (let i = 0; i < n; i++) {
        const x = rows.keys[first + low + i]!;
        const y = rows.keys[first + high + i]!;
        const u = x * c - y * s;
        const v = y * c + x * s;
        turned[target + low + i] = u;
        turned[target + high + i] = v;
        largest[i] = Math.max(largest[i]!, Math.abs(u), Math.abs(v));
      }
    }
    if (kv === 'int8') code(rows, turned as Float32Array, largest, head, headSize);
  }
}

/**
 * Codes the keys of one head again. `turned` [headSize, n]: the rotated keys in units of the old scales. `largest` [n]:
 * the largest magnitude of each column.
 */
function code(rows: KvRows, turned: Float32Array, largest: Float32Array, head: number, headSize: number): void {
  const n = rows.numTokens;
  const factors = largest.map((most) => (most > 0 ? 127 / most : 0));
  for (let i = 0; i < n; i++) rows.keyScales[head * n + i]! *= largest[i]! / 127;
  for (let d = 0; d < headSize; d++) {
    for (let i = 0; i < n; i++) rows.keys[(head * headSize + d) * n + i] = Math.round(turned[d * n + i]! * factors[i]!);
  }
}

/**
 * Writes the rotated bias R(p) b of one KV head into out[at .. at + headSize). All callers use this function, so that
 * they get the same bits. `bias`: [headSize] from `first` on.
 */
export function rotateBias(
  bias: Float32Array,
  first: number,
  rope: RopeTable,
  position: number,
  out: Float32Array,
  at: number,
): void {
  const { half, cos, sin } = rope;
  for (let i = 0; i < half; i++) {
    const low = bias[first + i]!;
    const high = bias[first + half + i]!;
    const c = cos[position * half + i]!;
    const s = sin[position * half + i]!;
    out[at + i] = low * c - high * s;
    out[at + half + i] = high * c + low * s;
  }
}
