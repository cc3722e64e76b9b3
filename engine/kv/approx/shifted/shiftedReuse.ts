/**
 * Position-shifted reuse: behind an edit a request takes over rows of the same tokens from an older version of its
 * text, with their keys rotated to the new positions. Approximate, because those rows were computed before the edit;
 * idle prefill computes the exact rows later. Does not decide when rows are taken over; that is up to the scheduler.
 */
import type { KvCache } from '../../kvCache.ts';
import { exactId, shiftedId, isPrefill, isShifted } from '../../laneIds.ts';
import { type Lease, numComputed } from '../../lease.ts';
import type { CachedRequest, RowReuse } from '../interfaces.ts';
import type { KvMemory } from '../../kvMemory.ts';
import { isExact } from '../../storedBlocks.ts';
import { endIndex, isUsed, lengths, pathTo, type RadixNode } from '../../radixTree.ts';
import type { KvRows } from '../../kvRows.ts';

/** Tokens [start, end) of a text are the tokens of the text `source` that stand `by` positions before. */
export interface Shift extends CommonRun {
  /** Cache ids of the older text. */
  readonly source: readonly number[];
}

/** Rotates the keys of rows by so many positions, in place (see ModelRunner). */
export type ShiftKeys = (rows: KvRows, by: number) => void;

/**
 * Tokens behind an edit that are computed all the same, because the edit changes them most. With the built-in model
 * computing more of them, up to 256, does not bring the rest closer to exact.
 */
const COMPUTED = 64;
/** Computing fewer tokens takes no longer than copying them. */
const LEAST = 128;
/** Older versions to be searched, the last used ones. */
const MAX_SOURCES = 4;
/** Tokens copied at once, so that they stay in the processor's cache while they are rotated. */
const PORTION = 256;

/** Decides which requests take over rows, and for which of their tokens. */
export class ShiftedReuse implements RowReuse {
  numTokens = 0;
  readonly #cache: KvCache;
  readonly #runs: ShiftedRuns;
  readonly #shiftKeys: ShiftKeys;
  readonly #plans = new WeakMap<CachedRequest, readonly Shift[]>();

  constructor(cache: KvCache, shiftKeys: ShiftKeys) {
    this.#cache = cache;
    this.#runs = new ShiftedRuns(cache.memory);
    this.#shiftKeys = shiftKeys;
  }

  plan(request: CachedRequest): void {
    // Idle requests compute exact rows.
    if (request.priority === 'idle' || this.#plans.has(request)) return;
    const numMarked = request.cacheIds.findIndex((id) => !isPrefill(exactId(id)));
    // The last token of a prompt is always computed, because its logits are needed.
    const most = request.numPromptTokens - 1;
    const shifts = this.#runs.plan(request.cacheIds, numMarked < 0 ? most : Math.min(numMarked, most));
    this.#plans.set(request, shifts);
    for (const { start, end } of shifts)
      for (let i = start; i < end; i++) request.cacheIds[i] = shiftedId(request.cacheIds[i]!);
  }

  tokensBefore(request: CachedRequest, at: number): number {
    const next = this.#plans.get(request)?.find(({ start }) => start > at);
    return next ? next.start - at : Number.POSITIVE_INFINITY;
  }

  takeOver(request: CachedRequest, lease: Lease): boolean {
    const at = numComputed(lease);
    const shift = this.#plans.get(request)?.find(({ start, end }) => start <= at && at < end);
    if (!shift || request.cacheIds[at] !== shiftedId(request.cacheIds[at]!)) return false;
    const slots = this.#runs.copy(shift, at, this.#shiftKeys);
    if (!slots) {
      // There are no free slots, or the older text is no longer cached: these tokens are computed.
      for (let i = at; i < shift.end; i++) request.cacheIds[i] = exactId(request.cacheIds[i]!);
      return false;
    }
    this.#cache.append(lease, slots);
    this.#cache.commit(lease, request.cacheIds);
    this.numTokens += slots.length;
    return true;
  }

  numStandingIn(cacheIds: readonly number[]): number {
    return this.#runs.standingIn(cacheIds);
  }

  drop(cacheIds: readonly number[]): void {
    this.#runs.drop(cacheIds);
  }
}

/**
 * Finds what a text has in common with an older version of itself, and copies those rows to their new positions. The
 * copies have cache ids of their own (see laneIds), so requests for exact tokens never find them, and they are never
 * copied again. Only tokens of the prefill lane (file blocks) with exact rows are taken over, because the combined loss
 * with a codec is not measured.
 */
export class ShiftedRuns {
  readonly #memory: KvMemory;

  constructor(memory: KvMemory) {
    this.#memory = memory;
  }

  /**
   * What can be taken over for tokens[0 .. limit) behind their cached prefix, in order, without overlap. Changes
   * nothing.
   */
  plan(cacheIds: readonly number[], limit: number): Shift[] {
    const { nodes, lastLength, numTokens } = this.#memory.tree.match(cacheIds, limit);
    const shifts: Shift[] = [];
    let gaps = [{ start: numTokens, end: limit }];
    for (const source of this.#sources(nodes, lastLength)) {
      const left: typeof gaps = [];
      for (const { start, end } of gaps) {
        const found = planShifts(source, cacheIds, start, end).filter((shift) => this.#runs(shift, shift.start));
        shifts.push(...found);
        left.push(
          ...[...found, { start: end }].map((next, i) => ({ start: found[i - 1]?.end ?? start, end: next.start })),
        );
      }
      gaps = left.filter((gap) => gap.end - gap.start > LEAST);
      if (gaps.length === 0) break;
    }
    return shifts.sort((a, b) => a.start - b.start);
  }

  /**
   * Copies tokens [at, shift.end) with rotated keys into new slots, which the caller owns. Null when no slots are free,
   * or the source is dropped or no longer exact.
   */
  copy(shift: Shift, at: number, shiftKeys: ShiftKeys): Int32Array | null {
    const { pool } = this.#memory;
    const from = at - shift.by;
    const to = shift.end - shift.by;
    const nodes = this.#runs(shift, at);
    if (!nodes) return null;
    const { now } = this.#memory.nodes;
    const copied = (node: RadixNode, slots: Int32Array): boolean => {
      const last = Math.min(to, endIndex(node));
      for (let first = Math.max(from, node.startIndex); first < last; first += PORTION) {
        const end = Math.min(last, first + PORTION);
        const rows = this.#memory.read(node, first - node.startIndex, end - node.startIndex);
        if (!rows) return false;
        shiftKeys(rows, shift.by);
        pool.write(slots.subarray(first - from, end - from), rows, 0, first + shift.by);
      }
      node.lastUse = now;
      return true;
    };
    // References keep the source from being evicted while it is read.
    return this.#memory.nodes.withReferences(nodes, () => {
      const slots = this.#memory.allocate(to - from);
      if (!slots || nodes.every((node) => copied(node, slots))) return slots;
      this.#memory.nodes.slots.give(slots);
      return null;
    });
  }

  /** Number of taken-over tokens that continue the cached prefix of these tokens. */
  standingIn(cacheIds: readonly number[]): number {
    const { tree } = this.#memory;
    const { nodes, numTokens } = tree.match(cacheIds);
    // Some of them may have been computed since. Then the others continue a shorter prefix.
    const cuts = [
      numTokens,
      ...nodes
        .filter((node) => endIndex(node) < numTokens && node.children.has(shiftedId(cacheIds[endIndex(node)]!)))
        .map(endIndex),
    ];
    const lengths = cuts.map((cut) => tree.match(cacheIds.map((id, i) => (i < cut ? id : shiftedId(id)))).numTokens);
    return Math.max(...lengths) - numTokens;
  }

  /** Drops unreferenced taken-over tokens where exact ones are cached by now. */
  drop(cacheIds: readonly number[]): void {
    const { nodes, numTokens } = this.#memory.tree.match(cacheIds);
    for (const node of nodes) {
      if (endIndex(node) >= numTokens) break;
      for (const child of [...node.children.values()])
        if (!isUsed(child) && isShifted(child.tokenIds[0]!)) this.#memory.nodes.drop(child);
    }
  }

  /**
   * The nodes of the older text up to the end of a shift. Null where some are dropped, or its tokens from `at` on are
   * not exact.
   */
  #runs({ source, by, end }: Shift, at: number): readonly RadixNode[] | null {
    const { tree } = this.#memory;
    const match = tree.match(source, end - by, tree.root, false);
    if (match.numTokens < end - by) return null;
    for (const [{ lossy, startIndex }, length] of lengths(match))
      if (!isExact(lossy, at - by - startIndex, length)) return null;
    return match.nodes;
  }

  /** Texts that branch off from this path, as far as the prefill lane has computed them; the last used ones. */
  #sources(path: readonly RadixNode[], lastLength: number): number[][] {
    const branches: RadixNode[] = [];
    for (const node of path)
      for (const child of node.children.values()) if (!path.includes(child) && isSource(child)) branches.push(child);
    const last = path.at(-1);
    if (last && lastLength < last.tokenIds.length && isPrefill(last.tokenIds[lastLength]!)) branches.push(last);
    branches.sort((a, b) => b.lastUse - a.lastUse);
    if (path.some(({ pruned }) => pruned)) return [];
    return branches.slice(0, MAX_SOURCES).map((branch) => {
      let deepest = branch;
      for (let next: RadixNode | undefined = branch; next; next = latest([...next.children.values()].filter(isSource)))
        deepest = next;
      const ids = pathTo(deepest).flatMap((node) => node.tokenIds);
      const end = ids.findIndex((id) => !isPrefill(id));
      return end < 0 ? ids : ids.slice(0, end);
    });
  }
}

/** Whether a node has rows for all tokens and belongs to a file. */
function isSource({ tokenIds, pruned }: RadixNode): boolean {
  return !pruned && isPrefill(tokenIds[0]!);
}

function latest(nodes: readonly RadixNode[]): RadixNode | undefined {
  return nodes.reduce<RadixNode | undefined>(
    (best, node) => (!best || node.lastUse > best.lastUse ? node : best),
    undefined,
  );
}

/** Pure: what to take over from one older text for ids[from .. to), in order, without overlap. */
export function planShifts(source: readonly number[], ids: readonly number[], from: number, to: number): Shift[] {
  const shifts: Shift[] = [];
  for (const run of commonRuns(source, ids, from, to)) {
    const start = Math.max(shifts.at(-1)?.end ?? from, run.start + COMPUTED);
    if (run.end - start >= LEAST) shifts.push({ start, end: run.end, by: run.by, source });
  }
  return shifts;
}

/** Tokens [start, end) of a text are tokens [start - by, end - by) of the older one. `by` may be negative. */
export interface CommonRun {
  start: number;
  end: number;
  by: number;
}

/** Tokens of a piece: so many that it rarely occurs twice in a source file. */
const PIECE = 16;
const BASE = 0x01000193;

/** Hashes of the pieces that begin at each index. */
function hashes(ids: readonly number[], from: number, to: number): Int32Array {
  const count = Math.max(0, to - from - PIECE + 1);
  const result = new Int32Array(count);
  let power = 1;
  for (let i = 0; i < PIECE; i++) power = Math.imul(power, BASE);
  let hash = 0;
  for (let i = from; i < to; i++) {
    hash = (Math.imul(hash, BASE) + ids[i]!) | 0;
    if (i - from >= PIECE) hash = (hash - Math.imul(ids[i - PIECE]!, power)) | 0;
    if (i - from >= PIECE - 1) result[i - from - PIECE + 1] = hash;
  }
  return result;
}

/**
 * Pure: runs of `ids` within [from, to) that occur in the older text, in order. Found by pieces that occur once there
 * and extended in both directions. A run may begin before `from`, where the texts are equal too.
 */
export function commonRuns(older: readonly number[], ids: readonly number[], from: number, to: number): CommonRun[] {
  /** Index in the older text; -1: it occurs more than once. */
  const places = new Map<number, number>();
  for (const [i, hash] of hashes(older, 0, older.length).entries()) places.set(hash, places.has(hash) ? -1 : i);
  const wanted = hashes(ids, from, to);
  const runs: CommonRun[] = [];
  for (let at = from; at - from < wanted.length; ) {
    const place = places.get(wanted[at - from]!) ?? -1;
    const by = at - place;
    let end = at;
    if (place >= 0) while (end < to && older[end - by] === ids[end]) end++;
    if (end - at < PIECE) {
      at++;
      continue;
    }
    let start = at;
    while (start > 0 && start > by && older[start - by - 1] === ids[start - 1]) start--;
    runs.push({ start, end, by });
    at = end;
  }
  return runs;
}
