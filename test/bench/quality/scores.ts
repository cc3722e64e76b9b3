/** Scores completions and summaries. Pure. */
import type { QualityHole } from './holes.ts';

export interface HoleScore {
  /** A completion was offered. */
  shown: boolean;
  /** The first line (of a rest or a line) or the whole text (of a block) equals the removed text. */
  exact: boolean;
  /**
   * The whole offer can be accepted as it is: it equals the removed text or, for a block, whole lines from its start.
   */
  whole: boolean;
  /** The first word, or the first run of punctuation, is right. */
  firstWord: boolean;
  /** Length of the longest right beginning that ends with a word. A user can accept this much word by word. */
  kept: number;
}

const WORD = /^\s*(?:[\w$]+|[^\w\s$]+)/;
const isWord = (character: string | undefined): boolean => character !== undefined && /[\w$]/.test(character);

export function scoreHole({ kind, taken }: Pick<QualityHole, 'kind' | 'taken'>, shown: string): HoleScore {
  const [given, wanted] = [runMaintenance(shown), runMaintenance(taken)];
  if (given.trim() === '') return { shown: false, exact: false, whole: false, firstWord: false, kept: 0 };
  const whole = given === wanted || (kind === 'block' && wanted.startsWith(`${given}\n`));
  const exact = given === wanted || (kind !== 'block' && given.split('\n')[0]!.trimEnd() === wanted);
  return {
    shown: true,
    exact,
    whole,
    firstWord: WORD.exec(given)?.[0] === WORD.exec(wanted)?.[0],
    kept: rightBeginning(given, wanted),
  };
}

/** The text without white space at the ends of its lines and at its own end. */
const runMaintenance = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(/[ \t]+$/gm, '')
    .trimEnd();

function rightBeginning(given: string, wanted: string): number {
  let same = 0;
  while (same < given.length && same < wanted.length && given[same] === wanted[same]) same++;
  // A word that continues differently in either text does not count.
  const cut = (text: string): boolean => isWord(text[same]) && isWord(given[same - 1]);
  if (cut(given) || cut(wanted)) while (same > 0 && isWord(given[same - 1])) same--;
  return given.slice(0, same).trim() === '' ? 0 : same;
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

/** F1 of the longest common subsequence of words, 0..1 (Lin, 2004). */
export function rougeL(given: string, reference: string): number {
  const [a, b] = [wordsOf(given), wordsOf(reference)];
  if (a.length === 0 || b.length === 0) return 0;
  let before = new Uint16Array(b.length + 1);
  for (const word of a) {
    const now = new Uint16Array(b.length + 1);
    for (const [i, other] of b.entries())
      now[i + 1] = word === other ? before[i]! + 1 : Math.max(before[i + 1]!, now[i]!);
    before = now;
  }
  return (2 * before[b.length]!) / (a.length + b.length);
}

/** F2 of character n-grams up to 6, without white space, 0..1 (Popović, 2015). */
export function chrF(given: string, reference: string): number {
  const [a, b] = [given.replace(/\s/g, ''), reference.replace(/\s/g, '')];
  const precisions: number[] = [];
  const recalls: number[] = [];
  for (let n = 1; n <= 6; n++) {
    const [ofA, ofB] = [grams(a, n), grams(b, n)];
    if (ofA.size === 0 || ofB.size === 0) continue;
    let matched = 0;
    for (const [gram, count] of ofA) matched += Math.min(count, ofB.get(gram) ?? 0);
    precisions.push(matched / (a.length - n + 1));
    recalls.push(matched / (b.length - n + 1));
  }
  const [p, r] = [mean(precisions), mean(recalls)];
  return p + r > 0 ? (5 * p * r) / (4 * p + r) : 0;
}

function grams(text: string, n: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (let i = 0; i + n <= text.length; i++)
    counts.set(text.slice(i, i + n), (counts.get(text.slice(i, i + n)) ?? 0) + 1);
  return counts;
}

/** The mean, or 0 without values. */
export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** 95% interval of a share (Wilson, 1927), 0..1. */
export function interval(right: number, n: number): [least: number, most: number] {
  if (n === 0) return [0, 1];
  const z = 1.96;
  const p = right / n;
  const middle = p + (z * z) / (2 * n);
  const half = z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return [Math.max(0, (middle - half) / (1 + (z * z) / n)), Math.min(1, (middle + half) / (1 + (z * z) / n))];
}
