/**
 * Ways to keep K/V rows while an answer is written, over one runner: not at all, in arrays that grow by each token, in arrays of
 * the longest context from the start. Each begins anew with every answer, as the study's did. Oracles for the pool, and slow.
 */
import type { Lane } from '../../../engine/model/batch.ts';
import type { TokenRange } from '../../../engine/kv/laneIds.ts';
import type { OnnxRunner } from '../../../engine/model/runtime/runner.ts';
import { resolveSampling, sample } from '../../../engine/sequence/sampler.ts';

/** Tokens of a run, by lane. */
const CHUNK: { [lane in Lane]: number } = { prefill: 256, paged: 32 };

export interface Answer {
  tokenIds: number[];
  /** Bytes of arrays for rows, the most at any time while the answer was written: while arrays grow, the old ones are there beside the new. */
  peakBytes: number;
  /** Bytes of rows after it less those before it: what the study measured. */
  keptBytes: number;
}

export interface Strategy {
  readonly name: string;
  answer(
    promptIds: readonly number[],
    prefill: readonly TokenRange[],
    maxTokens: number,
    stopIds: readonly number[],
  ): Promise<Answer>;
}

const GREEDY = resolveSampling({ temperature: 0 });

abstract class Direct implements Strategy {
  abstract readonly name: string;
  protected readonly runner: OnnxRunner;
  protected readonly mostTokens: number;
  #peakBytes = 0;

  constructor(runner: OnnxRunner, mostTokens: number) {
    this.runner = runner;
    this.mostTokens = mostTokens;
  }

  /** Room for `numTokens`, before the first token is computed and before each further one, by `resize`. Returns how many are computed. */
  protected abstract makeRoom(numTokens: number, numComputed: number): number;

  /** New arrays, into which the old ones' rows are copied; those go then. */
  protected resize(numTokens: number): void {
    const { pool } = this.runner;
    const before = pool.bytes;
    pool.resize(numTokens);
    this.#peakBytes = Math.max(this.#peakBytes, before + pool.bytes);
  }

  async answer(
    promptIds: readonly number[],
    prefill: readonly TokenRange[],
    maxTokens: number,
    stopIds: readonly number[],
  ): Promise<Answer> {
    const { pool } = this.runner;
    const before = pool.bytes;
    const ids = [...promptIds];
    const answered: number[] = [];
    this.#peakBytes = 0;
    let numComputed = 0;
    try {
      while (answered.length < maxTokens) {
        numComputed = this.makeRoom(ids.length, numComputed);
        const logits = await this.#compute(ids, numComputed, prefill);
        numComputed = ids.length;
        const { tokenId } = sample(logits, GREEDY, ids, ids.length);
        answered.push(tokenId);
        ids.push(tokenId);
        if (stopIds.includes(tokenId)) break;
      }
    } finally {
      this.runner.releaseScratch();
      pool.resize(0);
    }
    return { tokenIds: answered, peakBytes: this.#peakBytes, keptBytes: pool.bytes - before };
  }

  /** Tokens from `from` on, each in its lane; returns the logits of the last one. */
  async #compute(ids: readonly number[], from: number, prefill: readonly TokenRange[]): Promise<Float32Array> {
    let logits: Float32Array | null = null;
    for (let at = from; at < ids.length; ) {
      const range = prefill.find(([start, end]) => start <= at && at < end);
      const lane: Lane = range ? 'prefill' : 'paged';
      const laneEnd = Math.min(
        ids.length,
        range ? range[1] : (prefill.find(([start]) => start > at)?.[0] ?? ids.length),
      );
      const end = Math.min(laneEnd, at + CHUNK[lane]);
      const slots = Int32Array.from({ length: end }, (_, i) => i);
      const numLogits = end === ids.length ? 1 : 0;
      const got = await this.runner.run([
        {
          tokenIds: ids.slice(at, end),
          startIndex: at,
          contextSlots: slots.subarray(0, at),
          newSlots: slots.subarray(at),
          lane,
          prefillEnd: laneEnd,
          numLogits,
        },
      ]);
      if (numLogits) logits = got;
      at = end;
    }
    return logits!;
  }
}

/** Everything is computed anew for each token: rows are there while it is, and nothing is copied. */
export class NoCache extends Direct {
  readonly name = 'none';

  protected makeRoom(numTokens: number): number {
    this.resize(0);
    this.resize(numTokens);
    return 0;
  }
}

/** Rows are kept in arrays that are replaced by larger ones with each token. */
export class DynamicCache extends Direct {
  readonly name = 'dynamic';

  protected makeRoom(numTokens: number, numComputed: number): number {
    this.resize(numTokens);
    return numComputed;
  }
}

/** Rows are kept in arrays for the longest context; a token attends to all of it, under a mask. */
export class StaticCache extends Direct {
  readonly name = 'static';

  protected makeRoom(_: number, numComputed: number): number {
    // One less than the context is no multiple of a page: one page, which is attended to as a whole.
    if (numComputed === 0) this.resize(this.mostTokens - 1);
    return numComputed;
  }
}
