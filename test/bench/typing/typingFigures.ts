/** What passes of suite `typing` come to: figures of a pass, and each variant's over all of its passes. Pure. */
import { type Figure, figure, quantile, table, withSpread } from '../spread.ts';

/** Something done to the text: a character, Backspace, Tab or an undo. */
export interface TypedKey {
  /** Milliseconds since the pass began. */
  at: number;
  /** When a completion was there, the first one before the next key; left out where none was. */
  shownAt?: number;
  /** What this key, a Tab, has accepted. */
  accepted?: string;
}

export interface Pass {
  variant: string;
  seconds: number;
  keys: TypedKey[];
  /**
   * For completions, to the engine: those that a key waited for when they were sent, how many of these were given up before their end, and those ahead of time (the next
   * completion, where the cursor rests).
   */
  requests: { asked: number; givenUp: number; ahead: number };
  /** That the engine computed for completions: of prompts, not found in the cache, and written; file blocks in idle time are not counted. */
  tokens: { prompt: number; written: number };
  /** In steps of the engine, and processor time of the whole process, in milliseconds; of everything. */
  stepMs: number;
  processorMs: number;
}

const IN_TIME_MS = 300;

const MEASURES = [
  'keys',
  'asked',
  'givenUp',
  'ahead',
  'promptTokens',
  'writtenTokens',
  'stepSeconds',
  'processorSeconds',
  'shown',
  'inTime',
  'p50Ms',
  'p95Ms',
  'accepted',
  'acceptedCharacters',
] as const;
/** `shown` and `inTime`: shares of the keys, 0..1, with a completion before the next key, and within 300 ms; the times are over those that had one. */
type PassFigures = Record<(typeof MEASURES)[number], number>;

export type VariantFigures = { variant: string } & Record<keyof PassFigures, Figure>;

export function passFigures({ keys, requests, tokens, stepMs, processorMs }: Pass): PassFigures {
  const times = keys.flatMap(({ at, shownAt }) => (shownAt === undefined ? [] : [shownAt - at]));
  const accepted = keys.flatMap(({ accepted }) => accepted ?? []);
  const share = (part: number): number => (keys.length === 0 ? 0 : part / keys.length);
  return {
    keys: keys.length,
    ...requests,
    promptTokens: tokens.prompt,
    writtenTokens: tokens.written,
    stepSeconds: stepMs / 1000,
    processorSeconds: processorMs / 1000,
    shown: share(times.length),
    inTime: share(times.filter((ms) => ms <= IN_TIME_MS).length),
    p50Ms: quantile(times, 0.5),
    p95Ms: quantile(times, 0.95),
    accepted: accepted.length,
    acceptedCharacters: accepted.reduce((sum, text) => sum + text.length, 0),
  };
}

/** In the order in which the variants first come. */
export function variantFigures(passes: readonly Pass[]): VariantFigures[] {
  return [...new Set(passes.map(({ variant }) => variant))].map((variant) => {
    const all = passes.filter((pass) => pass.variant === variant).map(passFigures);
    const measures = MEASURES.map((name) => [name, figure(all.map((figures) => figures[name]))]);
    return { variant, ...(Object.fromEntries(measures) as Record<keyof PassFigures, Figure>) };
  });
}

/** Medians over the passes, with the least and the most. */
export function variantTable(variants: readonly VariantFigures[]): string {
  const percent = (value: Figure): string => withSpread(figure(value.samples.map((share) => 100 * share)));
  const head = [
    'policies',
    'keys',
    'requests',
    'given up',
    'ahead of time',
    'tokens of prompts',
    'tokens written',
    'steps, s',
    'processor, s',
    'keys with a completion, %',
    'within 300 ms, %',
    'P50, ms',
    'P95, ms',
    'characters accepted',
  ];
  const rows = variants.map((one) => [
    one.variant,
    ...[
      one.keys,
      one.asked,
      one.givenUp,
      one.ahead,
      one.promptTokens,
      one.writtenTokens,
      one.stepSeconds,
      one.processorSeconds,
    ].map(withSpread),
    percent(one.shown),
    percent(one.inTime),
    ...[one.p50Ms, one.p95Ms, one.acceptedCharacters].map(withSpread),
  ]);
  return table(head, rows);
}
