/**
 * The step that is being put together: who has how many tokens in it, and which pages of the window it attends to.
 * Decides nothing; the scheduler asks it what another part would mean.
 */
import type { KvCache } from './cache/kvCache.ts';
import type { Lease } from './cache/lease.ts';
import { follows } from './policies/leader.ts';
import type { TokenBudget } from './policies/tokenBudget.ts';
import type { Scheduled } from './schedule.ts';
import type { Sequence } from './sequence.ts';

export class StepBatch {
  readonly #cache: KvCache;
  readonly #parts = new Map<Sequence, Scheduled>();
  /** Of those in the window lane. */
  #pages = new Set<number>();
  #windowTokens = 0;
  /** Tokens of the time budget that are spent. */
  spent = 0;
  numDecodes = 0;
  /** Tokens that its decodes would draft if each had a step of its own. */
  numWanted = 0;

  constructor(cache: KvCache) {
    this.#cache = cache;
  }

  get size(): number {
    return this.#parts.size;
  }

  /** Columns of the window that it attends to. */
  get columns(): number {
    return columnsOf(this.#cache, null, this.#pages);
  }

  /** Tokens in the window lane. */
  get windowTokens(): number {
    return this.#windowTokens;
  }

  has(sequence: Sequence): boolean {
    return this.#parts.has(sequence);
  }

  get(sequence: Sequence): Scheduled | undefined {
    return this.#parts.get(sequence);
  }

  sequences(): IterableIterator<Sequence> {
    return this.#parts.keys();
  }

  /** Adds a part, or replaces that of its sequence by one with more tokens. */
  set(part: Scheduled): void {
    const { sequence, lease, lane, count, draft } = part;
    const before = this.#parts.get(sequence);
    this.#parts.set(sequence, part);
    if (lane === 'prefill') return;
    this.#windowTokens += count + draft.length - (before ? before.count + before.draft.length : 0);
    if (!before) this.#cache.addPages(lease, this.#pages);
  }

  /** Takes a part out, whose pages may go on to count. */
  delete(sequence: Sequence): Scheduled | null {
    const part = this.#parts.get(sequence);
    if (!part) return null;
    this.#parts.delete(sequence);
    if (part.lane === 'window') this.#windowTokens -= part.count + part.draft.length;
    return part;
  }

  /** Whether the next token that a sequence needs is computed in this step. */
  computesFor(sequence: Sequence, at: number): boolean {
    for (const leader of this.#parts.values()) if (leader.prefill && follows(sequence.cacheIds, at, leader)) return true;
    return false;
  }

  /** Columns of the step with this sequence in it. */
  columnsWith(lease: Lease): number {
    return columnsOf(this.#cache, lease, new Set(this.#pages));
  }

  /** Whether `tokens` of another sequence had better be in this step than in one of their own. */
  shares(lease: Lease, tokens: number, budget: TokenBudget): boolean {
    if (this.#windowTokens === 0) return true;
    return budget.shares({ tokens: this.#windowTokens + this.numWanted, columns: this.columns }, { tokens, columns: columnsOf(this.#cache, lease) }, this.columnsWith(lease));
  }

  /** What has been put together, in order; then it is empty. Slots may move. */
  take(): Scheduled[] {
    const parts = [...this.#parts.values()];
    const leases = parts.filter(({ lane }) => lane === 'window').map(({ lease }) => lease);
    this.#cache.pack(leases, this.#windowTokens, parts.map(({ newSlots }) => newSlots));
    this.clear();
    return parts;
  }

  clear(): void {
    this.#parts.clear();
    this.#pages.clear();
    this.#windowTokens = 0;
    this.spent = 0;
    this.numDecodes = 0;
    this.numWanted = 0;
  }
}

/** Columns of the window that a step over a lease's tokens, besides `pages`, attends to: whole pages, at least one. */
export function columnsOf(cache: KvCache, lease: Lease | null, pages = new Set<number>()): number {
  if (lease) cache.addPages(lease, pages);
  return Math.max(1, pages.size) * cache.pageSlots;
}
