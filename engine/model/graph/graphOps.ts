/**
 * Operations that all parts of the step graph use: nodes, weights by name, linear layers in the form of their weights,
 * 8-bit codes of rows. Owns shared constants. Does not know the layers.
 */
import { BLOCK, type Form } from '../load/quantise.ts';
import type { ModelConfig } from '../load/hfConfig.ts';
import type { Attribute, OnnxWriter } from './onnxWriter.ts';
import { linearBits, type StoredTensor } from '../load/planItems.ts';
import type { WeightPlan } from '../load/weightPlan.ts';

export const MS = 'com.microsoft';

/** 8-bit codes of rows: code - zero = x / rowMax * levels. */
export interface Coded {
  readonly codes: string;
  /** [..., 1]. */
  readonly rowMax: string;
  /** x / rowMax. */
  readonly relative: string;
}

/** The new K and V rows of a layer as stored. */
export interface CodedRows {
  /** int8 [1, 2 * kvHeads, n, headSize]. */
  readonly codes: string;
  /** float32 [1, 2 * kvHeads, n, 1]. */
  readonly scales: string;
}

/** Rows in the form that a layer takes. */
export interface Rows {
  readonly x: string;
  /** [n, 1]: the factor that products of these rows must still be multiplied with. Null if there is none. */
  readonly scale: string | null;
}

export class GraphOps {
  readonly config: ModelConfig;
  readonly g: OnnxWriter;
  /** Codes are between zero - levels and zero + levels. */
  readonly levels: number;
  /** 1 / levels, float32 []. */
  readonly step: string;
  /** uint8 []. */
  readonly zero: string;
  readonly lastAxis: string;
  /** The numbers of key heads and value heads, for a Split. */
  readonly halves: string;
  readonly #plan: WeightPlan;
  readonly #weightFile: string;
  readonly #declared = new Set<string>();

  constructor(g: OnnxWriter, config: ModelConfig, plan: WeightPlan, options: { readonly weightFile: string }) {
    this.g = g;
    this.config = config;
    this.#plan = plan;
    this.#weightFile = options.weightFile;
    this.levels = plan.products === 'narrow' ? 63 : 127;
    this.step = g.float(1 / this.levels);
    this.zero = g.constant('uint8', [], Uint8Array.of(this.levels + 1));
    this.lastAxis = g.ints(-1);
    this.halves = g.ints(config.kvHeads, config.kvHeads);
  }

  /** Adds a node with one output. */
  op(
    name: string,
    inputs: readonly string[],
    attributes: Readonly<Record<string, Attribute>> = {},
    domain = '',
  ): string {
    return this.g.node(name, inputs, 1, attributes, domain)[0]!;
  }

  /** Adds a node with two outputs. */
  pair(name: string, inputs: readonly string[], attributes: Readonly<Record<string, Attribute>>): [string, string] {
    return this.g.node(name, inputs, 2, attributes) as [string, string];
  }

  ints(...values: number[]): string {
    return this.g.ints(...values);
  }

  weight(name: string): string {
    const tensor = this.#plan.stored.get(name);
    if (!tensor) throw new Error(`no stored tensor ${name}`);
    if (!this.#declared.has(tensor.name)) this.g.external(tensor, this.#weightFile);
    this.#declared.add(tensor.name);
    return tensor.name;
  }

  formOf(name: string): Form {
    return this.#plan.linears.get(name)!.form;
  }

  /** Weights that no layer of its own uses, and their scales. */
  stack(name: string): [weight: StoredTensor, scales: StoredTensor | undefined] {
    return [this.#plan.stored.get(name)!, this.#plan.stored.get(`${name}.scales`)];
  }

  /** x [rows, width] -> [rows, outputs]. */
  linear(x: string, name: string, bias?: string): string {
    return this.layer(this.rows(x, name), name, bias);
  }

  /**
   * x [n, width] times `factor` [n, 1], in the form that the layer `name` and all other layers on these rows take: int8
   * codes with one scale per row if the weights are int8.
   */
  rows(x: string, name: string, factor: string | null = null): Rows {
    if (this.#plan.linears.get(name)!.form !== 'int8')
      return { x: factor === null ? x : this.op('Mul', [x, factor]), scale: null };
    const { codes, rowMax } = this.codeRows(x);
    return { x: codes, scale: factor === null ? rowMax : this.op('Mul', [rowMax, factor]) };
  }

  layer(rows: Rows, name: string, bias?: string): string {
    if (rows.scale === null) return this.product(rows, name, bias);
    const y = this.op('Mul', [this.product(rows, name), rows.scale]);
    return bias ? this.op('Add', [y, this.weight(bias)]) : y;
  }

  /**
   * The product of a layer. For codes the caller must multiply by the row scales. For blocks the operator codes the
   * rows itself, with one scale per block, and computes several rows at a time (see blockRowMultiple).
   */
  product({ x }: Rows, name: string, bias?: string): string {
    const { form, width, weight, scales } = this.#plan.linears.get(name)!;
    const stored = this.weight(weight.name);
    if (form === 'float32') return this.op('Gemm', [x, stored, ...(bias ? [this.weight(bias)] : [])], { transB: 1 });
    if (form === 'int8')
      return this.op('MatMulIntegerToFloat', [x, stored, this.step, this.weight(scales!.name), this.zero], {}, MS);
    const sizes = { K: width, N: weight.dims[0]!, bits: linearBits(weight), block_size: BLOCK, accuracy_level: 4 };
    return this.op(
      'MatMulNBits',
      [x, stored, this.weight(scales!.name), ...(bias ? ['', '', this.weight(bias)] : [])],
      sizes,
      MS,
    );
  }

  codeRows(x: string): Coded {
    const rowMax = this.op('ReduceMax', [this.op('Abs', [x]), this.lastAxis], { keepdims: 1 });
    const relative = this.op('Div', [x, rowMax]);
    return { codes: this.op('QuantizeLinear', [relative, this.step, this.zero]), rowMax, relative };
  }

  /** x within -limit and limit, smoothly. */
  capped(x: string, limit: number | null): string {
    if (limit === null) return x;
    return this.op('Mul', [this.op('Tanh', [this.op('Div', [x, this.g.float(limit)])]), this.g.float(limit)]);
  }

  /** [1, numHeads, n, headSize] -> [n, numHeads * headSize]. */
  joinHeads(byHead: string): string {
    const { numHeads, headSize } = this.config;
    return this.op('Reshape', [
      this.op('Transpose', [byHead], { perm: [0, 2, 1, 3] }),
      this.ints(-1, numHeads * headSize),
    ]);
  }
}
