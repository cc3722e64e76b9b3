/**
 * Runs that sparse leases hold: their rows are out of memory, where a sketch of their keys stays. Which runs those are,
 * and which of
 * their blocks are brought back, is SparseLeases'.
 */
import { sketchBytes, sketchKeys } from './keySketch.ts';
import type { KvMemory } from '../../kvMemory.ts';
import type { Lack } from '../../lease.ts';
import type { KvRows } from '../../kvRows.ts';
import { firstToGo } from '../../eviction/eviction.ts';
import { isSketched, sketchedId } from '../../laneIds.ts';
import { endIndex, isUsed, type Match, numRows, type RadixNode, type RadixTree } from '../../radixTree.ts';
import type { Lossy } from '../lossyRows.ts';
import { SPILLED_TOKENS } from './sparseBudget.ts';
import { keptBlocks, plainBlock, type StoredBlock } from '../../storedBlocks.ts';

export class SpilledNodes {
  readonly #memory: KvMemory;
  /** Why `hold` or `add` has not done so last; null: it has. */
  lack: Lack | null = null;

  constructor(memory: KvMemory) {
    this.#memory = memory;
  }

  /**
   * Keeps a run's rows out of memory, with a sketch in the store, until as many calls of `letGo`; false when there is
   * no room for them. What stands before it is held.
   */
  hold(node: RadixNode): boolean {
    this.lack = null;
    if (node.storedRefs === 0 && !this.#spill(node)) return false;
    node.storedRefs++;
    return true;
  }

  /** Of a path the last run first. */
  letGo(node: RadixNode): void {
    node.storedRefs--;
    this.#memory.nodes.dropIfLost(node);
  }

  /**
   * Adds rows behind a path that is held, to be held, too: as a run or to the last one. Null when there is no room for
   * them. `lossy`: of them.
   */
  add(parent: RadixNode, tokenIds: number[], rows: KvRows, lossy: Lossy): RadixNode | null {
    const { store, tree, pool } = this.#memory;
    this.lack = null;
    const spilled = this.#hasRoom(sketchBytes(pool.shape, rows.numTokens), parent)
      ? this.#toDisk(() => [plainBlock(rows)], parent)
      : null;
    if (!spilled) return null;
    if (growsWith(parent, tokenIds)) {
      tree.extendStored(parent, tokenIds, store.replace(parent.stored, [...parent.stored!.blocks, ...spilled]), lossy);
      return parent;
    }
    const node = tree.insertStored(parent, tokenIds, store.add(spilled), lossy);
    node.storedRefs = 1;
    return node;
  }

  #spill(node: RadixNode): boolean {
    const { store, pool } = this.#memory;
    if (node.stored?.blocks.every(({ sketch }) => sketch)) return true;
    if (!this.#hasRoom(this.#bytesSketched(node), node)) return false;
    const { slots, pruned } = node;
    const fromPool = function* (): Generator<StoredBlock> {
      for (let at = 0; at < slots!.length; at += SPILLED_TOKENS)
        yield plainBlock(pool.read(slots!.subarray(at, at + SPILLED_TOKENS)));
    };
    const kept = (): StoredBlock[] =>
      keptBlocks(pool.shape, pool.read(slots!), pool.positionsOf(slots!), node.tokenIds.length);
    const spilled = this.#toDisk(() => node.stored?.blocks ?? (pruned ? kept() : fromPool()), node);
    if (!spilled) return false;
    node.stored = store.replace(node.stored, spilled);
    return true;
  }

  /** As the store's `spill`; where the disk has no room, runs there that nobody uses go first. This one stays. */
  #toDisk(blocks: () => Iterable<StoredBlock>, node: RadixNode): StoredBlock[] | null {
    const { store, tree, pool } = this.#memory;
    return this.#memory.nodes.withReferences([node], () => {
      for (;;) {
        const spilled = store.spill(blocks(), (rows) => sketchKeys(pool.shape, rows));
        this.lack = spilled ? null : store.spillFailure;
        if (spilled) return spilled;
        // Where nothing can be written, room is no help.
        const victim =
          store.spillFailure?.reason === 'system'
            ? null
            : firstToGo(
                tree.nodes(),
                this.#memory.nodes.order(),
                (each) => !isUsed(each) && each.stored?.blocks.some(({ sketch }) => sketch) === true,
              );
        if (!victim) return null;
        this.#memory.nodes.drop(victim);
      }
    });
  }

  /**
   * That a run takes in memory when its rows are out of it, at most: of each block a sketch, and positions where rows
   * are missing.
   */
  #bytesSketched(node: RadixNode): number {
    const { shape } = this.#memory.pool;
    const n = numRows(node);
    const numBlocks = node.stored?.blocks.length ?? Math.ceil(n / SPILLED_TOKENS);
    return (
      sketchBytes(shape, n) +
      (numBlocks - 1) * sketchBytes(shape, 0) +
      (node.pruned ? n * Int32Array.BYTES_PER_ELEMENT : 0)
    );
  }

  /** Room for so many bytes of a run, and for a block on its way out. */
  #hasRoom(bytes: number, node: RadixNode): boolean {
    const fits = this.#memory.makeRoomInStore(bytes + SPILLED_TOKENS * this.#memory.store.bytesPerToken, node);
    if (!fits) this.lack = 'memory';
    return fits;
  }
}

/**
 * Whether rows behind a run may become part of it: nobody else could tell. What was computed from a part of its context
 * begins a run.
 */
function growsWith(
  { parent, tokenIds, storedRefs, refCount, slots, children, pinned, pruned }: RadixNode,
  more: readonly number[],
): boolean {
  return (
    parent !== null &&
    storedRefs === 1 &&
    refCount === 0 &&
    !slots &&
    children.size === 0 &&
    !pinned &&
    !pruned &&
    isSketched(tokenIds[0]!) === isSketched(more[0]!)
  );
}

/** As the tree's, with what was computed from parts of its context: first what was not, then what was. */
export function matchSketched(tree: RadixTree, tokenIds: readonly number[], limit: number, from: RadixNode): Match {
  const whole = isInParts(from) ? null : tree.match(tokenIds, limit, from);
  const last = whole?.nodes.at(-1) ?? from;
  // It goes on behind a run, not in the middle of one.
  if (whole && whole.nodes.length > 0 && whole.lastLength < last.tokenIds.length) return whole;
  if (endIndex(last) >= limit || last.children.size === 0) return whole ?? { nodes: [], lastLength: 0, numTokens: 0 };
  const rest = tree.match(tokenIds.slice(0, limit).map(sketchedId), limit, last);
  if (!whole || rest.numTokens === 0) return whole && rest.numTokens === 0 ? whole : rest;
  return {
    nodes: [...whole.nodes, ...rest.nodes],
    lastLength: rest.lastLength,
    numTokens: whole.numTokens + rest.numTokens,
  };
}

/** Whether a run was computed from a part of its context. */
export function isInParts({ tokenIds }: RadixNode): boolean {
  return tokenIds.length > 0 && isSketched(tokenIds[0]!);
}
