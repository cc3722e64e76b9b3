/**
 * PURE: how often a sequence's drafted tokens were right, learnt as it goes, by how long the match was that they came
 * from: after a long copied run the next token is nearly certain, after a pair of tokens it seldom is. Below a rate of
 * 15% a kind of match is not drafted from any more, but for a probe now and then.
 *
 * What sequences of a class come to is where the next one begins, but never so low that it is not tried.
 */

/** A kind is left alone below this rate. */
export const LEAST_RATE = 0.15;
/** Times that a kind which is left alone could have been drafted from before one token is tried. */
export const PROBE_EVERY = 32;
/** From so many matching tokens on: a pair or three, some, many. */
const KINDS = [2, 4, 8] as const;
/** Before anything is known of a class; where a sequence begins, at least and at most; and how many trials that counts for. */
const FIRST_RATES = [0.35, 0.6, 0.8] as const;
const LEAST_FIRST_RATE = 0.2;
const MOST_FIRST_RATE = 0.9;
const FIRST_TRIALS = 2;
/** Older trials fade beyond so many, of a sequence and of a class. */
const MOST_TRIALS = 24;
const MOST_CLASS_TRIALS = 200;

/** By kind, the rate of all sequences of a class. */
export class ClassRates {
  readonly #hits = FIRST_RATES.map((rate) => 10 * FIRST_TRIALS * rate);
  readonly #trials = FIRST_RATES.map(() => 10 * FIRST_TRIALS);

  firstRate(kind: number): number {
    return Math.min(MOST_FIRST_RATE, Math.max(LEAST_FIRST_RATE, this.#hits[kind]! / this.#trials[kind]!));
  }

  observe(kind: number, hits: number, trials: number): void {
    const all = this.#trials[kind]! + trials;
    const fading = Math.min(1, MOST_CLASS_TRIALS / all);
    this.#hits[kind] = (this.#hits[kind]! + hits) * fading;
    this.#trials[kind] = all * fading;
  }
}

export class Acceptance {
  readonly #class: ClassRates;
  readonly #hits: number[];
  readonly #trials = KINDS.map(() => FIRST_TRIALS);
  readonly #skipped = KINDS.map(() => 0);

  constructor(ofClass: ClassRates) {
    this.#class = ofClass;
    this.#hits = KINDS.map((_, kind) => ofClass.firstRate(kind) * FIRST_TRIALS);
  }

  /** Probability that a token drafted from such a match is right, given that those before it are; and how many tokens to draft at most. Probes apart. */
  peek(matchLength: number, most: number): { rate: number; most: number } {
    const kind = kindOf(matchLength);
    if (kind < 0) return { rate: 0, most: 0 };
    const rate = this.#hits[kind]! / this.#trials[kind]!;
    return { rate, most: rate >= LEAST_RATE ? most : 0 };
  }

  /** The same where a step is about to be drafted for. */
  expect(matchLength: number, most: number): { rate: number; most: number } {
    const kind = kindOf(matchLength);
    const known = this.peek(matchLength, most);
    if (kind < 0 || known.rate >= LEAST_RATE || ++this.#skipped[kind]! < PROBE_EVERY) return known;
    this.#skipped[kind] = 0;
    // Certain, for once: so that it is tried whatever a row costs.
    return { rate: 1, most: Math.min(1, most) };
  }

  /** `accepted` tokens of a draft were right; `rejected`: the one after them was wrong. */
  observe(matchLength: number, accepted: number, rejected: boolean): void {
    const kind = kindOf(matchLength);
    if (kind < 0) return;
    const trials = this.#trials[kind]! + accepted + Number(rejected);
    this.#class.observe(kind, accepted, accepted + Number(rejected));
    const fading = Math.min(1, MOST_TRIALS / trials);
    this.#hits[kind] = (this.#hits[kind]! + accepted) * fading;
    this.#trials[kind] = trials * fading;
  }
}

function kindOf(matchLength: number): number {
  return KINDS.findLastIndex((from) => matchLength >= from);
}
