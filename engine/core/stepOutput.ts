/**
 * Turns a step's logits into tokens: samples each sequence's rows, keeps right drafts, commits what was computed, and
 * ends sequences that are done. Owns no sequences.
 */
import { t } from '@vscode/l10n';
import { arraysOf, newKvRows } from '../kv/kvRows.ts';
import type { KvPool } from '../kv/pool.ts';
import { RequestError } from '../protocol/errors.ts';
import type { Journal } from './journal.ts';
import type { FinishReason } from '../protocol/tasks.ts';
import { type Sampled, sample } from '../sequence/sampler.ts';
import type { Scheduled } from '../scheduler/stepBatch.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import type { Sequence } from '../sequence/sequence.ts';
import type { Speculation } from '../scheduler/speculation.ts';

export interface EmissionParties {
  readonly pool: KvPool;
  readonly scheduler: Scheduler;
  readonly journal: Journal;
  readonly speculation: Speculation;
  /** Whether a sequence ends after this step. Then it gets no more tokens. */
  readonly isEnding: (sequence: Sequence) => boolean;
  readonly onEnd: (sequence: Sequence, outcome: FinishReason | RequestError) => void;
}

/**
 * If logits or K/V rows are not finite, the sequence ends and its own rows are dropped. In the tree they would be found
 * again, and such a row in a page spoils the rows of all sequences that attend to the page, masked or not.
 */
export class Emission {
  readonly #pool: KvPool;
  readonly #scheduler: Scheduler;
  readonly #journal: Journal;
  readonly #speculation: Speculation;
  readonly #isEnding: (sequence: Sequence) => boolean;
  readonly #end: (sequence: Sequence, outcome: FinishReason | RequestError) => void;

  constructor({ pool, scheduler, journal, speculation, isEnding, onEnd }: EmissionParties) {
    this.#pool = pool;
    this.#scheduler = scheduler;
    this.#journal = journal;
    this.#speculation = speculation;
    this.#isEnding = isEnding;
    this.#end = onEnd;
  }

  /** @param logits [rows, vocabSize], `numLogits` rows of each part in turn. Returns the number of generated tokens. */
  emit(batch: readonly Scheduled[], logits: Float32Array, vocabSize: number, now: number): number {
    let row = 0;
    let numGenerated = 0;
    for (const part of batch) {
      const { sequence, numLogits, startIndex, count, draft, newSlots, asks } = part;
      let outcome: FinishReason | RequestError | null =
        numLogits === 0 && !asks && startIndex + count === sequence.tokenIds.length ? 'length' : null;
      if (!hasFiniteRows(this.#pool, newSlots))
        outcome = new RequestError(
          'engineFailed',
          t('The model returned K/V rows that are not finite. Ask again; if it happens again, choose another model.'),
        );
      let numNew = 0;
      // Each row is sampled as if it were the step's only one. The next row counts only if the drafted token is right.
      for (let i = 0; i < numLogits && !outcome && !this.#isEnding(sequence); i++) {
        if (i > 0 && sequence.tokenIds.at(-1) !== draft[i - 1]) break;
        const hadNone = Number.isNaN(sequence.firstTokenAt);
        const sampled = sampledOf(sequence, logits.subarray((row + i) * vocabSize, (row + i + 1) * vocabSize));
        if (sampled instanceof RequestError) {
          outcome = sampled;
          break;
        }
        outcome = sequence.append(sampled, now);
        numNew++;
        if (hadNone && !Number.isNaN(sequence.firstTokenAt)) this.#journal.firstToken(sequence);
      }
      row += numLogits;
      numGenerated += numNew;
      if (draft.length > 0) this.#judge(part, numNew);
      if (outcome instanceof RequestError) this.#discard(part);
      else this.#scheduler.commit(part, Math.max(0, numNew - 1));
      if (outcome) this.#end(sequence, outcome);
    }
    return numGenerated;
  }

  /** Drops this part and the sequence's rows that are not in the tree. Their slots get zeros. */
  #discard(part: Scheduled): void {
    const newSlots = Int32Array.from([...part.lease.tail.splice(0), ...part.newSlots]);
    const zeros = newKvRows(this.#pool.shape, 1);
    for (const slot of newSlots) this.#pool.write(Int32Array.of(slot), zeros, 0, 0);
    this.#scheduler.rollBack([{ ...part, newSlots }]);
  }

  /** A draft has been verified. `numNew`: tokens that its step gave. */
  #judge({ sequence, draft }: Scheduled, numNew: number): void {
    // A sequence that has ended does not show which tokens would have come.
    if (numNew === 0) return;
    const numAccepted = numNew - 1;
    const rejected = numNew <= draft.length && sequence.tokenIds.at(-1) !== draft[numNew - 1];
    this.#speculation.verified(sequence, numAccepted, rejected);
    this.#journal.drafted(draft.length, numAccepted);
  }
}

/** Whether all rows of these slots are finite. Of int8 rows only the scales can be otherwise. */
function hasFiniteRows(pool: KvPool, slots: Int32Array): boolean {
  const { keyScales, valueScales, places, pageSlots, shape } = pool;
  if (shape.kv === 'float32') return arraysOf(pool.read(slots)).every((values) => values.every(Number.isFinite));
  // 0 times a value that is not finite is NaN.
  let sum = 0;
  for (const slot of slots) {
    const first = places[Math.floor(slot / pageSlots)]! * shape.kvHeads * pageSlots + (slot % pageSlots);
    for (let l = 0; l < shape.numLayers; l++) {
      for (let h = 0, at = first; h < shape.kvHeads; h++, at += pageSlots)
        sum += 0 * keyScales[l]![at]! + 0 * valueScales[l]![at]!;
    }
  }
  return sum === 0;
}

/** The next token of a sequence for these logits, [vocabSize], or the error. */
function sampledOf(sequence: Sequence, logits: Float32Array): Sampled | RequestError {
  const { sampling, tokenIds, allowedIds, copied } = sequence;
  try {
    return sample(logits, sampling, tokenIds, tokenIds.length, allowedIds, copied);
  } catch (error) {
    if (error instanceof RequestError) return error;
    throw error;
  }
}
