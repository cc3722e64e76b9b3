/**
 * Nodes that sparse leases hold: their rows are in the spill file, and a sketch of the keys is in the store. Does not
 * decide which nodes a lease holds, or which blocks come back.
 */
import { sketchBytes, sketchKeys } from './keySketch.ts';
import type { KvMemory } from '../../kvMemory.ts';
import type { Lack } from '../../lease.ts';
import type { KvRows } from '../../kvRows.ts';
import { firstToGo } from '../../eviction/eviction.ts';
import { isSketched, sketchedId } from '../../laneIds.ts';
import { endIndex, isUsed, type Match, numRows, type RadixNode, type RadixTree } from '../../radixTree.ts';
import { type Lossy, keptBlocks, plainBlock, type StoredBlock } from '../../storedBlocks.ts';
import { SPILLED_TOKENS } from './sparseBudget.ts';

export class SpilledNodes {
  readonly #memory: KvMemory;
  /** Why the last `hold` or `add` failed. Null: it succeeded. */
  lack: Lack | null = null;

  constructor(memory: KvMemory) {
    this.#memory = memory;
  }

  /**
   * Spills a node's rows and keeps the node until as many calls of `letGo`. The nodes above it must be held already.
   * Returns false when there is no space.
   */
  hold(node: RadixNode): boolean {
    this.lack = null;
    if (node.storedRefs === 0 && !this.#spill(node)) return false;
    node.storedRefs++;
    return true;
  }

  /** Call it for the last node of a path first. */
  letGo(node: RadixNode): void {
    node.storedRefs--;
    this.#memory.nodes.dropIfLost(node);
  }

  /**
   * Adds spilled rows below a held path, and holds them: as a node, or as part of the last node. Null when there is no
   * space. `lossy`: of the new rows.
   */
  add(parent: RadixNode, tokenIds: number[], rows: KvRows, lossy: Lossy): RadixNode | null {
    const { store, tree, pool } = this.#memory;
    this.lack = null;
    const spilled = this.#hasSpace(sketchBytes(pool.shape, rows.numTokens), parent)
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
    if (!this.#hasSpace(this.#bytesSketched(node), node)) return false;
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

  /**
   * Spills blocks. When the file is full, unused spilled nodes are dropped first, but not `node`. Null when that is not
   * enough.
   */
  #toDisk(blocks: () => Iterable<StoredBlock>, node: RadixNode): StoredBlock[] | null {
    const { store, tree, pool } = this.#memory;
    return this.#memory.nodes.withReferences([node], () => {
      for (;;) {
        const spilled = store.spill(blocks(), (rows) => sketchKeys(pool.shape, rows));
        this.lack = spilled ? null : store.spillFailure;
        if (spilled) return spilled;
        // With any other error of the system dropping nodes does not help.
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

  /** Most bytes of memory that a spilled node takes: a sketch of each block, and positions in a pruned node. */
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

  /** Makes space in the store for so many bytes of a node, and for a block that is being spilled. */
  #hasSpace(bytes: number, node: RadixNode): boolean {
    const fits = this.#memory.makeStoreSpace(bytes + SPILLED_TOKENS * this.#memory.store.bytesPerToken, node);
    if (!fits) this.lack = 'memory';
    return fits;
  }
}

/**
 * Whether rows below a node can become part of it: nothing else refers to it. Rows that were computed from a part of
 * their context begin a new node.
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

/** The tree's match, continued by tokens that were computed from a part of their context. */
export function matchSketched(tree: RadixTree, tokenIds: readonly number[], limit: number, from: RadixNode): Match {
  const whole = isInParts(from) ? null : tree.match(tokenIds, limit, from);
  const last = whole?.nodes.at(-1) ?? from;
  // Such tokens follow a whole node only.
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

/** Whether a node was computed from a part of its context. */
export function isInParts({ tokenIds }: RadixNode): boolean {
  return tokenIds.length > 0 && isSketched(tokenIds[0]!);
}
