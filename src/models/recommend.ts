/**
 * Which of the known models this machine could run, by its memory and memory speed. The results are estimates and are
 * shown as such. Pure.
 */
import { KNOWN_MODELS, type KnownModel } from '../../engine/download/knownModels.ts';
import type { WeightPrecision } from '../config.ts';

/** Share of the free memory that a model may take. The rest is for the editor and other programs. */
const USABLE_SHARE = 0.8;
/** Slower than people read. */
const MIN_TOKENS_PER_SECOND = 8;

export interface Recommendation {
  model: KnownModel;
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
  const inForm = (model: KnownModel, precision: WeightPrecision): Recommendation => {
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
  return KNOWN_MODELS.filter(({ id }) => !except.has(id))
    .map((model) => [inForm(model, set), inForm(model, 'int4')].find(suits))
    .filter((one) => one !== undefined)
    .sort((a, b) => Number(b.model.code) - Number(a.model.code) || b.model.parameters - a.model.parameters);
}
