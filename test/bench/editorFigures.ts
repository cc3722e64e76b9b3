/** What a replay of the recorded session comes to: figures from what was typed, what was on the screen and what the extension logged. Pure. */
import type { Replay, Stroke } from '../vscode/editorReplay.ts';

const SILENCES: readonly string[] = [
  'the model has nothing to add here',
  'the confidence of the model is too low here',
];

/** A line of Kvasir's log about one completion. */
export interface LoggedCompletion {
  /** Milliseconds since the epoch. */
  at: number;
  /** Where it came from; undefined where nothing was shown. */
  source?: string;
  reason?: string;
  /** The engine computed it; otherwise it was there already. */
  computed: boolean;
}

interface Pauses {
  /** Pauses of at least the limit. */
  count: number;
  /** Those in which the model had nothing to add that it was sure of, by its own account, and nothing was shown. */
  nothingToAdd: number;
  /** Those in which a completion was on the screen within the limit. */
  shownInTime: number;
  /** Of the pauses in which there was something to show; 0 to 1. */
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
  /** Milliseconds from a key to the next completion on the screen, over all keys that had one before the next key. */
  latencyMs: { count: number; p50: number; p90: number; p99: number };
  typedThrough: {
    /** Keys that the shown completion began with. */
    keys: number;
    withoutRequest: number;
    share: number;
  };
  /** Completions that the engine computed, and those answered without it. */
  computed: number;
  answeredWithout: number;
}

/** Times in the log have no zone: they are this machine's. */
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
  /** Milliseconds from a key to what is shown next; null when nothing is before the next key. */
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
