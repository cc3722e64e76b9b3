/**
 * Past completions of each document and where they hold: at their own position, while the user types them through, and
 * after deleting back. Bounded in number and in the characters of the texts that it keeps. Pure.
 */
import { carryOver, type Insertion, type Place } from './place.ts';
import { ALL_POLICIES, type CompletionPolicies } from './policies.ts';

export interface Completion extends Place {
  /** What the engine offered at `offset`, with the document's own line ends. Never empty. */
  insert: string;
  /** Sampled besides it, each different; undefined while nobody has asked for any. */
  others?: string[];
  /** Written before it was asked for. */
  ahead?: boolean;
  /** The model has more to say that it is not sure enough of. */
  heldBack?: true;
}

/** Enough for typing some lines and deleting them again; older ones are void after an edit elsewhere anyway. */
const MOST_PER_DOCUMENT = 24;
const MOST_DOCUMENTS = 8;
/** Of all texts together; versions of one document are different strings. The newest completion is kept in any case. */
const MOST_CHARACTERS = 8_000_000;

export class CompletionCache {
  readonly #carries: boolean;
  /** Newest last; in each document newest first. */
  readonly #documents = new Map<string, Completion[]>();

  constructor({ carryOver }: Pick<CompletionPolicies, 'carryOver'> = ALL_POLICIES) {
    this.#carries = carryOver;
  }

  add(completion: Completion): void {
    const { docId } = completion;
    const others = (this.#documents.get(docId) ?? []).filter((old) => !samePlace(old, completion));
    this.#documents.delete(docId);
    this.#documents.set(docId, [completion, ...others].slice(0, MOST_PER_DOCUMENT));
    for (const oldest of this.#documents.keys()) {
      if (this.#documents.size <= MOST_DOCUMENTS) break;
      this.#documents.delete(oldest);
    }
    this.#trim();
  }

  /** The completion that says what to insert at `place`: made there, else typed through, else deleted back; of each kind the newest. */
  lookup(place: Place): { completion: Completion; insertion: Insertion } | undefined {
    const known = this.#documents.get(place.docId) ?? [];
    const typed =
      known.find((completion) => samePlace(completion, place)) ??
      known.find((completion) => completion.offset <= place.offset && this.left(completion, place));
    const completion = typed ?? known.find((old) => this.left(old, place));
    const insertion = completion && this.left(completion, place);
    return insertion && { completion, insertion };
  }

  /** What there is of a finished completion to insert at `place`. */
  left(completion: Completion, place: Place): Insertion | undefined {
    return this.#carries || samePlace(completion, place) ? carryOver(completion, completion.insert, place) : undefined;
  }

  clear(): void {
    this.#documents.clear();
  }

  /** Number of completions held. */
  get size(): number {
    return [...this.#documents.values()].reduce((sum, completions) => sum + completions.length, 0);
  }

  /** Drops the oldest of the document longest without a new one until the texts fit; completions of one version share its text. */
  #trim(): void {
    for (;;) {
      const texts = new Set(
        [...this.#documents.values()].flatMap((completions) => completions.map(({ text }) => text)),
      );
      const characters = [...texts].reduce((sum, text) => sum + text.length, 0);
      const [docId, completions] = this.#documents.entries().next().value ?? [];
      if (characters <= MOST_CHARACTERS || docId === undefined || !completions || this.size === 1) return;
      completions.pop();
      if (completions.length === 0) this.#documents.delete(docId);
    }
  }
}

export function samePlace(a: Place, b: Place): boolean {
  return a.docId === b.docId && a.offset === b.offset && a.text === b.text;
}
