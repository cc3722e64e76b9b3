/** Parameters of functions, methods and classes: which there are, their types and default values, and the signature as it is written. Pure. */
import type { Definition, Facts } from './extract/facts.ts';
import type { Parameter } from './extract/factSignatures.ts';
import type { QuestionLanguage } from './factKinds.ts';
import { isMemberOf } from './factListed.ts';
import { brief, CONSTRUCTOR, every, MAX_PLACES, qualified, quoted } from './factPhrases.ts';
import type { FactQuestion } from './factQuestion.ts';
import { occursIn, whereAnswer } from './factWhere.ts';
import { WORDS } from './factWords.ts';

/** @param called all definitions of that name. Undefined unless there is an answer for each. */
export function parametersAnswer(
  question: FactQuestion,
  called: readonly Definition[],
  name: string,
  facts: Facts,
  text: string,
): string | undefined {
  const { kind, language } = question;
  const callables = called.flatMap((definition) => callable(definition, facts) ?? []);
  if (
    callables.length !== called.length ||
    callables.some(({ parameters = [] }) => parameters.some((parameter) => !brief(parameter.name)))
  )
    return undefined;
  // A class's field may be meant that is called so.
  if (
    kind !== 'parameters' &&
    called.some(
      (definition) =>
        definition.kind === 'class' &&
        facts.definitions.some((each) => isMemberOf(each, definition) && each.name === question.parameter),
    )
  )
    return undefined;
  if (kind === 'parameters')
    return every(callables, ({ parameters, line, owner: of }) =>
      WORDS[language].parameters(
        qualified(callables, name, of),
        (parameters ?? []).map((parameter) => parameter.name),
        line,
      ),
    );
  // An overload may be without it, but what takes something apart may have it inside.
  const having = callables.filter(({ parameters = [] }) =>
    parameters.some((each) => bareName(each) === question.parameter || /^[{[(]/.test(each.name)),
  );
  return having.length === 0
    ? undefined
    : every(having, (definition) => parameterAnswer(question, definition, language, text));
}

/** As it is written, up to the body. */
export function signatureAnswer(
  called: readonly Definition[],
  name: string,
  text: string,
  language: QuestionLanguage,
): string | undefined {
  return every(called, ({ parameters, head, owner, line }) => {
    if (!head || parameters === undefined) return undefined;
    const written = text
      .slice(head.from, head.to)
      .replace(/\s+/g, ' ')
      .replace(/\s*(?:[{:;]|=>)?\s*$/, '');
    return written.length > MAX_SIGNATURE || written.includes('``')
      ? undefined
      : WORDS[language].signature(qualified(called, name, owner), quoted(written), line);
  });
}

const MAX_SIGNATURE = 400;

/** A class's parameters are its constructor's. Undefined where there is none, or not one. */
function callable(definition: Definition, { definitions, broken }: Facts): Definition | undefined {
  if (definition.parameters) return definition;
  // A bracket too many ends a class early.
  if (definition.kind !== 'class' || broken) return undefined;
  const constructors = definitions.filter((each) => isMemberOf(each, definition) && CONSTRUCTOR.test(each.name));
  const only = constructors.length === 1 ? constructors[0] : undefined;
  return only && !only.broken ? withoutOwner(only) : undefined;
}

const withoutOwner = ({ owner: _, ...rest }: Definition): Definition => rest;

/** By the type of what it is assigned to, or in a comment. */
export const isTypedElsewhere = (annotated: true | undefined, text: string): boolean =>
  annotated === true || /@(?:param|arg|returns?|type|typedef)\b|# type:/.test(text);

/** Of a parameter of whichever functions have one that is called so. */
export function defaultsAnswer(
  { parameter = '', language }: FactQuestion,
  { definitions }: Facts,
  text: string,
): string | undefined {
  const words = WORDS[language];
  const parameters = definitions.flatMap((of) => (of.parameters ?? []).map((each) => ({ ...each, of })));
  // What is taken apart may have it inside; a variable or a field may be meant that is called so.
  if (parameters.some(({ name }) => /^[{[(]/.test(name) && occursIn(name, parameter))) return undefined;
  const found = parameters.filter((each) => bareName(each) === parameter);
  if (found.length > 0 && definitions.some(({ name, kind }) => name === parameter && kind === 'value'))
    return undefined;
  if (found.length === 0) return valueAnswer(parameter, definitions, language);
  if (found.length > MAX_PLACES || found.some(({ of }) => of.broken) || !occursIn(text, parameter)) return undefined;
  return every(found, ({ name, value, of }) => {
    const [p, n] = [quoted(name), quoted(of.owner === undefined ? of.name : `${of.owner}.${of.name}`)];
    return value === undefined
      ? words.noDefault(p, n, of.line)
      : brief(value)
        ? words.defaultOf(p, n, value, of.line)
        : undefined;
  });
}

/** What a variable or a field begins with stands in its line. */
function valueAnswer(name: string, definitions: readonly Definition[], language: QuestionLanguage): string | undefined {
  const values = definitions.filter((each) => each.name === name && each.kind === 'value');
  return values.length === 0 || values.length > MAX_PLACES || values.some(({ broken }) => broken)
    ? undefined
    : whereAnswer(values, [], name, language);
}

function parameterAnswer(
  { kind, name, parameter }: FactQuestion,
  { parameters = [], line, owner, annotated }: Definition,
  language: QuestionLanguage,
  text: string,
): string | undefined {
  const words = WORDS[language];
  const found = parameters.find((each) => bareName(each) === parameter);
  // What is taken apart may hold it, and a variable may be called so.
  if (!found) return undefined;
  const n = quoted(owner === undefined ? name : `${owner}.${name}`);
  const p = quoted(found.name);
  if (kind === 'default')
    return found.value === undefined
      ? words.noDefault(p, n, line)
      : brief(found.value)
        ? words.hasDefault(p, found.value, line)
        : undefined;
  if (found.type === undefined && isTypedElsewhere(annotated, text)) return undefined;
  return found.type === undefined
    ? words.noType(p, n, line)
    : brief(found.type)
      ? words.hasType(p, found.type, line)
      : undefined;
}

export const bareName = ({ name }: Parameter): string => name.replace(/^(?:\.\.\.|\*+)/, '');
