/**
 * Owns the sequences and builds steps: Admission decides which sequences run, StepBuilder which tokens each gets.
 * Never sees a tensor.
 */
import { Admission } from './admission.ts';
import type { BatchSpan } from '../model/batch.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { numComputed } from '../kv/lease.ts';
import { lostRows, type MemoryLimit } from './capacityErrors.ts';
import { type SchedulingPolicy, VirtualTokens } from './policy.ts';
import type { TokenBudget } from './tokenBudget.ts';
import type { Priority } from '../protocol/tasks.ts';
import type { Schedule, Scheduled } from './stepBatch.ts';
import type { Sequence } from '../sequence/sequence.ts';
import type { RowReuse } from '../kv/approx/interfaces.ts';
import type { Speculation } from './speculation.ts';
import { StepBuilder } from './stepBuilder.ts';

interface SchedulerParties {
  readonly cache: KvCache;
  readonly policy: SchedulingPolicy;
  readonly speculation: Speculation;
  readonly reuse: RowReuse;
  readonly limit: MemoryLimit;
}

export class Scheduler {
  readonly #cache: KvCache;
  readonly #policy: SchedulingPolicy;
  readonly #admission: Admission;
  readonly #builder: StepBuilder;
  readonly #served = new VirtualTokens();
  #numAdded = 0;

  constructor(parties: SchedulerParties) {
    const { cache, policy } = parties;
    this.#cache = cache;
    this.#policy = policy;
    this.#admission = new Admission(cache, policy, this.#served);
    this.#builder = new StepBuilder({ ...parties, admission: this.#admission, served: this.#served });
  }

  get numPreemptions(): number {
    return this.#admission.numPreemptions;
  }

  sequences(): Iterable<Sequence> {
    return this.#admission.sequences();
  }

  /** Waiting and running requests; idle work is not a request. */
  counts(): { waiting: number; running: number } {
    const requests = (sequences: Iterable<Sequence>): number =>
      [...sequences].filter((s) => s.priority !== 'idle').length;
    return { waiting: requests(this.#admission.waiting), running: requests(this.#admission.running.keys()) };
  }

  add(sequence: Sequence, now: number): void {
    sequence.arrivalIndex = this.#numAdded++;
    sequence.lastServedAt = now;
    this.#admission.waiting.add(sequence);
    this.#served.arrive(sequence.clientId, this.#policy.rank(sequence));
  }

  /** Gives a sequence another class from the next step on. */
  prioritise(sequence: Sequence, priority: Priority): void {
    sequence.priority = priority;
    if (this.#admission.has(sequence)) this.#served.move(sequence.clientId, this.#policy.rank(sequence));
  }

  /**
   * Tokens that completions have to compute before they generate. Without the first completion, and with each prompt
   * counted once.
   */
  backlog(): number {
    const prompts: Sequence[] = [];
    let numTokens = 0;
    for (const sequence of this.sequences()) {
      if (sequence.priority !== 'completion') continue;
      if (prompts.some((other) => hasSamePrompt(sequence, other))) continue;
      if (prompts.push(sequence) > 1) numTokens += this.missing(sequence);
    }
    return numTokens;
  }

  /** Tokens of a sequence that are neither computed nor cached now. */
  missing(sequence: Sequence): number {
    return Math.max(0, sequence.tokenIds.length - this.#admission.numFound(sequence));
  }

  /** Forgets a sequence. Its computed tokens stay cached. */
  remove(sequence: Sequence): void {
    this.#admission.remove(sequence);
  }

  /** Sets the cache's budget and preempts what no longer fits. @param mostPrefill the lane limit, in tokens */
  setMaxBytes(maxBytes: number, mostPrefill: number): void {
    // Tokens beyond the new lane limit that have not been computed yet take the paged lane.
    for (const [sequence, lease] of this.#admission.running)
      if (!lease.partial) sequence.limitPrefill(mostPrefill, numComputed(lease));
    // The store cannot drop the rows that a partial lease holds there.
    for (const [sequence, { partial }] of this.#admission.running) if (partial) this.#admission.preempt(sequence);
    this.#cache.reserved(0);
    while (this.#cache.memory.excess(maxBytes) > 0) this.#admission.preempt(this.#admission.lastInOrder()!);
    this.#cache.setMaxBytes(maxBytes);
  }

  /** Builds the next step and takes slots for it. */
  schedule(budget: TokenBudget, now: number): Schedule {
    this.#endLost();
    this.#chooseLong();
    const all = [...this.sequences()];
    const idleToo = all.every((s) => s.priority === 'idle');
    const active = all.filter((s) => idleToo || s.priority !== 'idle').sort(this.#admission.slotOrder);
    const urgent = active.some((s) => this.#policy.isUrgent(s));
    this.#builder.next();
    this.#builder.build({ active, budget, urgent, now, admits: true });
    // A completion that cannot run yet must not delay other sequences.
    if (urgent && this.#admission.batch.size === 0)
      this.#builder.build({ active, budget, urgent: false, now, admits: true });
    // The prompt in the prefill lane may have been preempted for a sequence that did not fit afterwards.
    if (this.#admission.batch.size === 0) this.#builder.build({ active, budget, urgent: false, now, admits: false });
    const batch = this.#admission.batch.take();
    for (const { sequence } of batch) {
      if (Number.isNaN(sequence.startedAt)) sequence.startedAt = now;
      sequence.lastServedAt = now;
    }
    return { batch, ended: this.#admission.takeEnded() };
  }

  /** Ends sequences whose rows are lost. */
  #endLost(): void {
    for (const [sequence, { failure }] of [...this.#admission.running]) {
      if (!failure) continue;
      this.#admission.end(sequence, lostRows(failure));
    }
  }

  /** Reserves memory for a partial lease and chooses its rows, before a step is built. */
  #chooseLong(): void {
    const sequence = this.#admission.long;
    this.#cache.reserved(sequence?.tokenIds.length ?? 0);
    if (!sequence) return;
    this.#cache.longContexts.choose(this.#admission.running.get(sequence)!);
  }

  /** A part of the batch for the runner. Valid until the next `schedule`. */
  span({ sequence, lease, startIndex, count, draft, newSlots, lane, numLogits, numQueries }: Scheduled): BatchSpan {
    const contextSlots = this.#cache.slotsOf(lease);
    // The scratch holds the chosen rows, whatever their positions.
    const prefillEnd = lease.partial
      ? Math.min(
          sequence.prefillEnd,
          Math.max(this.#cache.longContexts.maxSlots(lease.partial), contextSlots.length + count),
        )
      : sequence.prefillEnd;
    return {
      tokenIds: [...sequence.tokenIds.slice(startIndex, startIndex + count), ...draft],
      startIndex,
      contextSlots,
      newSlots,
      lane,
      prefillEnd,
      numLogits,
      numQueries,
    };
  }

  /** The runner has returned these queries for a part. */
  saw({ lease, numQueries }: Scheduled, queries: Float32Array): void {
    this.#cache.longContexts.saw(lease, queries, numQueries);
  }

  /** A part has been computed. `numAccepted` tokens of its draft are kept; the slots of the rest are freed. */
  commit({ sequence, lease, newSlots, prefill, startIndex, count, draft, asks }: Scheduled, numAccepted: number): void {
    if (asks) {
      this.#cache.memory.free(newSlots);
      this.#cache.longContexts.asked(lease);
      return;
    }
    this.#cache.append(lease, newSlots.subarray(0, count + numAccepted));
    if (numAccepted < draft.length) this.#cache.memory.free(newSlots.subarray(count + numAccepted));
    this.#served.serve(sequence.clientId, prefill ? count : 0, prefill ? 0 : count + numAccepted);
    // The rows of a long answer must be able to leave the pool.
    if (prefill || lease.partial) this.#cache.commit(lease, sequence.cacheIds);
    this.#cache.longContexts.reached(lease, sequence.numPromptTokens);
    sequence.numReached = Math.max(sequence.numReached, Math.min(startIndex + count, sequence.numPromptTokens));
  }

  /** A step has failed: frees its slots. */
  rollBack(batch: readonly Scheduled[]): void {
    for (const { newSlots } of batch) this.#cache.memory.free(newSlots);
  }
}

function hasSamePrompt(one: Sequence, other: Sequence): boolean {
  if (one.numPromptTokens !== other.numPromptTokens) return false;
  // Backwards, because prompts for one file differ late.
  for (let i = one.numPromptTokens - 1; i >= 0; i--) if (one.tokenIds[i] !== other.tokenIds[i]) return false;
  return true;
}
