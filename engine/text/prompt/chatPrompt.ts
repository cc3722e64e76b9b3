/**
 * Builds the prompt of a chat turn or a summary: the file block, then the conversation as the model's own template
 * writes it. What does not fit is left out in this order, with a note: other files, the oldest turns, the end of the
 * file block.
 */
import { t } from '@vscode/l10n';
import { RequestError } from '../../protocol/errors.ts';
import type { ChatMessage } from '../../protocol/tasks.ts';
import { type AttachedFile, countTokens, type PartSize, withFiles } from './attachedFiles.ts';
import type { FileBlock, Layout } from './layout.ts';
import type { SourceDocument } from '../syntax/sourceDocument.ts';
import { tokensBehind, userRanges } from './userRanges.ts';

/** See tokensBehind. */
const behindOf = new WeakMap<object, readonly number[]>();

export interface ChatPrompt {
  promptIds: number[];
  numBlockTokens: number;
  /** Where the user's long messages stand, counted from the block's end (see userRanges). */
  userTexts: () => [from: number, to: number][];
  /** The open file, if any, then the attached ones. */
  parts: PartSize[];
  /** Files of which nothing is in the prompt, where nothing is of any. */
  unread: string[];
  notes: string[];
}

export interface ChatPromptOptions {
  /** The open file, if any. */
  doc?: SourceDocument;
  /** Of the LF text: which part of a large file is shown. */
  cursorOffset?: number;
  /** Further files and selections. */
  attached?: readonly AttachedFile[];
  messages: readonly ChatMessage[];
  /** Room to leave for the answer. */
  answerTokens: number;
}

/**
 * Throws `badRequest` for messages that the template refuses, `contextTooLong` when the last question alone does not
 * fit.
 */
export function chatPrompt(layout: Layout, options: ChatPromptOptions): ChatPrompt {
  const { doc, answerTokens } = options;
  const { chatTemplate, manifest, tokenizer } = layout.text;
  if (chatTemplate === undefined)
    throw new RequestError('badRequest', t('{0} has no chat template, so it cannot answer questions', manifest.name));
  const notes: string[] = [];
  let messages = [...options.messages];
  if (messages.at(-1)?.role !== 'user')
    throw new RequestError('badRequest', t('the last message of a chat must be from the user'));
  if (!manifest.chat.system && messages.some(({ role }) => role === 'system')) {
    messages = messages.filter(({ role }) => role !== 'system');
    notes.push(t('{0} was not trained on instructions: the system message is left out', manifest.name));
  }

  let block = doc && layout.fileBlock(doc, { cursorOffset: options.cursorOffset });
  const room = layout.contextTokens - answerTokens;
  const attached = options.attached ?? [];
  let blockInTemplate = doc !== undefined && manifest.fileBlock === 'chatTemplate';
  let asked = withFiles(layout, [], [], 0);
  const turns = (): { before: number[]; after: number[] } => {
    asked = withFiles(layout, messages, attached, Math.floor((room - (block?.tokenIds.length ?? 0)) / 2));
    if (doc === undefined || !blockInTemplate) return { before: [], after: chatTemplate.encode(asked.messages) };
    const ids = chatTemplate.encodeAround(layout.messagesWithFile(doc.path, asked.messages), layout.fileMark);
    if (ids.found) return ids;
    blockInTemplate = false;
    block = undefined;
    notes.push(t('{0} left out: the chat template has no place for it', doc.path));
    return { before: [], after: chatTemplate.encode(asked.messages) };
  };
  let parts = turns();
  const userTexts = (): [number, number][] => {
    const contents = asked.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
    const encode = (text: string): number[] => tokenizer.encode(text);
    const behind =
      behindOf.get(chatTemplate) ?? tokensBehind((content) => chatTemplate.encode([{ role: 'user', content }]), encode);
    behindOf.set(chatTemplate, behind);
    return userRanges(parts.after, contents, encode, behind);
  };

  const tooLong = (): boolean => (block?.tokenIds.length ?? 0) + parts.after.length > room;
  let numDropped = 0;
  while (tooLong() && numTurns(messages) > 1) {
    numDropped += dropOldestTurn(messages);
    parts = turns();
  }
  if (numDropped > 0) notes.push(t('the first {0} messages of the conversation left out', numDropped));
  if (tooLong() && doc !== undefined && block !== undefined) {
    block = layout.fileBlock(doc, {
      cursorOffset: options.cursorOffset,
      reserveTokens: parts.after.length + answerTokens,
    });
  }
  if (tooLong())
    throw new RequestError(
      'contextTooLong',
      t('the question takes {0} tokens, but this model reads {1} before its answer', parts.after.length, room),
    );
  notes.push(...asked.notes);
  if (doc !== undefined && block !== undefined && block.omitted !== '') notes.push(`${doc.path}: ${block.omitted}`);

  // With other instructions before it, a template may open differently than for the shared block.
  const head =
    blockInTemplate && block !== undefined
      ? [...parts.before, ...block.tokenIds.slice(block.numHeaderTokens)]
      : (block?.tokenIds ?? []);
  const isEmpty = (text: string): boolean => text.trim() === '';
  const isRead = [
    ...(doc === undefined || isEmpty(doc.lf)
      ? []
      : [{ path: doc.path, read: block === undefined || block.tokenIds.length > block.numHeaderTokens }]),
    ...attached.flatMap(({ path, text }, i) =>
      isEmpty(text) ? [] : [{ path, read: (asked.parts[i]?.omittedTokens ?? 0) < countTokens(layout, text) }],
    ),
  ];
  const unread = isRead.some(({ read }) => read) ? [] : isRead.map(({ path }) => path);
  const sizes = doc === undefined ? asked.parts : [blockSize(layout, doc, block), ...asked.parts];
  return { promptIds: [...head, ...parts.after], numBlockTokens: head.length, userTexts, parts: sizes, unread, notes };
}

/** Tokens of the file that its block shows, and of the rest. */
function blockSize(layout: Layout, doc: SourceDocument, block: FileBlock | undefined): PartSize {
  if (block === undefined) return { path: doc.path, tokens: 0, omittedTokens: countTokens(layout, doc.lf) };
  const [before, behind] = [
    doc.lf.slice(0, doc.lineStart(block.startLine)),
    doc.lf.slice(doc.lineStart(block.endLine)),
  ];
  const omittedTokens = block.omitted === '' ? 0 : countTokens(layout, before) + countTokens(layout, behind, true);
  return { path: doc.path, tokens: block.tokenIds.length, omittedTokens };
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
