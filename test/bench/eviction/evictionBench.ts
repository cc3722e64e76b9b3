/**
 * Suite `eviction`: the recorded session against the cache by itself, under ceilings that do not hold it: how much each eviction
 * policy finds again of what its requests and the idle reading of files ask for. No model runs, so nothing depends on the machine:
 * time is the session's, and what computing costs is reckoned (see Utility).
 */
import { Clock } from '../../../engine/cache/eviction/clock.ts';
import type { Eviction } from '../../../engine/cache/eviction/eviction.ts';
import { Lru } from '../../../engine/cache/eviction/lru.ts';
import { Utility } from '../../../engine/cache/eviction/utility.ts';
import { KvCache } from '../../../engine/cache/kvCache.ts';
import { kvBytesPerToken, newKvRows } from '../../../engine/cache/kvRows.ts';
import { numComputed } from '../../../engine/cache/lease.ts';
import { KvWindow } from '../../../engine/cache/window.ts';
import { readSession } from '../session.ts';
import { short, table } from '../spread.ts';
import { type CacheRequest, cacheTrace } from './cacheTrace.ts';

/** Of window and store together, in tokens. */
const CEILINGS = [2048, 3072, 4096, 6144, 8192, 12_288, 16_384];
/** As small as can be: no row is looked at. */
const SHAPE = { numLayers: 1, kvHeads: 1, headSize: 4, kv: 'int8' as const };
const BYTES = kvBytesPerToken(SHAPE);
/** The window has half of it. */
const WINDOW_SHARE = 0.5;
/** As Utility's. */
const DOUBLED_AT = 3700;

const POLICIES: { [name: string]: () => Eviction } = { lru: () => new Lru(), clock: () => new Clock(), utility: () => new Utility(BYTES) };

export interface EvictionRun {
  policy: string;
  ceiling: number;
  /** Prompt tokens asked for, and those of them that were found. */
  asked: number;
  found: number;
  /** What computing the others cost, in tokens at the beginning of a context; and of all of them. */
  cost: number;
  fullCost: number;
  evictions: number;
}

export interface EvictionBench {
  numRequests: number;
  numIdle: number;
  minutes: number;
  runs: EvictionRun[];
}

/** Of tokens [from, to) of a context. */
function costOf(from: number, to: number): number {
  return (to - from) * (1 + (from + to) / 2 / DOUBLED_AT);
}

export function replayCache(trace: readonly CacheRequest[], policy: string, ceiling: number): EvictionRun {
  const clock = { now: 0 };
  const window = new KvWindow(SHAPE, 0);
  const cache = new KvCache({ window, maxBytes: ceiling * BYTES, softSlots: Math.floor(ceiling * WINDOW_SHARE), clock: () => clock.now, eviction: POLICIES[policy]!() });
  const run: EvictionRun = { policy, ceiling, asked: 0, found: 0, cost: 0, fullCost: 0, evictions: 0 };
  for (const { atMs, priority, ids, numPrompt } of trace) {
    clock.now = atMs;
    if (ids.length > ceiling) continue;
    const lease = cache.open(priority);
    // The last token's logits are wanted; idle work wants none.
    cache.advance(lease, ids, priority === 'idle' ? numPrompt : numPrompt - 1);
    const at = numComputed(lease);
    run.asked += numPrompt;
    run.found += at;
    run.cost += costOf(at, numPrompt);
    run.fullCost += costOf(0, numPrompt);
    const slots = cache.allocate(ids.length - at);
    if (slots) {
      window.write(slots, newKvRows(SHAPE, slots.length), 0, at);
      cache.append(lease, slots);
      cache.commit(lease, ids);
    }
    cache.release(lease);
  }
  run.evictions = cache.events.evictions;
  return run;
}

export async function evictionSuite(): Promise<{ result: EvictionBench; report: string }> {
  const trace = await cacheTrace(readSession());
  const runs = CEILINGS.flatMap((ceiling) => Object.keys(POLICIES).map((policy) => replayCache(trace, policy, ceiling)));
  const numIdle = trace.filter(({ priority }) => priority === 'idle').length;
  const result = { numRequests: trace.length - numIdle, numIdle, minutes: (trace.at(-1)!.atMs - trace[0]!.atMs) / 60_000, runs };
  return { result, report: evictionReport(result) };
}

export function evictionReport({ numRequests, numIdle, minutes, runs }: EvictionBench): string {
  const names = Object.keys(POLICIES);
  const rows = CEILINGS.map((ceiling) => {
    const of = names.map((policy) => runs.find((run) => run.policy === policy && run.ceiling === ceiling)!);
    const lru = of[0]!;
    return [ceiling, ...of.map(({ found, asked }) => `${((100 * found) / asked).toFixed(1)}%`), ...of.map(({ cost, fullCost }) => `${((100 * cost) / fullCost).toFixed(1)}%`), `${short(lru.cost / of.at(-1)!.cost)}x`];
  });
  return [
    `## Eviction: the recorded session over the cache alone, ${numRequests} requests and ${numIdle} readings of files in ${minutes.toFixed(0)} minutes`,
    'Share of the prompt tokens that were found, and what computing the others cost, of what all would have cost.',
    table(['ceiling, tokens', ...names.map((name) => `found, ${name}`), ...names.map((name) => `cost, ${name}`), 'cost of LRU over utility'], rows),
  ].join('\n\n');
}
