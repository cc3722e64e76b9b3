/** A chat task: its prompt, its sampling, and how an answer is shown while it streams. Pure. */
import { t } from '@vscode/l10n';
import { RequestError } from '../protocol/errors.ts';
import type { PromptSize } from '../protocol/stats.ts';
import type { ChatMessage, SamplingParams, Snippet } from '../protocol/tasks.ts';
import { type ChatPrompt, chatPrompt } from '../text/prompt/chatPrompt.ts';
import { hasFacts } from '../facts/extract/facts.ts';
import type { Layout } from '../text/prompt/layout.ts';
import { type SourceDocument, shortPath } from '../text/syntax/sourceDocument.ts';
import { askedToDescribe, type Claim, inOwnWords, OF_ITSELF, questionOf, standsIn, together } from '../facts/claims.ts';
import { isStock, isSurelyName, placeOf, withoutDenial } from '../facts/denial.ts';
import { askedOfFiles, noteOf, parsedFiles } from '../facts/factFiles.ts';
import { type FactQuestion, factQuestion } from '../facts/factQuestion.ts';
import { WORDS } from '../facts/factWords.ts';
import { occursIn } from '../facts/factWhere.ts';
import { isAbout, isGreeting, isTalk, knownGreeting, knownSummary } from '../facts/greeting.ts';
import { prefillRanges } from './prefillRanges.ts';
import { type PreparedRequest, type Shaped, answerRoom, samplingFor } from './preparedRequest.ts';
import { languageOf } from '../facts/questionLanguage.ts';
import { runaway } from './repetition.ts';
import { leansOnFiles, unreadAnswer } from '../facts/unreadFiles.ts';

export interface ChatOptions {
  messages: readonly ChatMessage[];
  /** The first is the shared file block, the others enter the first question. */
  docs: readonly SourceDocument[];
  /** Those with a line are selections and enter the last question, the others the first. */
  snippets?: readonly Snippet[];
  /** In the first document, of the host's text: which part of a large file is shown. */
  cursor?: number;
}

/** What the files say to a question; undefined where they do not settle it. */
export type Tell = (question: FactQuestion) => string | undefined;

/** Throws `badRequest` for a model that cannot chat or messages its template refuses, `contextTooLong` for a question that does not fit. */
export function prepareChat(
  layout: Layout,
  asked: ChatOptions,
  sampling?: SamplingParams,
  tell: Tell = () => undefined,
): PreparedRequest {
  const options = ofTheModel(layout, asked);
  const { facts } = layout.text.manifest.chat;
  // A large model may know by itself what it is asked, and that the file was not read its notes say.
  const prepared = ofGreeting(
    prepareAnswer(layout, options, chatDefaults(layout), sampling, facts && leansOnFiles(options.messages)),
    asked.messages,
  );
  if (!facts) return prepared;
  const given = [
    ...options.docs.map(({ path, language, lf: text }) => ({ path, language, text, startLine: 1 })),
    ...(options.snippets ?? []).map(({ path, text, startLine }) => ({
      path: shortPath(path),
      text: lf(text),
      ...(startLine === undefined ? {} : { startLine }),
    })),
  ];
  // What the last question is about was perhaps named before.
  const said = asked.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []));
  const last = said.at(-1) ?? '';
  const words = WORDS[languageOf(last)];
  const isOther = asked.docs.length > 0 && !asked.docs.some(hasFacts);
  const beyond = { text: isOther ? words.otherLanguage : words.beyond, stop: true, source: 'stock' } as const;
  const shape = withoutDenial(prepared.shape, given, said, beyond);
  if (isAbout(last)) return { ...prepared, shape: () => ({ text: words.about, stop: true, source: 'stock' }) };
  if (isTalk(last)) return { ...prepared, shape };
  const paths = options.docs.map(({ path }) => path);
  const behindPlace = (sentence: string): string => {
    const place = placeOfName(last, paths, tell);
    return place === '' ? '' : together(place, sentence);
  };
  const shown = inOwnWords(shape, {
    describes: described(asked, paths),
    lead: () => behindPlace(words.guess) || words.guesses,
    without: () => behindPlace(words.noComment),
    head: () => tell(OF_ITSELF) ?? '',
    // Of code that is given along, its own comment is an answer.
    ...(bringsCode(asked)
      ? {}
      : { stands: (sentence) => options.docs.some(({ lf: text }) => standsIn(sentence, text)) }),
    instead: (claim) => factInstead(claim, last, paths, tell),
    beyond,
  });
  return {
    ...prepared,
    shape: (rawText, finished) => {
      const { note, ...shaped } = shown(rawText, finished);
      return shaped.source === 'files'
        ? { ...shaped, note: noteOf(parsedFiles(options)) }
        : { ...shaped, ...(note === undefined ? {} : { note }) };
    },
  };
}

/** Whether the question has code along, or code is selected. */
const bringsCode = ({ messages, snippets = [] }: ChatOptions): boolean =>
  messages.at(-1)?.content.includes('\n') === true || snippets.some(({ startLine }) => startLine !== undefined);

/** What of code is described is an answer: it was asked for, and there is some. */
function described(options: ChatOptions, paths: readonly string[]): 'nothing' | 'guess' | 'file' {
  if (bringsCode(options)) return 'guess';
  const { messages, docs } = options;
  const last = messages.at(-1)?.content ?? '';
  const asked = askedToDescribe(last);
  // Code that was said before may be meant.
  if (asked !== undefined && messages.slice(0, -1).some(({ content }) => content.includes('```'))) return 'guess';
  if (asked === undefined || docs.length === 0) return 'nothing';
  if (asked === 'file') return 'file';
  return factQuestion(last, ...paths) === undefined ? 'nothing' : 'guess';
}

/** Where what a message asks about is defined; '' where that is not known. */
function placeOfName(message: string, paths: readonly string[], tell: Tell): string {
  const question = factQuestion(message, ...paths);
  return (question && question.name !== '' && tell({ ...question, kind: 'where' })) || '';
}

/** What the files say of what a claim is about, if that was asked of. */
function factInstead(claim: Claim, message: string, paths: readonly string[], tell: Tell): string {
  const subject = factQuestion(message, ...paths)?.name;
  const question = questionOf(claim, subject, languageOf(message));
  // What a file has is no yes or no, and no reason.
  if (
    !question ||
    OTHERWISE.test(message.trim()) ||
    (claim.name === '' && !ABOUT_FILE.test(message)) ||
    (claim.name && !occursIn(message.toLowerCase(), (question.parameter ?? question.name).toLowerCase()))
  )
    return '';
  return tell(question) ?? '';
}

const OTHERWISE =
  /^(?:(?:does|do|did|is|are|was|were|should|has|have|why|when|who|if|how (?:many|much|fast|long)|write|make|add|fix|rename|refactor|translate|convert)(?!\p{L})|(?:[eo]le|este|esse|há|existe|pode|posso|devo|por que|porque|quando|quem|quantos|quantas|escreva|faça(?! um resumo)|corrija|adicione|traduza)(?!\p{L}))/iu;

/** What asks of a file what it has. */
const ABOUT_FILE =
  /(?<!\p{L})(?:file|module|code|script|define|declare|import|export|contain|contents|inside|there|here|need|depend|package|librar|arquivo|módulo|código|importa|exporta|contém|tem|ali|aqui|depende|pacote|bibliote|summar|overview|resum|explain|explique|describe|descrev|everything|tudo)/iu;

/** What a greeting is greeted with is no more than that. */
function ofGreeting(prepared: PreparedRequest, messages: readonly ChatMessage[]): PreparedRequest {
  return isGreeting(messages.at(-1)?.content ?? '')
    ? { ...prepared, shape: (rawText, finished) => ({ ...prepared.shape(rawText, finished), source: 'stock' }) }
    : prepared;
}

/** What `prepareChat` would make of it; throws what that throws. */
export function measureChat(layout: Layout, options: ChatOptions, sampling?: SamplingParams): PromptSize {
  return measureAnswer(layout, ofTheModel(layout, options), chatDefaults(layout), sampling);
}

/**
 * Without earlier turns that the files answer by themselves, where they do, or to which something was said in the model's place: a small model goes on in those words, about whatever it is asked,
 * and what it makes up reads like what was read off the file.
 */
function ofTheModel(layout: Layout, options: ChatOptions): ChatOptions {
  if (!layout.text.manifest.chat.facts) return options;
  const { messages, docs, snippets } = options;
  const known = messages.map(
    ({ role }, i) =>
      role === 'user' &&
      i + 1 < messages.length &&
      (isStock(messages[i + 1]?.content) || askedOfFiles(messages.slice(0, i + 1), docs, snippets)?.mayBeIn === true),
  );
  return { ...options, messages: messages.filter((_, i) => !known[i] && !known[i - 1]) };
}

/** The same for any question about a document, with a task's own sampling. @param ofFiles whether it can be about nothing but the files. */
export function prepareAnswer(
  layout: Layout,
  options: ChatOptions,
  defaults: SamplingParams,
  sampling?: SamplingParams,
  ofFiles = false,
): PreparedRequest {
  const prompt = promptOf(layout, options, roomFor(layout, defaults, sampling));
  const unread = ofFiles ? unreadAnswer(layout, prompt.unread) : undefined;
  return {
    promptIds: prompt.promptIds,
    blockTokens: prompt.numBlockTokens,
    prefill: prefillRanges(prompt.numBlockTokens, prompt.userTexts(), layout.fewestPrefill),
    docId: options.docs[0]?.docId ?? null,
    sampling: samplingFor(sampling, defaults, prompt.promptIds.length, layout.contextTokens),
    stopTokenIds: layout.text.chatStopIds,
    isProse: true,
    shape: contradicted(
      options.docs,
      options.messages.map(({ content }) => content),
    ),
    notes: prompt.notes,
    ...(unread ? { unread } : {}),
  };
}

/** `shapeAnswer` with a note where the answer denies what stands in a file: small models overlook it, and say so with confidence. */
function contradicted(docs: readonly SourceDocument[], asked: readonly string[]): PreparedRequest['shape'] {
  return (rawText, finished) => {
    const shaped = shapeAnswer(rawText, finished);
    const [, denied] = (finished && /^there is no `([\w$.#]+)`(?: in\b|\.?$)/i.exec(shaped.text)) || [];
    if (denied === undefined || !isSurelyName(denied, asked)) return shaped;
    const place = placeOf(
      denied,
      docs.map(({ path, language, lf: text }) => ({ path, language, text })),
    );
    return place
      ? { ...shaped, note: t('`{0}` does occur in {1}: the model overlooks things', place.name, place.path) }
      : shaped;
  };
}

/** What `prepareAnswer` would make of it; throws what that throws. */
export function measureAnswer(
  layout: Layout,
  options: ChatOptions,
  defaults: SamplingParams,
  sampling?: SamplingParams,
): PromptSize {
  const answerTokens = roomFor(layout, defaults, sampling);
  const { promptIds, parts, notes } = promptOf(layout, options, answerTokens);
  return { contextTokens: layout.contextTokens, answerTokens, promptTokens: promptIds.length, parts, notes };
}

function roomFor({ contextTokens }: Layout, defaults: SamplingParams, sampling?: SamplingParams): number {
  return answerRoom(sampling?.maxTokens ?? defaults.maxTokens ?? 256, contextTokens);
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
  { docs, snippets = [], cursor, messages }: ChatOptions,
  answerTokens: number,
): ChatPrompt {
  const [doc, ...others] = docs;
  const { chat, summary } = layout.text.manifest;
  // Of a selection something else is asked.
  const isOfFile = chat.facts && doc !== undefined && snippets.every(({ startLine }) => startLine === undefined);
  const inItsWords = (content: string): string =>
    isOfFile
      ? knownSummary(knownGreeting(content, chat.greetings), summary.fileQuestion)
      : knownGreeting(content, chat.greetings);
  return chatPrompt(layout, {
    doc,
    cursorOffset: doc === undefined || cursor === undefined ? undefined : doc.toLf(cursor),
    attached: [
      ...others.map(({ path, lf }) => ({ path, text: lf })),
      ...snippets.map(({ path, text, startLine }) => ({
        path: shortPath(path),
        text: lf(text),
        ...(startLine === undefined ? {} : { startLine }),
      })),
    ],
    messages: messages.map(({ role, content }) => ({
      role,
      content: role === 'user' ? inItsWords(lf(content)) : lf(content),
    })),
    answerTokens,
  });
}

function lf(text: string): string {
  return text.replaceAll('\r\n', '\n');
}

/** Small models may repeat a phrase for ever; tables and rulers repeat too, but not for so long. */
const minCopies = (period: number): number => Math.max(5, 72 / period);

/** The answer without line breaks at its start and white space at its end; stops one that goes round in circles. One that the model has ended is never shortened. */
export function shapeAnswer(rawText: string, finished: boolean): Shaped {
  const text = rawText.trimEnd().replace(/^\s*\n/, '');
  if (finished) return { text, stop: true, ...(text === '' ? { note: t('the model gave no answer') } : {}) };
  if (runaway(rawText, minCopies) === undefined) return { text, stop: false };
  return { text, stop: true, note: t('stopped where the answer only repeats itself') };
}
