/**
 * The paged lane in tiles, for many tokens after a long context: the arithmetic of pagedLaneShared, one page after the
 * other, so that intermediate values stay in the CPU cache. Says when tiles are faster.
 */
import { type CodedRows, type GraphOps, MS } from './graphOps.ts';
import { DataType, type DataTypeName, type InnerValue } from './onnxWriter.ts';
import {
  biasCoefficients,
  factorOf,
  mixedOf,
  ownRows,
  type PagedInputs,
  powersOf,
  shareCodes,
  TINY,
} from './pagedLane.ts';

// Only the scores of all pages are kept, because the codes of a row need its largest score. The result of a token has
// the same bits as without tiles: the largest score is the same, sums of products are integers, and sums of powers are
// in float64, whose order hardly ever changes a float32.

/** Names of the feeds that tiles take (see feeds.ts). */
export interface TileInputs extends TileMasks {
  /** As in PagedInputs. */
  readonly scoresShape: string;
  readonly rowsShape: string;
  /** float32 [N, headSize, L] and [headSize, W]. Null unless the keys of the layer are coded without their bias. */
  readonly rotations: { readonly ofPages: string; readonly ofTokens: string } | null;
}

const float = (...dims: (number | string)[]): InnerValue => ({ type: 'float32', dims });
const page = (name: string, type: DataTypeName, ...dims: (number | string)[]): InnerValue & { name: string } => ({
  name,
  type,
  dims,
});

/** The mask in two parts: float32 [N, 1, W, L] for the pages and [1, 1, W, W] for the new tokens. */
export interface TileMasks {
  readonly pageMasks: string;
  readonly ownMask: string;
}

/** Splits a mask, once for all layers with it. Both parts are empty if the step does not use tiles. */
export function splitMask(
  ops: GraphOps,
  { mask, split, pagesShape }: Pick<PagedInputs, 'mask' | 'split' | 'pagesShape'>,
  tiles: string,
): TileMasks {
  const { g } = ops;
  const op: GraphOps['op'] = (...node) => ops.op(...node);
  const names = { pageMasks: `${mask}.pages`, ownMask: `${mask}.own` };
  const shapes = [
    { type: 'float32', dims: ['N', 1, 'A', 'L'] },
    { type: 'float32', dims: [1, 1, 'A', 'A'] },
  ] as const;
  const byPage = (): string[] => {
    const [ofPages, own] = ops.pair('Split', [mask, split], { axis: 3 });
    const [, NL] = ops.pair('Split', [pagesShape, ops.ints(2, 2)], { axis: 0 });
    const pages = op('Reshape', [ofPages, op('Concat', [ops.ints(1, -1), NL], { axis: 0 })]);
    return [op('Transpose', [pages], { perm: [2, 0, 1, 3] }), op('Identity', [own])];
  };
  const none = (): string[] =>
    shapes.map(({ dims }) => {
      const empty = dims.map((n) => (n === 1 ? 1 : 0));
      return op('Identity', [g.constant('float32', empty, new Float32Array(0))]);
    });
  g.conditional(tiles, Object.values(names), shapes, byPage, none);
  return names;
}

/**
 * Least scores of one page and of all pages for which tiles are faster. Time without tiles / time in tiles, in the
 * shape of Qwen2.5-0.5B (14 heads) on two processors of an EPYC with 1 MB of L2 each: 0.9 for 16 tokens after 7,680;
 * 1.0 for 32 tokens after 2,048 and 1.7 after 7,680; 1.5 and 2.3 for 64 tokens (bench suite `engine`, group `tiles`).
 */
const MIN_PAGE_SCORES = 90_000;
const MIN_SCORES = 1_400_000;

/** Whether a step with so many tokens and columns is faster in tiles of `pageSlots` columns. */
export function inTiles(numHeads: number, tokens: number, columns: number, pageSlots: number): boolean {
  return (
    columns > pageSlots && numHeads * tokens * pageSlots >= MIN_PAGE_SCORES && numHeads * tokens * columns >= MIN_SCORES
  );
}

/** `heads`: the queries [1, numHeads, W, headSize]. `own`: rows of the new tokens. Returns [W, numHeads * headSize]. */
export function pagedTiles(ops: GraphOps, inputs: TileInputs, heads: string, own: CodedRows, l: number): string {
  return new PageTiles(ops, inputs, own, l).attend(heads);
}

/** The scores of all columns. */
interface Scores {
  /** float32 [kvHeads, groupSize, W, 1]: the largest score of a row. */
  readonly largestScore: string;
  /** float32 [kvHeads, 1, W, 1]: the largest scale of the values that a row sees. */
  readonly largestScale: string;
  /** float32 [N, kvHeads, groupSize, W, L]: masked scores of the pages. */
  readonly ofPages: string;
  /** float32 [kvHeads, groupSize, W, W]: masked scores of the new tokens. */
  readonly ofOwn: string;
}

class PageTiles {
  readonly #ops: GraphOps;
  readonly #inputs: TileInputs;
  readonly #l: number;
  readonly #groupSize: number;
  readonly #rows: ReturnType<typeof ownRows>;

  constructor(ops: GraphOps, inputs: TileInputs, own: CodedRows, l: number) {
    this.#ops = ops;
    this.#inputs = inputs;
    this.#l = l;
    this.#groupSize = ops.config.numHeads / ops.config.kvHeads;
    this.#rows = ownRows(ops, own);
  }

  attend(heads: string): string {
    const { g, config } = this.#ops;
    const { kvHeads, headSize } = config;
    const scores = this.#scores(heads);
    const first = this.#add(null, scores, scores.ofOwn, this.#ownScales, this.#byHead(this.#rows.values, -1, headSize));
    const [sum, products] = g.scan(
      first,
      [
        page(scores.ofPages, 'float32', kvHeads, this.#groupSize, 'W', 'L'),
        this.#scalesPage,
        page(`v${this.#l}`, 'int8', kvHeads, 'L', headSize),
      ],
      [
        { type: 'float64', dims: [kvHeads, this.#groupSize, 'W', 1] },
        { type: 'int32', dims: [1, kvHeads, 'R', headSize] },
      ],
      ([sum, products], [pageScores, valueScales, values]) =>
        this.#add([sum!, products!], scores, pageScores!, this.#scalesOf(valueScales!), values!),
    ) as [string, string];
    const total = this.#op('Cast', [sum], { to: DataType.float32 });
    return mixedOf(this.#ops, products, factorOf(this.#ops, scores.largestScale, total));
  }

  #op: GraphOps['op'] = (...node) => this.#ops.op(...node);

  #byHead(x: string, ...shape: [number, number]): string {
    return this.#op('Reshape', [x, this.#ops.ints(this.#ops.config.kvHeads, ...shape)]);
  }

  /** Scales of values, [kvHeads, 1, n] -> [kvHeads, 1, 1, n], the axes of the mask. */
  #scalesOf(x: string): string {
    return this.#op('Reshape', [x, this.#ops.ints(this.#ops.config.kvHeads, 1, 1, -1)]);
  }

  get #ownScales(): string {
    this.#ownScalesName ??= this.#scalesOf(this.#rows.valueScales);
    return this.#ownScalesName;
  }
  #ownScalesName: string | null = null;

  get #scalesPage(): InnerValue & { name: string } {
    return page(`vs${this.#l}`, 'float32', this.#ops.config.kvHeads, 1, 'L');
  }

  #largest(x: string): string {
    return this.#op('ReduceMax', [x, this.#ops.lastAxis], { keepdims: 1 });
  }

  /** First pass over the pages: all scores, the largest score, and the largest scale. */
  #scores(heads: string): Scores {
    const { g, config } = this.#ops;
    const { kvHeads, headSize } = config;
    const { pageMasks, ownMask, rotations } = this.#inputs;
    const q = this.#op('Reshape', [heads, this.#ops.ints(1, kvHeads, -1, headSize)]);
    const query = this.#ops.codeRows(q);
    const queryCodes = this.#byHead(query.codes, -1, headSize);
    const queryMax = this.#byHead(query.rowMax, -1, 1);
    const coefficients =
      rotations && this.#op('Reshape', [biasCoefficients(this.#ops, q, this.#l), this.#ops.ints(-1, headSize)]);
    const scoresOf = (...columns: Columns): string => this.#masked([queryCodes, queryMax, coefficients], ...columns);

    const ownScales = this.#ownScales;
    const { keys, keyScales } = this.#rows;
    const ofOwn = scoresOf(
      this.#byHead(keys, headSize, -1),
      this.#byHead(keyScales, 1, -1),
      ownMask,
      rotations?.ofTokens,
    );
    const [largestScore, largestScale, ofPages] = g.scan(
      [this.#largest(ofOwn), this.#op('Max', [this.#largest(this.#op('Add', [ownScales, ownMask])), g.float(TINY)])],
      [
        page(`k${this.#l}`, 'int8', kvHeads, headSize, 'L'),
        page(`ks${this.#l}`, 'float32', kvHeads, 1, 'L'),
        this.#scalesPage,
        page(pageMasks, 'float32', 1, 'W', 'L'),
        ...(rotations ? [page(rotations.ofPages, 'float32', headSize, 'L')] : []),
      ],
      [float(kvHeads, this.#groupSize, 'W', 1), float(kvHeads, 1, 'W', 1), float(kvHeads, this.#groupSize, 'W', 'L')],
      ([score, scale], [keys, keyScales, valueScales, mask, pageRotations]) => {
        const scores = scoresOf(keys!, keyScales!, mask!, pageRotations);
        return [
          this.#op('Max', [score!, this.#largest(scores)]),
          this.#op('Max', [scale!, this.#largest(this.#op('Add', [this.#scalesOf(valueScales!), mask!]))]),
          scores,
        ];
      },
    ) as [string, string, string];
    return { largestScore, largestScale, ofPages, ofOwn };
  }

  /** Masked scores of n columns: [kvHeads, groupSize, W, n]. */
  #masked(
    [codes, rowMax, coefficients]: [string, string, string | null],
    ...[keys, scales, mask, rotations]: Columns
  ): string {
    const { step, zero } = this.#ops;
    let scores = this.#op('Mul', [this.#op('MatMulIntegerToFloat', [codes, keys, step, scales, zero], {}, MS), rowMax]);
    if (rotations !== undefined) {
      const bias = this.#op('MatMul', [coefficients!, rotations]);
      scores = this.#op('Add', [scores, this.#op('Reshape', [bias, this.#inputs.rowsShape])]);
    }
    const limited = this.#ops.capped(scores, this.#ops.config.softcaps.scores);
    return this.#op('Add', [this.#op('Reshape', [limited, this.#inputs.scoresShape]), mask]);
  }

  /**
   * Second pass: adds n columns to the sum of powers, and to the sums of products of both codes with the values
   * [kvHeads, n, headSize]. `sums`: null for the first columns.
   */
  #add(
    sums: readonly [string, string] | null,
    { largestScore, largestScale }: Scores,
    scores: string,
    valueScales: string,
    values: string,
  ): [string, string] {
    const { powers, sum } = powersOf(this.#ops, scores, largestScore);
    const relative = this.#op('Mul', [powers, this.#op('Div', [valueScales, largestScale])]);
    const { high, low } = shareCodes(this.#ops, this.#op('Reshape', [relative, this.#inputs.rowsShape]));
    const both = this.#op('Concat', [high, low], { axis: 2 });
    const product = this.#op('MatMulInteger', [both, values, this.#ops.zero]);
    return sums ? [this.#op('Add', [sums[0], sum]), this.#op('Add', [sums[1], product])] : [sum, product];
  }
}

/**
 * n columns: keys [kvHeads, headSize, n], their scales [kvHeads, 1, n], the mask [1, W, n], rotations [headSize, n].
 */
type Columns = [keys: string, scales: string, mask: string, rotations: string | undefined];
