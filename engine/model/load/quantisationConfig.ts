/**
 * Reads how config.json says that the weights are quantised. Names what is not supported. Does not look at weights.
 */
import { FILE, isObject, type Json, show } from './configFields.ts';
import { invalid, unsupported } from './modelFolder.ts';
import { CHOOSE_UNQUANTISED } from './otherFormats.ts';

/** The first has int8 tensors, the second the same codes packed into int32 (see Weights). */
const FORMATS: readonly unknown[] = ['int-quantized', 'pack-quantized'];

/**
 * Whether the weights are quantised in the one supported form: int8 of compressed-tensors with one symmetric scale per
 * row. The format of activations does not matter, because the engine quantises them in its own way. Missing fields have
 * the defaults of that library.
 */
export function hasInt8Weights(config: Json): boolean {
  const quantisation = config.quantization_config;
  refuseMlx(config);
  if (!isObject(quantisation)) {
    if (quantisation === undefined || quantisation === null) return false;
    throw invalid(`${FILE}: quantization_config is ${show(quantisation)}; it must be an object or null.`);
  }
  const refuse = (where: string, value: unknown): never => {
    throw unsupported(
      `${FILE}: quantization_config${where} is ${value === undefined ? 'missing' : show(value)}; ` +
        'supported are float32, float16 and bfloat16, and compressed-tensors with 8 bits and one symmetric scale ' +
        `per row (format int-quantized or pack-quantized, strategy channel): ${CHOOSE_UNQUANTISED}.`,
    );
  };
  const need = (source: Json, where: string, key: string, wanted: unknown, fallback?: unknown): void => {
    if ((source[key] ?? fallback) !== wanted) refuse(`${where}.${key}`, source[key]);
  };
  need(quantisation, '', 'quant_method', 'compressed-tensors');
  if (!FORMATS.includes(quantisation.format)) refuse('.format', quantisation.format);
  const { config_groups: groups, sparsity_config: sparsity, transform_config: transform } = quantisation;
  if (isObject(sparsity)) need(sparsity, '.sparsity_config', 'format', 'dense', 'dense');
  // These are rotations that the model would have to compute.
  if (isObject(transform) && Object.keys(transform).length > 0) refuse('.transform_config', transform);
  if (!isObject(groups) || Object.keys(groups).length === 0)
    return refuse('.config_groups', isObject(groups) ? undefined : groups);
  for (const [name, group] of Object.entries(groups)) {
    const where = `.config_groups[${show(name)}]`;
    if (!isObject(group) || !isObject(group.weights))
      return refuse(`${where}.weights`, isObject(group) ? group.weights : group);
    need(group, where, 'format', quantisation.format, quantisation.format);
    for (const [key, wanted] of Object.entries({ num_bits: 8, type: 'int', symmetric: true, dynamic: false }))
      need(group.weights, `${where}.weights`, key, wanted, wanted);
    need(group.weights, `${where}.weights`, 'strategy', 'channel');
  }
  return true;
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
