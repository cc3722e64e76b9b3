/**
 * Writes the attention of each layer of the step graph: in one lane over a float32 pool, by lane over an int8 pool.
 * Collects the new KV rows in their stored form. Does not write linear layers.
 */
import { FEEDS } from './feeds.ts';
import { type CodedRows, type GraphOps, MS } from './graphOps.ts';
import { pagedLaneGathered, pagedLaneMeasured, type PagedInputs, pagedLaneShared } from './pagedLane.ts';
import { pagedTiles, splitMask, type TileMasks } from './pagedTiles.ts';
import { prefillLane } from './prefillLane.ts';

/** Names of the feeds that both kinds of pool have. */
export interface CommonInputs
  extends Pick<PagedInputs, 'mask' | 'scoresShape' | 'rowsShape' | 'split' | 'pastShape' | 'pagesShape'> {
  /** The mask of layers with a sliding window. Null without such layers. */
  readonly windowMask: string | null;
}

function hasWindow({ config }: GraphOps, l: number): boolean {
  return config.sliding?.layers.includes(l) === true;
}

export interface LayerAttention {
  /**
   * Writes the attention of layer l. q [1, numHeads, T, headSize], k and v [1, kvHeads, T, headSize]
   * -> [T, numHeads * headSize].
   */
  attend(q: string, k: string, v: string, l: number): string;
  /** The new rows of each layer, [1, 2 * kvHeads, T, headSize] as stored. */
  readonly newRows: readonly string[];
  /** Whether the keys of a layer are coded without their bias. */
  isBiased(l: number): boolean;
}

export class FloatAttention implements LayerAttention {
  readonly newRows: string[] = [];
  readonly #ops: GraphOps;
  readonly #inputs: CommonInputs;

  constructor(ops: GraphOps, inputs: CommonInputs) {
    this.#ops = ops;
    this.#inputs = inputs;
  }

  isBiased(): boolean {
    return false;
  }

  attend(heads: string, k: string, v: string, l: number): string {
    const { g, config } = this.#ops;
    const { numHeads, kvHeads, headSize, softcaps } = config;
    const { scoresShape, rowsShape, split } = this.#inputs;
    const mask = hasWindow(this.#ops, l) ? this.#inputs.windowMask! : this.#inputs.mask;
    const op: GraphOps['op'] = (...node) => this.#ops.op(...node);
    const ints = (...values: number[]) => this.#ops.ints(...values);
    const q = op('Reshape', [heads, ints(1, kvHeads, -1, headSize)]);
    this.newRows.push(op('Concat', [k, v], { axis: 1 }));
    const keys = op('Reshape', [
      op('Transpose', [g.input(`k${l}`, 'float32', ['N', kvHeads, headSize, 'L'])], { perm: [1, 2, 0, 3] }),
      ints(1, kvHeads, headSize, -1),
    ]);
    const values = op('Reshape', [
      op('Transpose', [g.input(`v${l}`, 'float32', ['N', kvHeads, 'L', headSize])], { perm: [1, 0, 2, 3] }),
      ints(1, kvHeads, -1, headSize),
    ]);
    const past = op('MatMul', [q, keys]);
    // [1, kvHeads, groupSize * T, P + T], the pool's columns first.
    const scores = op('Concat', [past, op('FusedMatMul', [q, k], { transB: 1 }, MS)], { axis: 3 });
    const limited = this.#ops.capped(scores, softcaps.scores);
    const masked = op('Add', [op('Reshape', [limited, scoresShape]), mask]);
    const probabilities = op('Reshape', [op('Softmax', [masked], { axis: -1 }), rowsShape]);
    const [pastShare, ownShare] = g.node('Split', [probabilities, split], 2, { axis: 3 });
    const mixed = op('Add', [op('MatMul', [pastShare!, values]), op('MatMul', [ownShare!, v])]);
    return this.#ops.joinHeads(op('Reshape', [mixed, ints(1, numHeads, -1, headSize)]));
  }
}

export class Int8Attention implements LayerAttention {
  readonly newRows: string[] = [];
  /** Scales of the new rows, by layer: [1, 2 * kvHeads, 1, T]. */
  readonly newScales: string[] = [];
  /** By layer, the attention that each column receives, if the step measures it: [0 or 2, kvHeads, P + T]. */
  readonly received: string[] = [];
  /** By layer, the wanted queries: [1, numHeads, n, headSize]. */
  readonly queries: string[] = [];
  readonly #ops: GraphOps;
  readonly #common: CommonInputs;
  readonly #isBiased: (l: number) => boolean;
  readonly #inputs: Int8Inputs;
  /**
   * For all layers, float32 [1, 1, headSize, P + W] or gathered [W, 1, headSize, P + W]. Null without biased layers.
   */
  readonly #rotations: string | null;
  readonly #tileMasks: TileMasks;
  /** Of layers with a sliding window. */
  readonly #windowTileMasks: TileMasks | null;

  constructor(ops: GraphOps, common: CommonInputs, biased: readonly number[], isBiased: (l: number) => boolean) {
    this.#ops = ops;
    this.#common = common;
    this.#isBiased = isBiased;
    this.#inputs = declareInputs(ops);
    this.#rotations = biased.length > 0 ? gatherRotations(ops, this.#inputs) : null;
    this.#tileMasks = splitMask(ops, common, this.#inputs.tiles);
    const { windowMask } = common;
    this.#windowTileMasks =
      windowMask === null ? null : splitMask(ops, { ...common, mask: windowMask }, this.#inputs.tiles);
  }

  isBiased(l: number): boolean {
    return this.#isBiased(l);
  }

  /** Codes the new rows for the pool. Then each token attends in its lane. */
  attend(q: string, k: string, v: string, l: number): string {
    const coded = this.#code(k, v);
    this.#declareRows(l);
    this.queries.push(this.#ops.op('Gather', [q, this.#inputs.queryRows], { axis: 2 }));
    const [result, received] = this.#chooseLane(q, coded, l);
    this.received.push(received);
    return result;
  }

  #code(k: string, v: string): CodedRows {
    const { g, config, lastAxis } = this.#ops;
    const op: GraphOps['op'] = (...node) => this.#ops.op(...node);
    const rows = op('Concat', [k, v], { axis: 1 });
    const rowMax = op('ReduceMax', [op('Abs', [rows]), lastAxis], { keepdims: 1 });
    const coded = {
      codes: op('QuantizeLinear', [
        op('Div', [rows, rowMax]),
        g.float(1 / 127),
        g.constant('int8', [], Int8Array.of(0)),
      ]),
      scales: op('Mul', [rowMax, g.float(1 / 127)]),
    };
    this.newRows.push(coded.codes);
    this.newScales.push(op('Reshape', [coded.scales, this.#ops.ints(1, 2 * config.kvHeads, 1, -1)]));
    return coded;
  }

  /** Declares the feeds that hold the rows of layer l. */
  #declareRows(l: number): void {
    const { g, config } = this.#ops;
    const { kvHeads, headSize } = config;
    g.input(`k${l}`, 'int8', ['N', kvHeads, headSize, 'L']);
    g.input(`ks${l}`, 'float32', ['N', kvHeads, 1, 'L']);
    g.input(`v${l}`, 'int8', ['N', kvHeads, 'L', headSize]);
    g.input(`vs${l}`, 'float32', ['N', kvHeads, 1, 'L']);
    for (const name of [`pk${l}`, `pv${l}`]) g.input(name, 'float32', [1, kvHeads, 'C', headSize]);
    if (this.#isBiased(l)) g.input(`kb${l}`, 'float32', [1, kvHeads, 'F', headSize]);
  }

  /**
   * The result of the lanes that the step uses, and the attention that columns receive. Other branches cost nothing.
   */
  #chooseLane(q: string, coded: CodedRows, l: number): [string, string] {
    const { g, config } = this.#ops;
    const { numHeads, kvHeads, headSize } = config;
    const ops = this.#ops;
    const { shared, tiles, gathered, measures, hasPrefill } = this.#inputs;
    const mixed = { type: 'float32', dims: ['N', numHeads * headSize] } as const;
    const measured = { type: 'float32', dims: ['M', kvHeads, 'A'] } as const;
    const paged = this.#pagedInputs(l);
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
    const nothing = (): string => ops.op('Identity', [g.constant('float32', [0, kvHeads, 1], new Float32Array(0))]);
    const measuredChoice = (
      condition: string,
      then: () => [string, string],
      otherwise: () => [string, string],
    ): [string, string] => {
      const names = [`a${l}.${numChoices}`, `r${l}.${numChoices++}`] as [string, string];
      g.conditional(condition, names, [mixed, measured], then, otherwise);
      return names;
    };
    const tiledOrGathered = (): string =>
      choice(
        tiles,
        () => pagedTiles(ops, this.#tileInputs(l), q, coded, l),
        () => pagedLaneGathered(ops, paged, q, coded, l),
      );
    // The most frequent case comes first, because each nested condition costs operators.
    return measuredChoice(
      shared,
      () => [pagedLaneShared(ops, paged, q, coded, l), nothing()],
      () =>
        measuredChoice(
          hasPrefill,
          () => [this.#bothLanes(q, coded, l, gathered, choice), nothing()],
          () =>
            measuredChoice(
              measures,
              () => pagedLaneMeasured(ops, paged, q, coded, l),
              () => [tiledOrGathered(), nothing()],
            ),
        ),
    );
  }

  /** Attention of a step with tokens in the prefill lane, and perhaps in the paged lane. */
  #bothLanes(q: string, coded: CodedRows, l: number, gathered: string, choice: Choice): string {
    const ops = this.#ops;
    const { hasPaged, lanes, lastRow, numRows } = this.#inputs;
    const byLane = (x: string) => ops.pair('Split', [x, lanes], { axis: 2 });
    const [prefillQ, pagedQ] = byLane(q);
    const [prefillCodes, pagedCodes] = byLane(coded.codes);
    const [prefillScales, pagedScales] = byLane(coded.scales);
    const inputs = { lastRow, numRows, biased: this.#isBiased(l) };
    const rows = prefillLane(ops, inputs, prefillQ, { codes: prefillCodes, scales: prefillScales }, l);
    const others = { codes: pagedCodes, scales: pagedScales };
    const inPool = (lane: typeof pagedLaneShared) => () => lane(ops, this.#pagedInputs(l), pagedQ, others, l);
    return choice(
      hasPaged,
      () =>
        ops.op('Concat', [rows(), choice(gathered, inPool(pagedLaneGathered), inPool(pagedLaneShared))], { axis: 0 }),
      rows,
    );
  }

  #pagedInputs(l: number): PagedInputs {
    const { tokenPages, ownShape } = this.#inputs;
    const mask = hasWindow(this.#ops, l) ? this.#common.windowMask! : this.#common.mask;
    return { ...this.#common, mask, tokenPages, ownShape, rotations: this.#isBiased(l) ? this.#rotations : null };
  }

  #tileInputs(l: number): Parameters<typeof pagedTiles>[1] {
    const { scoresShape, rowsShape } = this.#common;
    const rotations = this.#isBiased(l) ? { ofPages: FEEDS.poolRotations, ofTokens: FEEDS.newRotations } : null;
    const masks = hasWindow(this.#ops, l) ? this.#windowTileMasks! : this.#tileMasks;
    return { ...masks, scoresShape, rowsShape, rotations };
  }
}

type Choice = (condition: string, then: () => string, otherwise: () => string) => string;

/** Names of the feeds that only a graph with an int8 pool has. */
type Int8Inputs = ReturnType<typeof declareInputs>;

function declareInputs({ g }: GraphOps) {
  return {
    shared: g.input(FEEDS.shared, 'bool', []),
    tiles: g.input(FEEDS.tiles, 'bool', []),
    gathered: g.input(FEEDS.gathered, 'bool', []),
    measures: g.input(FEEDS.measures, 'bool', []),
    tokenPages: g.input(FEEDS.tokenPages, 'int64', ['W', 'Q']),
    ownShape: g.input(FEEDS.ownShape, 'int64', [4]),
    hasPrefill: g.input(FEEDS.hasPrefill, 'bool', []),
    hasPaged: g.input(FEEDS.hasPaged, 'bool', []),
    lanes: g.input(FEEDS.lanes, 'int64', [2]),
    queryRows: g.input(FEEDS.queryRows, 'int64', ['Q1']),
    lastRow: g.input(FEEDS.lastRow, 'int32', [1]),
    numRows: g.input(FEEDS.numRows, 'int32', []),
  };
}

/**
 * The rotations of all columns, first of the pool, then of the tokens of the step: float32 [1, 1, headSize, P + W],
 * with gathered attention [W, 1, headSize, P + W].
 */
function gatherRotations(ops: GraphOps, { gathered, tokenPages, ownShape }: Int8Inputs): string {
  const { g } = ops;
  const { headSize } = ops.config;
  const op: GraphOps['op'] = (...node) => ops.op(...node);
  const ints = (...values: number[]) => ops.ints(...values);
  const ofPages = g.input(FEEDS.poolRotations, 'float32', ['N', headSize, 'L']);
  const ofTokens = g.input(FEEDS.newRotations, 'float32', [headSize, 'W']);
  const own = (): string => op('Reshape', [ofTokens, ints(1, 1, headSize, -1)]);
  const forAll = (): string =>
    op('Concat', [op('Reshape', [op('Transpose', [ofPages], { perm: [1, 0, 2] }), ints(1, 1, headSize, -1)]), own()], {
      axis: 3,
    });
  const byToken = (): string => {
    const pages = op('Transpose', [op('Gather', [ofPages, tokenPages], { axis: 0 })], { perm: [0, 2, 1, 3] });
    return op('Concat', [op('Reshape', [pages, ints(0, 1, headSize, -1)]), op('Expand', [own(), ownShape])], {
      axis: 3,
    });
  };
  g.conditional(
    gathered,
    ['rotations'],
    [{ type: 'float32', dims: ['A', 1, headSize, 'PW'] }],
    () => [byToken()],
    () => [forAll()],
  );
  return 'rotations';
}
