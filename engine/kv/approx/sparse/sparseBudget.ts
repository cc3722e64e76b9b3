/**
 * How many slots and bytes a context takes that is longer than the pool (see sparseLeases), and how long one may be.
 * Arithmetic
 * only, under a budget that moves.
 */
import { kernelBytesWith } from '../codecs/kernels.ts';
import { hadamardBytes } from '../codecs/layerBuffers.ts';
import type { PoolBudget } from '../../poolBudget.ts';
import { SEAL_BYTES } from '../../disk/spillFile.ts';
import { sketchBytes, type SketchShape } from './keySketch.ts';

/** Tokens of a block, which leaves memory and comes back as a whole. */
export const SPILLED_TOKENS = 32;
const BLOCK = SPILLED_TOKENS;
/**
 * Of what the budget allows as a pool, what chosen blocks take at least. The rest is for sketches, for what is
 * computed, and for others.
 */
const MIN_SHARE = 0.2;
/** Tokens of a prompt between two choices, at most; an eighth of that pool. */
const PART = 512;

/** Bytes of the kernels' memory that making a sketch takes (see codecs/kernels.ts). */
export function sketchingBytes({ headSize }: SketchShape): number {
  return kernelBytesWith(hadamardBytes(headSize * BLOCK));
}

export class SparseBudget {
  /** Rows that the prefill lane has room for; 0: there is none. */
  prefillTokens = 0;
  readonly #budget: PoolBudget;
  readonly #sketchBytes: number;
  readonly #storeBytesPerToken: number;
  readonly #diskBytes: number;

  /** @param diskBytes of the file that rows are in, at most; 0: there is none. */
  constructor({
    budget,
    shape,
    storeBytesPerToken,
    diskBytes,
  }: { budget: PoolBudget; shape: SketchShape; storeBytesPerToken: number; diskBytes: number }) {
    this.#budget = budget;
    this.#sketchBytes = sketchBytes(shape, BLOCK);
    this.#storeBytesPerToken = storeBytesPerToken;
    this.#diskBytes = diskBytes;
  }

  /** Of a prompt, tokens between two choices. */
  get part(): number {
    return Math.max(BLOCK, Math.min(PART, Math.floor(this.#budget.maxSlots / 8 / BLOCK) * BLOCK));
  }

  /**
   * Slots that a context needs of which so many tokens are chosen: theirs, a part of the prompt, and what is not yet a
   * block.
   */
  slotsWith(numChosen: number): number {
    return numChosen + this.part + BLOCK;
  }

  /** The same of one of so many tokens. */
  slotsFor(numTokens: number): number {
    return this.slotsWith(this.chosenFor(numTokens));
  }

  /**
   * Slots of chosen blocks, of so many tokens: all that sketches leave, but for what is computed, and as much for
   * others; no more than the prefill lane has room for.
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
    // One block is on its way out.
    return Math.ceil(numTokens / BLOCK) * this.#sketchBytes + BLOCK * this.#storeBytesPerToken;
  }

  /** The most tokens that fit, with nothing else in the cache. */
  get capacity(): number {
    return BLOCK * Math.max(0, Math.floor(Math.min(this.#blocksInMemory, this.#blocksOnDisk)));
  }

  /**
   * Bytes that these contexts may take of the disk, where that bounds them; null: memory does, or they have no file.
   */
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
