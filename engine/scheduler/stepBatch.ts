/**
 * The parts of a step, and the batch under construction: each sequence's part, its share of the token budget, and the
 * pages of the pool that the step attends to. Says what another part would cost. Decides nothing.
 */
import type { KvCache } from '../kv/kvCache.ts';
import { type Lease, numComputed } from '../kv/lease.ts';
import type { Attended } from '../kv/pages.ts';
import type { Lane } from '../model/batch.ts';
import type { RequestError } from '../protocol/errors.ts';
import type { FinishReason } from '../protocol/tasks.ts';
import type { Sequence } from '../sequence/sequence.ts';
import type { TokenBudget } from './tokenBudget.ts';

/** Tokens that a step computes and that join the radix tree after it: `count` of `tokenIds`, from `startIndex` on. */
export interface Computing {
  readonly tokenIds: readonly number[];
  readonly startIndex: number;
  readonly count: number;
}

/** A sequence's part in a step. */
export interface Scheduled extends Computing {
  readonly sequence: Sequence;
  readonly lease: Lease;
  readonly newSlots: Int32Array;
  readonly lane: Lane;
  /** Part of a prompt, or tokens lost by preemption. They join the tree right after the step. */
  readonly prefill: boolean;
  /** Drafted tokens after the sequence's last one. Only right ones keep their slots. */
  readonly draft: readonly number[];
  readonly numLogits: number;
  /** How many of its last tokens return their queries, which choose the rows that a partial lease attends to next. */
  readonly numQueries: number;
  /** The tokens are computed only for their queries, and again afterwards. */
  readonly asks: boolean;
}

/** A sequence that ended without a part: it needs no more tokens, or it does not fit. */
export interface Ended {
  readonly sequence: Sequence;
  readonly outcome: FinishReason | RequestError;
}

export interface Schedule {
  readonly batch: Scheduled[];
  readonly ended: Ended[];
}

/** How a part counts. */
interface Weight {
  /** Tokens of the budget that it takes. */
  readonly spent: number;
  /** Additional tokens that the part would have in a step of its own: drafts. */
  readonly wanted: number;
}

/** In-flight prefix sharing: whether a sequence waits for the token at `at` that `other` computes. */
interface PrefixSharing {
  waitsFor(other: Computing, tokenIds: readonly number[], at: number): boolean;
}

export class StepBatch {
  readonly #cache: KvCache;
  readonly #sharing: PrefixSharing;
  readonly #parts = new Map<Sequence, { part: Scheduled; weight: Weight }>();
  /** Pages of the parts in the paged lane. */
  readonly #pages = new Set<number>();
  /** Pages of the sequence that has most of them. */
  #mostPages = 0;
  /** Tokens of drafts that will be added. */
  drafted = 0;

  constructor(cache: KvCache, sharing: PrefixSharing) {
    this.#cache = cache;
    this.#sharing = sharing;
  }

  get size(): number {
    return this.#parts.size;
  }

  /** Pages of the pool that the step attends to. */
  get pages(): ReadonlySet<number> {
    return this.#pages;
  }

  /** Columns of the pool that each token of the step pays for (see attendedPages). */
  get paidColumns(): number {
    return this.#attended(0, this.#mostPages, this.#pages).pages * this.#cache.memory.pool.pageSlots;
  }

  /** Tokens of the budget that its parts take. */
  get spent(): number {
    let spent = this.drafted;
    for (const { weight } of this.#parts.values()) spent += weight.spent;
    return spent;
  }

  get numDecodes(): number {
    return this.decodes().length;
  }

  decodes(): Sequence[] {
    return Array.from(this.#parts.values(), ({ part }) => part)
      .filter(({ prefill }) => !prefill)
      .map(({ sequence }) => sequence);
  }

  has(sequence: Sequence): boolean {
    return this.#parts.has(sequence);
  }

  get(sequence: Sequence): Scheduled | undefined {
    return this.#parts.get(sequence)?.part;
  }

  sequences(): IterableIterator<Sequence> {
    return this.#parts.keys();
  }

  newSlots(): Int32Array[] {
    return Array.from(this.#parts.values(), ({ part }) => part.newSlots);
  }

  add(part: Scheduled, weight: Weight): void {
    this.#parts.set(part.sequence, { part, weight });
    if (part.lane === 'paged') this.#addPages(part.lease);
  }

  /** Replaces a part by the same part with a draft. */
  replace(part: Scheduled): void {
    this.#parts.get(part.sequence)!.part = part;
  }

  delete(sequence: Sequence): Scheduled | null {
    const entry = this.#parts.get(sequence);
    if (!entry) return null;
    this.#parts.delete(sequence);
    this.#pages.clear();
    this.#mostPages = 0;
    for (const { part } of this.#parts.values()) if (part.lane === 'paged') this.#addPages(part.lease);
    return entry.part;
  }

  /** Whether this step computes the token at `at`, which a sequence needs next. Then the sequence waits. */
  computesFor(sequence: Sequence, at: number): boolean {
    for (const { part } of this.#parts.values())
      if (part.prefill && this.#sharing.waitsFor(part, sequence.cacheIds, at)) return true;
    return false;
  }

  /** `paidColumns` with `tokens` of this lease in the batch, and whether attention gathers its pages. */
  with(lease: Lease, tokens: number): { gathered: boolean; paidColumns: number } {
    const all = new Set(this.#pages);
    const most = Math.max(this.#mostPages, this.#cache.addPages(lease, all));
    const { gathered, pages } = this.#attended(tokens, most, all);
    return { gathered, paidColumns: pages * this.#cache.memory.pool.pageSlots };
  }

  /** Whether `most` tokens of another lease in this step cost less than `tokens` in a step of its own. */
  shares(lease: Lease, tokens: number, budget: TokenBudget, most = tokens): boolean {
    const own = this.#poolTokens;
    if (own === 0) return true;
    return budget.shares(
      { tokens: own, columns: this.paidColumns },
      { tokens, columns: columnsOf(this.#cache, lease) },
      this.with(lease, most).paidColumns,
    );
  }

  /** Returns the parts in order and empties the batch. Slots may move. */
  take(): Scheduled[] {
    const parts = Array.from(this.#parts.values(), ({ part }) => part);
    const inPool = parts.filter(({ lane }) => lane === 'paged');
    const numTokens = inPool.reduce((sum, { count, draft }) => sum + count + draft.length, 0);
    // With shared attention each token pays for all pages, with gathered attention for those of the largest sequence.
    const { gathered } = this.#attended(0, this.#mostPages, this.#pages);
    const packed = gathered
      ? inPool.filter(({ lease }) => this.#cache.addPages(lease, new Set()) === this.#mostPages).slice(0, 1)
      : inPool;
    this.#cache.pack(
      packed.map(({ lease }) => lease),
      packed.map(({ newSlots }) => newSlots),
      numTokens,
      this.newSlots(),
    );
    this.clear();
    return parts;
  }

  clear(): void {
    this.#parts.clear();
    this.#pages.clear();
    this.#mostPages = 0;
    this.drafted = 0;
  }

  /** Tokens in the paged lane, with the drafts that decodes would have in steps of their own. */
  get #poolTokens(): number {
    let tokens = 0;
    for (const { part, weight } of this.#parts.values())
      if (part.lane === 'paged') tokens += part.count + weight.wanted;
    return tokens;
  }

  #addPages(lease: Lease): void {
    this.#mostPages = Math.max(this.#mostPages, this.#cache.addPages(lease, this.#pages));
  }

  #attended(moreTokens: number, most: number, pages: ReadonlySet<number>): Attended {
    return this.#cache.memory.pool.attended(this.#poolTokens + moreTokens, most, pages.size);
  }
}

/** Columns of the pool that this lease's tokens attend to in a step of their own: whole pages, at least one. */
export function columnsOf(cache: KvCache, lease: Lease): number {
  return Math.max(1, cache.addPages(lease, new Set())) * cache.memory.pool.pageSlots;
}

/** Tokens of a sequence that may come from the cache: all, without the last one if its logits are needed. */
export function reusable(sequence: Sequence): number {
  return sequence.tokenIds.length - (sequence.promptOnly ? 0 : 1);
}

/** Whether only the last sampled token has to be computed. */
export function isDecode(sequence: Sequence, lease: Lease): boolean {
  return sequence.numGenerated > 0 && numComputed(lease) === sequence.tokenIds.length - 1;
}

export function numDrafted(drafts: ReadonlyMap<Sequence, readonly number[]>): number {
  let sum = 0;
  for (const draft of drafts.values()) sum += draft.length;
  return sum;
}

/** Tokens of a step, drafts included. */
export function numTokensOf(batch: readonly Scheduled[]): number {
  return batch.reduce((sum, { count, draft }) => sum + count + draft.length, 0);
}
