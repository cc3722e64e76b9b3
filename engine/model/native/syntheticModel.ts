/** Models with pseudo-random weights in memory, for the self-test and the measurement of this processor. */
import type { Precision } from '../../protocol/tasks.ts';
import type { ModelConfig } from '../load/hfConfig.ts';
import type { ImportedModel } from '../load/importedModel.ts';
import { planWeights, type WeightPlan } from '../load/weightPlan.ts';

export interface SyntheticModel {
  readonly model: ImportedModel;
  /** The content of its weight file. */
  readonly weights: Uint8Array;
}

type Sizes = 'numLayers' | 'hiddenSize' | 'ffnSize' | 'numHeads' | 'kvHeads' | 'vocabSize';
/** Layers as those of Qwen2 without biases, of any size. */
export const PLAIN_CONFIG: Omit<ModelConfig, Sizes> = {
  architecture: 'qwen2',
  headSize: 64,
  contextTokens: 512,
  rmsEps: 1e-6,
  rope: { type: 'default', theta: 10_000 },
  tied: true,
  qkvBias: false,
  outputBias: false,
  ffnBias: false,
  isText: false,
  isGpt: false,
  experts: null,
  gate: 'silu',
  normOffset: 0,
  norms: 'before',
  qkNorm: null,
  sliding: null,
  softcaps: { scores: null, logits: null },
  factors: { embedding: 1, scores: 1 / Math.sqrt(64), residual: 1, logits: 1 },
  quantisation: null,
  eosIds: [],
  bosId: null,
};

/** Numbers that are drawn for a tensor. A larger tensor repeats them. */
const MAX_DRAWN = 65_537;

/** Codes of 8 bits from -127 to 127, of 16 bits from -1000 to 1000, numbers from -0.1 to 0.1. */
function weightsOf(plan: WeightPlan): Uint8Array {
  const bytes = new Uint8Array(plan.bytes);
  let state = 1;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 8;
  };
  for (const { type, offset, length } of plan.stored.values()) {
    const values =
      type === 'float32'
        ? new Float32Array(bytes.buffer, offset, length / 4)
        : type === 'int16'
          ? new Int16Array(bytes.buffer, offset, length / 2)
          : new Int8Array(bytes.buffer, offset, length);
    const drawn = Math.min(values.length, MAX_DRAWN);
    for (let i = 0; i < drawn; i++)
      values[i] =
        type === 'float32'
          ? ((next() % 2001) - 1000) / 10_000
          : type === 'int16'
            ? (next() % 2001) - 1000
            : (next() % 255) - 127;
    for (let i = drawn; i < values.length; i += drawn) values.copyWithin(i, 0, drawn);
  }
  return bytes;
}

/** A tied model for the native kernels. `biased`: layers with a large key bias. */
export function syntheticModel(config: ModelConfig, precision: Precision, biased: readonly number[]): SyntheticModel {
  const plan = planWeights(config, precision, true, 'native', biased);
  const model: ImportedModel = {
    dir: '',
    key: '',
    config,
    precision,
    products: 'native',
    tied: true,
    biased,
    parameters: plan.parameters,
    weightsBytes: plan.bytes,
    residentBytes: plan.bytes,
    contentHash: '',
    imported: true,
  };
  return { model, weights: weightsOf(plan) };
}
