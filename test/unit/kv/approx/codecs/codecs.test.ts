/** All codecs: sizes, determinism, exact tokens, errors, and bytes that are not an encoded run. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type CodecShape,
  MalformedRun,
  type RunPlace,
  HEADER_BYTES,
} from '../../../../../engine/kv/approx/codecs/codecFormat.ts';
import { gradedSides, type CodecName, codecNamed, FORMATS } from '../../../../../engine/kv/approx/codecs/registry.ts';
import { type KvRows, newKvRows } from '../../../../../engine/kv/kvRows.ts';
import { randomRows, relativeError, rope, tokenFloats } from '../../../../support/kv/codecRows.ts';

const NAMES = FORMATS.map(({ name }) => name);
const SHAPE = { numLayers: 2, kvHeads: 2, headSize: 64 };
const codec = (name: CodecName, shape = SHAPE) => codecNamed(name, shape, rope(shape.headSize));

const shapes = fc.record({
  numLayers: fc.integer({ min: 1, max: 2 }),
  kvHeads: fc.integer({ min: 1, max: 3 }),
  headSize: fc.constantFrom(2, 6, 16, 32, 48, 64, 80, 128),
});
const runs = fc.record({
  shape: shapes,
  numTokens: fc.oneof(fc.integer({ min: 0, max: 70 }), fc.integer({ min: 120, max: 290 })),
  startIndex: fc.constantFrom(0, 1, 3, 4, 500),
  after: fc.option(fc.integer({ min: 0, max: 200 }), { nil: undefined }),
  seed: fc.integer(),
});

/** Tokens that must come back as they were. */
function exactIn(
  name: CodecName,
  n: number,
  { startIndex, contextEnd = Number.POSITIVE_INFINITY }: RunPlace,
): number[] {
  const { sides, sinkTokens, recentTokens } = FORMATS.find((format) => format.name === name)!;
  return Array.from({ length: n }, (_, t) => t).filter(
    (t) => sides === null || startIndex + t < sinkTokens || startIndex + t >= contextEnd - recentTokens,
  );
}

/** The floats of these tokens. */
function sliceOf(shape: CodecShape, rows: KvRows, tokens: readonly number[]): number[] {
  return tokens.flatMap((t) =>
    Array.from({ length: shape.numLayers * shape.kvHeads }, (_, head) =>
      Object.values(tokenFloats(shape, rows, head, t)).flat(),
    ).flat(),
  );
}

function contents({ keys, keyScales, values, valueScales }: KvRows): unknown[] {
  return [keys, keyScales, values, valueScales];
}

describe.each(NAMES)('%s', (name) => {
  test('property: encoded rows have the promised length, encode the same way again, keep exact tokens and stay close', () => {
    fc.assert(
      fc.property(runs, ({ shape, numTokens, startIndex, after, seed }) => {
        const one = codec(name, shape);
        const rows = randomRows(shape, numTokens, seed);
        const before = structuredClone(rows);
        const place = { startIndex, contextEnd: after === undefined ? undefined : startIndex + numTokens + after };
        const bytes = one.encode(rows, place);
        expect(bytes.length).toBe(one.encodedBytes(numTokens, place));
        expect(one.encode(rows, place)).toEqual(bytes);
        expect(rows).toEqual(before);
        const decoded = one.decode(bytes);
        expect(decoded.startIndex).toBe(startIndex);
        expect(decoded.rows.numTokens).toBe(numTokens);
        if (one.lossless) expect(contents(decoded.rows)).toEqual(contents(rows));
        const exact = exactIn(name, numTokens, place);
        expect(sliceOf(shape, decoded.rows, exact)).toEqual(sliceOf(shape, rows, exact));
        for (const codes of [decoded.rows.keys, decoded.rows.values])
          expect(codes.every((code) => code >= -127)).toBe(true);
        if (numTokens > 0) {
          const { keys, values } = relativeError(shape, rows, decoded.rows);
          expect(Math.max(keys, values)).toBeLessThan(0.35);
        }
      }),
      { numRuns: 15 },
    );
  });

  test('a run in a view into other bytes', () => {
    const one = codec(name);
    const bytes = one.encode(randomRows(SHAPE, 40, 1), { startIndex: 7 });
    const around = new Uint8Array(bytes.length + 9).fill(255);
    around.set(bytes, 3);
    expect(one.decode(around.subarray(3, 3 + bytes.length))).toEqual(one.decode(bytes));
  });

  test('zeros and single values survive', () => {
    const one = codec(name);
    const rows = newKvRows({ ...SHAPE, kv: 'int8' }, 64);
    expect(contents(one.decode(one.encode(rows, { startIndex: 9 })).rows)).toEqual(contents(rows));
    rows.keys.fill(127);
    rows.keyScales.fill(1e30);
    rows.values.fill(-127);
    rows.valueScales.fill(1e-30);
    const { rows: decoded } = one.decode(one.encode(rows, { startIndex: 9 }));
    for (const scales of [decoded.keyScales, decoded.valueScales]) expect(scales.every(Number.isFinite)).toBe(true);
  });

  test('bytes that are no such run are refused', () => {
    const one = codec(name);
    const bytes = one.encode(randomRows(SHAPE, 40, 2), { startIndex: 2 });
    for (const length of [0, 1, HEADER_BYTES - 1, HEADER_BYTES, bytes.length >> 1, bytes.length - 1])
      expect(() => one.decode(bytes.subarray(0, length))).toThrow(MalformedRun);
    expect(() => one.decode(Uint8Array.of(...bytes, 0))).toThrow('there are');
    const foreign = bytes.slice();
    foreign[0]! ^= 1;
    expect(() => one.decode(foreign)).toThrow('another header');
    for (const other of NAMES.filter((n) => n !== name))
      expect(() => codec(other).decode(bytes)).toThrow(`the format is not ${other}`);
    for (const shape of [
      { ...SHAPE, numLayers: 1 },
      { ...SHAPE, kvHeads: 4 },
      { ...SHAPE, headSize: 32 },
    ])
      expect(() => codec(name, shape).decode(bytes)).toThrow('layers x heads x head size');
  });

  test('damaged bytes decode to finite rows or are refused', () => {
    const one = codec(name);
    const bytes = one.encode(randomRows(SHAPE, 40, 3), { startIndex: 2 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.oneof(fc.nat(63), fc.nat(bytes.length - 1)), fc.nat(255)), { minLength: 1, maxLength: 8 }),
        (flips) => {
          const damaged = bytes.slice();
          for (const [at, value] of flips) damaged[at] = value;
          try {
            const { rows } = one.decode(damaged);
            for (const scales of [rows.keyScales, rows.valueScales])
              expect(scales.every((scale) => scale >= 0 && Number.isFinite(scale * 127))).toBe(true);
          } catch (error) {
            expect(error).toBeInstanceOf(MalformedRun);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

test.each([64, 128, 256])(
  'turboquant, heads of %i: units whose sums would be beyond a float are refused',
  (headSize) => {
    const shape = { numLayers: 1, kvHeads: 1, headSize };
    const one = codecNamed('turboquant', shape, rope(headSize));
    const bytes = one.encode(randomRows(shape, 40, 3), { startIndex: 2 });
    // Of the values: two units, means, scales, codes.
    const values = bytes.length - gradedSides(4).values.bytes(1, headSize, 40);
    bytes.fill(255, values + 8);
    bytes.fill(127, values + 8, values + 8 + headSize);
    bytes.fill(0, values + 8 + headSize, values + 8 + headSize + 40);
    const decoded = (unit: number): (() => Float32Array) => {
      for (const at of [0, 4]) new DataView(bytes.buffer).setFloat32(values + at, unit, true);
      return () => one.decode(bytes).rows.valueScales;
    };
    expect(decoded(7e32)().every(Number.isFinite)).toBe(true);
    expect(decoded(1.2e34)).toThrow(MalformedRun);
  },
);

test.each<[CodecName, number, number]>([
  // Bits per value of K and V in blocks of 32 tokens of a head of 64, and the most that the error of a row of noise may be.
  ['int8', 8.5, 0],
  ['nvfp4', 4.5 + 16 / 2048, 0.12],
  ['int4-kivi', 4.5 + 32 / 2048, 0.12],
  // The last of two layers has 4 bits, the first 3.
  ['turboquant', 3.5 + (8 * (8 + 64 + 32)) / 2048, 0.2],
])('%s: %f bits per value', (name, bits, mostError) => {
  const one = codec(name);
  const values = 2 * SHAPE.numLayers * SHAPE.kvHeads * SHAPE.headSize;
  expect(((one.bytesPerToken(32) - HEADER_BYTES / 32) * 8) / values).toBeCloseTo(bits, 2);
  const rows = randomRows(SHAPE, 32, 4, 0);
  const { keys, values: error } = relativeError(SHAPE, rows, one.decode(one.encode(rows, { startIndex: 64 })).rows);
  expect(keys).toBeLessThanOrEqual(mostError);
  expect(error).toBeLessThanOrEqual(mostError);
});

test('turboquant: a fifth of the layers has 4 bits, another 3, the neediest first; the size is the same whichever they are', () => {
  const shape = { numLayers: 10, kvHeads: 1, headSize: 64 };
  const rows = randomRows(shape, 128, 5);
  const errors = (needs?: readonly number[]): number[] => {
    const one = codecNamed('turboquant', shape, rope(64), needs);
    const bytes = one.encode(rows, { startIndex: 3 });
    // Two sides of 10 heads: units, means, scales and 2.6 bits a value.
    expect(bytes.length).toBe(HEADER_BYTES + 20 * (8 + 64 + 128 + (128 * 64 * 2.6) / 8));
    const read = one.decode(bytes).rows;
    const layer = (of: KvRows, l: number): KvRows => ({
      numTokens: 128,
      keys: of.keys.subarray(l * 8192, (l + 1) * 8192),
      values: of.values.subarray(l * 8192, (l + 1) * 8192),
      keyScales: of.keyScales.subarray(l * 128, (l + 1) * 128),
      valueScales: of.valueScales.subarray(l * 128, (l + 1) * 128),
    });
    return Array.from(
      { length: 10 },
      (_, l) => relativeError({ ...shape, numLayers: 1 }, layer(rows, l), layer(read, l)).values,
    );
  };
  const finest = (values: number[]): number[] =>
    values
      .map((_, l) => l)
      .sort((a, b) => values[a]! - values[b]!)
      .slice(0, 4);
  const order = [7, 2, 0, 5, 1, 3, 4, 6, 8, 9];
  expect(new Set(finest(errors(order)).slice(0, 2))).toEqual(new Set([7, 2]));
  expect(new Set(finest(errors(order)))).toEqual(new Set([7, 2, 0, 5]));
  expect(new Set(finest(errors()).slice(0, 2))).toEqual(new Set([9, 8]));
});

test('turboquant: the neediest layers are the fifth that has 4 bits; with one kind of sides all are', () => {
  const shape = { numLayers: 10, kvHeads: 1, headSize: 64 };
  expect(codecNamed('turboquant', shape, rope(64), [7, 2, 0, 5, 1, 3, 4, 6, 8, 9]).neediest).toEqual(new Set([2, 7]));
  expect(codecNamed('turboquant', shape, rope(64)).neediest).toEqual(new Set([8, 9]));
  expect(codecNamed('nvfp4', SHAPE, null).neediest).toEqual(new Set([0, 1]));
});

test('pruned rows are decoded with the positions that they were written with', () => {
  const shape = { numLayers: 1, kvHeads: 1, headSize: 64 };
  const table = rope(64);
  table.ensure(1000);
  // Keys that are nearly the same before they are turned.
  const positions = Int32Array.from({ length: 64 }, (_, t) => 10 + 3 * t + (t % 2));
  const rows = randomRows(shape, 64, 6);
  const plain = (d: number, t: number): number => Math.cos(d) * 3 + 0.05 * Math.sin(d * t + t);
  for (const [t, position] of positions.entries()) {
    const key = Array.from({ length: 64 }, (_, d) => {
      const [cos, sin] = [table.cos[position * 32 + (d % 32)]!, table.sin[position * 32 + (d % 32)]!];
      return d < 32 ? plain(d, t) * cos - plain(d + 32, t) * sin : plain(d, t) * cos + plain(d - 32, t) * sin;
    });
    rows.keyScales[t] = Math.max(...key.map(Math.abs)) / 127;
    for (const [d, value] of key.entries()) rows.keys[d * 64 + t] = Math.round(value / rows.keyScales[t]!);
  }
  const one = codecNamed('turboquant', shape, table);
  const error = (encoded: Uint8Array, places?: Int32Array): number =>
    relativeError(shape, rows, one.decode(encoded, places).rows).keys;
  const place = { startIndex: 10, positions };
  const right = error(one.encode(rows, place), positions);
  expect(one.encode(rows, place)).toHaveLength(one.encodedBytes(64, { startIndex: 10 }));
  expect(right).toBeLessThan(0.02);
  expect(relativeError(shape, rows, one.through(rows, place)).keys).toBe(right);
  expect(error(one.encode(rows, { startIndex: 10 }))).toBeGreaterThan(2 * right);
  expect(error(one.encode(rows, place))).toBeGreaterThan(0.5);
});

test('names and ids are unique, and a format that needs the rotary embedding says so', () => {
  expect(new Set(NAMES).size).toBe(FORMATS.length);
  expect(new Set(FORMATS.map(({ id }) => id)).size).toBe(FORMATS.length);
  expect(() => codecNamed('turboquant', SHAPE, null)).toThrow('rotary embedding');
  expect(codecNamed('int4-kivi', SHAPE, null).lossless).toBe(false);
});
