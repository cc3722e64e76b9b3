/** Answers commands and some questions from the attached files, without the model. Does not parse files. */
import { t } from '@vscode/l10n';
import type { AnswerSource, ChatMessage, Snippet } from '../protocol/tasks.ts';
import { occursIn } from '../text/syntax/occurrences.ts';
import { SourceDocument, shortPath } from '../text/syntax/sourceDocument.ts';
import { grammarFor, MAX_TREES } from '../text/syntax/syntaxTrees.ts';
import { answerFrom, commentAbout, knows } from './answers.ts';
import { headComment, leadingComment } from './extract/comments.ts';
import { entriesOf } from './extract/entries.ts';
import { type Facts, hasFacts } from './extract/facts.ts';
import type { Language } from './intents.ts';
import { parseCommand, type Query, type Question, readQuestions } from './questions.ts';
import { commentAsked } from './selectionComment.ts';
import { quoted, type Title, words } from './sentences.ts';
import { type Source, sourceOf } from './source.ts';

/** An answer without the model. */
export interface KnownAnswer {
  text: string;
  /** Says for the user where the answer comes from. */
  note?: string;
  source: AnswerSource;
}

type FactsOf = (document: SourceDocument) => Facts | undefined;
type Documents = readonly SourceDocument[];

export interface Asked {
  /** The files whose syntax trees are needed. */
  documents: Documents;
  /** Takes the same files with their texts at the time of the question. Undefined if they do not give the answer. */
  answer(documents: Documents, factsOf: FactsOf): KnownAnswer | undefined;
  /** Whether the question asks what the files are for. */
  isSummary?: boolean;
  /** Of the question. */
  language?: Language;
}

interface Conversation {
  messages: readonly ChatMessage[];
  docs: Documents;
  /** Snippets without a line are whole files. */
  snippets?: readonly Snippet[];
}

/**
 * The command or question in the last message. Undefined for a message to the model.
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
  const files = wholeFiles(docs, snippets);
  const command = parseCommand(last.content);
  if (command) return commandAsked(command, last.content, files, language);
  const selected = withQuestions ? commentAsked(last.content, snippets) : undefined;
  if (selected) {
    const text = `${words(selected.language, 'commentSays')}\n\n> ${selected.comment}`;
    const note = t('from the code of {0}, not written by the model', shortPath(selected.path));
    return { documents: [], answer: () => ({ text, note, source: 'files' }) };
  }
  if (!withQuestions || files.length === 0 || files.length > MAX_TREES) return undefined;
  const earlier = messages.slice(0, -1);
  const paths = files.map(({ path }) => path);
  const questions = readQuestions(last.content, paths, earlier.length === 0);
  const [first] = questions;
  if (!first) return undefined;
  const isOfFile = first.query.name === '';
  // "This file" may mean the selected code.
  if (isOfFile && snippets.some(({ startLine }) => startLine !== undefined)) return undefined;
  const isElsewhere = ({ name }: Query): boolean => earlier.some(({ content }) => occursIn(content, name));
  return {
    documents: first.paths.length > 0 ? files.filter(({ path }) => first.paths.includes(path)) : files,
    answer(documents, factsOf) {
      const facts = documents.map(factsOf);
      for (const question of questions) {
        const sources = documents.map((document, i) => sourceOf(document, facts[i], question.language));
        const text = questionAnswer(question, sources, !isOfFile && isElsewhere(question.query));
        if (text !== undefined) return fromFiles(text, documents);
      }
      return undefined;
    },
    isSummary: first.query.intent === 'purpose' && isOfFile,
    language: first.language,
  };
}

const fromFiles = (text: string | undefined, documents: Documents): KnownAnswer | undefined =>
  text === undefined ? undefined : { text, note: noteOf(documents), source: 'files' };

function commandAsked(
  { name, ...command }: NonNullable<ReturnType<typeof parseCommand>>,
  message: string,
  files: Documents,
  language: Language,
): Asked {
  const stock = (title: Title, about: string | undefined, source: AnswerSource = 'stock'): Asked => ({
    documents: [],
    answer: () => ({ text: words(language, title, about), source }),
  });
  if (name === undefined) return stock('noName', message.trim().split(/\s/)[0]);
  if (files.length === 0) return stock('noFile', '', 'unattached');
  if (files.length > MAX_TREES) return stock('tooMany', `${MAX_TREES}`);
  return {
    documents: files,
    answer(documents, factsOf) {
      const sources = documents.map((document) => sourceOf(document, factsOf(document), language));
      return fromFiles(commandAnswer({ ...command, name }, sources), documents);
    },
  };
}

/** The answer for each file, or why there is none. If the facts do not have a name, it is searched in the text. */
function commandAnswer(query: Query, sources: readonly Source[]): string {
  const { name } = query;
  const having = sources.filter(({ document: { lf } }) => name === '' || occursIn(lf, name));
  if (having.length === 0) return missing(name, sources);
  const answers = having.map((source) => {
    const isRead = !source.facts.partial || source.isData;
    const why = isRead ? undefined : source.say(hasFacts(source.document) ? 'noTree' : 'noSyntax');
    const found = name === '' ? undefined : answerFrom({ intent: 'where', name }, source);
    return answerFrom(query, source) ?? [why, found].filter((text) => text !== undefined).join('\n\n');
  });
  return withPaths(answers, having, query, sources.length);
}

/** The answer to a question. Undefined if the facts of the files do not give it for exactly this name. */
function questionAnswer(
  { query, isMarked, isAsked }: Question,
  sources: readonly Source[],
  isElsewhere: boolean,
): string | undefined {
  const { name, owner } = query;
  const asked = sources.filter(({ document: { lf } }) => name === '' || occursIn(lf, name));
  if (asked.length === 0) {
    // "Where is usage?" may ask for the heading "Usage".
    const isThere = sources.some(({ document: { lf } }) => occursIn(lf.toLowerCase(), name.toLowerCase()));
    return (isMarked || (isAsked && !isThere)) && !isElsewhere ? missing(name, sources) : undefined;
  }
  const knowing = asked.filter((each) => name === '' || knows(each, query));
  if (knowing.length === 0 && !isMarked) return undefined;
  if (owner !== undefined && !asked.some((each) => knows(each, { ...query, name: owner }))) return undefined;
  const told = (knowing.length > 0 ? knowing : asked).filter((each) => answerFrom(query, each) !== undefined);
  // A list for some of the files would look like a list for all.
  if (told.length === 0 || (name === '' && told.length < sources.length)) return undefined;
  return withPaths(
    told.map((each) => answerFrom(query, each) as string),
    told,
    query,
    sources.length,
  );
}

function missing(name: string, sources: readonly Source[]): string {
  const paths = sources.map(({ document }) => quoted(document.path)).join(', ');
  return sources[0]?.say('missing', undefined, quoted(name), paths) ?? '';
}

/** Joins the answers. With several files, each answer names its file. */
function withPaths(
  answers: readonly string[],
  sources: readonly Source[],
  { intent, name }: Query,
  numAsked: number,
): string {
  const isNamed = numAsked === 1 || (name === '' && intent !== 'purpose');
  return answers
    .map((text, i) => (isNamed ? text : `${quoted(sources[i]?.document.path ?? '')}: ${text}`))
    .join('\n\n');
}

/** The whole files of a conversation. */
function wholeFiles(docs: Documents, snippets: readonly Snippet[]): Documents {
  const others = snippets.filter(
    ({ path, startLine }) => startLine === undefined && !docs.some((doc) => doc.path === shortPath(path)),
  );
  return [...docs, ...others.map(({ path, text }) => new SourceDocument(`attached:${path}`, path, text))];
}

function noteOf(documents: Documents): string {
  const paths = documents.map(({ path }) => path).join(', ');
  return documents.some((each) => (grammarFor(each) ?? 'css') !== 'css' || entriesOf(each))
    ? t('from the code of {0}, not written by the model', paths)
    : t('from a text search in {0}, not written by the model', paths);
}

/**
 * The comment that is shown instead of a summary: of the file, of a definition, or at the beginning of a selection.
 * @param range of the definition in the LF text, with its name. Without a name, of a selection.
 */
export function summaryComment(
  document: SourceDocument,
  range: { start: number; end: number; label: string } | undefined,
  factsOf: FactsOf,
): KnownAnswer | undefined {
  if (range?.label === '')
    return fromFiles(leadingComment(document.lf.slice(range.start, range.end), document.path), [document]);
  if (!hasFacts(document)) return undefined;
  const facts = range && factsOf(document);
  const name = range?.label.split(/[.#]/).at(-1) ?? '';
  const text = range
    ? facts && commentAbout({ intent: 'purpose', name, within: range }, facts, document.lf)
    : headComment(document.lf, grammarFor(document) === 'python');
  return fromFiles(text, [document]);
}

/** What files define, instead of a summary by the model. Undefined if the definitions of one are not known. */
export function outlineInstead(documents: Documents, language: Language, factsOf: FactsOf): KnownAnswer | undefined {
  const outlines = documents.flatMap(
    (document) => answerFrom({ intent: 'outline', name: '' }, sourceOf(document, factsOf(document), language)) ?? [],
  );
  if (outlines.length === 0 || outlines.length < documents.length) return undefined;
  return fromFiles(outlines.join('\n\n'), documents);
}

/** The declaration of a definition, instead of a summary. @param range in the LF text */
export function signatureInstead(
  document: SourceDocument,
  range: { start: number; end: number; label: string },
  language: Language,
  factsOf: FactsOf,
): KnownAnswer | undefined {
  const name = range.label.split(/[.#]/).at(-1) ?? '';
  const source = sourceOf(document, factsOf(document), language);
  return fromFiles(answerFrom({ intent: 'signature', name, within: range }, source), [document]);
}
