/**
 * Pruning: drops rows that receive little attention from contexts of 256 tokens or more, in idle maintenance. Decides
 * which contexts and when; measures with AttentionMeter and drops with keptRows.
 */
import {
  AttentionMeter,
  inPlace,
  type MeasuringRunner,
  type MeterPart,
  partSlots,
  probes,
  type TurnIds,
} from './attentionMeter.ts';
import type { KvCache } from '../../kvCache.ts';
import { H2O, KEPT_SHARES, KVZIP, RECENT_TOKENS, numOutside, ownContexts, prunable, prune } from './keptRows.ts';
import type { KvShape } from '../../kvRows.ts';
import { tokenOf } from '../../laneIds.ts';

/** Computing fewer tokens again takes no longer than measuring them. */
const MIN_TOKENS = 256;
/** Parts that are measured in one call: 512 tokens of a file. Choosing a context takes time too. */
const PARTS_TOGETHER = 32;
/** Memory is short above this share of the budget. */
const SHORT_SHARE = 0.75;

export interface PruningOptions {
  /** Only contexts that were not used for so long, in ms. */
  readonly idleMs: number;
  /** The chat template around a question about a file. */
  readonly turn: TurnIds;
  /** The layers that decide which rows stay. */
  readonly layers: ReadonlySet<number>;
  /** Whether conversations lose rows too. */
  readonly conversations: boolean;
}

/** A context that may lose rows. */
export interface Context {
  /** Stays the same object as long as the context does. */
  readonly of: object;
  /** Its cache ids. */
  readonly ids: readonly number[];
}

interface PrunableContext extends Context {
  /** Of a conversation, the first token that no other context shares. Null: the context is a file. */
  readonly privateFrom: number | null;
}

/** A context whose rows can be dropped. */
interface Candidate extends PrunableContext {
  /** The first token that may lose rows. */
  readonly first: number;
}

/** A context that is being measured. */
interface Job extends PrunableContext {
  readonly meter: AttentionMeter;
  readonly parts: MeterPart[];
}

/**
 * Of a file those rows stay that receive most attention when parts of the file are repeated (KVzip, arXiv 2505.23416), whatever
 * is asked later. Of a conversation those stay that its own tokens attended to most, and the recent ones (H2O, arXiv
 * 2306.14048); only of tokens that no other context shares.
 */
export class Pruning {
  readonly #cache: KvCache;
  readonly #runner: MeasuringRunner;
  readonly #shape: KvShape;
  readonly #maxContext: number;
  readonly #clock: () => number;
  readonly #options: PruningOptions;
  #job: Job | null = null;

  constructor(
    options: PruningOptions,
    parties: { cache: KvCache; runner: MeasuringRunner; shape: KvShape; maxContext: number; clock: () => number },
  ) {
    this.#options = options;
    this.#cache = parties.cache;
    this.#runner = parties.runner;
    this.#shape = parties.shape;
    this.#maxContext = parties.maxContext;
    this.#clock = parties.clock;
  }

  /**
   * Measures some parts of one of these files, or of a conversation when memory is short. Drops rows when all parts are
   * measured. No step may run meanwhile; ends soon after `mustEnd` is true. Results so far are kept until their memory
   * is needed. Returns false when there is nothing to do.
   */
  async step(files: readonly Context[], mustEnd: () => boolean): Promise<boolean> {
    try {
      return await this.#measure(files, mustEnd);
    } catch (error) {
      this.drop();
      throw error;
    }
  }

  /** Discards the measurements, and frees their memory. */
  drop(): void {
    this.#cache.memory.takeBack();
  }

  async #measure(files: readonly Context[], mustEnd: () => boolean): Promise<boolean> {
    const context = this.#next([
      ...files.map((file) => ({ ...file, privateFrom: null })),
      ...this.#conversations(files),
    ]);
    const lease = this.#cache.open('', { quiet: true });
    try {
      const numTokens = context ? this.#cache.advance(lease, context.ids, context.ids.length) : 0;
      if (!context || numTokens < context.ids.length) {
        this.drop();
        return false;
      }
      const slots = this.#cache.slotsOf(lease);
      if (
        this.#job?.of !== context.of ||
        this.#job.ids.length !== numTokens ||
        this.#job.meter.numRows !== slots.length
      )
        this.#job = this.#begin(context, slots.length);
      if (!this.#job) return false;
      const { parts } = this.#job;
      for (let i = 0; i < PARTS_TOGETHER && parts.length > 0; i++) {
        if (!(await this.#feed(this.#job, slots, mustEnd))) return false;
        parts.shift();
      }
    } finally {
      this.#cache.release(lease);
    }
    if (this.#job.parts.length === 0) this.#finish(this.#job);
    return true;
  }

  async #feed({ meter, parts }: Job, slots: Int32Array, mustEnd: () => boolean): Promise<boolean> {
    const taken: Int32Array[] = [];
    const allocate = (n: number): Int32Array | null => {
      const more = n > this.#cache.memory.spare ? null : this.#cache.memory.allocate(n);
      if (more) taken.push(more);
      return more;
    };
    try {
      return await meter.feed(this.#runner, parts[0]!, slots, allocate, mustEnd);
    } finally {
      for (const each of taken) this.#cache.memory.free(each);
    }
  }

  #finish({ ids, privateFrom, meter }: Job): void {
    const { layers } = this.#options;
    if (privateFrom === null)
      prune(this.#cache.memory, ids, 0, meter.sum, { keep: KEPT_SHARES[KVZIP], layers, name: KVZIP });
    else
      prune(this.#cache.memory, ids.slice(0, -RECENT_TOKENS), privateFrom, meter.sum, {
        keep: KEPT_SHARES[H2O],
        layers,
        name: H2O,
      });
    this.drop();
  }

  /** Conversations, while memory is short. Tokens of a file at their beginning are not theirs. */
  #conversations(files: readonly Context[]): PrunableContext[] {
    if (!this.#options.conversations || this.#cache.memory.fullness <= SHORT_SHARE) return [];
    const lengthIn = (ids: readonly number[], file: readonly number[]): number =>
      file.every((id, i) => ids[i] === id) ? file.length : 0;
    return Array.from(ownContexts(this.#cache.memory, 'chat'), ({ of, ids, from }) => ({
      of,
      ids,
      privateFrom: Math.max(from, ...files.map((file) => lengthIn(ids, file.ids))),
    }));
  }

  /** The cached part of a context: of the one that is being measured, or else of the first one that is worth it. */
  #next(contexts: Iterable<PrunableContext>): Candidate | null {
    const before = this.#clock() - this.#options.idleMs;
    let found: Candidate | null = null;
    for (const context of contexts) {
      const { of, privateFrom } = context;
      const cached = this.#cache.lookUp(context.ids, context.ids.length);
      const ids = context.ids.slice(0, cached.numTokens);
      const { numTokens, first } = prunable(
        this.#cache.memory,
        privateFrom === null ? ids : ids.slice(0, -RECENT_TOKENS),
        privateFrom ?? 0,
        before,
      );
      // Measuring must not evict anything.
      const space =
        this.#cache.memory.spareBeside(this.#meterBytes(ids.length - cached.numWithoutRows)) -
        partSlots(this.#options.turn);
      if (numTokens < MIN_TOKENS || numOutside(this.#cache.memory, ids) > space) continue;
      if (!found || of === this.#job?.of) found = { of, ids, privateFrom, first };
    }
    // The context has changed, so its measurements are useless.
    if (found?.of !== this.#job?.of) this.drop();
    return found;
  }

  #meterBytes(numRows: number): number {
    return AttentionMeter.bytes(this.#numHeads, numRows);
  }

  get #numHeads(): number {
    return this.#shape.numLayers * this.#shape.kvHeads;
  }

  /** Null where there is no memory for the measurements. */
  #begin({ first, ...context }: Candidate, numRows: number): Job | null {
    const isBorrowed = this.#cache.memory.lend(this.#meterBytes(numRows), () => {
      this.#job = null;
    });
    if (!isBorrowed) return null;
    const { ids, privateFrom } = context;
    const tokens = ids.map(tokenOf);
    // Pieces that were pruned before an edit are not measured again: a row receives most attention when its own token is
    // repeated.
    const parts =
      privateFrom === null
        ? probes(tokens, first, numRows, this.#options.turn, this.#maxContext)
        : inPlace(tokens, first, ids.length - numRows);
    return { ...context, meter: new AttentionMeter(this.#numHeads, numRows), parts };
  }
}
