/**
 * Which rows of a node have been through a lossy step. Pure. The extents belong to the node and stay with it wherever
 * its rows lie;
 * neither pool nor block repeats them. Pruning is marked on the node as a whole (RadixNode.pruned), because such a node
 * is never split.
 */

/** Rows [from, to) of a run. */
interface LossyRows {
  readonly from: number;
  readonly to: number;
  /** The lossy codec that they have been through, or what is named like one (see SKETCH). */
  readonly codec: string;
}

/** Ascending and disjoint. All other rows of the run are as they were computed. */
export type Lossy = readonly LossyRows[];

/** What of it is said of rows [from, to), which are counted from there on. */
export function lossyWithin(lossy: Lossy, from: number, to = Number.POSITIVE_INFINITY): Lossy {
  return lossy
    .map((rows) => ({ from: Math.max(rows.from, from) - from, to: Math.min(rows.to, to) - from, codec: rows.codec }))
    .filter((rows) => rows.from < rows.to);
}

/** Whether rows [from, to) are as they were computed. */
export function isExact(lossy: Lossy, from: number, to: number): boolean {
  return lossyWithin(lossy, from, to).length === 0;
}

/**
 * Both, of rows of one run. @throws an error where rows were to be coded a second time: what is measured with the model
 * is the loss of coding once.
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

/** Each once. */
export function codecsOf(lossy: Lossy): string[] {
  return [...new Set(lossy.map(({ codec }) => codec))];
}
