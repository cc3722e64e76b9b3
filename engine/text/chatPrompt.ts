/**
 * The prompt of a chat turn or a summary: the file block, then the conversation as the model's own template writes it.
 * What does not fit is left out in this order, and said: other files, the oldest turns, the end of the file block.
 */
import { RequestError } from '../errors.ts';
import type { ChatMessage } from '../protocol.ts';
import type { Layout } from './layout.ts';
import type { SourceDocument } from './sourceDocument.ts';

export interface ChatPrompt {
  promptIds: number[];
  numBlockTokens: number;
  notes: string[];
}

export interface ChatPromptOptions {
  /** The open file, if any. */
  doc?: SourceDocument;
  /** Of the LF text: which part of a large file is shown. */
  cursorOffset?: number;
  /** Further files; they follow the first question as code. */
  others?: readonly SourceDocument[];
  messages: readonly ChatMessage[];
  /** Room to leave for the answer. */
  answerTokens: number;
}

const CHARACTERS_PER_TOKEN = 6;

/** Throws `badRequest` for messages that the template refuses, `contextTooLong` when the last question alone does not fit. */
export function chatPrompt(layout: Layout, options: ChatPromptOptions): ChatPrompt {
  const { doc, answerTokens } = options;
  const { chatTemplate, manifest } = layout.text;
  if (chatTemplate === undefined) throw new RequestError('badRequest', `${manifest.name} has no chat template, so it cannot answer questions`);
  const notes: string[] = [];
  let messages = [...options.messages];
  if (messages.at(-1)?.role !== 'user') throw new RequestError('badRequest', 'the last message of a chat must be the user\'s');
  if (!manifest.chat.system && messages.some(({ role }) => role === 'system')) {
    messages = messages.filter(({ role }) => role !== 'system');
    notes.push(`${manifest.name} was not trained on instructions: the system message is left out`);
  }

  let block = doc && layout.fileBlock(doc, { cursorOffset: options.cursorOffset });
  const room = layout.contextTokens - answerTokens;
  const others = options.others ?? [];
  let blockInTemplate = doc !== undefined && manifest.fileBlock === 'chatTemplate';
  const turns = (): { before: number[]; after: number[] } => {
    const asked = withFiles(layout, messages, others, Math.floor((room - (block?.tokenIds.length ?? 0)) / 2));
    cuts = asked.notes;
    if (doc === undefined || !blockInTemplate) return { before: [], after: chatTemplate.encode(asked.messages) };
    const ids = chatTemplate.encodeAround(layout.messagesWithFile(doc.path, asked.messages), layout.fileMark);
    if (ids.found) return ids;
    blockInTemplate = false;
    block = undefined;
    notes.push(`${doc.path} left out: the model's chat template has no place for it`);
    return { before: [], after: chatTemplate.encode(asked.messages) };
  };
  let cuts: string[] = [];
  let parts = turns();

  const tooLong = (): boolean => (block?.tokenIds.length ?? 0) + parts.after.length > room;
  let numDropped = 0;
  while (tooLong() && numTurns(messages) > 1) {
    numDropped += dropOldestTurn(messages);
    parts = turns();
  }
  if (numDropped > 0) notes.push(`the first ${numDropped} messages of the conversation left out`);
  if (tooLong() && doc !== undefined && block !== undefined) {
    block = layout.fileBlock(doc, { cursorOffset: options.cursorOffset, reserveTokens: parts.after.length + answerTokens });
  }
  if (tooLong()) throw new RequestError('contextTooLong', `the question takes ${parts.after.length} tokens, but this model reads ${room} before its answer`);
  notes.push(...cuts);
  if (doc !== undefined && block !== undefined && block.omitted !== '') notes.push(`${doc.path}: ${block.omitted}`);

  // With other instructions before it, a template may open differently than for the shared block.
  const head = blockInTemplate && block !== undefined ? [...parts.before, ...block.tokenIds.slice(block.numHeaderTokens)] : (block?.tokenIds ?? []);
  return { promptIds: [...head, ...parts.after], numBlockTokens: head.length, notes };
}

/** The messages with other files after the first question, each cut to its share of the room at a line's end. */
function withFiles(layout: Layout, messages: readonly ChatMessage[], files: readonly SourceDocument[], room: number): { messages: ChatMessage[]; notes: string[] } {
  const notes: string[] = [];
  if (files.length === 0) return { messages: [...messages], notes };
  const share = Math.max(0, Math.floor(room / files.length) - 16);
  const parts = files.map((file) => {
    const { text, numLines } = cutToTokens(layout, file, share);
    if (numLines < file.numLines) notes.push(`${file.path}: lines ${numLines + 1}-${file.numLines} of ${file.numLines} left out`);
    return `${file.path}\n${fenced(text, file.path)}`;
  });
  const first = messages.findIndex(({ role }) => role === 'user');
  return { messages: messages.map((message, i) => (i === first ? { ...message, content: `${message.content}\n${parts.join('\n')}` } : message)), notes };
}

function cutToTokens(layout: Layout, file: SourceDocument, limit: number): { text: string; numLines: number } {
  const start = file.lf.slice(0, limit * CHARACTERS_PER_TOKEN);
  const { ids, ends } = layout.text.tokenizer.encodeWithOffsets(start);
  if (start.length === file.lf.length && ids.length <= limit) return { text: file.lf, numLines: file.numLines };
  const numLines = file.lineAt(limit === 0 ? 0 : (ends[Math.min(limit, ids.length) - 1] ?? 0));
  return { text: file.lf.slice(0, file.lineStart(numLines)), numLines };
}

/** Code as Markdown writes it, named by the file's extension. */
export function fenced(text: string, path: string): string {
  const extension = /\.(\w+)$/.exec(path)?.[1] ?? '';
  const fence = text.includes('```') ? '````' : '```';
  return `${fence}${extension}\n${text.endsWith('\n') ? text : `${text}\n`}${fence}`;
}

function numTurns(messages: readonly ChatMessage[]): number {
  return messages.filter(({ role }) => role === 'user').length;
}

/** Removes the first user message and what follows up to the next; returns how many messages that were. */
function dropOldestTurn(messages: ChatMessage[]): number {
  const first = messages.findIndex(({ role }) => role === 'user');
  const next = messages.findIndex(({ role }, i) => i > first && role === 'user');
  messages.splice(first, next - first);
  return next - first;
}
