/**
 * Runs whose stored rows cannot be read back from the disk: they are forgotten, with all that goes on from them, and nothing else is.
 * Any other error goes on its way. Owns which runs those are; where runs lie is KvMemory's.
 */
import { LostRows } from './disk/spillFile.ts';
import { endIndex, isUsed, type RadixTree, type TreeNode } from './radixTree.ts';
import type { KvStore } from './store.ts';

export interface LostRunsOptions {
  readonly tree: RadixTree;
  readonly store: KvStore;
  readonly log: (line: string) => void;
  /** Lets an unused run go with all below it. */
  readonly drop: (node: TreeNode) => void;
}

export class LostRuns {
  readonly #tree: RadixTree;
  readonly #store: KvStore;
  readonly #log: (line: string) => void;
  readonly #drop: (node: TreeNode) => void;
  /** Those in use; they go as soon as they are not. */
  readonly #losses = new Map<TreeNode, LostRows>();

  constructor({ tree, store, log, drop }: LostRunsOptions) {
    this.#tree = tree;
    this.#store = store;
    this.#log = log;
    this.#drop = drop;
  }

  has(node: TreeNode): boolean {
    return this.#losses.has(node);
  }

  /** What `read` makes of a run; null where its stored rows are lost. */
  reading<T>(node: TreeNode, read: () => T): T | null {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof LostRows)) throw error;
      this.lose(node, error);
      return null;
    }
  }

  /**
   * Stored rows of a run could not be read back: it goes with all that goes on from it, at once or when no lease has it any more,
   * and is computed anew by who asks for it next. Where the pool has them, too, only the copy in the store goes.
   */
  lose(node: TreeNode, loss: LostRows): void {
    if (this.#losses.has(node)) return;
    this.#losses.set(node, loss);
    const which = `tokens ${node.startIndex} to ${endIndex(node)} of a long context cannot be read back: ${loss.message}`;
    this.#log(
      node.slots
        ? `A copy of the rows of ${which}. Nothing is lost: they are in memory, too.`
        : `Rows of ${which}. They are forgotten, with what goes on from them, and computed anew when they are asked for.`,
    );
    this.settle(node);
  }

  /** A lease has let go of a run. If stored rows of it are lost, it may go now. */
  settle(node: TreeNode): void {
    if (!this.#losses.has(node) || node.storedRefs > 0) return;
    if (node.slots) {
      this.#losses.delete(node);
      this.#store.drop(node.stored!);
      node.stored = null;
    } else if (!isUsed(node)) this.#drop(node);
  }

  /** A run has gone. */
  gone(node: TreeNode): void {
    this.#losses.delete(node);
  }

  /** As the tree's: which of the two halves has the rows that are lost is not known. */
  split(node: TreeNode, at: number): TreeNode {
    const upper = this.#tree.split(node, at);
    const loss = this.#losses.get(node);
    if (loss) this.#losses.set(upper, loss);
    return upper;
  }
}
