/** Answers commands and some questions from the attached files, without the model. Does not parse files. */
import { t } from '@vscode/l10n';
import type { AnswerSource, ChatMessage, Snippet } from '../protocol/tasks.ts';
import { SourceDocument, shortPath } from '../text/syntax/sourceDocument.ts';
import { grammarFor, MAX_TREES } from '../text/syntax/syntaxTrees.ts';
import { answerFrom, commentAbout } from './answers.ts';
import { headComment } from './extract/comments.ts';
import { type Facts, hasFacts, NO_FACTS } from './extract/facts.ts';
import { occursIn, type Source, type Language, quoted, WORDS, type Words } from './words.ts';
import { type FactQuery, parseCommand, type Question, readQuestion } from './factQuestions.ts';

/** An answer without the model. */
export interface KnownAnswer {
  text: string;
  /** Says for the user where the answer comes from. */
  note?: string;
  source: AnswerSource;
}

type FactsOf = (document: SourceDocument) => Facts | undefined;

export interface Asked {
  /** The files whose syntax trees are needed. */
  documents: readonly SourceDocument[];
  /** Takes the same files with their texts at the time of the question. Undefined if they do not give the answer. */
  answer(documents: readonly SourceDocument[], factsOf: FactsOf): KnownAnswer | undefined;
}

interface Conversation {
  messages: readonly ChatMessage[];
  docs: readonly SourceDocument[];
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
  if (command) return commandAsked(command, last.content, files, WORDS[language]);
  if (!withQuestions || files.length === 0 || files.length > MAX_TREES) return undefined;
  const earlier = messages.slice(0, -1);
  const question = readQuestion(
    last.content,
    files.map(({ path }) => path),
    earlier.length === 0,
  );
  if (!question) return undefined;
  // "This file" may mean the selected code.
  const isOfFile = question.query.name === '';
  if (isOfFile && snippets.some(({ startLine }) => startLine !== undefined)) return undefined;
  const isElsewhere = !isOfFile && earlier.some(({ content }) => occursIn(content, question.query.name));
  const documents = question.paths.length > 0 ? files.filter(({ path }) => question.paths.includes(path)) : files;
  return {
    documents,
    answer: (parsed, factsOf) => {
      const text = questionAnswer(question, parsed, factsOf, isElsewhere);
      return text === undefined ? undefined : { text, note: noteOf(parsed), source: 'files' };
    },
  };
}

const stock = (text: string): Asked => ({ documents: [], answer: () => ({ text, source: 'stock' }) });

function commandAsked(
  { name, ...command }: NonNullable<ReturnType<typeof parseCommand>>,
  message: string,
  files: readonly SourceDocument[],
  words: Words,
): Asked {
  if (name === undefined) return stock(words.noName(message.trim().split(/\s/)[0] as string));
  if (files.length === 0) return stock(words.noFile);
  if (files.length > MAX_TREES) return stock(words.tooMany(MAX_TREES));
  const query = { ...command, name };
  return {
    documents: files,
    answer: (documents, factsOf) => ({
      text: commandAnswer(query, documents, factsOf, words),
      note: noteOf(documents),
      source: 'files',
    }),
  };
}

/** The answer for each file, or why there is none. If the facts do not have a name, it is searched in the text. */
function commandAnswer(query: FactQuery, documents: readonly SourceDocument[], factsOf: FactsOf, words: Words): string {
  const { name } = query;
  const having = documents.filter(({ lf }) => name === '' || occursIn(lf, name));
  if (having.length === 0) return missing(name, documents, words);
  const answers = having.map((document) => {
    const source = sourceOf(document, words);
    const facts = factsOf(document);
    const answer = facts && answerFrom(query, facts, source);
    if (answer !== undefined) return answer;
    const found = name === '' ? undefined : answerFrom({ kind: 'where', name }, facts ?? NO_FACTS, source);
    const why = facts ? [] : [hasFacts(document) ? words.noTree(source.path) : words.noSyntax(source.path)];
    return [...why, ...(found === undefined ? [] : [found])].join('\n\n');
  });
  return withPaths(having, answers, query, documents.length);
}

/** The answer to a question. Undefined if the facts of the files do not give it for exactly this name. */
function questionAnswer(
  { query, language, isMarked }: Question,
  documents: readonly SourceDocument[],
  factsOf: FactsOf,
  isElsewhere: boolean,
): string | undefined {
  const words = WORDS[language];
  const { name, owner } = query;
  if (name !== '' && !documents.some(({ lf }) => occursIn(lf, name)))
    return isMarked && !isElsewhere ? missing(name, documents, words) : undefined;
  const asked = documents.filter(({ lf }) => name === '' || occursIn(lf, name));
  const knowing = asked.filter((each) => name === '' || knows(factsOf(each), name));
  if (knowing.length === 0 && !isMarked) return undefined;
  if (owner !== undefined && !asked.some((each) => knows(factsOf(each), owner))) return undefined;
  const answers = (knowing.length > 0 ? knowing : asked).flatMap((document) => {
    const facts = factsOf(document);
    const text = facts && answerFrom(query, facts, sourceOf(document, words));
    return text === undefined ? [] : [{ document, text }];
  });
  // A list for some of the files would look like a list for all.
  if (answers.length === 0 || (name === '' && answers.length < documents.length)) return undefined;
  return withPaths(
    answers.map(({ document }) => document),
    answers.map(({ text }) => text),
    query,
    documents.length,
  );
}

/** Whether the name is known from the syntax tree. */
const knows = (facts: Facts | undefined, name: string): boolean =>
  facts !== undefined &&
  (facts.definitions.some((each) => each.name === name) ||
    facts.imports.some(({ names }) => names.includes(name)) ||
    facts.fields.some((each) => each.name === name) ||
    (!/^\p{Ll}+$/u.test(name) && facts.localNames.has(name)));

const sourceOf = ({ lf, path }: SourceDocument, words: Words): Source => ({ text: lf, path: quoted(path), words });

const missing = (name: string, documents: readonly SourceDocument[], words: Words): string =>
  words.missing(quoted(name), words.or(documents.map(({ path }) => quoted(path))));

/** Joins the answers. With several files, each answer names its file. */
function withPaths(
  documents: readonly SourceDocument[],
  answers: readonly string[],
  { kind, name }: FactQuery,
  numAsked: number,
): string {
  const isNamed = name === '' && kind !== 'purpose';
  return answers
    .map((answer, i) =>
      numAsked === 1 || isNamed ? answer : `${quoted((documents[i] as SourceDocument).path)}: ${answer}`,
    )
    .join('\n\n');
}

/** The whole files of a conversation. */
function wholeFiles(docs: readonly SourceDocument[], snippets: readonly Snippet[]): readonly SourceDocument[] {
  const others = snippets.filter(
    ({ path, startLine }) => startLine === undefined && !docs.some((doc) => doc.path === shortPath(path)),
  );
  return [...docs, ...others.map(({ path, text }) => new SourceDocument(`attached:${path}`, path, text))];
}

function noteOf(documents: readonly SourceDocument[]): string {
  const paths = documents.map(({ path }) => path).join(', ');
  return documents.some(hasFacts)
    ? t('from the code of {0}, not written by the model', paths)
    : t('from a text search in {0}, not written by the model', paths);
}

/**
 * The comment that is shown instead of a summary: of the file, or of a definition.
 * @param range of the definition in the LF text, with its name
 */
export function summaryComment(
  document: SourceDocument,
  range: { start: number; end: number; label: string } | undefined,
  factsOf: FactsOf,
): KnownAnswer | undefined {
  if (!hasFacts(document)) return undefined;
  const facts = range && factsOf(document);
  const name = range?.label.split(/[.#]/).at(-1) ?? '';
  const text = range
    ? facts && commentAbout({ kind: 'purpose', name, within: range }, facts, document.lf)
    : headComment(document.lf, grammarFor(document) === 'python');
  return text === undefined ? undefined : { text, note: noteOf([document]), source: 'files' };
}
