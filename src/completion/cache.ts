/**
 * Past completions and the moments at which they still hold: at their own position, while the user types them through,
 * and after deleting back from there. Compares whole texts, so that an edit anywhere else makes them void. Pure.
 */

/** A place in one version of a document. */
export interface Place {
  docId: string;
  text: string;
  offset: number;
}

export interface Completion extends Place {
  /** What the engine offered at `offset`, with the document's own line ends. */
  insert: string;
}

/** Enough for typing a line and deleting it again; older ones are void after the next edit elsewhere anyway. */
const MOST = 8;

export class CompletionCache {
  #newestFirst: Completion[] = [];

  add(completion: Completion): void {
    const others = this.#newestFirst.filter((old) => !(old.docId === completion.docId && old.offset === completion.offset && old.text === completion.text));
    this.#newestFirst = [completion, ...others].slice(0, MOST);
  }

  /** What to insert at `place` according to a past completion, or undefined. Never empty. */
  lookup(place: Place): string | undefined {
    for (const completion of this.#newestFirst) {
      const insert = carryOver(completion, place);
      if (insert) return insert;
    }
    return undefined;
  }

  clear(): void {
    this.#newestFirst = [];
  }
}

/** What is left to insert at `place` of a completion made elsewhere in the same document; undefined where it does not hold. */
export function carryOver(completion: Completion, place: Place): string | undefined {
  if (completion.docId !== place.docId) return undefined;
  const tail = completion.text.length - completion.offset;
  if (place.text.length - place.offset !== tail) return undefined;
  const typed = place.offset - completion.offset;
  const common = Math.min(completion.offset, place.offset);
  if (typed > completion.insert.length || place.text.slice(common, place.offset) !== completion.insert.slice(0, Math.max(0, typed))) return undefined;
  const deleted = completion.text.slice(common, completion.offset);
  // Deleting a line end goes to another line, where another completion belongs.
  if (deleted.includes('\n')) return undefined;
  if (completion.text.slice(0, common) !== place.text.slice(0, common) || completion.text.slice(completion.offset) !== place.text.slice(place.offset)) return undefined;
  return deleted + completion.insert.slice(Math.max(0, typed));
}

/** The engine writes LF; the document may not. */
export function withLineEnds(text: string, eol: '\n' | '\r\n'): string {
  return eol === '\n' ? text : text.replace(/\r?\n/g, '\r\n');
}
