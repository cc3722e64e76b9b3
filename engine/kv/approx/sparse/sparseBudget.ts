/**
 * How many slots and bytes a sparse context takes, and how long it may be. Arithmetic only, under a budget that may
 * change.
 */
import { kernelBytesWith } from '../codecs/kernels.ts';
import { hadamardBytes } from '../codecs/layerBuffers.ts';
import type { KvShape } from '../../kvRows.ts';
import type { PoolBudget } from '../../poolBudget.ts';
import { SEAL_BYTES } from '../../disk/spillFile.ts';
import { canSketch, sketchBytes } from './keySketch.ts';

/** Tokens of a block, which is spilled and read as a whole. */
export const SPILLED_TOKENS = 32;
const BLOCK = SPILLED_TOKENS;
/**
 * Smallest share of the budget, as slots of a pool, for chosen blocks. The rest is for sketches, for computed tokens
 * and for other requests.
 */
const MIN_SHARE = 0.2;
/** Most tokens of a prompt between two choices. At most an eighth of that pool. */
const PART = 512;

/** Bytes of the kernels' memory that making a sketch takes (see codecs/kernels.ts). 0: there are no sketches. */
export function sketchingBytes(shape: KvShape): number {
  return canSketch(shape) ? kernelBytesWith(hadamardBytes(shape.headSize * BLOCK)) : 0;
}

export class SparseBudget {
  /** Rows that the prefill lane has space for; 0: there is no such lane. */
  prefillTokens = 0;
  readonly #budget: PoolBudget;
  readonly #sketchBytes: number;
  readonly #storeBytesPerToken: number;
  readonly #diskBytes: number;

  /** `diskBytes`: cap of the spill file; 0: there is none. `shape`: of the rows; some have no sketches. */
  constructor({
    budget,
    shape,
    storeBytesPerToken,
    diskBytes,
  }: { budget: PoolBudget; shape: KvShape; storeBytesPerToken: number; diskBytes: number }) {
    this.#budget = budget;
    this.#sketchBytes = sketchBytes(shape, BLOCK);
    this.#storeBytesPerToken = storeBytesPerToken;
    this.#diskBytes = canSketch(shape) ? diskBytes : 0;
  }

  /** Tokens of a prompt between two choices. */
  get part(): number {
    return Math.max(BLOCK, Math.min(PART, Math.floor(this.#budget.maxSlots / 8 / BLOCK) * BLOCK));
  }

  /**
   * Slots of a context with so many chosen tokens: these, a part of the prompt, and tokens that are not a block yet.
   */
  slotsWith(numChosen: number): number {
    return numChosen + this.part + BLOCK;
  }

  /** Slots of a context of so many tokens. */
  slotsFor(numTokens: number): number {
    return this.slotsWith(this.chosenFor(numTokens));
  }

  /**
   * Slots for chosen blocks of a context of so many tokens: all that sketches leave, minus those for computed tokens
   * and as many for other requests. At most what the prefill lane has space for.
   */
  chosenFor(numTokens: number): number {
    return Math.min(
      Math.max(this.#leastChosen, this.#budget.slotsBeside(this.storeBytes(numTokens)) - 2 * this.part - BLOCK),
      this.#mostChosen,
    );
  }

  get #leastChosen(): number {
    return Math.min(this.#mostChosen, Math.floor(MIN_SHARE * this.#budget.maxSlots));
  }

  get #mostChosen(): number {
    return this.prefillTokens > 0 ? Math.max(4 * BLOCK, this.prefillTokens - this.part - BLOCK) : this.#budget.maxSlots;
  }

  /** Bytes of memory that so many tokens take outside the pool. */
  storeBytes(numTokens: number): number {
    // With one block that is being spilled.
    return Math.ceil(numTokens / BLOCK) * this.#sketchBytes + BLOCK * this.#storeBytesPerToken;
  }

  /** The most tokens of a context, with nothing else in the cache. */
  get capacity(): number {
    return BLOCK * Math.max(0, Math.floor(Math.min(this.#blocksInMemory, this.#blocksOnDisk)));
  }

  /** Bytes of the spill file, where they limit `capacity`. Null: memory limits it, or there is no file. */
  get diskBound(): number | null {
    return this.#diskBytes > 0 && this.#blocksOnDisk < this.#blocksInMemory ? this.#diskBytes : null;
  }

  get #blocksInMemory(): number {
    return (
      (this.#budget.bytesBeside(this.#leastChosen + 2 * this.part + BLOCK) - this.storeBytes(0)) / this.#sketchBytes
    );
  }

  get #blocksOnDisk(): number {
    return this.#diskBytes / (BLOCK * this.#storeBytesPerToken + SEAL_BYTES);
  }
}
