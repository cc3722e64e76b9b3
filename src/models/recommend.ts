/**
 * Larger models that this machine could run, by its memory and memory speed: a short table of open models and the
 * arithmetic. The results are estimates and are shown as such. Pure.
 */

import type { WeightPrecision } from '../config.ts';

export interface OpenModel {
  /** Hugging Face repository. */
  id: string;
  parameters: number;
  licence: string;
  /** Trained for code, including fill-in-the-middle. The others are general. */
  code: boolean;
  /**
   * Size of the engine's weights that each token reads and that stay in memory: all but the embedding,
   * which is read by single rows.
   */
  residentBytes: Record<WeightPrecision, number>;
  /** Size of the KV cache for an ordinary file and conversation, as the engine counts it. */
  cacheBytes: number;
}

/**
 * Sizes follow the import's arithmetic over each model's config.json; a test checks them. Models whose licence forbids
 * commercial use are left out (Qwen2.5-Coder-3B).
 */
export const OPEN_MODELS: readonly OpenModel[] = [
  {
    id: 'Qwen/Qwen2.5-Coder-0.5B-Instruct',
    parameters: 494_032_768,
    licence: 'Apache-2.0',
    code: true,
    residentBytes: { int8: 497_281_024, int4: 349_345_792 },
    cacheBytes: 55_672_832,
  },
  {
    id: 'Qwen/Qwen3-0.6B',
    parameters: 596_049_920,
    licence: 'Apache-2.0',
    code: false,
    residentBytes: { int8: 598_551_040, int4: 473_885_184 },
    cacheBytes: 484_507_648,
  },
  {
    id: 'Qwen/Qwen2.5-Coder-1.5B-Instruct',
    parameters: 1_543_714_304,
    licence: 'Apache-2.0',
    code: true,
    residentBytes: { int8: 1_551_530_496, int4: 1_007_335_936 },
    cacheBytes: 125_403_136,
  },
  {
    id: 'Qwen/Qwen3-1.7B',
    parameters: 1_720_574_976,
    licence: 'Apache-2.0',
    code: false,
    residentBytes: { int8: 1_724_168_704, int4: 1_227_110_912 },
    cacheBytes: 484_507_648,
  },
  {
    id: 'Qwen/Qwen3-4B',
    parameters: 4_022_468_096,
    licence: 'Apache-2.0',
    code: false,
    residentBytes: { int8: 4_029_237_760, int4: 2_765_097_472 },
    cacheBytes: 622_919_680,
  },
  {
    id: 'Qwen/Qwen2.5-Coder-7B-Instruct',
    parameters: 7_615_616_512,
    licence: 'Apache-2.0',
    code: true,
    residentBytes: { int8: 7_086_168_064, int4: 4_407_973_888 },
    cacheBytes: 246_513_664,
  },
];

/** Share of the free memory that a model may take. The rest is for the editor and other programs. */
const USABLE_SHARE = 0.8;
/** Slower than people read. */
const MIN_TOKENS_PER_SECOND = 8;

export interface Recommendation {
  model: OpenModel;
  /** The precision in which it fits and is fast enough. */
  precision: WeightPrecision;
  /** In use: the resident weights and the KV cache. */
  memoryBytes: number;
  /** Upper limit; null if the memory's speed is not known. */
  tokensPerSecond: number | null;
}

/** Every token reads the weights once, so this is the upper limit of the speed. */
function mostTokensPerSecond(residentBytes: number, readBytesPerSecond: number | null): number | null {
  return readBytesPerSecond === null || readBytesPerSecond <= 0 ? null : readBytesPerSecond / residentBytes;
}

/**
 * The models that fit into the free memory and are fast enough, the most capable first: in the set precision, else in a
 * smaller one. `except` are repositories that are already here.
 */
export function recommend(
  machine: { availableBytes: number; readBytesPerSecond: number | null },
  set: WeightPrecision,
  except: ReadonlySet<string> = new Set(),
): Recommendation[] {
  const inForm = (model: OpenModel, precision: WeightPrecision): Recommendation => {
    const residentBytes = model.residentBytes[precision];
    return {
      model,
      precision,
      memoryBytes: residentBytes + model.cacheBytes,
      tokensPerSecond: mostTokensPerSecond(residentBytes, machine.readBytesPerSecond),
    };
  };
  const suits = ({ memoryBytes, tokensPerSecond }: Recommendation) =>
    memoryBytes <= machine.availableBytes * USABLE_SHARE &&
    (tokensPerSecond === null || tokensPerSecond >= MIN_TOKENS_PER_SECOND);
  return OPEN_MODELS.filter(({ id }) => !except.has(id))
    .map((model) => [inForm(model, set), inForm(model, 'int4')].find(suits))
    .filter((one) => one !== undefined)
    .sort((a, b) => Number(b.model.code) - Number(a.model.code) || b.model.parameters - a.model.parameters);
}

/**
 * The command that downloads it with Hugging Face's own tool (Python's huggingface_hub) into the cache where
 * `findModels` looks.
 */
export function fetchCommand(id: string): string {
  return `hf download ${id}`;
}
