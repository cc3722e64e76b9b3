/**
 * Drafts for the sequences that decode: what each could go on with, how much of that is worth a row, and what became of
 * it. Keeps what it has learnt of a sequence as long as that lives. Decides nothing about tokens: the engine samples
 * every
 * position from the model's own logits, so a wrong draft costs time and never changes a text.
 */
import type { Priority } from '../../protocol/tasks.ts';
import type { Sequence } from '../../sequence/sequence.ts';
import { Acceptance, ClassRates } from './draftLength.ts';
import { type DraftChance, draftLengths } from './draftLength.ts';
import { PromptLookup } from './promptLookup.ts';
import { RowCost } from './draftLength.ts';

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
