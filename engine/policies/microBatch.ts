/**
 * PURE: whether a step waits for requests that are about to arrive. One that comes just after a step has begun waits for
 * all of it, and reads the weights once more; requests of a burst (the files of a folder, an answer and its title) come
 * within milliseconds. So when nothing else is running, a step waits for the next of a burst, if bursts are what has been
 * seen lately and the step is long enough to be worth it. Never while there is a completion.
 */

/** Arrivals further apart than this are no burst; no step waits longer. */
export const MOST_WAIT_MS = 8;
/** Beginnings of bursts, or of single requests, that are remembered. */
const REMEMBERED = 8;
/** Bursts that must have been seen. */
const LEAST_BURSTS = 2;
/** What waiting must save at least, in proportion to what it costs. */
const WORTH = 4;

/** What followed the last arrivals at an engine without work. */
export interface Arrivals {
  /** ms from the first to the second arrival; infinite when none came in time. Oldest first. */
  readonly gaps: readonly number[];
  readonly lastAt: number;
  /** Of the burst that may be under way. */
  readonly firstAt: number;
}

export const NO_ARRIVALS: Arrivals = { gaps: [], lastAt: Number.NEGATIVE_INFINITY, firstAt: Number.NEGATIVE_INFINITY };

/** `wasIdle`: the engine had nothing to do. */
export function arrived(arrivals: Arrivals, now: number, wasIdle: boolean): Arrivals {
  const { gaps, firstAt } = arrivals;
  if (now - firstAt <= MOST_WAIT_MS) {
    const isSecond = gaps.at(-1) === Number.POSITIVE_INFINITY;
    return { gaps: isSecond ? [...gaps.slice(0, -1), now - firstAt] : gaps, lastAt: now, firstAt };
  }
  if (!wasIdle) return { ...arrivals, lastAt: now };
  return { gaps: [...gaps, Number.POSITIVE_INFINITY].slice(-REMEMBERED), lastAt: now, firstAt: now };
}

export interface Pending {
  /** A completion waits or runs. */
  readonly completion: boolean;
  /** Something has been computed already of what there is to do. */
  readonly started: boolean;
  /** What the step is predicted to take. */
  readonly stepMs: number;
}

/** ms that the step should wait from `now` on; 0: begin. Ask again when something has arrived. */
export function waitMs(
  { gaps, lastAt, firstAt }: Arrivals,
  now: number,
  { completion, started, stepMs }: Pending,
): number {
  if (completion || started) return 0;
  // The burst that may be under way says nothing of itself.
  const known = gaps.slice(0, -1);
  const followed = known.filter((gap) => gap <= MOST_WAIT_MS);
  if (followed.length < LEAST_BURSTS || followed.length * 2 <= known.length) return 0;
  const patience = Math.min(MOST_WAIT_MS, 1.5 * Math.max(...followed));
  // Who is spared waits half a step on average.
  if ((followed.length / known.length) * (stepMs / 2) < WORTH * patience) return 0;
  return Math.max(0, Math.min(lastAt + patience, firstAt + MOST_WAIT_MS) - now);
}
