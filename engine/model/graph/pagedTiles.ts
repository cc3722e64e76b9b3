/**
 * The paged lane in tiles, for many tokens behind a long context: the same arithmetic as all at once, one page of the pool
 * after the other, so that what is between the operators stays in the processor's cache. Only the scores of all pages are kept,
 * because the largest of a row has to be known before its codes. A token's result has the bits that it has all at once: the
 * largest is the same, sums of products are integers, and sums of powers are in float64, whose order a float32 hardly ever shows.
 */
import { type CodedRows, type GraphOps, MS } from './graphOps.ts';
import { DataType, type DataTypeName, type InnerValue } from './onnxWriter.ts';
import { biasCoefficients, factorOf, mixedOf, ownRows, powersOf, shareCodes, TINY } from './pagedLane.ts';

/** Names of the inputs that it takes, see stepGraph. */
export interface TileInputs {
  /** float32 [N, 1, W, L], the pages' part of the mask, and [1, 1, W, W], the rest. */
  readonly pageMasks: string;
  readonly ownMask: string;
  /** As of the lane. */
  readonly scoresShape: string;
  readonly rowsShape: string;
  /** float32 [N, headSize, L] and [headSize, W], where the layer's keys are coded without their bias; otherwise null. */
  readonly rotations: { readonly ofPages: string; readonly ofTokens: string } | null;
}

const float = (...dims: (number | string)[]): InnerValue => ({ type: 'float32', dims });

/**
 * What a page costs in tiles for being computed by itself, and what it saves, balance from here on: scores of a page, and of all.
 * Measured in the shape of Qwen2.5-0.5B (14 heads) on two processors of an EPYC with 1 MB of L2 each, all at once over in tiles: 16 tokens
 * 0.9 behind 7,680; 32 tokens 1.0 behind 2,048, 1.7 behind 7,680; 64 tokens 1.5 and 2.3 (suite `engine`, group `tiles`).
 */
const MIN_OF_PAGE = 90_000;
const MIN_OF_ALL = 1_400_000;

/** Whether a step of so many tokens is faster in tiles of `pageSlots`, of P columns in all. */
export function inTiles(numHeads: number, tokens: number, columns: number, pageSlots: number): boolean {
  return (
    columns > pageSlots && numHeads * tokens * pageSlots >= MIN_OF_PAGE && numHeads * tokens * columns >= MIN_OF_ALL
  );
}

/** heads, the queries [1, numHeads, W, headSize], and the tokens' own rows -> [W, numHeads * headSize]. */
export function pagedTiles(ops: GraphOps, inputs: TileInputs, heads: string, own: CodedRows, l: number): string {
  const { g } = ops;
  const { numHeads, kvHeads, headSize } = ops.config;
  const op: GraphOps['op'] = (...node) => ops.op(...node);
  const ints = (...values: number[]) => ops.ints(...values);
  const { scoresShape, pageMasks, ownMask } = inputs;
  const groupSize = numHeads / kvHeads;
  const rows = ownRows(ops, own);
  const byHead = (x: string, ...shape: [number, number]): string => op('Reshape', [x, ints(kvHeads, ...shape)]);

  const q = op('Reshape', [heads, ints(1, kvHeads, -1, headSize)]);
  const query = ops.codeRows(q);
  const queryCodes = byHead(query.codes, -1, headSize);
  const queryMax = byHead(query.rowMax, -1, 1);
  const coefficients =
    inputs.rotations === null ? null : op('Reshape', [biasCoefficients(ops, q, l), ints(-1, headSize)]);

  /** Scores of n columns under the mask, [kvHeads, groupSize, W, n]: keys [kvHeads, headSize, n], scales [kvHeads, 1, n], mask [1, W, n], turns [headSize, n]. */
  const visibleOf = (keys: string, scales: string, mask: string, turns: string | undefined): string => {
    let scores = op('Mul', [
      op('MatMulIntegerToFloat', [queryCodes, keys, ops.step, scales, ops.zero], {}, MS),
      queryMax,
    ]);
    if (turns !== undefined)
      scores = op('Add', [scores, op('Reshape', [op('MatMul', [coefficients!, turns]), inputs.rowsShape])]);
    return op('Add', [op('Reshape', [scores, scoresShape]), mask]);
  };
  const most = (x: string): string => op('ReduceMax', [x, ops.lastAxis], { keepdims: 1 });
  /** Scales of values, [kvHeads, 1, n], as the mask has columns. */
  const scalesOf = (x: string): string => op('Reshape', [x, ints(kvHeads, 1, 1, -1)]);

  const ownScales = scalesOf(rows.valueScales);
  const ownVisible = visibleOf(
    byHead(rows.keys, headSize, -1),
    byHead(rows.keyScales, 1, -1),
    ownMask,
    inputs.rotations?.ofTokens,
  );
  const page = (name: string, type: DataTypeName, ...dims: (number | string)[]): InnerValue & { name: string } => ({
    name,
    type,
    dims,
  });
  const scalesPage = page(`vs${l}`, 'float32', kvHeads, 1, 'L');
  const [largestScore, largest, visible] = g.scan(
    [most(ownVisible), op('Max', [most(op('Add', [ownScales, ownMask])), g.float(TINY)])],
    [
      page(`k${l}`, 'int8', kvHeads, headSize, 'L'),
      page(`ks${l}`, 'float32', kvHeads, 1, 'L'),
      scalesPage,
      page(pageMasks, 'float32', 1, 'W', 'L'),
      ...(inputs.rotations ? [page(inputs.rotations.ofPages, 'float32', headSize, 'L')] : []),
    ],
    [float(kvHeads, groupSize, 'W', 1), float(kvHeads, 1, 'W', 1), float(kvHeads, groupSize, 'W', 'L')],
    ([score, scale], [keys, keyScales, valueScales, mask, turns]) => {
      const scores = visibleOf(keys!, keyScales!, mask!, turns);
      return [
        op('Max', [score!, most(scores)]),
        op('Max', [scale!, most(op('Add', [scalesOf(valueScales!), mask!]))]),
        scores,
      ];
    },
  ) as [string, string, string];

  /** What n columns add: to the sum of powers, and to both codes' sums of products with values [kvHeads, n, headSize]. */
  const addTo = (
    sum: string | null,
    products: string | null,
    scores: string,
    valueScales: string,
    values: string,
  ): [string, string] => {
    const { powers, sum: ofColumns } = powersOf(ops, scores, largestScore);
    const { high, low } = shareCodes(
      ops,
      op('Reshape', [op('Mul', [powers, op('Div', [valueScales, largest])]), inputs.rowsShape]),
    );
    const product = op('MatMulInteger', [op('Concat', [high, low], { axis: 2 }), values, ops.zero]);
    return [
      sum === null ? ofColumns : op('Add', [sum, ofColumns]),
      products === null ? product : op('Add', [products, product]),
    ];
  };
  const [sum, products] = g.scan(
    addTo(null, null, ownVisible, ownScales, byHead(rows.values, -1, headSize)),
    [page(visible, 'float32', kvHeads, groupSize, 'W', 'L'), scalesPage, page(`v${l}`, 'int8', kvHeads, 'L', headSize)],
    [
      { type: 'float64', dims: [kvHeads, groupSize, 'W', 1] },
      { type: 'int32', dims: [1, kvHeads, 'R', headSize] },
    ],
    ([sum, products], [scores, valueScales, values]) =>
      addTo(sum!, products!, scores!, scalesOf(valueScales!), values!),
  ) as [string, string];
  return mixedOf(ops, products, factorOf(ops, largest, op('Cast', [sum], { to: DataType.float32 })));
}
