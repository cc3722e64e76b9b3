/**
 * What the files of a conversation answer by themselves, without the model: a fact that is asked of one of them or of several, and that there
 * is nothing in them where they are empty. Pure.
 */
import { t } from '@vscode/l10n';
import type { ChatMessage, Snippet } from '../protocol/tasks.ts';
import { type Facts, hasFacts } from './extract/facts.ts';
import { SourceDocument, shortPath } from '../text/syntax/sourceDocument.ts';
import { MAX_TREES } from '../text/syntax/syntaxTrees.ts';
import { emptyAnswer } from './emptyFiles.ts';
import { factAnswer } from './factAnswer.ts';
import { isExport, isOfFile } from './factKinds.ts';
import { type AskedFact, type FactQuestion, factAsked } from './factQuestion.ts';
import { type Nothing, quoted } from './factPhrases.ts';
import { unfoundAnswer } from './factUnfound.ts';
import { occursIn } from './factWhere.ts';
import { WORDS } from './factWords.ts';
import type { KnownAnswer } from '../tasks/preparedRequest.ts';

/** The facts of more are a list that nobody reads. Beyond the trees that are kept each file would be parsed anew while nobody else gets a turn. */
const MAX_FILES = MAX_TREES;

type FactsOf = (document: SourceDocument) => Facts | undefined;

export interface AskedOfFiles {
  /** Whose syntax trees it takes. */
  documents: readonly SourceDocument[];
  /** False for what the files do not have and code in the conversation has: the model is asked then. */
  mayBeIn: boolean;
  /** Of those documents as they are then. Undefined where they do not settle it. */
  answer(documents: readonly SourceDocument[], factsOf: FactsOf): KnownAnswer | undefined;
}

/** What a conversation's last turn asks of its files, if that is such a question. @param snippets without a line are whole files, too. */
export function askedOfFiles(
  messages: readonly ChatMessage[],
  docs: readonly SourceDocument[],
  snippets: readonly Snippet[] = [],
): AskedOfFiles | undefined {
  const files = wholeFiles(docs, snippets);
  const asked = files.length <= MAX_FILES ? factAsked(messages, files, snippets) : undefined;
  if (asked) {
    return {
      documents: asked.documents,
      mayBeIn: mayBeIn(asked),
      answer: (documents, factsOf) => {
        const text =
          answerOfFiles(asked.question, documents, factsOf) ?? unfoundOfFiles(asked.question, documents, factsOf);
        return text === undefined
          ? undefined
          : { text, note: asked.question.kind === 'lines' ? t('not written by the model') : noteOf(documents) };
      },
    };
  }
  const text = emptyAnswer(messages, files, snippets);
  return text === undefined
    ? undefined
    : { documents: [], mayBeIn: true, answer: () => ({ text, note: t('not written by the model') }) };
}

function mayBeIn({ question: { elsewhere, name, owner = '', parameter = '' }, documents }: AskedFact): boolean {
  const texts = documents.map(({ lf }) => lf.toLowerCase());
  return (
    !elsewhere ||
    texts.some(
      (text) => text.trim() === '' || [name, owner, parameter].every((each) => text.includes(each.toLowerCase())),
    )
  );
}

/** Those of a conversation that are read as a whole: also what is attached so. */
function wholeFiles(docs: readonly SourceDocument[], snippets: readonly Snippet[]): readonly SourceDocument[] {
  const whole = snippets.filter(
    ({ path, startLine }) => startLine === undefined && !docs.some((doc) => doc.path === shortPath(path)),
  );
  return docs.length === 0
    ? []
    : [...docs, ...whole.map(({ path, text }) => new SourceDocument(`attached:${path}`, path, text))];
}

/** Those whose facts can be told in a conversation. */
export function parsedFiles({
  docs,
  snippets = [],
}: {
  docs: readonly SourceDocument[];
  snippets?: readonly Snippet[];
}): readonly SourceDocument[] {
  const files = wholeFiles(docs, snippets);
  return files.length <= MAX_FILES ? files : [];
}

/** What an answer was read off. */
export function noteOf(documents: readonly SourceDocument[]): string {
  const paths = documents.map(({ path }) => path);
  if (!documents.some(hasFacts)) return t('searched in the text of {0}, not written by the model', paths.join(', '));
  return paths.length === 1
    ? t('read off the syntax tree of {0}, not written by the model', paths[0] as string)
    : t('read off the syntax trees of {0}, not written by the model', paths.join(', '));
}

/** Undefined where they do not settle it. Of several files, each is named with what it answers; what is asked of a name is answered by those that define it. */
export function answerOfFiles(
  question: FactQuestion,
  documents: readonly SourceDocument[],
  factsOf: FactsOf,
): string | undefined {
  const [document, ...others] = documents;
  if (!document) return undefined;
  if (others.length === 0) return answerOf(question, document, factsOf(document));
  const { kind, name } = question;
  // What one defines, others import and call.
  const naming = documents.filter(({ lf }) => occursIn(lf, name));
  const defining = isOfFile(kind)
    ? []
    : kind === 'called' || kind === 'used' || kind === 'source'
      ? naming
      : definingFiles(question, documents, factsOf);
  const answers = (defining.length > 0 ? defining : documents).map(
    (each) => [each.path, answerOf(question, each, factsOf(each))] as const,
  );
  if (answers.some(([, answer]) => answer === undefined)) return undefined;
  return answers.map(([path, answer = '']) => withPath(quoted(path), answer)).join('\n\n');
}

/** Where none of them settles it and none defines what is asked about. */
function unfoundOfFiles(
  question: FactQuestion,
  documents: readonly SourceDocument[],
  factsOf: FactsOf,
): string | undefined {
  const found = unfoundAnswer(question, documents, factsOf);
  return (
    found &&
    [...found]
      .map(([path, text]) => (path === '' || documents.length === 1 ? text : withPath(quoted(path), text)))
      .join('\n\n')
  );
}

function answerOf(
  question: FactQuestion,
  { lf, path, numWrittenLines }: SourceDocument,
  facts: Facts | undefined,
): string | undefined {
  if (question.kind === 'lines') return WORDS[question.language].lines(numWrittenLines);
  const why: Nothing | undefined = lf.trim() === '' ? 'empty' : facts?.blank ? 'comments' : undefined;
  if (why === undefined) return facts && factAnswer(question, facts, lf, path);
  const { kind, language } = question;
  if (mayBeElsewhere(question)) return undefined;
  return WORDS[language].nothing(
    quoted(path),
    why,
    /^(?:imports|imported|source)$/.test(kind)
      ? 'imports'
      : kind === 'passed' || isExport(kind)
        ? 'exports'
        : 'defines',
  );
}

/** Asked of a language or a library, or of anything: "explain recursion". */
const mayBeElsewhere = ({ kind, name, dotted, ofKind }: FactQuestion): boolean =>
  dotted === true ||
  ((kind === 'does' || kind === 'is') && ofKind === undefined && /^\p{L}+$/u.test(name) && !/\p{Ll}\p{Lu}/u.test(name));

/** Those that define what the question names, as it is written there or else in another case. */
function definingFiles(
  { name, owner }: FactQuestion,
  documents: readonly SourceDocument[],
  factsOf: FactsOf,
): readonly SourceDocument[] {
  const defining = (same: (a: string, b: string) => boolean): readonly SourceDocument[] =>
    documents.filter((document) =>
      factsOf(document)?.definitions.some(
        (each) =>
          same(each.name, name) && (owner === undefined || (each.owner !== undefined && same(each.owner, owner))),
      ),
    );
  const exactly = defining((a, b) => a === b);
  return exactly.length > 0 ? exactly : defining((a, b) => a.toLowerCase() === b.toLowerCase());
}

/** @param path as it is quoted */
function withPath(path: string, answer: string): string {
  if (/^(?:This file|Este arquivo) /.test(answer)) return answer.replace(/^(?:This file|Este arquivo)/, () => path);
  return answer.includes(path) ? answer : `${path}: ${answer}`;
}
