/** Eviction from the store one node after the other removes the same nodes as looking at all nodes each time. */
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { CachedNodes } from '../../../../engine/kv/cachedNodes.ts';
import { KvPool } from '../../../../engine/kv/pool.ts';
import { type Eviction, firstToGo, Utility } from '../../../../engine/kv/eviction/eviction.ts';
import { Lru } from '../../../support/kv/lru.ts';
import { newKvRows } from '../../../../engine/kv/kvRows.ts';
import { isUsed, pathTo, type RadixNode } from '../../../../engine/kv/radixTree.ts';
import { KvStore } from '../../../../engine/kv/store.ts';
import { plainBlocks } from '../../../../engine/kv/storedBlocks.ts';
import { StoreEviction } from '../../../../engine/kv/eviction/storeEviction.ts';
import { laneIds } from '../../../../engine/kv/laneIds.ts';
import { fakeShape } from '../../../support/engine/fakeRunner.ts';

const SHAPE = fakeShape();
const NOW = 1_000_000;
const newUtility = (): Utility => new Utility(new KvStore(SHAPE).bytesPerToken);
/** Says of no two runs that they are of one kind. */
function withoutKinds(): Eviction {
  const utility = newUtility();
  return {
    worth: (...of) => utility.worth(...of),
    hit: (...of) => utility.hit(...of),
    gone: (...of) => utility.gone(...of),
  };
}
const POLICIES: [string, () => Eviction][] = [
  ['lru', () => new Lru()],
  ['utility', newUtility],
  ['utility without kinds', withoutKinds],
];

interface Run {
  parent: number;
  numTokens: number;
  idleMs: number;
  tag: string;
  isFile: boolean;
  at: 'pool' | 'both' | 'store';
  is: 'used' | 'held' | 'pinned' | '';
}

/** A cache's tree and store, and what has gone from them. */
function newRoom(eviction: Eviction) {
  const gone: string[] = [];
  // The nodes hold no slots of the pool.
  class WatchedNodes extends CachedNodes {
    override drop(node: RadixNode): void {
      for (const child of [...node.children.values()]) this.drop(child);
      gone.push(`${node.startIndex}: ${node.tokenIds}`);
      eviction.gone(node, NOW - node.lastUse);
      this.store.drop(node.stored!);
      this.tree.remove(node);
    }
  }
  const cached = new WatchedNodes({ pool: new KvPool(SHAPE, 0), eviction, clock: () => NOW });
  const { store, tree } = cached;
  const drop = (node: RadixNode): void => cached.drop(node);
  const order = () => cached.order();
  const room = new StoreEviction(cached);
  const nodes: RadixNode[] = [tree.root];
  const add = ({ parent: index, numTokens, idleMs, tag, isFile, at, is }: Run): void => {
    const parent = nodes[index % nodes.length]!;
    const ids = Array.from({ length: numTokens }, (_, i) => 1000 * nodes.length + i);
    const tokenIds = isFile ? laneIds(ids, [[0, numTokens]]) : ids;
    const stored = () => store.add(plainBlocks(SHAPE, newKvRows(SHAPE, numTokens)));
    const inPool = at !== 'store' && (parent === tree.root || parent.slots !== null);
    const node = inPool
      ? tree.insert(parent, tokenIds, new Int32Array(numTokens))
      : tree.insertStored(parent, tokenIds, stored(), []);
    if (inPool && at === 'both') node.stored = stored();
    node.tag = tag;
    // As in real use: a use of a node is a use of its parents, and pins are of prefixes.
    for (const each of pathTo(node)) {
      each.lastUse = Math.max(each.lastUse, NOW - idleMs);
      each.pinned ||= is === 'pinned';
      if (is === 'used' && inPool) each.refCount++;
      if (is === 'held') each.storedRefs++;
    }
    nodes.push(node);
  };
  return { tree, store, gone, drop, order, room, nodes, add };
}

/** What StoreEviction.make is to do, with all reckoned anew for each that goes. */
function makeSlowly(
  { tree, store, order, room, drop }: ReturnType<typeof newRoom>,
  limit: number,
  before: RadixNode | null,
): boolean {
  const isCopy = ({ slots, stored, storedRefs }: RadixNode): boolean =>
    slots !== null && stored !== null && storedRefs === 0;
  if (store.bytes <= limit) return true;
  const may = (node: RadixNode): boolean =>
    node.stored !== null && node.slots === null && !isUsed(node) && (!before || now(node, before) < 0);
  let now = order();
  let left = store.bytes;
  for (const node of tree.nodes()) if (node.stored && (isCopy(node) || may(node))) left -= node.stored.bytes;
  if (left > limit) return false;
  for (const node of tree.nodes()) {
    if (store.bytes <= limit || !isCopy(node)) continue;
    store.drop(node.stored!);
    node.stored = null;
  }
  while (store.bytes > limit) {
    const victim = firstToGo(tree.nodes(), now, may);
    if (!victim) return false;
    room.cut(victim, Math.max(Math.ceil((store.bytes - limit) / store.bytesPerToken), 128));
    drop(victim);
    now = order();
  }
  return true;
}

const runs = fc.array(
  fc.record({
    // Many behind the first: of those all but the youngest have been superseded.
    parent: fc.oneof(fc.nat(), fc.constant(1)),
    numTokens: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 64, max: 400 })),
    // Few ages: then there are equals.
    idleMs: fc.oneof(fc.constantFrom(0, 500, 3000, 100_000), fc.nat(900_000)),
    tag: fc.constantFrom('chat', 'completion', 'idle'),
    isFile: fc.boolean(),
    at: fc.constantFrom('store' as const, 'store' as const, 'pool' as const, 'both' as const),
    is: fc.constantFrom(
      '' as const,
      '' as const,
      '' as const,
      '' as const,
      'pinned' as const,
      'used' as const,
      'held' as const,
    ),
  }),
  { minLength: 1, maxLength: 40 },
);

test.each(POLICIES)(
  'property, %s: the same go in the same order as if all were looked at for each, though what goes is learnt from',
  (_, make) => {
    fc.assert(
      fc.property(
        runs,
        fc.array(fc.record({ of: fc.nat(), found: fc.boolean(), idleMs: fc.nat(900_000) }), { maxLength: 100 }),
        fc.array(fc.record({ left: fc.double({ min: 0, max: 1, noNaN: true }), before: fc.option(fc.nat()) }), {
          minLength: 1,
          maxLength: 3,
        }),
        (all, learnt, limits) => {
          const [fast, slow] = [0, 1].map(() => {
            const eviction = make();
            const made = newRoom(eviction);
            for (const run of all) made.add(run);
            for (const { of, found, idleMs } of learnt) {
              const node = made.nodes[1 + (of % all.length)]!;
              if (found) eviction.hit(node, idleMs);
              else eviction.gone(node, idleMs);
            }
            return made;
          }) as [ReturnType<typeof newRoom>, ReturnType<typeof newRoom>];
          for (const { left, before } of limits) {
            const limit = Math.floor(left * fast.store.bytes);
            const other = ({ tree }: ReturnType<typeof newRoom>): RadixNode | null => {
              const inPool = [...tree.nodes()].filter(({ slots, refCount }) => slots && refCount === 0);
              return before === null ? null : (inPool[before % inPool.length] ?? null);
            };
            expect(fast.room.make(limit, other(fast))).toBe(makeSlowly(slow, limit, other(slow)));
            expect(fast.gone).toEqual(slow.gone);
            expect(fast.store.bytes).toBe(slow.store.bytes);
          }
        },
      ),
      { numRuns: 1000 },
    );
  },
);

test.each(['fast', 'slow'])(
  'when the youngest of those that replaced each other goes, the one before it counts as the present text: %s',
  (how) => {
    const eviction = newUtility();
    const made = newRoom(eviction);
    const run = { numTokens: 100, tag: 'idle', isFile: true, at: 'store', is: '' } as const;
    made.add({ ...run, parent: 0, idleMs: 1000 });
    for (const idleMs of [3000, 1000, 2000]) made.add({ ...run, parent: 1, idleMs });
    made.add({ ...run, parent: 0, idleMs: 2500, tag: 'chat' });
    const [, file, first, second, third, other] = made.nodes.map(({ tokenIds }) => `${tokenIds}`);
    // Here, of all things, what has been replaced is what is found.
    for (let i = 0; i < 100; i++) {
      eviction.gone(made.nodes[3]!, 600_000);
      eviction.hit(made.nodes[2]!, 5000);
      eviction.gone(made.nodes[2]!, 100);
    }
    expect(how === 'fast' ? made.room.make(0, null) : makeSlowly(made, 0, null)).toBe(true);
    expect(made.gone.map((run) => run.split(' ')[1])).toEqual([second, third, first, file, other]);
  },
);

test("evicting many nodes at once computes each node's worth a bounded number of times", () => {
  let numReckoned = 0;
  class Counted extends Utility {
    override worth(...of: Parameters<Utility['worth']>): number {
      numReckoned++;
      return super.worth(...of);
    }
  }
  const n = 2000;
  const { add, room, gone } = newRoom(new Counted(new KvStore(SHAPE).bytesPerToken));
  // Files with what was typed in them.
  for (let i = 0; i < n; i++)
    add({
      parent: i % 4 ? i - (i % 4) + 1 : 0,
      numTokens: 20 + (i % 7),
      idleMs: 137 * ((i * 7919) % n),
      tag: i % 4 ? 'completion' : 'idle',
      isFile: i % 4 === 0,
      at: 'store',
      is: '',
    });
  expect(room.make(0, null)).toBe(true);
  expect(gone).toHaveLength(n);
  expect(numReckoned).toBeLessThan(40 * n);
});

test('the check for superseded nodes is not quadratic in the number of siblings', () => {
  const { add, order, nodes } = newRoom(new Utility(16));
  const run = { numTokens: 100, tag: 'idle', isFile: true, at: 'store', is: '' } as const;
  add({ ...run, parent: 0, idleMs: 0 });
  for (let i = 0; i < 100; i++) add({ ...run, parent: 1, numTokens: 5, idleMs: 1000 * (i + 1) });
  const values = vi.spyOn(nodes[1]!.children, 'values');
  order();
  expect(values.mock.calls.length).toBeLessThan(5);
});
