/** Computes the figures of a pass in the suite `typing`, and the figures of each variant over all its passes. Pure. */
import { type Figure, figure, quantile, table, withSpread } from '../spread.ts';

/** A change of the text: a character, Backspace, Tab or an undo. */
export interface TypedKey {
  /** Milliseconds since the pass began. */
  at: number;
  /** When the first completion before the next key was there. Absent if there was none. */
  shownAt?: number;
  /** Text that this key, a Tab, has accepted. */
  accepted?: string;
}

export interface Pass {
  variant: string;
  seconds: number;
  keys: TypedKey[];
  /**
   * Completion requests to the engine. `asked`: a key waited for them when they were sent. `givenUp`: those of them
   * that were aborted before their end. `ahead`: requests ahead of time, for the next completion or where the cursor
   * rests.
   */
  requests: { asked: number; givenUp: number; ahead: number };
  /**
   * Tokens that the engine computed for completions: prompt tokens that were not in the cache, and written tokens. File
   * blocks of idle time are not counted.
   */
  tokens: { prompt: number; written: number };
  /**
   * Milliseconds in steps of the engine, and processor time of the whole process in milliseconds. Both cover all work.
   */
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
/**
 * `shown` and `inTime`: shares of the keys, 0 to 1, that had a completion before the next key, and within 300 ms. The
 * times cover only keys that had a completion.
 */
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

/** In the order in which the variants first occur. */
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
