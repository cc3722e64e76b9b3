/** The header of a safetensors file, the conversion to float32, and quantisation. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RequestError } from '../../../../engine/protocol/errors.ts';
import { quantiseRows16, quantiseToColumns, rowScales } from '../../../../engine/model/load/quantise.ts';
import { fromCodes, toFloat32, headerLength, parseHeader } from '../../../../engine/model/load/safetensors.ts';
import { safetensorsBytes } from '../../../support/model/randomModel.ts';

const good = safetensorsBytes([
  ['a', { dtype: 'F32', shape: [2, 3], bytes: new Uint8Array(24) }],
  ['b', { dtype: 'BF16', shape: [4], bytes: new Uint8Array(8) }],
  ['c', { dtype: 'F16', shape: [], bytes: new Uint8Array(2) }],
]);

function parse(file: Uint8Array) {
  const length = headerLength(file.subarray(0, 8), 'x.safetensors', file.length);
  return parseHeader(file.subarray(8, 8 + length), 'x.safetensors', file.length);
}

function withHeader(header: unknown, dataBytes: number): Uint8Array {
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, Buffer.alloc(dataBytes)]);
}

test('reads a good file', () => {
  const tensors = parse(good);
  expect([...tensors.keys()]).toEqual(['a', 'b', 'c']);
  expect(tensors.get('a')!.shape).toEqual([2, 3]);
  expect(tensors.get('b')!.start - tensors.get('a')!.start).toBe(24);
});

const tensor = (from: number, to: number, more = {}) => ({
  dtype: 'F32',
  shape: [(to - from) / 4],
  data_offsets: [from, to],
  ...more,
});
test.each<[string, Uint8Array, RegExp]>([
  ['empty', new Uint8Array(0), /0 bytes/],
  [
    'too long a header',
    Buffer.concat([Buffer.from([0, 0, 0, 0, 0, 0, 0, 16]), Buffer.alloc(64)]),
    /header length is 1152921504606846976 bytes/,
  ],
  ['no JSON', withHeader('{"a"', 0), /not valid JSON/],
  [
    'no UTF-8',
    Buffer.concat([Buffer.from([3, 0, 0, 0, 0, 0, 0, 0]), Buffer.from([0x22, 0xff, 0x22])]),
    /not valid JSON/,
  ],
  ['a list', withHeader([], 0), /JSON object/],
  [
    'cut off',
    good.subarray(0, good.length - 1),
    /"c" ends at byte 34.*only 33; the file is cut off or its header is wrong: download it again\.$/,
  ],
  ['bytes left over', Buffer.concat([good, Buffer.alloc(1)]), /1 bytes that belong to no tensor/],
  ['overlap', withHeader({ a: tensor(0, 8), b: tensor(4, 12) }, 12), /"b" overlaps/],
  ['gap', withHeader({ a: tensor(0, 8), b: tensor(12, 16) }, 16), /"b" leaves a gap/],
  ['shape', withHeader({ a: tensor(0, 8, { shape: [3] }) }, 8), /shape \[3\]/],
  ['huge shape', withHeader({ a: tensor(0, 8, { shape: [2 ** 40, 2 ** 40] }) }, 8), /is not the size/],
  ['negative shape', withHeader({ a: tensor(0, 8, { shape: [-2] }) }, 8), /shape that is not/],
  ['dtype', withHeader({ a: tensor(0, 8, { dtype: 'Q4' }) }, 8), /dtype "Q4"; F32, F16 and BF16/],
  ['inherited dtype', withHeader({ a: tensor(0, 8, { dtype: 'constructor' }) }, 8), /dtype "constructor"/],
  ['offsets', withHeader({ a: tensor(8, 0, { shape: [2] }) }, 8), /is not the size/],
  [
    'offsets that are no numbers',
    withHeader({ a: { dtype: 'F32', shape: [1], data_offsets: ['0', '4'] } }, 4),
    /two byte offsets/,
  ],
  ['null', withHeader({ a: null }, 0), /must be a JSON object/],
])('refuses a file with the flaw: %s', (_, file, message) => {
  expect(() => parse(file)).toThrow(message);
  expect(() => parse(file)).toThrow(RequestError);
});

const headers = fc.dictionary(
  fc.string(),
  fc.oneof(
    fc.jsonValue(),
    fc.record({
      dtype: fc.constantFrom('F32', 'F16', 'I8', 'X'),
      shape: fc.array(fc.nat(5)),
      data_offsets: fc.tuple(fc.nat(40), fc.nat(40)),
    }),
  ),
);
test('property: any bytes give a RequestError or tensors within the file', () => {
  const check = (file: Uint8Array) => {
    try {
      for (const { start, end } of parse(file).values())
        if (start < 8 || end > file.length || start > end) return false;
      return true;
    } catch (error) {
      return error instanceof RequestError;
    }
  };
  fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), check), { numRuns: 500 });
  fc.assert(
    fc.property(headers, fc.nat(40), (header, size) => check(withHeader(header, size))),
    { numRuns: 1000 },
  );
  const change = fc.record({ at: fc.nat(good.length - 1), value: fc.nat(255) });
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), fc.nat(good.length), (changes, length) => {
      const file = Uint8Array.from(good);
      for (const { at, value } of changes) file[at] = value;
      return check(file) && check(file.subarray(0, length));
    }),
    { numRuns: 2000 },
  );
});

test('float16 and bfloat16 become the same numbers in float32; NaN and infinity are found', () => {
  const out = new Float32Array(5);
  expect(toFloat32(new Uint8Array(new Uint16Array([0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000]).buffer), 'F16', out)).toBe(
    true,
  );
  expect([...out]).toEqual([1, -2, 2 ** -24, 65504, -0]);
  expect(toFloat32(new Uint8Array(new Uint16Array([0x3f80, 0xc000, 0x0001, 0x7f7f, 0x8000]).buffer), 'BF16', out)).toBe(
    true,
  );
  expect(out[0]).toBe(1);
  expect(out[1]).toBe(-2);
  for (const [type, word] of [
    ['F16', 0x7c00],
    ['F16', 0xfe00],
    ['BF16', 0x7f80],
    ['BF16', 0xffc0],
  ] as const) {
    expect(toFloat32(new Uint8Array(new Uint16Array([0, word]).buffer), type, out.subarray(0, 2))).toBe(false);
  }
  expect(
    toFloat32(new Uint8Array(new Float32Array([1, Number.NEGATIVE_INFINITY]).buffer), 'F32', out.subarray(0, 2)),
  ).toBe(false);
  expect(toFloat32(new Uint8Array(new Float32Array([1, Number.NaN]).buffer), 'F32', out.subarray(0, 2))).toBe(false);
  expect(toFloat32(new Uint8Array(new Float32Array([3.4e38, 3.4e38]).buffer), 'F32', out.subarray(0, 2))).toBe(true);
});

test('8-bit codes are multiplied by the scale of their row; -128 counts as -127', () => {
  const out = new Float32Array(6);
  fromCodes(new Uint8Array(Int8Array.of(127, 0, -1, -127, -128, 3).buffer), Float32Array.of(0.5, 2), out);
  expect([...out]).toEqual([63.5, 0, -0.5, -254, -254, 6]);
});

test('codes with a 127 in their row are restored exactly with any scale', () => {
  const rows = fc
    .tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 30 }))
    .chain(([n, width]) =>
      fc.tuple(
        fc.constant(width),
        fc.array(fc.integer({ min: -128, max: 127 }), { minLength: n * width, maxLength: n * width }),
        fc.float32Array({ minLength: n, maxLength: n, noNaN: true, min: Math.fround(1e-30), max: Math.fround(1e30) }),
      ),
    );
  fc.assert(
    fc.property(rows, fc.constantFrom(127, -127, -128), ([width, values, scales], largest) => {
      const codes = Int8Array.from(values);
      for (let i = 0; i < codes.length; i += width) codes[i] = largest;
      const n = scales.length;
      const floats = new Float32Array(codes.length);
      fromCodes(new Uint8Array(codes.buffer), scales, floats);
      const again = new Float32Array(n);
      const columns = new Int8Array(codes.length);
      rowScales(floats, n, width, again);
      quantiseToColumns(floats, n, width, again, columns, n, 0);
      codes.forEach((code, i) => {
        expect(columns[(i % width) * n + Math.floor(i / width)]).toBe(Math.max(-127, code));
      });
      // max / 127 of 127 * scale, each rounded.
      for (const [r, scale] of scales.entries()) expect(Math.abs(again[r]! / scale - 1)).toBeLessThan(2 ** -22);
    }),
    { numRuns: 100 },
  );
});

test('quantised rows are restored within half a step, never as -128', () => {
  const rows = fc.tuple(fc.integer({ min: 1, max: 130 }), fc.integer({ min: 1, max: 70 })).chain(([n, width]) =>
    fc.tuple(
      fc.constant(n),
      fc.constant(width),
      fc.float32Array({
        minLength: n * width,
        maxLength: n * width,
        noNaN: true,
        noDefaultInfinity: true,
        min: -1000,
        max: 1000,
      }),
    ),
  );
  fc.assert(
    fc.property(rows, ([n, width, values]) => {
      const scales = new Float32Array(n);
      rowScales(values, n, width, scales);
      const columns = new Int8Array(width * (n + 1));
      quantiseToColumns(values, n, width, scales, columns, n + 1, 1);
      const fine = new Int16Array(n * width);
      const fineScales = new Float32Array(n);
      quantiseRows16(values, n, width, fineScales, fine);
      for (let r = 0; r < n; r++) {
        for (let i = 0; i < width; i++) {
          const code = columns[i * (n + 1) + 1 + r]!;
          const value = values[r * width + i]!;
          if (code < -127) return false;
          if (scales[r]! > 1e-30 && Math.abs(code * scales[r]! - value) > scales[r]! * 0.5001) return false;
          if (fineScales[r]! > 1e-30 && Math.abs(fine[r * width + i]! * fineScales[r]! - value) > fineScales[r]! * 0.51)
            return false;
        }
      }
      return true;
    }),
    { numRuns: 60 },
  );
});
