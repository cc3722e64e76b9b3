/**
 * From a step's logits to tokens: samples each sequence's rows, keeps what its draft had foreseen, commits what was
 * computed, and ends
 * those that are done. Owns nothing but the way there.
 *
 * Where logits or K/V rows are not finite their sequence ends, and what it has of its own goes: in the tree it would be
 * found again, and one such
 * row in a page makes those of all who attend to the page the same, masked or not.
 */
import { t } from '@vscode/l10n';
import { arraysOf, newKvRows } from '../kv/kvRows.ts';
import type { KvPool } from '../kv/pool.ts';
import { RequestError } from '../protocol/errors.ts';
import type { Journal } from './journal.ts';
import type { FinishReason } from '../protocol/tasks.ts';
import { type Sampled, sample } from '../sequence/sampler.ts';
import type { Scheduled } from '../scheduler/schedule.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import type { Sequence } from '../sequence/sequence.ts';
import type { Speculation } from '../scheduler/speculation.ts';

export interface EmissionParties {
  readonly pool: KvPool;
  readonly scheduler: Scheduler;
  readonly journal: Journal;
  readonly speculation: Speculation;
  /** Whether a sequence ends after this step: it gets no more tokens. */
  readonly isEnding: (sequence: Sequence) => boolean;
  readonly onEnd: (sequence: Sequence, outcome: FinishReason | RequestError) => void;
}

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

  /** @param logits [rows, vocabSize], `numLogits` rows of each part in turn. Returns the number of tokens generated. */
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
      // Each row is sampled as if it were a step's only one. The next row counts where the draft has foreseen this
      // token.
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

  /** Nothing of this part counts, nor of what its sequence has computed beside the tree. Its slots get zeros. */
  #discard(part: Scheduled): void {
    const newSlots = Int32Array.from([...part.lease.tail.splice(0), ...part.newSlots]);
    const zeros = newKvRows(this.#pool.shape, 1);
    for (const slot of newSlots) this.#pool.write(Int32Array.of(slot), zeros, 0, 0);
    this.#scheduler.rollBack([{ ...part, newSlots }]);
  }

  /** A draft has been verified. `numNew`: tokens that its step gave. */
  #judge({ sequence, draft }: Scheduled, numNew: number): void {
    // One that ended, or was ended, says nothing of what would have come.
    if (numNew === 0) return;
    const numAccepted = numNew - 1;
    const rejected = numNew <= draft.length && sequence.tokenIds.at(-1) !== draft[numNew - 1];
    this.#speculation.verified(sequence, numAccepted, rejected);
    this.#journal.drafted(draft.length, numAccepted);
  }
}

/** Whether all numbers of these slots' rows are: of codes their scales. */
function hasFiniteRows(pool: KvPool, slots: Int32Array): boolean {
  const { keyScales, valueScales, places, pageSlots, shape } = pool;
  if (shape.kv === 'float32') return arraysOf(pool.read(slots)).every((values) => values.every(Number.isFinite));
  // The product with 0 of what is not finite is not 0.
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

/** The next token of a sequence by these logits, [vocabSize], or why there is none. */
function sampledOf(sequence: Sequence, logits: Float32Array): Sampled | RequestError {
  const { sampling, tokenIds, allowedIds, copied } = sequence;
  try {
    return sample(logits, sampling, tokenIds, tokenIds.length, allowedIds, copied);
  } catch (error) {
    if (error instanceof RequestError) return error;
    throw error;
  }
}
