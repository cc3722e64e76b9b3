/** The window slots of a lease's rows, in order, and the pages that they are in: from step to step only what has been added is gathered. */
import type { KvMemory } from './kvMemory.ts';
import { type Lease, numLeased } from './lease.ts';

/** Valid until the lease changes or slots move (see SlotPlaces). */
export function slotsOf({ places }: KvMemory, lease: Lease): Int32Array {
  const length = numLeased(lease);
  const { layout } = places;
  if (lease.layout !== layout) lease.numKnown = 0;
  lease.layout = layout;
  if (lease.numKnown < lease.numPaged) {
    lease.pages.clear();
    lease.numPaged = 0;
  }
  if (lease.slots.length < length) {
    const grown = new Int32Array(Math.max(2 * lease.slots.length, length + 64));
    grown.set(lease.slots);
    lease.slots = grown;
  }
  const known = lease.numKnown;
  const end = length - lease.tail.length;
  if (lease.sparse) lease.slots.set(lease.sparse.resident.flatMap(({ slots }) => slots));
  for (let { node } = lease, to = lease.sparse ? 0 : end; node.parent && to > known; node = node.parent) {
    to -= node.slots!.length;
    lease.slots.set(node.slots!, to);
  }
  for (let i = Math.max(known, end); i < length; i++) lease.slots[i] = lease.tail[i - end]!;
  lease.numKnown = length;
  return lease.slots.subarray(0, length);
}

/** Adds the pages of the window that a lease's computed tokens lie in; returns how many those are. */
export function addPages(memory: KvMemory, lease: Lease, pages: Set<number>): number {
  const slots = slotsOf(memory, lease);
  memory.window.addPages(slots.subarray(lease.numPaged), lease.pages);
  lease.numPaged = slots.length;
  for (const page of lease.pages) pages.add(page);
  return lease.pages.size;
}
