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
    answer: (parsed, factsOf) => fromFiles(questionAnswer(question, parsed, factsOf, isElsewhere), parsed),
  };
}

const fromFiles = (text: string | undefined, documents: readonly SourceDocument[]): KnownAnswer | undefined =>
  text === undefined ? undefined : { text, note: noteOf(documents), source: 'files' };

const stock = (text: string): Asked => ({ documents: [], answer: () => ({ text, source: 'stock' }) });

function commandAsked(
  { name, ...command }: NonNullable<ReturnType<typeof parseCommand>>,
  message: string,
  files: readonly SourceDocument[],
  words: Words,
): Asked {
  if (name === undefined) return stock(words.noName(message.trim().split(/\s/)[0] as string));
  if (files.length === 0) return { documents: [], answer: () => ({ text: words.noFile, source: 'unattached' }) };
  if (files.length > MAX_TREES) return stock(words.tooMany(MAX_TREES));
  const query = { ...command, name };
  return {
    documents: files,
    answer: (documents, factsOf) => fromFiles(commandAnswer(query, documents, factsOf, words), documents),
  };
}

/** The answer for each file, or why there is none. If the facts do not have a name, it is searched in the text. */
function commandAnswer(query: FactQuery, documents: readonly SourceDocument[], factsOf: FactsOf, words: Words): string {
  const { name } = query;
  const having = documents.filter(({ lf }) => name === '' || occursIn(lf, name));
  if (having.length === 0) return missing(name, documents, words);
  const answers = having.map((document) => {
    const facts = factsOf(document);
    const source = sourceOf(document, facts ?? NO_FACTS, words);
    const answer = facts && answerFrom(query, source);
    if (answer !== undefined) return { document, text: answer };
    const why = facts ? undefined : hasFacts(document) ? words.noTree(source.path) : words.noSyntax(source.path);
    const found = name === '' ? undefined : answerFrom({ kind: 'where', name }, source);
    return { document, text: [why, found].filter((text) => text !== undefined).join('\n\n') };
  });
  return withPaths(answers, query, documents.length);
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
  const asked = documents.filter(({ lf }) => name === '' || occursIn(lf, name));
  if (asked.length === 0 && name !== '') return isMarked && !isElsewhere ? missing(name, documents, words) : undefined;
  const knowing = asked.filter((each) => name === '' || knows(factsOf(each), name));
  if (knowing.length === 0 && !isMarked) return undefined;
  if (owner !== undefined && !asked.some((each) => knows(factsOf(each), owner))) return undefined;
  const answers = (knowing.length > 0 ? knowing : asked).flatMap((document) => {
    const facts = factsOf(document);
    const text = facts && answerFrom(query, sourceOf(document, facts, words));
    return text === undefined ? [] : [{ document, text }];
  });
  // A list for some of the files would look like a list for all.
  if (answers.length === 0 || (name === '' && answers.length < documents.length)) return undefined;
  return withPaths(answers, query, documents.length);
}

/** Whether the name is known from the syntax tree. */
const knows = (facts: Facts | undefined, name: string): boolean =>
  facts !== undefined &&
  ([...facts.definitions, ...facts.fields].some((each) => each.name === name) ||
    facts.imports.some(({ names }) => names.includes(name)) ||
    (!/^\p{Ll}+$/u.test(name) && facts.localNames.has(name)));

const sourceOf = ({ lf, path }: SourceDocument, facts: Facts, words: Words): Source => ({
  text: lf,
  path: quoted(path),
  facts,
  words,
});

const missing = (name: string, documents: readonly SourceDocument[], words: Words): string =>
  words.missing(quoted(name), words.or(documents.map(({ path }) => quoted(path))));

/** Joins the answers. With several files, each answer names its file. */
function withPaths(
  answers: readonly { document: SourceDocument; text: string }[],
  { kind, name }: FactQuery,
  numAsked: number,
): string {
  const isNamed = numAsked === 1 || (name === '' && kind !== 'purpose');
  return answers.map(({ document, text }) => (isNamed ? text : `${quoted(document.path)}: ${text}`)).join('\n\n');
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
  return fromFiles(text, [document]);
}
