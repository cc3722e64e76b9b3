/**
 * What can be said of a name that a question has and no file defines: that it stands nowhere, where it comes from, or where it stands. A small
 * model would make something up of it, in the words of what it has read. Pure.
 */
import type { Facts } from './extract/facts.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import { isOfFile, type QuestionLanguage } from './factKinds.ts';
import { bareName } from './factParameters.ts';
import { firstOf, joined, MAX_IN_LINE, MAX_PLACES, quoted } from './factPhrases.ts';
import type { FactQuestion } from './factQuestion.ts';
import { asWord, lineAt, linesOf, occursIn, places, whereAnswer } from './factWhere.ts';
import { WORDS } from './factWords.ts';

/**
 * @param factsOf undefined where a language has no facts, or its syntax cannot be read
 * @returns for each path what is said of that file, or for '' what is said of all. Undefined where one of them defines the name: what the tree
 * does not settle of it is for the model.
 */
export function unfoundAnswer(
  question: FactQuestion,
  documents: readonly SourceDocument[],
  factsOf: (document: SourceDocument) => Facts | undefined,
): ReadonlyMap<string, string> | undefined {
  const { kind, language, name, owner, parameter, dotted } = question;
  // Code in the conversation may be meant.
  if (question.elsewhere || isOfFile(kind) || kind === 'imported') return undefined;
  const parts = [owner, name, parameter].filter((part): part is string => part !== undefined && part !== '');
  const texts = documents.map(({ lf }) => lf.toLowerCase());
  const absent = parts.find((part) => !texts.some((text) => occursIn(text, part.toLowerCase())));
  if (absent !== undefined) {
    const words = WORDS[language];
    const said = dotted && absent !== parameter ? `${owner}.${name}` : absent;
    const paths = joined(
      documents.map(({ path }) => quoted(path)),
      language,
      words.or,
    );
    // A word may be none of a program, and what it means be there all the same.
    return new Map([
      [
        '',
        `${question.sure ? words.missing(quoted(said), paths) : words.noWord(quoted(said), paths)} ${words.unread(documents.length)}`,
      ],
    ]);
  }
  const found = new Map<string, string>();
  for (const document of documents) {
    const facts = factsOf(document);
    if (!facts || facts.definitions.some((definition) => sameName(definition.name, name))) return undefined;
    const said = name === '' ? undefined : inFile(question, facts, document.lf);
    if (said !== undefined) found.set(document.path, said);
  }
  return found.size > 0 ? found : undefined;
}

const sameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/** Of a name that the file does not define; undefined where it does not stand in it. */
function inFile({ name, owner, language }: FactQuestion, facts: Facts, text: string): string | undefined {
  const words = WORDS[language];
  const spelled =
    facts.imports.some(({ names }) => names.includes(name)) || occursIn(text, name)
      ? name
      : asWord(name, 'iu').exec(text)?.[0];
  if (spelled === undefined) return undefined;
  const from = facts.imports.filter(({ names }) => names.includes(owner ?? spelled));
  if (from.length > 0 && from.length <= MAX_PLACES)
    return `${whereAnswer([], from, owner ?? spelled, language)} ${words.codeThere}`;
  const lines = linesOf(text, spelled);
  const shown =
    lines.length > MAX_IN_LINE
      ? words.inLines(firstOf(lines.map(String), language))
      : places(
          lines.map((line) => lineAt(text, line)),
          language,
        );
  // Whether it is defined there is not said: loops, patterns and members of enums define names, too, and are not read.
  const [stands, parameter] = [
    words.standsIn(quoted(spelled), shown),
    facts.broken ? undefined : ofParameters(spelled, facts, language),
  ];
  return parameter === undefined ? stands : `${parameter} ${stands}`;
}

/** Of which functions it is a parameter, if it is one. */
function ofParameters(name: string, { definitions }: Facts, language: QuestionLanguage): string | undefined {
  const having = definitions.filter(({ parameters = [] }) => parameters.some((each) => bareName(each) === name));
  if (having.length === 0 || having.length > MAX_PLACES || having.some(({ broken }) => broken)) return undefined;
  const functions = having.map(
    (each) =>
      `${quoted(each.owner === undefined ? each.name : `${each.owner}.${each.name}`)} (${WORDS[language].line} ${each.line})`,
  );
  return WORDS[language].isParameter(quoted(name), joined([...new Set(functions)], language));
}
