/**
 * PURE: a copy of keys in 2 bits a value, from which it can be told which tokens a query attends to most: the low-bit
 * copy that
 * SpeCache (arXiv 2503.16163) keeps of what lies in slow memory. Of each head of a block of n tokens: the mean of the
 * keys, and each
 * token's difference from it in four levels. Rotated by a Hadamard matrix first, so that all channels are alike and one
 * factor for
 * each token is enough (as in TurboQuant, arXiv 2504.19874); it is such that the products with the key itself come out
 * right.
 *
 * Of all heads: means, float16 [headSize]; factors, float16 [n]; then codes, 4 values to a byte, [headSize / 4, n].
 */
import { hadamard } from '../codecs/layerBuffers.ts';
import type { KvRows, KvShape } from '../../kvRows.ts';

export type SketchShape = Pick<KvShape, 'numLayers' | 'kvHeads' | 'headSize'>;

/**
 * Of a normal distribution's quarters, those that leave the least squared error (Max, Quantizing for minimum
 * distortion, 1960).
 */
const LEVELS = [-1.51, -0.4528, 0.4528, 1.51];
const BORDER = 0.9816;
/** So far below the largest score a token counts for nothing: e^-15. */
const NEGLIGIBLE = 15;

/** A sketch is made of 8-bit rows, and has four values to a byte. */
export function canSketch({ kv, headSize }: KvShape): boolean {
  return kv === 'int8' && headSize % 4 === 0;
}

/** Bytes of the sketch of n tokens. */
export function sketchBytes({ numLayers, kvHeads, headSize }: SketchShape, n: number): number {
  return numLayers * kvHeads * (2 * headSize + 2 * n + (headSize / 4) * n);
}

/** int8 rows. */
export function sketchKeys(shape: SketchShape, { keys, keyScales, numTokens: n }: KvRows): Uint8Array {
  const { numLayers, kvHeads, headSize } = shape;
  const numHeads = numLayers * kvHeads;
  const sketch = new Uint8Array(sketchBytes(shape, n));
  const halves = new Uint16Array(sketch.buffer, 0, numHeads * (headSize + n));
  const x = new Float32Array(headSize * n);
  const mean = new Float32Array(headSize);
  for (let h = 0; h < numHeads; h++) {
    for (let d = 0; d < headSize; d++) {
      let sum = 0;
      for (let i = 0; i < n; i++) sum += x[d * n + i] = keys[(h * headSize + d) * n + i]! * keyScales[h * n + i]!;
      mean[d] = sum / n;
      for (let i = 0; i < n; i++) x[d * n + i]! -= mean[d]!;
    }
    hadamard(x, 1, headSize, n, 'byChannel');
    hadamard(mean, 1, headSize, 1, 'byToken');
    for (let d = 0; d < headSize; d++) halves[h * headSize + d] = halfBits(mean[d]!);
    const codesAt = halves.byteLength + h * (headSize / 4) * n;
    for (let i = 0; i < n; i++) {
      let squares = 0;
      for (let d = 0; d < headSize; d++) squares += x[d * n + i]! ** 2;
      const border = BORDER * Math.sqrt(squares / headSize);
      let product = 0;
      for (let d = 0; d < headSize; d++) {
        const value = x[d * n + i]!;
        const code = value < 0 ? (value < -border ? 0 : 1) : value > border ? 3 : 2;
        product += LEVELS[code]! * value;
        sketch[codesAt + (d >> 2) * n + i]! |= code << (2 * (d & 3));
      }
      halves[numHeads * headSize + h * n + i] = halfBits(product > 0 ? squares / product : 0);
    }
  }
  return sketch;
}

/**
 * A block's number of tokens, the sketch that they are in, and from which of its tokens on; from the first when left
 * out.
 */
export interface SketchedBlock {
  readonly sketch: Uint8Array;
  readonly from?: number;
  readonly numTokens: number;
}

/**
 * The largest share of its attention that any of these queries gives to each block, roughly: [blocks.length]. Where one
 * head of a
 * hundred looks for something it looks nowhere else, and that is what must be there: in a sum over heads it would be
 * lost.
 * `queries`: of each token [numLayers * numHeads, headSize], as the products with keys have them; `without`: layers
 * that do not count.
 */
export function sketchedAttention(
  shape: SketchShape,
  blocks: readonly SketchedBlock[],
  queries: readonly Float32Array[],
  without: ReadonlySet<number> = new Set(),
): Float32Array {
  const { numLayers, kvHeads, headSize } = shape;
  const numHeads = numLayers * kvHeads;
  const most = new Float32Array(blocks.length);
  // One head at a time: unpacked, all of them take half as much again as the sketches.
  const heads = blocks.map(
    ({ numTokens }): SketchedHead => ({
      mean: new Float32Array(headSize),
      factors: new Float32Array(numTokens),
      codesAt: 0,
      stride: 0,
    }),
  );
  const scores = blocks.map(({ numTokens }) => new Float32Array(numTokens));
  const table = new Float32Array((headSize / 4) * 256);
  const powers = new Float64Array(blocks.length);
  const query = new Float32Array(headSize);
  for (let h = 0; h < numHeads; h++) {
    if (without.has(Math.floor(h / kvHeads))) continue;
    for (const [b, block] of blocks.entries()) unpack(shape, block, h, heads[b]!);
    for (const token of queries) {
      const groupSize = token.length / (numHeads * headSize);
      for (let head = h * groupSize; head < (h + 1) * groupSize; head++) {
        query.set(token.subarray(head * headSize, (head + 1) * headSize));
        hadamard(query, 1, headSize, 1, 'byToken');
        fillTable(table, query);
        let top = Number.NEGATIVE_INFINITY;
        for (let b = 0; b < blocks.length; b++)
          top = Math.max(top, scoreBlock(blocks[b]!.sketch, heads[b]!, query, table, scores[b]!));
        let total = 0;
        for (let b = 0; b < blocks.length; b++) {
          const own = scores[b]!;
          let sum = 0;
          for (let i = 0; i < own.length; i++) if (own[i]! > top - NEGLIGIBLE) sum += Math.exp(own[i]! - top);
          total += sum;
          powers[b] = sum;
        }
        for (let b = 0; b < blocks.length; b++) if (powers[b]! > most[b]! * total) most[b] = powers[b]! / total;
      }
    }
  }
  return most;
}

/** [headSize / 4, 256]: the product of four values of a query with the four of each byte of codes. */
function fillTable(table: Float32Array, query: Float32Array): void {
  const pairs = new Float32Array(32);
  for (let quad = 0; quad < query.length / 4; quad++) {
    const q = query.subarray(4 * quad, 4 * quad + 4);
    for (let code = 0; code < 16; code++) {
      pairs[code] = q[0]! * LEVELS[code & 3]! + q[1]! * LEVELS[code >> 2]!;
      pairs[16 + code] = q[2]! * LEVELS[code & 3]! + q[3]! * LEVELS[code >> 2]!;
    }
    for (let code = 0; code < 256; code++) table[256 * quad + code] = pairs[code & 15]! + pairs[16 + (code >> 4)]!;
  }
}

/**
 * Of a block's sketch one head, unpacked but for its codes: mean [headSize], factors [n]; codes from byte `codesAt` on,
 * the next four channels' after `stride`.
 */
interface SketchedHead {
  readonly mean: Float32Array;
  readonly factors: Float32Array;
  codesAt: number;
  stride: number;
}

/** Fills in a block's scores [n] in one head, and returns the largest. */
function scoreBlock(
  codes: Uint8Array,
  { mean, factors, codesAt, stride }: SketchedHead,
  query: Float32Array,
  table: Float32Array,
  scores: Float32Array,
): number {
  const headSize = query.length;
  const n = scores.length;
  let base = 0;
  for (let d = 0; d < headSize; d++) base += query[d]! * mean[d]!;
  scores.fill(0);
  let at = codesAt;
  let t = 0;
  // Four at a time, as sums are read and written most.
  for (; t + 1024 <= table.length; t += 1024, at += 4 * stride) {
    for (let i = 0; i < n; i++)
      scores[i]! +=
        table[t + codes[at + i]!]! +
        table[t + 256 + codes[at + stride + i]!]! +
        (table[t + 512 + codes[at + 2 * stride + i]!]! + table[t + 768 + codes[at + 3 * stride + i]!]!);
  }
  for (; t < table.length; t += 256, at += stride) for (let i = 0; i < n; i++) scores[i]! += table[t + codes[at + i]!]!;
  let top = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < n; i++) {
    const score = base + factors[i]! * scores[i]!;
    scores[i] = score;
    if (score > top) top = score;
  }
  return top;
}

function unpack(
  { numLayers, kvHeads, headSize }: SketchShape,
  { sketch, from = 0, numTokens }: SketchedBlock,
  h: number,
  head: SketchedHead,
): void {
  const numHeads = numLayers * kvHeads;
  // Of the sketch: see sketchBytes.
  const n = (sketch.length / numHeads - 2 * headSize) / (2 + headSize / 4);
  halfValues ??= Float32Array.from({ length: 2 ** 16 }, (_, half) => halfValue(half));
  const values = halfValues;
  const halves = new Uint16Array(sketch.buffer, sketch.byteOffset, numHeads * (headSize + n));
  for (let d = 0; d < headSize; d++) head.mean[d] = values[halves[h * headSize + d]!]!;
  for (let i = 0; i < numTokens; i++) head.factors[i] = values[halves[numHeads * headSize + h * n + from + i]!]!;
  head.codesAt = halves.byteLength + h * (headSize / 4) * n + from;
  head.stride = n;
}

/** Of all bit patterns. */
let halfValues: Float32Array | null = null;

/**
 * IEEE half precision: float32 to bits, to nearest even, and back, exactly. Values beyond 65504 become 65504, so that
 * scales stay finite.
 */
const word = new Float32Array(1);
const bits = new Uint32Array(word.buffer);

const MOST = 65_504;
/** 2^-14, the least normal one. */
const MIN_NORMAL = 2 ** -14;
/** Adding and subtracting 1.5 * 2^52 rounds a double to the nearest integer, half to even. */
const ROUND = 6755399441055744;

export function halfBits(value: number): number {
  const x = Math.abs(value);
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  if (Number.isNaN(x)) return 0x7e00;
  if (x >= MOST) return sign | 0x7bff;
  if (x < MIN_NORMAL) return sign | (x * 2 ** 24 + ROUND - ROUND);
  word[0] = x;
  const u = bits[0]!;
  return sign | ((u + 0xfff + ((u >>> 13) & 1) - (112 << 23)) >>> 13);
}

export function halfValue(half: number): number {
  const magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00)
    return magnitude > 0x7c00 ? Number.NaN : half & 0x8000 ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  // As float32 bits it is 2^112 too small, subnormals included.
  bits[0] = magnitude << 13;
  const value = word[0]! * 2 ** 112;
  return half & 0x8000 ? -value : value;
}
