/**
 * Reads the rope parameters of config.json. Refuses by name what the engine does not compute. Does not compute
 * frequencies (see runtime/rope.ts).
 */
import { count, FILE, isObject, type Json, number, show } from './configFields.ts';
import type { Family } from './families.ts';
import { invalid, unsupported } from './modelFolder.ts';

export interface Llama3Rope {
  readonly type: 'llama3';
  readonly factor: number;
  readonly lowFreqFactor: number;
  readonly highFreqFactor: number;
  readonly originalContext: number;
}

export interface YarnRope {
  readonly type: 'yarn';
  readonly factor: number;
  readonly betaFast: number;
  readonly betaSlow: number;
  /** Whether the bounds of the blend are whole numbers. */
  readonly truncate: boolean;
  readonly originalContext: number;
}

export type Rope = {
  readonly theta: number;
  /** The first numbers of a head that are rotated. Default: all. */
  readonly rotated?: number;
  /** Layers whose queries and keys are not rotated. Default: none. */
  readonly unrotated?: readonly number[];
  /** By which rotated queries and keys are multiplied. Default: 1. It is folded into the weights. */
  readonly attention?: number;
} & (
  | { readonly type: 'default' }
  | { readonly type: 'linear'; readonly factor: number }
  /** By which each wave length is multiplied: longrope, and GGUF files. */
  | { readonly type: 'factors'; readonly factors: readonly number[] }
  | Llama3Rope
  | YarnRope
);

/** Bounds that keep every angle finite in float32. Known models have a theta of 10^4 to 10^11, and factors to 64. */
const THETA = { least: 1, most: 1e18 };
const FACTOR = { least: 1e-3, most: 1e6 };
const MAX_POSITIONS = 2 ** 31 - 1;
const ORIGINAL = 'original_max_position_embeddings';
const TYPES = 'default, linear, dynamic, yarn, longrope and llama3';

/**
 * Reads the spellings of transformers 4 and 5. A non-empty `rope_scaling` replaces `rope_parameters` as a whole. theta
 * comes from the chosen one, otherwise from the top level, otherwise from the family. The old key `type` is also read.
 * `context`: max_position_embeddings. `positions`: beyond it the rope is another one.
 */
export function parseRope(
  config: Json,
  family: Pick<Family, 'theta' | 'partialRotary' | 'originalContext' | 'ropeNames' | 'llama4Scaling'>,
  headSize: number,
  context: number,
): { rope: Rope; positions?: number } {
  const { source, where } = ropeSource(config);
  const fallback = number(config, 'rope_theta', { ...THETA, fallback: family.theta });
  const theta = number(source, 'rope_theta', { ...THETA, where, fallback });
  const rotated = rotatedOf(source, config, family, headSize);
  const top = (config[ORIGINAL] as number | undefined) ?? family.originalContext;
  // What stands at the top level counts first.
  const original = (): number =>
    top === undefined
      ? count({ [where + ORIGINAL]: source[ORIGINAL] }, where + ORIGINAL, MAX_POSITIONS, context)
      : count({ [ORIGINAL]: top }, ORIGINAL, MAX_POSITIONS);
  const factor = (): number => number(source, 'factor', { ...FACTOR, where });
  const given = source.rope_type ?? source.type ?? 'default';
  const type = family.ropeNames?.[given as string] ?? given;
  const isScaled = family.llama4Scaling === true && isScaledBeyond(source, where);
  const rope = (scaling: object, positions = isScaled ? original() : undefined): ReturnType<typeof parseRope> => ({
    rope: { theta, ...(rotated === headSize ? {} : { rotated }), ...(scaling as { type: 'default' }) },
    ...(positions === undefined ? {} : { positions }),
  });
  switch (type) {
    case 'default':
      return rope({ type });
    case 'linear':
      return rope({ type, factor: factor() });
    case 'factors':
      return rope({ type, factors: factorsOf(source, 'factors', where, rotated / 2) });
    case 'llama3':
      return rope(llama3(source, where, factor(), original()));
    case 'dynamic':
      // Up to the original length it equals the default: transformers `_compute_dynamic_ntk_parameters`.
      factor();
      return rope(
        { type: 'default' },
        (source[ORIGINAL] ?? config[ORIGINAL] ?? null) === null ? undefined : original(),
      );
    case 'yarn':
      return rope(yarn(source, where, factor(), original()));
    case 'longrope':
      // Beyond the original length all positions have other factors.
      return rope(longrope(source, where, rotated / 2, original(), context), original());
    default:
      throw unsupported(
        `${FILE}: ${where}${source.rope_type !== undefined ? 'rope_type' : 'type'} is ${show(type)}; ` +
          `the supported rope types are ${TYPES}: choose another model.`,
      );
  }
}

/**
 * Rope parameters by layer type, as in Gemma 3: of the layers that see everything, and of those with a window.
 * `rope_scaling` and `rope_theta` are about the former, `rope_local_base_freq` is about the latter.
 */
export function parseRopes(
  config: Json,
  family: Parameters<typeof parseRope>[1] & Pick<Family, 'localTheta'>,
  headSize: number,
  context: number,
): { rope: Rope; local: Rope; positions?: number } {
  const { rope_parameters: byType, rope_scaling: scaling, rope_theta, rope_local_base_freq, ...others } = config;
  const object = (value: unknown, name: string): Json => {
    if (isObject(value ?? {})) return (value ?? {}) as Json;
    throw invalid(`${FILE}: ${name} is ${show(value)}; it must be an object or null.`);
  };
  const given = object(byType, 'rope_parameters');
  const other = Object.keys(given).find((type) => type !== 'full_attention' && type !== 'sliding_attention');
  if (other !== undefined)
    throw unsupported(
      `${FILE}: rope_parameters has ${show(other)}; in this family it must have full_attention and sliding_attention.`,
    );
  // transformers takes it for the name of a parameter that the default type does not have.
  if (isObject(scaling) && scaling.type !== undefined && scaling.rope_type === undefined)
    throw unsupported(`${FILE}: rope_scaling.type is the old name of rope_type, which this family does not read.`);
  const of = (type: string, more: unknown, top: string, theta: number) => {
    const parameters = {
      ...object(given[type], `rope_parameters.${type}`),
      ...object(more, 'rope_scaling'),
    };
    const base = number(config, top, { ...THETA, fallback: theta });
    const field = isObject(more) && Object.keys(more).length > 0 ? 'rope_scaling' : 'rope_parameters';
    const own = { ...others, [field]: parameters, rope_theta: base };
    return parseRope(own, family, headSize, context);
  };
  const [full, local] = [
    of('full_attention', scaling, 'rope_theta', family.theta),
    of('sliding_attention', null, 'rope_local_base_freq', family.localTheta!),
  ];
  const positions = Math.min(full.positions ?? Infinity, local.positions ?? Infinity);
  return { rope: full.rope, local: local.rope, ...(positions < Infinity ? { positions } : {}) };
}

/** The object with the parameters, and its name with a dot. */
function ropeSource(config: Json): { source: Json; where: string } {
  for (const key of ['rope_scaling', 'rope_parameters']) {
    if (config[key] !== undefined && config[key] !== null && !isObject(config[key]))
      throw invalid(`${FILE}: ${key} is ${show(config[key])}; it must be an object or null.`);
  }
  const scaling = config.rope_scaling as Json | null | undefined;
  const field = scaling && Object.keys(scaling).length > 0 ? 'rope_scaling' : 'rope_parameters';
  const source = (config[field] as Json | null | undefined) ?? {};
  if (Object.values(source).some(isObject))
    throw unsupported(
      `${FILE}: ${field} differs by layer type; only one set of rope parameters for all layers is supported.`,
    );
  return { source, where: `${field}.` };
}

/** Where no_rope_layers has a 0. Without that list it is every fourth layer, or every no_rope_layer_interval-th. */
export function layersWithoutRope(config: Json, numLayers: number): number[] {
  const { no_rope_layers: list = null } = config;
  const every = count(config, 'no_rope_layer_interval', numLayers + 1e6, 4);
  if (list !== null && !(Array.isArray(list) && list.length >= numLayers && list.every((x) => x === 0 || x === 1)))
    throw invalid(`${FILE}: no_rope_layers must be a list of ${numLayers} numbers that are 0 or 1.`);
  return Array.from({ length: numLayers }, (_, l) => l).filter((l) =>
    list === null ? (l + 1) % every === 0 : list[l] === 0,
  );
}

function rotatedOf(source: Json, config: Json, { partialRotary }: Pick<Family, 'partialRotary'>, size: number): number {
  const partial = source.partial_rotary_factor ?? config.partial_rotary_factor ?? 1;
  if (partial === 1) return size;
  if (!partialRotary)
    throw unsupported(
      `${FILE}: partial_rotary_factor is ${show(partial)}; in this family only models that rotate whole heads (1) ` +
        'are supported.',
    );
  const rotated = Math.trunc(
    size * number({ partial_rotary_factor: partial }, 'partial_rotary_factor', { least: 0, most: 1 }),
  );
  if (rotated < 2 || rotated % 2 !== 0)
    throw unsupported(
      `${FILE}: partial_rotary_factor is ${show(partial)}, so ${rotated} of ${size} numbers of a head would be ` +
        'rotated; only positive even numbers are supported.',
    );
  return rotated;
}

function factorsOf(source: Json, key: string, where: string, length: number): number[] {
  const factors = source[key];
  const isFactor = (each: unknown): boolean => typeof each === 'number' && each >= FACTOR.least && each <= FACTOR.most;
  if (!Array.isArray(factors) || !factors.every(isFactor))
    throw invalid(`${FILE}: ${where}${key} must be a list of numbers from ${FACTOR.least} to ${FACTOR.most}.`);
  if (factors.length !== length)
    throw invalid(
      `${FILE}: ${where}${key} has ${factors.length} numbers; ` +
        `it must have ${length}, half of what is rotated of a head: choose another file.`,
    );
  return factors as number[];
}

function llama3(source: Json, where: string, factor: number, originalContext: number): Llama3Rope {
  const lowFreqFactor = number(source, 'low_freq_factor', { ...FACTOR, where });
  const highFreqFactor = number(source, 'high_freq_factor', { ...FACTOR, where });
  if (highFreqFactor <= lowFreqFactor)
    throw invalid(
      `${FILE}: ${where}high_freq_factor is ${highFreqFactor}; it must be greater than low_freq_factor (${lowFreqFactor}).`,
    );
  return { type: 'llama3', factor, lowFreqFactor, highFreqFactor, originalContext };
}

/** Without rope parameters the family has those of a certain model, which no file leaves out. */
function isScaledBeyond(source: Json, where: string): boolean {
  if (Object.keys(source).length === 0)
    throw invalid(`${FILE}: ${where.slice(0, -1)} is missing, but this family needs it: download the file again.`);
  return number(source, 'llama_4_scaling_beta', { least: 0, most: FACTOR.most, where, fallback: 0 }) > 0;
}

/** transformers `_compute_yarn_parameters`. A number that is 0 or null there means the default. */
function yarn(source: Json, where: string, factor: number, originalContext: number): YarnRope & { attention: number } {
  const given = (key: string): number => number(source, key, { least: 0, most: FACTOR.most, where, fallback: 0 });
  // The division by a beta near 0 would overflow.
  const beta = (key: string, usual: number): number =>
    given(key) === 0 ? usual : number(source, key, { ...FACTOR, where });
  const { truncate = true } = source;
  if (typeof truncate !== 'boolean')
    throw invalid(`${FILE}: ${where}truncate is ${show(truncate)}; it must be true or false.`);
  const scale = (by: number): number => (factor <= 1 ? 1 : 0.1 * by * Math.log(factor) + 1);
  const [all, one] = [given('mscale_all_dim'), given('mscale')];
  return {
    type: 'yarn',
    factor,
    betaFast: beta('beta_fast', 32),
    betaSlow: beta('beta_slow', 1),
    truncate,
    originalContext,
    attention: attentionOf(source, where, all && one ? scale(one) / scale(all) : scale(1)),
  };
}

/** transformers `_compute_longrope_parameters`, up to the original length. */
function longrope(source: Json, where: string, length: number, original: number, context: number): object {
  if (original < 2)
    throw invalid(`${FILE}: ${ORIGINAL} is ${original}; longrope needs at least 2: download the file again.`);
  const factor = number(source, 'factor', { ...FACTOR, where, fallback: context / original });
  const usual = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original));
  return {
    type: 'factors',
    factors: factorsOf(source, 'short_factor', where, length),
    attention: attentionOf(source, where, usual),
  };
}

function attentionOf(source: Json, where: string, fallback: number): number {
  return number(source, 'attention_factor', { least: 1e-3, most: 1e3, where, fallback });
}
