/**
 * The answer to a question for a fact (factQuestion.ts), in the question's language, from what the syntax tree says (facts.ts), with
 * the lines that say it. What the tree does not say is not said: the model is asked then. Pure.
 */
import type { Import } from './extract/factImports.ts';
import type { Definition, Facts } from './extract/facts.ts';
import { calledAnswer, usedAnswer } from './factCalled.ts';
import { exportsAnswer, passedAnswer } from './factExported.ts';
import { importedAnswer, importsAnswer, sourceAnswer } from './factImported.ts';
import { isExport, type QuestionLanguage } from './factKinds.ts';
import { asyncAnswer, definesAnswer, fieldsAnswer, listAnswer, methodsAnswer } from './factListed.ts';
import { bareName, defaultsAnswer, isTypedElsewhere, parametersAnswer, signatureAnswer } from './factParameters.ts';
import { brief, CONSTRUCTOR, every, MAX_PLACES, qualified, quoted } from './factPhrases.ts';
import { headOf, purposeAnswer } from './factPurpose.ts';
import type { FactQuestion } from './factQuestion.ts';
import { returnedAnswer } from './factReturned.ts';
import { foundAnswer, occursIn, whereAnswer } from './factWhere.ts';
import { WORDS } from './factWords.ts';

/** @param path as the answer names the file. Undefined where the facts do not settle it. */
export function factAnswer(asked: FactQuestion, facts: Facts, text: string, path: string): string | undefined {
  const { kind, language, lists = [] } = asked;
  if (kind === 'imports') return importsAnswer(facts, path, language);
  if (kind === 'imported') return importedAnswer(asked, facts, path);
  if (kind === 'about') return headOf(text, facts.exports.isPython);
  if (kind === 'defines') return definesAnswer(facts, language, asked.brief);
  if (kind === 'listed') return listAnswer(lists, facts, language, asked.counted);
  if (kind === 'async') return asyncAnswer(facts, language);
  if (isExport(kind)) return exportsAnswer(kind, lists, facts, text, path, language);
  return nameAnswer(asWritten(asked, facts, text), facts, text, path);
}

function nameAnswer(question: FactQuestion, facts: Facts, text: string, path: string): string | undefined {
  const { kind, language, owner } = question;
  // Python has another word for it.
  const name =
    CONSTRUCTOR.test(question.name) && !occursIn(text, question.name)
      ? (['constructor', '__init__'].find((each) => occursIn(text, each)) ?? question.name)
      : question.name;
  const absent = [owner, name, question.parameter].find(
    (each) => each !== undefined && each !== '' && !occursIn(text, each),
  );
  if (absent !== undefined) {
    // What comes before a dot may be something of the language, or hold such, and what that has is known to many.
    if (question.dotted && (absent === owner || (kind !== 'where' && kind !== 'exists' && !hasMembers(owner, facts))))
      return undefined;
    // A word without marks may be none of a program; one that is said to be a class may be written with a capital.
    return question.sure || (question.ofKind !== undefined && writtenLike(absent, facts))
      ? missing(absent, facts, path, language)
      : undefined;
  }
  if (kind === 'passed') return owner === undefined ? passedAnswer(name, facts, text, language) : undefined;
  if (name === '') return defaultsAnswer(question, facts, text);
  const called = facts.definitions.filter(
    (definition) =>
      definition.name === name &&
      (owner === undefined || definition.owner === owner) &&
      isWithin(definition, question.within),
  );
  const from = owner === undefined ? facts.imports.filter(({ names }) => names.includes(name)) : [];
  if (kind === 'called') return calledAnswer(question, [...called, ...from], facts, text);
  if (called.length + from.length > MAX_PLACES || called.some(({ broken }) => broken)) return undefined;
  if (kind === 'source') return sourceAnswer(called, from, name, facts, language);
  if (kind === 'used') return usedAnswer(question, called, from, text);
  if (called.length + from.length === 0) return undefined;
  if (kind === 'where' || kind === 'exists') return foundAnswer(question, called, from, name, facts);
  if (kind === 'is') return meaningAnswer(question, called, from, name, facts, text);
  return called.length === 0 ? undefined : definitionAnswer(question, called, from, name, facts, text);
}

const isWithin = ({ at }: Definition, within: FactQuestion['within']): boolean =>
  within === undefined || (at !== undefined && within.start <= at && at < within.end);

/** Of what the file defines. */
function definitionAnswer(
  question: FactQuestion,
  called: readonly Definition[],
  from: readonly Import[],
  name: string,
  facts: Facts,
  text: string,
): string | undefined {
  const { kind, language } = question;
  if (kind === 'does' || kind === 'returned') {
    // What is imported may be meant.
    if (from.length > 0) return undefined;
    if (kind === 'returned') return returnedAnswer(withoutSetters(called), name, text, language);
    // A constructor makes one, and its line says of what.
    return (
      purposeAnswer(called, name, text, language, question.brief) ??
      (CONSTRUCTOR.test(name) ? whereAnswer(called, [], name, language) : undefined)
    );
  }
  if (kind === 'methods') return methodsAnswer(called, facts, language);
  if (kind === 'fields') return fieldsAnswer(called, facts, language);
  if (kind === 'signature') return signatureAnswer(called, name, text, language);
  if (kind === 'base') return every(called, (definition) => baseOf(definition, language));
  // Where brackets are missing, things stand in what they do not belong to.
  if (kind === 'owner')
    return facts.broken
      ? undefined
      : every(
          called.filter((each, i) => called.findIndex(({ owner: of }) => of === each.owner) === i),
          (definition) => ownerOf(definition, facts, language),
        );
  if (kind === 'returns')
    return every(withoutSetters(called), ({ parameters, returns, line, owner: of, annotated }) =>
      parameters === undefined || !brief(returns) || (returns === undefined && isTypedElsewhere(annotated, text))
        ? undefined
        : WORDS[language].returns(qualified(called, name, of), returns, line),
    );
  return parametersAnswer(question, called, name, facts, text);
}

/** What the comment above it says, or else its line. */
function meaningAnswer(
  question: FactQuestion,
  called: readonly Definition[],
  from: readonly Import[],
  name: string,
  facts: Facts,
  text: string,
): string | undefined {
  const said =
    from.length === 0 && called.every(({ doc }) => doc)
      ? purposeAnswer(called, name, text, question.language)
      : undefined;
  return said ?? foundAnswer(question, called, from, name, facts);
}

/** A setter returns nothing, and says so nowhere. */
function withoutSetters(called: readonly Definition[]): readonly Definition[] {
  const others = called.filter(({ kind, parameters }) => kind !== 'accessor' || parameters?.length === 0);
  return others.length > 0 ? others : called;
}

/**
 * With names as they are written in the file: one that is called so only but for its case is meant where nothing is called so exactly,
 * and nothing else but for its case. Whether there is something of a name is another question.
 */
function asWritten(question: FactQuestion, { definitions, imports, localNames }: Facts, text: string): FactQuestion {
  // A word may be what a language or a library is called.
  if (question.elsewhere || question.kind === 'exists' || (question.kind === 'is' && !question.sure)) return question;
  const spelled = (said: string, names: readonly string[]): string => {
    if (
      said === '' ||
      names.includes(said) ||
      localNames.has(said) ||
      ((question.sure || /\p{Lu}/u.test(said)) && occursIn(text, said))
    )
      return said;
    const [meant, ...others] = new Set(names.filter((name) => name.toLowerCase() === said.toLowerCase()));
    return meant === undefined || others.length > 0 ? said : meant;
  };
  const { name, owner, parameter } = question;
  return {
    ...question,
    name: spelled(name, [...definitions.map((each) => each.name), ...imports.flatMap(({ names }) => names)]),
    ...(owner === undefined
      ? {}
      : {
          owner: spelled(
            owner,
            definitions.flatMap((each) => [each.name, ...(each.owner === undefined ? [] : [each.owner])]),
          ),
        }),
    ...(parameter === undefined
      ? {}
      : {
          parameter: spelled(
            parameter,
            definitions.flatMap(({ parameters = [] }) => parameters.map(bareName)),
          ),
        }),
  };
}

function baseOf(
  { bases, interfaces = [], name, kind, line }: Definition,
  language: QuestionLanguage,
): string | undefined {
  if (kind !== 'class' && bases === undefined) return undefined;
  if (bases === undefined || bases.some((base) => !brief(base))) return undefined;
  return WORDS[language].base(quoted(name), bases, interfaces, line);
}

function ownerOf(
  { owner, ownerAt, name, kind, local, line }: Definition,
  { definitions }: Facts,
  language: QuestionLanguage,
): string | undefined {
  // What is put on a prototype has no place of its own.
  const isClass =
    ownerAt === undefined ||
    definitions.some(
      (each) => each.name === owner && each.at === ownerAt && (each.kind === 'class' || each.kind === 'type'),
    );
  if (owner !== undefined) return WORDS[language].owner(quoted(name), kind === 'method', quoted(owner), isClass, line);
  return kind === 'function' && !local ? WORDS[language].noOwner(quoted(name), line) : undefined;
}

const hasMembers = (name: string | undefined, { definitions }: Facts): boolean =>
  definitions.some(
    (each) => (each.name === name && (each.kind === 'class' || each.kind === 'type')) || each.owner === name,
  );

const writtenLike = (name: string, { definitions }: Facts): Definition | undefined =>
  definitions.find((definition) => definition.name.toLowerCase() === name.toLowerCase());

/** What is written in another case is named: it is likely meant. */
function missing(name: string, facts: Facts, path: string, language: QuestionLanguage): string {
  const like = writtenLike(name, facts);
  return `${WORDS[language].missing(quoted(name), quoted(path))}${like ? ` ${WORDS[language].like(quoted(like.name), like.line)}` : ''}`;
}
