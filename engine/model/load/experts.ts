/**
 * Reads from config.json which layers have experts instead of one feed-forward layer, and how a token chooses among
 * them. Does not know their weights.
 */
import { count, FILE, flag, type Json, show } from './configFields.ts';
import type { Family } from './families.ts';
import { invalid, unsupported } from './modelFolder.ts';

export interface Experts {
  readonly count: number;
  /** Experts that compute a token: those that the router gives the most probability. */
  readonly used: number;
  /** Inner size of each. */
  readonly size: number;
  /** Whether the shares of the used experts add up to 1. Otherwise they are their probabilities among all. */
  readonly isNormed: boolean;
  /** Layers with experts. The others have a usual feed-forward layer. */
  readonly layers: readonly number[];
}

/** Bounds, several times the largest known models (512 experts in a layer, 24,576 in all). */
const MAX_EXPERTS = 4096;
const MAX_ALL_EXPERTS = 65_536;
const MAX_SIZE = 2 ** 20;

/** Null if no layer has experts. */
export function expertsOf(config: Json, family: Family, numLayers: number): Experts | null {
  const { experts: usual } = family;
  if (usual === undefined) return null;
  const all = Array.from({ length: numLayers }, (_, l) => l);
  const dense = usual.denseLayers === 'mlp_layer_types' ? denseTypes(config, numLayers) : denseNumbers(config);
  const layers = all.filter((l) => !dense(l));
  if (layers.length === 0) return null;
  // transformers writes one key or the other.
  const key = (config.num_local_experts ?? null) === null ? 'num_experts' : 'num_local_experts';
  const number = count(config, key, MAX_EXPERTS, usual.count);
  if (number * layers.length > MAX_ALL_EXPERTS)
    throw unsupported(
      `${FILE}: ${key} is ${number} in each of ${layers.length} layers; at most ${MAX_ALL_EXPERTS} experts are supported.`,
    );
  return {
    count: number,
    used: count(config, 'num_experts_per_tok', number, usual.used),
    size: count(config, 'moe_intermediate_size', MAX_SIZE, usual.size),
    isNormed: flag(config, 'norm_topk_prob', usual.normed),
    layers,
  };
}

function denseTypes(config: Json, numLayers: number): (l: number) => boolean {
  const types = config.mlp_layer_types ?? null;
  if (types === null) return () => false;
  if (!Array.isArray(types) || types.length !== numLayers || types.some((t) => t !== 'sparse' && t !== 'dense'))
    throw invalid(
      `${FILE}: mlp_layer_types is ${show(types)}; it must say "sparse" or "dense" for each of the ${numLayers} layers.`,
    );
  return (l) => types[l] === 'dense';
}

function denseNumbers(config: Json): (l: number) => boolean {
  const listed = config.mlp_only_layers ?? [];
  const every = count(config, 'decoder_sparse_step', 2 ** 20, 1);
  if (!Array.isArray(listed) || !listed.every(Number.isInteger))
    throw invalid(`${FILE}: mlp_only_layers is ${show(listed)}; it must be a list of numbers of layers.`);
  return (l) => listed.includes(l) || (l + 1) % every !== 0;
}
