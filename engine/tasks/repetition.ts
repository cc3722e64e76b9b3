/**
 * Finds endless repetition in generated text, and reads answers that are one code block. Pure functions. Does not
 * decide how much repetition is too much.
 */
import type { Layout } from '../text/prompt/layout.ts';

/**
 * Where the longest suffix of the text begins that also occurs earlier in it. That suffix may turn out to be
 * repetition. Never moves back when the text grows.
 */
export function repeatedEnd(text: string): number {
  let low = 0;
  let high = text.length - 1;
  while (low < high) {
    const length = (low + high + 1) >> 1;
    if (text.lastIndexOf(text.slice(text.length - length), text.length - length - 1) >= 0) low = length;
    else high = length - 1;
  }
  return text.length - Math.max(0, low);
}

/**
 * Finds copies of one unit at the end of the text. Undefined if there are fewer than `minCopies`.
 * @returns `start` of the first copy, and `period`, the length of the unit
 */
export function runaway(
  text: string,
  minCopies: (period: number, unit: () => string) => number,
): { start: number; period: number } | undefined {
  const reversed = reverse(text.slice(-1000));
  // KMP: the shortest period of each prefix of the reversed text is its length minus its longest border.
  const border = new Int32Array(reversed.length + 1);
  border[0] = -1;
  let best: { start: number; period: number } | undefined;
  for (let i = 1, k = -1; i <= reversed.length; i++) {
    while (k >= 0 && reversed[k] !== reversed[i - 1]) k = border[k] as number;
    border[i] = ++k;
    const period = i - k;
    if (i / period >= minCopies(period, () => text.slice(text.length - i, text.length - i + period)))
      best = { start: text.length - i, period };
  }
  return best;
}

function reverse(text: string): string {
  let reversed = '';
  for (let i = text.length - 1; i >= 0; i--) reversed += text[i];
  return reversed;
}

// --- answers that are one code block ----------------------------------------------
// The prompt ends with the opening line of the block. So the model begins with the content instead of a greeting, and
// its first token can be shown. Only where the prompt opens the reasoning, the block comes after it.

/** A fence that occurs in none of the texts. */
export function fenceFor(...texts: readonly string[]): string {
  const longest = Math.max(2, ...texts.flatMap((text) => text.match(/`{3,}/g) ?? []).map((run) => run.length));
  return '`'.repeat(longest + 1);
}

/** The ids at the end of the prompt: the opening line of the block. */
export function openingIds(layout: Layout, fence: string, language: string): number[] {
  return layout.text.tokenizer.encode(`${fence}${language}\n`);
}

/**
 * Raw text after the reasoning from the content of the first block on, which may follow an introduction. Empty until
 * the block begins. Without a block, all of the finished text.
 */
export function fromBlock(rawText: string, finished: boolean): string {
  const opening = /^[ \t]*`{3,}[^\n`]*\n/m.exec(rawText);
  if (opening) return rawText.slice(opening.index + opening[0].length);
  return finished ? rawText : '';
}

/** The extension of a path, which is the name of most languages in Markdown. */
export function languageOf(path: string): string {
  return /\.(\w+)$/.exec(path)?.[1] ?? '';
}

/**
 * The content of the block up to its closing fence, without blank lines around it, and without an opening line that the
 * model repeats. Holds back what may still become a fence, so more raw text only adds to the content.
 */
export function blockContent(rawText: string, fence: string, finished: boolean): { text: string; closed: boolean } {
  const raw = rawText.replaceAll('\r', '');
  // The model repeats "```ts", or a bare fence ends an empty block.
  if (/^\s*`{1,2}$/.test(raw) || /^\s*`{3,}[^\n]*$/.test(raw)) return { text: '', closed: finished };
  const body = raw.replace(/^\s*`{3,}[^\s`][^\n`]*\n/, '');
  const closing = new RegExp(`^[ \\t]*${fence}\`*[ \\t]*$`, 'm').exec(body);
  const closed = closing !== null && (finished || body.indexOf('\n', closing.index) >= 0);
  // A last line that may become the closing fence is held back.
  const settled = closing ? body.slice(0, closing.index) : finished ? body : body.replace(/(?:^|\n)[ \t]*`*$/, '');
  return { text: settled.trimEnd().replace(/^(?:[ \t]*\n)+/, ''), closed };
}
