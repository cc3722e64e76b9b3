/** Small text helpers of the cache panel, and numbers in its language. */
import type { CacheStrings } from '../monitor/cacheMessages.ts';
import { numbersIn } from '../format.ts';

/** Separator for parts of a line that may break: no line starts with the dot. */
export const DOT = '\u00a0· ';

/** Fills `{0}` and so on. */
export function fillIn(text: string, ...values: (string | number)[]): string {
  return text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)]));
}

/** Elapsed time in the largest unit that is not 0. */
export function age(ms: number, strings: CacheStrings): string {
  const seconds = ms / 1000;
  if (seconds < 5) return strings.now;
  if (seconds < 60) return fillIn(strings.secondsAgo, Math.floor(seconds));
  if (seconds < 3600) return fillIn(strings.minutesAgo, Math.floor(seconds / 60));
  return fillIn(strings.hoursAgo, Math.floor(seconds / 3600));
}

export const numbers = numbersIn(document.documentElement.lang || 'en');
