/**
 * Builds the step graph: one ragged step over all tokens [T] of all scheduled sequences, which share every linear
 * layer. Does not read weights (see weightPlan.ts) or run anything (see runner.ts).
 */
import type { KvPrecision } from '../../protocol/tasks.ts';
import type { ModelConfig } from '../load/hfConfig.ts';
import { paddedProducts } from '../load/quantise.ts';
import type { WeightPlan } from '../load/weightPlan.ts';
import { FloatAttention, Int8Attention, type LayerAttention } from './attention.ts';
import { mixExperts } from './expertLayer.ts';
import { FEEDS, FETCHES, QUERIES, RECEIVED } from './feeds.ts';
import { GraphOps, MS, type Rows } from './graphOps.ts';
import { DataType, OnnxWriter } from './onnxWriter.ts';

// The precisions of weights and KV pool are independent.
// int8: weights have one scale per output column. Activations become 8-bit codes per row at run time, with x = (code -
// zero) * max / K and K = 127. A row of zeros divides 0 by 0, but its codes are multiplied by max = 0 afterwards, so it
// needs no special case. Attention codes queries and probabilities per row, K and V per token and head.
// int4: weights are in blocks of 4 bits, some of 8 bits (see formsOf). The operator codes activations in blocks of 8
// bits.

export interface StepGraphOptions {
  readonly kv: KvPrecision;
  /** Name of the weight file beside the graph. */
  readonly weightFile: string;
}

/** The step graph as the bytes of an ONNX model. */
export function buildStepGraph(config: ModelConfig, plan: WeightPlan, options: StepGraphOptions): Uint8Array {
  return new StepGraph(config, plan, options).build();
}

class StepGraph {
  readonly #config: ModelConfig;
  readonly #plan: WeightPlan;
  readonly #kv: KvPrecision;
  readonly #g = new OnnxWriter();
  readonly #ops: GraphOps;
  readonly #ids: string;
  readonly #cos: string;
  readonly #sin: string;
  /** Cosines and sines of the layers with their own rope. */
  readonly #local: readonly [string, string] | null;
  readonly #logitRows: string;
  readonly #attention: LayerAttention;
  readonly #int8: Int8Attention | null;
  /** Position 0, from which the operator counts up. So row t of cos and sin belongs to token t. */
  readonly #firstRow: string;
  readonly #pad: string | null = null;
  readonly #crop: string | null = null;
  readonly #epsilon: { readonly epsilon: { readonly float: number } };
  /** The normed input of the next layer, and the residual stream. */
  #x = '';
  #skip = '';
  #numSums = 0;

  constructor(config: ModelConfig, plan: WeightPlan, options: StepGraphOptions) {
    this.#config = config;
    this.#plan = plan;
    this.#kv = options.kv;
    this.#epsilon = { epsilon: { float: config.rmsEps } };
    const g = this.#g;
    const ops = new GraphOps(g, config, plan, options);
    this.#ops = ops;
    this.#ids = g.input(FEEDS.ids, 'int64', ['T']);
    const angles = (name: string): string => g.input(name, 'float32', ['T', config.headSize / 2]);
    this.#cos = angles(FEEDS.cos);
    this.#sin = angles(FEEDS.sin);
    this.#local = config.sliding?.rope ? [angles(FEEDS.localCos), angles(FEEDS.localSin)] : null;
    const maskOf = (name: string): string => g.input(name, 'float32', ['W1', 1, 'W2', 'PW']);
    const mask = maskOf(FEEDS.mask);
    this.#logitRows = g.input(FEEDS.logitRows, 'int64', ['S']);
    const common = {
      mask,
      windowMask: config.sliding && maskOf(FEEDS.windowMask),
      scoresShape: g.input(FEEDS.scoresShape, 'int64', [4]),
      rowsShape: g.input(FEEDS.rowsShape, 'int64', [4]),
      split: g.input(FEEDS.split, 'int64', [2]),
      pastShape: g.input(FEEDS.pastShape, 'int64', [4]),
      pagesShape: g.input(FEEDS.pagesShape, 'int64', ['D']),
    };
    this.#firstRow = ops.ints(0);
    const isBiased = (l: number): boolean => plan.stored.has(`l${l}.keyBias`);
    this.#int8 = options.kv === 'int8' ? new Int8Attention(ops, common, plan.biased, isBiased) : null;
    this.#attention = this.#int8 ?? new FloatAttention(ops, common);
    if (paddedProducts(plan).layers) {
      this.#pad = g.input(FEEDS.pad, 'int64', [4]);
      this.#crop = g.input(FEEDS.crop, 'int64', [4]);
    }
  }

  build(): Uint8Array {
    const last = this.#config.numLayers - 1;
    this.#skip = this.#padded(this.#embedding());
    this.#x = this.#config.norms === 'after' ? this.#skip : this.#norm(this.#skip, 'l0.norm1');
    for (let l = 0; l < last; l++) this.#feedForward(this.#padded(this.#attend(l)), l);
    this.#logits(this.#attend(last));
    this.#outputs();
    return this.#g.finish();
  }

  #op: GraphOps['op'] = (...node) => this.#ops.op(...node);

  #weight(name: string): string {
    return this.#ops.weight(name);
  }

  #norm(x: string, name: string): string {
    const { isGpt } = this.#config;
    return this.#op(
      isGpt ? 'LayerNormalization' : 'SimplifiedLayerNormalization',
      [x, this.#weight(name), ...(isGpt ? [this.#weight(`${name}Bias`)] : [])],
      { axis: -1, stash_type: 1, ...this.#epsilon },
    );
  }

  /** Adds the padding rows. The residual stream has them, attention does not. */
  #padded(x: string): string {
    return this.#pad ? this.#op('Pad', [x, this.#pad]) : x;
  }

  #cropped(x: string): string {
    return this.#crop ? this.#op('Pad', [x, this.#crop]) : x;
  }

  #embedding(): string {
    if (!this.#plan.stored.has('embedding.scales')) return this.#op('Gather', [this.#weight('embedding'), this.#ids]);
    const rows = this.#op('Cast', [this.#op('Gather', [this.#weight('embedding'), this.#ids])], {
      to: DataType.float32,
    });
    return this.#op('Mul', [rows, this.#op('Gather', [this.#weight('embedding.scales'), this.#ids])]);
  }

  /** The attention of layer l on #x: [T, numHeads * headSize]. */
  #attend(l: number): string {
    const { qkvBias, qkNorm, numHeads, kvHeads, headSize, rope } = this.#config;
    const ops = this.#ops;
    const bias = qkvBias ? (this.#attention.isBiased(l) ? `l${l}.qvBias` : `l${l}.qkvBias`) : undefined;
    const linear = ops.linear(this.#x, `l${l}.qkv`, bias);
    const projected = this.#cropped(qkNorm === 'whole' ? this.#normedWhole(linear, l) : linear);
    const heads = this.#op(
      'Transpose',
      [this.#op('Reshape', [projected, ops.ints(1, -1, numHeads + 2 * kvHeads, headSize)])],
      { perm: [0, 2, 1, 3] },
    );
    let [qk, v] = ops.pair('Split', [heads, ops.ints(numHeads + kvHeads, kvHeads)], { axis: 1 });
    if (qkNorm === 'head') {
      const ones = this.#g.constant('float32', [headSize], new Float32Array(headSize).fill(1));
      const normed = this.#op('SimplifiedLayerNormalization', [qk, ones], {
        axis: -1,
        stash_type: 1,
        ...this.#epsilon,
      });
      qk = this.#op('Mul', [normed, this.#weight(`l${l}.qkNorm`)]);
    }
    const rotated = rope.unrotated?.includes(l)
      ? qk
      : this.#op('RotaryEmbedding', [qk, this.#firstRow, ...this.#anglesOf(l)], {}, MS);
    const [q, k] = ops.pair('Split', [rotated, ops.ints(numHeads, kvHeads)], { axis: 1 });
    return this.#attention.attend(q, k, v, l);
  }

  #anglesOf(l: number): readonly [string, string] {
    return this.#local && this.#config.sliding?.layers.includes(l) ? this.#local : [this.#cos, this.#sin];
  }

  /** Queries and keys of all heads of [n, (numHeads + 2 * kvHeads) * headSize] become their norms. */
  #normedWhole(projected: string, l: number): string {
    const { numHeads, kvHeads, headSize } = this.#config;
    const widths = this.#ops.ints(numHeads * headSize, kvHeads * headSize, kvHeads * headSize);
    const [q, k, v] = this.#g.node('Split', [projected, widths], 3, { axis: -1 }) as [string, string, string];
    return this.#op('Concat', [this.#norm(q, `l${l}.qNorm`), this.#norm(k, `l${l}.kNorm`), v], { axis: -1 });
  }

  /** Adds the output projection of layer l, its feed-forward layers, and the norm of the next layer. */
  #feedForward(mixed: string, l: number): void {
    const { outputBias, experts, numLayers, norms } = this.#config;
    const ops = this.#ops;
    const output = ops.linear(mixed, `l${l}.o`, outputBias ? `l${l}.oBias` : undefined);
    this.#addAndNorm(output, `l${l}.norm1After`, norms === 'after' ? null : `l${l}.norm2`);
    const next = norms === 'after' ? null : `l${l + 1}.norm1`;
    const down = experts?.layers.includes(l) ? mixExperts(ops, this.#x, experts, l) : this.#down(l);
    this.#addAndNorm(down, `l${l}.norm2After`, l === numLayers - 1 ? 'norm' : next);
  }

  #down(l: number): string {
    const hidden = this.#config.isGpt ? this.#activated(l) : this.#gated(l);
    return this.#ops.layer(hidden, `l${l}.down`, this.#config.ffnBias ? `l${l}.downBias` : undefined);
  }

  #activated(l: number): Rows {
    const up = this.#ops.linear(this.#x, `l${l}.up`, this.#config.ffnBias ? `l${l}.upBias` : undefined);
    return this.#ops.rows(this.#op('FastGelu', [up], {}, MS), `l${l}.down`);
  }

  #gated(l: number): Rows {
    const { ffnBias } = this.#config;
    const ops = this.#ops;
    const [gateName, upName, downName] = [`l${l}.gate`, `l${l}.up`, `l${l}.down`];
    const bias = (name: string): string | undefined => (ffnBias ? `${name}Bias` : undefined);
    const rows = ops.rows(this.#x, gateName);
    const gateInput = ops.layer(rows, gateName, bias(gateName));
    const gate =
      this.#config.gate === 'gelu'
        ? this.#op('FastGelu', [gateInput], {}, MS)
        : this.#op('QuickGelu', [gateInput], { alpha: { float: 1 } }, MS);
    // Without a bias, the scale of a row is applied after the codes of the next layer, which do not depend on it. This
    // saves a pass over wide rows.
    const [up, factor] = ffnBias
      ? [ops.layer(rows, upName, bias(upName)), null]
      : [ops.product(rows, upName), rows.scale];
    return ops.rows(this.#op('Mul', [gate, up]), downName, factor);
  }

  /**
   * Adds x to the residual stream, with norms after layers its norm `after`. #x becomes the norm `before` of the sum;
   * null: the sum itself.
   */
  #addAndNorm(x: string, after: string, before: string | null): void {
    const { isGpt, norms } = this.#config;
    const added = norms === 'before' ? x : this.#norm(x, after);
    if (before === null) {
      this.#skip = this.#op('Add', [added, this.#skip]);
      this.#x = this.#skip;
      return;
    }
    const id = `r${this.#numSums++}`;
    this.#g.node(
      isGpt ? 'SkipLayerNormalization' : 'SkipSimplifiedLayerNormalization',
      [added, this.#skip, this.#weight(before), ...(isGpt ? [this.#weight(`${before}Bias`)] : [])],
      [id, '', '', `${id}s`],
      this.#epsilon,
      MS,
    );
    this.#x = id;
    this.#skip = `${id}s`;
  }

  /** After the last attention, only rows that need logits are computed. Inside a prompt there are none. */
  #logits(last: string): void {
    const { numLayers, vocabSize, softcaps } = this.#config;
    const g = this.#g;
    const logits = { type: 'float32', dims: ['S', vocabSize] } as const;
    const compute = (): string[] => {
      this.#skip = this.#op('Gather', [this.#skip, this.#logitRows]);
      this.#feedForward(this.#op('Gather', [last, this.#logitRows]), numLayers - 1);
      return [this.#ops.capped(this.#ops.linear(this.#x, 'head'), softcaps.logits)];
    };
    g.conditional(g.input(FEEDS.hasLogits, 'bool', []), [FETCHES.logits], [logits], compute, () => [
      this.#op('Identity', [g.constant('float32', [0, vocabSize], new Float32Array(0))]),
    ]);
    g.output(FETCHES.logits, logits.type, logits.dims);
  }

  /** Adds the outputs: new rows in the layout of KvRows, and with an int8 pool scales, attention and queries. */
  #outputs(): void {
    const { numLayers, numHeads, kvHeads, headSize } = this.#config;
    const { halves } = this.#ops;
    const g = this.#g;
    const rows = this.#op('Concat', this.#attention.newRows, { axis: 0 });
    const [keys] = g.node('Split', [rows, halves], ['allKeys', FETCHES.values], { axis: 1 });
    g.node('Transpose', [keys!], [FETCHES.keys], { perm: [0, 1, 3, 2] });
    g.output(FETCHES.keys, this.#kv, [numLayers, kvHeads, headSize, 'T']);
    g.output(FETCHES.values, this.#kv, [numLayers, kvHeads, 'T', headSize]);
    if (!this.#int8) return;
    const scales = this.#op('Concat', this.#int8.newScales, { axis: 0 });
    g.node('Split', [scales, halves], [FETCHES.keyScales, FETCHES.valueScales], { axis: 1 });
    g.output(FETCHES.keyScales, 'float32', [numLayers, kvHeads, 1, 'T']);
    g.output(FETCHES.valueScales, 'float32', [numLayers, kvHeads, 1, 'T']);
    g.node('Concat', this.#int8.received, [RECEIVED], { axis: 0 });
    g.output(RECEIVED, 'float32', ['M', kvHeads, 'A']);
    g.node('Concat', this.#int8.queries, [QUERIES], { axis: 0 });
    g.output(QUERIES, 'float32', [numLayers, numHeads, 'Q1', headSize]);
  }
}
