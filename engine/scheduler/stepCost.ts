/**
 * Learns what a step costs from the steps that have run, and compares one step with two. One StepCost per lane.
 * Does not decide how many tokens a step has: see tokenBudget.ts.
 */

/**
 * ms = a + b * tokens + c * tokens * columns + d * columns, all coefficients >= 0. Every step reads all weights once
 * (a). Every token passes through the linear layers (b) and attends to its columns, those of the pool and the step's
 * own (c). Columns are prepared for the products once a step (d; in the prefill lane a column costs as much as about
 * forty tokens that attend to it).
 */
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
 * Proportions of small models on two cores, in the paged lane and in the prefill lane. Coefficients that have not been
 * measured yet are scaled from these. In the paged lane d is 0: its steps have so few tokens that c and d could not be
 * distinguished.
 */
const TYPICAL: Coefficients = { a: 14, b: 0.8, c: 0.001, d: 0 };
export const TYPICAL_PREFILL: Coefficients = { a: 14, b: 0.45, c: 0.00025, d: 0.01 };
/** Number of coefficients. */
const N = 4;
/** Weight of the proportions above; a fresh cell has 1. */
const PRIOR_WEIGHT = 0.01;
/** Tokens that a step may have before similar sizes were measured. A step that is far too long would be noticed. */
const TRUSTED_TOKENS = 32;
/** Steps kept per cell. */
const KEPT = 5;
/** Steps after which a cell without new steps has half its weight, and its smallest weight. */
const HALF_LIFE = 300;
const MIN_WEIGHT = 0.05;
/** Steps whose median gives the present speed. */
const RECENT = 9;

interface Observation {
  readonly tokens: number;
  readonly columns: number;
  readonly ms: number;
}

interface Cell {
  /** Oldest first. */
  readonly last: Observation[];
  /** Number of its latest step. */
  step: number;
}

const logBucket = (n: number): number => Math.ceil(Math.log2(Math.max(1, n)));

/**
 * Works on a machine that does other things as well. Steps of about one size share a cell. A cell keeps its last steps
 * and stands for their median, so single slow steps count for nothing. The weight of a cell without new steps falls,
 * but never to 0: a thousand decodes must not make the cost of a chunk unknown. The fit minimises relative errors. If
 * the whole machine becomes slower (heat, battery), the median of the last steps corrects the fit.
 */
export class StepCost {
  readonly #cells = new Map<number, Cell>();
  readonly #typical: Coefficients;
  #fitted: Coefficients;
  /** Duration over fitted duration of the last steps, oldest first. */
  readonly #recent: number[] = [];
  #slowness = 1;
  #numSteps = 0;
  #mostTokens = 0;

  constructor(typical = TYPICAL) {
    this.#typical = typical;
    this.#fitted = typical;
  }

  /** As learnt so far; typical proportions at first. */
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
   * The most tokens of a step over `columns` that stays within `ms`; each token adds a column. 0 if not even one fits.
   * At most twice as many as have been measured.
   */
  tokensWithin(ms: number, columns: number): number {
    const { a, b, c, d } = this.coefficients;
    const left = ms - a - d * columns;
    if (left <= 0) return 0;
    // Solves c t^2 + (b + d + c columns) t - left = 0, in a form that allows c = 0.
    const linear = b + d + c * columns;
    const tokens = Math.floor((2 * left) / (linear + Math.sqrt(linear * linear + 4 * c * left)));
    return Math.min(tokens, Math.max(TRUSTED_TOKENS, 2 * this.#mostTokens));
  }

  /** How many tokens cost as much as the fixed part (a, d) of a step over `columns`. */
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
    // How much slower this machine and model are than typical ones.
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

  /** The observation whose ratio of measured to predicted time is the median. */
  #median(observations: readonly Observation[]): Observation {
    const ratio = ({ tokens, columns, ms }: Observation): number => ms / evaluate(this.#fitted, tokens, columns);
    return [...observations].sort((x, y) => ratio(x) - ratio(y))[observations.length >> 1]!;
  }
}

/** Tokens of a step that attend to the same columns. */
export interface Part {
  readonly tokens: number;
  readonly columns: number;
}

/**
 * Whether one step over `columns`, the columns of both parts, costs no more than two steps. In a shared step of the
 * paged lane every token attends to as many columns as the longest sequence, or to those of all (see attendedPages). A
 * separate step reads the weights once more.
 */
export function sharesStep({ a, c, d }: Coefficients, one: Part, other: Part, columns: number): boolean {
  const wasted = one.tokens * (columns - one.columns) + other.tokens * (columns - other.columns);
  return c * wasted <= a + d * (one.columns + other.columns - columns);
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

/** Scratch of `solveSubset`, which runs at every step: rows of [N + 1], and its result. */
const elimination = new Float64Array(N * (N + 1));
const solution = new Float64Array(N);

/** The x >= 0 that minimises x' matrix x / 2 - right' x; `matrix` [N, N] is positive definite. */
function solveNonNegative(matrix: readonly number[], right: readonly number[]): Float64Array {
  const best = new Float64Array(N);
  let least = 0;
  // Tries each of the fifteen sets of unknowns that may be positive.
  for (let set = 1; set < 1 << N; set++) {
    solveSubset(matrix, right, set);
    // At the solution of a subset the objective is -right' x / 2.
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
 * Solves for the unknowns in `set` (one bit each); the others are 0. Writes to `solution`. Gaussian elimination; a
 * positive definite matrix needs no pivoting.
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
