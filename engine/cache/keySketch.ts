/**
 * PURE: a copy of keys in 2 bits a value, from which it can be told which tokens a query attends to most: the low-bit copy that
 * SpeCache (arXiv 2503.16163) keeps of what lies in slow memory. Of each head of a block of n tokens: the mean of the keys, and each
 * token's difference from it in four levels. Rotated by a Hadamard matrix first, so that all channels are alike and one factor for
 * each token is enough (as in TurboQuant, arXiv 2504.19874); it is such that the products with the key itself come out right.
 *
 * Per head: mean, float16 [headSize]; factors, float16 [n]; codes, 4 values to a byte, [headSize / 4, n].
 */
import { halfBits, halfValue } from './codecs/float16.ts';
import { hadamard } from './codecs/hadamard.ts';
import type { KvRows, KvShape } from './kvRows.ts';

type SketchShape = Pick<KvShape, 'numLayers' | 'kvHeads' | 'headSize'>;

/** Of a normal distribution's quarters, those that leave the least squared error (Max, Quantizing for minimum distortion, 1960). */
const LEVELS = [-1.510, -0.4528, 0.4528, 1.510];
const BORDER = 0.9816;

/** Bytes of the sketch of n tokens. */
export function sketchBytes({ numLayers, kvHeads, headSize }: SketchShape, n: number): number {
  return numLayers * kvHeads * (2 * headSize + 2 * n + (headSize / 4) * n);
}

/** int8 rows. */
export function sketchKeys(shape: SketchShape, { keys, keyScales, numTokens: n }: KvRows): Uint8Array {
  const { numLayers, kvHeads, headSize } = shape;
  const sketch = new Uint8Array(sketchBytes(shape, n));
  const view = new DataView(sketch.buffer);
  const x = new Float32Array(headSize * n);
  const mean = new Float32Array(headSize);
  let at = 0;
  for (let h = 0; h < numLayers * kvHeads; h++) {
    for (let d = 0; d < headSize; d++) {
      let sum = 0;
      for (let i = 0; i < n; i++) sum += x[d * n + i] = keys[(h * headSize + d) * n + i]! * keyScales[h * n + i]!;
      mean[d] = sum / n;
      for (let i = 0; i < n; i++) x[d * n + i]! -= mean[d]!;
    }
    hadamard(x, 1, headSize, n, 'byChannel');
    hadamard(mean, 1, headSize, 1, 'byToken');
    for (let d = 0; d < headSize; d++, at += 2) view.setUint16(at, halfBits(mean[d]!), true);
    const codesAt = at + 2 * n;
    for (let i = 0; i < n; i++, at += 2) {
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
      view.setUint16(at, halfBits(product > 0 ? squares / product : 0), true);
    }
    at = codesAt + (headSize / 4) * n;
  }
  return sketch;
}

/** A block's sketch and its number of tokens. */
export interface SketchedBlock {
  readonly sketch: Uint8Array;
  readonly numTokens: number;
}

/**
 * The largest share of its attention that any of these queries gives to each block, roughly: [blocks.length]. Where one head of a
 * hundred looks for something it looks nowhere else, and that is what must be there: in a sum over heads it would be lost.
 * `queries`: of each token [numLayers * numHeads, headSize], as the products with keys have them; `without`: layers that do not count.
 */
export function sketchedAttention(shape: SketchShape, blocks: readonly SketchedBlock[], queries: readonly Float32Array[], without: ReadonlySet<number> = new Set()): Float32Array {
  const { numLayers, kvHeads, headSize } = shape;
  const numQuads = headSize / 4;
  const most = new Float32Array(blocks.length);
  const decoded = blocks.map(({ sketch, numTokens: n }) => headsOf(shape, sketch, n));
  const scores = blocks.map(({ numTokens }) => new Float32Array(numTokens));
  const table = new Float32Array(numQuads * 256);
  const sums = new Float32Array(blocks.reduce((longest, { numTokens }) => Math.max(longest, numTokens), 0));
  const query = new Float32Array(headSize);
  for (const token of queries) {
    const groupSize = token.length / (numLayers * kvHeads * headSize);
    for (let head = 0; head < token.length / headSize; head++) {
      const h = Math.floor(head / groupSize);
      if (without.has(Math.floor(h / kvHeads))) continue;
      query.set(token.subarray(head * headSize, (head + 1) * headSize));
      hadamard(query, 1, headSize, 1, 'byToken');
      fillTable(table, query);
      let top = Number.NEGATIVE_INFINITY;
      for (const [b, { sketch, numTokens: n }] of blocks.entries()) {
        const { mean, factors, codesAt } = decoded[b]!;
        let base = 0;
        for (let d = 0; d < headSize; d++) base += query[d]! * mean[h * headSize + d]!;
        sums.fill(0, 0, n);
        let at = codesAt[h]!;
        for (let quad = 0; quad < numQuads; quad++) for (let i = 0; i < n; i++) sums[i]! += table[quad * 256 + sketch[at++]!]!;
        const own = scores[b]!;
        for (let i = 0; i < n; i++) {
          const score = base + factors[h * n + i]! * sums[i]!;
          own[i] = score;
          if (score > top) top = score;
        }
      }
      let total = 0;
      const powers = scores.map((own) => {
        let sum = 0;
        for (const score of own) sum += Math.exp(score - top);
        total += sum;
        return sum;
      });
      for (const [b, power] of powers.entries()) if (power > most[b]! * total) most[b] = power / total;
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

/** mean [numLayers * kvHeads, headSize], factors [numLayers * kvHeads, n], and where each head's codes begin. */
function headsOf(shape: SketchShape, sketch: Uint8Array, n: number): { mean: Float32Array; factors: Float32Array; codesAt: number[] } {
  const numHeads = shape.numLayers * shape.kvHeads;
  const { headSize } = shape;
  const view = new DataView(sketch.buffer, sketch.byteOffset);
  const mean = new Float32Array(numHeads * headSize);
  const factors = new Float32Array(numHeads * n);
  const codesAt: number[] = [];
  const bytes = sketch.length / numHeads;
  for (let h = 0; h < numHeads; h++) {
    for (let d = 0; d < headSize; d++) mean[h * headSize + d] = halfValue(view.getUint16(h * bytes + 2 * d, true));
    for (let i = 0; i < n; i++) factors[h * n + i] = halfValue(view.getUint16(h * bytes + 2 * (headSize + i), true));
    codesAt.push(h * bytes + 2 * (headSize + n));
  }
  return { mean, factors, codesAt };
}
