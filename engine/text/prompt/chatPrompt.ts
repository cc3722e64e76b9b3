/**
 * Builds the prompt of a chat turn or a summary: the file block, then the conversation in the chat template. Leaves out
 * what does not fit, with a note: other files first, then the oldest turns, then the end of the file block.
 */
import { t } from '@vscode/l10n';
import { RequestError } from '../../protocol/errors.ts';
import type { ChatMessage } from '../../protocol/tasks.ts';
import { type AttachedFile, countTokens, type PartSize, withFiles } from './attachedFiles.ts';
import type { FileBlock, Layout } from './layout.ts';
import { type DefinitionLine, type RestOutline, restOutline } from './restOutline.ts';
import type { RenderOptions } from '../format/chatTemplate.ts';
import type { SourceDocument } from '../syntax/sourceDocument.ts';

/** Tokens after a user message, by template (see tokensBehind). */
const behindOf = new WeakMap<object, readonly number[]>();

export interface ChatPrompt {
  promptIds: number[];
  /** How many of the ids are the file block. */
  numBlockTokens: number;
  /** Ranges of the long messages of the user, counted from the end of the block (see userRanges). */
  userTexts: () => [from: number, to: number][];
  /** The open file, if any, then the attached ones. */
  parts: PartSize[];
  /** All files, if nothing of any file is in the prompt. Otherwise empty. */
  unread: string[];
  notes: string[];
}

export interface ChatPromptOptions {
  /** The open file, if any. */
  doc?: SourceDocument;
  /** Offset in the LF text. Decides which part of a large file is shown. */
  cursorOffset?: number;
  /** The file may take all that the question and the answer leave. */
  fill?: boolean;
  /** The definitions of the file, for an outline of the lines that its block leaves out. Left out: none. */
  definitions?: ((doc: SourceDocument) => readonly DefinitionLine[]) | undefined;
  /** Other files, and selections. */
  attached?: readonly AttachedFile[];
  messages: readonly ChatMessage[];
  /** Tokens to reserve for the answer. */
  answerTokens: number;
  /** See RenderOptions. */
  enableThinking?: boolean | undefined;
}

/**
 * @throws RequestError `badRequest` for messages that the template refuses; `contextTooLong` if the last question does
 * not fit
 */
export function chatPrompt(layout: Layout, options: ChatPromptOptions): ChatPrompt {
  const { doc, answerTokens, enableThinking } = options;
  const form: RenderOptions = enableThinking === undefined ? {} : { enableThinking };
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
  const limit = layout.contextTokens - answerTokens;
  const attached = options.attached ?? [];
  let blockInTemplate = doc !== undefined && manifest.fileBlock === 'chatTemplate';
  let asked = withFiles(layout, [], [], 0);
  let outline: RestOutline | undefined;
  const turns = (): { before: number[]; after: number[] } => {
    asked = withFiles(layout, messages, attached, Math.floor((limit - (block?.tokenIds.length ?? 0)) / 2));
    if (outline) asked.messages = behindFirst(asked.messages, outline.text);
    if (doc === undefined || !blockInTemplate) return { before: [], after: chatTemplate.encode(asked.messages, form) };
    const ids = chatTemplate.encodeAround(layout.messagesWithFile(doc.path, asked.messages), layout.fileMark, form);
    if (ids.found) return ids;
    blockInTemplate = false;
    block = undefined;
    notes.push(t('{0} left out: the chat template has no place for it', doc.path));
    return { before: [], after: chatTemplate.encode(asked.messages, form) };
  };
  let parts = turns();
  const userTexts = (): [number, number][] => {
    const contents = asked.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
    return userRanges(parts.after, contents, (text) => tokenizer.encode(text), behindMessages(layout));
  };

  if (doc !== undefined && block !== undefined && block.omitted !== '' && options.definitions) {
    outline = restOutline(layout, doc, block, options.definitions(doc));
    if (outline) parts = turns();
  }
  const tooLong = (): boolean => (block?.tokenIds.length ?? 0) + parts.after.length > limit;
  let numDropped = 0;
  while (tooLong() && numTurns(messages) > 1) {
    numDropped += dropOldestTurn(messages);
    parts = turns();
  }
  if (numDropped > 0) notes.push(t('the first {0} messages of the conversation left out', numDropped));
  if (tooLong() && outline) {
    outline = undefined;
    parts = turns();
  }
  const isCut = options.fill === true && block?.omitted !== '';
  if ((tooLong() || isCut) && doc !== undefined && block !== undefined) {
    block = layout.fileBlock(doc, {
      cursorOffset: options.cursorOffset,
      reserveTokens: parts.after.length + answerTokens,
      fill: isCut,
    });
  }
  if (tooLong())
    throw new RequestError(
      'contextTooLong',
      t('the question takes {0} tokens, but this model reads {1} before its answer', parts.after.length, limit),
    );
  notes.push(...asked.notes);
  if (doc !== undefined && block !== undefined && block.omitted !== '')
    notes.push(outline?.note ?? `${doc.path}: ${block.omitted}`);

  // With other instructions before it, a template may begin in another way than for the shared block.
  const head =
    blockInTemplate && block !== undefined
      ? [...parts.before, ...block.tokenIds.slice(block.numHeaderTokens)]
      : (block?.tokenIds ?? []);
  const unread = unreadPaths(layout, options, block, asked.parts);
  const sizes = doc === undefined ? asked.parts : [blockSize(layout, doc, block), ...asked.parts];
  return { promptIds: [...head, ...parts.after], numBlockTokens: head.length, userTexts, parts: sizes, unread, notes };
}

/** All files with text, if nothing of any of them is in the prompt. */
function unreadPaths(
  layout: Layout,
  { doc, attached = [] }: ChatPromptOptions,
  block: FileBlock | undefined,
  parts: readonly PartSize[],
): string[] {
  const isEmpty = (text: string): boolean => text.trim() === '';
  const isRead = [
    ...(doc === undefined || isEmpty(doc.lf)
      ? []
      : [{ path: doc.path, read: block === undefined || block.tokenIds.length > block.numHeaderTokens }]),
    ...attached.flatMap(({ path, text }, i) =>
      isEmpty(text) ? [] : [{ path, read: (parts[i]?.omittedTokens ?? 0) < countTokens(layout, text) }],
    ),
  ];
  return isRead.some(({ read }) => read) ? [] : isRead.map(({ path }) => path);
}

/** See tokensBehind. Found once for each template. */
function behindMessages({ text: { chatTemplate, tokenizer } }: Layout): readonly number[] {
  if (chatTemplate === undefined) return [];
  const behind =
    behindOf.get(chatTemplate) ??
    tokensBehind(
      (content) => chatTemplate.encode([{ role: 'user', content }]),
      (text) => tokenizer.encode(text),
    );
  behindOf.set(chatTemplate, behind);
  return behind;
}

/** The messages with a text behind the first question. */
function behindFirst(messages: readonly ChatMessage[], text: string): ChatMessage[] {
  const first = messages.findIndex(({ role }) => role === 'user');
  return messages.map((each, i) => (i === first ? { ...each, content: each.content + text } : each));
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

/** Removes the first user message and all messages up to the next one. Returns how many were removed. */
function dropOldestTurn(messages: ChatMessage[]): number {
  const first = messages.findIndex(({ role }) => role === 'user');
  const next = messages.findIndex(({ role }, i) => i > first && role === 'user');
  messages.splice(first, next - first);
  return next - first;
}

// --- messages of the user in the tokens of a conversation -------------------------

/** Shorter messages get no range. */
const MIN_CHARACTERS = 96;
/** Tokens at each end of a message that are compared. The first and the last token may differ in the conversation. */
const MARK_TOKENS = 12;
/** Most tokens that a template writes after a message. */
const MAX_BEHIND = 32;

/**
 * Finds the messages of the user in the tokens of a conversation by their own tokens. Rendering the conversation up to
 * each message would take quadratic time. A message keeps its range when the conversation continues.
 * @param contents of the messages of the user, in order
 * @param behind tokens that the template writes after a message (see tokensBehind)
 * @returns ranges of the long messages, each with the tokens after it. The first range starts with the conversation.
 */
export function userRanges(
  tokenIds: readonly number[],
  contents: readonly string[],
  encode: (text: string) => number[],
  behind: readonly number[],
): [from: number, to: number][] {
  const ranges: [number, number][] = [];
  let at = 0;
  for (const [i, content] of contents.entries()) {
    if (content.length < MIN_CHARACTERS) continue;
    // Some templates trim messages.
    const places = [...new Set([content, content.trim()])].map((text) => placeOf(tokenIds, encode(text), behind, at));
    const place = places.find((found) => found?.isWhole) ?? places.at(-1);
    if (!place) continue;
    ranges.push([i === 0 ? 0 : place.from, place.to]);
    at = place.to;
  }
  return ranges;
}

interface Place {
  readonly from: number;
  readonly to: number;
  /** Includes the tokens that the template writes after the message. */
  readonly isWhole: boolean;
}

/**
 * The place of the tokens of a message that is followed by `behind`, because an answer may contain the same text. If
 * there is none, the first place of the message alone, because its last token may be merged with the next text.
 */
function placeOf(
  tokenIds: readonly number[],
  ids: readonly number[],
  behind: readonly number[],
  from: number,
): Place | null {
  const first = ids.slice(1, 1 + MARK_TOKENS);
  const last = ids.slice(-1 - MARK_TOKENS, -1);
  let alone: Place | null = null;
  for (let start = indexOf(tokenIds, first, from + 1); start >= 0; start = indexOf(tokenIds, first, start + 1)) {
    const end = start - 1 + ids.length;
    if (end > tokenIds.length || !standsAt(tokenIds, last, end - 1 - last.length)) continue;
    if (behind.length > 0 && standsAt(tokenIds, behind, end))
      return { from: start - 1, to: end + behind.length, isWhole: true };
    alone ??= { from: start - 1, to: end, isWhole: false };
  }
  return alone;
}

/**
 * Tokens that the template writes after a user message, with the opening of the answer. Empty if they are not found.
 */
export function tokensBehind(
  encodeChat: (content: string) => number[],
  encode: (text: string) => number[],
): readonly number[] {
  const probe =
    'What is written behind this message, before its answer? Nobody knows, so it has to be tried out once: here.';
  const tokenIds = encodeChat(probe);
  const place = placeOf(tokenIds, encode(probe), [], 0);
  return place && tokenIds.length - place.to <= MAX_BEHIND ? tokenIds.slice(place.to) : [];
}

function standsAt(tokenIds: readonly number[], mark: readonly number[], at: number): boolean {
  return mark.every((id, i) => tokenIds[at + i] === id);
}

function indexOf(tokenIds: readonly number[], mark: readonly number[], from: number): number {
  for (let at = from; mark.length > 0 && at + mark.length <= tokenIds.length; at++)
    if (standsAt(tokenIds, mark, at)) return at;
  return -1;
}
