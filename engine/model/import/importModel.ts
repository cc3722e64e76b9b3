/**
 * Imports a Hugging Face folder: writes an ONNX step graph and its weight file to the cache folder, under a key of the
 * content. Combines config, weights, plan, conversion, graph and cache entry. Runs nothing of the model.
 */
import { createHash } from 'node:crypto';
import { open, realpath, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Precision } from '../../protocol/tasks.ts';
import { productForm } from '../calibrate/productForm.ts';
import { buildStepGraph } from '../graph/stepGraph.ts';
import { convertWeights, isTied } from '../load/convertWeights.ts';
import type { ModelConfig } from '../load/hfConfig.ts';
import { graphFile, type ImportedModel, residentBytes, WEIGHT_FILE } from '../load/importedModel.ts';
import { keyBiasLayers, largeKeyBiasLayers } from '../load/keyBias.ts';
import { HEAD, type WeightPlan, planWeights } from '../load/weightPlan.ts';
import type { ProductForm } from '../load/weightForms.ts';
import { loadOnnxruntime } from '../runtime/onnxSession.ts';
import { cacheEntry, removeEntries } from './importCache.ts';
import { checkTokenizer, type OpenModel, openModel } from './inspectModel.ts';

/** Bytes for the graphs besides the weights, in the check of free space. */
const GRAPH_BYTES = 8e6;

export interface ImportOptions {
  readonly modelDir: string;
  /** Made if missing. */
  readonly cacheDir: string;
  readonly precision: Precision;
  /** For tests. When left out, what this processor is best at. */
  readonly products?: ProductForm;
  /** Gets 0 .. 1. Not called when the model is already in the cache. */
  readonly onProgress?: (fraction: number) => void;
}

/** What the manifest of a cache entry records. */
interface ImportRecord {
  readonly contentHash: string;
  /** Recorded because finding it out may take reading two large tensors. */
  readonly tied: boolean;
  /** Layers with a large key bias. Only the weights tell. */
  readonly biased: readonly number[];
  readonly precision: Precision;
  /**
   * Recorded because machines with narrow codes and others may share the folder. Which of the other forms is best is
   * measured, so one replaces the other.
   */
  readonly products: ProductForm;
  /** The model folder it was made from: a newer entry of the same folder replaces this one. */
  readonly source: string;
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
  for (const kv of ['int8', 'float32'] as const)
    await writeFile(path.join(dir, graphFile(kv)), buildStepGraph(model.config, plan, { kv, weightFile: WEIGHT_FILE }));
  return contentHash;
}

/**
 * Name of a cache entry. It hashes the graphs that would be built now, including the offsets of the weights. An entry
 * made by another version of the graph would run and give other tokens. Untied plans with all key biases and with none
 * stand for all plans.
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
 * Imports a model, or finds it in the cache folder. Safe against a crash and against other processes that do the same.
 * A new import replaces earlier ones of the same folder and precision, unless another live process has opened them.
 * @throws RequestError modelInvalid or modelUnsupported: one sentence that names file and field; engineFailed: the
 * cache folder cannot be written.
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
