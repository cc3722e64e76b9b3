/** Answers commands and some questions from the attached files, without the model. Does not parse files. */
import { t } from '@vscode/l10n';
import type { AnswerSource, ChatMessage, Snippet } from '../protocol/tasks.ts';
import { occursIn } from '../text/syntax/occurrences.ts';
import { SourceDocument, shortPath } from '../text/syntax/sourceDocument.ts';
import { grammarFor, MAX_TREES } from '../text/syntax/syntaxTrees.ts';
import { answerFrom } from './answers.ts';
import { leadingComment } from './extract/comments.ts';
import { entriesOf } from './extract/entries.ts';
import { type Facts, hasFacts } from './extract/facts.ts';
import type { Language } from './intents.ts';
import { parseCommand, type Query, type Question, readQuestion } from './questions.ts';
import { quoted, type Title, words } from './sentences.ts';
import { namesIn, type Source, sourceOf } from './source.ts';

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
  if (command) return commandAsked(command, last.content, files, language);
  const selections = snippets.filter(({ startLine }) => startLine !== undefined);
  return withQuestions ? questionAsked(messages, files, selections) : undefined;
}

function commandAsked(
  { name, ...command }: NonNullable<ReturnType<typeof parseCommand>>,
  message: string,
  files: Documents,
  language: Language,
): Asked {
  const stock = (title: Title, about: string, source: AnswerSource): Asked => ({
    documents: [],
    answer: () => ({ text: words(language, title, about), source }),
  });
  if (name === undefined) return stock('noName', message.trim().split(/\s/)[0] ?? '', 'stock');
  if (files.length === 0) return stock('noFile', '', 'unattached');
  if (files.length > MAX_TREES) return stock('tooMany', `${MAX_TREES}`, 'stock');
  const query = { ...command, name };
  return {
    documents: files,
    answer(documents, factsOf) {
      const sources = documents.map((document) => sourceOf(document, factsOf(document), language));
      const having = sources.filter((source) => isIn(source, name));
      return told(query, having, sources, (source) => {
        // If the facts do not have a name, it is searched in the text.
        const found = name === '' ? undefined : answerFrom({ intent: 'where', name }, source);
        const why = source.say(hasFacts(source.document) ? 'noTree' : 'noSyntax');
        const unread = source.facts.partial && !source.isData ? why : undefined;
        return answerFrom(query, source) ?? [unread, found].filter(Boolean).join('\n\n');
      });
    },
  };
}

function questionAsked(
  messages: readonly ChatMessage[],
  files: Documents,
  selections: readonly Snippet[],
): Asked | undefined {
  const earlier = messages.slice(0, -1);
  const message =
    messages
      .at(-1)
      ?.content.trim()
      .replace(/^\/explain$/i, 'explain this') ?? '';
  const around = { paths: files.map(({ path }) => path), isFirst: earlier.length === 0 };
  const read = (known: ReadonlySet<string>) => readQuestion(message, around, known);
  // A question about the file or the selection needs no names.
  const { query, language, isOfSelection } = read(new Set()) ?? {};
  const isSummary = query?.name === '' && query.intent === 'purpose';
  if (isOfSelection && (!isSummary || selections.length === 0)) return undefined;
  if (isOfSelection) return { documents: [], answer: () => commentOf(selections, language), isSummary };
  // "This file" may mean the selected code.
  if (files.length === 0 || files.length > MAX_TREES || (query?.name === '' && selections.length > 0)) return undefined;
  return {
    documents: files,
    answer(documents, factsOf) {
      const sourcesIn = (each: Language) => documents.map((document) => sourceOf(document, factsOf(document), each));
      const known = sourcesIn('en').flatMap((source) => [...namesIn(source), ...source.facts.localNames]);
      const question = read(new Set(known));
      if (!question) return undefined;
      const { paths } = question;
      const sources = sourcesIn(question.language);
      const asked = sources.filter(({ document: { path } }) => paths.length === 0 || paths.includes(path));
      return answerTo(question, asked, earlier);
    },
    isSummary,
    language,
  };
}

/** The comment that the selected code begins with. */
function commentOf(selections: readonly Snippet[], language: Language = 'en'): KnownAnswer | undefined {
  const [selection, ...others] = selections;
  const comment = selection && others.length === 0 ? leadingComment(selection.text, selection.path) : undefined;
  if (!selection || comment === undefined) return undefined;
  const note = t('from the code of {0}, not written by the model', shortPath(selection.path));
  return { text: `${words(language, 'commentSays')}\n\n> ${comment}`, note, source: 'files' };
}

const isIn = ({ document: { lf } }: Source, name: string): boolean => name === '' || occursIn(lf, name);

/** What a question may be about that asks for nothing in the files: "What is GitHub?", "What does `npm install` do?" */
const PRODUCT = /^(?:\p{Lu}|\p{Ll}\p{Lu}|\p{Ll}+\p{Lu}{2,}$)/u;
const ELSEWHERE =
  /\s|^(?:async|await|const|defer|export|extends|final|finally|import|lambda|let|readonly|static|super|throw|var|yield)$/;

/** The answer to a question. Undefined if the facts of the files do not give it for exactly this name. */
function answerTo(
  { query, isMarked }: Question,
  sources: readonly Source[],
  earlier: readonly ChatMessage[],
): KnownAnswer | undefined {
  const { intent, name, owner } = query;
  const having = sources.filter((source) => isIn(source, name));
  if (having.length === 0) {
    // `money.ts` may be a file, and `usage` the heading "Usage".
    const mayBe =
      owner !== undefined ||
      sources.some(({ document: { lf } }) => occursIn(lf.toLowerCase(), name.toLowerCase())) ||
      earlier.some(({ content }) => occursIn(content, name)) ||
      (intent === 'purpose' && (isMarked ? ELSEWHERE : PRODUCT).test(name));
    return mayBe ? undefined : told(query, [], sources);
  }
  const knowing = having.filter((source) => name === '' || namesIn(source).has(name));
  if (owner !== undefined && !having.some((source) => namesIn(source).has(owner))) return undefined;
  const asked = (knowing.length > 0 || !isMarked ? knowing : having).filter((source) => answerFrom(query, source));
  // A list for some of the files would look like a list for all.
  return asked.length === 0 || (name === '' && asked.length < sources.length) ? undefined : told(query, asked, sources);
}

/** Joins the answers of some of the files. With several files, each answer names its file. */
function told(
  { intent, name, ...query }: Query,
  some: readonly Source[],
  all: readonly Source[],
  answerOf = (source: Source) => answerFrom({ intent, name, ...query }, source) ?? '',
): KnownAnswer | undefined {
  const documents = all.map(({ document }) => document);
  const paths = documents.map(({ path }) => quoted(path)).join(', ');
  if (some.length === 0) return fromFiles(all[0]?.say('missing', undefined, quoted(name), paths), documents);
  const isNamed = all.length === 1 || (name === '' && intent !== 'purpose');
  const texts = some.map((source) =>
    isNamed ? answerOf(source) : `${quoted(source.document.path)}: ${answerOf(source)}`,
  );
  return fromFiles(texts.join('\n\n'), documents);
}

/** An answer with its note. */
export function fromFiles(text: string | undefined, documents: Documents): KnownAnswer | undefined {
  if (text === undefined) return undefined;
  const paths = documents.map(({ path }) => path).join(', ');
  const isRead = documents.some((each) => (grammarFor(each) ?? 'css') !== 'css' || entriesOf(each));
  const note = isRead
    ? t('from the code of {0}, not written by the model', paths)
    : t('from a text search in {0}, not written by the model', paths);
  return { text, note, source: 'files' };
}

/** A fact of files, to be shown instead of a summary by the model. Undefined if one of them does not give it. */
export function factOf(query: Query, documents: Documents, language: Language, factsOf: FactsOf) {
  const texts = documents.map((document) => answerFrom(query, sourceOf(document, factsOf(document), language)));
  return texts.length === 0 || texts.includes(undefined) ? undefined : fromFiles(texts.join('\n\n'), documents);
}
