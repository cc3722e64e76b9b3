/**
 * Which tensors the step graph needs, in the layout that its operators read, and from which tensors of the model each is
 * made: the one place that knows both Hugging Face's names and the layout of the weight file. Reads no weights.
 */
import type { Precision } from '../../protocol/tasks.ts';
import { BLOCK, numBlocks } from './quantise.ts';
import type { ModelConfig } from './hfConfig.ts';
import { keyBiasLayers } from './keyBias.ts';

/** A tensor of the weight file. */
export interface StoredTensor {
  readonly name: string;
  readonly type: 'uint8' | 'int8' | 'int16' | 'float32';
  readonly dims: readonly number[];
  /** Bytes from the start of the file. */
  readonly offset: number;
  readonly length: number;
}

/** Consecutive output rows of a fused linear layer, taken from one [rows, width] tensor and multiplied by `factor`. */
interface RowSource {
  readonly tensor: string;
  readonly rows: number;
  readonly factor: number;
}

/** Consecutive entries of a vector: `tensor` times `factor`, `repeat` times over; zeros when `tensor` is null. */
interface VectorSource {
  readonly tensor: string | null;
  readonly length: number;
  readonly factor: number;
  readonly repeat: number;
}

/**
 * A linear layer. Its weights are stored in one of these forms, told by their type:
 * int8: [width, sum of rows] and scales [sum of rows]; uint8: blocks of 8 bits, [sum of rows, numBlocks, BLOCK], or of 4 bits, with
 * BLOCK / 2, and scales [sum of rows * numBlocks] (see blockQuantise); float32: [sum of rows, width].
 */
export interface LinearItem {
  readonly kind: 'linear';
  readonly width: number;
  readonly sources: readonly RowSource[];
  readonly weight: StoredTensor;
  readonly scales: StoredTensor | null;
}

/**
 * How the stored tensors are made.
 * embedding, int8 and int4: [rows, width] int16 and scales [rows, 1]; float32: [rows, width].
 * keyBias: see keyBiasMatrix.
 */
export type PlanItem =
  | LinearItem
  | {
      readonly kind: 'embedding';
      readonly width: number;
      readonly rows: number;
      readonly tensor: string;
      readonly weight: StoredTensor;
      readonly scales: StoredTensor | null;
    }
  | { readonly kind: 'vector'; readonly sources: readonly VectorSource[]; readonly weight: StoredTensor }
  | { readonly kind: 'keyBias'; readonly tensor: string; readonly weight: StoredTensor };

/**
 * What a processor is best at (see productForm). narrow: 7-bit codes on the left-hand side of integer products, for processors whose
 * 8-bit products add pairs in 16 bits and saturate (x86 without VNNI): 127 * 127 * 2 fits, and blocks of 8 bits would not. blocks, rows: which
 * weights of 8 bits a few rows are multiplied by the faster, those in blocks or those with one scale for each output.
 */
export type ProductForm = 'narrow' | 'rows' | 'blocks';

export interface WeightPlan {
  readonly precision: Precision;
  readonly products: ProductForm;
  /** See planWeights. */
  readonly biased: readonly number[];
  readonly items: readonly PlanItem[];
  /** The linear layers, by name. */
  readonly linears: ReadonlyMap<string, LinearItem>;
  /** By name, for the graph. */
  readonly stored: ReadonlyMap<string, StoredTensor>;
  /** Size of the weight file. */
  readonly bytes: number;
  readonly parameters: number;
  /** Every tensor read, with the shape it must have; the scales of those in 8 bits are read with them (see Weights). */
  readonly needed: ReadonlyMap<string, readonly number[]>;
}

/** How the weights of a linear layer are stored: see LinearItem. */
type Form = 'blocks4' | 'blocks8' | 'int8' | 'float32';

type Forms = Readonly<Record<'feedForward' | 'attention' | 'head', Form>>;

/**
 * In int4 the attention's layers and the head keep 8 bits: they are a small part of most models, and what they
 * lose weighs most. Measured on the built-in model, mean KL divergence from float32: 0.015 so, 0.023 with a head of 4 bits,
 * 0.047 with the attention's layers of 4 bits, 0.054 with both. In blocks where the processor multiplies a few rows by those faster, and so is the
 * head of int8 there, which gets few. Its layers get whole prompts as well, and with those the plain form is faster.
 */
function formsOf(precision: Precision, products: ProductForm): Forms {
  if (precision === 'float32') return { feedForward: 'float32', attention: 'float32', head: 'float32' };
  const few = products === 'blocks' ? 'blocks8' : 'int8';
  return precision === 'int4'
    ? { feedForward: 'blocks4', attention: few, head: few }
    : { feedForward: 'int8', attention: 'int8', head: few };
}

const isBlocks = (form: Form): boolean => form === 'blocks4' || form === 'blocks8';

/** Which rows have to come in multiples (see blockRowMultiple in onnxSession): those of products of blocks. */
export function paddedProducts({ precision, products }: Pick<WeightPlan, 'precision' | 'products'>): {
  readonly layers: boolean;
  readonly head: boolean;
} {
  const { feedForward, attention, head } = formsOf(precision, products);
  return { layers: isBlocks(feedForward) || isBlocks(attention), head: isBlocks(head) };
}

/** Of a layer that is stored in blocks. */
export function linearBits({ dims }: StoredTensor): 4 | 8 {
  return dims[2] === BLOCK ? 8 : 4;
}

export const EMBEDDING = 'model.embed_tokens.weight';
export const HEAD = 'lm_head.weight';
const BYTES: Readonly<Record<string, number>> = { uint8: 1, int8: 1, int16: 2, float32: 4 };
/** Page size: the runtime maps the file, so a tensor that starts on its own page drags nothing else in. */
const ALIGNMENT = 4096;

/**
 * @param tied whether the embedding is also the output head.
 * @param biased layers with a large key bias (see keyBias); all that can have one when left out.
 */
export function planWeights(
  config: ModelConfig,
  precision: Precision,
  tied: boolean,
  products: ProductForm,
  biased: readonly number[] = keyBiasLayers(config),
): WeightPlan {
  const { hiddenSize, ffnSize, numHeads, kvHeads, headSize, vocabSize } = config;
  const coded = precision !== 'float32';
  const items: PlanItem[] = [];
  const linears = new Map<string, LinearItem>();
  const stored = new Map<string, StoredTensor>();
  const needed = new Map<string, readonly number[]>();
  let position = 0;
  const store = (name: string, type: StoredTensor['type'], dims: readonly number[]): StoredTensor => {
    const length = dims.reduce((a, b) => a * b, BYTES[type]!);
    const tensor = { name, type, dims, offset: position, length };
    position += length < ALIGNMENT ? Math.ceil(length / 64) * 64 : Math.ceil(length / ALIGNMENT) * ALIGNMENT;
    stored.set(name, tensor);
    return tensor;
  };
  const linear = (name: string, width: number, sources: readonly RowSource[], form: Form) => {
    const rows = sources.reduce((sum, s) => sum + s.rows, 0);
    for (const s of sources) needed.set(s.tensor, [s.rows, width]);
    const stores: Record<Form, () => Pick<LinearItem, 'weight' | 'scales'>> = {
      blocks4: () => ({
        weight: store(name, 'uint8', [rows, numBlocks(width), BLOCK / 2]),
        scales: store(`${name}.scales`, 'float32', [rows * numBlocks(width)]),
      }),
      blocks8: () => ({
        weight: store(name, 'uint8', [rows, numBlocks(width), BLOCK]),
        scales: store(`${name}.scales`, 'float32', [rows * numBlocks(width)]),
      }),
      int8: () => ({ weight: store(name, 'int8', [width, rows]), scales: store(`${name}.scales`, 'float32', [rows]) }),
      float32: () => ({ weight: store(name, 'float32', [rows, width]), scales: null }),
    };
    const item: LinearItem = { kind: 'linear', width, sources, ...stores[form]() };
    linears.set(name, item);
    items.push(item);
  };
  const vector = (name: string, sources: readonly VectorSource[], dims?: readonly number[]) => {
    for (const s of sources) if (s.tensor) needed.set(s.tensor, [s.length]);
    items.push({
      kind: 'vector',
      sources,
      weight: store(name, 'float32', dims ?? [sources.reduce((sum, s) => sum + s.length * s.repeat, 0)]),
    });
  };
  const plain = (tensor: string, length: number): VectorSource => ({ tensor, length, factor: 1, repeat: 1 });

  const { feedForward, attention, head } = formsOf(precision, products);
  // 1 / sqrt(headSize) is folded into whatever touches the queries last: their norm, or else their projection.
  const scale = 1 / Math.sqrt(headSize);
  const projectionScale = config.qkNorm ? 1 : scale;
  const queryRows = numHeads * headSize;
  const kvRows = kvHeads * headSize;

  // The embedding is stored for the lookup and the head for the product, also when they are tied: the lookup's copy is
  // mapped from the file and only the rows in use take memory, while the head is packed at load. For the same reason its
  // rows can afford 16 bits (see quantiseRows16).
  needed.set(EMBEDDING, [vocabSize, hiddenSize]);
  const embedding = store('embedding', coded ? 'int16' : 'float32', [vocabSize, hiddenSize]);
  items.push({
    kind: 'embedding',
    width: hiddenSize,
    rows: vocabSize,
    tensor: EMBEDDING,
    weight: embedding,
    scales: coded ? store('embedding.scales', 'float32', [vocabSize, 1]) : null,
  });
  for (let l = 0; l < config.numLayers; l++) {
    const from = `model.layers.${l}.`;
    const to = `l${l}.`;
    vector(`${to}norm1`, [plain(`${from}input_layernorm.weight`, hiddenSize)]);
    linear(
      `${to}qkv`,
      hiddenSize,
      [
        { tensor: `${from}self_attn.q_proj.weight`, rows: queryRows, factor: projectionScale },
        { tensor: `${from}self_attn.k_proj.weight`, rows: kvRows, factor: 1 },
        { tensor: `${from}self_attn.v_proj.weight`, rows: kvRows, factor: 1 },
      ],
      attention,
    );
    if (config.qkvBias) {
      const q: VectorSource = {
        tensor: `${from}self_attn.q_proj.bias`,
        length: queryRows,
        factor: projectionScale,
        repeat: 1,
      };
      const k = plain(`${from}self_attn.k_proj.bias`, kvRows);
      const v = plain(`${from}self_attn.v_proj.bias`, kvRows);
      vector(`${to}qkvBias`, [q, k, v]);
      if (biased.includes(l)) {
        // For an int8 KV pool: the keys are quantised without their bias, which keyBias adds to the scores in float.
        vector(`${to}qvBias`, [q, { ...k, tensor: null }, v]);
        items.push({
          kind: 'keyBias',
          tensor: k.tensor!,
          weight: store(`${to}keyBias`, 'float32', [1, kvHeads, headSize, headSize]),
        });
      }
    }
    if (config.qkNorm) {
      const norm = (name: string, factor: number, repeat: number): VectorSource => ({
        tensor: `${from}self_attn.${name}.weight`,
        length: headSize,
        factor,
        repeat,
      });
      vector(
        `${to}qkNorm`,
        [norm('q_norm', scale, numHeads), norm('k_norm', 1, kvHeads)],
        [numHeads + kvHeads, 1, headSize],
      );
    }
    linear(`${to}o`, queryRows, [{ tensor: `${from}self_attn.o_proj.weight`, rows: hiddenSize, factor: 1 }], attention);
    if (config.outputBias) vector(`${to}oBias`, [plain(`${from}self_attn.o_proj.bias`, hiddenSize)]);
    vector(`${to}norm2`, [plain(`${from}post_attention_layernorm.weight`, hiddenSize)]);
    for (const name of ['gate', 'up']) {
      linear(
        `${to}${name}`,
        hiddenSize,
        [{ tensor: `${from}mlp.${name}_proj.weight`, rows: ffnSize, factor: 1 }],
        feedForward,
      );
      if (config.ffnBias) vector(`${to}${name}Bias`, [plain(`${from}mlp.${name}_proj.bias`, ffnSize)]);
    }
    linear(`${to}down`, ffnSize, [{ tensor: `${from}mlp.down_proj.weight`, rows: hiddenSize, factor: 1 }], feedForward);
    if (config.ffnBias) vector(`${to}downBias`, [plain(`${from}mlp.down_proj.bias`, hiddenSize)]);
  }
  vector('norm', [plain('model.norm.weight', hiddenSize)]);
  // In float32 a tied head reads the embedding itself: the layouts are the same.
  if (coded || !tied)
    linear('head', hiddenSize, [{ tensor: tied ? EMBEDDING : HEAD, rows: vocabSize, factor: 1 }], head);
  else {
    stored.set('head', embedding);
    linears.set('head', { kind: 'linear', width: hiddenSize, sources: [], weight: embedding, scales: null });
  }

  let parameters = 0;
  for (const shape of needed.values()) parameters += shape.reduce((a, b) => a * b, 1);
  return { precision, products, biased, items, linears, stored, bytes: position, parameters, needed };
}
