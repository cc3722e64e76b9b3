/**
 * A Hugging Face folder -> an ONNX step graph and its weight file in the cache folder, keyed by content. Ties the parts
 * together: config, weights, plan, conversion, graph, cache entry. Runs nothing of the model.
 */
import { createHash } from 'node:crypto';
import { open, realpath, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type KvShape, kvBytesPerToken } from '../../kv/kvRows.ts';
import type { KvPrecision, Precision } from '../../protocol/tasks.ts';
import { convertWeights, isTied } from './convertWeights.ts';
import { type ModelConfig, parseConfig } from './hfConfig.ts';
import { cacheEntry, removeEntries } from './importCache.ts';
import { ModelFolder, invalid, newestSnapshot, parseJsonObject } from './modelFolder.ts';
import { keyBiasLayers, largeKeyBiasLayers } from './keyBias.ts';
import { loadOnnxruntime } from '../runtime/onnxSession.ts';
import { productForm } from '../calibrate/productForm.ts';
import { Weights } from './safetensors.ts';
import { buildStepGraph, usesTurns } from '../graph/stepGraph.ts';
import { HEAD, type ProductForm, type WeightPlan, planWeights } from './weightPlan.ts';

/** Part of every key: raise it whenever the conversion of weights changes. Graphs and layout are in the key themselves. */
const FORMAT = 3;
const WEIGHT_FILE = 'weights.bin';
const JSON_FILES = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'model.safetensors.index.json',
];
/** Room for the graphs beside the weights, in the check of free space. */
const GRAPH_BYTES = 8e6;

export interface ImportOptions {
  readonly modelDir: string;
  /** Made if missing. */
  readonly cacheDir: string;
  readonly precision: Precision;
  /** For tests; what this processor is best at when left out. */
  readonly products?: ProductForm;
  /** 0..1; not called when the model is in the cache already. */
  readonly onProgress?: (fraction: number) => void;
}

export interface ImportedModel {
  /** The cache entry: weight file and graphs. */
  readonly dir: string;
  /** Name of `dir`: changes with the model's files, the precision and the format. */
  readonly key: string;
  readonly config: ModelConfig;
  readonly precision: Precision;
  readonly products: ProductForm;
  readonly tied: boolean;
  /** Layers with a large key bias (see keyBias). */
  readonly biased: readonly number[];
  readonly parameters: number;
  readonly weightsBytes: number;
  /** Of them, what stays in memory (see ModelInspection). */
  readonly residentBytes: number;
  /** SHA-256 of the tensors, the same for both precisions and wherever the folder lies. */
  readonly contentHash: string;
  /** False when the files were already in the cache folder. */
  readonly imported: boolean;
}

/** What a model folder is, found without reading its tensors, but for those two that may be one (see isTied). */
export interface ModelInspection {
  readonly name: string;
  readonly architecture: string;
  readonly config: ModelConfig;
  readonly parameters: number;
  readonly tied: boolean;
  readonly contextTokens: number;
  readonly vocabSize: number;
  /** Size of the weight file per precision. */
  readonly weightsBytes: Readonly<Record<Precision, number>>;
  /** Of them: all but the embedding, of which single rows are looked up in the mapped file (a tied one is the float32 head). */
  readonly residentBytes: Readonly<Record<Precision, number>>;
  readonly kvBytesPerToken: Readonly<Record<KvPrecision, number>>;
  /** Names of the weight files. */
  readonly files: readonly string[];
  /** Strings of all tokens. */
  readonly tokens: ReadonlySet<string>;
}

/** @param biased of an imported model; before its weights are read any layer may be. */
export function kvShape(
  config: ModelConfig,
  kv: KvPrecision,
  biased: readonly number[] = keyBiasLayers(config),
): KvShape {
  // The key-bias remedy keeps the cosines and sines of each slot's position (OnnxRunner), float32, and the position itself.
  const runnerBytes = usesTurns(biased, kv) ? 4 * config.headSize + 4 : 0;
  return { numLayers: config.numLayers, kvHeads: config.kvHeads, headSize: config.headSize, kv, runnerBytes };
}

/** The KV precision that goes with the weights' when none is named. */
export function usualKv(precision: Precision): KvPrecision {
  return precision === 'float32' ? 'float32' : 'int8';
}

/** File of the graph for a KV precision. */
export function graphFile(kv: KvPrecision): string {
  return `step-kv-${kv}.onnx`;
}

interface OpenModel {
  /** What a person calls it. */
  readonly name: string;
  readonly config: ModelConfig;
  readonly weights: Weights;
  /** Over the JSON files' texts and the weight files' fingerprint. */
  readonly fingerprint: string;
  readonly tokenizerText: string;
}

/** Why a folder without config.json is no model: where it is a repository of the Hugging Face cache, the model is further down. */
async function withoutConfig(modelDir: string): Promise<string> {
  const snapshot = await newestSnapshot(modelDir);
  if (snapshot !== null)
    return `${modelDir} is a repository of the Hugging Face cache; the model in it is the folder ${snapshot}.`;
  return `config.json is missing in ${modelDir}; a model is a folder with config.json, safetensors weights and tokenizer.json.`;
}

/** Reads all but the tensors; close `weights`. */
async function openModel(modelDir: string): Promise<OpenModel> {
  const folder = await ModelFolder.open(modelDir);
  const config = await folder.readJson('config.json');
  if (!config) throw invalid(await withoutConfig(modelDir));
  const generation = await folder.readJson('generation_config.json');
  const parsed = parseConfig(config.value, generation?.value ?? null);
  const tokenizerText = await folder.readText('tokenizer.json');
  if (tokenizerText === null)
    throw invalid('tokenizer.json is missing; a model needs one in the Hugging Face tokenizers format.');
  const weights = await Weights.open(folder);
  try {
    const hash = createHash('sha256').update(`kvasir ${FORMAT}|`);
    for (const name of JSON_FILES) {
      const text =
        name === 'config.json' ? config.text : name === 'tokenizer.json' ? tokenizerText : await folder.readText(name);
      hash.update(`${name}|${text === null ? 'none' : text.length}|`).update(text ?? '');
    }
    weights.fingerprint(hash);
    // Shapes first: comparing a head with the embedding needs both to be what the config says.
    const untied = planWeights(parsed, 'int8', false, 'rows').needed;
    for (const [name, shape] of untied)
      if (name !== HEAD || weights.has(HEAD)) weights.check(name, shape, parsed.int8Weights);
    if (!parsed.tied && !weights.has(HEAD))
      throw invalid(
        `config.json: tie_word_embeddings is false or missing, but ${weights.files.join(', ')} has no tensor ${HEAD}; either an output head or tied embeddings are needed.`,
      );
    return { name: folder.name, config: parsed, weights, fingerprint: hash.digest('hex'), tokenizerText };
  } catch (error) {
    await weights.close();
    throw error;
  }
}

/** @returns the strings of all tokens. */
function checkTokenizer(text: string): ReadonlySet<string> {
  const { model, added_tokens: added } = parseJsonObject('tokenizer.json', text) as {
    model?: { vocab?: unknown } | null;
    added_tokens?: unknown;
  };
  if (typeof model !== 'object' || model === null)
    throw invalid('tokenizer.json: model is missing; the Hugging Face tokenizers format is supported.');
  const tokens = new Set(typeof model.vocab === 'object' && model.vocab !== null ? Object.keys(model.vocab) : []);
  for (const token of Array.isArray(added) ? added : [])
    if (typeof token?.content === 'string') tokens.add(token.content);
  return tokens;
}

/** What a cache entry's manifest records. */
interface ImportRecord {
  readonly contentHash: string;
  /** Kept because finding it out may mean to read two large tensors. */
  readonly tied: boolean;
  /** Layers with a large key bias: known from the weights only. */
  readonly biased: readonly number[];
  readonly precision: Precision;
  /** Kept because machines with narrow codes and others may share the folder; which of the other forms is best is measured, so one replaces the other. */
  readonly products: ProductForm;
  /** The model folder it was made from, to know which entries a newer one replaces. */
  readonly source: string;
}

/** Fills a cache entry's folder. @returns the hash of the tensors. */
async function build(
  dir: string,
  model: OpenModel,
  plan: WeightPlan,
  onProgress: (fraction: number) => void,
): Promise<string> {
  const file = await open(path.join(dir, WEIGHT_FILE), 'wx');
  let contentHash: string;
  try {
    contentHash = await convertWeights(model.weights, plan, file, onProgress);
  } finally {
    await file.close();
  }
  for (const kv of ['int8', 'float32'] as const)
    await writeFile(path.join(dir, graphFile(kv)), buildStepGraph(model.config, plan, { kv, weightFile: WEIGHT_FILE }));
  return contentHash;
}

/**
 * Name of a cache entry. The graphs that would be built now are hashed into it, offsets of the weights included: an entry
 * made by another version of the graph would run, and give other tokens. Untied plans with all key
 * biases and with none stand for all kinds.
 */
export function entryKey(
  fingerprint: string,
  config: ModelConfig,
  precision: Precision,
  products: ProductForm,
  build = buildStepGraph,
): string {
  const hash = createHash('sha256').update(fingerprint);
  for (const biased of [keyBiasLayers(config), []]) {
    const plan = planWeights(config, precision, false, products, biased);
    for (const kv of ['int8', 'float32'] as const) hash.update(build(config, plan, { kv, weightFile: WEIGHT_FILE }));
  }
  return `${precision}-${hash.digest('hex').slice(0, 32)}`;
}

/**
 * Imports a model, or finds it in the cache folder. Safe against a crash and against other processes doing the same.
 * A new import replaces earlier ones of the same folder and precision that no other live process has opened.
 * @throws RequestError modelInvalid or modelUnsupported: one sentence that names file and field; engineFailed: the cache
 * folder cannot be written.
 */
export async function importModel(options: ImportOptions): Promise<ImportedModel> {
  const { modelDir, cacheDir, precision } = options;
  const model = await openModel(modelDir);
  try {
    const products =
      options.products ??
      (await productForm(await loadOnnxruntime(), cacheDir, model.config.vocabSize * model.config.hiddenSize));
    const key = entryKey(model.fingerprint, model.config, precision, products);
    const source = await realpath(modelDir);
    const entry = await cacheEntry<ImportRecord>(cacheDir, key, async () => {
      checkTokenizer(model.tokenizerText);
      const tied = await isTied(model.weights, model.config.tied, HEAD);
      const biased = await largeKeyBiasLayers(model.config, model.weights);
      const plan = planWeights(model.config, precision, tied, products, biased);
      return {
        bytes: plan.bytes + GRAPH_BYTES,
        build: async (dir) => ({
          contentHash: await build(dir, model, plan, options.onProgress ?? (() => {})),
          tied,
          biased,
          precision,
          products,
          source,
        }),
      };
    });
    if (!entry.reused)
      await removeEntries(
        cacheDir,
        key,
        (older) =>
          older.source === source &&
          older.precision === precision &&
          (older.products === 'narrow') === (products === 'narrow'),
      );
    const { contentHash, tied, biased } = entry.value;
    const plan = planWeights(model.config, precision, tied, products, biased);
    return {
      dir: entry.dir,
      key,
      config: model.config,
      precision,
      products,
      tied,
      biased,
      parameters: plan.parameters,
      weightsBytes: plan.bytes,
      residentBytes: residentBytes(plan),
      contentHash,
      imported: !entry.reused,
    };
  } finally {
    await model.weights.close();
  }
}

/** The large key biases of an imported model, by layer: [kvHeads * headSize], read back from the first columns of their matrices (keyBiasMatrix). */
export async function readKeyBiases({
  dir,
  config,
  precision,
  products,
  tied,
  biased,
}: ImportedModel): Promise<Map<number, Float32Array>> {
  const { kvHeads, headSize } = config;
  const half = headSize / 2;
  const { stored } = planWeights(config, precision, tied, products, biased);
  const file = await open(path.join(dir, WEIGHT_FILE), 'r');
  try {
    const biases = new Map<number, Float32Array>();
    for (const l of biased) {
      const { offset, length } = stored.get(`l${l}.keyBias`)!;
      const matrix = new Float32Array(length / 4);
      await file.read(new Uint8Array(matrix.buffer), 0, length, offset);
      biases.set(
        l,
        Float32Array.from({ length: kvHeads * headSize }, (_, row) => matrix[row * headSize + (row % half)]!),
      );
    }
    return biases;
  } finally {
    await file.close();
  }
}

/** All but what of it is only looked up. */
function residentBytes({ bytes, stored, linears }: WeightPlan): number {
  const isLookup = stored.get('embedding') !== linears.get('head')!.weight;
  return isLookup
    ? ['embedding', 'embedding.scales'].reduce((left, name) => left - (stored.get(name)?.length ?? 0), bytes)
    : bytes;
}

/** What the folder is; reads no tensors but the embedding and a head of its own that may be a copy. @throws RequestError with the one reason why it cannot be loaded (bad tensor values aside). */
export async function inspectModel(modelDir: string): Promise<ModelInspection> {
  const model = await openModel(modelDir);
  try {
    const tokens = checkTokenizer(model.tokenizerText);
    const { config } = model;
    const tied = await isTied(model.weights, config.tied, HEAD);
    const plan = (precision: Precision) => planWeights(config, precision, tied, 'blocks');
    const each = (bytes: (plan: WeightPlan) => number) => ({
      int4: bytes(plan('int4')),
      int8: bytes(plan('int8')),
      float32: bytes(plan('float32')),
    });
    return {
      name: model.name,
      architecture: config.architecture,
      config,
      parameters: plan('int8').parameters,
      tied,
      contextTokens: config.contextTokens,
      vocabSize: config.vocabSize,
      weightsBytes: each(({ bytes }) => bytes),
      residentBytes: each(residentBytes),
      kvBytesPerToken: {
        int8: kvBytesPerToken(kvShape(config, 'int8')),
        float32: kvBytesPerToken(kvShape(config, 'float32')),
      },
      files: model.weights.files,
      tokens,
    };
  } finally {
    await model.weights.close();
  }
}
