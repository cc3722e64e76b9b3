/**
 * What attention the rows of a cached context receive, measured by feeding tokens over it once more: short parts of the context
 * behind it, each apart from the others, or tokens of its end where they stand, as H2O counts it while they are generated
 * (arXiv 2306.14048). After KVzip (arXiv 2505.23416), which has the context repeated in parts of 2,000 tokens: but there a model that
 * is small finds most of what it looks for in the part itself. Says nothing about what follows from it.
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

/** A model that says what attention rows receive. */
export interface MeasuringRunner {
  /** Of the last span: the sum of what its tokens gave, [numLayers, kvHeads, n], n = context and new tokens. */
  readonly received?: { readonly sum: Float32Array } | null;
  run(batch: readonly MeasuredSpan[]): Promise<unknown>;
}

/** Tokens of the context in a probe, and of those the ones that a turn asks about. */
const PROBE_TOKENS = 32;
const NAMED_TOKENS = 8;
/** Tokens of its end that are fed at a time: longer parts take longer to be given up and begun again. */
const PART_TOKENS = 512;
/** A request waits for a step under way: so long are they meant to be. */
const STEP_MS = 100;
const FIRST_STEP = 4;
const MAX_TOKENS = 128;

/** Tokens that are fed together over the first `numRows` rows of a context. */
export interface MeterPart {
  readonly tokenIds: readonly number[];
  /** Position of the first of them. */
  readonly startIndex: number;
  readonly numRows: number;
}

/** What stands in a conversation around a user's message: behind it the answer begins. Both empty without a chat template. */
export interface TurnIds {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

/** Slots that a part takes. */
export function partSlots({ before, after }: TurnIds): number {
  return Math.max(PART_TOKENS, before.length + NAMED_TOKENS + after.length + PROBE_TOKENS);
}

/**
 * Parts of a context from token `from` on, each behind its `numRows` rows: as text that goes on like it, and as the answer to a
 * message that begins alike. Positions stay below `maxContext`.
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

/** The tokens from `from` on again, where they stand; `numPruned` tokens before them have no rows. */
export function inPlace(tokenIds: readonly number[], from: number, numPruned: number): MeterPart[] {
  const parts: MeterPart[] = [];
  for (let at = from; at < tokenIds.length; at += PART_TOKENS)
    parts.push({ tokenIds: tokenIds.slice(at, at + PART_TOKENS), startIndex: at, numRows: at - numPruned });
  return parts;
}

export class AttentionMeter {
  /** [numLayers * kvHeads, numRows]: what all tokens gave. */
  readonly sum: Float32Array;
  readonly numRows: number;
  readonly #numHeads: number;
  /** The same of the part that is being fed. */
  readonly #found: Float32Array;
  #stepTokens = FIRST_STEP;

  constructor(numHeads: number, numRows: number) {
    this.#numHeads = numHeads;
    this.numRows = numRows;
    this.sum = new Float32Array(numHeads * numRows);
    this.#found = new Float32Array(numHeads * numRows);
  }

  /** Of one for so many rows. */
  static bytes(numHeads: number, numRows: number): number {
    return 2 * Float32Array.BYTES_PER_ELEMENT * numHeads * numRows;
  }

  /**
   * Feeds a part. `slots`: of the context's rows; `allocate`: n more, or null where there is no room. Counted is what the context's
   * rows receive, and the part's own tokens where they are the context's. False, and nothing is counted: no room, or `mustEnd`. One
   * part at a time.
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

  /** `given` [numLayers * kvHeads, n]; rows beyond this context's are not counted. */
  #add(to: Float32Array, given: Float32Array): void {
    const width = given.length / this.#numHeads;
    const count = Math.min(width, this.numRows);
    for (let h = 0; h < this.#numHeads; h++)
      for (let i = 0; i < count; i++) to[h * this.numRows + i]! += given[h * width + i]!;
  }
}
