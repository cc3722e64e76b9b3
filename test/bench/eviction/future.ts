/**
 * Evicts by Belady's rule: first the run with the latest next use. It knows all requests, so it shows the possible gain
 * and cannot be used in the product. It is optimal for runs of one size and cost. Runs here are evicted in pieces of a
 * few dozen tokens, which is close enough. A token's cost depends on its position, which the rule ignores.
 */
import type { Eviction } from '../../../engine/kv/eviction/eviction.ts';
import { endIndex, pathTo, type RadixNode } from '../../../engine/kv/radixTree.ts';
import type { CacheRequest } from './cacheTrace.ts';

/** A run of tokens that the same requests ask for. */
interface Asked {
  ids: readonly number[];
  from: number;
  to: number;
  /** Times of the requests, in order. */
  times: number[];
  readonly children: Map<number, Asked>;
}

export class Future implements Eviction {
  readonly #root: Asked = { ids: [], from: 0, to: 0, times: [], children: new Map() };
  /** Times of each run, with the end of the run when they were looked up. */
  readonly #known = new WeakMap<RadixNode, { end: number; times: readonly number[] }>();

  constructor(trace: readonly CacheRequest[]) {
    for (const { atMs, ids, numPrompt } of trace) this.#add(ids, numPrompt, atMs);
  }

  worth(node: RadixNode, now: number): number {
    const end = endIndex(node);
    let known = this.#known.get(node);
    if (known?.end !== end) {
      known = { end, times: this.#timesOf(node) };
      this.#known.set(node, known);
    }
    return -next(known.times, now);
  }

  hit(): void {}

  gone(): void {}

  #add(ids: readonly number[], numTokens: number, atMs: number): void {
    let at = this.#root;
    while (at.to < numTokens) {
      const child = at.children.get(ids[at.to]!);
      if (!child) {
        at.children.set(ids[at.to]!, { ids, from: at.to, to: numTokens, times: [atMs], children: new Map() });
        return;
      }
      let same = child.from + 1;
      while (same < Math.min(child.to, numTokens) && child.ids[same] === ids[same]) same++;
      if (same < child.to) {
        const upper: Asked = {
          ...child,
          to: same,
          times: [...child.times],
          children: new Map([[child.ids[same]!, child]]),
        };
        at.children.set(ids[at.to]!, upper);
        child.from = same;
        at = upper;
      } else at = child;
      at.times.push(atMs);
    }
  }

  /** Times of the requests that ask for the last token of a run. */
  #timesOf(node: RadixNode): readonly number[] {
    const ids = pathTo(node).flatMap(({ tokenIds }) => tokenIds);
    let at = this.#root;
    while (at.to < ids.length) {
      const child = at.children.get(ids[at.to]!);
      if (!child) return [];
      for (let i = child.from + 1; i < Math.min(child.to, ids.length); i++) if (child.ids[i] !== ids[i]) return [];
      at = child;
    }
    return at.times;
  }
}

/** The first time after `now`, or infinity. */
function next(times: readonly number[], now: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! > now) high = middle;
    else low = middle + 1;
  }
  return times[low] ?? Number.POSITIVE_INFINITY;
}
