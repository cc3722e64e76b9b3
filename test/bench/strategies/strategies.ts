/**
 * Ways to keep K/V rows during an answer, all with one runner: none; arrays that grow by each token; arrays of the
 * longest context from the start. Each starts empty with every answer, as in the study. They are slow oracles for the
 * pool.
 */
import type { Lane } from '../../../engine/model/batch.ts';
import type { TokenRange } from '../../../engine/kv/laneIds.ts';
import type { Runner } from '../../../engine/model/batch.ts';
import { resolveSampling, sample } from '../../../engine/sequence/sampler.ts';

/** Largest number of tokens in a run, by lane. */
const CHUNK: { [lane in Lane]: number } = { prefill: 256, paged: 32 };

export interface Answer {
  tokenIds: number[];
  /**
   * Most bytes of row arrays at any time during the answer. While arrays grow, the old arrays exist beside the new
   * ones.
   */
  peakBytes: number;
  /** Bytes of rows after the answer minus the bytes before it. The study measured this. */
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
  protected readonly runner: Runner;
  protected readonly mostTokens: number;
  #peakBytes = 0;

  constructor(runner: Runner, mostTokens: number) {
    this.runner = runner;
    this.mostTokens = mostTokens;
  }

  /**
   * Makes room for `numTokens` tokens with `resize`, before the first token and before each further token. Returns the
   * number of tokens that are still computed.
   */
  protected abstract makeRoom(numTokens: number, numComputed: number): number;

  /** Makes new arrays, copies the rows of the old arrays into them, and frees the old arrays. */
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

  /** Computes the tokens from `from` on, each in its lane. Returns the logits of the last token. */
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

/** Computes everything again for each token. Rows exist only during the computation, and nothing is copied. */
export class NoCache extends Direct {
  readonly name = 'none';

  protected makeRoom(numTokens: number): number {
    this.resize(0);
    this.resize(numTokens);
    return 0;
  }
}

/** Keeps rows in arrays. Each token replaces the arrays with larger ones. */
export class DynamicCache extends Direct {
  readonly name = 'dynamic';

  protected makeRoom(numTokens: number, numComputed: number): number {
    this.resize(numTokens);
    return numComputed;
  }
}

/** Keeps rows in arrays for the longest context. A token attends to the whole array under a mask. */
export class StaticCache extends Direct {
  readonly name = 'static';

  protected makeRoom(_: number, numComputed: number): number {
    // The context minus one is not a multiple of a page. So the pool is a single page, and a step attends to all of it.
    if (numComputed === 0) this.resize(this.mostTokens - 1);
    return numComputed;
  }
}
