/**
 * Reads how config.json says that the weights are quantised. Names what is not supported. Does not look at weights.
 */
import { FILE, isObject, type Json, show } from './configFields.ts';
import { invalid, unsupported } from './modelFolder.ts';
import { CHOOSE_UNQUANTISED } from './otherFormats.ts';
import type { PackedLayout } from './packedMatrix.ts';

/**
 * int8: of compressed-tensors, with one symmetric scale per row (see Weights). Otherwise see PackedMatrix.
 * `needsOrder`, `needsZeros`: the group of each input, and zeros, must be there.
 */
export type Quantisation =
  | { readonly kind: 'int8' }
  | (PackedLayout & { readonly needsOrder: boolean; readonly needsZeros: boolean });

const SUPPORTED =
  'supported are float32, float16 and bfloat16, GPTQ with 4 or 8 bits, AWQ with 4 bits, and compressed-tensors with ' +
  '8 bits and one symmetric scale per row (format int-quantized or pack-quantized, strategy channel) or with 4 or 8 ' +
  'bits in groups (format pack-quantized)';
/** The first has int8 tensors, the second codes packed into int32. */
const FORMATS: readonly unknown[] = ['int-quantized', 'pack-quantized'];
/** Backends of AWQ with another layout of codes. The others are kernels for the usual one. */
const AWQ_LAYOUTS: readonly unknown[] = ['llm-awq', 'gemv', 'gemv_fast'];

function refuse(where: string, value: unknown): never {
  throw unsupported(
    `${FILE}: quantization_config${where} is ${value === undefined ? 'missing' : show(value)}; ${SUPPORTED}: ` +
      `${CHOOSE_UNQUANTISED}.`,
  );
}

/** @throws RequestError unless the field, or `fallback` if it is missing or null, is among `wanted` */
function oneOf(source: Json, where: string, key: string, wanted: readonly unknown[], fallback?: unknown): unknown {
  const value = source[key] ?? fallback;
  return wanted.includes(value) ? value : refuse(`${where}.${key}`, source[key]);
}

/** The first key, or the second if the first is missing or null. */
function firstOf(source: Json, first: string, second: string): string {
  return (source[first] ?? null) === null ? second : first;
}

/** Null if the weights are not quantised. */
export function quantisationOf(config: Json): Quantisation | null {
  const quantisation = config.quantization_config;
  refuseMlx(config);
  if (!isObject(quantisation)) {
    if (quantisation === undefined || quantisation === null) return null;
    throw invalid(`${FILE}: quantization_config is ${show(quantisation)}; it must be an object or null.`);
  }
  switch (oneOf(quantisation, '', 'quant_method', ['compressed-tensors', 'gptq', 'awq'])) {
    case 'gptq':
      return gptq(quantisation);
    case 'awq':
      return awq(quantisation);
    default:
      return compressed(quantisation);
  }
}

/** group_size: -1 is one group. */
function groupSizeOf(source: Json, where: string): number | null {
  const size = source.group_size;
  if (size === -1) return null;
  return typeof size === 'number' && Number.isInteger(size) && size > 0 ? size : refuse(`${where}.group_size`, size);
}

function gptq(source: Json): Quantisation {
  const bits = oneOf(source, '', 'bits', [4, 8]) as 4 | 8;
  const format = oneOf(source, '', firstOf(source, 'checkpoint_format', 'format'), ['gptq', 'gptq_v2'], 'gptq');
  oneOf(source, '', 'is_marlin_format', [false], false);
  oneOf(source, '', 'pack_dtype', ['int32'], 'int32');
  // Other bits or groups for some layers.
  if (isObject(source.dynamic) ? Object.keys(source.dynamic).length > 0 : (source.dynamic ?? null) !== null)
    refuse('.dynamic', source.dynamic);
  const needsOrder = oneOf(source, '', 'desc_act', [true, false], false) === true;
  const lessOne = format === 'gptq';
  return { kind: 'gptq', bits, groupSize: groupSizeOf(source, ''), lessOne, needsOrder, needsZeros: true };
}

function awq(source: Json): Quantisation {
  const [bits, size] = [firstOf(source, 'bits', 'w_bit'), firstOf(source, 'group_size', 'q_group_size')];
  oneOf({ bits: source[bits] }, '', 'bits', [4]);
  oneOf(source, '', firstOf(source, 'version', 'format'), ['gemm', 'GEMM'], 'gemm');
  const { backend } = source;
  if (AWQ_LAYOUTS.includes(backend)) refuse('.backend', backend);
  oneOf(source, '', 'zero_point', [true], true);
  const groupSize = groupSizeOf({ group_size: source[size] }, '');
  return { kind: 'awq', bits: 4, groupSize, lessOne: false, needsOrder: false, needsZeros: true };
}

/** The format of activations does not matter, because the engine quantises them in its own way. */
function compressed(source: Json): Quantisation {
  if (!FORMATS.includes(source.format)) refuse('.format', source.format);
  const { config_groups: groups, sparsity_config: sparsity, transform_config: transform } = source;
  if (isObject(sparsity)) oneOf(sparsity, '.sparsity_config', 'format', ['dense'], 'dense');
  // These are rotations that the model would have to compute.
  if (isObject(transform) && Object.keys(transform).length > 0) refuse('.transform_config', transform);
  if (!isObject(groups) || Object.keys(groups).length === 0)
    return refuse('.config_groups', isObject(groups) ? undefined : groups);
  const found = Object.entries(groups).map(([name, group]) => {
    const where = `.config_groups[${show(name)}]`;
    if (!isObject(group) || !isObject(group.weights))
      return refuse(`${where}.weights`, isObject(group) ? group.weights : group);
    oneOf(group, where, 'format', [source.format], source.format);
    return compressedWeights(group.weights, `${where}.weights`, source.format === 'pack-quantized');
  });
  if (new Set(found.map((each) => JSON.stringify(each))).size > 1)
    throw unsupported(
      `${FILE}: quantization_config.config_groups differ in how weights are stored, which is not supported: ` +
        `${CHOOSE_UNQUANTISED}.`,
    );
  return found[0]!;
}

function compressedWeights(weights: Json, where: string, isPacked: boolean): Quantisation {
  const bits = oneOf(weights, where, 'num_bits', isPacked ? [4, 8] : [8], 8) as 4 | 8;
  oneOf(weights, where, 'type', ['int'], 'int');
  oneOf(weights, where, 'dynamic', [false], false);
  const isSymmetric = oneOf(weights, where, 'symmetric', isPacked ? [true, false] : [true], true) === true;
  const strategy = oneOf(weights, where, 'strategy', isPacked ? ['channel', 'group'] : ['channel']);
  if (strategy === 'channel' && isSymmetric && bits === 8) return { kind: 'int8' };
  const order = oneOf(weights, where, 'actorder', ['group', 'dynamic', 'weight', 'static', true, false], false);
  const needsOrder = strategy === 'group' && (order === 'group' || order === 'dynamic' || order === true);
  const groupSize = strategy === 'channel' ? null : groupSizeOf(weights, where);
  return { kind: 'rows', bits, groupSize, lessOne: false, needsOrder, needsZeros: !isSymmetric };
}

/** MLX writes `quantization`, and newer versions the same again as `quantization_config`, without a method. */
function refuseMlx(config: Json): void {
  for (const key of ['quantization', 'quantization_config']) {
    const value = config[key];
    if (isObject(value) && value.quant_method === undefined && 'bits' in value && 'group_size' in value)
      throw unsupported(
        `${FILE}: ${key} says that the weights are quantised by MLX (${show(value.bits)} bits), ` +
          `which is not supported: ${CHOOSE_UNQUANTISED}.`,
      );
  }
}
