/**
 * The step graph: one ragged step over all tokens [T] of all scheduled sequences, which share every linear layer; attention
 * goes by lane (see pagedLane, prefillLane). Precisions of weights and KV pool are independent; a float32 pool has
 * one lane. Owns the names and shapes of the feeds; does not read weights (see weightPlan) nor run anything (see runner).
 *
 * int8: int8 weights per output column; activations become 8-bit codes per row at run time, x = (code - zero) * max / K,
 * with K = 127. A row of zeros divides 0 by 0, but its codes are multiplied by max = 0 afterwards, so no guard is needed.
 * Attention is done alike: queries and probabilities are coded per row, K and V per token and head. The head is as in int4.
 * int4: weights in blocks of 4 bits, some of 8 (see weightPlan), activations in blocks of 8 bits, coded by the operator.
 */
import type { KvPrecision } from '../../protocol/tasks.ts';
import { GraphOps, MS } from './graphOps.ts';
import type { ModelConfig } from '../load/hfConfig.ts';
import { usesTurns } from '../load/keyBias.ts';
import { DataType, OnnxWriter } from './onnxWriter.ts';
import { prefillLane } from './prefillLane.ts';
import { rowsInMultiples, type WeightPlan } from '../load/weightPlan.ts';
import { pagedLane, pagedLaneGathered, pagedLaneMeasured } from './pagedLane.ts';
import { pagedTiles } from './pagedTiles.ts';

export interface StepGraphOptions {
  readonly kv: KvPrecision;
  /** Name of the weight file beside the graph. */
  readonly weightFile: string;
}

/**
 * Feeds besides the pool's and the scratch's. T tokens, first those of the prefill lane, then W of the paged lane; S rows
 * with logits; N pages of L slots, P together, at least one; C rows of scratch, at least one. A step without tokens in a lane does
 * not look at that lane's feeds.
 */
export const FEEDS = {
  /** int64 [T]. */
  ids: 'ids',
  /** float32 [T, headSize / 2], of the tokens' positions. */
  cos: 'cos',
  sin: 'sin',
  /** float32 [1, 1, W, P + W], apart [W, 1, 1, P + W]: 0 where a token may look, -Infinity elsewhere; pool slots first, then the new tokens. */
  mask: 'mask',
  /** int64 [S]: rows whose logits are wanted, and row 0 for those that fill them up. */
  sel: 'sel',
  /** bool: whether there are any. */
  hasLogits: 'hasLogits',
  // Where rows of the layers come in multiples (see rowsInMultiples; S is one there, and where rows of the head do):
  /** int64 [4] = 0, 0, n, 0 and 0, 0, -n, 0: n rows of zeros behind the T tokens' make such a multiple. */
  fill: 'fill',
  cut: 'cut',
  // Shapes of the paged lane; in brackets those where its tokens attend apart (see pagedLane), P = Q * L columns each.
  /** int64 [4] = kvHeads, groupSize, W, -1. */
  scoresShape: 'scoresShape',
  /** int64 [4] = 1, kvHeads, groupSize * W, -1. */
  rowsShape: 'rowsShape',
  /** int64 [2] = P, W. */
  split: 'split',
  /** int64 [4] = 1, kvHeads, groupSize * W, P (0, 0, 0, P: as they are). */
  pastShape: 'pastShape',
  /** int64 = kvHeads, -1, N, L (W, kvHeads, -1, Q, L). */
  pages: 'pages',
  // Apart:
  /** int64 [W, Q]: of the N pages those that each token's sequence lies in, and any that fill them up. */
  tokenPages: 'tokenPages',
  /** int64 [4] = W, 1, 1, 1. */
  ownShape: 'ownShape',
  /** float32 [N, headSize, L] and [headSize, W], only with the key-bias remedy: cos over sin of the tokens' positions. */
  windowTurns: 'windowTurns',
  newTurns: 'newTurns',
  // Of an int8 pool, whose graph has a prefill lane:
  /** bool: whether all tokens are in the paged lane and attend together, at once or in tiles; whether those in it attend apart. */
  together: 'together',
  tiles: 'tiles',
  apart: 'apart',
  /** bool: whether the tokens, all in the paged lane and of one sequence, say what attention each column receives. */
  measures: 'measures',
  /** int64 [n]: of the T tokens those whose queries are wanted. */
  queryRows: 'queryRows',
  /** bool: whether the lanes have tokens. */
  hasPrefill: 'hasPrefill',
  hasPool: 'hasPool',
  /** int64 [2] = T - W, W. */
  lanes: 'lanes',
  /** int32 [1] and scalar: rows that the lane's tokens attend to, less one; and that number. One row more than the prompt's: see prefillLane. */
  lastRow: 'lastRow',
  numRows: 'numRows',
} as const;

/**
 * logits [S, vocabSize] and the new rows in the layout of KvRows; the scales only with an int8 pool. The scratch of layer
 * l, keys and values float32 [1, kvHeads, C, headSize], is fed as `pk{l}`, `pv{l}`.
 */
export const FETCHES = {
  logits: 'logits',
  keys: 'keys',
  keyScales: 'keyScales',
  values: 'values',
  valueScales: 'valueScales',
} as const;

/** Of a step that measures, with an int8 pool: float32 [2 * numLayers, kvHeads, P + W], layer by layer (see pagedLaneMeasured). */
export const RECEIVED = 'received';

/** With an int8 pool: float32 [numLayers, numHeads, n, headSize], queries of n tokens as the products with keys have them, but for a key's bias. */
export const QUERIES = 'queries';

export function buildStepGraph(config: ModelConfig, plan: WeightPlan, options: StepGraphOptions): Uint8Array {
  const { numLayers, numHeads, kvHeads, headSize, vocabSize } = config;
  const int8Kv = options.kv === 'int8';
  const remedy = usesTurns(plan.biased, options.kv);
  const g = new OnnxWriter();
  const ops = new GraphOps(g, config, plan, options);
  const { halves } = ops;
  const op: GraphOps['op'] = (...node) => ops.op(...node);
  const ints = (...values: number[]) => ops.ints(...values);
  const weight = (name: string) => ops.weight(name);
  /** Whether the layer's keys are coded without their bias. */
  const isBiased = (l: number): boolean => int8Kv && plan.stored.has(`l${l}.keyBias`);
  const linear: GraphOps['linear'] = (...layer) => ops.linear(...layer);
  const epsilon = { epsilon: { float: config.rmsEps } };
  /** (x, skip) -> norm of their sum, and the sum. */
  const addAndNorm = (x: string, skip: string, norm: string): [string, string] => {
    const id = `r${sums++}`;
    g.node('SkipSimplifiedLayerNormalization', [x, skip, weight(norm)], [id, '', '', `${id}s`], epsilon, MS);
    return [id, `${id}s`];
  };
  let sums = 0;

  const ids = g.input(FEEDS.ids, 'int64', ['T']);
  const cos = g.input(FEEDS.cos, 'float32', ['T', headSize / 2]);
  const sin = g.input(FEEDS.sin, 'float32', ['T', headSize / 2]);
  const mask = g.input(FEEDS.mask, 'float32', ['W1', 1, 'W2', 'PW']);
  const sel = g.input(FEEDS.sel, 'int64', ['S']);
  const scoresShape = g.input(FEEDS.scoresShape, 'int64', [4]);
  const rowsShape = g.input(FEEDS.rowsShape, 'int64', [4]);
  const split = g.input(FEEDS.split, 'int64', [2]);
  const pastShape = g.input(FEEDS.pastShape, 'int64', [4]);
  const pages = g.input(FEEDS.pages, 'int64', ['D']);
  // Row t of cos and sin belongs to token t: position "0" makes the operator count up from the first row.
  const firstRow = ints(0);

  /** Stored form of the new rows, layer by layer, for the outputs. */
  const newRows: string[] = [];
  const newScales: string[] = [];
  /** Of each layer, what pagedLaneMeasured says. */
  const received: string[] = [];
  const queries: string[] = [];
  const leftAxes = { perm: [0, 2, 1, 3] };
  /** scores [1, kvHeads, groupSize * T, P + T], pool first -> [kvHeads, groupSize, T, P + T]. */
  const masked = (scores: string): string => op('Add', [op('Reshape', [scores, scoresShape]), mask]);

  /** q [1, numHeads, T, headSize], k and v [1, kvHeads, T, headSize] -> [T, numHeads * headSize]. */
  const attendFloat = (heads: string, k: string, v: string, l: number): string => {
    const q = op('Reshape', [heads, ints(1, kvHeads, -1, headSize)]);
    newRows.push(op('Concat', [k, v], { axis: 1 }));
    const keys = op('Reshape', [
      op('Transpose', [g.input(`k${l}`, 'float32', ['N', kvHeads, headSize, 'L'])], { perm: [1, 2, 0, 3] }),
      ints(1, kvHeads, headSize, -1),
    ]);
    const values = op('Reshape', [
      op('Transpose', [g.input(`v${l}`, 'float32', ['N', kvHeads, 'L', headSize])], { perm: [1, 0, 2, 3] }),
      ints(1, kvHeads, -1, headSize),
    ]);
    const past = op('MatMul', [q, keys]);
    const scores = op('Concat', [past, op('FusedMatMul', [q, k], { transB: 1 }, MS)], { axis: 3 });
    const probabilities = op('Reshape', [op('Softmax', [masked(scores)], { axis: -1 }), rowsShape]);
    const [pastShare, ownShare] = g.node('Split', [probabilities, split], 2, { axis: 3 });
    const mixed = op('Add', [op('MatMul', [pastShare!, values]), op('MatMul', [ownShare!, v])]);
    return ops.joinHeads(op('Reshape', [mixed, ints(1, numHeads, -1, headSize)]));
  };

  const sides = int8Kv
    ? {
        together: g.input(FEEDS.together, 'bool', []),
        tiles: g.input(FEEDS.tiles, 'bool', []),
        apart: g.input(FEEDS.apart, 'bool', []),
        measures: g.input(FEEDS.measures, 'bool', []),
        tokenPages: g.input(FEEDS.tokenPages, 'int64', ['W', 'Q']),
        ownShape: g.input(FEEDS.ownShape, 'int64', [4]),
        hasPrefill: g.input(FEEDS.hasPrefill, 'bool', []),
        hasPool: g.input(FEEDS.hasPool, 'bool', []),
        lanes: g.input(FEEDS.lanes, 'int64', [2]),
        queryRows: g.input(FEEDS.queryRows, 'int64', ['Q1']),
        lastRow: g.input(FEEDS.lastRow, 'int32', [1]),
        numRows: g.input(FEEDS.numRows, 'int32', []),
      }
    : null;

  /** float32 [1, 1, headSize, P + W], apart [W, 1, headSize, P + W]: of the pool's columns and the step's tokens, for all layers. */
  const turns = (): string => {
    const ofPages = g.input(FEEDS.windowTurns, 'float32', ['N', headSize, 'L']);
    const ofTokens = g.input(FEEDS.newTurns, 'float32', [headSize, 'W']);
    const own = (): string => op('Reshape', [ofTokens, ints(1, 1, headSize, -1)]);
    const together = (): string =>
      op(
        'Concat',
        [op('Reshape', [op('Transpose', [ofPages], { perm: [1, 0, 2] }), ints(1, 1, headSize, -1)]), own()],
        { axis: 3 },
      );
    const apart = (): string => {
      const gathered = op('Transpose', [op('Gather', [ofPages, sides!.tokenPages], { axis: 0 })], {
        perm: [0, 2, 1, 3],
      });
      return op(
        'Concat',
        [op('Reshape', [gathered, ints(0, 1, headSize, -1)]), op('Expand', [own(), sides!.ownShape])],
        { axis: 3 },
      );
    };
    g.conditional(
      sides!.apart,
      ['turns'],
      [{ type: 'float32', dims: ['A', 1, headSize, 'PW'] }],
      () => [apart()],
      () => [together()],
    );
    return 'turns';
  };
  const allTurns = remedy ? turns() : null;

  /** The mask as tiles take it, for all layers. */
  const masksOfTiles = (): { pageMasks: string; ownMask: string } => {
    const names = { pageMasks: 'pageMasks', ownMask: 'ownMask' };
    const shapes = [
      { type: 'float32', dims: ['N', 1, 'A', 'L'] },
      { type: 'float32', dims: [1, 1, 'A', 'A'] },
    ] as const;
    const byPage = (): string[] => {
      const [ofPages, own] = ops.pair('Split', [mask, split], { axis: 3 });
      const [, NL] = ops.pair('Split', [pages, ints(2, 2)], { axis: 0 });
      return [
        op('Transpose', [op('Reshape', [ofPages, op('Concat', [ints(1, -1), NL], { axis: 0 })])], {
          perm: [2, 0, 1, 3],
        }),
        op('Identity', [own]),
      ];
    };
    const none = (): string[] =>
      shapes.map(({ dims }) =>
        op('Identity', [
          g.constant(
            'float32',
            dims.map((n) => (n === 1 ? 1 : 0)),
            new Float32Array(0),
          ),
        ]),
      );
    g.conditional(sides!.tiles, Object.values(names), shapes, byPage, none);
    return names;
  };
  const tileMasks = int8Kv ? masksOfTiles() : null;

  /** Codes the new rows for the pool, then attends: tokens of a prompt in the prefill lane, all others in the paged lane. */
  const attendInt8 = (q: string, k: string, v: string, l: number): string => {
    const rows = op('Concat', [k, v], { axis: 1 });
    const rowMax = op('ReduceMax', [op('Abs', [rows]), ops.lastAxis], { keepdims: 1 });
    const coded = {
      codes: op('QuantizeLinear', [
        op('Div', [rows, rowMax]),
        g.float(1 / 127),
        g.constant('int8', [], Int8Array.of(0)),
      ]),
      scales: op('Mul', [rowMax, g.float(1 / 127)]),
    };
    newRows.push(coded.codes);
    newScales.push(op('Reshape', [coded.scales, ints(1, 2 * kvHeads, 1, -1)]));
    g.input(`k${l}`, 'int8', ['N', kvHeads, headSize, 'L']);
    g.input(`ks${l}`, 'float32', ['N', kvHeads, 1, 'L']);
    g.input(`v${l}`, 'int8', ['N', kvHeads, 'L', headSize]);
    g.input(`vs${l}`, 'float32', ['N', kvHeads, 1, 'L']);
    for (const name of [`pk${l}`, `pv${l}`]) g.input(name, 'float32', [1, kvHeads, 'C', headSize]);
    if (isBiased(l)) g.input(`kb${l}`, 'float32', [1, kvHeads, 'F', headSize]);

    const mixed = { type: 'float32', dims: ['N', numHeads * headSize] } as const;
    const measured = { type: 'float32', dims: ['M', kvHeads, 'A'] } as const;
    const { together, tiles, apart, measures, tokenPages, ownShape, hasPrefill, hasPool, lanes, lastRow, numRows } =
      sides!;
    const pagedFeeds = {
      mask,
      scoresShape,
      rowsShape,
      split,
      pastShape,
      pages,
      tokenPages,
      ownShape,
      turns: isBiased(l) ? allTurns : null,
    };
    queries.push(op('Gather', [q, sides!.queryRows], { axis: 2 }));
    const byLane = (x: string) => ops.pair('Split', [x, lanes], { axis: 2 });
    const withPrompt = (): string => {
      const [prefillQ, pagedQ] = byLane(q);
      const [prefillCodes, pagedCodes] = byLane(coded.codes);
      const [prefillScales, pagedScales] = byLane(coded.scales);
      const rows = prefillLane(
        ops,
        { lastRow, numRows, biased: isBiased(l) },
        prefillQ,
        { codes: prefillCodes, scales: prefillScales },
        l,
      );
      const others = { codes: pagedCodes, scales: pagedScales };
      const inPool = (lane: typeof pagedLane) => () => lane(ops, pagedFeeds, pagedQ, others, l);
      return choice(
        hasPool,
        () => op('Concat', [rows(), choice(apart, inPool(pagedLaneGathered), inPool(pagedLane))], { axis: 0 }),
        rows,
      );
    };
    let numChoices = 0;
    const choice = (condition: string, then: () => string, otherwise: () => string): string => {
      const name = `a${l}.${numChoices++}`;
      g.conditional(
        condition,
        [name],
        [mixed],
        () => [then()],
        () => [otherwise()],
      );
      return name;
    };
    const nothing = (): string => op('Identity', [g.constant('float32', [0, kvHeads, 1], new Float32Array(0))]);
    /** A choice between branches of which some say what was received. */
    const measuredChoice = (
      condition: string,
      then: () => [string, string],
      otherwise: () => [string, string],
    ): [string, string] => {
      const names = [`a${l}.${numChoices}`, `r${l}.${numChoices++}`] as [string, string];
      g.conditional(condition, names, [mixed, measured], then, otherwise);
      return names;
    };
    const tileFeeds = {
      ...tileMasks!,
      scoresShape,
      rowsShape,
      turns: isBiased(l) ? { ofPages: FEEDS.windowTurns, ofTokens: FEEDS.newTurns } : null,
    };
    const inTheEnd = (): [string, string] => [
      choice(
        tiles,
        () => pagedTiles(ops, tileFeeds, q, coded, l),
        () => pagedLaneGathered(ops, pagedFeeds, q, coded, l),
      ),
      nothing(),
    ];
    const unlessTogether = (): [string, string] =>
      measuredChoice(
        hasPrefill,
        () => [withPrompt(), nothing()],
        () => measuredChoice(measures, () => pagedLaneMeasured(ops, pagedFeeds, q, coded, l), inTheEnd),
      );
    // The most frequent case stands first: a token costs as few operators as can be.
    const [result, columns] = measuredChoice(
      together,
      () => [pagedLane(ops, pagedFeeds, q, coded, l), nothing()],
      unlessTogether,
    );
    received.push(columns);
    return result;
  };

  // The stream between the layers has the filling's rows, too; attention does not.
  const [fill, cut] = rowsInMultiples(plan).layers
    ? [FEEDS.fill, FEEDS.cut].map((feed) => g.input(feed, 'int64', [4]))
    : [];
  const withFilling = (x: string): string => (fill ? op('Pad', [x, fill]) : x);
  const withoutFilling = (x: string): string => (cut ? op('Pad', [x, cut]) : x);

  const attention = (x: string, l: number): string => {
    const bias = config.qkvBias ? (isBiased(l) ? `l${l}.qvBias` : `l${l}.qkvBias`) : undefined;
    const heads = op(
      'Transpose',
      [op('Reshape', [withoutFilling(linear(x, `l${l}.qkv`, bias)), ints(1, -1, numHeads + 2 * kvHeads, headSize)])],
      leftAxes,
    );
    let [qk, v] = g.node('Split', [heads, ints(numHeads + kvHeads, kvHeads)], 2, { axis: 1 }) as [string, string];
    if (config.qkNorm) {
      const ones = g.constant('float32', [headSize], new Float32Array(headSize).fill(1));
      qk = op('Mul', [
        op('SimplifiedLayerNormalization', [qk, ones], { axis: -1, stash_type: 1, ...epsilon }),
        weight(`l${l}.qkNorm`),
      ]);
    }
    const rotated = op('RotaryEmbedding', [qk, firstRow, cos, sin], {}, MS);
    const [q, k] = g.node('Split', [rotated, ints(numHeads, kvHeads)], 2, { axis: 1 }) as [string, string];
    return int8Kv ? attendInt8(q, k, v, l) : attendFloat(q, k, v, l);
  };

  let skip: string;
  if (plan.stored.has('embedding.scales')) {
    const rows = op('Cast', [op('Gather', [weight('embedding'), ids])], { to: DataType.float32 });
    skip = op('Mul', [rows, op('Gather', [weight('embedding.scales'), ids])]);
  } else skip = op('Gather', [weight('embedding'), ids]);
  skip = withFilling(skip);
  let x = op('SimplifiedLayerNormalization', [skip, weight('l0.norm1')], { axis: -1, stash_type: 1, ...epsilon });
  /** What follows the attention of layer l. */
  const feedForward = (mixed: string, l: number): void => {
    [x, skip] = addAndNorm(
      linear(mixed, `l${l}.o`, config.outputBias ? `l${l}.oBias` : undefined),
      skip,
      `l${l}.norm2`,
    );
    const [gateName, upName, downName] = [`l${l}.gate`, `l${l}.up`, `l${l}.down`];
    const bias = (name: string): string | undefined => (config.ffnBias ? `${name}Bias` : undefined);
    const rows = ops.rows(x, gateName);
    const gate = op('QuickGelu', [ops.layer(rows, gateName, bias(gateName))], { alpha: { float: 1 } }, MS);
    // Without a bias, the scale of a row may wait until behind the next layer's codes, to which it makes no difference: a pass less over wide rows.
    const [up, factor] = config.ffnBias
      ? [ops.layer(rows, upName, bias(upName)), null]
      : [ops.product(rows, upName), rows.scale];
    const hidden = ops.rows(op('Mul', [gate, up]), downName, factor);
    [x, skip] = addAndNorm(
      ops.layer(hidden, downName, bias(downName)),
      skip,
      l === numLayers - 1 ? 'norm' : `l${l + 1}.norm1`,
    );
  };
  for (let l = 0; l < numLayers - 1; l++) feedForward(withFilling(attention(x, l)), l);
  const last = attention(x, numLayers - 1);
  // Nothing after the last attention looks at other tokens: only the rows whose logits are wanted go on, and inside a prompt none is.
  const logits = { type: 'float32', dims: ['S', vocabSize] } as const;
  const toLogits = (): string[] => {
    skip = op('Gather', [skip, sel]);
    feedForward(op('Gather', [last, sel]), numLayers - 1);
    return [linear(x, 'head')];
  };
  g.conditional(g.input(FEEDS.hasLogits, 'bool', []), [FETCHES.logits], [logits], toLogits, () => [
    op('Identity', [g.constant('float32', [0, vocabSize], new Float32Array(0))]),
  ]);
  g.output(FETCHES.logits, logits.type, logits.dims);

  const [keys] = g.node('Split', [op('Concat', newRows, { axis: 0 }), halves], ['allKeys', FETCHES.values], {
    axis: 1,
  });
  g.node('Transpose', [keys!], [FETCHES.keys], { perm: [0, 1, 3, 2] });
  g.output(FETCHES.keys, options.kv, [numLayers, kvHeads, headSize, 'T']);
  g.output(FETCHES.values, options.kv, [numLayers, kvHeads, 'T', headSize]);
  if (int8Kv) {
    g.node('Split', [op('Concat', newScales, { axis: 0 }), halves], [FETCHES.keyScales, FETCHES.valueScales], {
      axis: 1,
    });
    g.output(FETCHES.keyScales, 'float32', [numLayers, kvHeads, 1, 'T']);
    g.output(FETCHES.valueScales, 'float32', [numLayers, kvHeads, 1, 'T']);
    g.node('Concat', received, [RECEIVED], { axis: 0 });
    g.output(RECEIVED, 'float32', ['M', kvHeads, 'A']);
    g.node('Concat', queries, [QUERIES], { axis: 0 });
    g.output(QUERIES, 'float32', [numLayers, numHeads, 'Q1', headSize]);
  }
  return g.finish();
}
