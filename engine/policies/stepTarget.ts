/**
 * PURE: how long a step may take. A step cannot be interrupted, so its length is the delay of whatever happens next: a
 * keystroke, an abort, the next token of an answer that is being read. Longer steps are more efficient.
 */

/**
 * While a completion waits or runs. Where several wait, a part of what those behind the first have to compute, within bounds:
 * one that comes now waits for them in any case, and all of them end sooner in fewer, longer steps.
 */
const URGENT_MS = 50;
const BACKLOG_SHARE = 0.25;
/** Shortly after typing, when the next completion may come at any moment; while an answer is being read; for idle work. */
const ATTENTIVE_MS = 150;
const TYPING_MS = 5000;
/** When someone has typed lately and may well do so again. */
const NEAR_MS = 300;
const LATELY_MS = 60_000;
const RELAXED_MS = 800;
/** A few tokens of a prompt cost nearly as much as many: where others have to wait for them, they may as well be many, up to this. */
const LATE_MS = 300;
/**
 * A step reads all weights once, however few tokens it has: with less time than this many readings most of it would be
 * reading, and a prompt in small pieces would take several times as long as in large ones.
 */
const LEAST_READINGS = 3;
/** By how much others may lengthen the steps of a completion. */
const BESIDE = 1.4;

export interface Attention {
  /** A completion waits or runs. */
  readonly completion: boolean;
  /** What completions have to compute before they generate, the first one apart. */
  readonly backlogMs: number;
  /** Someone reads along: a chat answer is being generated. */
  readonly reading: boolean;
  /** All there is to do is idle work, which nobody waits for. */
  readonly idleOnly: boolean;
  /** Since the last keystroke; infinite when there was none. */
  readonly msSinceTyping: number;
  /** What reading all weights takes; 0 before it is known. */
  readonly weightsMs: number;
}

export interface StepTarget {
  readonly ms: number;
  /** Of a step in which a prompt goes on by a part that others have to wait for, which comes seldom. */
  readonly lateMs: number;
  /** Prompt tokens that a step has in any case, or now and then beside a completion, so that everything goes on. */
  readonly leastTokens: number;
}

export function stepTarget(attention: Attention): StepTarget {
  const { ms: usual, leastTokens } = wanted(attention);
  const ms = Math.max(usual, LEAST_READINGS * attention.weightsMs);
  // The next completion would wait for it.
  const isTyping = attention.completion || attention.msSinceTyping < TYPING_MS;
  return { ms, lateMs: isTyping ? ms : Math.min(LATE_MS, 2 * ms), leastTokens };
}

function wanted({
  completion,
  backlogMs,
  reading,
  idleOnly,
  msSinceTyping,
}: Attention): Pick<StepTarget, 'ms' | 'leastTokens'> {
  if (completion) return { ms: Math.min(ATTENTIVE_MS, Math.max(URGENT_MS, BACKLOG_SHARE * backlogMs)), leastTokens: 4 };
  if (reading || idleOnly || msSinceTyping < TYPING_MS) return { ms: ATTENTIVE_MS, leastTokens: 4 };
  return { ms: msSinceTyping < LATELY_MS ? NEAR_MS : RELAXED_MS, leastTokens: 16 };
}

/** How long a step of a completion, which takes `ownMs` without them, may become for the sake of others. */
export function besideMs(target: StepTarget, ownMs: number): number {
  return Math.min(target.ms, BESIDE * ownMs);
}
