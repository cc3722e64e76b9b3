/**
 * Computes the figures of a replay of the recorded session from the keys, the shown completions and the extension's
 * log. Pure.
 */
import type { Replay, Stroke } from '../vscode/editorReplay.ts';

const SILENCES: readonly string[] = [
  'the model has nothing to add here',
  'the confidence of the model is too low here',
];

/** A line about one completion in Kvasir's log. */
export interface LoggedCompletion {
  /** Milliseconds since the epoch. */
  at: number;
  /** Source of the completion; undefined if nothing was shown. */
  source?: string;
  reason?: string;
  /** Whether the engine computed the completion. Otherwise it already existed. */
  computed: boolean;
}

interface Pauses {
  /** Number of pauses that last at least the limit. */
  count: number;
  /**
   * Number of pauses in which nothing was shown because the model reported that it had nothing to add with confidence.
   */
  nothingToAdd: number;
  /** Number of pauses in which a completion was on the screen within the limit. */
  shownInTime: number;
  /** Share of pauses with a completion in time, of the pauses in which there was something to show; 0 to 1. */
  share: number;
}

export interface EditorFigures {
  seconds: number;
  strokes: number;
  accepted: number;
  acceptedCharacters: number;
  wrong: number;
  /** By limit in milliseconds. */
  within: Record<string, Pauses>;
  /**
   * Milliseconds from a key to the next completion on the screen. Counts only keys that had a completion before the
   * next key.
   */
  latencyMs: { count: number; p50: number; p90: number; p99: number };
  typedThrough: {
    /** Number of keys that matched the start of the shown completion. */
    keys: number;
    withoutRequest: number;
    share: number;
  };
  /** Number of completions that the engine computed, and number of those answered without the engine. */
  computed: number;
  answeredWithout: number;
}

/** Parses the log. Its times have no zone, so they are in the time zone of this machine. */
export function readLog(text: string): LoggedCompletion[] {
  return text.split('\n').flatMap((line) => {
    const [, date, , rest] = /^(\S+ \S+) \[(\w+)\] completion at \S+ \(\w+\): (.*)$/.exec(line) ?? [];
    if (!date || !rest) return [];
    const [, source] = / from ([a-z ,]+?)(?:, one of|;)/.exec(rest) ?? [];
    const [, reason] = /^nothing shown: ([^;(]*)/.exec(rest) ?? [];
    return [
      {
        at: new Date(date.replace(' ', 'T')).getTime(),
        ...(source && { source }),
        ...(reason && { reason: reason.trim() }),
        computed: /^engine/.test(source ?? '') || (reason !== undefined && / tokens reused/.test(rest)),
      },
    ];
  });
}

export function editorFigures(
  { startedAt, endedAt, strokes, wrong, recording }: Replay,
  log: readonly LoggedCompletion[],
  limits: readonly number[] = [300, 750],
): EditorFigures {
  const { shown } = recording;
  const until = (stroke: Stroke): number => stroke.at + (stroke.pauseMs ?? 0);
  /** Milliseconds from a key to the next shown completion; null if none appears before the next key. */
  const latency = (stroke: Stroke): number | null => {
    const next = shown.find(({ at, text }) => at > stroke.at && at <= until(stroke) && text !== '');
    return next ? next.at - stroke.at : null;
  };
  const logged = (stroke: Stroke) => log.filter(({ at }) => at >= stroke.at - 1 && at < until(stroke) - 1);
  const timed = strokes.filter((stroke) => stroke.pauseMs !== undefined);

  const within = (limit: number): Pauses => {
    const long = timed.filter((stroke) => (stroke.pauseMs ?? 0) >= limit);
    const shownInTime = long.filter((stroke) => (latency(stroke) ?? Number.POSITIVE_INFINITY) <= limit).length;
    const nothingToAdd = long.filter(
      (stroke) =>
        latency(stroke) === null &&
        logged(stroke).some(({ reason }) => reason !== undefined && SILENCES.includes(reason)),
    ).length;
    return { count: long.length, nothingToAdd, shownInTime, share: ratio(shownInTime, long.length - nothingToAdd) };
  };

  const through = timed.filter((stroke) => {
    const before = shown.findLast(({ at }) => at < stroke.at)?.text ?? '';
    return before !== '' && !stroke.accepted && before.startsWith(stroke.key);
  });
  const withoutRequest = through.filter((stroke) => !logged(stroke).some(({ computed }) => computed)).length;
  const latencies = timed
    .map(latency)
    .filter((ms) => ms !== null)
    .sort((a, b) => a - b);
  const inTime = log.filter(({ at }) => at >= startedAt && at <= endedAt);
  return {
    seconds: (endedAt - startedAt) / 1000,
    strokes: strokes.length,
    accepted: strokes.filter(({ accepted }) => accepted).length,
    acceptedCharacters: strokes.reduce((sum, { accepted }) => sum + (accepted?.length ?? 0), 0),
    wrong: wrong.length,
    within: Object.fromEntries(limits.map((limit) => [limit, within(limit)])),
    latencyMs: {
      count: latencies.length,
      p50: percentile(latencies, 0.5),
      p90: percentile(latencies, 0.9),
      p99: percentile(latencies, 0.99),
    },
    typedThrough: { keys: through.length, withoutRequest, share: ratio(withoutRequest, through.length) },
    computed: inTime.filter(({ computed }) => computed).length,
    answeredWithout: inTime.filter(({ source, computed }) => source !== undefined && !computed).length,
  };
}

const ratio = (part: number, whole: number): number => (whole === 0 ? 0 : part / whole);

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
