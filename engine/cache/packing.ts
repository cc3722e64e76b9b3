/**
 * PURE: how the slots that a step looks at come to lie in as few pages of the window as they fill. What is cached at
 * different times lies scattered, and a step attends to whole pages: every token of it pays for all of theirs.
 */

export interface Scatter {
  /** Pages that the slots lie in, and the fewest that would hold them. */
  readonly numPages: number;
  readonly fewest: number;
  /** Slots to be exchanged, pairwise, for that. */
  readonly numMoves: number;
  /** Which of the window's slots are meant, [P]. */
  readonly isMeant: Uint8Array;
  /** The pages that are to hold them. */
  readonly pages: ReadonlySet<number>;
}

/** `lists`: slots that may overlap, of a window of `numSlots` in pages of `pageSlots`. */
export function scatterOf(lists: readonly Int32Array[], numSlots: number, pageSlots: number): Scatter {
  const isMeant = new Uint8Array(numSlots);
  const counts = new Int32Array(Math.ceil(numSlots / pageSlots));
  let total = 0;
  for (const list of lists) {
    for (const slot of list) {
      if (isMeant[slot] === 1) continue;
      isMeant[slot] = 1;
      total++;
      counts[(slot / pageSlots) | 0]!++;
    }
  }
  const used = [...counts.keys()].filter((page) => counts[page]! > 0);
  const fewest = Math.ceil(total / pageSlots);
  const fullest = used.toSorted((a, b) => counts[b]! - counts[a]! || a - b).slice(0, fewest);
  const numMoves = fullest.reduce((left, page) => left - counts[page]!, total);
  return { numPages: used.length, fewest, numMoves, isMeant, pages: new Set(fullest) };
}

/** Which slots of other pages are exchanged with which of the chosen ones: free ones first, then those that `isIdle`, then any. */
export function exchanges({ isMeant, pages, numMoves }: Scatter, pageSlots: number, isFree: (slot: number) => boolean, isIdle: (slot: number) => boolean): { from: Int32Array; to: Int32Array } {
  const from: number[] = [];
  const to: number[][] = [[], [], []];
  for (let slot = 0; slot < isMeant.length; slot++) {
    const isInside = pages.has(Math.floor(slot / pageSlots));
    if (isMeant[slot] === 1 && !isInside) from.push(slot);
    else if (isMeant[slot] === 0 && isInside) to[isFree(slot) ? 0 : isIdle(slot) ? 1 : 2]!.push(slot);
  }
  return { from: Int32Array.from(from), to: Int32Array.from(to.flat().slice(0, numMoves).sort((a, b) => a - b)) };
}
