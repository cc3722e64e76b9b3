/**
 * PURE: how the slots that a step looks at come to lie in as few pages of the pool as they fill. What is cached at
 * different times lies scattered, and a step attends to whole pages: where they do so together, every token of it pays
 * for all of theirs.
 *
 * Prices are in tokens that attend to one page in vain, which is 0.34 ms on the shape of Qwen2.5-0.5B. There an
 * exchange of
 * slots that lie side by side takes 1 ms and 6 µs a slot, one of single slots 92 µs each.
 */

const RUN_PRICE = 3;
const SLOT_PRICE = 0.02;
const SINGLE_PRICE = 0.27;
/** Of what is done before one step: it is in nobody's budget of time. */
const MAX_PRICE = 30;

export interface Packing {
  /** Pages that the slots lie in beyond the fewest that would hold them. */
  readonly pagesInVain: number;
  /**
   * Slots to be exchanged with others in `pages`; the emptiest page's first, not more than may be done before one step.
   */
  readonly from: readonly number[];
  readonly price: number;
  /** Which of the pool's slots are meant, [P]. */
  readonly isMeant: Uint8Array;
  /** Those that are to hold them: the fullest; none where nothing is to be moved. */
  readonly pages: ReadonlySet<number>;
}

/** `lists`: slots that may overlap, of a pool of `numSlots` in pages of `pageSlots`. */
export function packingOf(lists: readonly Int32Array[], numSlots: number, pageSlots: number): Packing {
  const isMeant = new Uint8Array(numSlots);
  const counts = new Int32Array(Math.ceil(numSlots / pageSlots));
  let total = 0;
  let numPages = 0;
  for (const list of lists) {
    for (let i = 0; i < list.length; i++) {
      const slot = list[i]!;
      if (isMeant[slot] === 1) continue;
      isMeant[slot] = 1;
      total++;
      const page = (slot / pageSlots) | 0;
      if (counts[page]!++ === 0) numPages++;
    }
  }
  const fewest = Math.ceil(total / pageSlots);
  // The rule: then nothing is to be moved.
  if (numPages === fewest) return { pagesInVain: 0, from: [], price: 0, isMeant, pages: new Set() };
  const fullestFirst = [...counts.keys()]
    .filter((page) => counts[page]! > 0)
    .sort((a, b) => counts[b]! - counts[a]! || a - b);
  const from: number[] = [];
  let price = 0;
  for (const page of fullestFirst.slice(fewest).reverse()) {
    const end = Math.min((page + 1) * pageSlots, numSlots);
    for (let slot = page * pageSlots; slot < end; slot++) {
      if (isMeant[slot] === 0) continue;
      const first = slot;
      while (slot + 1 < end && isMeant[slot + 1] === 1) slot++;
      const length = slot + 1 - first;
      const runPrice = Math.min(SINGLE_PRICE * length, RUN_PRICE + SLOT_PRICE * length);
      if (price + runPrice > MAX_PRICE) break;
      price += runPrice;
      for (let i = first; i <= slot; i++) from.push(i);
    }
  }
  return { pagesInVain: numPages - fewest, from, price, isMeant, pages: new Set(fullestFirst.slice(0, fewest)) };
}

/**
 * What the slots to be moved are exchanged with: free ones first, then those that `isIdle`, then any. As many, in
 * ascending order.
 */
export function partnersOf(
  { from, isMeant, pages }: Packing,
  pageSlots: number,
  isFree: (slot: number) => boolean,
  isIdle: (slot: number) => boolean,
): Int32Array {
  const kinds: number[][] = [[], [], []];
  for (const page of pages) {
    for (let slot = page * pageSlots; slot < Math.min((page + 1) * pageSlots, isMeant.length); slot++) {
      if (isMeant[slot] === 0) kinds[isFree(slot) ? 0 : isIdle(slot) ? 1 : 2]!.push(slot);
    }
  }
  return Int32Array.from(kinds.flat().slice(0, from.length)).sort();
}

/**
 * PURE: whether the tokens of a step attend to all its pages together, or each to those of its own sequence (see
 * pagedLane).
 * Together nothing is copied, but every token pays for every page; apart each token's pages are gathered, as many for
 * each
 * as the longest sequence has.
 */

/**
 * What a page costs gathered, in pages attended to together. Measured on the shape of Qwen2.5-0.5B, where all sequences
 * have the same
 * pages: 0.95 to 1.1 for tokens of as many sequences, up to 1.25 for 4 to 16 tokens of each; with large key biases the
 * same.
 */
const GATHERED_PRICE = 1.2;
/** Bytes that may be gathered for all tokens of a step in one layer, if they are more than all its pages have. */
const MAX_GATHERED = 64e6;

export interface Attended {
  readonly gathered: boolean;
  /** What each token pays for, in pages attended to together; at least one. */
  readonly pages: number;
}

/**
 * `most`: pages of the sequence that has most; `all`: of all sequences together; `pageBytes`: of a page in one layer.
 */
export function attendedPages(numTokens: number, most: number, all: number, pageBytes: number): Attended {
  const pages = GATHERED_PRICE * most;
  const gathered = pages < all && numTokens * most * pageBytes <= Math.max(MAX_GATHERED, all * pageBytes);
  return { gathered, pages: Math.max(1, gathered ? pages : all) };
}

/** How a step attends to the pool. */
export interface Attention {
  /**
   * Gathered attention: each token attends to its own sequence's pages. False: shared attention, all tokens to all
   * pages.
   */
  readonly gathered: boolean;
  /** The pages of each list of slots, in their order there. */
  readonly own: readonly ReadonlySet<number>[];
  /** Places that hold all pages, at least one. */
  readonly first: number;
  readonly count: number;
  /** Columns that a token attends to, P, and their cost in columns of shared attention. */
  readonly columns: number;
  readonly paidColumns: number;
}

/** First of `at.length` places side by side that hold most of the places `at` (ascending), of `numPlaces`. */
export function densestStart(at: readonly number[], numPlaces: number): number {
  let best = 0;
  let most = 0;
  for (let i = 0, j = 0; i < at.length; i++) {
    while (j < at.length && at[j]! < at[i]! + at.length) j++;
    if (j - i <= most) continue;
    most = j - i;
    best = at[i]!;
  }
  return Math.min(best, numPlaces - at.length);
}
