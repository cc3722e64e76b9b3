/**
 * PURE: how likely it is that a run is found again, by its class and by how long it has not been: learnt from the runs that were
 * found and from those that went. As "KVCache in the Wild" (arXiv 2506.02634) has it, classes differ by far more than ages do
 * within one: what was typed past is never found again, a file's block is, an hour later.
 */

/** Ages are counted by powers of two, from an eighth of a second up to nine hours. */
const NUM_AGES = 19;
const FIRST_MS = 125;
/** What is taken to be known beforehand: so many runs of each age, of which this share were found within it. */
const PRIOR_RUNS = 3;
const PRIOR_SHARE = 0.25;

function ageOf(idleMs: number): number {
  return Math.max(0, Math.min(NUM_AGES - 1, Math.floor(Math.log2(Math.max(1, idleMs / FIRST_MS)))));
}

class Ages {
  /** Runs that came to each age, and those of them that were found at it. */
  readonly #reached = new Float64Array(NUM_AGES);
  readonly #found = new Float64Array(NUM_AGES);
  /** Of each age: the chance to be found at it or later. */
  #chances: Float64Array | null = null;

  ended(age: number, found: boolean): void {
    for (let i = 0; i <= age; i++) this.#reached[i]!++;
    if (found) this.#found[age]!++;
    this.#chances = null;
  }

  chance(age: number): number {
    if (!this.#chances) {
      this.#chances = new Float64Array(NUM_AGES);
      let missed = 1;
      for (let i = NUM_AGES - 1; i >= 0; i--) {
        missed *= 1 - (this.#found[i]! + PRIOR_RUNS * PRIOR_SHARE) / (this.#reached[i]! + PRIOR_RUNS);
        this.#chances[i] = 1 - missed;
      }
    }
    return this.#chances[age]!;
  }
}

export class ReuseTimes {
  readonly #classes = new Map<string, Ages>();

  /** A run of this class was found, or went, so long after its last use. */
  ended(className: string, idleMs: number, found: boolean): void {
    this.#of(className).ended(ageOf(idleMs), found);
  }

  /** That a run of this class is found some time, 0..1. */
  chance(className: string, idleMs: number): number {
    return this.#of(className).chance(ageOf(idleMs));
  }

  #of(className: string): Ages {
    const ages = this.#classes.get(className) ?? new Ages();
    this.#classes.set(className, ages);
    return ages;
  }
}
