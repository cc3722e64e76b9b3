/** Answers commands and some questions from the attached files, without the model. Does not parse files. */
import { t } from '@vscode/l10n';
import type { AnswerSource, ChatMessage, Snippet } from '../protocol/tasks.ts';
import { SourceDocument, shortPath } from '../text/syntax/sourceDocument.ts';
import { grammarFor, MAX_TREES } from '../text/syntax/syntaxTrees.ts';
import { answerFrom, commentAbout } from './answers.ts';
import { headComment } from './extract/comments.ts';
import { entryAnswer } from './entryAnswers.ts';
import { entriesOf } from './extract/entries.ts';
import { type Facts, hasFacts, NO_FACTS } from './extract/facts.ts';
import { isOfChanges } from './changeAnswers.ts';
import { commentAsked, leadingComment } from './selectionComment.ts';
import { occursIn, type Source } from './places.ts';
import { type Language, quoted, WORDS, type Words } from './words.ts';
import { parameterAnswer, parameterAsked } from './parameterQuestions.ts';
import { type FactQuery, parseCommand, type Question, readQuestions } from './factQuestions.ts';

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
  /** Whether the question asks what the files are for. */
  isSummary?: boolean;
  /** Of the question. */
  language?: Language;
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
  const selected = withQuestions ? commentAsked(last.content, snippets) : undefined;
  if (selected) {
    const { comment, path, language: of } = selected;
    const note = t('from the code of {0}, not written by the model', shortPath(path));
    return {
      documents: [],
      answer: () => ({ text: `${WORDS[of].commentSays}\n\n> ${comment}`, note, source: 'files' }),
    };
  }
  if (!withQuestions || files.length === 0 || files.length > MAX_TREES) return undefined;
  const parameter = parameterAsked(last.content);
  if (parameter)
    return {
      documents: files,
      answer: (parsed, factsOf) => fromFiles(parameterAnswer(parameter, parsed, factsOf), parsed),
    };
  const earlier = messages.slice(0, -1);
  const questions = readQuestions(
    last.content,
    files.map(({ path }) => path),
    earlier.length === 0,
  );
  const [question] = questions;
  if (!question) return undefined;
  // "This file" may mean the selected code.
  const isOfFile = question.query.name === '';
  if (isOfFile && snippets.some(({ startLine }) => startLine !== undefined)) return undefined;
  const isElsewhere = ({ name }: FactQuery): boolean =>
    !isOfFile && earlier.some(({ content }) => occursIn(content, name));
  const documents = question.paths.length > 0 ? files.filter(({ path }) => question.paths.includes(path)) : files;
  return {
    documents,
    answer(parsed, factsOf) {
      const read = once(factsOf);
      const answers = questions.map((each) => questionAnswer(each, parsed, read, isElsewhere(each.query)));
      return fromFiles(
        answers.find((text) => text !== undefined),
        parsed,
      );
    },
    isSummary: question.query.kind === 'purpose' && isOfFile,
    language: question.language,
  };
}

/** Reads the facts of each file once. */
function once(factsOf: FactsOf): FactsOf {
  const known = new Map<SourceDocument, Facts | undefined>();
  return (document) => {
    if (!known.has(document)) known.set(document, factsOf(document));
    return known.get(document);
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
    const answer = answerOf(query, document, facts, words);
    if (answer !== undefined) return { document, text: answer };
    const why =
      facts && !facts.partial
        ? undefined
        : hasFacts(document)
          ? words.noTree(source.path)
          : words.noSyntax(source.path);
    const found = name === '' ? undefined : answerFrom({ kind: 'where', name }, source);
    return { document, text: [why, found].filter((text) => text !== undefined).join('\n\n') };
  });
  return withPaths(answers, query, documents.length);
}

/** The answer about one file. Undefined if neither its tree nor its lines give it. */
function answerOf(
  query: FactQuery,
  document: SourceDocument,
  facts: Facts | undefined,
  words: Words,
): string | undefined {
  const source = sourceOf(document, facts ?? NO_FACTS, words);
  const entries = entriesOf(document);
  return entries ? entryAnswer(query, entries, source) : facts && answerFrom(query, source);
}

/** The answer to a question. Undefined if the facts of the files do not give it for exactly this name. */
function questionAnswer(
  { query, language, isMarked, isAsked }: Question,
  documents: readonly SourceDocument[],
  factsOf: FactsOf,
  isElsewhere: boolean,
): string | undefined {
  const words = WORDS[language];
  const { name, owner } = query;
  const asked = documents.filter(({ lf }) => name === '' || occursIn(lf, name));
  if (asked.length === 0 && name !== '')
    return (isMarked || isAsked) && !isElsewhere ? missing(name, documents, words) : undefined;
  const knowing = asked.filter((each) => name === '' || knows(each, factsOf(each), query));
  if (knowing.length === 0 && !isMarked) return undefined;
  if (owner !== undefined && !asked.some((each) => knows(each, factsOf(each), { ...query, name: owner })))
    return undefined;
  const answers = (knowing.length > 0 ? knowing : asked).flatMap((document) => {
    const text = answerOf(query, document, factsOf(document), words);
    return text === undefined ? [] : [{ document, text }];
  });
  // A list for some of the files would look like a list for all.
  if (answers.length === 0 || (name === '' && answers.length < documents.length)) return undefined;
  return withPaths(answers, query, documents.length);
}

/** Whether the name is known from the syntax tree, or from the lines of a data file. */
function knows(document: SourceDocument, facts: Facts | undefined, { kind, name }: FactQuery): boolean {
  if (entriesOf(document)?.some((each) => each.name === name || each.name.endsWith(`.${name}`))) return true;
  if (facts === undefined) return false;
  const { definitions, fields, imports, localNames, changes } = facts;
  return (
    [...definitions, ...fields].some((each) => each.name === name) ||
    imports.some(({ names }) => names.includes(name)) ||
    (isOfChanges(kind) && [...changes.writes, ...changes.throws].some((each) => each.name === name)) ||
    (!/^\p{Ll}+$/u.test(name) && localNames.has(name))
  );
}

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
    ? facts && commentAbout({ kind: 'purpose', name, within: range }, facts, document.lf)
    : headComment(document.lf, grammarFor(document) === 'python');
  return fromFiles(text, [document]);
}

/** What files define, instead of a summary by the model. Undefined if the definitions of one are not known. */
export function outlineInstead(
  documents: readonly SourceDocument[],
  language: Language,
  factsOf: FactsOf,
): KnownAnswer | undefined {
  const query: FactQuery = { kind: 'outline', name: '' };
  const outlines = documents.flatMap((document) => answerOf(query, document, factsOf(document), WORDS[language]) ?? []);
  if (outlines.length === 0 || outlines.length < documents.length) return undefined;
  return fromFiles(outlines.join('\n\n'), documents);
}

/** The parameters and the declaration of a definition, instead of a summary. @param range in the LF text */
export function signatureInstead(
  document: SourceDocument,
  range: { start: number; end: number; label: string },
  language: Language,
  factsOf: FactsOf,
): KnownAnswer | undefined {
  const name = range.label.split(/[.#]/).at(-1) ?? '';
  const query: FactQuery = { kind: 'signature', name, within: range };
  return fromFiles(answerOf(query, document, factsOf(document), WORDS[language]), [document]);
}
