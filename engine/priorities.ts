/**
 * PURE: who goes first. Two orders: `standing` decides who may take memory from whom and never changes, so that the
 * one at the top always gets through; `level` decides who is served next and rises with waiting, so that no class starves.
 */
import type { Priority } from './protocol.ts';

const CLASSES: readonly Priority[] = ['completion', 'chat', 'summary', 'idle'];
/** Waiting this long without being served lifts a sequence by one class. */
export const AGEING_MS = 2000;

interface Ranked {
  readonly priority: Priority;
  readonly arrivalIndex: number;
  readonly lastServedAt: number;
}

export function classIndex(sequence: Pick<Ranked, 'priority'>): number {
  return CLASSES.indexOf(sequence.priority);
}

/** Negative when `a` stands above `b`: class, then arrival. */
export function byStanding(a: Ranked, b: Ranked): number {
  return classIndex(a) - classIndex(b) || a.arrivalIndex - b.arrivalIndex;
}

/** 0 is a completion just arrived, lower is more urgent. */
export function level(sequence: Ranked, now: number): number {
  return classIndex(sequence) - Math.floor((now - sequence.lastServedAt) / AGEING_MS);
}

/** Order of service. At equal level the one whose first token this step can give goes first, then the one that came first. */
export function byService<S extends Ranked>(now: number, givesToken: (sequence: S) => boolean): (a: S, b: S) => number {
  return (a, b) => level(a, now) - level(b, now) || Number(givesToken(b)) - Number(givesToken(a)) || a.arrivalIndex - b.arrivalIndex;
}
