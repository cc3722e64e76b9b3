/**
 * Reads the rope parameters of config.json. Refuses by name what the engine does not compute. Does not compute
 * frequencies (see runtime/rope.ts).
 */
import { FILE, isObject, type Json, number, show } from './configFields.ts';
import type { RequestError } from '../../protocol/errors.ts';
import { invalid, unsupported } from './modelFolder.ts';

export type Rope =
  | { readonly type: 'default'; readonly theta: number }
  | { readonly type: 'linear'; readonly theta: number; readonly factor: number }
  /** By which each wave length is multiplied. Only GGUF files say it so. */
  | { readonly type: 'factors'; readonly theta: number; readonly factors: readonly number[] }
  | {
      readonly type: 'llama3';
      readonly theta: number;
      readonly factor: number;
      readonly lowFreqFactor: number;
      readonly highFreqFactor: number;
      readonly originalContext: number;
    };

/** Bounds that keep every angle finite in float32. Known models have a theta of 10^4 to 10^11, and factors to 64. */
const THETA = { least: 1, most: 1e18 };
const FACTOR = { least: 1e-3, most: 1e6 };
const POSITIONS = { least: 1, most: 2 ** 31 - 1 };
const ORIGINAL = 'original_max_position_embeddings';

/**
 * Reads the spellings of transformers 4 and 5. A non-empty `rope_scaling` replaces `rope_parameters` as a whole. theta
 * comes from the chosen one, otherwise from the top level, otherwise it is 10000. The old key `type` is also read.
 * `positions`: beyond it the type is another one.
 */
export function parseRope(config: Json): { rope: Rope; positions?: number } {
  for (const key of ['rope_scaling', 'rope_parameters']) {
    if (config[key] !== undefined && config[key] !== null && !isObject(config[key]))
      throw invalid(`${FILE}: ${key} is ${show(config[key])}; it must be an object or null.`);
  }
  const scaling = config.rope_scaling as Json | null | undefined;
  const field = scaling && Object.keys(scaling).length > 0 ? 'rope_scaling' : 'rope_parameters';
  const source = (config[field] as Json | null | undefined) ?? {};
  const where = `${field}.`;
  if (Object.values(source).some(isObject))
    throw unsupported(
      `${FILE}: ${field} differs by layer type; only one set of rope parameters for all layers is supported.`,
    );
  const fallback = number(config, 'rope_theta', { ...THETA, fallback: 10_000 });
  const theta = number(source, 'rope_theta', { ...THETA, where, fallback });
  const partial = source.partial_rotary_factor ?? config.partial_rotary_factor ?? 1;
  if (partial !== 1)
    throw unsupported(
      `${FILE}: partial_rotary_factor is ${show(partial)}; only models that rotate whole heads (1) are supported.`,
    );
  const factor = (): number => number(source, 'factor', { ...FACTOR, where });
  const original = (): number =>
    number(source, ORIGINAL, { ...POSITIONS, where, fallback: config[ORIGINAL] as number | undefined });
  const type = source.rope_type ?? source.type ?? 'default';
  switch (type) {
    case 'default':
      return { rope: { type: 'default', theta } };
    case 'linear':
      return { rope: { type: 'linear', theta, factor: factor() } };
    case 'factors':
      return { rope: { type: 'factors', theta, factors: factorsOf(source, where) } };
    case 'llama3':
      return { rope: llama3(source, where, theta, factor(), original()) };
    case 'dynamic':
      // Up to the original length it equals the default: transformers `_compute_dynamic_ntk_parameters`.
      factor();
      return {
        rope: { type: 'default', theta },
        ...((source[ORIGINAL] ?? config[ORIGINAL] ?? null) === null ? {} : { positions: original() }),
      };
    default:
      throw otherType(source, where, type);
  }
}

function factorsOf({ factors }: Json, where: string): number[] {
  if (!Array.isArray(factors) || !factors.every((each) => each >= FACTOR.least && each <= FACTOR.most))
    throw invalid(`${FILE}: ${where}factors must be a list of numbers from ${FACTOR.least} to ${FACTOR.most}.`);
  return factors as number[];
}

function llama3(source: Json, where: string, theta: number, factor: number, originalContext: number): Rope {
  const lowFreqFactor = number(source, 'low_freq_factor', { ...FACTOR, where });
  const highFreqFactor = number(source, 'high_freq_factor', { ...FACTOR, where });
  if (highFreqFactor <= lowFreqFactor)
    throw invalid(
      `${FILE}: ${where}high_freq_factor is ${highFreqFactor}; it must be greater than low_freq_factor (${lowFreqFactor}).`,
    );
  return { type: 'llama3', theta, factor, lowFreqFactor, highFreqFactor, originalContext };
}

/**
 * yarn and longrope change the frequencies and the size of scores at every position, also below the original length
 * (transformers `_compute_yarn_parameters`), so such a model is not loaded as if the type were the default.
 */
function otherType(source: Json, where: string, type: unknown): RequestError {
  const field = where.slice(0, -1);
  const length = source[ORIGINAL];
  const removed = field === 'rope_scaling' ? field : `the type from ${field}`;
  const remedy =
    type === 'yarn'
      ? `if the model was trained without yarn, remove ${removed} and set max_position_embeddings to the original ` +
        `length${typeof length === 'number' ? ` (${length})` : ''}`
      : 'choose another model';
  return unsupported(
    `${FILE}: ${where}${source.rope_type !== undefined ? 'rope_type' : 'type'} is ${show(type)}; ` +
      `the supported rope types are default, linear, dynamic and llama3: ${remedy}.`,
  );
}
