/**
 * Finds endless repetition in what a model has written so far, and reads answers that are one code block. Pure
 * functions.
 */
import type { Layout } from '../text/prompt/layout.ts';

/**
 * Start of the longest end of the text that also stands earlier in it: how much of the end may turn out to be a
 * repetition. Never moves back as the text grows.
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
 * The end of the text as copies of one period, when there are too many of them to be meant; undefined otherwise.
 * `start` is where the first copy starts.
 */
export function runaway(
  text: string,
  minCopies: (period: number, unit: () => string) => number,
): { start: number; period: number } | undefined {
  const reversed = reverse(text.slice(-1000));
  // KMP: the shortest period of every start of the reversed text is its length minus its longest border.
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

/**
 * Answers that are one code block. The prompt ends with the block's opening line, so that the model goes on with the
 * content at once, without greeting or reasoning, and its first token can be shown. Pure.
 */

/** A fence that is in none of the texts. */
export function fenceFor(...texts: readonly string[]): string {
  const longest = Math.max(2, ...texts.flatMap((text) => text.match(/`{3,}/g) ?? []).map((run) => run.length));
  return '`'.repeat(longest + 1);
}

/** What the prompt ends with. */
export function openingIds(layout: Layout, fence: string, language: string): number[] {
  return layout.text.tokenizer.encode(`${fence}${language}\n`);
}

/** A path's extension, by which Markdown names most languages. */
export function languageOf(path: string): string {
  return /\.(\w+)$/.exec(path)?.[1] ?? '';
}

/**
 * The content of the block, as far as it is settled: without blank lines around it, without the opening line when the
 * model writes that once more, up to the closing fence. More raw text only ever adds to it.
 */
export function blockContent(rawText: string, fence: string, finished: boolean): { text: string; closed: boolean } {
  const raw = rawText.replaceAll('\r', '');
  // "```ts" once more; a bare fence is the end of an empty block.
  if (/^\s*`{1,2}$/.test(raw) || /^\s*`{3,}[^\n]*$/.test(raw)) return { text: '', closed: finished };
  const body = raw.replace(/^\s*`{3,}[^\s`][^\n`]*\n/, '');
  const closing = new RegExp(`^[ \\t]*${fence}\`*[ \\t]*$`, 'm').exec(body);
  const closed = closing !== null && (finished || body.indexOf('\n', closing.index) >= 0);
  // A last line that may become the closing fence waits.
  const settled = closing ? body.slice(0, closing.index) : finished ? body : body.replace(/(?:^|\n)[ \t]*`*$/, '');
  return { text: settled.trimEnd().replace(/^(?:[ \t]*\n)+/, ''), closed };
}
