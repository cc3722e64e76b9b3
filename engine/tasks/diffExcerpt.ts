/** As much of a unified diff as a model has room for, every file with its fair share. Pure. */
import type { Tokenizer } from '../text/tokenizer.ts';

/** No more characters than this per token of room are looked at. */
const CHARACTERS_PER_TOKEN = 6;
/** Less than this of a file's diff says nothing. */
const LEAST_TOKENS = 24;

export interface DiffExcerpt {
  text: string;
  /** What is left out, in words; empty when nothing is. */
  omitted: string;
}

/** Cut at line ends; the text itself says where something is missing. */
export function diffExcerpt(tokenizer: Tokenizer, diff: string, room: number): DiffExcerpt {
  const files = diff.split(/^(?=diff --git )/m).filter((part) => part.trim() !== '');
  const sizes = files.map((file) =>
    file.length > room * CHARACTERS_PER_TOKEN ? Number.POSITIVE_INFINITY : tokenizer.encode(file).length,
  );
  // What the lines take that say how much is missing.
  const markTokens = tokenizer.encode(`\n${missingLines(10_000)}`).length;
  const least = LEAST_TOKENS + markTokens;
  const shares = shareOut(sizes, room, least);
  let numLines = 0;
  let numShown = 0;
  const parts: string[] = [];
  let numDropped = 0;
  for (const [i, file] of files.entries()) {
    const lines = file.replace(/\n$/, '').split('\n');
    numLines += lines.length;
    const share = shares[i] as number;
    const shown =
      (sizes[i] as number) <= share
        ? lines.length
        : share < least
          ? 0
          : linesWithin(tokenizer, file, share - markTokens);
    numShown += shown;
    if (shown === 0) numDropped++;
    else
      parts.push(
        [...lines.slice(0, shown), ...(shown < lines.length ? [missingLines(lines.length - shown)] : [])].join('\n'),
      );
  }
  if (numShown === numLines) return { text: parts.join('\n'), omitted: '' };
  if (numDropped) parts.push(`[the diffs of ${numDropped} more files]`);
  const dropped = numDropped ? `, nothing of ${numDropped} of its ${files.length} files` : '';
  return {
    text: parts.join('\n'),
    omitted: `the diff has ${numLines} lines; this model has room for ${numShown} of them${dropped}`,
  };
}

function missingLines(count: number): string {
  return `[${count} more lines of this file's diff]`;
}

/** Small ones get what they need, the others the same share of what is left; the last get none when that would be too little. */
function shareOut(sizes: readonly number[], room: number, least: number): number[] {
  const shares = sizes.map(() => 0);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const wanting = sizes.map((_, i) => i).slice(0, total <= room ? sizes.length : Math.floor(room / least));
  wanting.sort((a, b) => (sizes[a] as number) - (sizes[b] as number));
  // One mark's worth for the files of which nothing is shown.
  let left = wanting.length < sizes.length ? room - (least - LEAST_TOKENS) : room;
  for (const [k, i] of wanting.entries()) {
    shares[i] = Math.min(sizes[i] as number, Math.floor(left / (wanting.length - k)));
    left -= shares[i];
  }
  return shares;
}

function linesWithin(tokenizer: Tokenizer, text: string, limit: number): number {
  const { ids, ends } = tokenizer.encodeWithOffsets(text.slice(0, Math.max(0, limit) * CHARACTERS_PER_TOKEN));
  const end = ids.length <= limit ? Math.max(0, limit) * CHARACTERS_PER_TOKEN : (ends[limit - 1] ?? 0);
  return text.slice(0, end).split('\n').length - 1;
}
