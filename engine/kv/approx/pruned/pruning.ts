/**
 * Lets rows of long contexts go that hardly anything attends to: in idle maintenance, of what nobody has used for a
 * while. Of a file
 * those stay that parts of it, said again, attend to most (after KVzip, arXiv 2505.23416): whatever is asked later,
 * that holds what there is to say.
 * Of a conversation those stay that its own tokens have attended to most, and the recent ones (H2O, arXiv 2306.14048):
 * only where
 * nothing else begins with it. Decides what and when; what is measured is the meter's, where rows lie the cache's.
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
import { H2O, KEPT_SHARES, KVZIP, RECENT_TOKENS } from './keptRows.ts';
import { numOutside, ownContexts, prunable, prune } from './prunedNodes.ts';
import type { KvShape } from '../../kvRows.ts';
import { tokenOf } from '../../laneIds.ts';

/** Fewer tokens are as soon computed. */
const MIN_TOKENS = 256;
/** Parts that are measured together, of 512 tokens of a file: looking for what to do takes time, too. */
const PARTS_TOGETHER = 32;
/** Share of the budget from which on memory is short. */
const SHORT_SHARE = 0.75;

export interface PruningOptions {
  /** Of what nobody has used for so long, in ms. */
  readonly idleMs: number;
  /** Around what is asked about a file. */
  readonly turn: TurnIds;
  /** Layers that decide which rows go: those that need theirs most. */
  readonly layers: ReadonlySet<number>;
  /** Whether conversations lose rows, too. */
  readonly conversations: boolean;
}

/** A context that may lose rows. */
export interface Context {
  /** Stays the same object as long as the context does. */
  readonly of: object;
  /** Its tokens, as the cache knows them. */
  readonly ids: readonly number[];
}

interface PrunableContext extends Context {
  /** Of a conversation, where it begins to be nobody else's; null: a file. */
  readonly privateFrom: number | null;
}

/** One of which rows may go. */
interface Candidate extends PrunableContext {
  /** The first token that may lose rows. */
  readonly first: number;
}

/** A context that is being measured. */
interface Job extends PrunableContext {
  readonly meter: AttentionMeter;
  readonly parts: MeterPart[];
}

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
   * Measures some parts more of one of these files, or when memory is short of a conversation, and lets rows go when
   * all are measured; false
   * when there is nothing to do. No step may run meanwhile; ends within a short one once `mustEnd`. What is measured so
   * far is kept until
   * somebody needs the room.
   */
  async step(files: readonly Context[], mustEnd: () => boolean): Promise<boolean> {
    try {
      return await this.#measure(files, mustEnd);
    } catch (error) {
      this.drop();
      throw error;
    }
  }

  /** Gives up what has been measured, and its memory. */
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

  /** Long ones, while memory is short; none of them begins before the end of its file. */
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

  /** As much of a context as is cached: of the one under way, or else of the first that is worth it. */
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
      // Nothing has to go for what may go.
      const room =
        this.#cache.memory.spareBeside(this.#meterBytes(ids.length - cached.numWithoutRows)) -
        partSlots(this.#options.turn);
      if (numTokens < MIN_TOKENS || numOutside(this.#cache.memory, ids) > room) continue;
      if (!found || of === this.#job?.of) found = { of, ids, privateFrom, first };
    }
    // Its measurements are of no use any more.
    if (found?.of !== this.#job?.of) this.drop();
    return found;
  }

  #meterBytes(numRows: number): number {
    return AttentionMeter.bytes(this.#numHeads, numRows);
  }

  get #numHeads(): number {
    return this.#shape.numLayers * this.#shape.kvHeads;
  }

  /** Null where there is no room for what is measured. */
  #begin({ first, ...context }: Candidate, numRows: number): Job | null {
    const isBorrowed = this.#cache.memory.lend(this.#meterBytes(numRows), () => {
      this.#job = null;
    });
    if (!isBorrowed) return null;
    const { ids, privateFrom } = context;
    const tokens = ids.map(tokenOf);
    // What was pruned before an edit is not measured again: a row receives most where its own token is said again.
    const parts =
      privateFrom === null
        ? probes(tokens, first, numRows, this.#options.turn, this.#maxContext)
        : inPlace(tokens, first, ids.length - numRows);
    return { ...context, meter: new AttentionMeter(this.#numHeads, numRows), parts };
  }
}
