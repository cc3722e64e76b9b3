/** Blocks of GGUF types give the bits of the Python package gguf (test/fixtures/gguf/make_blocks.py). */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { fromBlocks, ggmlType } from '../../../../../engine/model/load/gguf/ggmlTypes.ts';
import { toFloat32 } from '../../../../../engine/model/load/safetensors.ts';

const cases = JSON.parse(
  readFileSync(path.join(import.meta.dirname, '../../../../fixtures/gguf/blocks.json'), 'utf8'),
) as Record<string, { raw: string; values: string }>;
const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'));
const bits = (values: Float32Array): string[] =>
  Array.from(new Uint32Array(values.buffer), (bit) => bit.toString(16).padStart(8, '0'));

test.each(Object.entries(cases))('%s gives the values of the reference, bit by bit', (name, { raw, values }) => {
  const expected = new Float32Array(bytes(values).buffer);
  const found = new Float32Array(expected.length);
  const finite = name.endsWith('F16') ? toFloat32(bytes(raw), name, found) : fromBlocks(bytes(raw), name, found);
  expect(bits(found)).toEqual(bits(expected));
  expect(finite).toBe(true);
});

test('a block with a scale that is infinite or no number is not finite', () => {
  for (const scale of [0x7c00, 0x7e00]) {
    const raw = new Uint8Array(34).fill(1);
    new DataView(raw.buffer).setUint16(0, scale, true);
    expect(fromBlocks(raw, 'Q8_0', new Float32Array(32))).toBe(false);
  }
});

test('the sizes of blocks are those of the file format', () => {
  const sizes = [0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 23, 30].map((id) => {
    const { name, values, bytes: size } = ggmlType(id)!;
    return `${name} ${values} ${size}`;
  });
  expect(sizes.join()).toBe(
    'F32 1 4,F16 1 2,Q4_0 32 18,Q4_1 32 20,Q5_0 32 22,Q5_1 32 24,Q8_0 32 34,Q2_K 256 84,Q3_K 256 110,Q4_K 256 144,' +
      'Q5_K 256 176,Q6_K 256 210,IQ4_NL 32 18,IQ4_XS 256 136,BF16 1 2',
  );
});
