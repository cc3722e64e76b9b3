/**
 * Gives the tensors of all families the names and rows that the weight plan asks for: without the prefix of a model of
 * text and images, split where they are fused, in the order in which heads are rotated. Reads no tensors.
 */
import type { ModelConfig } from './hfConfig.ts';
import { twice, withMatrices } from './packedTensors.ts';
import type { OwnedTensor } from './tensorFiles.ts';

type Tensors = ReadonlyMap<string, OwnedTensor>;

/** The language model among parts for images. */
const TEXT_PREFIX = /^(?:model\.language_model\.|language_model\.(?:model\.)?(?!lm_head))/;
const TEXT_HEAD = /^(?:model\.)?language_model\.lm_head\./;

const EXPERT = /\.mlp\.experts\.\d+\./;
const STACKED_EXPERTS = /^(.*\.mlp\.experts\.)(gate_up_proj|gate_proj|up_proj|down_proj)(?:\.weight)?$/;

/** Consecutive rows of a fused tensor, by the name of the part. */
type Parts = readonly (readonly [name: string, rows: number])[];

export function asPlanned(stored: Tensors, config: ModelConfig): Tensors {
  const tensors = withMatrices(stored, config.quantisation);
  const order = headOrder(config);
  const result = new Map<string, OwnedTensor>();
  const givenNames = new Map<string, string>();
  for (const [given, tensor] of tensors) {
    const name = config.isText
      ? given.replace(TEXT_HEAD, 'lm_head.').replace(TEXT_PREFIX, 'model.')
      : plainName(given, config);
    for (const [whole, stored] of singleExperts(name, tensor, config)) {
      const [, before, layer, after] = /^(.*\.)(qkv_proj|gate_up_proj)(\..*)$/.exec(whole) ?? [];
      for (const [part, rows] of split(whole, stored, layer === undefined ? null : partsOf(layer, whole, config))) {
        const named = part === null ? whole : `${before}${part}${after}`;
        if (result.has(named)) throw twice(tensor, givenNames.get(named)!, given);
        givenNames.set(named, given);
        result.set(named, order && /\.self_attn\.[qk]_proj\./.test(named) ? { ...rows, order } : rows);
      }
    }
  }
  return result;
}

function partsOf(layer: string, name: string, config: ModelConfig): Parts {
  const { numHeads, kvHeads, headSize, ffnSize, experts } = config;
  if (layer === 'gate_up_proj') {
    const rows = experts && EXPERT.test(name) ? experts.size : ffnSize;
    return [
      ['gate_proj', rows],
      ['up_proj', rows],
    ];
  }
  return [
    ['q_proj', numHeads * headSize],
    ['k_proj', kvHeads * headSize],
    ['v_proj', kvHeads * headSize],
  ];
}

/** The experts of a layer may be in one tensor [count, rows, width], or each in tensors of its own. */
function singleExperts(name: string, tensor: OwnedTensor, { experts }: ModelConfig): [string, OwnedTensor][] {
  const { info } = tensor;
  const [, before, part] = STACKED_EXPERTS.exec(name) ?? [];
  if (!experts || part === undefined || info.shape.length !== 3 || info.shape[0] !== experts.count)
    return [[name, tensor]];
  const bytes = (info.end - info.start) / experts.count;
  return Array.from({ length: experts.count }, (_, e) => {
    const own = {
      ...info,
      shape: info.shape.slice(1),
      start: info.start + e * bytes,
      end: info.start + (e + 1) * bytes,
    };
    return [`${before}${e}.${part}.weight`, { ...tensor, info: own }];
  });
}

/** A feed-forward layer without a gate has the names of one with a gate. */
function plainName(given: string, { isGpt }: ModelConfig): string {
  return isGpt ? given.replace('.mlp.c_fc.', '.mlp.up_proj.').replace('.mlp.c_proj.', '.mlp.down_proj.') : given;
}

/** The parts of a fused tensor. Another number of rows is left as it is, and reported as a missing tensor. */
function split(
  name: string,
  tensor: OwnedTensor,
  parts: Parts | null,
): readonly (readonly [part: string | null, tensor: OwnedTensor])[] {
  const { info } = tensor;
  const [rows] = info.shape;
  if (!parts || rows !== parts.reduce((sum, [, each]) => sum + each, 0)) return [[null, tensor]];
  const rowBytes = (info.end - info.start) / rows;
  let start = info.start;
  let before = 0;
  return parts.map(([part, each]) => {
    const end = start + each * rowBytes;
    const own = { ...info, name, shape: [each, ...info.shape.slice(1)], start, end };
    start = end;
    const firstRow = before;
    before += each;
    return [part, { ...tensor, info: own, ...(tensor.matrix ? { firstRow } : {}) }] as const;
  });
}

/**
 * The engine rotates the pairs (i, i + half of the head). If only the first numbers of a head are rotated, the pairs of
 * them come first in each half. The order of the numbers of a head changes no product of queries and keys.
 */
function headOrder({ rope, headSize }: ModelConfig): number[] | null {
  const { rotated = headSize } = rope;
  if (rotated === headSize) return null;
  const [pairs, half] = [rotated / 2, headSize / 2];
  return Array.from({ length: headSize }, (_, d) => {
    const [side, i] = [Math.floor(d / half), d % half];
    return i < pairs ? side * pairs + i : rotated + side * (half - pairs) + i - pairs;
  });
}
