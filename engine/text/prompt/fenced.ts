/** Writes text as a code block of Markdown. Does not escape text elsewhere. */

/** A Markdown code block, with the extension of the file as its language. */
export function fenced(text: string, path: string): string {
  const extension = /\.(\w+)$/.exec(path)?.[1] ?? '';
  const fence = text.includes('```') ? '````' : '```';
  return `${fence}${extension}\n${text.endsWith('\n') ? text : `${text}\n`}${fence}`;
}
