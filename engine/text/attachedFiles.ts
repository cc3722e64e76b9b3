/**
 * Files and selections that a question brings along besides the open file. They enter the volatile tail: whole files
 * behind the first question, where they stay from turn to turn, a selection behind the last one, which it belongs to.
 * What does not fit its share of the room is cut at a line's end and said. Owns no file block: that is layout's.
 */
import type { ChatMessage } from '../protocol.ts';
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
export function withFiles(layout: Layout, messages: readonly ChatMessage[], files: readonly AttachedFile[], room: number): WithFiles {
  const first = messages.findIndex(({ role }) => role === 'user');
  const contents = messages.map(({ content }) => content);
  const limits = shares(files.map(({ text }) => countTokens(layout, text) + FRAME_TOKENS), room);
  const notes: string[] = [];
  const parts = files.map((file, i) => {
    const shown = cutToTokens(layout, file.text, Math.max(0, (limits[i] as number) - FRAME_TOKENS));
    const written = `\n${heading(file)}\n${fenced(shown, file.path)}`;
    const at = file.startLine === undefined ? first : messages.length - 1;
    contents[at] += written;
    if (shown.length < file.text.length) notes.push(`${file.path}: ${leftOut(file, shown)}`);
    return { path: file.path, tokens: layout.text.tokenizer.encode(written).length, omittedTokens: countTokens(layout, file.text.slice(shown.length)) };
  });
  return { messages: messages.map((message, i) => ({ ...message, content: contents[i] as string })), parts, notes };
}

/** Code as Markdown writes it, named by the file's extension. */
export function fenced(text: string, path: string): string {
  const extension = /\.(\w+)$/.exec(path)?.[1] ?? '';
  const fence = text.includes('```') ? '````' : '```';
  return `${fence}${extension}\n${text.endsWith('\n') ? text : `${text}\n`}${fence}`;
}

/** Texts whose tokens were counted last, by tokenizer: a meter asks again at every pause in typing. */
const counted = new WeakMap<object, Map<string, number>>();
const MOST_COUNTED = 64;
/** Beyond that the rest is taken to be like the start: exact counts of what is left out of a huge file would cost seconds. */
const MOST_CHARACTERS = 400_000;

/** Tokens of a text by itself; exact up to 400,000 characters. */
export function countTokens(layout: Layout, text: string): number {
  const { tokenizer } = layout.text;
  const known = counted.get(tokenizer) ?? new Map<string, number>();
  counted.set(tokenizer, known);
  let count = known.get(text);
  if (count === undefined) {
    const start = text.slice(0, MOST_CHARACTERS);
    count = Math.round((tokenizer.encode(start).length * text.length) / Math.max(1, start.length));
    if (known.size >= MOST_COUNTED) known.delete(known.keys().next().value as string);
    known.set(text, count);
  }
  return count;
}

/** What each gets of `room`: all that it wants if that is less than an even share, and the others share what it leaves. */
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

/** Lines of a text; the empty one behind a final line break counts only for a whole file, as editors number it. */
function numLines(text: string): number {
  return text.replace(/\n$/, '').split('\n').length;
}

function leftOut({ text, startLine }: AttachedFile, shown: string): string {
  const numShown = shown.split('\n').length - 1;
  const total = text.split('\n').length;
  if (startLine === undefined) return `lines ${numShown + 1}-${total} of ${total} left out`;
  return `${lines(startLine + numShown + 1, startLine + numLines(text))} of the selection left out`;
}

/** The start of `text` in at most `limit` tokens, at a line's end. */
function cutToTokens(layout: Layout, text: string, limit: number): string {
  const start = text.slice(0, limit * CHARACTERS_PER_TOKEN);
  const { ids, ends } = layout.text.tokenizer.encodeWithOffsets(start);
  if (start.length === text.length && ids.length <= limit) return text;
  const end = limit === 0 ? 0 : (ends[Math.min(limit, ids.length) - 1] ?? 0);
  return text.slice(0, text.lastIndexOf('\n', end - 1) + 1);
}
