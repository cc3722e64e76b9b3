/**
 * Owns the sequences and puts steps together: Admission decides who runs, StepBuilder what each gets. Never sees a
 * tensor.
 */
import { Admission } from './admission.ts';
import type { BatchSpan } from '../model/batch.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { numComputed } from '../kv/lease.ts';
import { lostRows } from './capacityErrors.ts';
import { VirtualTokens } from './fairness.ts';
import { rank } from './fairness.ts';
import type { Policies } from './policies.ts';
import type { TokenBudget } from './tokenBudget.ts';
import type { Priority } from '../protocol/tasks.ts';
import type { Schedule, Scheduled } from './schedule.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { NO_REUSE, type RowReuse } from '../kv/approx/approximation.ts';
import type { Speculation } from './speculation/speculation.ts';
import { StepBuilder } from './stepBuilder.ts';

export class Scheduler {
  readonly #cache: KvCache;
  readonly #policies: Policies;
  readonly #admission: Admission;
  readonly #builder: StepBuilder;
  readonly #served = new VirtualTokens();
  #numAdded = 0;

  constructor(cache: KvCache, policies: Policies, speculation: Speculation | null, reuse: RowReuse = NO_REUSE) {
    this.#cache = cache;
    this.#policies = policies;
    this.#admission = new Admission(cache, policies, this.#served);
    this.#builder = new StepBuilder({
      cache,
      policies,
      speculation,
      reuse,
      admission: this.#admission,
      served: this.#served,
    });
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
    this.#served.arrive(sequence.clientId, rank(sequence, this.#policies));
  }

  /** From the next step on it is of another class. */
  prioritise(sequence: Sequence, priority: Priority): void {
    sequence.priority = priority;
    if (this.#admission.has(sequence)) this.#served.move(sequence.clientId, rank(sequence, this.#policies));
  }

  /** Tokens that completions have to compute before they generate, without the first one and others with its prompt. */
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

  /** Tokens that a sequence still has to compute, with what is cached now. */
  missing(sequence: Sequence): number {
    return Math.max(0, sequence.tokenIds.length - this.#admission.lookUp(sequence));
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
    // What a sparse lease holds in the store is not among what could be let go.
    for (const [sequence, { partial }] of this.#admission.running) if (partial) this.#admission.preempt(sequence);
    this.#cache.reserved(0);
    while (this.#cache.memory.excess(maxBytes) > 0) this.#admission.preempt(this.#admission.lowest()!);
    this.#cache.setMaxBytes(maxBytes);
  }

  /** Builds the next step and takes slots for it. */
  schedule(budget: TokenBudget, now: number): Schedule {
    this.#endLost();
    this.#chooseLong();
    const all = [...this.sequences()];
    const idleToo = all.every((s) => s.priority === 'idle');
    const active = this.#eligible(
      all.filter((s) => idleToo || s.priority !== 'idle').sort(this.#admission.standing),
      now,
    );
    const urgent = this.#policies.classes && active.some((s) => s.priority === 'completion');
    this.#builder.next();
    this.#builder.build({ active, budget, urgent, now, admits: true });
    // A completion that cannot run yet must not hold up others.
    if (urgent && this.#admission.batch.size === 0)
      this.#builder.build({ active, budget, urgent: false, now, admits: true });
    // The prompt in the prefill lane may have been preempted for a sequence that did not fit after all.
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

  /** Reserves room for a partial lease and chooses its rows, before a step is built. */
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

  /** Passes on the queries that the runner returned for a part. */
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
    // The rows of a long answer must leave the pool, too.
    if (prefill || lease.partial) this.#cache.commit(lease, sequence.cacheIds);
    this.#cache.longContexts.reached(lease, sequence.numPromptTokens);
    sequence.numReached = Math.max(sequence.numReached, Math.min(startIndex + count, sequence.numPromptTokens));
  }

  /** A step has failed: frees its slots. */
  rollBack(batch: readonly Scheduled[]): void {
    for (const { newSlots } of batch) this.#cache.memory.free(newSlots);
  }

  /** The sequences that the batching policy admits to a step. */
  #eligible(active: Sequence[], now: number): Sequence[] {
    if (this.#policies.batching === 'continuous' || active.length === 0) return active;
    return [
      active.find((s) => this.#admission.running.has(s)) ?? active.sort(this.#builder.service(now, () => false))[0]!,
    ];
  }
}

function hasSamePrompt(one: Sequence, other: Sequence): boolean {
  if (one.numPromptTokens !== other.numPromptTokens) return false;
  // Backwards: prompts of one file differ late.
  for (let i = one.numPromptTokens - 1; i >= 0; i--) if (one.tokenIds[i] !== other.tokenIds[i]) return false;
  return true;
}
