/**
 * Window lane of the step graph: attention of a few tokens of many sequences in integers over the KV window, under one mask.
 * The step's own tokens go through the same integer products as the window's, query and probability codes included: what
 * a token sees must not depend on whether its context came in this step or before.
 */
import { type CodedRows, type GraphOps, MS } from './graphOps.ts';
import { DataType } from './onnxWriter.ts';

/** Names of the feeds that it takes, see stepGraph. */
export interface WindowFeeds {
  readonly mask: string;
  readonly scoresShape: string;
  readonly rowsShape: string;
  readonly split: string;
  readonly pastShape: string;
  readonly pages: string;
  /** float32 [headSize, P + W], where the layer's keys are coded without their bias; otherwise null. */
  readonly turns: string | null;
}

/** heads, the queries [1, numHeads, W, headSize], and the tokens' own rows -> [W, numHeads * headSize]. */
export function windowLane(ops: GraphOps, feeds: WindowFeeds, heads: string, { codes, scales }: CodedRows, l: number): string {
  const { g, levels, step, zero } = ops;
  const { numHeads, kvHeads, headSize } = ops.config;
  const op: GraphOps['op'] = (...node) => ops.op(...node);
  const ints = (...values: number[]) => ops.ints(...values);

  // The query heads of a group are rows of one product, so each KV head is read once.
  const q = op('Reshape', [heads, ints(1, kvHeads, -1, headSize)]);
  const [ownKeys, ownValues] = ops.pair('Split', [codes, ops.halves], { axis: 1 });
  const [ownKeyScales, ownValueScales] = ops.pair('Split', [op('Reshape', [scales, ints(1, 2 * kvHeads, 1, -1)]), ops.halves], { axis: 1 });

  const query = ops.codeRows(q);
  const product = (rows: string, rowScales: string) => op('MatMulIntegerToFloat', [query.codes, rows, step, rowScales, zero], {}, MS);
  // Page by page, [N, kvHeads, groupSize * W, L], then side by side: the rows themselves are not copied.
  const past = op('Reshape', [op('Transpose', [product(`k${l}`, `ks${l}`)], { perm: [1, 2, 0, 3] }), feeds.pastShape]);
  const own = product(op('Transpose', [ownKeys], { perm: [0, 1, 3, 2] }), ownKeyScales);
  let scores = op('Mul', [op('Concat', [past, own], { axis: 3 }), query.rowMax]);
  if (feeds.turns !== null) scores = op('Add', [scores, op('MatMul', [op('MatMul', [q, ops.weight(`l${l}.keyBias`)]), feeds.turns])]);

  const visible = op('Add', [op('Reshape', [scores, feeds.scoresShape]), feeds.mask]);
  // A softmax whose result does not depend on the order of the slots: it divides by the sum at the very end, sums in
  // float64, and the products below are added as integers. Otherwise last bits would tip codes downstream: with the
  // plain operator 1-2 % of the tokens differed between chunk sizes, with this none in 8,640 rows.
  const powers = op('Exp', [op('Sub', [visible, op('ReduceMax', [visible, ops.lastAxis], { keepdims: 1 })])]);
  const total = op('Cast', [op('ReduceSum', [op('Cast', [powers], { to: DataType.float64 }), ops.lastAxis], { keepdims: 1 })], { to: DataType.float32 });
  // The scales of V belong to the summed axis, so they go into the probabilities, relative to the largest that the token
  // sees: then no share is above 1. [kvHeads, 1, W, P + W]: a pass over one query head of each group.
  const valueScales = op('Reshape', [op('Concat', [op('Reshape', [op('Transpose', [`vs${l}`], { perm: [2, 1, 0, 3] }), ints(1, kvHeads, 1, -1)]), ownValueScales], { axis: 3 }), ints(kvHeads, 1, 1, -1)]);
  const largest = op('Max', [op('ReduceMax', [op('Add', [valueScales, feeds.mask]), ops.lastAxis], { keepdims: 1 }), g.float(1e-30)]);
  const shares = op('Reshape', [op('Mul', [powers, op('Div', [valueScales, largest])]), feeds.rowsShape]);
  // Two codes per share, the second for what the first leaves: a long flat tail of small ones survives. Both are rows of
  // one product, because the runtime packs the values anew for each.
  const high = op('QuantizeLinear', [shares, step, zero]);
  const rest = op('Sub', [shares, op('DequantizeLinear', [high, step, zero])]);
  const low = op('QuantizeLinear', [rest, g.float(1 / levels / (2 * levels)), zero]);
  const [pastCodes, ownCodes] = ops.pair('Split', [op('Concat', [high, low], { axis: 2 }), feeds.split], { axis: 3 });
  const byPage = op('Transpose', [op('Reshape', [pastCodes, feeds.pages])], { perm: [2, 0, 1, 3] });
  const pastSums = op('ReduceSum', [op('MatMulInteger', [byPage, `v${l}`, zero]), ints(0)], { keepdims: 1 });
  const sums = op('Add', [pastSums, op('MatMulInteger', [ownCodes, ownValues, zero])]);
  const [highSum, lowSum] = ops.pair('Split', [op('Cast', [sums], { to: DataType.float32 })], { axis: 2, num_outputs: 2 });
  const mixed = op('Add', [highSum, op('Mul', [lowSum, g.float(1 / (2 * levels))])]);
  const factor = op('Reshape', [op('Div', [op('Mul', [largest, step]), total]), ints(1, kvHeads, -1, 1)]);
  return ops.joinHeads(op('Reshape', [op('Mul', [mixed, factor]), ints(1, numHeads, -1, headSize)]));
}
