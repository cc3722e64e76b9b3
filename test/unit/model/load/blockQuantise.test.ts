/** Blocks: codes and scales give the weights back, and the scales that are chosen are better than the plain ones. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BLOCK, numBlocks, quantiseBlocks4, quantiseBlocks8 } from '../../../../engine/model/load/quantise.ts';

function quantised(rows: Float32Array, width: number) {
  const numRows = rows.length / width;
  const codes = new Uint8Array(numRows * numBlocks(width) * (BLOCK / 2));
  const scales = new Float32Array(numRows * numBlocks(width));
  quantiseBlocks4(rows, numRows, width, codes, scales);
  return { codes, scales };
}

/** As the operator's documentation has it: (code - 8) * scale, the low half of a byte first. */
function restored({ codes, scales }: ReturnType<typeof quantised>, width: number): Float32Array {
  const blocks = numBlocks(width);
  return Float32Array.from({ length: (scales.length / blocks) * width }, (_, i) => {
    const block = Math.floor(i / width) * blocks + Math.floor((i % width) / BLOCK);
    const inBlock = (i % width) % BLOCK;
    const byte = codes[block * (BLOCK / 2) + (inBlock >> 1)]!;
    return ((inBlock % 2 ? byte >> 4 : byte & 15) - 8) * scales[block]!;
  });
}

const squaredError = (a: Float32Array, b: Float32Array) => a.reduce((sum, v, i) => sum + (v - b[i]!) ** 2, 0);
const shape = fc.record({ numRows: fc.integer({ min: 1, max: 4 }), width: fc.integer({ min: 1, max: 3 * BLOCK }) });

test('weights that 4 bits can represent are restored exactly at any width', () => {
  fc.assert(
    fc.property(
      shape,
      fc.infiniteStream(fc.integer({ min: -8, max: 7 })),
      fc.integer({ min: -20, max: 3 }),
      ({ numRows, width }, stream, exponent) => {
        const scale = 2 ** exponent;
        const rows = new Float32Array(numRows * width);
        for (let i = 0; i < rows.length; i++) rows[i] = Number(stream.next().value) * scale;
        // The code -8 in each block fixes the scale.
        for (let r = 0; r < numRows; r++) for (let i = 0; i < width; i += BLOCK) rows[r * width + i] = -8 * scale;
        expect(restored(quantised(rows, width), width)).toEqual(rows);
      },
    ),
  );
});

test('property: the 4-bit error is never larger than with the scale that just fits the largest weight', () => {
  fc.assert(
    fc.property(
      shape,
      fc.infiniteStream(fc.float({ noNaN: true, noDefaultInfinity: true, min: -3, max: 3 })),
      ({ numRows, width }, stream) => {
        const rows = new Float32Array(numRows * width);
        for (let i = 0; i < rows.length; i++) rows[i] = Number(stream.next().value);
        const got = quantised(rows, width);
        let plain = 0;
        for (let r = 0; r < numRows; r++) {
          for (let start = 0; start < width; start += BLOCK) {
            const block = rows.subarray(r * width + start, r * width + Math.min(width, start + BLOCK));
            const scale = block.reduce((a, v) => Math.max(a, Math.abs(v)), 0) / 7;
            plain += squaredError(
              block,
              block.map((v) => (scale ? Math.round(v / scale) * scale : 0)),
            );
          }
        }
        expect(squaredError(rows, restored(got, width))).toBeLessThanOrEqual(plain * 1.00001 + 1e-9);
      },
    ),
  );
});

test('normal weights have a better signal than with the plain scale', () => {
  let seed = 1;
  const uniform = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return (seed + 1) / 2 ** 32;
  };
  const rows = Float32Array.from(
    { length: 64 * 4 * BLOCK },
    () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()),
  );
  const error = squaredError(rows, restored(quantised(rows, 4 * BLOCK), 4 * BLOCK)) / rows.length;
  // The plain scale's is 0.0117 here.
  expect(error).toBeLessThan(0.0105);
});

test('8 bits lose at most half a step of the block, and short blocks are filled with zeros', () => {
  fc.assert(
    fc.property(
      shape,
      fc.infiniteStream(fc.float({ noNaN: true, noDefaultInfinity: true, min: -3, max: 3 })),
      ({ numRows, width }, stream) => {
        const rows = new Float32Array(numRows * width);
        for (let i = 0; i < rows.length; i++) rows[i] = Number(stream.next().value);
        const blocks = numBlocks(width);
        const codes = new Uint8Array(numRows * blocks * BLOCK);
        const scales = new Float32Array(numRows * blocks);
        quantiseBlocks8(rows, numRows, width, codes, scales);
        for (let i = 0; i < codes.length; i++) {
          const [block, inRow] = [Math.floor(i / BLOCK), i % (blocks * BLOCK)];
          const weight = inRow < width ? rows[Math.floor(block / blocks) * width + inRow]! : 0;
          expect(Math.abs((codes[i]! - 128) * scales[block]! - weight)).toBeLessThanOrEqual(
            0.50001 * scales[block]! + 1e-9,
          );
        }
      },
    ),
    { numRuns: 30 },
  );
});

test('zeros stay zeros', () => {
  const { codes, scales } = quantised(new Float32Array(130), 130);
  expect([...new Set(codes)]).toEqual([0x88]);
  expect([...scales]).toEqual([0, 0]);
});
