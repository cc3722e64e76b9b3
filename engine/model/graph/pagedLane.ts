/**
 * The paged lane of the step graph: attention of a few tokens of many sequences, in integers over the KV pool, under a
 * mask. Does not choose between shared and gathered attention.
 */
import { type CodedRows, type GraphOps, MS } from './graphOps.ts';
import { DataType } from './onnxWriter.ts';

// The new tokens of a step go through the same integer products as the pool, with codes of queries and probabilities,
// because the result must not depend on whether the context of a token came in this step or before.
// Shared attention: all tokens attend to all pages of the step, with one product per page. Best for one sequence, and
// for many that share a prefix. Gathered attention: each token has a list of Q pages. They must be copied together, but
// no token pays for the pages of others. Tiles: shared attention, page by page (see pagedTiles.ts). All three give the
// same bits.

/** Lower bound of the largest scale of values, for a token that sees only values of zeros. */
export const TINY = 1e-30;

/** Names of the feeds of the paged lane (see feeds.ts). */
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
   * float32 [1, 1, headSize, P + W], gathered [W, 1, headSize, P + W]. Null unless the keys of the layer are coded
   * without their bias.
   */
  readonly rotations: string | null;
}

/** Unnormalised probabilities. */
interface Powers {
  /** [a, b, c, P + W] and [a, b, c, 1]: powers / total is the probability. */
  readonly powers: string;
  readonly total: string;
}

/** Codes of the probabilities, and the factor for sums of products with them. */
interface Shares extends Powers {
  /** In the shape of the scores: the first code, and the code of the rest that the first leaves. */
  readonly high: string;
  readonly low: string;
  /** [.., 1]. */
  readonly factor: string;
}

/**
 * Shared attention. `heads`: the queries [1, numHeads, W, headSize]. `own`: the rows of the new tokens.
 * Returns [W, numHeads * headSize].
 */
export function pagedLaneShared(ops: GraphOps, inputs: PagedInputs, heads: string, own: CodedRows, l: number): string {
  return attendShared(ops, inputs, heads, own, l).mixed;
}

/**
 * Shared attention, and float32 [2, kvHeads, P + W]: the largest attention that each column receives from any query,
 * and the sum over all queries (see ReceivedAttention).
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
  // Scores by page, [N, kvHeads, groupSize * W, L], are put side by side. The rows themselves are not copied.
  const past = op('Reshape', [
    op('Transpose', [keyProduct(ops, query.codes, `k${l}`, `ks${l}`)], { perm: [1, 2, 0, 3] }),
    inputs.pastShape,
  ]);
  let scores = scoresOf(ops, query, past, rows);
  if (inputs.rotations !== null) {
    const coefficients = op('Reshape', [biasCoefficients(ops, q, l), ints(1, 1, -1, headSize)]);
    const bias = op('MatMul', [coefficients, inputs.rotations]);
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
  // Both codes are rows of one product, because the runtime packs the values for each product.
  const [pastCodes, ownCodes] = ops.pair('Split', [op('Concat', [high, low], { axis: 2 }), inputs.split], { axis: 3 });
  const byPage = op('Transpose', [op('Reshape', [pastCodes, inputs.pagesShape])], { perm: [2, 0, 1, 3] });
  const pastSums = op('ReduceSum', [op('MatMulInteger', [byPage, `v${l}`, ops.zero]), ints(0)], { keepdims: 1 });
  const sums = op('Add', [pastSums, op('MatMulInteger', [ownCodes, rows.values, ops.zero])]);
  return { mixed: mixedOf(ops, sums, factor), ...powers };
}

/** Scores of the past columns, which are there already, and of the step's own. */
function scoresOf(
  ops: GraphOps,
  query: ReturnType<GraphOps['codeRows']>,
  past: string,
  rows: ReturnType<typeof ownRows>,
): string {
  const own = keyProduct(ops, query.codes, rows.keys, rows.keyScales);
  return ops.op('Mul', [ops.op('Concat', [past, own], { axis: 3 }), query.rowMax]);
}

/** Gathered attention: as pagedLaneShared, with Q pages per token and P = Q * L columns in the mask. */
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
  let scores = scoresOf(ops, query, past, rows);
  if (inputs.rotations !== null) {
    const coefficients = op('Reshape', [biasCoefficients(ops, q, l), ints(-1, 1, numHeads, headSize)]);
    const bias = op('MatMul', [coefficients, inputs.rotations]);
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

/**
 * The rows of the new tokens: keys int8 [1, kvHeads, headSize, W], values [1, kvHeads, W, headSize], scales [1,
 * kvHeads, 1, W].
 */
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
 * q [a, kvHeads, n, headSize] -> the coefficients of the rotations for the key bias (see keyBiasMatrix). Always
 * multiplies at least two rows, because the runtime has another kernel for one row, with other last bits.
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
 * Codes the probabilities of scores [a, b, c, n] under the mask, relative to the scales of the values. `shape`: of the
 * codes. Null keeps the shape.
 */
function shares(ops: GraphOps, scores: string, mask: string, valueScales: string, shape: string | null): Shares {
  const op: GraphOps['op'] = (...node) => ops.op(...node);
  const visible = op('Add', [ops.capped(scores, ops.config.softcaps.scores), mask]);
  const { powers, sum } = powersOf(ops, visible, op('ReduceMax', [visible, ops.lastAxis], { keepdims: 1 }));
  const total = op('Cast', [sum], { to: DataType.float32 });
  // The scales of V are on the summed axis, so they are multiplied into the probabilities. They are relative to the
  // largest scale that the token sees, so that no share is above 1. This costs a pass over one query head per group.
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
 * exp(visible - largest), and its sum over the columns in float64. The result of this softmax does not depend on the
 * order of the slots: it sums in float64, whose last bits hardly ever change a float32, adds products as integers, and
 * divides by the sum at the end. With the operator of the runtime, last bits changed codes later on, and 1-2% of the
 * tokens differed between chunk sizes. With this one none of 8,640 rows differed.
 */
export function powersOf(ops: GraphOps, visible: string, largest: string): { powers: string; sum: string } {
  const powers = ops.op('Exp', [ops.op('Sub', [visible, largest])]);
  return {
    powers,
    sum: ops.op('ReduceSum', [ops.op('Cast', [powers], { to: DataType.float64 }), ops.lastAxis], { keepdims: 1 }),
  };
}

/** Two codes per share. The second codes the rest that the first leaves, so that many small shares are not lost. */
export function shareCodes(ops: GraphOps, shares: string): { high: string; low: string } {
  const { g, levels, step, zero } = ops;
  const high = ops.op('QuantizeLinear', [shares, step, zero]);
  const rest = ops.op('Sub', [shares, ops.op('DequantizeLinear', [high, step, zero])]);
  return { high, low: ops.op('QuantizeLinear', [rest, g.float(1 / levels / (2 * levels)), zero]) };
}

/** The factor for sums of products with the codes of a token: its largest scale of values / the sum of its powers. */
export function factorOf(ops: GraphOps, largest: string, total: string): string {
  return ops.op('Div', [ops.op('Mul', [largest, ops.step]), total]);
}

/**
 * int32 sums [1, kvHeads, 2 * groupSize * W, headSize] of the products of both codes, and their factors
 * -> [W, numHeads * headSize].
 */
export function mixedOf(ops: GraphOps, sums: string, factor: string): string {
  const { numHeads, kvHeads, headSize } = ops.config;
  const mixed = ops.op('Mul', [joined(ops, sums), ops.op('Reshape', [factor, ops.ints(1, kvHeads, -1, 1)])]);
  return ops.joinHeads(ops.op('Reshape', [mixed, ops.ints(1, numHeads, -1, headSize)]));
}

/** Adds the int32 sums of both codes, which are halves of axis 2, as float32. */
function joined(ops: GraphOps, sums: string): string {
  const [high, low] = ops.pair('Split', [ops.op('Cast', [sums], { to: DataType.float32 })], {
    axis: 2,
    num_outputs: 2,
  });
  return ops.op('Add', [high, ops.op('Mul', [low, ops.g.float(1 / (2 * ops.levels))])]);
}
