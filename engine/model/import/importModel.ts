/**
 * Describes or imports an open model. An import writes ONNX step graphs and a weight file to the cache folder. Runs
 * nothing of the model.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { open, realpath, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { kvBytesPerToken } from '../../kv/kvRows.ts';
import type { KvPrecision, Precision } from '../../protocol/tasks.ts';
import { isTied, convertWeights } from '../load/convertWeights.ts';
import type { ModelConfig } from '../load/hfConfig.ts';
import { kvShape, residentBytes, graphFile, type ImportedModel, WEIGHT_FILE } from '../load/importedModel.ts';
import type { ModelFiles } from '../load/modelFiles.ts';
import { HEAD, type WeightPlan, planWeights } from '../load/weightPlan.ts';
import { productForm } from '../calibrate/processorSpeed.ts';
import { buildStepGraph } from '../graph/stepGraph.ts';
import { keyBiasLayers, largeKeyBiasLayers } from '../load/keyBias.ts';
import type { ProductForm } from '../load/quantise.ts';
import { fitsKernels } from '../load/packedWeights.ts';
import { loadOnnxruntime } from '../runtime/onnxSession.ts';
import { contentsOf } from './fileContent.ts';
import { cacheEntry, removeEntries, updateEntry } from './importCache.ts';
import { checkTokenizer, type OpenModel, openModel } from './openModel.ts';

/**
 * Part of the keys of the native form: a digest of weight files and of what the native kernels compute with them. A test
 * fails when either changes, and gives the new value.
 */
export const NATIVE_FORMAT = '857328db905b1ad9';

/** Description of a model folder. */
export interface ModelInspection {
  readonly name: string;
  readonly architecture: string;
  readonly config: ModelConfig;
  readonly parameters: number;
  readonly tied: boolean;
  readonly contextTokens: number;
  readonly vocabSize: number;
  /** How most of its weights are stored: "Q4_K", "BF16", "GPTQ int4". */
  readonly format: string;
  /** Whether the sizes are those for the native kernels; in float32 they are always for onnxruntime. */
  readonly isNative: boolean;
  /** Size of the weight file, by precision. */
  readonly weightsBytes: Readonly<Record<Precision, number>>;
  /**
   * Bytes of these that stay in memory: everything except the embedding, whose rows are looked up in the mapped file.
   * In float32 a tied embedding is also the head and stays in memory.
   */
  readonly residentBytes: Readonly<Record<Precision, number>>;
  readonly kvBytesPerToken: Readonly<Record<KvPrecision, number>>;
  /** Names of the weight files. */
  readonly files: readonly string[];
  /** The strings of all tokens. */
  readonly tokens: ReadonlySet<string>;
}

/**
 * Describes a model folder without importing it. Reads no tensors, except the embedding and a head that may be a copy
 * of it. `mayBeNative`: the native kernels can be used here. `files`: of the model, if they are open already.
 * @throws RequestError with the first reason why the model cannot be loaded. Tensor values are not checked.
 */
export async function inspectModel(
  modelDir: string,
  mayBeNative = false,
  files?: ModelFiles,
): Promise<ModelInspection> {
  const model = await openModel(modelDir, files);
  try {
    const tokens = await checkTokenizer(model);
    const { config } = model;
    const tied = await isTied(model.weights, config.tied, HEAD);
    const isNative = mayBeNative && fitsKernels(config);
    const plan = (precision: Precision) => planWeights(config, precision, tied, isNative ? 'native' : 'blocks');
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
      format: formatOf(config.quantisation, model.weights.mainType),
      isNative,
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

function formatOf(quantisation: ModelConfig['quantisation'], mainType: string): string {
  if (quantisation === null) return mainType;
  if (quantisation.kind === 'int8') return 'int8';
  const packing = quantisation.kind === 'rows' ? '' : `${quantisation.kind.toUpperCase()} `;
  return `${packing}int${quantisation.bits}`;
}

/** Bytes of the graphs, for the check of free space. */
const GRAPH_BYTES = 8e6;

export interface ImportOptions {
  readonly modelDir: string;
  /** Created if it is missing. */
  readonly cacheDir: string;
  readonly precision: Precision;
  /** Default, also for a model that does not fit the native kernels: the fastest form for onnxruntime. */
  readonly products?: ProductForm;
  /** Gets 0 .. 1. Not called when the model is already in the cache. */
  readonly onProgress?: (fraction: number) => void;
}

/** What the manifest of a cache entry records. */
interface ImportRecord {
  readonly contentHash: string;
  /** Recorded, because finding it out may need reading two large tensors. */
  readonly tied: boolean;
  /** Layers with a large key bias. Recorded, because it follows from the weights only. */
  readonly biased: readonly number[];
  readonly precision: Precision;
  /** Recorded, because machines with other forms may share the folder. */
  readonly products: ProductForm;
  /** The model folder or file that used it last. A newer entry of the same folder replaces this one. */
  readonly source: string;
}

/**
 * Whether an entry in one form replaces one of the same folder in another form. For onnxruntime, an older machine that
 * shares the folder may need `narrow` beside another form. The native form is the same on all machines.
 */
function replaces(form: ProductForm, older: unknown): boolean {
  return form === 'native' || older === 'native' || (form === 'narrow') === (older === 'narrow');
}

/** Whether a model is not there any more. A disk that is not mounted has no folder of it either. */
function isDeleted(source: unknown): boolean {
  return typeof source === 'string' && !existsSync(source) && existsSync(path.dirname(source));
}

/** Fills the folder of a cache entry. Returns the hash of the tensors. */
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
  if (plan.products === 'native') return contentHash;
  for (const kv of ['int8', 'float32'] as const)
    await writeFile(path.join(dir, graphFile(kv)), buildStepGraph(model.config, plan, { kv, weightFile: WEIGHT_FILE }));
  return contentHash;
}

/**
 * Name of a cache entry. `contents`: of the model's files. It hashes the graphs that would be built now, with the
 * offsets of the weights, because an entry with other graphs would give other tokens. Two untied plans stand for all
 * plans: with all key biases and with none.
 */
export function entryKey(
  contents: string,
  config: ModelConfig,
  precision: Precision,
  products: ProductForm,
  build = buildStepGraph,
): string {
  const hash = createHash('sha256').update(contents);
  for (const biased of [keyBiasLayers(config), []]) {
    const plan = planWeights(config, precision, false, products, biased);
    if (products === 'native') {
      hash.update(JSON.stringify([NATIVE_FORMAT, ...plan.stored.values()]));
      continue;
    }
    for (const kv of ['int8', 'float32'] as const) hash.update(build(config, plan, { kv, weightFile: WEIGHT_FILE }));
  }
  return `${precision}-${hash.digest('hex').slice(0, 32)}`;
}

/**
 * Imports a model, or finds it in the cache folder. A crash or another process that does the same does no harm. A new
 * import replaces earlier ones of the same folder and precision, unless another live process has opened them.
 * @throws RequestError `modelInvalid` or `modelUnsupported` with file and field; `engineFailed` if the cache folder
 * cannot be written
 */
export async function importModel(options: ImportOptions): Promise<ImportedModel> {
  const { modelDir, cacheDir, precision } = options;
  const model = await openModel(modelDir);
  try {
    const fits = options.products !== 'native' || fitsKernels(model.config);
    const products =
      (fits ? options.products : undefined) ??
      (await productForm(await loadOnnxruntime(), cacheDir, model.config.vocabSize * model.config.hiddenSize));
    const contents = await contentsOf(model.weights.openFiles, cacheDir);
    const key = entryKey([model.textsHash, ...contents].join(' '), model.config, precision, products);
    const source = await realpath(modelDir);
    const entry = await cacheEntry<ImportRecord>(cacheDir, key, async () => {
      await checkTokenizer(model);
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
    // A model that was renamed, or a copy of it. The last one that was used counts.
    if (entry.value.source !== source) await updateEntry(entry.dir, { ...entry.value, source });
    // Also if nothing was imported: another process may have used an entry until now.
    await removeEntries(
      cacheDir,
      key,
      (older) =>
        (older.source === source && older.precision === precision && replaces(products, older.products)) ||
        isDeleted(older.source),
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
