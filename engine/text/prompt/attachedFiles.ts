/**
 * Puts attached files and selections into a conversation. Whole files follow the first question and stay there from
 * turn to turn. A selection follows the last question. Does not write the block of the open file (see layout.ts).
 */
import { t } from '@vscode/l10n';
import type { ChatMessage } from '../../protocol/tasks.ts';
import { fenced } from './fenced.ts';
import type { Layout } from './layout.ts';
import { type DefinitionLine, lineOutline, OUTLINE_SHARE, type RestOutline } from './restOutline.ts';

export interface AttachedFile {
  path: string;
  /** With LF line ends. */
  text: string;
  /** For a selection, the line of the file on which it starts, from 0. Left out for a whole file. */
  startLine?: number;
  /** The definitions of a whole file, for an outline of the lines that do not fit. Left out: none. */
  definitions?: (() => readonly DefinitionLine[]) | undefined;
}

export interface PartSize {
  path: string;
  tokens: number;
  /** Tokens of the file that are left out. */
  omittedTokens: number;
}

export interface WithFiles {
  messages: ChatMessage[];
  /** One per file, in the order of the files. */
  parts: PartSize[];
  /** Say for the user what is left out. */
  notes: string[];
}

const CHARACTERS_PER_TOKEN = 6;
/** Reserved for the path and the fences around a file. */
const FRAME_TOKENS = 16;

/**
 * The messages with `files`, which get at most `limit` tokens together. A file above its share is cut at a line end.
 */
export function withFiles(
  layout: Layout,
  messages: readonly ChatMessage[],
  files: readonly AttachedFile[],
  limit: number,
): WithFiles {
  const first = messages.findIndex(({ role }) => role === 'user');
  const contents = messages.map(({ content }) => content);
  const limits = shares(
    files.map(({ text }) => countTokens(layout, text) + FRAME_TOKENS),
    limit,
  );
  const notes: string[] = [];
  const parts = files.map((file, i) => {
    const { shown, outline } = shownOf(layout, file, Math.max(0, (limits[i] as number) - FRAME_TOKENS));
    const written = `\n${heading(file)}\n${fenced(shown, file.path)}${outline?.text ?? ''}`;
    const at = file.startLine === undefined ? first : messages.length - 1;
    contents[at] += written;
    if (shown.length < file.text.length) notes.push(outline?.note ?? `${file.path}: ${leftOut(file, shown)}`);
    return {
      path: file.path,
      tokens: layout.text.tokenizer.encode(written).length,
      omittedTokens: countTokens(layout, file.text.slice(shown.length)),
    };
  });
  return { messages: messages.map((message, i) => ({ ...message, content: contents[i] as string })), parts, notes };
}

/**
 * Token counts of runs of lines, by tokenizer. The prompt meter counts again at every pause in typing, and most runs
 * have not changed.
 */
const counted = new WeakMap<object, Map<string, number>>();
const MAX_COUNTED = 4096;
const RUN_LINES = 16;
/** Counting must not take seconds. Above these limits the rest is estimated from the beginning. */
const MAX_RUN_CHARACTERS = 20_000;
const MAX_CHARACTERS = 1_000_000;

/**
 * Tokens of a text by itself. Counts in runs of 16 lines, so a token may be split between two runs. `fromEnd`: the runs
 * are aligned to the end, for a text that is edited at its beginning.
 */
export function countTokens(layout: Layout, text: string, fromEnd = false): number {
  const { tokenizer } = layout.text;
  const known = counted.get(tokenizer) ?? new Map<string, number>();
  counted.set(tokenizer, known);
  if (text.length > MAX_CHARACTERS)
    return Math.round((countTokens(layout, text.slice(0, MAX_CHARACTERS)) * text.length) / MAX_CHARACTERS);
  const textLines = text.split(/(?<=\n)/);
  const first = fromEnd ? textLines.length % RUN_LINES : 0;
  let total = 0;
  for (let line = first === 0 ? 0 : first - RUN_LINES; line < textLines.length; line += RUN_LINES) {
    const run = textLines.slice(Math.max(0, line), line + RUN_LINES).join('');
    let count = known.get(run);
    if (count === undefined) {
      const start = run.slice(0, MAX_RUN_CHARACTERS);
      count = Math.round((tokenizer.encode(start).length * run.length) / Math.max(1, start.length));
      if (known.size >= MAX_COUNTED) known.clear();
      known.set(run, count);
    }
    total += count;
  }
  return total;
}

/** The share of each in `limit`: all that it wants if that is less than an even share. The others share the rest. */
function shares(wanted: readonly number[], limit: number): number[] {
  const given = wanted.map(() => 0);
  let left = Math.max(0, limit);
  const byWant = wanted.map((want, i) => ({ want, i })).sort((a, b) => a.want - b.want);
  for (const [n, { want, i }] of byWant.entries()) {
    const share = Math.min(want, Math.floor(left / (byWant.length - n)));
    given[i] = share;
    left -= share;
  }
  return given;
}

/** What is shown of a file in `limit` tokens: all, or its beginning and an outline of the rest. */
function shownOf(layout: Layout, file: AttachedFile, limit: number): { shown: string; outline?: RestOutline } {
  const { path, text, startLine, definitions } = file;
  const most = cutToTokens(layout, text, limit);
  if (most.length === text.length || startLine !== undefined || !definitions) return { shown: most };
  const shown = cutToTokens(layout, text, Math.floor(limit * (1 - OUTLINE_SHARE)));
  if (shown === '') return { shown: most };
  const total = numLines(text);
  const all = text.split('\n');
  const outline = lineOutline(
    layout,
    { path, total, ranges: [[shown.split('\n').length, total]], lineAt: (line) => all[line - 1] ?? '' },
    definitions(),
    limit - countTokens(layout, shown),
  );
  return outline ? { shown, outline } : { shown: most };
}

function heading({ path, text, startLine }: AttachedFile): string {
  return startLine === undefined ? path : `${path}, ${lines(startLine + 1, startLine + numLines(text))}`;
}

function lines(first: number, last: number): string {
  return first === last ? `line ${first}` : `lines ${first}-${last}`;
}

/** Number of lines. The empty line after a final line break does not count. */
function numLines(text: string): number {
  return text.replace(/\n$/, '').split('\n').length;
}

function leftOut({ text, startLine }: AttachedFile, shown: string): string {
  const numShown = shown.split('\n').length - 1;
  const total = numLines(text);
  if (startLine === undefined) return t('lines {0} of {1} left out', `${numShown + 1}-${total}`, total);
  return t('lines {0}-{1} of the selection left out', startLine + numShown + 1, startLine + numLines(text));
}

/** The beginning of `text` that has at most `limit` tokens and ends at a line end. */
function cutToTokens(layout: Layout, text: string, limit: number): string {
  const start = text.slice(0, limit * CHARACTERS_PER_TOKEN);
  const { ids, ends } = layout.text.tokenizer.encodeWithOffsets(start);
  if (start.length === text.length && ids.length <= limit) return text;
  const end = limit === 0 ? 0 : (ends[Math.min(limit, ids.length) - 1] ?? 0);
  return text.slice(0, text.lastIndexOf('\n', end - 1) + 1);
}
