/**
 * Suite `eviction`: replays sessions against the cache alone with too small memory budgets. Compares what each eviction
 * policy finds again for requests and idle reads with the optimum, which knows the future. Runs no model and takes
 * times from the session and costs from a formula, so results do not depend on the machine.
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

/**
 * Tokens that pool and store may hold together, by kind of session.
 * `recorded` is the recorded session: three minutes, mostly with one file.
 * `day` is a day of work drawn from a model of behaviour (see daySession).
 */
export const CEILINGS = {
  recorded: [2048, 3072, 4096, 5120, 6144, 8192, 10_240, 12_288, 16_384],
  day: [8192, 12_288, 16_384, 24_576, 32_768],
};
/** Seeds of the answer lengths for the recorded session. Differences between them are chance. */
const DRAWS = [1, 2, 3, 4];
/** Seeds of the days. The policies were developed with days 1 and 2, so these differ. */
const DAYS = [101, 102, 103];
/** The smallest possible shape: no row is read. */
const SHAPE = { numLayers: 1, kvHeads: 1, headSize: 4, kv: 'int8' as const };
const BYTES = kvBytesPerToken(SHAPE);
/** Share of the memory budget that the pool has. */
const WINDOW_SHARE = 0.5;

/** `belady` knows the future. `all` has no memory budget, so nothing is computed twice. */
const POLICIES = ['lru', 'clock', 'utility', 'belady', 'all'] as const;
type PolicyName = (typeof POLICIES)[number];

export interface EvictionRun {
  kind: 'recorded' | 'day';
  /** Seed of the answer lengths, or of the day. */
  seed: number;
  policy: PolicyName;
  ceiling: number;
  /** Prompt tokens requested, and those of them that were computed. */
  asked: number;
  computed: number;
  /** Cost of the computed tokens, and of all tokens, in tokens at the beginning of a context. */
  cost: number;
  fullCost: number;
  /** Part of the cost that somebody waited for: all of it except idle reads of files. */
  waitCost: number;
  evictions: number;
}

export interface EvictionBench {
  sessions: { kind: 'recorded' | 'day'; seed: number; numRequests: number; numIdle: number; minutes: number }[];
  runs: EvictionRun[];
}

/** Cost of computing tokens [from, to) of a context, in tokens at its beginning. */
function costOf(from: number, to: number): number {
  return (to - from) * (1 + (from + to) / 2 / DOUBLED_AT);
}

function evictionOf(policy: PolicyName, trace: readonly CacheRequest[]): Eviction {
  if (policy === 'belady') return new Future(trace);
  if (policy === 'utility') return new Utility(BYTES);
  return policy === 'clock' ? new Clock() : new Lru();
}

/** Replays the trace against the cache under a policy. */
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
    // A request needs the logits of its last token. Idle work does not.
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
