import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { Weights } from '../../../engine/model/load/weights.ts';
import { ModelFolder } from '../../../engine/model/load/modelFolder.ts';
import { type BlockFormat, BLOCKS, halfBits, headType, writeGguf } from './gguf.ts';
import { tensorsOf, SHAPES } from '../shapes.ts';
import { shapeFolder } from '../writeShape.ts';
import { temporaryFolder } from '../../support/model/fixtures.ts';

const temporary = temporaryFolder();
afterAll(() => temporary.remove());

/** A second, independent reader of the format by its specification. Returns metadata, and tensors as float32. */
function readGguf(file: string) {
  const bytes = readFileSync(file);
  let at = 0;
  /** Returns the offset of the next `count` bytes and moves past them. */
  const skip = (count: number) => {
    at += count;
    return at - count;
  };
  const u32 = () => bytes.readUInt32LE(skip(4));
  const u64 = () => Number(bytes.readBigUInt64LE(skip(8)));
  const text = () => {
    const length = u64();
    const start = skip(length);
    return bytes.toString('utf8', start, start + length);
  };
  const value = (type: number): unknown => {
    if (type === 4) return u32();
    if (type === 5) return bytes.readInt32LE(skip(4));
    if (type === 6) return bytes.readFloatLE(skip(4));
    if (type === 8) return text();
    if (type !== 9) throw new Error(`metadata type ${type}`);
    const of = u32();
    return Array.from({ length: u64() }, () => value(of));
  };
  expect(bytes.toString('latin1', 0, 4)).toBe('GGUF');
  at = 4;
  expect(u32()).toBe(3);
  const [numTensors, numEntries] = [u64(), u64()];
  const metadata = Object.fromEntries(Array.from({ length: numEntries }, () => [text(), value(u32())]));
  const infos = Array.from({ length: numTensors }, () => ({
    name: text(),
    dims: Array.from({ length: u32() }, u64),
    type: u32(),
    offset: u64(),
  }));
  const start = Math.ceil(at / 32) * 32;
  const tensors = new Map(
    infos.map(({ name, dims, type, offset }) => [
      name,
      {
        dims,
        type,
        ...decode(
          bytes,
          start + offset,
          dims.reduce((a, b) => a * b, 1),
          type,
        ),
      },
    ]),
  );
  return { metadata, tensors };
}

const half = (bits: number) => {
  const exponent = (bits >> 10) & 31;
  return (
    (bits & 0x8000 ? -1 : 1) * (exponent ? (1 + (bits & 1023) / 1024) * 2 ** (exponent - 15) : (bits & 1023) * 2 ** -24)
  );
};

/** Values, and the largest error that the format allows for each of them. */
function decode(bytes: Buffer, start: number, count: number, type: number): { values: number[]; allowed: number[] } {
  const values: number[] = [];
  const allowed: number[] = [];
  for (let i = 0, at = start; i < count; ) {
    if (type === 0) {
      values[i] = bytes.readFloatLE(at);
      allowed[i++] = 0;
      at += 4;
      continue;
    }
    const scale = half(bytes.readUInt16LE(at));
    for (let j = 0; j < 32; j++) {
      values[i + j] =
        scale * (type === 8 ? bytes.readInt8(at + 2 + j) : ((bytes[at + 2 + (j % 16)]! >> (j < 16 ? 0 : 4)) & 15) - 8);
      // Half a step plus the rounding of the scale. With four bits the end opposite to the extreme value is one step
      // short.
      allowed[i + j] = Math.abs(scale) * (type === 8 ? 0.6 : 1.01);
    }
    i += 32;
    at += type === 8 ? 34 : 18;
  }
  return { values, allowed };
}

test.each<[BlockFormat, number]>([
  ['q8_0', 8],
  ['q4_0', 2],
])('%s holds every tensor of the folder, each value within its step', async (format, ggmlType) => {
  const modelDir = await shapeFolder('tiny', temporary.dir);
  const file = path.join(temporary.dir, `${format}.gguf`);
  await writeGguf(modelDir, file, format);
  const { metadata, tensors } = readGguf(file);
  expect(metadata).toMatchObject({
    'general.architecture': 'qwen2',
    'qwen2.block_count': 2,
    'qwen2.attention.head_count_kv': 2,
    'qwen2.rope.freq_base': 1e6,
  });
  expect(metadata['tokenizer.ggml.tokens']).toHaveLength(SHAPES.tiny.vocab_size);

  const sources = tensorsOf(SHAPES.tiny);
  expect(tensors.size).toBe(sources.length);
  const weights = await Weights.open(await ModelFolder.open(modelDir));
  const names = {
    'model.embed_tokens.weight': 'token_embd.weight',
    'model.norm.weight': 'output_norm.weight',
    'model.layers.1.mlp.down_proj.weight': 'blk.1.ffn_down.weight',
    'model.layers.0.self_attn.k_proj.bias': 'blk.0.attn_k.bias',
    'model.layers.1.self_attn.o_proj.weight': 'blk.1.attn_output.weight',
  };
  for (const [source, name] of Object.entries(names)) {
    const { shape } = sources.find((tensor) => tensor.name === source)!;
    weights.check(source, shape);
    const expected = await weights.rows(
      source,
      0,
      shape.length === 1 ? 1 : shape[0]!,
      new Float32Array(shape.reduce((a, b) => a * b, 1)),
    );
    const { dims, type, values, allowed } = tensors.get(name)!;
    // The head has a more precise type.
    expect(type, name).toBe(shape.length === 1 ? 0 : name === 'token_embd.weight' ? 8 : ggmlType);
    expect(dims).toEqual([...shape].reverse());
    const over = values.findIndex((value, i) => !(Math.abs(value - expected[i]!) <= allowed[i]! + 1e-9));
    expect(over, `${name}[${over}]`).toBe(-1);
  }
  await weights.close();
});

test('halfBits gives the nearest float16, ties to even, through subnormals to infinity', () => {
  const cases: [number, number][] = [
    [0, 0],
    [1, 0x3c00],
    [-2, 0xc000],
    [65_504, 0x7bff],
    [65_520, 0x7c00],
    [2 ** -24, 1],
    [2 ** -25, 0],
    [1.5 * 2 ** -24, 2],
    [1 + 2 ** -11, 0x3c00],
    [1 + 3 * 2 ** -11, 0x3c02],
    [2 - 2 ** -11, 0x4000],
    [2 ** -14 - 2 ** -25, 0x0400],
  ];
  for (const [value, bits] of cases) expect(halfBits(value), String(value)).toBe(bits);
});

test('a head that is also the embedding is Q6_K in a Q4_0 file, and Q8_0 if its rows are not whole blocks', () => {
  expect([headType('q4_0', 1536), headType('q4_0', 896), headType('q8_0', 1536)]).toEqual(['q6_K', 'q8_0', 'q8_0']);
});

/** Values of a Q6_K block, by the definition of the format. */
function decodeQ6(block: DataView): number[] {
  const values: number[] = [];
  for (let half128 = 0; half128 < 2; half128++) {
    for (let l = 0; l < 32; l++) {
      const [first, second, upper] = [
        block.getUint8(64 * half128 + l),
        block.getUint8(64 * half128 + 32 + l),
        block.getUint8(128 + 32 * half128 + l),
      ];
      const codes = [
        (first & 15) | ((upper & 3) << 4),
        (second & 15) | (((upper >> 2) & 3) << 4),
        (first >> 4) | (((upper >> 4) & 3) << 4),
        (second >> 4) | ((upper >> 6) << 4),
      ];
      for (const [quarter, code] of codes.entries()) {
        const i = 128 * half128 + 32 * quarter + l;
        values[i] = half(block.getUint16(208, true)) * block.getInt8(192 + (i >> 4)) * (code - 32);
      }
    }
  }
  return values;
}

const random = (() => {
  let state = 12_345;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
})();

test('Q6_K restores values that it can represent exactly', () => {
  const scales = Array.from({ length: 16 }, (_, g) => (g === 5 ? -128 : Math.floor(random() * 255) - 127));
  // The extreme value of each group has the lowest code.
  const values = Float32Array.from(
    { length: 256 },
    (_, i) => 2 ** -12 * scales[i >> 4]! * ((i % 16 === i >> 4 ? 0 : Math.floor(random() * 64)) - 32),
  );
  const out = new DataView(new ArrayBuffer(2 * BLOCKS.q6_K.bytes));
  BLOCKS.q6_K.encode(Float32Array.of(...values, ...new Float32Array(256)), out);
  expect(decodeQ6(out).map((value) => value + 0)).toEqual([...values].map((value) => value + 0));
  expect(scales.map((_, g) => out.getInt8(192 + g))).toEqual(scales);
  expect(decodeQ6(new DataView(out.buffer, BLOCKS.q6_K.bytes)).every((value) => value === 0)).toBe(true);
});

test('Q6_K keeps other values within one step of their group', () => {
  const values = Float32Array.from({ length: 256 }, (_, i) => (random() - 0.5) * 0.02 * (1 + (i >> 4)));
  const out = new DataView(new ArrayBuffer(BLOCKS.q6_K.bytes));
  BLOCKS.q6_K.encode(values, out);
  const unit = Math.abs(half(out.getUint16(208, true)));
  const errors = decodeQ6(out).map((value, i) => Math.abs(value - values[i]!));
  // Half a step plus roundings of d. At the ends one step, plus 32 times half a unit from the rounding of the scale.
  const over = errors.findIndex((error, i) => error > 1.02 * Math.abs(out.getInt8(192 + (i >> 4))) * unit + 16 * unit);
  expect(over).toBe(-1);
  const rms = Math.sqrt(
    errors.reduce((sum, error) => sum + error * error, 0) / errors.reduce((sum, _, i) => sum + values[i]! ** 2, 0),
  );
  expect(rms).toBeLessThan(0.02);
});
