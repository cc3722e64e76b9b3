/**
 * `node test/bench/eviction/returns.ts` prints the time until a return to a file, on the days that docs/eviction.md
 * reports (see daySession). The ages in the ladder of `kvasir.cache.codec: auto` are based on it.
 */
import { readSession } from '../../support/session/session.ts';
import { daySession } from './daySession.ts';

const MINUTE = 60_000;
const DAYS = [101, 102, 103];
/** Limits between the age groups, in minutes. */
const EDGES = [5, 10, 30, 60];
/** An earlier return belongs to the same visit, in minutes. */
const LEAST = 1;

/** For each age group: its share of all returns, and its returns per ten minutes that a file is of that age. */
export function returns(days: readonly number[]): { fromMinutes: number; share: number; perTenMinutes: number }[] {
  const ages = [0, ...EDGES].map((from, i) => ({
    from,
    to: EDGES[i] ?? Number.POSITIVE_INFINITY,
    found: 0,
    minutes: 0,
  }));
  const add = (ms: number, found: boolean): void => {
    const gap = ms / MINUTE;
    if (gap < LEAST) return;
    for (const age of ages) {
      age.minutes += Math.max(0, Math.min(gap, age.to) - age.from);
      if (found && gap >= age.from && gap < age.to) age.found++;
    }
  };
  for (const day of days) {
    const last = new Map<string, number>();
    let now = 0;
    for (const { atMs, message } of daySession(readSession(), day)) {
      now = atMs;
      if (message.type !== 'generate' || !('docId' in message.task || 'docIds' in message.task)) continue;
      for (const docId of 'docIds' in message.task ? message.task.docIds : [message.task.docId]) {
        if (last.has(docId)) add(now - last.get(docId)!, true);
        last.set(docId, now);
      }
    }
    // Files without a further return.
    for (const at of last.values()) add(now - at, false);
  }
  const all = ages.reduce((sum, { found }) => sum + found, 0);
  return ages.map(({ from, found, minutes }) => ({
    fromMinutes: from,
    share: found / all,
    perTenMinutes: (10 * found) / minutes,
  }));
}

if (process.argv[1] === import.meta.filename) console.table(returns(DAYS));
