/** Import: what is refused and how, the cache folder under crashes, races and damage, and the built-in model. */
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { RequestError } from '../../engine/errors.ts';
import { parseConfig } from '../../engine/model/hfConfig.ts';
import { cacheEntry } from '../../engine/model/importCache.ts';
import { entryKey, type ImportedModel, importModel, inspectModel } from '../../engine/model/importModel.ts';
import { Weights } from '../../engine/model/safetensors.ts';
import { buildStepGraph } from '../../engine/model/stepGraph.ts';
import { rowsInMultiples } from '../../engine/model/weightPlan.ts';
import { fittingBuffer } from '../../engine/model/windowFeeds.ts';
import { FIXTURES, MODELS, argmax, loadRunner, readJson, temporaryFolder } from './fixtures.ts';
import { encode, safetensorsBytes, writeRandomModel } from './randomModel.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
let numFolders = 0;
const fresh = () => path.join(folder.dir, String(numFolders++));
const GOOD = path.join(FIXTURES, 'bad/_good_base');

async function refusal(modelDir: string, cacheDir = fresh()): Promise<RequestError> {
  try {
    await importModel({ modelDir, cacheDir, precision: 'int8' });
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    // Nothing half-made stays behind.
    expect(existsSync(cacheDir) ? readdirSync(cacheDir).filter((name) => name !== 'products.json') : []).toEqual([]);
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
  test('the good base loads and runs', async () => {
    const runner = await loadRunner(GOOD, fresh(), 'int8', 'int8', 16);
    const slots = Int32Array.of(3, 1);
    const logits = await runner.run([{ tokenIds: [1, 2], startIndex: 0, contextSlots: new Int32Array(0), newSlots: slots, numLogits: 1 }]);
    expect(logits.length).toBe(runner.vocabSize);
    expect(logits.every(Number.isFinite)).toBe(true);
    await runner.dispose();
  });

  const causes: Record<string, RegExp> = { cfg_no_hidden_size: /hidden_size is missing/, st_header_length_2p60: /1152921504606846976/, st_truncated: /cut off/, tok_invalid_json: /not valid JSON/ };
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
    const { code, message } = await refusal(path.join(FIXTURES, 'unsupported/gemma3-config-only'));
    expect(code).toBe('modelUnsupported');
    expect(message).toMatch(/config\.json.*gemma3_text.*qwen2, qwen3, llama/);
  });
});

describe('refused', () => {
  const config = JSON.parse(readFileSync(path.join(GOOD, 'config.json'), 'utf8')) as Record<string, unknown>;
  const withConfig = (change: Record<string, unknown>) => ({ 'config.json': JSON.stringify({ ...config, ...change }) });
  test.each<[string, Record<string, string | Uint8Array | null>, RegExp]>([
    ['no config', { 'config.json': null }, /config\.json is missing/],
    ['config is no JSON', { 'config.json': '{"a": NaN}' }, /config\.json is not valid JSON/],
    ['config is a list', { 'config.json': '[]' }, /config\.json must hold a JSON object/],
    ['no tokenizer', { 'tokenizer.json': null }, /tokenizer\.json is missing/],
    ['a tokenizer without model', { 'tokenizer.json': '{}' }, /tokenizer\.json: model is missing/],
    ['no weights', { 'model.safetensors': null }, /model\.safetensors is missing/],
    ['another size', withConfig({ intermediate_size: 64 }), /model\.safetensors: tensor "model\.layers\.0\.mlp\.gate_proj\.weight" has the shape \[32, 32\].*\[64, 32\]/],
    ['another number of layers', withConfig({ num_hidden_layers: 2 }), /model\.safetensors: tensor "model\.layers\.1\.input_layernorm\.weight" is missing/],
    ['no head', withConfig({ tie_word_embeddings: undefined }), /tie_word_embeddings.*lm_head\.weight/],
    ['generation config', { 'generation_config.json': '{' }, /generation_config\.json is not valid JSON/],
  ])('%s', async (_, changes, message) => {
    expect((await refusal(variant(changes))).message).toMatch(message);
  });

  test('no folder', async () => expect((await refusal(path.join(folder.dir, 'nowhere'))).message).toMatch(/cannot be opened/));
  test('a file as folder', async () => expect((await refusal(path.join(GOOD, 'config.json'))).message).toMatch(/is not a folder/));

  test('NaN and integer weights, by the tensor\'s name', async () => {
    const model = { model_type: 'llama', hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, vocab_size: 16, rms_norm_eps: 1e-6, tie_word_embeddings: true };
    for (const [bytes, dtype, message] of [[encode(new Float32Array(8).fill(Number.NaN), 'F32'), 'F32', /"model\.norm\.weight" holds NaN/], [new Uint8Array(32), 'I32', /"model\.norm\.weight" has the dtype I32; F32, F16 and BF16/]] as const) {
      const dir = fresh();
      const tensors = writeRandomModel(dir, { config: model, dtype: 'F32', seed: 1 });
      writeFileSync(path.join(dir, 'model.safetensors'), safetensorsBytes([...tensors].map(([name, t]) => [name, name === 'model.norm.weight' ? { dtype, shape: t.shape, bytes } : { dtype: 'F32', shape: t.shape, bytes: encode(t.data, 'F32') }])));
      expect((await refusal(dir)).message).toMatch(message);
    }
  });

  test('nothing outside the folder is read', async () => {
    const index = (file: string) => ({ 'model.safetensors': null, 'model.safetensors.index.json': JSON.stringify({ weight_map: { x: file } }) });
    for (const name of ['../w.safetensors', '/etc/passwd', 'a/../../w', 'C:\\w', 'a\\b', 'a\0b', '']) expect((await refusal(variant(index(name)))).message).toMatch(/leaves the model folder/);
    const dir = variant({ 'model.safetensors': null });
    symlinkSync(path.join(GOOD, 'model.safetensors'), path.join(dir, 'model.safetensors'));
    expect((await refusal(dir)).message).toMatch(/model\.safetensors is a symbolic link that leaves/);
    // A link that stays inside, and a folder that is itself a link, are fine.
    const inside = variant({});
    cpSync(path.join(inside, 'model.safetensors'), path.join(inside, 'w.bin'));
    rmSync(path.join(inside, 'model.safetensors'));
    symlinkSync('w.bin', path.join(inside, 'model.safetensors'));
    const link = fresh();
    symlinkSync(inside, link);
    expect((await inspectModel(link)).architecture).toBe('qwen2');
  });

  test('shards: a missing file, a tensor in another shard, a folder as a file', async () => {
    const sharded = path.join(MODELS, 'qwen3-tied-sharded');
    expect((await refusal(variant({ 'model-00002-of-00002.safetensors': null }, sharded))).message).toMatch(/model-00002-of-00002\.safetensors is missing/);
    const index = readJson<{ weight_map: Record<string, string> }>(sharded, 'model.safetensors.index.json');
    index.weight_map['model.norm.weight'] = 'model-00001-of-00002.safetensors';
    expect((await refusal(variant({ 'model.safetensors.index.json': JSON.stringify(index) }, sharded))).message).toMatch(/"model\.norm\.weight" is missing, although/);
    const dir = variant({ 'tokenizer.json': null });
    mkdirSync(path.join(dir, 'tokenizer.json'));
    expect((await refusal(dir)).message).toMatch(/tokenizer\.json (is not a regular file|cannot be read)/);
  });
});

describe('ties', () => {
  const model = { model_type: 'llama', hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, vocab_size: 16, rms_norm_eps: 1e-6 };
  test('a copy of the embedding as head is tied, another head is not', async () => {
    const dir = fresh();
    const tensors = writeRandomModel(dir, { config: { ...model, tie_word_embeddings: false }, dtype: 'F32', seed: 1 });
    writeFileSync(path.join(dir, 'config.json'), JSON.stringify({ ...model, tie_word_embeddings: true }));
    expect((await inspectModel(dir)).tied).toBe(false);
    const same = [...tensors].map(([name, t]) => [name, { dtype: 'F32', shape: t.shape, bytes: encode(name === 'lm_head.weight' ? tensors.get('model.embed_tokens.weight')!.data : t.data, 'F32') }] as const);
    writeFileSync(path.join(dir, 'model.safetensors'), safetensorsBytes(same));
    expect((await inspectModel(dir)).tied).toBe(true);
  });
});

describe('cache folder', () => {
  const options = (cacheDir: string, modelDir = GOOD) => ({ modelDir, cacheDir, precision: 'int8' as const });

  test('reused; another content, time or precision is another entry; the hash of the tensors stays', async () => {
    const cacheDir = fresh();
    const progress: number[] = [];
    const first = await importModel({ ...options(cacheDir), onProgress: (f) => progress.push(f) });
    expect(first.imported).toBe(true);
    expect(progress.at(-1)).toBe(1);
    const again = await importModel({ ...options(cacheDir), onProgress: () => expect.unreachable() });
    expect(again).toEqual({ ...first, imported: false });
    const float = await importModel({ ...options(cacheDir), precision: 'float32' });
    const small = await importModel({ ...options(cacheDir), precision: 'int4' });
    const edited = await importModel(options(cacheDir, variant({ 'tokenizer.json': readFileSync(path.join(GOOD, 'tokenizer.json'), 'utf8').replace(/\s*$/, '\n\n') })));
    expect(new Set([first.key, float.key, small.key, edited.key]).size).toBe(4);
    expect(new Set([first.contentHash, float.contentHash, small.contentHash, edited.contentHash]).size).toBe(1);
    expect(readdirSync(cacheDir).length).toBe(4);
  });

  test('an entry made by another version of the step graph is not used', () => {
    const config = parseConfig(JSON.parse(readFileSync(path.join(GOOD, 'config.json'), 'utf8')));
    const now = entryKey('f', config, 'int8', 'rows');
    expect(entryKey('f', config, 'int8', 'rows')).toBe(now);
    // One byte of one graph.
    const changed = entryKey('f', config, 'int8', 'rows', (c, plan, options) => {
      const bytes = buildStepGraph(c, plan, options);
      if (options.kv === 'int8') bytes[bytes.length - 1]! ^= 1;
      return bytes;
    });
    expect(changed).not.toBe(now);
  });

  test('the forms for narrow codes and for others have entries of their own, and neither takes the other’s away', async () => {
    const cacheDir = fresh();
    for (const precision of ['int8', 'int4'] as const) {
      const forms = ['rows', 'narrow', 'blocks'] as const;
      const models: ImportedModel[] = [];
      for (const products of forms) models.push(await importModel({ ...options(cacheDir), precision, products }));
      expect(new Set(models.map(({ key }) => key)).size).toBe(3);
      // What is measured to be best may change: blocks have replaced rows.
      for (const [i, products] of forms.slice(1).entries()) expect(await importModel({ ...options(cacheDir), precision, products })).toEqual({ ...models[i + 1], imported: false });
      expect(existsSync(models[0]!.dir)).toBe(false);
      // Of those only blocks take rows together, and they would saturate where codes are narrow.
      expect(models.map((model) => rowsInMultiples(model).head)).toEqual([false, false, true]);
    }
  });

  test('imports of the same model at the same time all succeed', async () => {
    const cacheDir = fresh();
    const all = await Promise.all(Array.from({ length: 4 }, () => importModel(options(cacheDir))));
    expect(all.filter((m) => m.imported).length).toBe(1);
    expect(readdirSync(cacheDir)).toEqual([all[0]!.key]);
  });

  test('damaged entries are made again', async () => {
    const cacheDir = fresh();
    const { dir } = await importModel(options(cacheDir));
    const size = statSync(path.join(dir, 'weights.bin')).size;
    for (const damage of [() => truncateSync(path.join(dir, 'weights.bin'), size - 1), () => rmSync(path.join(dir, 'manifest.json')), () => writeFileSync(path.join(dir, 'manifest.json'), '{'), () => rmSync(path.join(dir, 'step-kv-int8.onnx'))]) {
      damage();
      const repaired = await Promise.all([importModel(options(cacheDir)), importModel(options(cacheDir))]);
      expect(repaired.some((m) => m.imported)).toBe(true);
      expect(statSync(path.join(dir, 'weights.bin')).size).toBe(size);
      expect(readdirSync(cacheDir).length).toBe(1);
    }
  });

  test('whether a head is a copy of the embedding is found out once', async () => {
    const dir = fresh();
    const model = { model_type: 'llama', hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, vocab_size: 16, rms_norm_eps: 1e-6 };
    writeRandomModel(dir, { config: { ...model, tie_word_embeddings: false }, dtype: 'F32', seed: 1 });
    writeFileSync(path.join(dir, 'config.json'), JSON.stringify({ ...model, tie_word_embeddings: true }));
    const equal = vi.spyOn(Weights.prototype, 'equal');
    const cacheDir = fresh();
    const first = await importModel({ ...options(cacheDir, dir), precision: 'float32' });
    expect(equal).toHaveBeenCalledTimes(1);
    expect(await importModel({ ...options(cacheDir, dir), precision: 'float32' })).toEqual({ ...first, imported: false });
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
    const keys = () => readdirSync(cacheDir).sort();
    const first = await importModel(options(cacheDir, dir));
    const float = await importModel({ ...options(cacheDir, dir), precision: 'float32' });
    const elsewhere = await importModel(options(cacheDir, variant({ 'generation_config.json': '{}' })));
    edit();
    const second = await importModel(options(cacheDir, dir));
    expect(keys()).toEqual([float.key, elsewhere.key, second.key].sort());
    expect(first.key).not.toBe(second.key);
    // This test's parent is alive, and no process has the other id.
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

  test('what a crash left behind does no harm', async () => {
    const cacheDir = fresh();
    // No process has this id: the kernel's limit is 2^22.
    mkdirSync(path.join(cacheDir, '.import-4194999-00ff'), { recursive: true });
    writeFileSync(path.join(cacheDir, '.import-4194999-00ff/weights.bin'), 'half');
    expect((await importModel(options(cacheDir))).imported).toBe(true);
  });

  test('problems of the disk are told as such', async () => {
    const file = fresh();
    writeFileSync(file, '');
    await expect(importModel(options(path.join(file, 'cache')))).rejects.toMatchObject({ code: 'engineFailed', message: expect.stringMatching(/cache folder .* is a file, or lies in one/) });
    const cacheDir = fresh();
    const full = () => Promise.reject(Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }));
    await expect(cacheEntry(cacheDir, 'k', async () => ({ bytes: 5e6, build: full }))).rejects.toMatchObject({ code: 'engineFailed', message: expect.stringMatching(/full disk; this model needs 5 MB/) });
    await expect(cacheEntry(cacheDir, 'k', async () => ({ bytes: 1e18, build: full }))).rejects.toThrow(/full disk/);
    expect(readdirSync(cacheDir)).toEqual([]);
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
  test('imports, loads and runs steps of every kind', async () => {
    const info = await inspectModel(dir);
    expect(info).toMatchObject({ architecture: 'qwen3', tied: true, vocabSize: 6144, contextTokens: 2048 });
    const runner = await loadRunner(dir, fresh(), 'int8', 'int8', 64);
    const none = new Int32Array(0);
    // No logits wanted, then one sequence on top of it, together with another: the same as in one go.
    expect((await runner.run([{ tokenIds: [7, 8, 9], startIndex: 0, contextSlots: none, newSlots: Int32Array.of(40, 2, 11), numLogits: 0 }])).length).toBe(0);
    const both = await runner.run([
      { tokenIds: [10], startIndex: 3, contextSlots: Int32Array.of(40, 2, 11), newSlots: Int32Array.of(5), numLogits: 1 },
      { tokenIds: [100, 101], startIndex: 0, contextSlots: none, newSlots: Int32Array.of(20, 21), numLogits: 2 },
    ]);
    expect(both.length).toBe(3 * 6144);
    const split = argmax(both.subarray(0, 6144));
    const whole = await runner.run([{ tokenIds: [7, 8, 9, 10], startIndex: 0, contextSlots: none, newSlots: Int32Array.of(30, 31, 32, 33), numLogits: 1 }]);
    expect(argmax(whole)).toBe(split);
    await expect(runner.run([{ tokenIds: [6144], startIndex: 0, contextSlots: none, newSlots: Int32Array.of(30), numLogits: 1 }])).rejects.toThrow(RequestError);
    // The window may be replaced between steps.
    runner.window.resize(128);
    const after = await runner.run([{ tokenIds: [10], startIndex: 3, contextSlots: Int32Array.of(40, 2, 11), newSlots: Int32Array.of(100), numLogits: 1 }]);
    expect(argmax(after)).toBe(split);
    await runner.dispose();
  });
});
