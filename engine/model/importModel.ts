/**
 * A Hugging Face folder -> an ONNX step graph and its weight file in the cache folder, keyed by content. Ties the parts
 * together: config, weights, plan, conversion, graph, cache entry. Does not run anything.
 */
import { createHash } from 'node:crypto';
import { open, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { kvBytesPerToken } from '../cache/window.ts';
import type { KvShape } from '../cache/window.ts';
import type { KvPrecision, Precision } from '../protocol.ts';
import { convertWeights, isTied } from './convertWeights.ts';
import { type ModelConfig, parseConfig } from './hfConfig.ts';
import { cacheEntry } from './importCache.ts';
import { ModelFolder, invalid } from './modelFolder.ts';
import { Weights } from './safetensors.ts';
import { buildStepGraph } from './stepGraph.ts';
import { HEAD, type WeightPlan, planWeights } from './weightPlan.ts';

/** Part of every key: raise it whenever graph, layout or quantisation change. */
const FORMAT = 1;
const WEIGHT_FILE = 'weights.bin';
const JSON_FILES = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors.index.json'];
/** Room for the graphs beside the weights, in the check of free space. */
const GRAPH_BYTES = 8e6;

export interface ImportOptions {
  readonly modelDir: string;
  /** Made if missing. */
  readonly cacheDir: string;
  readonly precision: Precision;
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
  readonly tied: boolean;
  readonly parameters: number;
  readonly weightsBytes: number;
  /** SHA-256 of the tensors, the same for both precisions and wherever the folder lies. */
  readonly contentHash: string;
  /** False when the files were already in the cache folder. */
  readonly imported: boolean;
}

/** What a model folder is, found without reading its tensors. */
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
  readonly kvBytesPerToken: Readonly<Record<KvPrecision, number>>;
  /** Names of the weight files. */
  readonly files: readonly string[];
}

export function kvShape(config: ModelConfig, kv: KvPrecision): KvShape {
  return { numLayers: config.numLayers, kvHeads: config.kvHeads, headSize: config.headSize, kv };
}

/** File of the graph for a KV precision; the float32 pair has no narrow form (see StepGraphOptions). */
export function graphFile(precision: Precision, kv: KvPrecision, narrow: boolean): string {
  return `step-kv-${kv}${narrow && (precision === 'int8' || kv === 'int8') ? '-narrow' : ''}.onnx`;
}

interface OpenModel {
  readonly config: ModelConfig;
  readonly weights: Weights;
  readonly tied: boolean;
  /** Over the JSON files' texts and the weight files' fingerprint. */
  readonly fingerprint: string;
  readonly tokenizerText: string;
}

/** Reads all but the tensors; close `weights`. */
async function openModel(modelDir: string): Promise<OpenModel> {
  const folder = await ModelFolder.open(modelDir);
  const config = await folder.readJson('config.json');
  if (!config) throw invalid(`config.json is missing in ${modelDir}; a model is a folder with config.json, safetensors weights and tokenizer.json.`);
  const generation = await folder.readJson('generation_config.json');
  const parsed = parseConfig(config.value, generation?.value ?? null);
  const tokenizerText = await folder.readText('tokenizer.json');
  if (tokenizerText === null) throw invalid('tokenizer.json is missing; a model needs one in the Hugging Face tokenizers format.');
  const weights = await Weights.open(folder);
  try {
    const hash = createHash('sha256').update(`kvasir ${FORMAT}|`);
    for (const name of JSON_FILES) {
      const text = name === 'config.json' ? config.text : name === 'tokenizer.json' ? tokenizerText : await folder.readText(name);
      hash.update(`${name}|${text === null ? 'none' : text.length}|`).update(text ?? '');
    }
    weights.fingerprint(hash);
    // Shapes first: comparing a head with the embedding needs both to be what the config says.
    const untied = planWeights(parsed, 'int8', false).needed;
    for (const [name, shape] of untied) if (name !== HEAD || weights.has(HEAD)) weights.check(name, shape);
    const tied = await isTied(weights, parsed.tied, HEAD);
    if (!tied && !weights.has(HEAD)) throw invalid(`config.json: tie_word_embeddings is false or missing, but ${weights.files.join(', ')} has no tensor ${HEAD}; either an output head or tied embeddings are needed.`);
    return { config: parsed, weights, tied, fingerprint: hash.digest('hex'), tokenizerText };
  } catch (error) {
    await weights.close();
    throw error;
  }
}

function checkTokenizer(text: string): void {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid('tokenizer.json is not valid JSON; the Hugging Face tokenizers format is supported.');
  }
  const model = typeof value === 'object' && value !== null ? (value as Record<string, unknown>).model : undefined;
  if (typeof model !== 'object' || model === null) throw invalid('tokenizer.json: model is missing; the Hugging Face tokenizers format is supported.');
}

/** Fills a cache entry's folder. @returns what its manifest records. */
async function build(dir: string, model: OpenModel, plan: WeightPlan, onProgress: (fraction: number) => void): Promise<{ contentHash: string }> {
  const file = await open(path.join(dir, WEIGHT_FILE), 'wx');
  let contentHash: string;
  try {
    contentHash = await convertWeights(model.weights, plan, file, onProgress);
  } finally {
    await file.close();
  }
  for (const kv of ['int8', 'float32'] as const) {
    for (const narrow of [false, true]) {
      await writeFile(path.join(dir, graphFile(plan.precision, kv, narrow)), buildStepGraph(model.config, plan, { kv, narrow, weightFile: WEIGHT_FILE }));
    }
  }
  return { contentHash };
}

/**
 * Imports a model, or finds it in the cache folder. Safe against a crash and against other processes doing the same.
 * @throws RequestError modelInvalid or modelUnsupported: one sentence that names file and field; engineFailed: the cache
 * folder cannot be written.
 */
export async function importModel(options: ImportOptions): Promise<ImportedModel> {
  const { modelDir, cacheDir, precision } = options;
  const model = await openModel(modelDir);
  try {
    const plan = planWeights(model.config, precision, model.tied);
    const key = `${precision}-${model.fingerprint.slice(0, 32)}`;
    const entry = await cacheEntry(cacheDir, key, plan.bytes + GRAPH_BYTES, async (dir) => {
      checkTokenizer(model.tokenizerText);
      return build(dir, model, plan, options.onProgress ?? (() => {}));
    });
    return {
      dir: entry.dir,
      key,
      config: model.config,
      precision,
      tied: model.tied,
      parameters: plan.parameters,
      weightsBytes: plan.bytes,
      contentHash: entry.value.contentHash,
      imported: !entry.reused,
    };
  } finally {
    await model.weights.close();
  }
}

/** What the folder is. @throws RequestError with the one reason why it cannot be loaded (bad tensor values aside). */
export async function inspectModel(modelDir: string): Promise<ModelInspection> {
  const model = await openModel(modelDir);
  try {
    checkTokenizer(model.tokenizerText);
    const { config, tied } = model;
    const plans = { int8: planWeights(config, 'int8', tied), float32: planWeights(config, 'float32', tied) };
    return {
      name: path.basename(path.resolve(modelDir)),
      architecture: config.architecture,
      config,
      parameters: plans.int8.parameters,
      tied,
      contextTokens: config.contextTokens,
      vocabSize: config.vocabSize,
      weightsBytes: { int8: plans.int8.bytes, float32: plans.float32.bytes },
      kvBytesPerToken: { int8: kvBytesPerToken(kvShape(config, 'int8')), float32: kvBytesPerToken(kvShape(config, 'float32')) },
      files: model.weights.files,
    };
  } finally {
    await model.weights.close();
  }
}
