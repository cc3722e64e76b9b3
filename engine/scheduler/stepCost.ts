/**
 * What a step costs, learnt from the steps that have run: ms = a + b * tokens + c * tokens * columns + d * columns.
 * Every
 * step reads all weights once (a), every token passes through the linear layers (b) and pays for its columns, those of
 * the pool and the step's own (c), which are made ready for the products once a step (d: in the prefill lane as dear as
 * some forty tokens that attend to them). One instance per way of computing tokens.
 *
 * Robust on a machine that does other things as well: steps of about one size share a cell, which keeps the last few
 * and
 * speaks with their median, so single slow steps count for nothing. A cell that is not refreshed fades, but is not
 * forgotten: a thousand decodes do not make it unknown what a chunk costs. The fit minimises relative errors. A machine
 * that has become slower altogether, hot or on battery, shows in the last few steps: their median corrects the fit.
 */

/** Coefficients, all >= 0. */
export interface Coefficients {
  /** ms of a step. */
  readonly a: number;
  /** ms per token. */
  readonly b: number;
  /** ms per token and column. */
  readonly c: number;
  /** ms per column. */
  readonly d: number;
}

/**
 * Proportions of small models on two cores, of the paged lane and of the prefill lane. What has not been measured yet
 * is
 * scaled from these to what has. In the paged lane steps have so few tokens that c and d could not be told apart: no d.
 */
const TYPICAL: Coefficients = { a: 14, b: 0.8, c: 0.001, d: 0 };
export const TYPICAL_PREFILL: Coefficients = { a: 14, b: 0.45, c: 0.00025, d: 0.01 };
/** Coefficients. */
const N = 4;
/** Weight of the proportions above, beside 1 for a fresh cell. */
const PRIOR_WEIGHT = 0.01;
/** Tokens of a step that may be tried without having been approached: one far too long would be felt. */
const TRUSTED_TOKENS = 32;
/** Steps kept per cell. */
const KEPT = 5;
/** Steps after which a cell that is not refreshed counts half, and the least that it counts. */
const HALF_LIFE = 300;
const MIN_WEIGHT = 0.05;
/** Steps whose median tells the speed of the moment. */
const RECENT = 9;

interface Observation {
  readonly tokens: number;
  readonly columns: number;
  readonly ms: number;
}

interface Cell {
  /** Oldest first. */
  readonly last: Observation[];
  /** Number of the step that came last. */
  step: number;
}

const logBucket = (n: number): number => Math.ceil(Math.log2(Math.max(1, n)));

export class StepCost {
  readonly #cells = new Map<number, Cell>();
  readonly #typical: Coefficients;
  #fitted: Coefficients;
  /** Of the last steps, oldest first: how much longer than fitted they took. */
  readonly #recent: number[] = [];
  #slowness = 1;
  #numSteps = 0;
  #mostTokens = 0;

  constructor(typical = TYPICAL) {
    this.#typical = typical;
    this.#fitted = typical;
  }

  /** As learnt so far; typical proportions before anything has been. */
  get coefficients(): Coefficients {
    const { a, b, c, d } = this.#fitted;
    return { a: a * this.#slowness, b: b * this.#slowness, c: c * this.#slowness, d: d * this.#slowness };
  }

  /** Whether anything has been observed. */
  get known(): boolean {
    return this.#numSteps > 0;
  }

  /** A step of `tokens`, each of which paid for `columns`, took `ms`. */
  observe(tokens: number, columns: number, ms: number): void {
    if (!(tokens > 0) || !(columns >= 0) || !(ms > 0) || ms === Number.POSITIVE_INFINITY) return;
    const key = 64 * logBucket(tokens) + logBucket(columns);
    const cell = this.#cells.get(key) ?? { last: [], step: 0 };
    this.#cells.set(key, cell);
    if (cell.last.length === KEPT) cell.last.shift();
    cell.last.push({ tokens, columns, ms });
    cell.step = ++this.#numSteps;
    this.#mostTokens = Math.max(this.#mostTokens, tokens);
    this.#fit();
    if (this.#recent.length === RECENT) this.#recent.shift();
    this.#recent.push(ms / evaluate(this.#fitted, tokens, columns));
    this.#slowness = [...this.#recent].sort((x, y) => x - y)[this.#recent.length >> 1]!;
  }

  /** ms. */
  predict(tokens: number, columns: number): number {
    return tokens === 0 ? 0 : this.#slowness * evaluate(this.#fitted, tokens, columns);
  }

  /**
   * The most tokens of a step over `columns` that stays within `ms`, each adding itself to them. 0 when none do; not
   * many
   * more than have been measured.
   */
  tokensWithin(ms: number, columns: number): number {
    const { a, b, c, d } = this.coefficients;
    const left = ms - a - d * columns;
    if (left <= 0) return 0;
    // c t^2 + (b + d + c columns) t - left = 0, in the form that stands c = 0.
    const linear = b + d + c * columns;
    const tokens = Math.floor((2 * left) / (linear + Math.sqrt(linear * linear + 4 * c * left)));
    return Math.min(tokens, Math.max(TRUSTED_TOKENS, 2 * this.#mostTokens));
  }

  /** How many tokens cost as much as a step over `columns` does by itself: with fewer, most of it would be that. */
  evenTokens(columns: number): number {
    const { a, b, c, d } = this.#fitted;
    return Math.ceil((a + d * columns) / Math.max(1e-9, b + c * columns));
  }

  #fit(): void {
    const typical = this.#typical;
    const points = [...this.#cells.values()].map((cell) => ({
      ...this.#median(cell.last),
      weight: Math.max(MIN_WEIGHT, 0.5 ** ((this.#numSteps - cell.step) / HALF_LIFE)),
    }));
    // How much slower this machine and model are than the typical ones.
    const scale = weightedMedian(
      points.map(({ tokens, columns, ms, weight }) => ({ value: ms / evaluate(typical, tokens, columns), weight })),
    );
    const unit = [typical.a, typical.b, typical.c, typical.d].map((x) => scale * x);
    // Normal equations of sum weight * (features . x / ms - 1)^2 + PRIOR_WEIGHT * |x - 1|^2, with x in units of `unit`.
    const matrix = Array.from({ length: N * N }, (_, i) => (i % (N + 1) === 0 ? PRIOR_WEIGHT : 0));
    const right = new Array<number>(N).fill(PRIOR_WEIGHT);
    for (const { tokens, columns, ms, weight } of points) {
      const features = [1, tokens, tokens * columns, columns].map((x, i) => (unit[i]! * x) / ms);
      for (let i = 0; i < N; i++) {
        right[i]! += weight * features[i]!;
        for (let j = 0; j < N; j++) matrix[N * i + j]! += weight * features[i]! * features[j]!;
      }
    }
    const [a, b, c, d] = solveNonNegative(matrix, right);
    this.#fitted = { a: a! * unit[0]!, b: b! * unit[1]!, c: c! * unit[2]!, d: d! * unit[3]! };
  }

  /** The one whose time is the median in proportion to what is predicted. */
  #median(observations: readonly Observation[]): Observation {
    const ratio = ({ tokens, columns, ms }: Observation): number => ms / evaluate(this.#fitted, tokens, columns);
    return [...observations].sort((x, y) => ratio(x) - ratio(y))[observations.length >> 1]!;
  }
}

function evaluate({ a, b, c, d }: Coefficients, tokens: number, columns: number): number {
  return a + tokens * (b + c * columns) + d * columns;
}

function weightedMedian(items: { value: number; weight: number }[]): number {
  items.sort((x, y) => x.value - y.value);
  let left = items.reduce((sum, { weight }) => sum + weight, 0) / 2;
  for (const { value, weight } of items) {
    left -= weight;
    if (left <= 0) return value;
  }
  return 1;
}

/** For `solveSubset`, which runs at every step: rows of [N + 1], and its result. */
const elimination = new Float64Array(N * (N + 1));
const solution = new Float64Array(N);

/** The x >= 0 that minimises x' matrix x / 2 - right' x; `matrix` [N, N] is positive definite. */
function solveNonNegative(matrix: readonly number[], right: readonly number[]): Float64Array {
  const best = new Float64Array(N);
  let least = 0;
  // Four unknowns have fifteen sets of positive ones.
  for (let set = 1; set < 1 << N; set++) {
    solveSubset(matrix, right, set);
    // At a solution of its subset the objective is -right' x / 2.
    let value = 0;
    for (let i = 0; i < N; i++)
      value = solution[i]! >= 0 ? value - (right[i]! * solution[i]!) / 2 : Number.POSITIVE_INFINITY;
    if (!(value < least)) continue;
    best.set(solution);
    least = value;
  }
  return best;
}

/**
 * Solves into `solution` for the unknowns in `set`, a bit each, the others 0; Gaussian elimination, which needs no
 * pivoting here.
 */
function solveSubset(matrix: readonly number[], right: readonly number[], set: number): void {
  const width = N + 1;
  for (let i = 0; i < N; i++) {
    for (let j = 0; j < N; j++) elimination[width * i + j] = matrix[N * i + j]!;
    elimination[width * i + N] = right[i]!;
  }
  for (let k = 0; k < N; k++) {
    if (!((set >> k) & 1)) continue;
    for (let i = 0; i < N; i++) {
      if (i === k || !((set >> i) & 1)) continue;
      const factor = elimination[width * i + k]! / elimination[width * k + k]!;
      for (let j = k; j < width; j++) elimination[width * i + j]! -= factor * elimination[width * k + j]!;
    }
  }
  for (let i = 0; i < N; i++)
    solution[i] = (set >> i) & 1 ? elimination[width * i + N]! / elimination[width * i + i]! : 0;
}
