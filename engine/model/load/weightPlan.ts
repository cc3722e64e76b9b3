/**
 * Plans the weight file: the tensors that the step graph needs, their layouts, and the tensors of the model that they
 * are made from. Maps the names of Hugging Face to those of the weight file. Reads no weights.
 */
import type { Precision } from '../../protocol/tasks.ts';
import {
  layoutOf,
  type LinearItem,
  type PlanItem,
  type RowSource,
  type StoredTensor,
  type VectorSource,
} from './planItems.ts';
import { type Form, type Forms, formsOf, type ProductForm } from './quantise.ts';
import type { Experts } from './experts.ts';
import { type ModelConfig, ropeOf } from './hfConfig.ts';
import { keyBiasLayers } from './keyBias.ts';

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
  /** Every tensor that is read, with the shape that it must have. Scales of 8-bit tensors are not listed. */
  readonly needed: ReadonlyMap<string, readonly number[]>;
}

export const EMBEDDING = 'model.embed_tokens.weight';
export const HEAD = 'lm_head.weight';
const BYTES: Readonly<Record<string, number>> = { uint8: 1, int8: 1, int16: 2, float32: 4 };
/** Page size. The runtime maps the file, so a tensor on pages of its own loads nothing else. */
const ALIGNMENT = 4096;

/**
 * `tied`: the embedding is also the output head. `biased`: layers with a large key bias (see keyBias.ts). Default: all
 * layers that can have one.
 */
export function planWeights(
  config: ModelConfig,
  precision: Precision,
  tied: boolean,
  products: ProductForm,
  biased: readonly number[] = keyBiasLayers(config),
): WeightPlan {
  return new WeightPlanner(config, precision, products, biased).plan(tied);
}

const plain = (tensor: string, length: number, factor = 1): VectorSource => ({ tensor, length, factor, repeat: 1 });
const whole = (tensor: string, rows: number, factor = 1): RowSource => ({ tensor, rows, factors: [factor] });

class WeightPlanner {
  readonly #config: ModelConfig;
  readonly #precision: Precision;
  readonly #products: ProductForm;
  readonly #biased: readonly number[];
  readonly #items: PlanItem[] = [];
  readonly #linears = new Map<string, LinearItem>();
  readonly #stored = new Map<string, StoredTensor>();
  readonly #needed = new Map<string, readonly number[]>();
  readonly #forms: Forms;
  #bytes = 0;

  constructor(config: ModelConfig, precision: Precision, products: ProductForm, biased: readonly number[]) {
    this.#config = config;
    this.#precision = precision;
    this.#products = products;
    this.#biased = biased;
    this.#forms = formsOf(precision, products);
  }

  plan(tied: boolean): WeightPlan {
    const embedding = this.#embedding();
    for (let l = 0; l < this.#config.numLayers; l++) {
      this.#attention(l);
      this.#feedForward(l);
    }
    this.#norm('norm', 'model.norm');
    this.#head(tied, embedding);
    let parameters = 0;
    for (const shape of this.#needed.values()) parameters += shape.reduce((a, b) => a * b, 1);
    return {
      precision: this.#precision,
      products: this.#products,
      biased: this.#biased,
      items: this.#items,
      linears: this.#linears,
      stored: this.#stored,
      bytes: this.#bytes,
      parameters,
      needed: this.#needed,
    };
  }

  /**
   * The embedding is stored for the lookup and the head for the product, also if they are tied. The embedding is mapped
   * from the file, and only the rows in use take memory. So its rows may have 16 bits (see quantiseRows16).
   */
  #embedding(): StoredTensor {
    const { vocabSize, hiddenSize, factors } = this.#config;
    const coded = this.#precision !== 'float32';
    this.#needed.set(EMBEDDING, [vocabSize, hiddenSize]);
    const weight = this.#store('embedding', coded ? 'int16' : 'float32', [vocabSize, hiddenSize]);
    const scales = coded ? this.#store('embedding.scales', 'float32', [vocabSize, 1]) : null;
    const factor = factors.embedding;
    this.#items.push({
      kind: 'embedding',
      width: hiddenSize,
      rows: vocabSize,
      tensor: EMBEDDING,
      factor,
      weight,
      scales,
    });
    return weight;
  }

  #attention(l: number): void {
    const { hiddenSize, numHeads, kvHeads, headSize, qkvBias, qkNorm, norms, outputBias, factors } = this.#config;
    const rope = ropeOf(this.#config, l);
    const { attention } = this.#forms;
    const from = `model.layers.${l}.self_attn.`;
    const to = `l${l}.`;
    const queryRows = numHeads * headSize;
    const kvRows = kvHeads * headSize;
    // Factors of the scores are folded into the norm of the queries, or without a norm into their projection. The one
    // of the rope is about what is rotated of queries and keys.
    const ropeFactor = rope.unrotated?.includes(l) ? 1 : (rope.attention ?? 1);
    const turned = factors.scores * ropeFactor ** 2;
    const { rotated = headSize } = rope;
    const factor = qkNorm ? 1 : turned;
    const byRow =
      rotated === headSize
        ? [factor]
        : Array.from({ length: headSize }, (_, d) => (d % (headSize / 2) < rotated / 2 ? factor : factors.scores));
    if (norms !== 'after') this.#norm(`${to}norm1`, `model.layers.${l}.input_layernorm`);
    const sources = [
      { tensor: `${from}q_proj.weight`, rows: queryRows, factors: byRow },
      whole(`${from}k_proj.weight`, kvRows),
      whole(`${from}v_proj.weight`, kvRows),
    ];
    this.#linear(`${to}qkv`, hiddenSize, sources, attention);
    if (qkvBias) this.#qkvBias(l, factor);
    if (qkNorm === 'head') {
      const norm = (name: string, factor: number, repeat: number): VectorSource => ({
        tensor: `${from}${name}.weight`,
        length: headSize,
        plus: this.#config.normOffset,
        factor,
        repeat,
      });
      const sources = [norm('q_norm', turned, numHeads), norm('k_norm', 1, kvHeads)];
      this.#vector(`${to}qkNorm`, sources, [numHeads + kvHeads, 1, headSize]);
    } else if (qkNorm === 'whole') {
      this.#vector(`${to}qNorm`, [plain(`${from}q_norm.weight`, queryRows, turned)]);
      this.#vector(`${to}kNorm`, [plain(`${from}k_norm.weight`, kvRows)]);
    }
    const { residual } = factors;
    this.#linear(`${to}o`, queryRows, [whole(`${from}o_proj.weight`, hiddenSize, residual)], attention);
    if (outputBias) this.#vector(`${to}oBias`, [plain(`${from}o_proj.bias`, hiddenSize, residual)]);
    if (norms !== 'before') this.#norm(`${to}norm1After`, `model.layers.${l}.post_attention_layernorm`);
  }

  #norm(name: string, tensor: string): void {
    const { hiddenSize, isGpt, normOffset } = this.#config;
    this.#vector(name, [{ ...plain(`${tensor}.weight`, hiddenSize), plus: normOffset }]);
    if (isGpt) this.#vector(`${name}Bias`, [plain(`${tensor}.bias`, hiddenSize)]);
  }

  #qkvBias(l: number, factor: number): void {
    const { numHeads, kvHeads, headSize } = this.#config;
    const from = `model.layers.${l}.self_attn.`;
    const q: VectorSource = { tensor: `${from}q_proj.bias`, length: numHeads * headSize, factor, repeat: 1 };
    const k = plain(`${from}k_proj.bias`, kvHeads * headSize);
    const v = plain(`${from}v_proj.bias`, kvHeads * headSize);
    this.#vector(`l${l}.qkvBias`, [q, k, v]);
    if (!this.#biased.includes(l)) return;
    // For an int8 KV pool. Keys are quantised without their bias, and keyBias adds it to the scores in float.
    this.#vector(`l${l}.qvBias`, [q, { ...k, tensor: null }, v]);
    const weight = this.#store(`l${l}.keyBias`, 'float32', [1, kvHeads, headSize, headSize]);
    this.#items.push({ kind: 'keyBias', tensor: k.tensor!, weight });
  }

  #feedForward(l: number): void {
    const { hiddenSize, ffnSize, ffnBias, isGpt, experts, norms, factors } = this.#config;
    const { feedForward } = this.#forms;
    const from = `model.layers.${l}.`;
    const to = `l${l}.`;
    const before = norms === 'both' ? 'pre_feedforward_layernorm' : 'post_attention_layernorm';
    if (norms !== 'after') this.#norm(`${to}norm2`, from + before);
    if (experts?.layers.includes(l)) return this.#experts(l, experts);
    for (const name of isGpt ? ['up'] : ['gate', 'up']) {
      this.#linear(`${to}${name}`, hiddenSize, [whole(`${from}mlp.${name}_proj.weight`, ffnSize)], feedForward);
      if (ffnBias) this.#vector(`${to}${name}Bias`, [plain(`${from}mlp.${name}_proj.bias`, ffnSize)]);
    }
    const down = whole(`${from}mlp.down_proj.weight`, hiddenSize, factors.residual);
    this.#linear(`${to}down`, ffnSize, [down], feedForward);
    if (ffnBias) this.#vector(`${to}downBias`, [plain(`${from}mlp.down_proj.bias`, hiddenSize, factors.residual)]);
    if (norms !== 'before') this.#norm(`${to}norm2After`, `${from}post_feedforward_layernorm`);
  }

  /** The router of a layer, and its experts: of each one gate and up, in the graph in one, and down. */
  #experts(l: number, { count, size }: Experts): void {
    const { hiddenSize, factors } = this.#config;
    const from = `model.layers.${l}.mlp.`;
    this.#linear(`l${l}.router`, hiddenSize, [whole(`${from}gate.weight`, count)], this.#forms.router);
    const each = (of: (expert: string) => RowSource[]): RowSource[][] =>
      Array.from({ length: count }, (_, e) => of(`${from}experts.${e}.`));
    const isNative = this.#products === 'native' && this.#precision !== 'float32';
    for (const parts of isNative ? [['gate'], ['up']] : [['gate', 'up']]) {
      const gated = each((expert) => parts.map((part) => whole(`${expert}${part}_proj.weight`, size)));
      this.#stack(`l${l}.${isNative ? parts[0] : 'inner'}`, hiddenSize, gated);
    }
    const down = each((expert) => [whole(`${expert}down_proj.weight`, hiddenSize, factors.residual)]);
    this.#stack(`l${l}.${isNative ? 'down' : 'outer'}`, size, down);
  }

  /** Layers of the same size in one stored tensor, along a new first axis. */
  #stack(name: string, width: number, all: readonly (readonly RowSource[])[]): void {
    const form = this.#forms.experts;
    const rows = all[0]!.reduce((sum, s) => sum + s.rows, 0);
    const { type, dims, scales: numScales } = layoutOf(form, rows, width);
    const weight = this.#store(name, type, [all.length, ...dims]);
    const scales = numScales > 0 ? this.#store(`${name}.scales`, 'float32', [all.length, numScales]) : null;
    for (const [i, sources] of all.entries()) {
      for (const s of sources) this.#needed.set(s.tensor, [s.rows, width]);
      const part = (stack: StoredTensor): StoredTensor => {
        const length = stack.length / all.length;
        return { ...stack, dims: stack.dims.slice(1), offset: stack.offset + i * length, length };
      };
      this.#items.push({ kind: 'linear', form, width, sources, weight: part(weight), scales: scales && part(scales) });
    }
  }

  #head(tied: boolean, embedding: StoredTensor): void {
    const { hiddenSize, vocabSize, factors } = this.#config;
    if (this.#precision !== 'float32' || !tied || factors.embedding !== 1 || factors.logits !== 1) {
      const source = whole(tied ? EMBEDDING : HEAD, vocabSize, factors.logits);
      this.#linear('head', hiddenSize, [source], this.#forms.head);
      return;
    }
    // In float32 a tied head reads the embedding itself, because the layouts are the same.
    this.#stored.set('head', embedding);
    const head = { kind: 'linear', form: 'float32', width: hiddenSize, sources: [], scales: null } as const;
    this.#linears.set('head', { ...head, weight: embedding });
  }

  #store(name: string, type: StoredTensor['type'], dims: readonly number[]): StoredTensor {
    const length = dims.reduce((a, b) => a * b, BYTES[type]!);
    const tensor = { name, type, dims, offset: this.#bytes, length };
    this.#bytes += length < ALIGNMENT ? Math.ceil(length / 64) * 64 : Math.ceil(length / ALIGNMENT) * ALIGNMENT;
    this.#stored.set(name, tensor);
    return tensor;
  }

  #linear(name: string, width: number, sources: readonly RowSource[], form: Form): void {
    const rows = sources.reduce((sum, s) => sum + s.rows, 0);
    for (const s of sources) this.#needed.set(s.tensor, [s.rows, width]);
    const item: LinearItem = { kind: 'linear', form, width, sources, ...this.#storeLinear(name, width, rows, form) };
    this.#linears.set(name, item);
    this.#items.push(item);
  }

  #storeLinear(name: string, width: number, rows: number, form: Form): Pick<LinearItem, 'weight' | 'scales'> {
    const { type, dims, scales } = layoutOf(form, rows, width);
    const weight = this.#store(name, type, dims);
    return { weight, scales: scales > 0 ? this.#store(`${name}.scales`, 'float32', [scales]) : null };
  }

  #vector(name: string, sources: readonly VectorSource[], dims?: readonly number[]): void {
    for (const s of sources) if (s.tensor) this.#needed.set(s.tensor, [s.length]);
    const length = sources.reduce((sum, s) => sum + s.length * s.repeat, 0);
    this.#items.push({ kind: 'vector', sources, weight: this.#store(name, 'float32', dims ?? [length]) });
  }
}
