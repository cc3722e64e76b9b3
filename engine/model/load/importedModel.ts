/**
 * A model in the cache folder: weight file, graphs and their description. Reads the weights that the runtime needs
 * outside the graph. Does not import or check a model (see import/).
 */
import { open } from 'node:fs/promises';
import path from 'node:path';
import type { KvShape } from '../../kv/kvRows.ts';
import type { KvPrecision, Precision } from '../../protocol/tasks.ts';
import type { ModelConfig } from './hfConfig.ts';
import { keyBiasLayers, usesRotations } from './keyBias.ts';
import type { ProductForm } from './quantise.ts';
import { type WeightPlan, planWeights } from './weightPlan.ts';

/** Name of the weight file in a cache entry. */
export const WEIGHT_FILE = 'weights.bin';

export interface ImportedModel {
  /** The cache entry: weight file and graphs. */
  readonly dir: string;
  /** Name of `dir`. Changes with the files of the model, the precision and the format. */
  readonly key: string;
  readonly config: ModelConfig;
  readonly precision: Precision;
  readonly products: ProductForm;
  readonly tied: boolean;
  /** Layers with a large key bias (see keyBias). */
  readonly biased: readonly number[];
  readonly parameters: number;
  readonly weightsBytes: number;
  /** Bytes of these that stay in memory (see ModelInspection). */
  readonly residentBytes: number;
  /** SHA-256 of the tensors. The same for every precision and location of the folder. */
  readonly contentHash: string;
  /** False when the files were already in the cache folder. */
  readonly imported: boolean;
}

/**
 * `biased`: layers with a large key bias. Default: all that can have one, for a model whose weights are not read yet.
 */
export function kvShape(
  config: ModelConfig,
  kv: KvPrecision,
  biased: readonly number[] = keyBiasLayers(config),
): KvShape {
  // With large key biases the runner keeps for each slot the position and its cosines and sines in float32.
  const runnerBytes = usesRotations(biased, kv) ? 4 * config.headSize + 4 : 0;
  return { numLayers: config.numLayers, kvHeads: config.kvHeads, headSize: config.headSize, kv, runnerBytes };
}

/** The default KV precision for a precision of the weights. */
export function usualKv(precision: Precision): KvPrecision {
  return precision === 'float32' ? 'float32' : 'int8';
}

/** File name of the graph for a KV precision. */
export function graphFile(kv: KvPrecision): string {
  return `step-kv-${kv}.onnx`;
}

/**
 * The large key biases of an imported model, by layer: [kvHeads * headSize]. Reads them from the first columns of their
 * matrices (see keyBiasMatrix).
 */
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

/** Bytes of all tensors that stay in memory: all except those that are only looked up. */
export function residentBytes({ bytes, stored, linears }: WeightPlan): number {
  const isLookup = stored.get('embedding') !== linears.get('head')!.weight;
  return isLookup
    ? ['embedding', 'embedding.scales'].reduce((left, name) => left - (stored.get(name)?.length ?? 0), bytes)
    : bytes;
}
