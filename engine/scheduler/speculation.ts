/**
 * Drafts tokens for decoding sequences, and learns how many are worth their cost. Does not choose tokens: the engine
 * samples each position from the model's own logits, so a wrong draft costs time and never changes a text.
 */
import type { Priority } from '../protocol/tasks.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { PromptLookup } from './promptLookup.ts';

/** Most rows of a step, drafts included. */
const MAX_ROWS = 16;

interface Guess {
  readonly tokenIds: number[];
  readonly chance: DraftChance;
}

const NO_GUESS: Guess = { tokenIds: [], chance: { rate: 0, most: 0 } };

interface Drafter {
  readonly lookup: PromptLookup;
  readonly acceptance: Acceptance;
  /** Length of the match that the current draft comes from. */
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

  /** Drafts for the decoding sequences of a step, together at most `mostTokens`. `columnMs`: see RowCost. */
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

  /** Number of tokens that would be drafted for a sequence in a step of its own. */
  numWanted(sequence: Sequence, columnMs: number): number {
    const most = MAX_ROWS - 1;
    return draftLengths([this.#guess(sequence, most, 'peek').chance], 1, this.#cost.fixedRows(columnMs), most)[0]!;
  }

  /** A draft of this sequence was verified: `numAccepted` tokens were right; `rejected`: the next one was wrong. */
  verified(sequence: Sequence, numAccepted: number, rejected: boolean): void {
    const drafter = this.#drafters.get(sequence);
    drafter?.acceptance.observe(drafter.matchLength, numAccepted, rejected);
  }

  /** A step that only decoded took `ms` for its rows, including `columnMs` for the columns of each row. */
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
    // The row of the last drafted token gives one more token.
    const tokenIds = lookup.guess(Math.min(most, sequence.numLeft - 1));
    return {
      tokenIds,
      chance: tokenIds.length > 0 ? acceptance[how](lookup.matchLength, tokenIds.length) : NO_GUESS.chance,
    };
  }
}

export interface DraftChance {
  /** Probability that a drafted token is right if all before it are right. */
  readonly rate: number;
  /** Tokens that could be drafted. */
  readonly most: number;
}

/**
 * How many tokens to draft for each sequence, together at most `mostRows`. Rows go to the drafts that are most likely
 * right, as long as each row raises the expected tokens per millisecond. `numRows`: rows that the step has without
 * drafts. `fixedRows`: fixed cost of a step, as a number of rows.
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

/** A kind of match with a lower rate gives no drafts, except for probes. */
export const MIN_RATE = 0.15;
/** Such a kind gives a probe of one token each time it could have given this many drafts. */
export const PROBE_EVERY = 32;
/** The kinds of match, by their smallest number of matching tokens. */
const KINDS = [2, 4, 8] as const;
/**
 * By kind: the rates of a class at first; bounds of the rate with which a new sequence starts; the number of trials for
 * which that rate counts.
 */
const FIRST_RATES = [0.35, 0.6, 0.8] as const;
const MIN_FIRST_RATE = 0.2;
const MAX_FIRST_RATE = 0.9;
const FIRST_TRIALS = 2;
/** Older trials lose weight beyond this many, for a sequence and for a class. */
const MAX_TRIALS = 24;
const MAX_CLASS_TRIALS = 200;

/** The rates of all sequences of a class, by kind. New sequences start with them, but never too low to be tried. */
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

/**
 * How often a sequence's drafted tokens were right, by the length of the match that they came from: after a long copied
 * run the next token is nearly certain, after a pair of tokens it seldom is.
 */
export class Acceptance {
  readonly #class: ClassRates;
  readonly #hits: number[];
  readonly #trials = KINDS.map(() => FIRST_TRIALS);
  readonly #skipped = KINDS.map(() => 0);

  constructor(ofClass: ClassRates) {
    this.#class = ofClass;
    this.#hits = KINDS.map((_, kind) => ofClass.firstRate(kind) * FIRST_TRIALS);
  }

  /** Probability that a token drafted from such a match is right, and most tokens to draft. Without probes. */
  peek(matchLength: number, most: number): { rate: number; most: number } {
    const kind = kindOf(matchLength);
    if (kind < 0) return { rate: 0, most: 0 };
    const rate = this.#hits[kind]! / this.#trials[kind]!;
    return { rate, most: rate >= MIN_RATE ? most : 0 };
  }

  /** The same for a step that drafts now. Counts the chances for a probe. */
  expect(matchLength: number, most: number): { rate: number; most: number } {
    const kind = kindOf(matchLength);
    const known = this.peek(matchLength, most);
    if (kind < 0 || known.rate >= MIN_RATE || ++this.#skipped[kind]! < PROBE_EVERY) return known;
    this.#skipped[kind] = 0;
    // The probe counts as certain, so that it is tried whatever a row costs.
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

/** Fixed cost at first, in rows: linear layers are bound by memory, so a few rows cost little. */
const FIRST_FIXED_ROWS = 8;
const MIN_FIXED_ROWS = 0.5;
const MAX_FIXED_ROWS = 32;
const FADING = 0.95;
/** From this many steps on, a step counts for at most MAX_TIMES the mean. */
const SETTLED = 4;
const MAX_TIMES = 3;
/** Smallest weighted variance of the number of rows: below it the slope is noise. */
const MIN_VARIANCE = 0.25;

/**
 * The fixed cost of a step, as a number of rows, learnt from steps that only decode: a least-squares line through the
 * recent steps, in which older ones lose weight. If all have the same number of rows, the last known slope stays. The
 * cost of a row's columns differs from step to step and is counted separately.
 */
export class RowCost {
  #weight = 0;
  #rows = 0;
  #ms = 0;
  #rows2 = 0;
  #rowsMs = 0;
  #learnt: { readonly fixedMs: number; readonly rowMs: number } | null = null;

  /** A step took `measuredMs`. `columnMs`: cost of the columns of one row. */
  observe(numRows: number, measuredMs: number, columnMs: number): void {
    const ownMs = Math.max(0, measuredMs - numRows * columnMs);
    // A single disturbed step must not make rows look expensive.
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

  /** The fixed cost of a step, as a number of rows, each of which costs `columnMs` for its columns. */
  fixedRows(columnMs: number): number {
    if (!this.#learnt) return FIRST_FIXED_ROWS;
    const { fixedMs, rowMs } = this.#learnt;
    return Math.min(MAX_FIXED_ROWS, Math.max(MIN_FIXED_ROWS, fixedMs / (rowMs + columnMs)));
  }
}
