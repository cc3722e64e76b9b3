/**
 * Past completions of each document. They apply at their own position, while the user types through them, and after
 * deleting back. Bounded in number and in characters. Pure.
 */
import { carryOver, type Insertion, type Place } from './place.ts';

export interface Completion extends Place {
  /** What the engine offered at `offset`, with the document's line ends. Never empty. */
  insert: string;
  /** Other sampled candidates, without duplicates; undefined if none were asked for. */
  others?: string[];
  /** Computed before it was asked for. */
  ahead?: boolean;
  /** The model wrote more, which was hidden because its confidence is low. */
  suppressed?: true;
}

/** Enough for typing some lines and deleting them again. Any edit elsewhere makes older entries void anyway. */
const MAX_PER_DOCUMENT = 24;
const MAX_DOCUMENTS = 8;
/**
 * Limit for all texts together; versions of one document are different strings. The newest completion is always kept.
 */
const MAX_CHARACTERS = 8_000_000;

export class CompletionCache {
  /** Documents with the newest last; the completions of each with the newest first. */
  readonly #documents = new Map<string, Completion[]>();

  add(completion: Completion): void {
    const { docId } = completion;
    const others = (this.#documents.get(docId) ?? []).filter((old) => !samePlace(old, completion));
    this.#documents.delete(docId);
    this.#documents.set(docId, [completion, ...others].slice(0, MAX_PER_DOCUMENT));
    for (const oldest of this.#documents.keys()) {
      if (this.#documents.size <= MAX_DOCUMENTS) break;
      this.#documents.delete(oldest);
    }
    this.#trim();
  }

  /**
   * The completion to insert at `place`: one made there, else one typed through, else one deleted back to. Newest first
   * within each kind.
   */
  lookup(place: Place): { completion: Completion; insertion: Insertion } | undefined {
    const known = this.#documents.get(place.docId) ?? [];
    const typed =
      known.find((completion) => samePlace(completion, place)) ??
      known.find((completion) => completion.offset <= place.offset && this.left(completion, place));
    const completion = typed ?? known.find((old) => this.left(old, place));
    const insertion = completion && this.left(completion, place);
    return insertion && { completion, insertion };
  }

  /** What remains of a finished completion at `place`. */
  left(completion: Completion, place: Place): Insertion | undefined {
    return carryOver(completion, completion.insert, place);
  }

  clear(): void {
    this.#documents.clear();
  }

  /** Number of completions held. */
  get size(): number {
    return [...this.#documents.values()].reduce((sum, completions) => sum + completions.length, 0);
  }

  /**
   * Drops the oldest completion of the least recently used document until the texts fit. Completions of one version
   * share its text.
   */
  #trim(): void {
    for (;;) {
      const texts = new Set(
        [...this.#documents.values()].flatMap((completions) => completions.map(({ text }) => text)),
      );
      const characters = [...texts].reduce((sum, text) => sum + text.length, 0);
      const [docId, completions] = this.#documents.entries().next().value ?? [];
      if (characters <= MAX_CHARACTERS || docId === undefined || !completions || this.size === 1) return;
      completions.pop();
      if (completions.length === 0) this.#documents.delete(docId);
    }
  }
}

export function samePlace(a: Place, b: Place): boolean {
  return a.docId === b.docId && a.offset === b.offset && a.text === b.text;
}
