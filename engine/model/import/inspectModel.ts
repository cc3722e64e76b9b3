/**
 * Opens a Hugging Face folder and checks that the engine supports it. Says what the model is without importing it.
 * Reads no tensors, except the two that may be one.
 */
import { createHash } from 'node:crypto';
import { kvBytesPerToken } from '../../kv/kvRows.ts';
import type { KvPrecision, Precision } from '../../protocol/tasks.ts';
import { isTied } from '../load/convertWeights.ts';
import { type ModelConfig, parseConfig } from '../load/hfConfig.ts';
import { kvShape, residentBytes } from '../load/importedModel.ts';
import { ModelFolder, invalid, newestSnapshot, parseJsonObject } from '../load/modelFolder.ts';
import { Weights } from '../load/weights.ts';
import { HEAD, type WeightPlan, planWeights } from '../load/weightPlan.ts';

/**
 * Part of every key: raise it whenever the conversion of weights changes. Graphs and layout are in the key themselves.
 */
const FORMAT = 3;
const JSON_FILES = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'model.safetensors.index.json',
];

/** What a model folder is. Found without reading its tensors, except the two that may be one (see isTied). */
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
  /**
   * Bytes of these that stay in memory: all except the embedding, whose rows are looked up in the mapped file. A tied
   * embedding in float32 is the head and stays.
   */
  readonly residentBytes: Readonly<Record<Precision, number>>;
  readonly kvBytesPerToken: Readonly<Record<KvPrecision, number>>;
  /** Names of the weight files. */
  readonly files: readonly string[];
  /** The strings of all tokens. */
  readonly tokens: ReadonlySet<string>;
}

export interface OpenModel {
  /** Name for people. */
  readonly name: string;
  readonly config: ModelConfig;
  readonly weights: Weights;
  /** Hash of the texts of the JSON files and of the fingerprint of the weight files. */
  readonly fingerprint: string;
  readonly tokenizerText: string;
}

/** Message for a folder without config.json. In a repository of the Hugging Face cache the model is further down. */
async function withoutConfig(modelDir: string): Promise<string> {
  const snapshot = await newestSnapshot(modelDir);
  if (snapshot !== null)
    return `${modelDir} is a repository of the Hugging Face cache; the model in it is the folder ${snapshot}.`;
  return `config.json is missing in ${modelDir}; a model is a folder with config.json, safetensors weights and tokenizer.json.`;
}

/** Reads everything except the tensors. Close `weights` after use. */
export async function openModel(modelDir: string): Promise<OpenModel> {
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
    // Shapes are checked first: comparing a head with the embedding needs both to have the shape of the config.
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

/** Returns the strings of all tokens. */
export function checkTokenizer(text: string): ReadonlySet<string> {
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

/**
 * Inspects a folder. Reads no tensors, except the embedding and a head that may be a copy of it.
 * @throws RequestError with the one reason why the model cannot be loaded, except bad tensor values.
 */
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
