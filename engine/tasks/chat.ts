/** A chat task: its prompt, its sampling, and how an answer is shown while it streams. Pure. */
import { RequestError } from '../errors.ts';
import type { ChatMessage, SamplingParams } from '../protocol.ts';
import { chatPrompt } from '../text/chatPrompt.ts';
import type { Layout } from '../text/layout.ts';
import type { SourceDocument } from '../text/sourceDocument.ts';
import { type PreparedRequest, type Shaped, answerRoom, samplingFor } from './preparedRequest.ts';
import { runaway } from './repetition.ts';

export interface ChatOptions {
  messages: readonly ChatMessage[];
  /** The first is the shared file block, the others enter the first question. */
  docs: readonly SourceDocument[];
  /** In the first document, of the host's text: which part of a large file is shown. */
  cursor?: number;
}

/** Throws `badRequest` for a model that cannot chat or messages its template refuses, `contextTooLong` for a question that does not fit. */
export function prepareChat(layout: Layout, options: ChatOptions, sampling?: SamplingParams): PreparedRequest {
  const { manifest } = layout.text;
  if (!manifest.can.chat) throw new RequestError('badRequest', `${manifest.name} cannot answer questions: it has no chat template`);
  const { maxTokens, temperature, repetitionPenalty } = manifest.chat;
  return prepareAnswer(layout, options, { maxTokens, temperature, repetitionPenalty }, sampling);
}

/** The same for any question about a document, with a task's own sampling. */
export function prepareAnswer(layout: Layout, options: ChatOptions, defaults: SamplingParams, sampling?: SamplingParams): PreparedRequest {
  const [doc, ...others] = options.docs;
  const prompt = chatPrompt(layout, {
    doc,
    others,
    cursorOffset: doc === undefined || options.cursor === undefined ? undefined : doc.toLf(options.cursor),
    messages: options.messages.map(({ role, content }) => ({ role, content: content.replaceAll('\r\n', '\n') })),
    answerTokens: answerRoom(sampling?.maxTokens ?? defaults.maxTokens ?? 256, layout.contextTokens),
  });
  return {
    promptIds: prompt.promptIds,
    blockTokens: prompt.numBlockTokens,
    docId: doc?.docId ?? null,
    sampling: samplingFor(sampling, defaults, prompt.promptIds.length, layout.contextTokens),
    stopTokenIds: layout.text.chatStopIds,
    shape: shapeAnswer,
    notes: prompt.notes,
  };
}

/** Small models may repeat a phrase for ever; tables and rulers repeat too, but not for so long. */
const minCopies = (period: number): number => Math.max(5, 72 / period);

/** The answer without line breaks at its start and white space at its end; ends one that goes round in circles. */
export function shapeAnswer(rawText: string, finished: boolean): Shaped {
  const text = rawText.trimEnd().replace(/^\s*\n/, '');
  if (finished) return { text, stop: true, ...(text === '' ? { note: 'the model gave no answer' } : {}) };
  if (runaway(rawText, minCopies) !== undefined) return { text, stop: true, note: 'stopped where the answer only repeats itself' };
  return { text, stop: false };
}
