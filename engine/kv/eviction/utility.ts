/**
 * The utility policy: how often a node is reused for the time it is kept, times the cost of computing it again, divided
 * by its bytes.
 * Before anything is learnt this is the order of LRU, except that deep nodes stay a little longer.
 */
import { isPrefill } from '../laneIds.ts';
import type { RadixNode } from '../radixTree.ts';
import type { Eviction } from './eviction.ts';

/**
 * Tokens of context at which a token costs twice what it costs at the beginning: of the shape of Qwen2.5-0.5B 512
 * tokens take 1.4 s at 0 and 4.3 s behind 7,680.
 */
export const DOUBLED_AT = 3700;

export class Utility implements Eviction {
  readonly #times = new ReuseTimes();
  /** What has been found since it was computed. */
  readonly #found = new Set<RadixNode>();
  /** Numbers for tags: each run is looked at whenever room is made. */
  readonly #tags = new Map<string, number>();
  readonly #bytesPerToken: number;

  /** @param bytesPerToken of rows that are not compressed. */
  constructor(bytesPerToken: number) {
    this.#bytesPerToken = bytesPerToken;
  }

  worth(node: RadixNode, now: number, youngest?: number): number {
    const numTokens = node.tokenIds.length;
    const cost = numTokens * (1 + (node.startIndex + numTokens / 2) / DOUBLED_AT);
    const bytes = node.slots ? node.slots.length * this.#bytesPerToken : node.stored!.bytes;
    return this.#times.worth(this.#classOf(node, youngest), now - node.lastUse, cost / bytes);
  }

  kind(node: RadixNode, now: number, youngest: number): number {
    return this.#times.kind(this.#classOf(node, youngest), now - node.lastUse);
  }

  hit(node: RadixNode, idleMs: number): void {
    this.#times.ended(this.#classOf(node), idleMs, true);
    this.#found.add(node);
  }

  gone(node: RadixNode, idleMs: number): void {
    this.#times.ended(this.#classOf(node), idleMs, false);
    this.#found.delete(node);
  }

  /**
   * Who computed it; what its last tokens are (a run goes from its end: there files, and what the user wrote, are in
   * the prefill
   * lane, answers are not); whether it was found before: what has been found once is mostly found again; and whether
   * its text has
   * gone on in another way since.
   */
  #classOf(node: RadixNode, youngest?: number): number {
    const tag = this.#tags.get(node.tag) ?? this.#tags.size;
    if (tag === this.#tags.size) this.#tags.set(node.tag, tag);
    return (
      8 * tag +
      4 * Number(isPrefill(node.tokenIds.at(-1)!)) +
      2 * Number(this.#found.has(node)) +
      Number(isSuperseded(node, youngest))
    );
  }
}

/** Files part in their headers, not later: what parts there does not replace each other. */
const MAX_HEADER = 64;

/**
 * Whether a younger run goes on from the same place, within a file or behind it: mostly the text as it is since an
 * edit. `youngest`: see Eviction, where it is known.
 */
function isSuperseded(node: RadixNode, youngest?: number): boolean {
  if (node.startIndex < MAX_HEADER) return false;
  if (youngest !== undefined) return youngest > node.lastUse;
  for (const other of node.parent!.children.values()) if (other.lastUse > node.lastUse) return true;
  return false;
}

/**
 * PURE: what keeping a run is good for, by its class and by how long it has not been used: learnt from the runs that
 * were found
 * and from those that went. As "KVCache in the Wild" (arXiv 2506.02634) has it, classes differ by far more than ages do
 * within
 * one: what was typed past is never found again, a file's block is, an hour later, an answer within minutes or not at
 * all.
 *
 * What is learnt is, for each doubling of the age, the share of the runs that came to it and were found within it. Runs
 * that went
 * count as far as they came, so that evicting early is not mistaken for never being needed. From these shares follows
 * how often
 * keeping pays for each ms that it lasts, if one keeps for as long as that is most (Gittins' index): the chance to be
 * found at
 * all would keep what may come in hours before what comes in seconds, the chance of the next moment would not wait for
 * anything.
 */

/** Ages are counted by powers of two, from an eighth of a second up to eighteen hours. */
const NUM_AGES = 19;
const FIRST_MS = 125;
/**
 * What is taken to be known beforehand: so many runs of each age, of which this share were found within it. The same
 * for all ages: then the younger is worth more.
 */
const PRIOR_RUNS = 3;
const PRIOR_SHARE = 0.25;

function ageOf(idleMs: number): number {
  return 31 - Math.clz32(Math.max(1, Math.min(2 ** (NUM_AGES - 1), idleMs / FIRST_MS)));
}

/** Where an age begins, and lasts as long again. */
function startOf(age: number): number {
  return FIRST_MS * 2 ** age;
}

class Ages {
  /** Runs that came to each age, and those of them that were found at it. */
  readonly #reached = new Float64Array(NUM_AGES).fill(PRIOR_RUNS);
  readonly #found = new Float64Array(NUM_AGES).fill(PRIOR_RUNS * PRIOR_SHARE);
  /** For each age: what keeping pays from its beginning on. */
  #worths: Float64Array | null = null;

  ended(age: number, found: boolean): void {
    for (let i = 0; i <= age; i++) this.#reached[i]!++;
    if (found) this.#found[age]!++;
    this.#worths = null;
  }

  worth(age: number): number {
    this.#worths ??= Float64Array.from({ length: NUM_AGES }, (_, from) => this.#most(from));
    return this.#worths[age]!;
  }

  /** Chance to be found over mean ms kept, for the end of keeping that makes the most of it. */
  #most(from: number): number {
    let [chance, ms, missed, most] = [0, 0, 1, 0];
    for (let age = from; age < NUM_AGES; age++) {
      const share = this.#found[age]! / this.#reached[age]!;
      chance += missed * share;
      // Who is found at an age is found in its middle.
      ms += missed * (1 - share / 2) * startOf(age);
      missed *= 1 - share;
      most = Math.max(most, chance / ms);
    }
    return most;
  }
}

export class ReuseTimes {
  /** By number, from 0. */
  readonly #classes: Ages[] = [];

  /** A run of this class was found, or went, so long after its last use. */
  ended(classId: number, idleMs: number, found: boolean): void {
    this.#of(classId).ended(ageOf(idleMs), found);
  }

  /**
   * Of a run of this class, not used for so long: how often it is found for each ms that it is kept, times what it
   * weighs.
   */
  worth(classId: number, idleMs: number, weight = 1): number {
    const age = ageOf(idleMs);
    // Within an age as between ages of which nothing is known: half of it at twice the time. A product of two floats is
    // exact: see `kind`.
    return Math.fround(this.#of(classId).worth(age)) * Math.fround((weight * startOf(age)) / Math.max(1, idleMs));
  }

  /** Of two runs that have it in common the same one is worth more whatever is learnt, or neither is. */
  kind(classId: number, idleMs: number): number {
    return NUM_AGES * classId + ageOf(idleMs);
  }

  #of(classId: number): Ages {
    while (this.#classes.length <= classId) this.#classes.push(new Ages());
    return this.#classes[classId]!;
  }
}
