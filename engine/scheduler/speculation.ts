/**
 * Drafts for the sequences that decode: what each could go on with, how much of that is worth a row, and what became of
 * it. Keeps what it has learnt of a sequence as long as that lives. Decides nothing about tokens: the engine samples
 * every
 * position from the model's own logits, so a wrong draft costs time and never changes a text.
 */
import type { Priority } from '../protocol/tasks.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { PromptLookup } from './promptLookup.ts';

/** Rows of a step up to which one more is worth a thought, drafts included. */
const MAX_ROWS = 16;

interface Guess {
  readonly tokenIds: number[];
  readonly chance: DraftChance;
}

const NO_GUESS: Guess = { tokenIds: [], chance: { rate: 0, most: 0 } };

interface Drafter {
  readonly lookup: PromptLookup;
  readonly acceptance: Acceptance;
  /** Of the match that the draft under way comes from. */
  matchLength: number;
}

export class Speculation {
  readonly #drafters = new WeakMap<Sequence, Drafter>();
  readonly #cost = new RowCost();
  readonly #classes: Record<Priority, ClassRates> = {
    completion: new ClassRates(),
    chat: new ClassRates(),
    summary: new ClassRates(),
    idle: new ClassRates(),
  };

  /**
   * Drafts for the decoding sequences of a step, together at most `mostTokens`; none for those left out. `columnMs`:
   * see RowCost.
   */
  propose(sequences: readonly Sequence[], mostTokens: number, columnMs: number): Map<Sequence, number[]> {
    const drafts = new Map<Sequence, number[]>();
    const most = Math.min(mostTokens, MAX_ROWS - sequences.length);
    if (most <= 0) return drafts;
    const guesses = sequences.map((sequence) => this.#guess(sequence, most, 'expect'));
    const lengths = draftLengths(
      guesses.map(({ chance }) => chance),
      sequences.length,
      this.#cost.fixedRows(columnMs),
      most,
    );
    for (const [i, length] of lengths.entries())
      if (length > 0) drafts.set(sequences[i]!, guesses[i]!.tokenIds.slice(0, length));
    return drafts;
  }

  /** Tokens that would be drafted for a sequence in a step of its own. */
  numWanted(sequence: Sequence, columnMs: number): number {
    const most = MAX_ROWS - 1;
    return draftLengths([this.#guess(sequence, most, 'peek').chance], 1, this.#cost.fixedRows(columnMs), most)[0]!;
  }

  /**
   * A draft of this sequence has been verified: so many of its tokens were right, and the one after them was wrong if
   * `rejected`.
   */
  verified(sequence: Sequence, numAccepted: number, rejected: boolean): void {
    const drafter = this.#drafters.get(sequence);
    drafter?.acceptance.observe(drafter.matchLength, numAccepted, rejected);
  }

  /** A step that only decoded took `ms` for its rows, of it `columnMs` for the columns of each. */
  observe(numRows: number, ms: number, columnMs: number): void {
    this.#cost.observe(numRows, ms, columnMs);
  }

  #guess(sequence: Sequence, most: number, how: 'peek' | 'expect'): Guess {
    const { tokenIds: known, priority, sampling, draftSources } = sequence;
    if (!draftSources) return NO_GUESS;
    let drafter = this.#drafters.get(sequence);
    if (!drafter) {
      drafter = {
        lookup: new PromptLookup(draftSources(), known.length + Math.min(sampling.maxTokens, 1024)),
        acceptance: new Acceptance(this.#classes[priority]),
        matchLength: 0,
      };
      this.#drafters.set(sequence, drafter);
    }
    const { lookup, acceptance } = drafter;
    lookup.extend(known);
    drafter.matchLength = lookup.matchLength;
    // The row after the last drafted token gives one more.
    const tokenIds = lookup.guess(Math.min(most, sequence.numLeft - 1));
    return {
      tokenIds,
      chance: tokenIds.length > 0 ? acceptance[how](lookup.matchLength, tokenIds.length) : NO_GUESS.chance,
    };
  }
}

export interface DraftChance {
  /** Probability that a drafted token is right, given that those before it are. */
  readonly rate: number;
  /** Tokens that could be drafted. */
  readonly most: number;
}

/**
 * Drafted tokens of each sequence, together at most `mostRows`. `numRows`: rows that the step has without drafts.
 * `fixedRows`: what a step costs beside its rows, in rows.
 */
export function draftLengths(
  chances: readonly DraftChance[],
  numRows: number,
  fixedRows: number,
  mostRows: number,
): number[] {
  const lengths = chances.map(() => 0);
  const gains = chances.map(({ rate }) => rate);
  let tokens = chances.length;
  for (let added = 0; added < mostRows; added++) {
    let best = -1;
    for (let i = 0; i < chances.length; i++)
      if (lengths[i]! < chances[i]!.most && (best < 0 || gains[i]! > gains[best]!)) best = i;
    if (best < 0 || gains[best]! <= tokens / (fixedRows + numRows + added)) break;
    tokens += gains[best]!;
    lengths[best]!++;
    gains[best]! *= chances[best]!.rate;
  }
  return lengths;
}

/**
 * PURE: how often a sequence's drafted tokens were right, learnt as it goes, by how long the match was that they came
 * from: after a long copied run the next token is nearly certain, after a pair of tokens it seldom is. Below a rate of
 * 15% a kind of match is not drafted from any more, but for a probe now and then.
 *
 * What sequences of a class come to is where the next one begins, but never so low that it is not tried.
 */

/** A kind is left alone below this rate. */
export const MIN_RATE = 0.15;
/** Times that a kind which is left alone could have been drafted from before one token is tried. */
export const PROBE_EVERY = 32;
/** From so many matching tokens on: a pair or three, some, many. */
const KINDS = [2, 4, 8] as const;
/**
 * Before anything is known of a class; where a sequence begins, at least and at most; and how many trials that counts
 * for.
 */
const FIRST_RATES = [0.35, 0.6, 0.8] as const;
const MIN_FIRST_RATE = 0.2;
const MAX_FIRST_RATE = 0.9;
const FIRST_TRIALS = 2;
/** Older trials fade beyond so many, of a sequence and of a class. */
const MAX_TRIALS = 24;
const MAX_CLASS_TRIALS = 200;

/** By kind, the rate of all sequences of a class. */
export class ClassRates {
  readonly #hits = FIRST_RATES.map((rate) => 10 * FIRST_TRIALS * rate);
  readonly #trials = FIRST_RATES.map(() => 10 * FIRST_TRIALS);

  firstRate(kind: number): number {
    return Math.min(MAX_FIRST_RATE, Math.max(MIN_FIRST_RATE, this.#hits[kind]! / this.#trials[kind]!));
  }

  observe(kind: number, hits: number, trials: number): void {
    const all = this.#trials[kind]! + trials;
    const fading = Math.min(1, MAX_CLASS_TRIALS / all);
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

  /**
   * Probability that a token drafted from such a match is right, given that those before it are; and how many tokens to
   * draft at most. Probes apart.
   */
  peek(matchLength: number, most: number): { rate: number; most: number } {
    const kind = kindOf(matchLength);
    if (kind < 0) return { rate: 0, most: 0 };
    const rate = this.#hits[kind]! / this.#trials[kind]!;
    return { rate, most: rate >= MIN_RATE ? most : 0 };
  }

  /** The same where a step is about to be drafted for. */
  expect(matchLength: number, most: number): { rate: number; most: number } {
    const kind = kindOf(matchLength);
    const known = this.peek(matchLength, most);
    if (kind < 0 || known.rate >= MIN_RATE || ++this.#skipped[kind]! < PROBE_EVERY) return known;
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
    const fading = Math.min(1, MAX_TRIALS / trials);
    this.#hits[kind] = (this.#hits[kind]! + accepted) * fading;
    this.#trials[kind] = trials * fading;
  }
}

function kindOf(matchLength: number): number {
  return KINDS.findLastIndex((from) => matchLength >= from);
}

/**
 * PURE: what a step costs beside its rows, in rows, learnt from the steps that only decode. A least-squares line
 * through
 * the recent ones, older ones fading; steps of one size say nothing of the slope, then the last one that could be told
 * stands. What a row costs for the columns that it attends to differs from step to step and is reckoned apart.
 */

/** Before anything is learnt: memory-bound linear layers, a few rows nearly free. */
const FIRST_FIXED_ROWS = 8;
const MIN_FIXED_ROWS = 0.5;
const MAX_FIXED_ROWS = 32;
const FADING = 0.95;
/** From so many steps on, none counts for more than so many times the mean. */
const SETTLED = 4;
const MAX_TIMES = 3;
/** Of the number of rows, weighted: below it the slope is noise. */
const MIN_VARIANCE = 0.25;

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
    const ms = this.#weight > SETTLED ? Math.min(ownMs, (MAX_TIMES * this.#ms) / this.#weight) : ownMs;
    this.#weight = this.#weight * FADING + 1;
    this.#rows = this.#rows * FADING + numRows;
    this.#ms = this.#ms * FADING + ms;
    this.#rows2 = this.#rows2 * FADING + numRows * numRows;
    this.#rowsMs = this.#rowsMs * FADING + numRows * ms;
    const meanRows = this.#rows / this.#weight;
    const meanMs = this.#ms / this.#weight;
    const variance = this.#rows2 / this.#weight - meanRows * meanRows;
    const covariance = this.#rowsMs / this.#weight - meanRows * meanMs;
    if (variance < MIN_VARIANCE || !(meanMs > 0)) return;
    const rowMs = Math.max(covariance / variance, 0);
    this.#learnt = { fixedMs: meanMs - rowMs * meanRows, rowMs };
  }

  /** What a step costs beside its rows, in rows, each of which costs `columnMs` for its columns. */
  fixedRows(columnMs: number): number {
    if (!this.#learnt) return FIRST_FIXED_ROWS;
    const { fixedMs, rowMs } = this.#learnt;
    return Math.min(MAX_FIXED_ROWS, Math.max(MIN_FIXED_ROWS, fixedMs / (rowMs + columnMs)));
  }
}
