/**
 * Sketches: copies of keys with 2 bits per value, which tell what tokens a query attends to most (the low-bit copy of
 * SpeCache, arXiv 2503.16163). Pure. Does not choose blocks.
 */
import { hadamard } from '../codecs/layerBuffers.ts';
import type { KvRows, KvShape } from '../../kvRows.ts';

/*
 * For each head of a block of n tokens a sketch has the mean of the keys, and each token's difference from it in four
 * levels. A Hadamard matrix rotates both first, so that all channels are alike and one factor per token is enough (as
 * in TurboQuant, arXiv 2504.19874). The factor makes products with the key itself right on average.
 *
 * Format, of all heads: means, float16 [headSize]; factors, float16 [n]; codes, 4 values per byte, [headSize / 4, n].
 */

export type SketchShape = Pick<KvShape, 'numLayers' | 'kvHeads' | 'headSize'>;

/**
 * Levels and border with the least squared error for a normal distribution (Max, Quantizing for minimum distortion,
 * 1960).
 */
const LEVELS = [-1.51, -0.4528, 0.4528, 1.51];
const BORDER = 0.9816;
/** A token with a score so far below the largest counts as nothing: e^-15. */
const NEGLIGIBLE = 15;

/** Whether keys of this shape can be sketched: 8-bit rows, four values per byte. */
export function canSketch({ kv, headSize }: KvShape): boolean {
  return kv === 'int8' && headSize % 4 === 0;
}

/** Bytes of the sketch of n tokens. */
export function sketchBytes({ numLayers, kvHeads, headSize }: SketchShape, n: number): number {
  return numLayers * kvHeads * (2 * headSize + 2 * n + (headSize / 4) * n);
}

/** The sketch of int8 rows. */
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

/** `numTokens` tokens of a block from token `from` on (0 when left out), and the sketch of the whole block. */
export interface SketchedBlock {
  readonly sketch: Uint8Array;
  readonly from?: number;
  readonly numTokens: number;
}

/**
 * For each block, about the largest share of attention that any head of these queries gives it: [blocks.length]. The
 * largest, not the sum over heads: a single head of a hundred may look for something that must be found.
 *
 * `queries`: of each token [numLayers * numHeads, headSize], as they are multiplied with keys. `without`: layers that
 * are ignored.
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
  // One head at a time, because all unpacked heads would take 1.5 times the bytes of the sketches.
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

/** Fills [headSize / 4, 256]: the product of four values of a query with the four values of each byte of codes. */
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
 * One head of a block's sketch, unpacked except for the codes: mean [headSize], factors [n]; the codes begin at byte
 * `codesAt`, those of the next four channels `stride` bytes later.
 */
interface SketchedHead {
  readonly mean: Float32Array;
  readonly factors: Float32Array;
  codesAt: number;
  stride: number;
}

/** Fills a block's scores [n] in one head. Returns the largest. */
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
  // Four at a time, because reading and writing the sums takes most of the time.
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
  // Tokens of the whole sketch (see sketchBytes).
  const n = (sketch.length / numHeads - 2 * headSize) / (2 + headSize / 4);
  halfValues ??= Float32Array.from({ length: 2 ** 16 }, (_, half) => halfValue(half));
  const values = halfValues;
  const halves = new Uint16Array(sketch.buffer, sketch.byteOffset, numHeads * (headSize + n));
  for (let d = 0; d < headSize; d++) head.mean[d] = values[halves[h * headSize + d]!]!;
  for (let i = 0; i < numTokens; i++) head.factors[i] = values[halves[numHeads * headSize + h * n + from + i]!]!;
  head.codesAt = halves.byteLength + h * (headSize / 4) * n + from;
  head.stride = n;
}

/** The values of all float16 bit patterns. */
let halfValues: Float32Array | null = null;

const word = new Float32Array(1);
const bits = new Uint32Array(word.buffer);

const MOST = 65_504;
/** 2^-14, the least normal half. */
const MIN_NORMAL = 2 ** -14;
/** Adding and subtracting 1.5 * 2^52 rounds a double to the nearest integer, half to even. */
const ROUND = 6755399441055744;

/** Converts to IEEE half precision, to nearest even. Values beyond 65504 become 65504, so that scales stay finite. */
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

/** The value of IEEE half-precision bits. */
export function halfValue(half: number): number {
  const magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00)
    return magnitude > 0x7c00 ? Number.NaN : half & 0x8000 ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  // Read as float32 these bits are 2^112 too small, subnormals included.
  bits[0] = magnitude << 13;
  const value = word[0]! * 2 ** 112;
  return half & 0x8000 ? -value : value;
}
