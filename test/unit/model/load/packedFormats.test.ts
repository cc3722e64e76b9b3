/** GPTQ, AWQ and packed weights of compressed-tensors: which are read, and what is refused. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { importModel } from '../../../../engine/model/import/importModel.ts';
import { quantisationOf } from '../../../../engine/model/load/quantisationConfig.ts';
import { parseHeader } from '../../../../engine/model/load/safetensors.ts';
import { FIXTURES, temporaryFolder } from '../../../support/model/fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const gptq = { quant_method: 'gptq', bits: 4, group_size: 128, desc_act: true, sym: true };
const awq = { quant_method: 'awq', bits: 4, group_size: 128, version: 'gemm', zero_point: true };
const weights = { num_bits: 4, type: 'int', symmetric: false, strategy: 'group', group_size: 32, dynamic: false };
const packed = (change: Record<string, unknown>) => ({
  quant_method: 'compressed-tensors',
  format: 'pack-quantized',
  config_groups: { a: { weights: { ...weights, ...change } } },
});

test.each<[Record<string, unknown>, Record<string, unknown>]>([
  [gptq, { kind: 'gptq', bits: 4, groupSize: 128, lessOne: true, needsOrder: true, needsZeros: true }],
  [
    { ...gptq, bits: 8, group_size: -1, desc_act: false },
    { bits: 8, groupSize: null, needsOrder: false },
  ],
  [{ ...gptq, checkpoint_format: 'gptq_v2', dynamic: {} }, { lessOne: false }],
  [{ ...gptq, checkpoint_format: null, format: 'gptq_v2' }, { lessOne: false }],
  [{ ...gptq, checkpoint_format: null }, { lessOne: true }],
  [awq, { kind: 'awq', bits: 4, groupSize: 128, lessOne: false }],
  [{ quant_method: 'awq', w_bit: 4, q_group_size: 64, version: 'GEMM' }, { groupSize: 64 }],
  [
    { ...awq, backend: 'auto', version: undefined, format: 'gemm' },
    { kind: 'awq', groupSize: 128 },
  ],
  [{ ...awq, backend: 'marlin', version: null, format: 'gemm' }, { kind: 'awq' }],
  [packed({}), { kind: 'rows', bits: 4, groupSize: 32, needsZeros: true, needsOrder: false }],
  [packed({ actorder: 'group' }), { needsOrder: true }],
  [packed({ actorder: 'weight' }), { needsOrder: false }],
  [packed({ strategy: 'channel', symmetric: true }), { kind: 'rows', groupSize: null, needsZeros: false }],
  [packed({ num_bits: 8 }), { kind: 'rows', bits: 8 }],
  [packed({ num_bits: 8, strategy: 'channel', symmetric: true }), { kind: 'int8' }],
])('%j is read', (quantization_config, expected) => {
  expect(quantisationOf({ quantization_config })).toMatchObject(expected);
});

test.each<[string, Record<string, unknown>]>([
  ['.bits is 3', { ...gptq, bits: 3 }],
  ['.group_size is 0', { ...gptq, group_size: 0 }],
  ['.checkpoint_format is "marlin"', { ...gptq, checkpoint_format: 'marlin' }],
  ['.format is "bitblas"', { ...gptq, format: 'bitblas' }],
  ['.format is "marlin"', { ...gptq, checkpoint_format: null, format: 'marlin' }],
  ['.is_marlin_format is true', { ...gptq, is_marlin_format: true }],
  ['.dynamic is an object', { ...gptq, dynamic: { lm_head: { bits: 8 } } }],
  ['.pack_dtype is "int8"', { ...gptq, pack_dtype: 'int8' }],
  ['.bits is 8', { ...awq, bits: 8 }],
  ['.version is "gemv"', { ...awq, version: 'gemv' }],
  ['.format is "gemv"', { ...awq, version: null, format: 'gemv' }],
  ['.backend is "gemv_fast"', { ...awq, backend: 'gemv_fast' }],
  ['.zero_point is false', { ...awq, zero_point: false }],
  ['.backend is "llm-awq"', { ...awq, backend: 'llm-awq' }],
  ['.weights.num_bits is 3', packed({ num_bits: 3 })],
  ['.weights.strategy is "block"', packed({ strategy: 'block' })],
  ['.weights.group_size is null', packed({ group_size: null })],
  [
    '.config_groups differ',
    { ...packed({}), config_groups: { a: { weights }, b: { weights: { ...weights, num_bits: 8 } } } },
  ],
])('%s: refused by name', (field, quantization_config) => {
  expect(() => quantisationOf({ quantization_config })).toThrow(
    `config.json: quantization_config${field.startsWith('.weights') ? '.config_groups["a"]' : ''}${field}`,
  );
});

const FIRST = 'model.layers.0.self_attn.q_proj';
let dir = '';
let copies = 0;
beforeEach(() => {
  dir = path.join(folder.dir, `copy${copies++}`);
});

/** Copies a model and changes the bytes of a tensor, or its name in the header to one of the same length. */
function changed(name: string, tensor: string, change: (bytes: Buffer) => void, newName = tensor): string {
  cpSync(path.join(FIXTURES, 'families', name), dir, { recursive: true });
  const file = path.join(dir, 'model.safetensors');
  const bytes = readFileSync(file);
  const length = Number(bytes.readBigUInt64LE(0));
  const header = bytes.subarray(8, 8 + length);
  const { start, end } = parseHeader(header, file, bytes.length).get(tensor)!;
  change(bytes.subarray(start, end));
  header.write(header.toString('latin1').replace(tensor, newName), 'latin1');
  writeFileSync(file, bytes);
  return dir;
}

const load = (modelDir: string) =>
  importModel({ modelDir, cacheDir: path.join(folder.dir, 'cache'), precision: 'int8', products: 'native' });

test('a zero of GPTQ that programs read differently is refused', async () => {
  const model = changed('gptq-4-actorder', `${FIRST}.qzeros`, (bytes) => bytes.fill(0xff, 0, 1));
  await expect(load(model)).rejects.toThrow(
    `tensor "${FIRST}.qzeros" holds the zero 15, which programs read differently`,
  );
});

test.each([
  ['gptq-4-actorder', `${FIRST}.g_idx`],
  ['packed-4-actorder', `${FIRST}.weight_g_idx`],
])('%s: a group that does not exist is refused', async (name, tensor) => {
  const model = changed(name, tensor, (bytes) => bytes.writeInt32LE(99, 0));
  await expect(load(model)).rejects.toThrow(`tensor "${tensor}" does not give each input one of 3 groups`);
});

test('infinite scales and missing tensors are named', async () => {
  const infinite = changed('awq', `${FIRST}.scales`, (bytes) => bytes.writeUInt16LE(0x7c00, 0));
  await expect(load(infinite)).rejects.toThrow(`tensor "${FIRST}.scales" holds NaN or infinity`);
  dir += 'b';
  const missing = changed('awq', `${FIRST}.qzeros`, () => {}, `${FIRST}.qzerox`);
  await expect(load(missing)).rejects.toThrow(`tensor "${FIRST}.qzeros" is missing`);
});

test('a matrix of another shape is named', async () => {
  cpSync(path.join(FIXTURES, 'families', 'packed-4'), dir, { recursive: true });
  const file = path.join(dir, 'config.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"group_size": 16', '"group_size": 8'));
  await expect(load(dir)).rejects.toThrow(
    /weight_scale" is F16 \[48, 4\]; quantization_config in config\.json asks for .* \[48, 8\]/,
  );
});
