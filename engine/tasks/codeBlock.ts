/**
 * Answers that are one code block. The prompt ends with the block's opening line, so that the model goes on with the
 * content at once, without greeting or reasoning, and its first token can be shown. Pure.
 */
import type { Layout } from '../text/layout.ts';

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
