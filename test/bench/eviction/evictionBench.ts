/**
 * Suite `eviction`: sessions against the cache by itself, under ceilings that do not hold them: how much each eviction policy finds
 * again of what requests and the idle reading of files ask for, and how much of that could be had by one who knows what comes. Two
 * kinds of session: the recorded one, three minutes with one file in front; and days of work drawn from a model of behaviour (see
 * daySession), whose seeds are others than those with which the policies were made. No model runs, so nothing depends on the
 * machine: time is the session's, and what computing costs is reckoned.
 */
import { Clock } from './clock.ts';
import { type Eviction, DOUBLED_AT, Utility } from '../../../engine/kv/eviction/eviction.ts';
import { Lru } from '../../support/kv/lru.ts';
import { KvCache } from '../../../engine/kv/kvCache.ts';
import { kvBytesPerToken, newKvRows } from '../../../engine/kv/kvRows.ts';
import { numComputed } from '../../../engine/kv/lease.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import { readSession } from '../../support/session/session.ts';
import { sessionArrivals } from '../sessionArrivals.ts';
import { type CacheRequest, cacheTrace } from './cacheTrace.ts';
import { daySession } from './daySession.ts';
import { evictionCharts, evictionReport } from './evictionReport.ts';
import { Future } from './future.ts';

/** Of pool and store together, in tokens. */
export const CEILINGS = {
  recorded: [2048, 3072, 4096, 5120, 6144, 8192, 10_240, 12_288, 16_384],
  day: [8192, 12_288, 16_384, 24_576, 32_768],
};
/** Draws of how long the answers are, for the recorded session: what differs between them is chance. */
const DRAWS = [1, 2, 3, 4];
/** Days on which nothing was tried out: those were 1 and 2. */
const DAYS = [101, 102, 103];
/** As small as can be: no row is looked at. */
const SHAPE = { numLayers: 1, kvHeads: 1, headSize: 4, kv: 'int8' as const };
const BYTES = kvBytesPerToken(SHAPE);
/** The pool has half of the ceiling. */
const WINDOW_SHARE = 0.5;

/** `belady` knows what comes, `all` has no ceiling: nothing is ever computed twice. */
const POLICIES = ['lru', 'clock', 'utility', 'belady', 'all'] as const;
type PolicyName = (typeof POLICIES)[number];

export interface EvictionRun {
  kind: 'recorded' | 'day';
  /** Of the draw, or of the day. */
  seed: number;
  policy: PolicyName;
  ceiling: number;
  /** Prompt tokens asked for, and those of them that were computed. */
  asked: number;
  computed: number;
  /** What computing these cost, in tokens at the beginning of a context; what all would have cost. */
  cost: number;
  fullCost: number;
  /** The part of the cost for which somebody waited: all but the idle reading of files. */
  waitCost: number;
  evictions: number;
}

export interface EvictionBench {
  sessions: { kind: 'recorded' | 'day'; seed: number; numRequests: number; numIdle: number; minutes: number }[];
  runs: EvictionRun[];
}

/** Of tokens [from, to) of a context. */
function costOf(from: number, to: number): number {
  return (to - from) * (1 + (from + to) / 2 / DOUBLED_AT);
}

function evictionOf(policy: PolicyName, trace: readonly CacheRequest[]): Eviction {
  if (policy === 'belady') return new Future(trace);
  if (policy === 'utility') return new Utility(BYTES);
  return policy === 'clock' ? new Clock() : new Lru();
}

/** Of `EvictionRun` what the cache has to do with. */
export function replayCache(
  trace: readonly CacheRequest[],
  policy: PolicyName,
  ceiling: number,
): Omit<EvictionRun, 'kind' | 'seed'> {
  const clock = { now: 0 };
  const pool = new KvPool(SHAPE, 0);
  const maxTokens = policy === 'all' ? 2 ** 26 : ceiling;
  const cache = new KvCache({
    pool,
    maxBytes: maxTokens * BYTES,
    softSlots: Math.floor(ceiling * WINDOW_SHARE),
    clock: () => clock.now,
    eviction: evictionOf(policy, trace),
  });
  const run = { policy, ceiling, asked: 0, computed: 0, cost: 0, fullCost: 0, waitCost: 0, evictions: 0 };
  for (const { atMs, priority, ids, numPrompt } of trace) {
    clock.now = atMs;
    if (ids.length > ceiling) continue;
    const lease = cache.open(priority);
    // The last token's logits are wanted; idle work wants none.
    cache.advance(lease, ids, priority === 'idle' ? numPrompt : numPrompt - 1);
    const at = numComputed(lease);
    run.asked += numPrompt;
    run.computed += numPrompt - at;
    run.cost += costOf(at, numPrompt);
    run.fullCost += costOf(0, numPrompt);
    if (priority !== 'idle') run.waitCost += costOf(at, numPrompt);
    const slots = cache.memory.allocate(ids.length - at);
    if (slots) {
      pool.write(slots, newKvRows(SHAPE, slots.length), 0, at);
      cache.append(lease, slots);
      cache.commit(lease, ids);
    }
    cache.release(lease);
  }
  run.evictions = cache.memory.nodes.events.evictions;
  return run;
}

export async function evictionSuite(): Promise<{
  result: EvictionBench;
  report: string;
  charts: { [file: string]: string };
}> {
  const recorded = readSession();
  const result: EvictionBench = { sessions: [], runs: [] };
  const replayAll = async (kind: 'recorded' | 'day', seed: number): Promise<void> => {
    const trace = await cacheTrace(kind === 'day' ? daySession(recorded, seed) : sessionArrivals(recorded), seed);
    const numIdle = trace.filter(({ priority }) => priority === 'idle').length;
    result.sessions.push({
      kind,
      seed,
      numRequests: trace.length - numIdle,
      numIdle,
      minutes: (trace.at(-1)!.atMs - trace[0]!.atMs) / 60_000,
    });
    for (const ceiling of CEILINGS[kind])
      for (const policy of POLICIES) result.runs.push({ kind, seed, ...replayCache(trace, policy, ceiling) });
    console.error(`${kind} ${seed}: ${trace.length} requests`);
  };
  for (const seed of DRAWS) await replayAll('recorded', seed);
  for (const seed of DAYS) await replayAll('day', seed);
  return { result, report: evictionReport(result), charts: evictionCharts(result) };
}
