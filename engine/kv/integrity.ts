/** Checks the invariants of the cache. Changes nothing. Tests call it after each step. */
import { codecsOf, lossyWithin, type StoredBlock, wholeOf } from './storedBlocks.ts';
import type { KvMemory } from './kvMemory.ts';
import { arraysOf } from './kvRows.ts';
import { type Lease, numLeased, ownSlots } from './lease.ts';
import { endIndex, numRows, pathTo, type RadixNode } from './radixTree.ts';

/** Tests check every slot after each step, so a message is built only when it is needed. */
function check(holds: boolean, message: () => string): asserts holds {
  if (!holds) throw new Error(`KV cache: ${message()}`);
}

function checkNode(node: RadixNode): void {
  const at = () => `node at ${node.startIndex} of ${node.tokenIds.length}`;
  const parent = node.parent!;
  check(node.tokenIds.length > 0, () => `${at()} is empty`);
  const isChild = node.pruned ? parent.prunedChildren.has(node) : parent.children.get(node.tokenIds[0]!) === node;
  check(isChild, () => `${at()} is not its parent's child`);
  check(node.startIndex === endIndex(parent), () => `${at()} does not follow its parent`);
  check(node.slots !== null || node.stored !== null, () => `${at()} has no rows`);
  check(
    !node.stored || node.stored.numTokens === node.tokenIds.length,
    () => `${at()} is stored as ${node.stored?.numTokens}`,
  );
  for (const rows of [node.slots?.length, node.stored?.numRows])
    check(
      rows === undefined || (node.pruned ? rows < node.tokenIds.length : rows === node.tokenIds.length),
      () => `${at()} has ${rows} rows`,
    );
  let exactFrom = 0;
  for (const { from, to } of node.lossy) {
    check(
      from >= exactFrom && from < to && to <= numRows(node),
      () => `${at()} says of rows ${from} to ${to} that they are lossy`,
    );
    exactFrom = to;
  }
  if (!parent.parent) return;
  check(parent.storedRefs >= node.storedRefs, () => `${at()} is held more than its parent`);
  check(parent.refCount >= node.refCount, () => `${at()} is referenced more than its parent`);
  check(parent.lastUse >= node.lastUse, () => `${at()} was used after its parent`);
  check(!node.slots || parent.slots !== null, () => `${at()} is in the pool and its parent is not`);
}

/** `inFlight`: slots that a batch holds. @throws Error at the first broken invariant. */
export function checkCache(memory: KvMemory, leases: Iterable<Lease>, inFlight: Iterable<number>): void {
  const { slots } = memory.nodes;
  check(slots.numFree + slots.numHeld === memory.pool.numSlots, () => 'free + held is not P');
  const holders = new SlotHolders(memory);
  const references = checkLeases(leases, holders);
  holders.add(inFlight, 'the batch');
  checkNodes(memory, references, holders);
  check(slots.numHeld === holders.size, () => `${slots.numHeld} slots are held, ${holders.size} have a holder`);
  checkBytes(memory);
}

/** Who holds each slot. */
class SlotHolders {
  readonly #memory: KvMemory;
  readonly #holder: (string | undefined)[];
  size = 0;

  constructor(memory: KvMemory) {
    this.#memory = memory;
    this.#holder = new Array<string | undefined>(memory.pool.numSlots);
  }

  add(slots: Iterable<number>, by: string): void {
    const { slots: held } = this.#memory.nodes;
    for (const slot of slots) {
      check(held.isHeld(slot), () => `${by} uses slot ${slot}, which is free`);
      const other = this.#holder[slot];
      check(other === undefined, () => `slot ${slot} belongs to ${by} and to ${other}`);
      this.#holder[slot] = by;
      this.size++;
    }
  }
}

/** How often leases reference each node: in the pool, and partial leases in the store. */
interface References {
  readonly pool: Map<RadixNode, number>;
  readonly store: Map<RadixNode, number>;
}

function checkLeases(leases: Iterable<Lease>, holders: SlotHolders): References {
  const references: References = { pool: new Map(), store: new Map() };
  for (const lease of leases) {
    for (const slots of ownSlots(lease)) holders.add(slots, 'a lease');
    const kind = lease.partial ? 'store' : 'pool';
    for (const node of pathTo(lease.node)) {
      references[kind].set(node, (references[kind].get(node) ?? 0) + 1);
      const isThere = lease.partial ? node.stored !== null : node.slots !== null;
      check(
        isThere,
        () => `a ${lease.partial ? 'partial ' : ''}lease needs a node at ${node.startIndex} in the ${kind}`,
      );
    }
    const countsOwn = !lease.partial || numLeased(lease) === [...ownSlots(lease)].flat().length;
    check(countsOwn, () => 'a partial lease has other rows than it counts');
  }
  return references;
}

function checkNodes(memory: KvMemory, references: References, holders: SlotHolders): void {
  const { tree, nodes } = memory;
  let [evictable, numNodes, numTokens] = [0, 0, 0];
  for (const node of tree.nodes()) {
    checkNode(node);
    checkReferences(memory, node, references);
    checkSlots(memory, node, holders);
    checkBlocks(memory, node);
    numNodes++;
    numTokens += node.tokenIds.length;
    if (node.refCount === 0) evictable += node.slots?.length ?? 0;
  }
  check(references.pool.size === 0 && references.store.size === 0, () => 'a lease uses a node that is not in the tree');
  check(evictable === nodes.numEvictable, () => `${nodes.numEvictable} slots count as evictable, ${evictable} are`);
  check(
    numNodes === tree.numNodes && numTokens === tree.numTokens,
    () => `the tree counts ${tree.numTokens} tokens in ${tree.numNodes} nodes, there are ${numTokens} in ${numNodes}`,
  );
}

/** Removes what it has seen from `references`. */
function checkReferences({ nodes }: KvMemory, node: RadixNode, { pool, store }: References): void {
  const at = () => `node at ${node.startIndex}`;
  const [inPool, inStore] = [pool.get(node) ?? 0, store.get(node) ?? 0];
  check(node.refCount === inPool, () => `${at()}: ref count ${node.refCount}, leases ${inPool}`);
  check(node.storedRefs === inStore, () => `${at()}: stored refs ${node.storedRefs}, partial leases ${inStore}`);
  check(node.storedRefs > 0 || !nodes.isLost(node), () => `${at()} is lost and unused, but not dropped`);
  pool.delete(node);
  store.delete(node);
}

function checkSlots({ pool }: KvMemory, node: RadixNode, holders: SlotHolders): void {
  if (!node.slots) return;
  holders.add(node.slots, `the node at ${node.startIndex}`);
  if (node.pruned !== null) return;
  const wrong = node.slots.find((slot, i) => pool.positions[slot] !== node.startIndex + i);
  check(wrong === undefined, () => `slot ${wrong} stands at the wrong position`);
}

function checkBlocks({ store }: KvMemory, node: RadixNode): void {
  let row = 0;
  for (const { codec, encoded, numRows, part } of node.stored?.blocks ?? []) {
    if (codec && !codec.lossless) {
      const at = () => `the node at ${node.startIndex}`;
      const codecs = codecsOf(lossyWithin(node.lossy, row, row + numRows));
      // A part of a block may have only rows that its codec kept exactly.
      check(
        (codecs.length === 1 && codecs[0] === codec.name) || (codecs.length === 0 && part !== undefined),
        () => `${at()} names ${codecs.join() || 'nothing'} for rows that are coded with ${codec.name}`,
      );
      check(
        !encoded || encoded.length < numRows * store.bytesPerToken,
        () => `${at()} has a block that its codec has made larger`,
      );
    }
    row += numRows;
  }
}

function checkBytes({ tree, store, pool, budget, bytes }: KvMemory): void {
  const stored = new Set<StoredBlock>();
  for (const node of tree.nodes()) for (const block of node.stored?.blocks ?? []) stored.add(wholeOf(block));
  let storeBytes = 0;
  for (const { positions, sketch, encoded, rows } of stored)
    storeBytes += (positions?.byteLength ?? 0) + ((sketch ?? encoded)?.byteLength ?? byteLengthOf(arraysOf(rows())));
  check(storeBytes === store.bytes, () => `store bytes ${store.bytes}, allocated ${storeBytes}`);

  // The runner's own arrays cannot be read here, so their size is taken from the shape.
  let poolBytes = pool.positions.byteLength + pool.stamps.byteLength + pool.numSlots * (pool.shape.runnerBytes ?? 0);
  for (const arrays of [pool.keys, pool.values, pool.keyScales, pool.valueScales]) poolBytes += byteLengthOf(arrays);
  check(poolBytes === pool.bytes, () => `pool bytes ${pool.bytes}, allocated ${poolBytes}`);
  check(
    bytes + budget.borrowed <= budget.maxBytes,
    () => `${bytes} bytes and ${budget.borrowed} borrowed bytes exceed the budget of ${budget.maxBytes}`,
  );
}

function byteLengthOf(arrays: readonly { readonly byteLength: number }[]): number {
  return arrays.reduce((bytes, { byteLength }) => bytes + byteLength, 0);
}
