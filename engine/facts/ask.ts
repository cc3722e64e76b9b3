/** Answers commands and some questions from the attached files, without the model. Does not parse files. */
import { t } from '@vscode/l10n';
import type { AnswerSource, ChatMessage, Snippet } from '../protocol/tasks.ts';
import { occursIn } from '../text/syntax/occurrences.ts';
import { SourceDocument, shortPath } from '../text/syntax/sourceDocument.ts';
import { MAX_PARSED_TEXT, MAX_TREES } from '../text/syntax/syntaxTrees.ts';
import { type Answer, answerFrom } from './answers.ts';
import { leadingComment } from './extract/comments.ts';
import { type Facts, NO_FACTS } from './extract/facts.ts';
import type { Language } from './intents.ts';
import { parseCommand, type Query, type Question, readQuestion } from './questions.ts';
import { joined, quoted, Source, type Title, words } from './sentences.ts';

/** An answer without the model. */
export interface KnownAnswer {
  text: string;
  /** Says for the user where the answer comes from. */
  note?: string;
  source: AnswerSource;
}

export type FactsOf = (document: SourceDocument) => Facts | undefined;
type Documents = readonly SourceDocument[];

export interface Asked {
  /** The files whose syntax trees are needed. */
  documents: Documents;
  /** Takes the same files with their texts at the time of the question. Undefined if they do not give the answer. */
  answer(documents: Documents, factsOf: FactsOf): KnownAnswer | undefined;
  /** Whether the question asks what the files are for. */
  isSummary?: boolean;
  /** Of the question. */
  language?: Language | undefined;
}

interface Conversation {
  messages: readonly ChatMessage[];
  docs: Documents;
  /** Snippets without a line are whole files. */
  snippets?: readonly Snippet[];
}

/**
 * The command, or perhaps the question, in the last message. Undefined for a message to the model.
 * @param language of the answers to commands
 * @param withQuestions whether questions in words are answered
 */
export function factsAsked(
  { messages, docs, snippets = [] }: Conversation,
  language: Language,
  withQuestions: boolean,
): Asked | undefined {
  const last = messages.at(-1);
  if (last?.role !== 'user') return undefined;
  const isWhole = ({ path, startLine }: Snippet): boolean =>
    startLine === undefined && !docs.some((doc) => doc.path === shortPath(path));
  const attached = snippets.filter(isWhole).map(({ path, text }) => new SourceDocument(`attached:${path}`, path, text));
  const files = [...docs, ...attached];
  const command = parseCommand(last.content);
  if (command) return commandAsked(command, files, language);
  const selections = snippets.filter(({ startLine }) => startLine !== undefined);
  return withQuestions ? questionAsked(messages, files, selections) : undefined;
}

function commandAsked(query: Query, files: Documents, language: Language): Asked {
  const stock = (source: AnswerSource, title: Title, about = ''): Asked => ({
    documents: [],
    answer: () => ({ text: words(language, title, about), source }),
  });
  if (query.name === '' && !/^(?:outline|imports)$/.test(query.intent))
    return stock('stock', 'noName', `/${query.intent}`);
  if (files.length === 0) return stock('unattached', 'noFile');
  if (files.length > MAX_TREES) return stock('stock', 'tooMany', `${MAX_TREES}`);
  return {
    documents: files,
    answer: (documents, factsOf) => told(query, sourcesOf(documents, factsOf, language), answerOrPlace),
  };
}

/** If the facts do not have a name, it is searched in the text. */
const answerOrPlace: Answer = (query, source) =>
  answerFrom(query, source) ??
  joined([
    query.name === '' || source.facts === NO_FACTS || source.facts.isData
      ? source.say(source.document.lf.length > MAX_PARSED_TEXT ? 'tooLong' : 'unread')
      : undefined,
    query.name === '' ? undefined : answerFrom({ intent: 'where', name: query.name }, source),
  ]);

function questionAsked(messages: readonly ChatMessage[], files: Documents, selections: readonly Snippet[]) {
  const earlier = messages.slice(0, -1);
  // What was answered without the model says nothing of what there is, and may be asked again.
  const said = earlier.filter(({ source }, i) => source === undefined && messages[i + 1]?.source === undefined);
  const around = { paths: files.map(({ path }) => path), hasSelection: selections.length > 0 };
  const text = (messages.at(-1)?.content ?? '').trim().replace(/^\/explain$/i, 'explain this');
  // In the first message, "it" is the file.
  const message = earlier.length + files.length > 1 ? text : text.replace(/\b(it|ele)\b/i, () => files[0]?.path ?? '');
  const read = (known: Iterable<string>) => readQuestion(message, around, new Set(known));
  // A question about the file or the selection needs no names.
  const { query, language } = read([]) ?? {};
  const isSummary = query?.name === '' && query.intent === 'purpose';
  // "This file" may mean the selected code.
  if (query?.name === '' && around.hasSelection)
    return {
      documents: [],
      answer: () => (isSummary ? commentOf(selections, language) : undefined),
      isSummary,
      language,
    };
  if (files.length === 0 || files.length > MAX_TREES) return undefined;
  return {
    documents: files,
    answer(documents: Documents, factsOf: FactsOf) {
      const question = read(sourcesOf(documents, factsOf).flatMap(({ names }) => [...names]));
      return question && answerTo(question, sourcesOf(documents, factsOf, question.language), said);
    },
    isSummary,
    language,
  };
}

/** The comment that the selected code begins with. */
function commentOf([selection, ...others]: readonly Snippet[], language: Language = 'en'): KnownAnswer | undefined {
  const comment = selection && others.length === 0 ? leadingComment(selection.text, selection.path) : undefined;
  if (!selection || comment === undefined) return undefined;
  return fromFiles(`${words(language, 'commentSays')}\n\n> ${comment}`, [{ path: shortPath(selection.path) }]);
}

const sourcesOf = (documents: Documents, factsOf: FactsOf, language?: Language): Source[] =>
  documents.map((document) => new Source(document, factsOf(document), language));

/** The answer to a question. Undefined if the facts of the files do not give it for exactly this name. */
function answerTo({ query, paths }: Question, sources: readonly Source[], earlier: readonly ChatMessage[]) {
  const { intent, name, owner } = query;
  const asked = sources.filter(({ document: { path } }) => paths.length === 0 || paths.includes(path));
  // A name that is not there may be a file, the heading "Usage" or a product, and its owner a variable.
  const isOther =
    owner !== undefined ||
    intent === 'purpose' ||
    earlier.some(({ content }) => occursIn(content, name)) ||
    asked.some(({ document: { lf } }) => occursIn(lf.toLowerCase(), name.toLowerCase()));
  const isKnown = asked.some((source) => source.has(name) && (owner === undefined || source.names.has(owner)));
  return isKnown || !isOther ? told(query, asked, answerFrom) : undefined;
}

/** Joins the answers of the files that have the name. With several files, each answer names its file. */
function told(query: Query, sources: readonly Source[], answer: Answer): KnownAnswer | undefined {
  const { intent, name } = query;
  const documents = sources.map(({ document }) => document);
  const having = sources.filter((source) => source.has(name));
  const paths = documents.map(({ path }) => quoted(path)).join(', ');
  if (having.length === 0) return fromFiles(sources[0]?.say('missing', quoted(name), undefined, paths), documents);
  const isNamed = sources.length === 1 || (name === '' && intent !== 'purpose');
  const texts = having.flatMap((source) => {
    const text = answer(query, source);
    return text === undefined ? [] : [isNamed ? text : `${quoted(source.document.path)}: ${text}`];
  });
  // A list for some of the files would look like a list for all.
  const isAll = name !== '' || texts.length === sources.length;
  return texts.length > 0 && isAll ? fromFiles(texts.join('\n\n'), documents) : undefined;
}

export function fromFiles(text: string | undefined, documents: readonly { path: string }[]): KnownAnswer | undefined {
  if (text === undefined) return undefined;
  const note = t('from the code of {0}, not written by the model', documents.map(({ path }) => path).join(', '));
  return { text, note, source: 'files' };
}

/** A fact of files, to be shown instead of a summary by the model. Undefined if one of them does not give it. */
export function factOf(query: Query, documents: Documents, language: Language, factsOf: FactsOf) {
  const texts = sourcesOf(documents, factsOf, language).map((source) => answerFrom(query, source));
  return texts.length === 0 || texts.includes(undefined) ? undefined : fromFiles(texts.join('\n\n'), documents);
}
