/**
 * Import: which models are refused and how, the cache folder under crashes, races and damage, and the built-in model.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { RequestError } from '../../engine/protocol/errors.ts';
import { parseConfig } from '../../engine/model/load/hfConfig.ts';
import { cacheEntry } from '../../engine/model/import/importCache.ts';
import { entryKey, importModel, inspectModel } from '../../engine/model/import/importModel.ts';
import type { ImportedModel } from '../../engine/model/load/importedModel.ts';
import { Weights } from '../../engine/model/load/weights.ts';
import { headerLength, parseHeader } from '../../engine/model/load/safetensors.ts';
import { buildStepGraph } from '../../engine/model/graph/stepGraph.ts';
import { planWeights } from '../../engine/model/load/weightPlan.ts';
import { paddedProducts } from '../../engine/model/load/quantise.ts';
import { ModelFolder } from '../../engine/model/load/modelFolder.ts';
import { fittingBuffer } from '../../engine/model/runtime/pagedFeeds.ts';
import { BUILT_IN } from '../support/builtIn.ts';
import {
  FIXTURES,
  MODELS,
  argmax,
  formsHere,
  loadRunner,
  readJson,
  temporaryFolder,
} from '../support/model/fixtures.ts';
import {
  INT8_CONFIG,
  type StoredType,
  encode,
  safetensorsBytes,
  writeRandomModel,
} from '../support/model/randomModel.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
let numFolders = 0;
const fresh = () => path.join(folder.dir, String(numFolders++));
const GOOD = path.join(FIXTURES, 'bad/_good_base');
/** Without what the cache keeps beside its entries. */
const entriesIn = (cacheDir: string) =>
  readdirSync(cacheDir).filter((name) => name !== 'products.json' && name !== '.contents.json');

async function refusal(modelDir: string, cacheDir = fresh()): Promise<RequestError> {
  try {
    await importModel({ modelDir, cacheDir, precision: 'int8' });
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    // No incomplete entry remains.
    expect(existsSync(cacheDir) ? entriesIn(cacheDir) : []).toEqual([]);
    return error;
  }
  throw new Error('not refused');
}

/** A copy of a good folder with changed files; null removes one. */
function variant(changes: Record<string, string | Uint8Array | null>, from = GOOD): string {
  const dir = fresh();
  cpSync(from, dir, { recursive: true });
  for (const [name, content] of Object.entries(changes)) {
    if (content === null) rmSync(path.join(dir, name));
    else writeFileSync(path.join(dir, name), content);
  }
  return dir;
}

describe('fixtures', () => {
  test('a valid model loads and runs', async () => {
    const runner = await loadRunner(GOOD, fresh(), 'int8', 'int8', 16);
    const slots = Int32Array.of(3, 1);
    const logits = await runner.run([
      { tokenIds: [1, 2], startIndex: 0, contextSlots: new Int32Array(0), newSlots: slots, numLogits: 1 },
    ]);
    expect(logits.length).toBe(runner.vocabSize);
    expect(logits.every(Number.isFinite)).toBe(true);
    await runner.dispose();
  });

  const causes: Record<string, RegExp> = {
    cfg_no_hidden_size: /hidden_size is missing/,
    st_header_length_2p60: /1152921504606846976/,
    st_truncated: /cut off/,
    tok_invalid_json: /not valid JSON/,
  };
  test.each(Object.entries(causes))('%s', async (name, cause) => {
    const dir = path.join(FIXTURES, 'bad', name);
    const { file } = readJson<{ file: string }>(dir, 'expected.json');
    const { code, message } = await refusal(dir);
    expect(code).toBe('modelInvalid');
    expect(message).toContain(file);
    expect(message).toMatch(cause);
    await expect(inspectModel(dir)).rejects.toThrow(RequestError);
  });

  test('unsupported model type', async () => {
    const { code, message } = await refusal(path.join(FIXTURES, 'unsupported/gpt-oss-config-only'));
    expect(code).toBe('modelUnsupported');
    expect(message).toMatch(/config\.json.*gpt_oss.*qwen2, qwen3, llama/);
  });
});

describe('refused', () => {
  const config = JSON.parse(readFileSync(path.join(GOOD, 'config.json'), 'utf8')) as Record<string, unknown>;
  const withConfig = (change: Record<string, unknown>) => ({ 'config.json': JSON.stringify({ ...config, ...change }) });
  test.each<[string, Record<string, string | Uint8Array | null>, RegExp]>([
    ['config is missing', { 'config.json': null }, /config\.json is missing/],
    ['config is not JSON', { 'config.json': '{"a": NaN}' }, /config\.json is not valid JSON/],
    ['config is a list', { 'config.json': '[]' }, /config\.json must hold a JSON object/],
    ['no tokenizer', { 'tokenizer.json': null }, /tokenizer\.json is missing/],
    ['a tokenizer without model', { 'tokenizer.json': '{}' }, /tokenizer\.json: model is missing/],
    ['no weights', { 'model.safetensors': null }, /model\.safetensors and .* are missing/],
    [
      'another size',
      withConfig({ intermediate_size: 64 }),
      /model\.safetensors: tensor "model\.layers\.0\.mlp\.gate_proj\.weight" has the shape \[32, 32\].*\[64, 32\]/,
    ],
    [
      'another number of layers',
      withConfig({ num_hidden_layers: 2 }),
      /model\.safetensors: tensor "model\.layers\.1\.input_layernorm\.weight" is missing/,
    ],
    ['no head', withConfig({ tie_word_embeddings: undefined }), /tie_word_embeddings.*lm_head\.weight/],
    ['generation config', { 'generation_config.json': '{' }, /generation_config\.json is not valid JSON/],
  ])('%s', async (_, changes, message) => {
    expect((await refusal(variant(changes))).message).toMatch(message);
  });

  test('a missing folder is refused', async () =>
    expect((await refusal(path.join(folder.dir, 'nowhere'))).message).toMatch(/cannot be opened/));
  test('a file instead of a folder is refused', async () =>
    expect((await refusal(path.join(GOOD, 'config.json'))).message).toMatch(/is no model; a model is a folder/));

  test('NaN and integer weights are refused with the name of the tensor', async () => {
    const model = {
      model_type: 'llama',
      hidden_size: 8,
      intermediate_size: 8,
      num_hidden_layers: 1,
      num_attention_heads: 2,
      num_key_value_heads: 1,
      vocab_size: 16,
      rms_norm_eps: 1e-6,
      tie_word_embeddings: true,
    };
    for (const [bytes, dtype, message] of [
      [encode(new Float32Array(8).fill(Number.NaN), 'F32'), 'F32', /"model\.norm\.weight" holds NaN/],
      [new Uint8Array(32), 'I32', /"model\.norm\.weight" has the dtype I32; F32, F16 and BF16/],
    ] as const) {
      const dir = fresh();
      const tensors = writeRandomModel(dir, { config: model, dtype: 'F32', seed: 1 });
      writeFileSync(
        path.join(dir, 'model.safetensors'),
        safetensorsBytes(
          [...tensors].map(([name, t]) => [
            name,
            name === 'model.norm.weight'
              ? { dtype, shape: t.shape, bytes }
              : { dtype: 'F32', shape: t.shape, bytes: encode(t.data, 'F32') },
          ]),
        ),
      );
      expect((await refusal(dir)).message).toMatch(message);
    }
  });

  test('nothing outside the folder is read', async () => {
    const index = (file: string) => ({
      'model.safetensors': null,
      'model.safetensors.index.json': JSON.stringify({ weight_map: { x: file } }),
    });
    for (const name of ['../w.safetensors', '/etc/passwd', 'a/../../w', 'C:\\w', 'a\\b', 'a\0b', ''])
      expect((await refusal(variant(index(name)))).message).toMatch(/leaves the model folder/);
    const dir = variant({ 'model.safetensors': null });
    symlinkSync(path.join(GOOD, 'model.safetensors'), path.join(dir, 'model.safetensors'));
    expect((await refusal(dir)).message).toMatch(/model\.safetensors is a symbolic link that leaves/);
    // A link that stays inside the folder is accepted, and so is a folder that is itself a link.
    const inside = variant({});
    cpSync(path.join(inside, 'model.safetensors'), path.join(inside, 'w.bin'));
    rmSync(path.join(inside, 'model.safetensors'));
    symlinkSync('w.bin', path.join(inside, 'model.safetensors'));
    const link = fresh();
    symlinkSync(inside, link);
    expect((await inspectModel(link)).architecture).toBe('qwen2');
  });

  test('a missing shard, a tensor in another shard, and a folder instead of a file are refused', async () => {
    const sharded = path.join(MODELS, 'qwen3-tied-sharded');
    expect((await refusal(variant({ 'model-00002-of-00002.safetensors': null }, sharded))).message).toMatch(
      /model-00002-of-00002\.safetensors is missing/,
    );
    const index = readJson<{ weight_map: Record<string, string> }>(sharded, 'model.safetensors.index.json');
    index.weight_map['model.norm.weight'] = 'model-00001-of-00002.safetensors';
    expect(
      (await refusal(variant({ 'model.safetensors.index.json': JSON.stringify(index) }, sharded))).message,
    ).toMatch(/"model\.norm\.weight" is missing, although/);
    const dir = variant({ 'tokenizer.json': null });
    mkdirSync(path.join(dir, 'tokenizer.json'));
    expect((await refusal(dir)).message).toMatch(/tokenizer\.json (is not a regular file|cannot be read)/);
  });
});

describe('ties', () => {
  const model = {
    model_type: 'llama',
    hidden_size: 8,
    intermediate_size: 8,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    num_key_value_heads: 1,
    vocab_size: 16,
    rms_norm_eps: 1e-6,
  };
  test('a head that equals the embedding is tied, another head is not', async () => {
    const dir = fresh();
    const tensors = writeRandomModel(dir, { config: { ...model, tie_word_embeddings: false }, dtype: 'F32', seed: 1 });
    writeFileSync(path.join(dir, 'config.json'), JSON.stringify({ ...model, tie_word_embeddings: true }));
    expect((await inspectModel(dir)).tied).toBe(false);
    const same = [...tensors].map(
      ([name, t]) =>
        [
          name,
          {
            dtype: 'F32',
            shape: t.shape,
            bytes: encode(name === 'lm_head.weight' ? tensors.get('model.embed_tokens.weight')!.data : t.data, 'F32'),
          },
        ] as const,
    );
    writeFileSync(path.join(dir, 'model.safetensors'), safetensorsBytes(same));
    expect((await inspectModel(dir)).tied).toBe(true);
  });
});

describe('8-bit weights', () => {
  const model = {
    model_type: 'qwen2',
    hidden_size: 24,
    intermediate_size: 40,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    vocab_size: 48,
    rms_norm_eps: 1e-6,
    tie_word_embeddings: true,
    max_position_embeddings: 64,
  };
  type Stored = { dtype: string; shape: readonly number[]; bytes: Uint8Array };

  function tensorsOf(dir: string): Map<string, Stored> {
    const file = readFileSync(path.join(dir, 'model.safetensors'));
    const infos = parseHeader(
      file.subarray(8, 8 + headerLength(file.subarray(0, 8), 'm', file.length)),
      'm',
      file.length,
    );
    return new Map(
      [...infos.values()].map(({ name, dtype, shape, start, end }) => [
        name,
        { dtype, shape, bytes: file.subarray(start, end) },
      ]),
    );
  }

  /** A model with its layers in 8 bits, and one with the same numbers in float32. */
  function pair(scaleType: StoredType): { int8: string; float: string } {
    const [int8, float] = [fresh(), fresh()];
    const tensors = writeRandomModel(int8, { config: model, dtype: 'F32', int8: scaleType, seed: 11, keyBias: 20 });
    cpSync(int8, float, { recursive: true });
    writeFileSync(path.join(float, 'config.json'), JSON.stringify(model));
    writeFileSync(
      path.join(float, 'model.safetensors'),
      safetensorsBytes(
        [...tensors].map(([name, { shape, data }]) => [name, { dtype: 'F32', shape, bytes: encode(data, 'F32') }]),
      ),
    );
    return { int8, float };
  }

  const weightsOf = ({ dir }: ImportedModel) => readFileSync(path.join(dir, 'weights.bin'));
  const numbersOf = ({ dir, key: _, contentHash: __, ...rest }: ImportedModel) => ({
    ...rest,
    config: { ...rest.config, quantisation: null },
  });

  test.each(['F32', 'F16', 'BF16'] as const)(
    'scales in %s: in every precision and form the weight file equals the one from the same numbers in float32',
    async (scaleType) => {
      const { int8, float } = pair(scaleType);
      for (const precision of ['int8', 'int4', 'float32'] as const) {
        for (const products of formsHere) {
          const [a, b] = [
            await importModel({ modelDir: int8, cacheDir: fresh(), precision, products }),
            await importModel({ modelDir: float, cacheDir: fresh(), precision, products }),
          ];
          expect(weightsOf(a).equals(weightsOf(b)), `${precision} ${products}`).toBe(true);
          expect(numbersOf(a)).toEqual(numbersOf(b));
          expect(a.biased).toEqual([0, 1]);
        }
      }
      const { files: _, name: __, config: ___, format: ____, ...inspected } = await inspectModel(int8);
      expect(inspected).toEqual((({ files, name, config, format, ...rest }) => rest)(await inspectModel(float)));
    },
  );

  test('codes that are packed into int32 are the same numbers', async () => {
    const { int8, float } = pair('F32');
    const packed = fresh();
    cpSync(int8, packed, { recursive: true });
    writeFileSync(
      path.join(packed, 'config.json'),
      JSON.stringify({ ...model, quantization_config: { ...INT8_CONFIG, format: 'pack-quantized' } }),
    );
    const stored = [...tensorsOf(int8)].flatMap(([name, tensor]): [string, Stored][] => {
      const { dtype, shape, bytes } = tensor;
      if (dtype !== 'I8') return [[name, tensor]];
      // By the arithmetic of the reference: 128 is added to each code, and the first of four has the lowest place.
      const words = Uint32Array.from({ length: bytes.length / 4 }, (_, i) =>
        [0, 1, 2, 3].reduce((word, k) => word + (((bytes[4 * i + k]! << 24) >> 24) + 128) * 256 ** k, 0),
      );
      const sizes = Int32Array.from(shape);
      return [
        [`${name}_packed`, { dtype: 'I32', shape: [shape[0]!, shape[1]! / 4], bytes: new Uint8Array(words.buffer) }],
        [`${name}_shape`, { dtype: 'I32', shape: [2], bytes: new Uint8Array(sizes.buffer) }],
      ];
    });
    writeFileSync(path.join(packed, 'model.safetensors'), safetensorsBytes(stored));
    for (const precision of ['int8', 'float32'] as const) {
      const [a, b] = [
        await importModel({ modelDir: packed, cacheDir: fresh(), precision, products: 'rows' }),
        await importModel({ modelDir: float, cacheDir: fresh(), precision, products: 'rows' }),
      ];
      expect(weightsOf(a).equals(weightsOf(b)), precision).toBe(true);
    }
  });

  test('logits equal those of the same numbers in float32', async () => {
    const { int8, float } = pair('F32');
    const [a, b] = await Promise.all(
      [int8, float].map(async (dir) => {
        const runner = await loadRunner(dir, fresh(), 'int8', 'int8', 16);
        const logits = (
          await runner.run([
            {
              tokenIds: [1, 2, 3],
              startIndex: 0,
              contextSlots: new Int32Array(0),
              newSlots: Int32Array.of(3, 1, 8),
              numLogits: 3,
            },
          ])
        ).slice();
        await runner.dispose();
        return logits;
      }),
    );
    expect(a!.every(Number.isFinite)).toBe(true);
    expect(a).toEqual(b);
  });

  test('the weight file has the codes of the model, and its scales', async () => {
    const { int8 } = pair('F32');
    const stored = tensorsOf(int8);
    const imported = await importModel({ modelDir: int8, cacheDir: fresh(), precision: 'int8', products: 'rows' });
    const bytes = weightsOf(imported);
    const { linears } = planWeights(imported.config, 'int8', imported.tied, 'rows', imported.biased);
    let numCodes = 0;
    for (const [name, { width, sources, weight, scales }] of linears) {
      if (name === 'head') continue;
      const columns = new Int8Array(bytes.buffer, bytes.byteOffset + weight.offset, weight.length);
      const columnScales = new Float32Array(
        bytes.buffer.slice(bytes.byteOffset + scales!.offset, bytes.byteOffset + scales!.offset + scales!.length),
      );
      let column = 0;
      for (const { tensor, rows, factors } of sources) {
        const codes = new Int8Array(stored.get(tensor)!.bytes);
        const rowScales = new Float32Array(Uint8Array.from(stored.get(`${tensor}_scale`)!.bytes).buffer);
        for (let r = 0; r < rows; r++, column++) {
          for (let i = 0; i < width; i++, numCodes++)
            if (columns[i * weight.dims[1]! + column] !== codes[r * width + i]) expect.fail(`${tensor}[${r}, ${i}]`);
          expect(Math.abs(columnScales[column]! / (rowScales[r]! * factors[0]!) - 1)).toBeLessThan(2 ** -22);
        }
      }
    }
    expect(numCodes).toBe(2 * 24 * (24 + 12 + 12 + 24 + 3 * 40));
  });

  test('the hash of the tensors depends on the scales and not on the precision', async () => {
    const { int8 } = pair('F32');
    const hashOf = async (precision: 'int8' | 'float32') =>
      (await importModel({ modelDir: int8, cacheDir: fresh(), precision })).contentHash;
    const before = await hashOf('int8');
    expect(await hashOf('float32')).toBe(before);
    const tensors = tensorsOf(int8);
    const scale = tensors.get('model.layers.1.mlp.up_proj.weight_scale')!;
    tensors.set('model.layers.1.mlp.up_proj.weight_scale', {
      ...scale,
      bytes: Uint8Array.from(scale.bytes, (byte, i) => (i === 0 ? byte ^ 1 : byte)),
    });
    writeFileSync(path.join(int8, 'model.safetensors'), safetensorsBytes(tensors));
    expect(await hashOf('int8')).not.toBe(before);
  });

  const NAME = 'model.layers.1.mlp.down_proj.weight';
  const [code, scale, zeroPoint] = [NAME, `${NAME}_scale`, `${NAME}_zero_point`];
  const f32 = (shape: number[], value = 1): Stored => ({
    dtype: 'F32',
    shape,
    bytes: encode(new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(value), 'F32'),
  });
  const oneOf24 = (value: number): Stored => ({
    dtype: 'F32',
    shape: [24, 1],
    bytes: encode(
      Float32Array.from({ length: 24 }, (_, r) => (r === 7 ? value : 1)),
      'F32',
    ),
  });
  const i8 = (shape: number[]): Stored => ({
    dtype: 'I8',
    shape,
    bytes: new Uint8Array(shape.reduce((a, b) => a * b, 1)),
  });

  function changed(from: string, changes: Record<string, Stored | null>): string {
    const tensors = tensorsOf(from);
    for (const [name, tensor] of Object.entries(changes)) {
      if (tensor) tensors.set(name, tensor);
      else tensors.delete(name);
    }
    return variant({ 'model.safetensors': safetensorsBytes(tensors) }, from);
  }

  const { int8 } = pair('F32');
  test.each<[string, Record<string, Stored | null>, RegExp]>([
    [
      'no scales',
      { [scale]: null },
      /^model\.safetensors: tensor "model\.layers\.1\.mlp\.down_proj\.weight_scale" with the scales of the 8-bit "model\.layers\.1\.mlp\.down_proj\.weight" is missing: download the model again\.$/,
    ],
    [
      'a vector of scales',
      { [scale]: f32([24]) },
      /weight_scale" has the shape \[24\]; .*one scale per row \(\[24, 1\]\), or choose another one\.$/,
    ],
    ['a scale for all', { [scale]: f32([1, 1]) }, /weight_scale" has the shape \[1, 1\]/],
    ['scales of groups', { [scale]: f32([24, 5]) }, /weight_scale" has the shape \[24, 5\]/],
    [
      'integers for scales',
      { [scale]: { dtype: 'I32', shape: [24, 1], bytes: new Uint8Array(96) } },
      /weight_scale" has the dtype I32; F32, F16 and BF16 are supported for scales\.$/,
    ],
    ['a scale of 0', { [scale]: oneOf24(0) }, /weight_scale" holds 0 for row 7; a scale must be positive/],
    ['a negative scale', { [scale]: oneOf24(-0.5) }, /weight_scale" holds -0\.5 for row 7/],
    ['NaN', { [scale]: oneOf24(Number.NaN) }, /weight_scale" holds NaN for row 7/],
    ['infinity', { [scale]: oneOf24(Number.POSITIVE_INFINITY) }, /weight_scale" holds Infinity for row 7/],
    [
      'a scale too large',
      { [scale]: oneOf24(2 ** 127) },
      /weight_scale" holds 1\.7014\d*e\+38 for row 7; .*127 times the scale finite/,
    ],
    ['zero points', { [zeroPoint]: i8([24, 1]) }, /down_proj\.weight" has zero points .*symmetric/],
    [
      'another shape',
      { [code]: i8([24, 39]) },
      /down_proj\.weight" has the shape \[24, 39\]; config\.json asks for \[24, 40\]/,
    ],
    [
      'unsigned codes',
      { [code]: { ...i8([24, 40]), dtype: 'U8' } },
      /down_proj\.weight" has the dtype U8; F32, F16 and BF16 are supported\.$/,
    ],
    [
      'a vector in 8 bits',
      { 'model.norm.weight': i8([24]), 'model.norm.weight_scale': f32([24, 1]) },
      /"model\.norm\.weight" has the dtype I8; .*and I8 for matrices/,
    ],
  ])('refused: %s', async (_, changes, message) =>
    expect((await refusal(changed(int8, changes))).message).toMatch(message),
  );

  test('refused: codes without a quantization_config', async () => {
    expect((await refusal(variant({ 'config.json': JSON.stringify(model) }, int8))).message).toMatch(
      /"model\.layers\.0\.self_attn\.q_proj\.weight" has the dtype I8; .*if config\.json has a quantization_config\.$/,
    );
  });

  test('layers may be unquantised while embedding and head are quantised', async () => {
    const float = tensorsOf(pair('F32').float);
    expect((await inspectModel(changed(int8, { [code]: float.get(code)!, [scale]: null }))).tied).toBe(true);
    const head = { 'lm_head.weight': i8([48, 24]), 'lm_head.weight_scale': f32([48, 1]) };
    const both = changed(int8, {
      ...head,
      'model.embed_tokens.weight': i8([48, 24]),
      'model.embed_tokens.weight_scale': f32([48, 1]),
    });
    expect((await inspectModel(changed(int8, head))).tied).toBe(false);
    expect((await inspectModel(both)).tied).toBe(true);
    expect((await importModel({ modelDir: both, cacheDir: fresh(), precision: 'int8' })).tied).toBe(true);
  });

  test('property: any scales give finite rows or a refusal with the name of the tensor', async () => {
    const tensor = fc.record({
      dtype: fc.constantFrom('F32', 'F16', 'BF16', 'I8', 'F64'),
      shape: fc.oneof(fc.constant<number[]>([2, 1]), fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 })),
      seed: fc.uint8Array({ minLength: 8, maxLength: 8 }),
    });
    const size: Record<string, number> = { F32: 4, F16: 2, BF16: 2, I8: 1, F64: 8 };
    const dir = fresh();
    mkdirSync(dir);
    let read = 0;
    await fc.assert(
      fc.asyncProperty(tensor, fc.uint8Array({ minLength: 6, maxLength: 6 }), async ({ dtype, shape, seed }, codes) => {
        const bytes = Uint8Array.from({ length: shape.reduce((a, b) => a * b, size[dtype]!) }, (_, i) => seed[i % 8]!);
        writeFileSync(
          path.join(dir, 'model.safetensors'),
          safetensorsBytes([
            ['a.weight', { dtype: 'I8', shape: [2, 3], bytes: codes }],
            ['a.weight_scale', { dtype, shape, bytes }],
          ]),
        );
        const weights = await Weights.open(await ModelFolder.open(dir));
        try {
          weights.check('a.weight', [2, 3], true);
          const rows = await weights.rows('a.weight', 0, 2, new Float32Array(6));
          expect(rows.length === 6 && rows.every(Number.isFinite)).toBe(true);
          expect(await weights.rows('a.weight', 1, 1, new Float32Array(3))).toEqual(rows.subarray(3));
          read++;
        } catch (error) {
          expect(error).toBeInstanceOf(RequestError);
          expect((error as RequestError).message).toMatch(/^model\.safetensors: tensor "a\.weight_scale" .*\.$/);
        } finally {
          await weights.close();
        }
      }),
      { numRuns: 300 },
    );
    expect(read).toBeGreaterThan(10);
  });
});

describe('cache folder', () => {
  const options = (cacheDir: string, modelDir = GOOD) => ({ modelDir, cacheDir, precision: 'int8' as const });

  test('an entry is reused; another content, time or precision gives another entry with the same tensor hash', async () => {
    const cacheDir = fresh();
    const progress: number[] = [];
    const first = await importModel({ ...options(cacheDir), onProgress: (f) => progress.push(f) });
    expect(first.imported).toBe(true);
    expect(progress.at(-1)).toBe(1);
    const again = await importModel({ ...options(cacheDir), onProgress: () => expect.unreachable() });
    expect(again).toEqual({ ...first, imported: false });
    const float = await importModel({ ...options(cacheDir), precision: 'float32' });
    const small = await importModel({ ...options(cacheDir), precision: 'int4' });
    const edited = await importModel(
      options(
        cacheDir,
        variant({ 'tokenizer.json': readFileSync(path.join(GOOD, 'tokenizer.json'), 'utf8').replace(/\s*$/, '\n\n') }),
      ),
    );
    expect(new Set([first.key, float.key, small.key, edited.key]).size).toBe(4);
    expect(new Set([first.contentHash, float.contentHash, small.contentHash, edited.contentHash]).size).toBe(1);
    expect(entriesIn(cacheDir).length).toBe(4);
  });

  test('an entry belongs to the content: of a file that was renamed, and of a copy', async () => {
    const [cacheDir, home] = [fresh(), fresh()];
    mkdirSync(home);
    const [first, renamed, copy] = ['first.gguf', 'renamed.gguf', 'copy.gguf'].map((name) => path.join(home, name));
    cpSync(path.join(MODELS, 'gguf-qwen2/gguf-qwen2-q8_0.gguf'), first!);
    const made = await importModel(options(cacheDir, first));
    renameSync(first!, renamed!);
    cpSync(renamed!, copy!);
    utimesSync(copy!, 1, 1);
    for (const file of [renamed, copy])
      expect(await importModel(options(cacheDir, file))).toEqual({ ...made, imported: false });
    // The entry belongs to the copy now, so it stays when another import removes those of deleted models.
    rmSync(renamed!);
    const other = await importModel(options(cacheDir));
    expect(entriesIn(cacheDir).sort()).toEqual([made.key, other.key].sort());
    rmSync(copy!);
    await importModel(options(cacheDir));
    expect(entriesIn(cacheDir)).toEqual([other.key]);
  });

  test('another content of the same size and time gives another entry', async () => {
    const cacheDir = fresh();
    const dir = variant({});
    const weights = path.join(dir, 'model.safetensors');
    utimesSync(weights, 1000, 1000);
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 60_000);
    const first = await importModel(options(cacheDir, dir));
    const bytes = readFileSync(weights);
    bytes[bytes.length - 4]! ^= 1;
    writeFileSync(weights, bytes);
    utimesSync(weights, 1000, 1000);
    const second = await importModel(options(cacheDir, dir));
    clock.mockRestore();
    expect([second.imported, second.key === first.key]).toEqual([true, false]);
    expect(second.contentHash).not.toBe(first.contentHash);
  });

  test('a file that has not changed is not read again', async () => {
    const cacheDir = fresh();
    const dir = variant({});
    const known = () =>
      JSON.parse(readFileSync(path.join(cacheDir, '.contents.json'), 'utf8')) as Record<string, string>;
    const { key } = await importModel(options(cacheDir, dir));
    // It has just been written, and could be written again without another time.
    expect(existsSync(path.join(cacheDir, '.contents.json'))).toBe(false);
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 60_000);
    expect((await importModel(options(cacheDir, dir))).key).toBe(key);
    const [[state, hash] = []] = Object.entries(known());
    const content = readFileSync(path.join(dir, 'model.safetensors'));
    expect(hash).toBe(createHash('sha256').update(content).digest('hex'));
    writeFileSync(path.join(cacheDir, '.contents.json'), JSON.stringify({ [state!]: 'a'.repeat(64) }));
    expect((await importModel(options(cacheDir, dir))).key).not.toBe(key);
    for (const text of ['{', 'null', '[1]', JSON.stringify({ [state!]: 7 })]) {
      writeFileSync(path.join(cacheDir, '.contents.json'), text);
      expect((await importModel(options(cacheDir, dir))).key).toBe(key);
      expect(Object.values(known())).toContain(hash);
    }
    clock.mockRestore();
  });

  test('an entry made by another version of the step graph is not used', () => {
    const config = parseConfig(JSON.parse(readFileSync(path.join(GOOD, 'config.json'), 'utf8')));
    const now = entryKey('f', config, 'int8', 'rows');
    expect(entryKey('f', config, 'int8', 'rows')).toBe(now);
    // One byte of one graph changes.
    const changed = entryKey('f', config, 'int8', 'rows', (c, plan, options) => {
      const bytes = buildStepGraph(c, plan, options);
      if (options.kv === 'int8') bytes[bytes.length - 1]! ^= 1;
      return bytes;
    });
    expect(changed).not.toBe(now);
  });

  test('narrow codes and other forms have separate entries that do not replace each other', async () => {
    const cacheDir = fresh();
    for (const precision of ['int8', 'int4'] as const) {
      const forms = ['rows', 'narrow', 'blocks'] as const;
      const models: ImportedModel[] = [];
      for (const products of forms) models.push(await importModel({ ...options(cacheDir), precision, products }));
      expect(new Set(models.map(({ key }) => key)).size).toBe(3);
      // The form that is measured to be best may change. Here blocks have replaced rows.
      for (const [i, products] of forms.slice(1).entries())
        expect(await importModel({ ...options(cacheDir), precision, products })).toEqual({
          ...models[i + 1],
          imported: false,
        });
      expect(existsSync(models[0]!.dir)).toBe(false);
      // Only blocks combine several rows in a product, and they would saturate with narrow codes.
      expect(models.map((model) => paddedProducts(model).head)).toEqual([false, false, true]);
    }
  });

  test('imports of the same model at the same time all succeed', async () => {
    const cacheDir = fresh();
    const all = await Promise.all(Array.from({ length: 4 }, () => importModel(options(cacheDir))));
    expect(all.filter((m) => m.imported).length).toBe(1);
    expect(entriesIn(cacheDir)).toEqual([all[0]!.key]);
  });

  test('damaged entries are built again', async () => {
    const cacheDir = fresh();
    const { dir } = await importModel(options(cacheDir));
    const size = statSync(path.join(dir, 'weights.bin')).size;
    for (const damage of [
      () => truncateSync(path.join(dir, 'weights.bin'), size - 1),
      () => rmSync(path.join(dir, 'manifest.json')),
      () => writeFileSync(path.join(dir, 'manifest.json'), '{'),
      () => rmSync(path.join(dir, 'step-kv-int8.onnx')),
    ]) {
      damage();
      const repaired = await Promise.all([importModel(options(cacheDir)), importModel(options(cacheDir))]);
      expect(repaired.some((m) => m.imported)).toBe(true);
      expect(statSync(path.join(dir, 'weights.bin')).size).toBe(size);
      expect(entriesIn(cacheDir).length).toBe(1);
    }
  });

  test('a head is compared with the embedding once', async () => {
    const dir = fresh();
    const model = {
      model_type: 'llama',
      hidden_size: 8,
      intermediate_size: 8,
      num_hidden_layers: 1,
      num_attention_heads: 2,
      num_key_value_heads: 1,
      vocab_size: 16,
      rms_norm_eps: 1e-6,
    };
    writeRandomModel(dir, { config: { ...model, tie_word_embeddings: false }, dtype: 'F32', seed: 1 });
    writeFileSync(path.join(dir, 'config.json'), JSON.stringify({ ...model, tie_word_embeddings: true }));
    const equal = vi.spyOn(Weights.prototype, 'equal');
    const cacheDir = fresh();
    const first = await importModel({ ...options(cacheDir, dir), precision: 'float32' });
    expect(equal).toHaveBeenCalledTimes(1);
    expect(await importModel({ ...options(cacheDir, dir), precision: 'float32' })).toEqual({
      ...first,
      imported: false,
    });
    expect(equal).toHaveBeenCalledTimes(1);
    expect(first.tied).toBe(false);
    equal.mockRestore();
  });

  test('a new import replaces earlier ones of its folder and precision, unless another process uses them', async () => {
    const cacheDir = fresh();
    const dir = variant({});
    const tokenizer = readFileSync(path.join(dir, 'tokenizer.json'), 'utf8');
    let numEdits = 0;
    const edit = () => writeFileSync(path.join(dir, 'tokenizer.json'), `${tokenizer}${'\n'.repeat(++numEdits)}`);
    const keys = () => entriesIn(cacheDir).sort();
    const first = await importModel(options(cacheDir, dir));
    const float = await importModel({ ...options(cacheDir, dir), precision: 'float32' });
    const elsewhere = await importModel(options(cacheDir, variant({ 'generation_config.json': '{}' })));
    edit();
    const second = await importModel(options(cacheDir, dir));
    expect(keys()).toEqual([float.key, elsewhere.key, second.key].sort());
    expect(first.key).not.toBe(second.key);
    // The parent process of this test is alive. No process has the other id.
    writeFileSync(path.join(second.dir, `used-by-${process.ppid}`), '');
    edit();
    const third = await importModel(options(cacheDir, dir));
    expect(keys()).toEqual([float.key, elsewhere.key, second.key, third.key].sort());
    rmSync(path.join(second.dir, `used-by-${process.ppid}`));
    writeFileSync(path.join(second.dir, 'used-by-4194999'), '');
    writeFileSync(path.join(third.dir, 'used-by-4194999'), '');
    await importModel(options(cacheDir, dir));
    expect(readdirSync(third.dir).filter((name) => name.startsWith('used-by-'))).toEqual([`used-by-${process.pid}`]);
    edit();
    const fourth = await importModel(options(cacheDir, dir));
    expect(keys()).toEqual([float.key, elsewhere.key, fourth.key].sort());
  });

  test('a new import removes those of models that were deleted, but not of a folder that is missing as a whole', async () => {
    const cacheDir = fresh();
    const copy = (...parts: string[]) => {
      const dir = path.join(fresh(), ...parts);
      cpSync(GOOD, dir, { recursive: true });
      return dir;
    };
    const [deleted, away, stays] = [copy('deleted'), copy('disk', 'away'), copy('stays')];
    const keys = [];
    for (const dir of [deleted, away, stays]) {
      writeFileSync(path.join(dir, 'generation_config.json'), '{}'.padEnd(3 + keys.length));
      keys.push((await importModel(options(cacheDir, dir))).key);
    }
    expect(entriesIn(cacheDir).sort()).toEqual([...keys].sort());
    rmSync(deleted, { recursive: true });
    rmSync(path.dirname(away), { recursive: true });
    const last = await importModel(options(cacheDir));
    expect(entriesIn(cacheDir).sort()).toEqual([keys[1], keys[2], last.key].sort());
  });

  test('imports for the native kernels and for onnxruntime replace each other once nothing uses them', async () => {
    const cacheDir = fresh();
    const load = (products: 'native' | 'rows' | 'narrow') => importModel({ ...options(cacheDir), products });
    const keys = () => entriesIn(cacheDir).sort();
    const [rows, narrow] = [await load('rows'), await load('narrow')];
    expect(keys()).toEqual([rows.key, narrow.key].sort());
    writeFileSync(path.join(rows.dir, `used-by-${process.ppid}`), '');
    const native = await load('native');
    expect(keys()).toEqual([rows.key, native.key].sort());
    // The other process has ended.
    rmSync(path.join(rows.dir, `used-by-${process.ppid}`));
    expect(await load('native')).toEqual({ ...native, imported: false });
    expect(keys()).toEqual([native.key]);
    expect((await load('narrow')).key).toBe(narrow.key);
    expect(keys()).toEqual([narrow.key]);
  });

  test('files left by a crash do no harm', async () => {
    const cacheDir = fresh();
    // No process has this id, because the kernel's limit is 2^22.
    mkdirSync(path.join(cacheDir, '.import-4194999-00ff'), { recursive: true });
    writeFileSync(path.join(cacheDir, '.import-4194999-00ff/weights.bin'), 'half');
    expect((await importModel(options(cacheDir))).imported).toBe(true);
  });

  test('disk errors are reported as disk errors', async () => {
    const file = fresh();
    writeFileSync(file, '');
    await expect(importModel(options(path.join(file, 'cache')))).rejects.toMatchObject({
      code: 'engineFailed',
      message: expect.stringMatching(/cache folder .* is a file or is inside one/),
    });
    const cacheDir = fresh();
    const full = () =>
      Promise.reject(Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }));
    await expect(cacheEntry(cacheDir, 'k', async () => ({ bytes: 5e6, build: full }))).rejects.toMatchObject({
      code: 'engineFailed',
      message: expect.stringMatching(/is full\. This model needs 5 MB/),
    });
    await expect(cacheEntry(cacheDir, 'k', async () => ({ bytes: 1e18, build: full }))).rejects.toThrow(/is full/);
    expect(entriesIn(cacheDir)).toEqual([]);
  });
});

test('a buffer is kept while it fits and is not far too large', () => {
  const small = new Float32Array(1000);
  expect(fittingBuffer(small, 10)).toBe(small);
  expect(fittingBuffer(small, 1001).length).toBe(1001);
  const large = new Float32Array(2e6);
  expect(fittingBuffer(large, 5e5)).toBe(large);
  expect(fittingBuffer(large, 5e5 - 1).length).toBe(5e5 - 1);
});

describe('built-in model', () => {
  const dir = path.join(import.meta.dirname, '../../model');
  test('the built-in model imports, loads and runs steps of every kind', async () => {
    const { architecture, tied, vocabSize, contextTokens, parameters } = BUILT_IN;
    expect(await inspectModel(dir)).toMatchObject({ architecture, tied, vocabSize, contextTokens, parameters });
    const runner = await loadRunner(dir, fresh(), 'int8', 'int8', 64);
    const none = new Int32Array(0);
    // First a step without logits, then one sequence on top of it, together with another. The result equals one single
    // step.
    expect(
      (
        await runner.run([
          { tokenIds: [7, 8, 9], startIndex: 0, contextSlots: none, newSlots: Int32Array.of(40, 2, 11), numLogits: 0 },
        ])
      ).length,
    ).toBe(0);
    const both = await runner.run([
      {
        tokenIds: [10],
        startIndex: 3,
        contextSlots: Int32Array.of(40, 2, 11),
        newSlots: Int32Array.of(5),
        numLogits: 1,
      },
      { tokenIds: [100, 101], startIndex: 0, contextSlots: none, newSlots: Int32Array.of(20, 21), numLogits: 2 },
    ]);
    expect(both.length).toBe(3 * vocabSize);
    const split = argmax(both.subarray(0, vocabSize));
    const whole = await runner.run([
      {
        tokenIds: [7, 8, 9, 10],
        startIndex: 0,
        contextSlots: none,
        newSlots: Int32Array.of(30, 31, 32, 33),
        numLogits: 1,
      },
    ]);
    expect(argmax(whole)).toBe(split);
    await expect(
      runner.run([
        { tokenIds: [vocabSize], startIndex: 0, contextSlots: none, newSlots: Int32Array.of(30), numLogits: 1 },
      ]),
    ).rejects.toThrow(RequestError);
    // The pool may be replaced between steps.
    runner.pool.resize(128);
    const after = await runner.run([
      {
        tokenIds: [10],
        startIndex: 3,
        contextSlots: Int32Array.of(40, 2, 11),
        newSlots: Int32Array.of(100),
        numLogits: 1,
      },
    ]);
    expect(argmax(after)).toBe(split);
    await runner.dispose();
  });
});
