/**
 * From a step's logits to tokens: samples each sequence's rows, keeps what its draft had foreseen, commits what was computed, and ends
 * those that are done. Owns nothing but the way there.
 */
import type { Journal } from './journal.ts';
import type { FinishReason } from './protocol.ts';
import { sample } from './sampler.ts';
import type { Scheduled } from './schedule.ts';
import type { Scheduler } from './scheduler.ts';
import type { Sequence } from './sequence.ts';
import type { Speculation } from './speculation/speculation.ts';

export interface EmissionParties {
  readonly scheduler: Scheduler;
  readonly journal: Journal;
  readonly speculation: Speculation | null;
  /** Whether a sequence ends after this step: it gets no more tokens. */
  readonly isEnding: (sequence: Sequence) => boolean;
  readonly onEnd: (sequence: Sequence, reason: FinishReason) => void;
}

export class Emission {
  readonly #scheduler: Scheduler;
  readonly #journal: Journal;
  readonly #speculation: Speculation | null;
  readonly #isEnding: (sequence: Sequence) => boolean;
  readonly #end: (sequence: Sequence, reason: FinishReason) => void;

  constructor({ scheduler, journal, speculation, isEnding, onEnd }: EmissionParties) {
    this.#scheduler = scheduler;
    this.#journal = journal;
    this.#speculation = speculation;
    this.#isEnding = isEnding;
    this.#end = onEnd;
  }

  /** @param logits [rows, vocabSize], `numLogits` rows of each part in turn. Returns the number of tokens generated. */
  emit(batch: readonly Scheduled[], logits: Float32Array, vocabSize: number, now: number): number {
    let row = 0;
    let numGenerated = 0;
    for (const part of batch) {
      const { sequence, numLogits, startIndex, count, draft, asks } = part;
      let reason: FinishReason | null = numLogits === 0 && !asks && startIndex + count === sequence.tokenIds.length ? 'length' : null;
      let numNew = 0;
      // Each row is sampled as if it were a step's only one. The next row counts where the draft has foreseen this token.
      for (let i = 0; i < numLogits && !reason && !this.#isEnding(sequence); i++) {
        if (i > 0 && sequence.tokenIds.at(-1) !== draft[i - 1]) break;
        const hadNone = Number.isNaN(sequence.firstTokenAt);
        const sampled = sample(logits.subarray((row + i) * vocabSize, (row + i + 1) * vocabSize), sequence.sampling, sequence.tokenIds, sequence.tokenIds.length, sequence.allowedIds, sequence.copied);
        reason = sequence.append(sampled, now);
        numNew++;
        if (hadNone && !Number.isNaN(sequence.firstTokenAt)) this.#journal.firstToken(sequence);
      }
      row += numLogits;
      numGenerated += numNew;
      const numAccepted = Math.max(0, numNew - 1);
      this.#scheduler.commit(part, numAccepted);
      if (draft.length > 0) this.#judge(part, numNew);
      if (reason) this.#end(sequence, reason);
    }
    return numGenerated;
  }

  /** A draft has been verified. `numNew`: tokens that its step gave. */
  #judge({ sequence, draft }: Scheduled, numNew: number): void {
    // One that ended, or was ended, says nothing of what would have come.
    if (numNew === 0) return;
    const numAccepted = numNew - 1;
    const rejected = numNew <= draft.length && sequence.tokenIds.at(-1) !== draft[numNew - 1];
    this.#speculation?.verified(sequence, numAccepted, rejected);
    this.#journal.drafted(draft.length, numAccepted);
  }
}
