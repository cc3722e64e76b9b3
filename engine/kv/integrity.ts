/** The invariants of the cache. Throws at the first broken one. Changes nothing. Used by tests after each step. */

import { codecsOf, lossyWithin } from './approx/lossyRows.ts';
import type { KvMemory } from './kvMemory.ts';
import { arraysOf } from './kvRows.ts';
import { type Lease, numLeased, ownSlots } from './lease.ts';
import { endIndex, numRows, pathTo, type RadixNode } from './radixTree.ts';
import { type StoredBlock, wholeOf } from './storedBlocks.ts';

function check(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Error(`KV cache: ${message}`);
}

function checkNode(node: RadixNode): void {
  const at = `run at ${node.startIndex} of ${node.tokenIds.length}`;
  const parent = node.parent!;
  check(node.tokenIds.length > 0, `${at} is empty`);
  check([...parent.children.values()].includes(node), `${at} is not its parent's child`);
  check(node.startIndex === endIndex(parent), `${at} does not follow its parent`);
  check(node.slots !== null || node.stored !== null, `${at} has no rows`);
  check(!node.stored || node.stored.numTokens === node.tokenIds.length, `${at} is stored as ${node.stored?.numTokens}`);
  for (const rows of [node.slots?.length, node.stored?.numRows])
    check(
      rows === undefined || (node.pruned ? rows < node.tokenIds.length : rows === node.tokenIds.length),
      `${at} has ${rows} rows`,
    );
  let exactFrom = 0;
  for (const { from, to } of node.lossy) {
    check(
      from >= exactFrom && from < to && to <= numRows(node),
      `${at} says of rows ${from} to ${to} that they are lossy`,
    );
    exactFrom = to;
  }
  if (!parent.parent) return;
  check(parent.storedRefs >= node.storedRefs, `${at} is held more than its parent`);
  check(parent.refCount >= node.refCount, `${at} is referenced more than its parent`);
  check(parent.lastUse >= node.lastUse, `${at} was used after its parent`);
  check(!node.slots || parent.slots !== null, `${at} is in the pool and its parent is not`);
}

/** `inFlight`: slots that belong to a batch under way. */
export function checkCache(memory: KvMemory, leases: Iterable<Lease>, inFlight: Iterable<number>): void {
  const { pool, store } = memory;
  check(memory.nodes.slots.numFree + memory.nodes.slots.numHeld === pool.numSlots, 'free + held is not P');

  const holder = new Map<number, string>();
  const hold = (slots: Iterable<number>, by: string): void => {
    for (const slot of slots) {
      check(memory.nodes.slots.isHeld(slot), `${by} uses slot ${slot}, which is free`);
      check(!holder.has(slot), `slot ${slot} belongs to ${by} and to ${holder.get(slot)}`);
      holder.set(slot, by);
    }
  };
  const paths = new Map<RadixNode, number>();
  const held = new Map<RadixNode, number>();
  for (const lease of leases) {
    for (const slots of ownSlots(lease)) hold(slots, 'a lease');
    if (lease.partial) {
      for (const node of pathTo(lease.node)) {
        held.set(node, (held.get(node) ?? 0) + 1);
        check(
          node.stored !== null,
          `a partial lease runs through a run at ${node.startIndex} that is not in the store`,
        );
      }
      check(numLeased(lease) === [...ownSlots(lease)].flat().length, 'a partial lease has other rows than it counts');
      continue;
    }
    for (const node of pathTo(lease.node)) {
      paths.set(node, (paths.get(node) ?? 0) + 1);
      check(node.slots !== null, `a lease runs through a run at ${node.startIndex} that is not in the pool`);
    }
  }
  hold(inFlight, 'the batch');

  const stored = new Set<StoredBlock>();
  let evictable = 0;
  let numRuns = 0;
  let numTokens = 0;
  for (const node of memory.tree.nodes()) {
    checkNode(node);
    numRuns++;
    numTokens += node.tokenIds.length;
    const leased = paths.get(node) ?? 0;
    check(node.refCount === leased, `run at ${node.startIndex}: ref count ${node.refCount}, leases ${leased}`);
    paths.delete(node);
    check(
      node.storedRefs === (held.get(node) ?? 0),
      `run at ${node.startIndex}: held ${node.storedRefs} times, partial leases ${held.get(node) ?? 0}`,
    );
    held.delete(node);
    check(
      node.storedRefs > 0 || !memory.nodes.isLost(node),
      `run at ${node.startIndex} is lost, nobody holds it, and it is there`,
    );
    if (node.slots) {
      hold(node.slots, `the run at ${node.startIndex}`);
      for (const [i, slot] of node.slots.entries())
        check(
          node.pruned !== null || pool.positions[slot] === node.startIndex + i,
          `slot ${slot} stands at the wrong position`,
        );
      if (node.refCount === 0) evictable += node.slots.length;
    }
    const at = `the run at ${node.startIndex}`;
    let row = 0;
    for (const block of node.stored?.blocks ?? []) {
      stored.add(wholeOf(block));
      if (block.codec && !block.codec.lossless) {
        const codecs = codecsOf(lossyWithin(node.lossy, row, row + block.numRows));
        // A part may have none but those that its codec keeps as they were.
        check(
          (codecs.length === 1 && codecs[0] === block.codec.name) || (codecs.length === 0 && block.part !== undefined),
          `${at} says of rows that are coded with ${block.codec.name} that they have been through ${codecs.join() || 'nothing'}`,
        );
        check(
          !block.encoded || block.encoded.length < block.numRows * store.bytesPerToken,
          `${at} has a block that its codec has made larger`,
        );
      }
      row += block.numRows;
    }
  }
  check(paths.size === 0 && held.size === 0, 'a lease runs through a run that is not in the tree');
  check(
    holder.size === memory.nodes.slots.numHeld,
    `${memory.nodes.slots.numHeld} slots are held, ${holder.size} have a holder`,
  );
  check(
    evictable === memory.nodes.numEvictable,
    `${memory.nodes.numEvictable} slots count as evictable, ${evictable} are`,
  );
  check(
    numRuns === memory.tree.numRuns && numTokens === memory.tree.numTokens,
    `the tree counts ${memory.tree.numTokens} tokens in ${memory.tree.numRuns} runs, there are ${numTokens} in ${numRuns}`,
  );
  let storeBytes = 0;
  for (const { positions, sketch, encoded, rows } of stored)
    storeBytes +=
      (positions?.byteLength ?? 0) +
      ((sketch ?? encoded)?.byteLength ?? arraysOf(rows()).reduce((bytes, { byteLength }) => bytes + byteLength, 0));
  check(storeBytes === store.bytes, `store bytes ${store.bytes}, allocated ${storeBytes}`);

  // The runner's own arrays are not in reach here: they are what the shape says.
  let poolBytes = pool.positions.byteLength + pool.stamps.byteLength + pool.numSlots * (pool.shape.runnerBytes ?? 0);
  for (const arrays of [pool.keys, pool.values, pool.keyScales, pool.valueScales])
    for (const array of arrays) poolBytes += array.byteLength;
  check(poolBytes === pool.bytes, `pool bytes ${pool.bytes}, allocated ${poolBytes}`);
  const { borrowed } = memory.budget;
  check(
    memory.bytes + borrowed <= memory.budget.maxBytes,
    `${memory.bytes} bytes and ${borrowed} that are borrowed exceed the budget of ${memory.budget.maxBytes}`,
  );
}
