/**
 * The order of eviction: the node with the least worth leaves first, pinned nodes last, and no node before its
 * children. Utility is the policy that says what a node is worth. Does not evict.
 */
import type { RadixNode, RadixTree } from '../radixTree.ts';
import { isPrefill } from '../laneIds.ts';

export interface Eviction {
  /**
   * Worth of keeping a node, without those below it. Only compared. `youngest`: the latest use among it and its
   * siblings.
   */
  worth(node: RadixNode, now: number, youngest: number): number;
  /** Nodes of the same kind keep their order, whatever the policy learns. Left out: each node is a kind of its own. */
  kind?(node: RadixNode, now: number, youngest: number): number;
  /** A request has reused the node, so long after its last use. */
  hit(node: RadixNode, idleMs: number): void;
  /** The node is dropped, so long after its last use. */
  gone(node: RadixNode, idleMs: number): void;
}

/** Negative when `a` leaves before `b`, as of the time when the order was made. */
export interface EvictionOrder {
  (a: RadixNode, b: RadixNode): number;
  /** How worths were computed. Left out: the order is not by worth. */
  readonly by?: { readonly eviction: Eviction; readonly now: number };
}

export function evictionOrder(tree: RadixTree, eviction: Eviction, now: number): EvictionOrder {
  const nodes = [...tree.nodes()];
  const youngest = youngestBelow(nodes);
  for (const node of nodes) node.worth = eviction.worth(node, now, youngest.get(node.parent!)!);
  // Backwards, because parents come first: so each node has been raised by all nodes below it.
  for (const node of nodes.reverse()) if (node.parent && node.worth > node.parent.worth) node.parent.worth = node.worth;
  const order = (a: RadixNode, b: RadixNode): number =>
    Number(a.pinned) - Number(b.pinned) || a.worth - b.worth || b.startIndex - a.startIndex;
  return Object.assign(order, { by: { eviction, now } });
}

/** The latest use of its children, for each node that has any. */
export function youngestBelow(nodes: readonly RadixNode[]): Map<RadixNode, number> {
  const youngest = new Map<RadixNode, number>();
  for (const { parent, lastUse } of nodes) {
    const latest = youngest.get(parent!);
    if (latest === undefined || lastUse > latest) youngest.set(parent!, lastUse);
  }
  return youngest;
}

/** The first node to leave among those that `may`. */
export function firstToGo(
  nodes: Iterable<RadixNode>,
  order: EvictionOrder,
  may: (node: RadixNode) => boolean,
): RadixNode | null {
  let first: RadixNode | null = null;
  for (const node of nodes) if ((!first || order(node, first) < 0) && may(node)) first = node;
  return first;
}

/** Unreferenced nodes of the pool in eviction order. The order is computed once, because there may be thousands. */
export class EvictionQueue {
  readonly order: EvictionOrder;
  readonly #nodes: readonly RadixNode[];
  readonly #known: ReadonlySet<RadixNode>;
  /** Number of the first nodes that have left completely. */
  #numGone = 0;

  constructor(tree: RadixTree, order: EvictionOrder) {
    this.order = order;
    this.#nodes = Array.from(tree.nodes()).filter(isFree).sort(order);
    this.#known = new Set(this.#nodes);
  }

  /** The first node that has not left and that `may` leave. Null: there is none. */
  first(may: (node: RadixNode) => boolean = () => true): RadixNode | null {
    for (let i = this.#numGone; i < this.#nodes.length; i++) {
      const left = this.#leftOf(this.#nodes[i]!);
      if (left && may(left)) return left;
      if (!left && i === this.#numGone) this.#numGone++;
    }
    return null;
  }

  /** The first nodes with so many tokens in total, or all nodes. Call it before any node has left. */
  firstOf(numTokens: number): RadixNode[] {
    let [length, numNodes] = [0, 0];
    while (length < numTokens && numNodes < this.#nodes.length) length += this.#nodes[numNodes++]!.slots!.length;
    return this.#nodes.slice(0, numNodes);
  }

  /** The node, or what is left of it when its end has left: its new parent, in the same place of the order. */
  #leftOf(node: RadixNode): RadixNode | null {
    if (isFree(node)) return node;
    const { parent } = node;
    return parent && !this.#known.has(parent) ? this.#leftOf(parent) : null;
  }
}

/** Whether a node is in the pool and unreferenced. */
function isFree({ refCount, slots }: RadixNode): boolean {
  return refCount === 0 && slots !== null;
}

/**
 * Tokens of context at which a token costs twice as much as the first one. With the shape of Qwen2.5-0.5B 512 tokens
 * take 1.4 s at position 0 and 4.3 s at position 7,680.
 */
export const DOUBLED_AT = 3700;

/**
 * Expected reuse per time kept, times the cost of computing the node again, divided by its bytes. Before it has learnt
 * anything the order is that of LRU, except that deep nodes stay a little longer.
 */
export class Utility implements Eviction {
  readonly #times = new ReuseTimes();
  /** Nodes that were reused since they were computed. */
  readonly #found = new Set<RadixNode>();
  /** A number for each tag, because every node is classified at every eviction. */
  readonly #tags = new Map<string, number>();
  readonly #bytesPerToken: number;

  /** `bytesPerToken`: of rows that are not compressed. */
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
   * The class of a node: who computed it; whether its last token is in the prefill lane (files and user text are,
   * answers are not; a node is evicted from its end); whether it was reused before, because then it is mostly reused
   * again; whether its text has continued in another way since.
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

/** Files differ from each other within their headers. Nodes that part there do not replace each other. */
const MAX_HEADER = 64;

/**
 * Whether a sibling was used later: mostly the text as it is after an edit. `youngest`: see Eviction, where it is
 * known.
 */
function isSuperseded(node: RadixNode, youngest?: number): boolean {
  if (node.startIndex < MAX_HEADER) return false;
  if (youngest !== undefined) return youngest > node.lastUse;
  for (const other of node.parent!.children.values()) if (other.lastUse > node.lastUse) return true;
  return false;
}

/**
 * The chance of reuse, by a node's class and by the time since its last use. Learnt from nodes that were reused and
 * from those that were dropped. As "KVCache in the Wild" (arXiv 2506.02634) observes, classes differ far more than ages
 * within a class: a completion prefix is never reused once the user has typed past it, a file's block is reused even
 * after an hour, an answer within minutes or not at all.
 *
 * For each doubling of the age this learns the share of the nodes that reached the age and were reused within it. A
 * dropped node counts up to its age, so that early eviction is not mistaken for a lack of reuse. The worth is the
 * number of reuses per ms kept, with the best time to stop keeping (Gittins index). The plain chance of reuse would
 * prefer what may be used in hours to what is used in seconds; the chance of the next moment alone would wait for
 * nothing.
 */

/** Ages are powers of two, from an eighth of a second to eighteen hours. */
const NUM_AGES = 19;
const FIRST_MS = 125;
/**
 * Prior: so many nodes at each age, of which this share was reused. It is the same for all ages, so younger nodes are
 * worth more.
 */
const PRIOR_RUNS = 3;
const PRIOR_SHARE = 0.25;

function ageOf(idleMs: number): number {
  return 31 - Math.clz32(Math.max(1, Math.min(2 ** (NUM_AGES - 1), idleMs / FIRST_MS)));
}

/** Where an age begins, in ms. It lasts as long again. */
function startOf(age: number): number {
  return FIRST_MS * 2 ** age;
}

class Ages {
  /** Nodes that reached each age, and those of them that were reused at it. */
  readonly #reached = new Float64Array(NUM_AGES).fill(PRIOR_RUNS);
  readonly #found = new Float64Array(NUM_AGES).fill(PRIOR_RUNS * PRIOR_SHARE);
  /** For each age the worth from its beginning on. */
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

  /** Chance of reuse divided by mean ms kept, for the best time to stop keeping. */
  #most(from: number): number {
    let [chance, ms, missed, most] = [0, 0, 1, 0];
    for (let age = from; age < NUM_AGES; age++) {
      const share = this.#found[age]! / this.#reached[age]!;
      chance += missed * share;
      // On average a node is reused in the middle of an age.
      ms += missed * (1 - share / 2) * startOf(age);
      missed *= 1 - share;
      most = Math.max(most, chance / ms);
    }
    return most;
  }
}

export class ReuseTimes {
  /** By class id. */
  readonly #classes: Ages[] = [];

  /** A node of this class was reused (`found`) or dropped, so long after its last use. */
  ended(classId: number, idleMs: number, found: boolean): void {
    this.#of(classId).ended(ageOf(idleMs), found);
  }

  /** Reuses per ms kept, times `weight`, of a node of this class that was not used for so long. */
  worth(classId: number, idleMs: number, weight = 1): number {
    const age = ageOf(idleMs);
    // Within an age worth falls as between ages of which nothing is known: half at twice the time. A product of two
    // float32 is exact, which `kind` relies on.
    return Math.fround(this.#of(classId).worth(age)) * Math.fround((weight * startOf(age)) / Math.max(1, idleMs));
  }

  /** Two nodes of the same kind keep their order, whatever is learnt. */
  kind(classId: number, idleMs: number): number {
    return NUM_AGES * classId + ageOf(idleMs);
  }

  #of(classId: number): Ages {
    while (this.#classes.length <= classId) this.#classes.push(new Ages());
    return this.#classes[classId]!;
  }
}
