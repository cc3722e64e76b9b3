/**
 * Puts attached files and selections into a conversation, besides the open file. They go into the volatile tail: whole
 * files after the first question, where they stay from turn to turn, a selection after the last one, which it belongs
 * to. What does not fit its share is cut at a line end, and a note says so. Does not write the file block (see
 * layout).
 */
import { t } from '@vscode/l10n';
import type { ChatMessage } from '../../protocol/tasks.ts';
import type { Layout } from './layout.ts';

export interface AttachedFile {
  path: string;
  /** With LF line ends. */
  text: string;
  /** Line of its file that the text starts on, from 0: a selection. Left out for a whole file. */
  startLine?: number;
}

export interface PartSize {
  path: string;
  tokens: number;
  /** Tokens of it that are left out. */
  omittedTokens: number;
}

export interface WithFiles {
  messages: ChatMessage[];
  /** In the order of the files. */
  parts: PartSize[];
  notes: string[];
}

const CHARACTERS_PER_TOKEN = 6;
/** Kept for the path and the fences around a file. */
const FRAME_TOKENS = 16;

/** The messages with `files` in them, together in at most `room` tokens. */
export function withFiles(
  layout: Layout,
  messages: readonly ChatMessage[],
  files: readonly AttachedFile[],
  room: number,
): WithFiles {
  const first = messages.findIndex(({ role }) => role === 'user');
  const contents = messages.map(({ content }) => content);
  const limits = shares(
    files.map(({ text }) => countTokens(layout, text) + FRAME_TOKENS),
    room,
  );
  const notes: string[] = [];
  const parts = files.map((file, i) => {
    const shown = cutToTokens(layout, file.text, Math.max(0, (limits[i] as number) - FRAME_TOKENS));
    const written = `\n${heading(file)}\n${fenced(shown, file.path)}`;
    const at = file.startLine === undefined ? first : messages.length - 1;
    contents[at] += written;
    if (shown.length < file.text.length) notes.push(`${file.path}: ${leftOut(file, shown)}`);
    return {
      path: file.path,
      tokens: layout.text.tokenizer.encode(written).length,
      omittedTokens: countTokens(layout, file.text.slice(shown.length)),
    };
  });
  return { messages: messages.map((message, i) => ({ ...message, content: contents[i] as string })), parts, notes };
}

/** Code as Markdown writes it, named by the file's extension. */
export function fenced(text: string, path: string): string {
  const extension = /\.(\w+)$/.exec(path)?.[1] ?? '';
  const fence = text.includes('```') ? '````' : '```';
  return `${fence}${extension}\n${text.endsWith('\n') ? text : `${text}\n`}${fence}`;
}

/**
 * Token counts of runs of lines, by tokenizer. The prompt meter asks again at every pause in typing, and most runs
 * have not changed.
 */
const counted = new WeakMap<object, Map<string, number>>();
const MAX_COUNTED = 4096;
const RUN_LINES = 16;
/** Counting must not take seconds: beyond these limits the rest is estimated from the start. */
const MAX_RUN_CHARACTERS = 20_000;
const MAX_CHARACTERS = 1_000_000;

/**
 * Tokens of a text by itself, counted in runs of 16 lines (which may part a token at their ends). `fromEnd` lays the
 * runs from the end: for a text that is edited at its start.
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

/**
 * What each gets of `room`: all that it wants if that is less than an even share, and the others share what it leaves.
 */
function shares(wanted: readonly number[], room: number): number[] {
  const given = wanted.map(() => 0);
  let left = Math.max(0, room);
  const byWant = wanted.map((want, i) => ({ want, i })).sort((a, b) => a.want - b.want);
  for (const [n, { want, i }] of byWant.entries()) {
    const share = Math.min(want, Math.floor(left / (byWant.length - n)));
    given[i] = share;
    left -= share;
  }
  return given;
}

function heading({ path, text, startLine }: AttachedFile): string {
  return startLine === undefined ? path : `${path}, ${lines(startLine + 1, startLine + numLines(text))}`;
}

function lines(first: number, last: number): string {
  return first === last ? `line ${first}` : `lines ${first}-${last}`;
}

/** Lines of a text; the empty one behind a final line break is none. */
function numLines(text: string): number {
  return text.replace(/\n$/, '').split('\n').length;
}

function leftOut({ text, startLine }: AttachedFile, shown: string): string {
  const numShown = shown.split('\n').length - 1;
  const total = numLines(text);
  if (startLine === undefined) return t('lines {0} of {1} left out', `${numShown + 1}-${total}`, total);
  return t('lines {0}-{1} of the selection left out', startLine + numShown + 1, startLine + numLines(text));
}

/** The start of `text` in at most `limit` tokens, at a line's end. */
function cutToTokens(layout: Layout, text: string, limit: number): string {
  const start = text.slice(0, limit * CHARACTERS_PER_TOKEN);
  const { ids, ends } = layout.text.tokenizer.encodeWithOffsets(start);
  if (start.length === text.length && ids.length <= limit) return text;
  const end = limit === 0 ? 0 : (ends[Math.min(limit, ids.length) - 1] ?? 0);
  return text.slice(0, text.lastIndexOf('\n', end - 1) + 1);
}
