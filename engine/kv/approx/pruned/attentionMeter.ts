/**
 * Measures the attention that the rows of a cached context receive, by feeding tokens over it again. Does not decide
 * what follows from it.
 */

/** Tokens of one context, in the form that a runner takes. */
interface MeasuredSpan {
  readonly tokenIds: readonly number[];
  /** Position of the first token. */
  readonly startIndex: number;
  /** Pool slots of the rows that the tokens attend to, in order. */
  readonly contextSlots: Int32Array;
  /** Pool slots for the rows of the tokens. */
  readonly newSlots: Int32Array;
  readonly numLogits: 0;
  readonly measures: true;
}

/** A model that returns the attention that rows receive. */
export interface MeasuringRunner {
  /** Of the last span: the sum over its tokens, [numLayers, kvHeads, n], n = context and new tokens. */
  readonly received?: { readonly sum: Float32Array } | null;
  run(batch: readonly MeasuredSpan[]): Promise<unknown>;
}

/** Tokens of the context in a probe, and how many of them the question of a turn quotes. */
const PROBE_TOKENS = 32;
const NAMED_TOKENS = 8;
/** Most tokens of a part in place. A longer part takes longer to be cancelled and started again. */
const PART_TOKENS = 512;
/** Target duration of a step, in ms, because a new request waits for the step under way. */
const STEP_MS = 100;
const FIRST_STEP = 4;
const MAX_TOKENS = 128;

/** Tokens that are fed as one text over the first `numRows` rows of a context. */
export interface MeterPart {
  readonly tokenIds: readonly number[];
  /** Position of the first of them. */
  readonly startIndex: number;
  readonly numRows: number;
}

/**
 * What a chat template writes before a user's message and after it, up to the answer. Both are empty without a chat
 * template.
 */
export interface TurnIds {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

/** Slots that the largest part needs. */
export function partSlots({ before, after }: TurnIds): number {
  return Math.max(PART_TOKENS, before.length + NAMED_TOKENS + after.length + PROBE_TOKENS);
}

/**
 * Parts of a context from token `from` on, each behind its `numRows` rows: once as a continuation of the text, and once
 * as the answer to a message that quotes its beginning. Positions stay below `maxContext`.
 */
export function probes(
  tokenIds: readonly number[],
  from: number,
  numRows: number,
  turn: TurnIds,
  maxContext: number,
): MeterPart[] {
  const parts: MeterPart[] = [];
  for (let at = from; at < tokenIds.length; at += PROBE_TOKENS) {
    const part = tokenIds.slice(at, at + PROBE_TOKENS);
    for (const ids of [part, [...turn.before, ...part.slice(0, NAMED_TOKENS), ...turn.after, ...part]]) {
      parts.push({
        tokenIds: ids,
        startIndex: Math.max(0, Math.min(tokenIds.length, maxContext - ids.length)),
        numRows,
      });
    }
  }
  return parts;
}

/** The tokens from `from` on again, at their own positions. `numPruned` tokens before them have no rows. */
export function inPlace(tokenIds: readonly number[], from: number, numPruned: number): MeterPart[] {
  const parts: MeterPart[] = [];
  for (let at = from; at < tokenIds.length; at += PART_TOKENS)
    parts.push({ tokenIds: tokenIds.slice(at, at + PART_TOKENS), startIndex: at, numRows: at - numPruned });
  return parts;
}

/**
 * Of a file short parts are fed behind the context, each separately. This follows KVzip (arXiv 2505.23416), but with
 * shorter parts than its 2,000 tokens: a small model would find most of what it looks for in a long part itself. Of a
 * conversation the last tokens are fed at their own positions, as H2O counts attention during generation (arXiv
 * 2306.14048).
 */
export class AttentionMeter {
  /** [numLayers * kvHeads, numRows]: the sum of the attention that all tokens gave. */
  readonly sum: Float32Array;
  readonly numRows: number;
  readonly #numHeads: number;
  /** The same for the part that is being fed. */
  readonly #found: Float32Array;
  #stepTokens = FIRST_STEP;

  constructor(numHeads: number, numRows: number) {
    this.#numHeads = numHeads;
    this.numRows = numRows;
    this.sum = new Float32Array(numHeads * numRows);
    this.#found = new Float32Array(numHeads * numRows);
  }

  /** Bytes of a meter for so many rows. */
  static bytes(numHeads: number, numRows: number): number {
    return 2 * Float32Array.BYTES_PER_ELEMENT * numHeads * numRows;
  }

  /**
   * Feeds a part. `slots`: of the context's rows. `allocate` returns n more slots, or null if none are free. Counts the
   * attention that the context's rows receive, and that the part's own tokens receive where they belong to the context.
   * Returns false and counts nothing when there are no slots or `mustEnd` is true. One part at a time.
   */
  async feed(
    runner: MeasuringRunner,
    part: MeterPart,
    slots: Int32Array,
    allocate: (n: number) => Int32Array | null,
    mustEnd: () => boolean,
  ): Promise<boolean> {
    const { tokenIds, startIndex, numRows } = part;
    const contextSlots = new Int32Array(numRows + tokenIds.length);
    contextSlots.set(slots.subarray(0, numRows));
    this.#found.fill(0);
    for (let at = 0; at < tokenIds.length; ) {
      const ids = tokenIds.slice(at, at + this.#stepTokens);
      const newSlots = mustEnd() ? null : allocate(ids.length);
      if (!newSlots) return false;
      const start = performance.now();
      await runner.run([
        {
          tokenIds: ids,
          startIndex: startIndex + at,
          contextSlots: contextSlots.subarray(0, numRows + at),
          newSlots,
          numLogits: 0,
          measures: true,
        },
      ]);
      const ms = performance.now() - start;
      contextSlots.set(newSlots, numRows + at);
      at += ids.length;
      this.#add(this.#found, runner.received!.sum);
      this.#stepTokens = Math.max(
        1,
        Math.min(MAX_TOKENS, 2 * this.#stepTokens, Math.round((ids.length * STEP_MS) / ms)),
      );
    }
    this.#add(this.sum, this.#found);
    return true;
  }

  /** `given`: [numLayers * kvHeads, n]. Rows beyond this context are not counted. */
  #add(to: Float32Array, given: Float32Array): void {
    const width = given.length / this.#numHeads;
    const count = Math.min(width, this.numRows);
    for (let h = 0; h < this.#numHeads; h++)
      for (let i = 0; i < count; i++) to[h * this.numRows + i]! += given[h * width + i]!;
  }
}
