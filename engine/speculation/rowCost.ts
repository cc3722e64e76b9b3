/**
 * PURE: what a step costs beside its rows, in rows, learnt from the steps that only decode. A least-squares line through
 * the recent ones, older ones fading; steps of one size say nothing of the slope, then the last one that could be told
 * stands. What a row costs for the columns that it attends to differs from step to step and is reckoned apart.
 */

/** Before anything is learnt: memory-bound linear layers, a few rows nearly free. */
const FIRST_FIXED_ROWS = 8;
const LEAST_FIXED_ROWS = 0.5;
const MOST_FIXED_ROWS = 32;
const FADING = 0.95;
/** From so many steps on, none counts for more than so many times the mean. */
const SETTLED = 4;
const MOST_TIMES = 3;
/** Of the number of rows, weighted: below it the slope is noise. */
const LEAST_VARIANCE = 0.25;

export class RowCost {
  #weight = 0;
  #rows = 0;
  #ms = 0;
  #rows2 = 0;
  #rowsMs = 0;
  #learnt: { readonly fixedMs: number; readonly rowMs: number } | null = null;

  /** A step took `measuredMs`; `columnMs`: what each row of it cost for its columns. */
  observe(numRows: number, measuredMs: number, columnMs: number): void {
    const ownMs = Math.max(0, measuredMs - numRows * columnMs);
    // A single disturbed step must not make rows look dear.
    const ms = this.#weight > SETTLED ? Math.min(ownMs, (MOST_TIMES * this.#ms) / this.#weight) : ownMs;
    this.#weight = this.#weight * FADING + 1;
    this.#rows = this.#rows * FADING + numRows;
    this.#ms = this.#ms * FADING + ms;
    this.#rows2 = this.#rows2 * FADING + numRows * numRows;
    this.#rowsMs = this.#rowsMs * FADING + numRows * ms;
    const meanRows = this.#rows / this.#weight;
    const meanMs = this.#ms / this.#weight;
    const variance = this.#rows2 / this.#weight - meanRows * meanRows;
    const covariance = this.#rowsMs / this.#weight - meanRows * meanMs;
    if (variance < LEAST_VARIANCE || !(meanMs > 0)) return;
    const rowMs = Math.max(covariance / variance, 0);
    this.#learnt = { fixedMs: meanMs - rowMs * meanRows, rowMs };
  }

  /** What a step costs beside its rows, in rows, each of which costs `columnMs` for its columns. */
  fixedRows(columnMs: number): number {
    if (!this.#learnt) return FIRST_FIXED_ROWS;
    const { fixedMs, rowMs } = this.#learnt;
    return Math.min(MOST_FIXED_ROWS, Math.max(LEAST_FIXED_ROWS, fixedMs / (rowMs + columnMs)));
  }
}
