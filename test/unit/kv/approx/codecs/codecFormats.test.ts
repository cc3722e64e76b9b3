/** The number formats, compared with values computed by hand from their definitions. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Rotation, SideFormat } from '../../../../../engine/kv/approx/codecs/codecFormat.ts';
import { halfBits, halfValue } from '../../../../../engine/kv/approx/sparse/keySketch.ts';
import { gradedSides, KIVI_KEYS, NVFP4, codecNamed } from '../../../../../engine/kv/approx/codecs/registry.ts';
import { kernelMemory } from '../../../../../engine/kv/approx/codecs/kernels.ts';
import { hadamard, rotateKeys as rotateAt, writeTurns } from '../../../../../engine/kv/approx/codecs/layerBuffers.ts';
import { seededRandom } from '../../../../support/engine/workload.ts';
import { randomRows, relativeError, rope } from '../../../../support/kv/codecRows.ts';

/** Areas of the kernels' memory: floats, bytes, what is kept beside them. */
const [X, OUT, SPARE, END] = [0, 1 << 16, 1 << 17, 1 << 18];

/** One head of n tokens. */
function encode(format: SideFormat, x: readonly number[], headSize: number): Uint8Array {
  const n = x.length / headSize;
  const memory = kernelMemory(END);
  new Float32Array(memory.buffer, X, x.length).set(x);
  format.encode(X, 1, headSize, n, OUT, SPARE);
  return memory.slice(OUT, OUT + format.bytes(1, headSize, n));
}

function decode(format: SideFormat, bytes: Uint8Array, headSize: number, n: number): number[] {
  const memory = kernelMemory(END);
  memory.set(bytes, OUT);
  format.decode(OUT, 1, headSize, n, X, SPARE);
  return Array.from(new Float32Array(memory.buffer, X, headSize * n));
}

/** NVFP4's scale of a block whose largest value is six times this. With a largest value of 2688 the tensor's scale is 1. */
function e4m3(value: number): number {
  return encode(NVFP4, [2688, ...Array(15).fill(0), 6 * value, ...Array(15).fill(0)], 32)[4 + 1]!;
}

/** With a largest value of 2688 the tensor's scale is 1, and with one of 6 so is the block's. */
function e2m1(value: number): number {
  return encode(NVFP4, [2688, ...Array(15).fill(0), 6, value, ...Array(14).fill(0)], 32)[4 + 2 + 8]! >> 4;
}

test.each([
  // Value and code; ties go to the even code.
  [0, 0x00],
  [1, 0x38],
  [448, 0x7e],
  [240, 0x77],
  [2 ** -6, 0x08],
  [2 ** -9, 0x01],
  [7 * 2 ** -9, 0x07],
  [2 ** -10, 0x00],
  [1.001 * 2 ** -10, 0x01],
  [3 * 2 ** -10, 0x02],
  [15 * 2 ** -10, 0x08],
  [17, 0x58],
  [19, 0x5a],
  [17.01, 0x59],
  [1.0625, 0x38],
  [1.1875, 0x3a],
  [1e-30, 0x00],
])('E4M3 of %d is %i', (value, code) => {
  expect(e4m3(value)).toBe(code);
});

test('E4M3: each code comes back, and any float32 goes to the nearest', () => {
  // A block whose one code stands for 1.
  const value = (scale: number): number =>
    decode(NVFP4, Uint8Array.of(0, 0, 0x80, 0x3f, scale, 2, ...Array(7).fill(0)), 16, 1)[0]!;
  const finite = Array.from({ length: 0x7f }, (_, code) => value(code));
  expect(finite).toEqual([...finite].sort((a, b) => a - b));
  for (const code of [0x7f, 0x80, 0xff]) expect(() => value(code)).toThrow('NaN');
  for (const [code, each] of finite.entries()) expect(e4m3(each)).toBe(code);
  fc.assert(
    fc.property(
      fc.oneof(fc.float({ min: 0, max: 448, noNaN: true }), fc.float({ min: 0, max: Math.fround(0.05), noNaN: true })),
      (x) => {
        // What the block's largest value is in float32.
        const scale = Math.fround(Math.fround(6 * x) * (1 / 6));
        const errors = finite.map((v) => Math.abs(v - scale));
        const least = Math.min(...errors);
        const nearest = errors.flatMap((error, code) => (error === least ? [code] : []));
        expect(e4m3(x)).toBe(nearest.length === 1 ? nearest[0]! : nearest.find((code) => code % 2 === 0)!);
      },
    ),
    { numRuns: 5000 },
  );
});

test.each([
  [0, 0],
  [0.5, 1],
  [1, 2],
  [1.5, 3],
  [2, 4],
  [3, 5],
  [4, 6],
  [6, 7],
  [-0.5, 9],
  [-6, 15],
  // Ties: 0 1, 0.5 1, 1 1.5, 1.5 2, 2 3, 3 4, 4 6.
  [0.25, 0],
  [0.75, 2],
  [1.25, 2],
  [1.75, 4],
  [2.5, 4],
  [3.5, 6],
  [5, 6],
  [0.2501, 1],
  [0.7499, 1],
  [1.2501, 3],
  [1.7499, 3],
  [2.5001, 5],
  [3.4999, 5],
  [5.0001, 7],
  [-2.5, 12],
])('E2M1 of %d is %i', (value, code) => {
  expect(e2m1(value)).toBe(code);
});

test.each([
  [0, 0],
  [1, 0x3c00],
  [-2, 0xc000],
  [65504, 0x7bff],
  [1e9, 0x7bff],
  [-1e9, 0xfbff],
  [2 ** -24, 1],
  [2 ** -25, 0],
  [3 * 2 ** -25, 2],
  [2 ** -14, 0x0400],
  [0.1, 0x2e66],
  [1 + 2 ** -11, 0x3c00],
  [1 + 3 * 2 ** -11, 0x3c02],
  [2047.5, 0x6800],
])('half precision of %d is %i', (value, bits) => {
  expect(halfBits(Math.fround(value))).toBe(bits);
});

test('every finite half comes back', () => {
  for (let bits = 0; bits < 0x10000; bits++)
    if ((bits & 0x7c00) !== 0x7c00) expect(halfBits(halfValue(bits))).toBe(bits);
});

test('NVFP4: a tensor worked out by hand', () => {
  // Largest 6 * 448 / 64 = 42: the tensor's scale is 1/64 (0x3c800000), its block's 448 (0x7e), together 7.
  const first = [0, 3.5, 7, 10.5, 14, 21, 28, 42, -3.5, -7, -10.5, -14, -21, -28, -42, 17.5];
  // Largest 6/64: the block's scale is 1 (0x38), together 1/64. In steps of that: 0.25 0.75 1.25 1.75 2.5 3.5 5 6 are ties but the last.
  const second = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, -0.25, -0.75, -1.25, -1.75, -2.5, -3.5, -5, -6].map(
    (v) => v / 64,
  );
  const bytes = encode(NVFP4, [...first, ...second], 32);
  expect(Array.from(bytes)).toEqual([
    0x00, 0x00, 0x80, 0x3c, 0x7e, 0x38, 0x10, 0x32, 0x54, 0x76, 0xa9, 0xcb, 0xed, 0x4f, 0x20, 0x42, 0x64, 0x76, 0xa8,
    0xca, 0xec, 0xfe,
  ]);
  expect(decode(NVFP4, bytes, 32, 1).slice(0, 16)).toEqual([...first.slice(0, 15), 14]);
  expect(
    decode(NVFP4, bytes, 32, 1)
      .slice(16)
      .map((v) => v * 64 + 0),
  ).toEqual([0, 1, 1, 2, 2, 4, 4, 6, 0, -1, -1, -2, -2, -4, -4, -6]);
});

test('NVFP4: a block scale is rounded to E4M3, and codes are taken with the rounded one', () => {
  // The second block's largest is 6.3/64: 1.05 rounds to 1, so that 6.3 saturates at 6.
  const x = [42, ...Array(15).fill(0), 6.3 / 64, 2.6 / 64, ...Array(14).fill(0)];
  const decoded = decode(NVFP4, encode(NVFP4, x, 32), 32, 1);
  expect(decoded.slice(16, 18).map((v) => v * 64)).toEqual([6, 3]);
});

test('int4-kivi: K has one range per channel', () => {
  // Two channels, 16 tokens: one climbs from 112 to 127, one from -15 to 0. The unit is 1, so all of them are exact.
  const x = [...Array.from({ length: 16 }, (_, t) => 112 + t), ...Array.from({ length: 16 }, (_, t) => t - 15)];
  const out = encode(KIVI_KEYS, x, 2);
  const climb = [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe];
  expect(Array.from(out)).toEqual([0, 0, 0x80, 0x3f, 112, 127, ...climb, 256 - 15, 0, ...climb]);
  expect(decode(KIVI_KEYS, out, 2, 16)).toEqual(x);
});

/** Two channels, the second of which is 5 everywhere; the first is as much above 0 as below. */
const TWO_CHANNELS = [1, 1, -1, -1, 3, -3, 1, -1];

test('graded: means of channels, scales of tokens, codes from the middle', () => {
  const byChannel = encode(gradedSides(2).keys, [...TWO_CHANNELS, ...Array<number>(8).fill(5)], 2);
  // The unit of the means is 5 / 127, that of the scales what 3 takes: its root mean square over the channels, times the largest level, is 3.
  const view = new DataView(byChannel.buffer);
  expect(view.getFloat32(0, true)).toBeCloseTo(5 / 127, 6);
  expect(Array.from(byChannel.subarray(8, 10))).toEqual([0, 127]);
  const scaleUnit = view.getFloat32(4, true);
  expect(scaleUnit).toBeCloseTo(3 / 127, 6);
  // 1 is a third of 3: one and three halves of an octave below, 32 steps each where they are even: 1 / 3 = 4 / 3 of a quarter.
  const third = Math.round(2 * 32 - (4 / 3 - 1) * 32);
  expect(Array.from(byChannel.subarray(10, 18))).toEqual([third, third, third, third, 0, 0, third, third]);
  // Of the second channel nothing is left: its codes are those of nothing above 0.
  const codes = Array.from({ length: 16 }, (_, i) => (byChannel[18 + (i >> 2)]! >> (2 * (i & 3))) & 3);
  expect(codes).toEqual([3, 3, 0, 0, 3, 0, 3, 0, ...Array<number>(8).fill(2)]);
  const decoded = decode(gradedSides(2).keys, byChannel, 2, 8);
  TWO_CHANNELS.forEach((value, t) => {
    expect(Math.abs(decoded[t]! / value - 1)).toBeLessThan(1 / 64);
  });
  // The same by token.
  const tokens = TWO_CHANNELS.flatMap((value) => [value, 5]);
  const byToken = decode(gradedSides(2).values, encode(gradedSides(2).values, tokens, 2), 2, 8);
  byToken.forEach((value, i) => {
    expect(value).toBeCloseTo(decoded[(i % 2) * 8 + (i >> 1)]!, 5);
  });
});

test.each([
  [2, 0.36],
  [3, 0.2],
  [4, 0.1],
] as const)(
  'graded, %i bits: products with what is read back are right on average, in both layouts',
  (bits, mostError) => {
    const [headSize, n] = [64, 40];
    const random = seededRandom(bits);
    const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const tokens = Array.from({ length: n }, (_, t) => Array.from({ length: headSize }, () => 2 ** (t % 5) * normal()));
    const means = Array.from({ length: headSize }, (_, d) => tokens.reduce((sum, token) => sum + token[d]!, 0) / n);
    const byToken = decode(
      gradedSides(bits).values,
      encode(gradedSides(bits).values, tokens.flat(), headSize),
      headSize,
      n,
    );
    const channels = Array.from({ length: headSize }, (_, d) => tokens.map((token) => token[d]!));
    const byChannel = decode(
      gradedSides(bits).keys,
      encode(gradedSides(bits).keys, channels.flat(), headSize),
      headSize,
      n,
    );
    for (const [t, token] of tokens.entries()) {
      let [product, square, error] = [0, 0, 0];
      for (const [d, value] of token.entries()) {
        expect(byChannel[d * n + t]).toBeCloseTo(byToken[t * headSize + d]!, 3);
        const rest = value - means[d]!;
        product += rest * (byToken[t * headSize + d]! - means[d]!);
        square += rest ** 2;
        error += (value - byToken[t * headSize + d]!) ** 2;
      }
      // To within a step of the scale and the means' rounding.
      expect(Math.abs(product / square - 1)).toBeLessThan(0.025);
      expect(Math.sqrt(error / square)).toBeLessThan(mostError * 1.35);
    }
  },
);

test('graded: a unit that is not finite, or too large to be turned, is refused', () => {
  for (const [at, value] of [
    [0, Number.NaN],
    [4, Number.POSITIVE_INFINITY],
    [4, 1e36],
    [0, -1],
  ] as const) {
    const bytes = encode(gradedSides(4).keys, TWO_CHANNELS, 1);
    new DataView(bytes.buffer).setFloat32(at, value, true);
    expect(() => decode(gradedSides(4).keys, bytes, 1, 8)).toThrow('scale');
  }
});

test.each(['byToken', 'byChannel'] as const)(
  'Hadamard, %s: the matrix of its definition, and its own inverse',
  (layout) => {
    const headSize = 48;
    const n = 3;
    const index = (h: number, d: number, t: number): number =>
      layout === 'byToken' ? (h * n + t) * headSize + d : (h * headSize + d) * n + t;
    const x = Float32Array.from({ length: 2 * n * headSize }, (_, i) => Math.sin(i * i));
    const y = x.slice();
    hadamard(y, 2, headSize, n, layout);
    // 48 = 3 blocks of 16; entry (i, j) of a block is (-1)^popcount(i & j) / 4.
    const popcount = (v: number): number => [...v.toString(2)].filter((bit) => bit === '1').length;
    for (let h = 0; h < 2; h++) {
      for (let t = 0; t < n; t++) {
        for (let d = 0; d < headSize; d++) {
          let sum = 0;
          for (let j = 0; j < 16; j++) sum += (popcount((d % 16) & j) % 2 ? -1 : 1) * x[index(h, d - (d % 16) + j, t)]!;
          expect(y[index(h, d, t)]).toBeCloseTo(sum / 4, 5);
        }
      }
    }
    hadamard(y, 2, headSize, n, layout);
    y.forEach((v, i) => {
      expect(v).toBeCloseTo(x[i]!, 6);
    });
  },
);

/** In place, x [kvHeads, headSize, n] at positions startIndex and on. */
function rotateKeys(
  x: Float32Array,
  kvHeads: number,
  headSize: number,
  n: number,
  rotation: Rotation,
  startIndex: number,
  direction: 1 | -1,
): void {
  const memory = kernelMemory(END);
  const turns = { cos: OUT, sin: SPARE, n };
  writeTurns(turns, rotation, startIndex);
  new Float32Array(memory.buffer, X, x.length).set(x);
  rotateAt(X, kvHeads, headSize, n, turns, 0, direction);
  x.set(new Float32Array(memory.buffer, X, x.length));
}

test('keys are turned by their positions, and back', () => {
  const n = 4;
  const headSize = 6;
  const rotation = rope(headSize);
  const x = Float32Array.from({ length: headSize * n }, (_, i) => Math.cos(3 * i));
  const y = x.slice();
  rotateKeys(y, 1, headSize, n, rotation, 100, 1);
  for (let t = 0; t < n; t++) {
    for (let i = 0; i < 3; i++) {
      const angle = (100 + t) * 10_000 ** (-i / 3);
      expect(y[i * n + t]).toBeCloseTo(x[i * n + t]! * Math.cos(angle) - x[(i + 3) * n + t]! * Math.sin(angle), 4);
      expect(y[(i + 3) * n + t]).toBeCloseTo(
        x[(i + 3) * n + t]! * Math.cos(angle) + x[i * n + t]! * Math.sin(angle),
        4,
      );
    }
  }
  rotateKeys(y, 1, headSize, n, rotation, 100, -1);
  y.forEach((v, i) => {
    expect(v).toBeCloseTo(x[i]!, 5);
  });
});

test('a constant part of a channel does not spoil codes per channel', () => {
  const shape = { numLayers: 1, kvHeads: 1, headSize: 64 };
  const rows = randomRows(shape, 64, 5, 10);
  const error = (name: 'nvfp4' | 'int4-kivi'): number => {
    const codec = codecNamed(name, shape, rope(64));
    return relativeError(shape, rows, codec.decode(codec.encode(rows, { startIndex: 10 })).rows).keys;
  };
  expect(error('int4-kivi')).toBeLessThan(error('nvfp4') / 2);
});

test('turboquant takes the rotation off: keys that are constant before it come back', () => {
  const shape = { numLayers: 1, kvHeads: 1, headSize: 64 };
  const rotation = rope(64);
  const keys = new Float32Array(64 * 128);
  for (let d = 0; d < 64; d++) keys.fill(Math.cos(d) * 3, d * 128, (d + 1) * 128);
  rotateKeys(keys, 1, 64, 128, rotation, 300, 1);
  const rows = randomRows(shape, 128, 6);
  for (let t = 0; t < 128; t++) {
    let largest = 0;
    for (let d = 0; d < 64; d++) largest = Math.max(largest, Math.abs(keys[d * 128 + t]!));
    rows.keyScales[t] = largest / 127;
    for (let d = 0; d < 64; d++) rows.keys[d * 128 + t] = Math.round((keys[d * 128 + t]! / largest) * 127);
  }
  const error = (name: 'turboquant' | 'int4-kivi'): number => {
    const codec = codecNamed(name, shape, rotation);
    return relativeError(shape, rows, codec.decode(codec.encode(rows, { startIndex: 300 })).rows).keys;
  };
  expect(error('turboquant')).toBeLessThan(0.005);
  expect(error('int4-kivi')).toBeGreaterThan(0.02);
});
