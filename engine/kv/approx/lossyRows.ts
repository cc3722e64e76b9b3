/**
 * Which rows of a node have been through a lossy step. Pure. The ranges belong to the node and stay the same wherever
 * its rows are. Pruning is marked on the node as a whole (RadixNode.pruned), because a pruned node is never split.
 */

/** Rows [from, to) of a node. */
interface LossyRows {
  readonly from: number;
  readonly to: number;
  /** The lossy codec, or another approximation (see SKETCH). */
  readonly codec: string;
}

/** Ascending and disjoint. All other rows of the node are exact. */
export type Lossy = readonly LossyRows[];

/** The ranges within rows [from, to), relative to `from`. */
export function lossyWithin(lossy: Lossy, from: number, to = Number.POSITIVE_INFINITY): Lossy {
  return lossy
    .map((rows) => ({ from: Math.max(rows.from, from) - from, to: Math.min(rows.to, to) - from, codec: rows.codec }))
    .filter((rows) => rows.from < rows.to);
}

/** Whether rows [from, to) are exact. */
export function isExact(lossy: Lossy, from: number, to: number): boolean {
  return lossyWithin(lossy, from, to).length === 0;
}

/**
 * The union of two sets of ranges of one node. @throws Error where they overlap: rows must not be encoded twice,
 * because only the loss of one pass is measured.
 */
export function joinLossy(one: Lossy, other: Lossy): Lossy {
  const joined: LossyRows[] = [];
  for (const rows of [...one, ...other].filter(({ from, to }) => from < to).sort((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last && rows.from < last.to)
      throw new Error(
        `Rows ${rows.from} to ${Math.min(rows.to, last.to)} have been through ${last.codec}, and now through ${rows.codec}.`,
      );
    if (last?.to === rows.from && last.codec === rows.codec) joined[joined.length - 1] = { ...last, to: rows.to };
    else joined.push(rows);
  }
  return joined;
}

/** The codecs without duplicates. */
export function codecsOf(lossy: Lossy): string[] {
  return [...new Set(lossy.map(({ codec }) => codec))];
}
