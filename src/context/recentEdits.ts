/** Recently edited line ranges of a document. They follow later edits. Pure. */

export interface Region {
  docId: string;
  startLine: number;
  endLine: number;
}

/** Edits closer than this to a region extend it. */
const NEAR_LINES = 10;
const MAX_REGIONS = 12;

export class RecentEdits {
  /** Newest first. */
  #regions: Region[] = [];

  get regions(): readonly Region[] {
    return this.#regions;
  }

  /** Lines [startLine, endLine] of the document were replaced; `numLines` is the change in the number of lines. */
  add(docId: string, startLine: number, endLine: number, lineChange: number): void {
    let edited: Region = { docId, startLine, endLine: Math.max(startLine, endLine + lineChange) };
    const others: Region[] = [];
    for (const region of this.#regions) {
      if (region.docId !== docId) {
        others.push(region);
        continue;
      }
      const moved =
        region.startLine > endLine
          ? { ...region, startLine: region.startLine + lineChange, endLine: region.endLine + lineChange }
          : region.endLine >= startLine
            ? { ...region, endLine: Math.max(region.startLine, region.endLine + lineChange) }
            : region;
      if (moved.startLine - NEAR_LINES <= edited.endLine && edited.startLine <= moved.endLine + NEAR_LINES)
        edited = {
          docId,
          startLine: Math.min(moved.startLine, edited.startLine),
          endLine: Math.max(moved.endLine, edited.endLine),
        };
      else others.push(moved);
    }
    this.#regions = [edited, ...others].slice(0, MAX_REGIONS);
  }

  forget(docId: string): void {
    this.#regions = this.#regions.filter((region) => region.docId !== docId);
  }
}
