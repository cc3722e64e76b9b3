/**
 * The kernels: the module in the repository is compiled from the sources, and no kernel reads or writes beyond its
 * areas.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CodecShape } from '../../../../../engine/kv/approx/codecs/codecFormat.ts';
import { KERNEL_BYTES } from '../../../../../engine/kv/approx/codecs/kernelBytes.ts';
import { kernelMemory, kernels, SLACK } from '../../../../../engine/kv/approx/codecs/kernels.ts';
import { codecNamed, FORMATS } from '../../../../../engine/kv/approx/codecs/registry.ts';
import type { KvRows } from '../../../../../engine/kv/kvRows.ts';
import { compileKernels } from '../../../../../scripts/kernels.mjs';
import { randomRows, rope } from '../../../../support/kv/codecRows.ts';

/** Areas of the kernels' memory. */
const [FROM, SCALES, TO, END] = [0, 1 << 16, 1 << 17, 1 << 18];

/** Head sizes that are no multiple of a vector, with lengths of runs that are none either. */
const shapes = fc.record({
  numLayers: fc.constant(1),
  kvHeads: fc.integer({ min: 1, max: 3 }),
  headSize: fc.oneof(
    fc.constantFrom(24, 80),
    fc.integer({ min: 1, max: 65 }).map((half) => 2 * half),
  ),
});
const lengths = fc.integer({ min: 1, max: 70 });

test('npm run kernels has been run', async () => {
  expect(Buffer.from(await compileKernels()).equals(Buffer.from(KERNEL_BYTES, 'base64'))).toBe(true);
});

test.each(FORMATS.filter(({ sides }) => sides).map(({ name }) => name))(
  '%s: what was in memory before does not matter',
  (name) => {
    fc.assert(
      fc.property(shapes, lengths, fc.integer(), (shape, numTokens, seed) => {
        const codec = codecNamed(name, shape, rope(shape.headSize));
        const rows = randomRows(shape, numTokens, seed);
        const place = { startIndex: 500 };
        // 0xff..: NaN as a float, as a half and as E4M3. 0x7f..: infinite, or the largest.
        const [first, ...others] = [0, 0xff, 0x7f, 0x33].map((garbage) => {
          kernelMemory(END).fill(garbage);
          const bytes = codec.encode(rows, place);
          kernelMemory(END).fill(garbage);
          return { bytes, decoded: codec.decode(bytes).rows };
        });
        for (const other of others) expect(other).toEqual(first);
      }),
      { numRuns: 60 },
    );
  },
);

/** One head of the rows. */
function headOf({ headSize }: CodecShape, rows: KvRows, h: number): KvRows {
  const n = rows.numTokens;
  const of = <T extends Int8Array | Float32Array>(array: T, length: number): T =>
    array.slice(h * length, (h + 1) * length) as T;
  return {
    numTokens: n,
    keys: of(rows.keys, headSize * n),
    values: of(rows.values, headSize * n),
    keyScales: of(rows.keyScales, n),
    valueScales: of(rows.valueScales, n),
  };
}

test('int4-kivi: a head is coded as it is by itself', () => {
  fc.assert(
    fc.property(shapes, lengths, fc.integer(), (shape, numTokens, seed) => {
      const rows = randomRows(shape, numTokens, seed);
      const place = { startIndex: 500 };
      const together = codecNamed('int4-kivi', shape, null).through(rows, place);
      const alone = codecNamed('int4-kivi', { ...shape, kvHeads: 1 }, null);
      for (let h = 0; h < shape.kvHeads; h++)
        expect(alone.through(headOf(shape, rows, h), place)).toEqual(headOf(shape, together, h));
    }),
    { numRuns: 60 },
  );
});

test('the kernel transposes bytes within larger rows and touches nothing else', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 70 }),
      fc.integer({ min: 1, max: 70 }),
      fc.nat(9),
      fc.nat(9),
      (rows, columns, left, right) => {
        const memory = kernelMemory(END).fill(0x55);
        const [fromStride, toStride] = [columns + left, rows + right];
        for (let i = 0; i < rows * fromStride; i++) memory[FROM + i] = (i * 7919) >> 3;
        kernels().transpose(FROM, fromStride, rows, columns, TO, toStride);
        for (let c = 0; c < columns; c++)
          for (let r = 0; r < toStride; r++)
            expect(memory[TO + c * toStride + r]).toBe(r < rows ? memory[FROM + r * fromStride + c] : 0x55);
      },
    ),
  );
});

test('rows convert to floats and back at any width', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 70 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer(),
      (width, numRows, seed) => {
        const memory = kernelMemory(END).fill(0x55);
        const shape = { numLayers: 1, kvHeads: 1, headSize: width };
        const rows = randomRows(shape, numRows, seed);
        memory.set(new Uint8Array(rows.values.buffer), FROM);
        new Float32Array(memory.buffer, SCALES, numRows).set(rows.valueScales);
        kernels().rowsToFloats(FROM, SCALES, numRows, width, TO);
        const floats = new Float32Array(memory.buffer, TO, numRows * width);
        expect(floats).toEqual(
          Float32Array.from(rows.values, (code, i) => code * rows.valueScales[Math.floor(i / width)]!),
        );
        expect(
          memory
            .subarray(TO + floats.byteLength + SLACK, TO + floats.byteLength + 2 * SLACK)
            .every((byte) => byte === 0x55),
        ).toBe(true);
        memory.fill(0x55, 0, TO);
        kernels().floatsToRows(TO, numRows, width, FROM, SCALES);
        expect(new Int8Array(memory.buffer, FROM, numRows * width)).toEqual(rows.values);
        // Rows of other heads and blocks lie right behind these.
        expect(
          memory.subarray(FROM + numRows * width, FROM + numRows * width + SLACK).every((byte) => byte === 0x55),
        ).toBe(true);
        expect(memory.subarray(SCALES + 4 * numRows, SCALES + 4 * numRows + SLACK).every((byte) => byte === 0x55)).toBe(
          true,
        );
      },
    ),
  );
});
