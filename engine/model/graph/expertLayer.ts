/**
 * The layers with experts: the router, and the sum of what the chosen experts compute. Does not know attention or
 * norms.
 */
import type { Experts } from '../load/experts.ts';
import { type Coded, type GraphOps, MS } from './graphOps.ts';
import { DataType, type InnerValue } from './onnxWriter.ts';

// A node for each expert would be 100,000 nodes. So one Scan runs over the stacked experts of a layer, and an If skips
// those that no token chose. Experts add in the order of their numbers. With 8 bits their products are sums of integers,
// so a token's result has the same bits whatever other tokens choose. The operators MoE and QMoE of onnxruntime sum in
// another order beside other tokens, also with one thread.

/** x [n, hiddenSize] -> [n, hiddenSize]. */
export function mixExperts(ops: GraphOps, x: string, experts: Experts, l: number): string {
  return new ExpertLayer(ops, experts, l).mix(x);
}

class ExpertLayer {
  readonly #ops: GraphOps;
  readonly #experts: Experts;
  readonly #l: number;
  readonly #isFloat: boolean;

  constructor(ops: GraphOps, experts: Experts, l: number) {
    this.#ops = ops;
    this.#experts = experts;
    this.#l = l;
    this.#isFloat = ops.formOf(`l${l}.router`) === 'float32';
  }

  mix(x: string): string {
    const { g } = this.#ops;
    const coded = this.#isFloat ? null : this.#ops.codeRows(x);
    const shares = this.#op('Transpose', [this.#shares(x, coded)], { perm: [1, 0] });
    const isChosen = this.#op('Cast', [this.#op('ReduceMax', [shares, this.#ops.lastAxis], { keepdims: 0 })], {
      to: DataType.bool,
    });
    const rows = `experts${this.#l}`;
    const sum: InnerValue = { type: 'float32', dims: [rows, this.#ops.config.hiddenSize] };
    const stacked = (...[name, type, dims]: [string, InnerValue['type'], InnerValue['dims']]) => ({ name, type, dims });
    const weights = [`l${this.#l}.inner`, `l${this.#l}.outer`].flatMap((name) => {
      const [weight, scales] = this.#ops.stack(name);
      return [weight, ...(scales ? [scales] : [])].map((tensor) =>
        stacked(this.#ops.weight(tensor.name), tensor.type, tensor.dims.slice(1)),
      );
    });
    const over = [stacked(isChosen, 'bool', []), stacked(shares, 'float32', [rows]), ...weights];
    const [result] = g.scan([this.#zerosLike(x)], over, [sum], ([before], [chosen, share, ...weights]) => {
      const after = `experts${this.#l}.sum`;
      const add = (): string[] => [this.#added(before!, coded ?? x, share!, weights)];
      g.conditional(chosen!, [after], [sum], add, () => [this.#op('Identity', [before!])]);
      return [after];
    });
    return result!;
  }

  #op: GraphOps['op'] = (...node) => this.#ops.op(...node);

  #zerosLike(x: string): string {
    return this.#op('Expand', [this.#ops.g.float(0), this.#op('Shape', [x])]);
  }

  /** The share of each expert in each row, 0 for those that are not used: [n, count]. */
  #shares(x: string, coded: Coded | null): string {
    const { used, isNormed } = this.#experts;
    const logits = coded ? this.#fineLogits(coded) : this.#ops.linear(x, `l${this.#l}.router`);
    const softmax = (values: string): string => this.#op('Softmax', [values], { axis: -1 });
    const [best, chosen] = this.#ops.pair('TopK', [isNormed ? logits : softmax(logits), this.#ops.ints(used)], {
      axis: -1,
    });
    const shares = isNormed ? softmax(best) : best;
    // A row of zeros only fills the step up (see paddedProducts). No expert needs to compute it.
    const wanted = coded
      ? this.#op('Where', [this.#op('Cast', [coded.rowMax], { to: DataType.bool }), shares, this.#ops.g.float(0)])
      : shares;
    return this.#op('ScatterElements', [this.#zerosLike(logits), chosen, wanted], { axis: 1 });
  }

  /**
   * Rows and weights have two codes each, the second of what the first leaves. With 128 random experts, of which 8 are
   * used, 3 of 10,000 tokens choose other experts than in float32; with one code each it is 1 of 10.
   */
  #fineLogits({ codes, rowMax, relative }: Coded): string {
    const { zero, step, levels, g } = this.#ops;
    const [weight, scales] = this.#ops.stack(`l${this.#l}.router`);
    const coarse = this.#op('DequantizeLinear', [codes, step, zero]);
    const fineStep = g.float(1 / (2 * levels * levels));
    const rest = this.#op('QuantizeLinear', [this.#op('Sub', [relative, coarse]), fineStep, zero]);
    const product = (of: string, size: string): string =>
      this.#op(
        'MatMulIntegerToFloat',
        [of, this.#ops.weight(weight.name), size, this.#ops.weight(scales!.name), zero],
        {},
        MS,
      );
    const sum = this.#op('Add', [product(codes, step), product(rest, fineStep)]);
    const halves = this.#ops.ints(this.#experts.count, this.#experts.count);
    const [high, low] = this.#ops.pair('Split', [sum, halves], { axis: 1 });
    return this.#op('Mul', [this.#op('Add', [high, low]), rowMax]);
  }

  /** Adds what one expert computes for the rows that chose it. `share`: of all rows, [n]. */
  #added(before: string, x: Coded | string, share: string, weights: readonly string[]): string {
    const ops = this.#ops;
    const found = this.#op('NonZero', [share]);
    const rows = this.#op('Reshape', [found, ops.ints(-1)]);
    const column = (values: string): string => this.#op('Reshape', [values, ops.ints(-1, 1)]);
    const chosen = (values: string): string => this.#op('Gather', [values, rows]);
    const factor = column(chosen(share));
    const output = typeof x === 'string' ? this.#float(chosen(x), weights) : this.#coded(x, chosen, weights);
    const scaled = this.#op('Mul', [output.y, output.scale ? this.#op('Mul', [output.scale, factor]) : factor]);
    return this.#op('ScatterND', [before, column(found), scaled], { reduction: 'add' });
  }

  #float(x: string, weights: readonly string[]): { y: string; scale: null } {
    const [inner, outer] = weights as [string, string];
    const hidden = this.#gated(this.#op('Gemm', [x, inner], { transB: 1 }));
    return { y: this.#op('Gemm', [hidden, outer], { transB: 1 }), scale: null };
  }

  #coded(x: Coded, chosen: (values: string) => string, weights: readonly string[]): { y: string; scale: string } {
    const [inner, innerScales, outer, outerScales] = weights as [string, string, string, string];
    const product = (codes: string, weight: string, scales: string): string =>
      this.#op('MatMulIntegerToFloat', [codes, weight, this.#ops.step, scales, this.#ops.zero], {}, MS);
    const first = product(chosen(x.codes), inner, innerScales);
    const { codes, rowMax } = this.#ops.codeRows(this.#gated(this.#op('Mul', [first, chosen(x.rowMax)])));
    return { y: product(codes, outer, outerScales), scale: rowMax };
  }

  /** silu(gate) * up, of both side by side. */
  #gated(both: string): string {
    const { size } = this.#experts;
    const [gate, up] = this.#ops.pair('Split', [both, this.#ops.ints(size, size)], { axis: 1 });
    return this.#op('Mul', [this.#op('QuickGelu', [gate], { alpha: { float: 1 } }, MS), up]);
  }
}
