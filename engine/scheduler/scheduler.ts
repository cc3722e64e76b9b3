/**
 * Who waits, who runs, and what a step has. Owns the sequences; admission and the building of steps are its parts. Never
 * sees a tensor.
 */
import { Admission } from './admission.ts';
import type { BatchSpan } from '../model/batch.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { numComputed } from '../kv/lease.ts';
import { lostRows } from './roomErrors.ts';
import { VirtualTokens } from './fairness.ts';
import { rank } from './fairness.ts';
import type { Policies } from './policies.ts';
import type { TokenBudget } from './tokenBudget.ts';
import type { Priority } from '../protocol/tasks.ts';
import type { Ended, Schedule, Scheduled } from './schedule.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { NO_REUSE, type RowReuse } from '../kv/approx/approximation.ts';
import type { Speculation } from './speculation/speculation.ts';
import { StepBatch } from './stepBatch.ts';
import { StepBuilder } from './stepBuilder.ts';

export class Scheduler {
  readonly #cache: KvCache;
  readonly #policies: Policies;
  readonly #admission: Admission;
  readonly #builder: StepBuilder;
  /** Being put together; empty between calls of `schedule`. */
  readonly #batch: StepBatch;
  readonly #served = new VirtualTokens();
  #numAdded = 0;
  #ended: Ended[] = [];

  constructor(cache: KvCache, policies: Policies, speculation: Speculation | null, reuse: RowReuse = NO_REUSE) {
    this.#cache = cache;
    this.#policies = policies;
    this.#batch = new StepBatch(cache, policies);
    this.#admission = new Admission(cache, policies, this.#batch);
    const onEnd = (sequence: Sequence, outcome: Ended['outcome']): void => {
      this.remove(sequence);
      this.#ended.push({ sequence, outcome });
    };
    this.#builder = new StepBuilder({
      cache,
      policies,
      speculation,
      reuse,
      admission: this.#admission,
      served: this.#served,
      batch: this.#batch,
      onEnd,
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

  /** Tokens that completions have to compute before they generate, those of the first one and of others over its prompt left out. */
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

  /** Tokens of a sequence that it has still to compute, as things are. */
  missing(sequence: Sequence): number {
    return Math.max(0, sequence.tokenIds.length - this.#admission.lookUp(sequence));
  }

  /** Lets a sequence go; its computed tokens stay cached. */
  remove(sequence: Sequence): void {
    if (this.#admission.has(sequence)) this.#served.leave(sequence.clientId);
    this.#admission.remove(sequence);
  }

  /** Sets the cache's budget, preempting what no longer fits under it. @param mostPrefill tokens of a prompt for the prefill lane */
  setMaxBytes(maxBytes: number, mostPrefill: number): void {
    // What has not been computed yet goes through the other lane where the scratch has no room for it any more.
    for (const [sequence, lease] of this.#admission.running)
      if (!lease.partial) sequence.limitPrefill(mostPrefill, numComputed(lease));
    // What a sparse lease holds in the store is not among what could be let go.
    for (const [sequence, { partial }] of this.#admission.running) if (partial) this.#admission.preempt(sequence);
    this.#cache.reserved(0);
    while (this.#cache.excess(maxBytes) > 0) this.#admission.preempt(this.#admission.lowest()!);
    this.#cache.setMaxBytes(maxBytes);
  }

  /** Puts the next step together and takes slots for it. */
  schedule(budget: TokenBudget, now: number): Schedule {
    this.#ended = [];
    this.#endLost();
    this.#attendToLong();
    const all = [...this.sequences()];
    const idleToo = all.every((s) => s.priority === 'idle');
    const active = this.#eligible(
      all.filter((s) => idleToo || s.priority !== 'idle').sort(this.#admission.standing),
      now,
    );
    const urgent = this.#policies.classes && active.some((s) => s.priority === 'completion');
    this.#builder.next();
    this.#builder.build({ active, budget, urgent, now, admits: true });
    // A completion that cannot run yet holds nobody up.
    if (urgent && this.#batch.size === 0) this.#builder.build({ active, budget, urgent: false, now, admits: true });
    // The one in the prefill lane, which only one can have, may have given way to one that did not fit after all.
    if (this.#batch.size === 0) this.#builder.build({ active, budget, urgent: false, now, admits: false });
    const batch = this.#batch.take();
    for (const { sequence } of batch) {
      if (Number.isNaN(sequence.startedAt)) sequence.startedAt = now;
      sequence.lastServedAt = now;
    }
    return { batch, ended: this.#ended };
  }

  /** Ends who cannot go on without rows that are lost. */
  #endLost(): void {
    for (const [sequence, { failure }] of [...this.#admission.running]) {
      if (!failure) continue;
      this.remove(sequence);
      this.#ended.push({ sequence, outcome: lostRows(failure) });
    }
  }

  /** Makes room for who attends to parts of its context, and chooses those; before a step is put together. */
  #attendToLong(): void {
    const sequence = this.#admission.long;
    this.#cache.reserved(sequence?.tokenIds.length ?? 0);
    if (!sequence) return;
    this.#cache.longContexts.choose(this.#admission.running.get(sequence)!);
  }

  /** What the runner gets. Valid until the next `schedule`. */
  span({ sequence, lease, startIndex, count, draft, newSlots, lane, numLogits, numQueries }: Scheduled): BatchSpan {
    const contextSlots = this.#cache.slotsOf(lease);
    // The scratch holds what it attends to, whatever its place.
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

  /** Queries of a part's tokens, as the runner has them. */
  saw({ lease, numQueries }: Scheduled, queries: Float32Array): void {
    this.#cache.longContexts.saw(lease, queries, numQueries);
  }

  /** The step has computed its tokens; `numAccepted` of its draft are the sequence's, the rest is let go. */
  commit({ sequence, lease, newSlots, prefill, startIndex, count, draft, asks }: Scheduled, numAccepted: number): void {
    if (asks) {
      this.#cache.free(newSlots);
      this.#cache.longContexts.asked(lease);
      return;
    }
    this.#cache.append(lease, newSlots.subarray(0, count + numAccepted));
    if (numAccepted < draft.length) this.#cache.free(newSlots.subarray(count + numAccepted));
    this.#served.serve(sequence.clientId, prefill ? count : 0, prefill ? 0 : count + numAccepted);
    // A long answer's rows, too, are not all to stay in the pool.
    if (prefill || lease.partial) this.#cache.commit(lease, sequence.cacheIds);
    this.#cache.longContexts.reached(lease, sequence.numPromptTokens);
    sequence.numReached = Math.max(sequence.numReached, Math.min(startIndex + count, sequence.numPromptTokens));
  }

  /** The step has failed: nothing was computed. */
  rollBack(batch: readonly Scheduled[]): void {
    for (const { newSlots } of batch) this.#cache.free(newSlots);
  }

  /** Those that the kind of batching lets into a step. */
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
