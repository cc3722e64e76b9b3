/**
 * Paged lane of the step graph: attention of a few tokens of many sequences, in integers over the KV pool, under a
 * mask.
 *
 * The own tokens of a step go through the same integer products as the pool, with codes of queries and probabilities.
 * What a token sees must not depend on whether its context came in this step or before.
 * Shared: all tokens attend to all pages of the step, with one product per page. Best for one sequence and for many
 * that share a prefix. Gathered: each token has its own list of Q pages, which are copied together, but nobody pays
 * for the pages of others. In tiles: shared, one page after the other (see pagedTiles). The results have the same
 * bits.
 */
import { type CodedRows, type GraphOps, MS } from './graphOps.ts';
import { DataType } from './onnxWriter.ts';

/** Lower bound of the largest value scale, for a token that sees only values of zeros. */
export const TINY = 1e-30;

/** Names of the feeds of the paged lane (see feeds). */
export interface PagedInputs {
  readonly mask: string;
  readonly scoresShape: string;
  readonly rowsShape: string;
  readonly split: string;
  readonly pastShape: string;
  readonly pagesShape: string;
  readonly tokenPages: string;
  readonly ownShape: string;
  /**
   * float32 [1, 1, headSize, P + W], gathered [W, 1, headSize, P + W], if the layer's keys are coded without their
   * bias, otherwise null.
   */
  readonly rotations: string | null;
}

/** Unnormalised probabilities. */
interface Powers {
  /** [a, b, c, P + W] and [a, b, c, 1]: powers / total is the probability. */
  readonly powers: string;
  readonly total: string;
}

/** Codes of the probabilities, and the factor of sums of products with them. */
interface Shares extends Powers {
  /** Shaped as the scores: the first code, and a second code of the rest that the first leaves. */
  readonly high: string;
  readonly low: string;
  /** [.., 1]. */
  readonly factor: string;
}

/**
 * Shared attention. `heads`: the queries [1, numHeads, W, headSize]. `own`: the rows of the step's tokens. Returns [W,
 * numHeads * headSize].
 */
export function pagedLaneShared(ops: GraphOps, inputs: PagedInputs, heads: string, own: CodedRows, l: number): string {
  return attendShared(ops, inputs, heads, own, l).mixed;
}

/**
 * The same, and float32 [2, kvHeads, P + W]: the largest attention that each column receives of any query, and the sum
 * over all queries (see ReceivedAttention).
 */
export function pagedLaneMeasured(
  ops: GraphOps,
  inputs: PagedInputs,
  heads: string,
  own: CodedRows,
  l: number,
): [string, string] {
  const { mixed, powers, total } = attendShared(ops, inputs, heads, own, l);
  const probabilities = ops.op('Div', [powers, total]);
  const [most, sum] = ['ReduceMax', 'ReduceSum'].map((reduce) =>
    ops.op('Unsqueeze', [ops.op(reduce, [probabilities, ops.ints(1, 2)], { keepdims: 0 }), ops.ints(0)]),
  );
  return [mixed, ops.op('Concat', [most!, sum!], { axis: 0 })];
}

function attendShared(
  ops: GraphOps,
  inputs: PagedInputs,
  heads: string,
  own: CodedRows,
  l: number,
): Powers & { mixed: string } {
  const { kvHeads, headSize } = ops.config;
  const op: GraphOps['op'] = (...node) => ops.op(...node);
  const ints = (...values: number[]) => ops.ints(...values);
  const rows = ownRows(ops, own);

  // The query heads of a group are rows of one product, so each KV head is read once.
  const q = op('Reshape', [heads, ints(1, kvHeads, -1, headSize)]);
  const query = ops.codeRows(q);
  // Page by page, [N, kvHeads, groupSize * W, L], then side by side. The rows themselves are not copied.
  const past = op('Reshape', [
    op('Transpose', [keyProduct(ops, query.codes, `k${l}`, `ks${l}`)], { perm: [1, 2, 0, 3] }),
    inputs.pastShape,
  ]);
  let scores = op('Mul', [
    op('Concat', [past, keyProduct(ops, query.codes, rows.keys, rows.keyScales)], { axis: 3 }),
    query.rowMax,
  ]);
  if (inputs.rotations !== null) {
    const bias = op('MatMul', [
      op('Reshape', [biasCoefficients(ops, q, l), ints(1, 1, -1, headSize)]),
      inputs.rotations,
    ]);
    scores = op('Add', [scores, op('Reshape', [bias, inputs.rowsShape])]);
  }

  const pastScales = op('Reshape', [op('Transpose', [`vs${l}`], { perm: [2, 1, 0, 3] }), ints(1, kvHeads, 1, -1)]);
  const valueScales = op('Reshape', [
    op('Concat', [pastScales, rows.valueScales], { axis: 3 }),
    ints(kvHeads, 1, 1, -1),
  ]);
  const { high, low, factor, ...powers } = shares(
    ops,
    op('Reshape', [scores, inputs.scoresShape]),
    inputs.mask,
    valueScales,
    inputs.rowsShape,
  );
  // Both codes are rows of one product, because the runtime packs the values again for each product.
  const [pastCodes, ownCodes] = ops.pair('Split', [op('Concat', [high, low], { axis: 2 }), inputs.split], { axis: 3 });
  const byPage = op('Transpose', [op('Reshape', [pastCodes, inputs.pagesShape])], { perm: [2, 0, 1, 3] });
  const pastSums = op('ReduceSum', [op('MatMulInteger', [byPage, `v${l}`, ops.zero]), ints(0)], { keepdims: 1 });
  const sums = op('Add', [pastSums, op('MatMulInteger', [ownCodes, rows.values, ops.zero])]);
  return { mixed: mixedOf(ops, sums, factor), ...powers };
}

/** Gathered attention: the same with Q pages per token, P = Q * L columns in the mask. */
export function pagedLaneGathered(
  ops: GraphOps,
  inputs: PagedInputs,
  heads: string,
  own: CodedRows,
  l: number,
): string {
  const { numHeads, kvHeads, headSize } = ops.config;
  const op: GraphOps['op'] = (...node) => ops.op(...node);
  const ints = (...values: number[]) => ops.ints(...values);
  const rows = ownRows(ops, own);
  const ofTokens = (pages: string): string => op('Gather', [pages, inputs.tokenPages], { axis: 0 });
  /** [W, Q, n, m, L] -> [W, n, m, P]. */
  const sideBySide = (x: string): string =>
    op('Reshape', [op('Transpose', [x], { perm: [0, 2, 3, 1, 4] }), inputs.pastShape]);

  const q = op('Reshape', [
    op('Transpose', [heads], { perm: [2, 0, 1, 3] }),
    ints(-1, kvHeads, numHeads / kvHeads, headSize),
  ]);
  const query = ops.codeRows(q);
  const past = sideBySide(
    keyProduct(ops, op('Unsqueeze', [query.codes, ints(1)]), ofTokens(`k${l}`), ofTokens(`ks${l}`)),
  );
  let scores = op('Mul', [
    op('Concat', [past, keyProduct(ops, query.codes, rows.keys, rows.keyScales)], { axis: 3 }),
    query.rowMax,
  ]);
  if (inputs.rotations !== null) {
    const bias = op('MatMul', [
      op('Reshape', [biasCoefficients(ops, q, l), ints(-1, 1, numHeads, headSize)]),
      inputs.rotations,
    ]);
    scores = op('Add', [scores, op('Reshape', [bias, ints(0, kvHeads, numHeads / kvHeads, -1)])]);
  }

  const valueScales = op(
    'Concat',
    [sideBySide(ofTokens(`vs${l}`)), op('Expand', [rows.valueScales, inputs.ownShape])],
    {
      axis: 3,
    },
  );
  const { high, low, factor } = shares(ops, scores, inputs.mask, valueScales, null);
  const [pastCodes, ownCodes] = ops.pair('Split', [op('Concat', [high, low], { axis: 2 }), inputs.split], { axis: 3 });
  const byPage = op('Transpose', [op('Reshape', [pastCodes, inputs.pagesShape])], { perm: [0, 3, 1, 2, 4] });
  const pastSums = op('ReduceSum', [op('MatMulInteger', [byPage, ofTokens(`v${l}`), ops.zero]), ints(1)], {
    keepdims: 0,
  });
  const sums = op('Add', [pastSums, op('MatMulInteger', [ownCodes, rows.values, ops.zero])]);
  return op('Reshape', [op('Mul', [joined(ops, sums), factor]), ints(-1, numHeads * headSize)]);
}

/** keys int8 [1, kvHeads, headSize, W], values [1, kvHeads, W, headSize], scales [1, kvHeads, 1, W]. */
export function ownRows(
  ops: GraphOps,
  { codes, scales }: CodedRows,
): { keys: string; values: string; keyScales: string; valueScales: string } {
  const { kvHeads } = ops.config;
  const [keys, values] = ops.pair('Split', [codes, ops.halves], { axis: 1 });
  const [keyScales, valueScales] = ops.pair(
    'Split',
    [ops.op('Reshape', [scales, ops.ints(1, 2 * kvHeads, 1, -1)]), ops.halves],
    { axis: 1 },
  );
  return { keys: ops.op('Transpose', [keys], { perm: [0, 1, 3, 2] }), values, keyScales, valueScales };
}

/**
 * q [a, kvHeads, n, headSize] -> the coefficients of the rotations for the key bias (see keyBiasMatrix). The runtime
 * has another kernel for a product of one row, with other last bits, so there are always at least two rows.
 */
export function biasCoefficients(ops: GraphOps, q: string, l: number): string {
  const product = (rows: string): string => ops.op('MatMul', [rows, ops.weight(`l${l}.keyBias`)]);
  if (ops.config.numHeads > ops.config.kvHeads) return product(q);
  return ops.pair('Split', [product(ops.op('Concat', [q, q], { axis: 2 }))], { axis: 2, num_outputs: 2 })[0];
}

function keyProduct(ops: GraphOps, codes: string, keys: string, scales: string): string {
  return ops.op('MatMulIntegerToFloat', [codes, keys, ops.step, scales, ops.zero], {}, MS);
}

/**
 * Codes the probabilities of scores [a, b, c, n] under the mask, relative to the scales of the values. `shape`, if
 * any, is that of the codes.
 */
function shares(ops: GraphOps, scores: string, mask: string, valueScales: string, shape: string | null): Shares {
  const op: GraphOps['op'] = (...node) => ops.op(...node);
  const visible = op('Add', [scores, mask]);
  const { powers, sum } = powersOf(ops, visible, op('ReduceMax', [visible, ops.lastAxis], { keepdims: 1 }));
  const total = op('Cast', [sum], { to: DataType.float32 });
  // The scales of V belong to the summed axis. So they go into the probabilities, relative to the largest scale that
  // the token sees: then no share is above 1. This takes a pass over one query head of each group.
  const largest = op('Max', [
    op('ReduceMax', [op('Add', [valueScales, mask]), ops.lastAxis], { keepdims: 1 }),
    ops.g.float(TINY),
  ]);
  const relative = op('Mul', [powers, op('Div', [valueScales, largest])]);
  return {
    ...shareCodes(ops, shape === null ? relative : op('Reshape', [relative, shape])),
    factor: factorOf(ops, largest, total),
    powers,
    total,
  };
}

/**
 * exp(visible - largest), and its sum over the columns in float64. This softmax does not depend on the order of the
 * slots: it divides by the sum at the very end, sums in float64, whose last bits hardly ever show in a float32, and
 * adds the products as integers. Otherwise last bits would tip codes downstream: with the plain operator 1-2 % of the
 * tokens differed between chunk sizes, with this none in 8,640 rows.
 */
export function powersOf(ops: GraphOps, visible: string, largest: string): { powers: string; sum: string } {
  const powers = ops.op('Exp', [ops.op('Sub', [visible, largest])]);
  return {
    powers,
    sum: ops.op('ReduceSum', [ops.op('Cast', [powers], { to: DataType.float64 }), ops.lastAxis], { keepdims: 1 }),
  };
}

/**
 * Two codes per share. The second one codes the rest that the first leaves, so that a long flat tail of small shares
 * survives.
 */
export function shareCodes(ops: GraphOps, shares: string): { high: string; low: string } {
  const { g, levels, step, zero } = ops;
  const high = ops.op('QuantizeLinear', [shares, step, zero]);
  const rest = ops.op('Sub', [shares, ops.op('DequantizeLinear', [high, step, zero])]);
  return { high, low: ops.op('QuantizeLinear', [rest, g.float(1 / levels / (2 * levels)), zero]) };
}

/**
 * The factor of sums of products with the codes of a token: the largest scale of the values, divided by the sum of its
 * powers.
 */
export function factorOf(ops: GraphOps, largest: string, total: string): string {
  return ops.op('Div', [ops.op('Mul', [largest, ops.step]), total]);
}

/**
 * int32 sums [1, kvHeads, 2 * groupSize * W, headSize] of the products of both codes, and their factors -> [W,
 * numHeads * headSize].
 */
export function mixedOf(ops: GraphOps, sums: string, factor: string): string {
  const { numHeads, kvHeads, headSize } = ops.config;
  const mixed = ops.op('Mul', [joined(ops, sums), ops.op('Reshape', [factor, ops.ints(1, kvHeads, -1, 1)])]);
  return ops.joinHeads(ops.op('Reshape', [mixed, ops.ints(1, numHeads, -1, headSize)]));
}

/** int32 sums of the products of both codes, along axis 2 -> float32, half as many. */
function joined(ops: GraphOps, sums: string): string {
  const [high, low] = ops.pair('Split', [ops.op('Cast', [sums], { to: DataType.float32 })], {
    axis: 2,
    num_outputs: 2,
  });
  return ops.op('Add', [high, ops.op('Mul', [low, ops.g.float(1 / (2 * ops.levels))])]);
}
