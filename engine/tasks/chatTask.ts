/** Prepares chat requests: prompt, sampling, and how an answer is shown while it streams. Runs nothing. */
import { t } from '@vscode/l10n';
import { RequestError } from '../protocol/errors.ts';
import type { PromptSize } from '../protocol/stats.ts';
import type { ChatMessage, SamplingParams, Snippet } from '../protocol/tasks.ts';
import type { AttachedFile } from '../text/prompt/attachedFiles.ts';
import { type ChatPrompt, chatPrompt } from '../text/prompt/chatPrompt.ts';
import type { Layout } from '../text/prompt/layout.ts';
import type { DefinitionLine } from '../text/prompt/restOutline.ts';
import { occursIn } from '../text/syntax/occurrences.ts';
import { SourceDocument, shortPath } from '../text/syntax/sourceDocument.ts';
import { prefillRanges, reservedForAnswer, type PreparedRequest, type Shaped, samplingFor } from './preparedRequest.ts';
import { reasoningForm, reservedForReasoning } from './reasoning.ts';
import { runaway } from './repetition.ts';
import {
  absentReply,
  emptyReply,
  helpReply,
  isGreeting,
  knownGreeting,
  knownSummary,
  leansOnFiles,
  refusedReply,
  unattachedReply,
  unreadReply,
} from './stockReplies.ts';

export interface ChatOptions {
  messages: readonly ChatMessage[];
  /** The first one is the shared file block. The others are put into the first question. */
  docs: readonly SourceDocument[];
  /** Selections, which have a line, are put into the last question, and other files into the first. */
  snippets?: readonly Snippet[];
  /** Offset in the host's text of the first document. Decides which part of a large file is shown. */
  cursor?: number;
  /** See ChatPromptOptions. */
  definitions?: ((doc: SourceDocument) => readonly DefinitionLine[]) | undefined;
  /** The first document may take all that the question and the answer leave of the context. */
  fill?: boolean;
  /** Whether the model reasons first, for templates that ask. Left out: as the template decides. */
  enableThinking?: boolean;
  /** Asks a model that is too small for the question, too. */
  anyway?: boolean;
  /** See ChatTask. */
  asIs?: boolean;
  /** Whether the question asks what the files are for. */
  isSummary?: boolean;
}

/**
 * @throws RequestError `badRequest` for a model that cannot chat, or messages that its template refuses;
 * `contextTooLong` for a question that does not fit
 */
export function prepareChat(layout: Layout, asked: ChatOptions, sampling?: SamplingParams): PreparedRequest {
  const facts = layout.text.manifest.chat.facts && !asked.asIs;
  const options = forModel(layout, asked);
  // A larger model may answer from its knowledge. Its notes say that the file was not read.
  const ofFiles = facts && leansOnFiles(options.messages);
  const answer = prepareAnswer(layout, options, chatDefaults(layout), sampling, ofFiles);
  const prepared: PreparedRequest = { ...answer, tellsReasoning: true };
  const last = asked.messages.at(-1)?.content ?? '';
  const numAttached = asked.docs.length + (asked.snippets?.length ?? 0);
  const reply = facts
    ? (helpReply(last) ??
      unattachedReply(layout, asked.messages, numAttached) ??
      emptyReply(asked.messages, asked.docs, asked.snippets) ??
      (asked.anyway || answer.known
        ? undefined
        : (absentReply(asked.messages, asked.docs, asked.snippets) ??
          refusedReply(layout, asked.messages, asked, asked.isSummary ?? false))))
    : undefined;
  if (reply) return { ...prepared, known: reply };
  if (asked.asIs || !isGreeting(last)) return prepared;
  return { ...prepared, shape: (rawText, finished) => ({ ...prepared.shape(rawText, finished), source: 'stock' }) };
}

/** The size of the prompt of `prepareChat`. @throws the errors of `prepareChat` */
export function measureChat(layout: Layout, options: ChatOptions, sampling?: SamplingParams): PromptSize {
  return measureAnswer(layout, forModel(layout, options), chatDefaults(layout), sampling);
}

/**
 * For a small model, removes earlier turns that the model did not write. It would imitate their wording, and its own
 * inventions would look like facts from the file. It gets no files with a greeting, which it would read as code.
 */
function forModel(layout: Layout, options: ChatOptions): ChatOptions {
  if (!layout.text.manifest.chat.facts || options.asIs) return options;
  const { messages } = options;
  const isKnown = messages.map(({ role }, i) => role === 'user' && messages[i + 1]?.source !== undefined);
  const files = isGreeting(messages.at(-1)?.content ?? '') ? { docs: [], snippets: [] } : {};
  return { ...options, ...files, messages: messages.filter((_, i) => !isKnown[i] && !isKnown[i - 1]) };
}

/**
 * Prepares any question about documents, with the sampling of a task.
 * @param ofFiles whether the question can only be about the files
 */
export function prepareAnswer(
  layout: Layout,
  options: ChatOptions,
  defaults: SamplingParams,
  sampling?: SamplingParams,
  ofFiles = false,
): PreparedRequest {
  const prompt = promptOf(layout, options, answerTokensFor(layout, options, defaults, sampling));
  const known = ofFiles ? unreadReply(layout, prompt.unread) : undefined;
  return {
    promptIds: prompt.promptIds,
    blockTokens: prompt.numBlockTokens,
    prefill: prefillRanges(prompt.numBlockTokens, prompt.userTexts(), layout.fewestPrefill),
    docId: options.docs[0]?.docId ?? null,
    sampling: samplingFor(sampling, defaults, prompt.promptIds.length, layout.contextTokens),
    stopTokenIds: layout.text.chatStopIds,
    reasoning: reasoningForm(layout.text, prompt.promptIds),
    isProse: true,
    shape: contradicted(options.docs),
    notes: prompt.notes,
    ...(known ? { known } : {}),
  };
}

/** As `shapeAnswer`, with a note if the answer denies a name that is in a file. Small models overlook names. */
function contradicted(docs: readonly SourceDocument[]): PreparedRequest['shape'] {
  return (rawText, finished) => {
    const shaped = shapeAnswer(rawText, finished);
    const [, denied] =
      (finished && /^(?:there is no|não existe|não há) `([\w$.#]+)`(?: (?:in|em|n[oa])\b|\.?$)/i.exec(shaped.text)) ||
      [];
    const name = denied?.split(/[.#]/).at(-1);
    const doc = name ? docs.find(({ lf: text }) => occursIn(text, name)) : undefined;
    return doc && name
      ? { ...shaped, note: t('`{0}` does occur in {1}: the model overlooked it', name, doc.path) }
      : shaped;
  };
}

/** The size of the prompt of `prepareAnswer`. @throws the errors of `prepareAnswer` */
export function measureAnswer(
  layout: Layout,
  options: ChatOptions,
  defaults: SamplingParams,
  sampling?: SamplingParams,
): PromptSize {
  const answerTokens = answerTokensFor(layout, options, defaults, sampling);
  const { promptIds, parts, notes } = promptOf(layout, options, answerTokens);
  return { contextTokens: layout.contextTokens, answerTokens, promptTokens: promptIds.length, parts, notes };
}

function answerTokensFor(
  { contextTokens, text }: Layout,
  { enableThinking }: ChatOptions,
  defaults: SamplingParams,
  sampling?: SamplingParams,
): number {
  const maxTokens = sampling?.maxTokens ?? defaults.maxTokens ?? 256;
  return reservedForAnswer(maxTokens + reservedForReasoning(text, enableThinking), contextTokens);
}

function chatDefaults(layout: Layout): { maxTokens: number; temperature: number; repetitionPenalty: number } {
  const { manifest } = layout.text;
  if (!manifest.can.chat)
    throw new RequestError(
      'badRequest',
      t('{0} cannot answer questions: {1}', manifest.name, layout.text.faults.chat ?? t('it has no chat template')),
    );
  const { maxTokens, temperature, repetitionPenalty } = manifest.chat;
  return { maxTokens, temperature, repetitionPenalty };
}

function promptOf(
  layout: Layout,
  { docs, snippets = [], cursor, definitions, fill, messages, enableThinking, asIs }: ChatOptions,
  answerTokens: number,
): ChatPrompt {
  const [doc, ...others] = docs;
  const { chat, summary } = layout.text.manifest;
  // A question about a selection is not the question for a summary of the file.
  const isOfFile = chat.facts && doc !== undefined && snippets.every(({ startLine }) => startLine === undefined);
  const inItsWords = (content: string): string =>
    isOfFile
      ? knownSummary(knownGreeting(content, chat.greetings), summary.fileQuestion)
      : knownGreeting(content, chat.greetings);
  const fileOf = (each: SourceDocument): AttachedFile => {
    let known: readonly DefinitionLine[] | undefined;
    return { path: each.path, text: each.lf, definitions: definitions && (() => (known ??= definitions(each))) };
  };
  return chatPrompt(layout, {
    doc,
    cursorOffset: doc === undefined || cursor === undefined ? undefined : doc.toLf(cursor),
    ...(fill ? { fill } : {}),
    definitions,
    attached: [
      ...others.map(fileOf),
      ...snippets.map((snippet) => {
        const { path, text, startLine } = snippet;
        return startLine === undefined
          ? fileOf(wholeFile(snippet))
          : { path: shortPath(path), text: lf(text), startLine };
      }),
    ],
    messages: messages.map(({ role, content }) => ({
      role,
      content: role === 'user' && !asIs ? inItsWords(lf(content)) : lf(content),
    })),
    answerTokens,
    enableThinking,
  });
}

/** A file that is not open, as a document. */
export function wholeFile({ path, text }: Snippet): SourceDocument {
  return new SourceDocument(`attached:${path}`, path, text);
}

function lf(text: string): string {
  return text.replaceAll('\r\n', '\n');
}

/** Small models may repeat a phrase without end. Tables and lines of dashes repeat, too, but fewer times. */
const minCopies = (period: number): number => Math.max(5, 72 / period);

/**
 * The answer without line breaks at its start and white space at its end. Stops an answer that repeats itself, but
 * never shortens an answer that the model has ended.
 */
export function shapeAnswer(rawText: string, finished: boolean): Shaped {
  const text = rawText.trimEnd().replace(/^\s*\n/, '');
  if (finished) return { text, stop: true, ...(text === '' ? { note: t('the model gave no answer') } : {}) };
  if (runaway(rawText, minCopies) === undefined) return { text, stop: false };
  return { text, stop: true, note: t('stopped where the answer only repeats itself') };
}
