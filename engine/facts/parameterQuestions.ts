/** Answers questions about the type and the default value of one parameter. Does not read trees. */
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { Facts } from './extract/facts.ts';
import { type Language, quoted, WORDS } from './words.ts';

interface Asked {
  what: 'type' | 'value';
  parameter: string;
  of: string;
  language: Language;
}

const NAME = String.raw`[\x60]?([\p{L}_$][\p{L}\p{N}_$]*)[\x60]?`;
const OF = String.raw`[\x60]?([\p{L}_$][\p{L}\p{N}_$]*)(?:\(\))?[\x60]?`;
const FORMS: readonly (readonly [what: Asked['what'], language: Language, form: RegExp])[] = [
  ['type', 'en', form(`what is the type of (?:the parameter )?${NAME} (?:in|of) ${OF}`)],
  ['type', 'en', form(`(?:which|what) type does (?:the parameter )?${NAME} (?:in|of) ${OF} have`)],
  ['type', 'en', form(`(?:which|what) type is ${NAME} (?:in|of) ${OF}`)],
  ['type', 'pt', form(`qual é o tipo (?:de|do parâmetro) ${NAME} (?:em|de|do|da) ${OF}`)],
  ['value', 'en', form(`what is the default (?:value )?of ${NAME} (?:in|of) ${OF}`)],
  ['value', 'en', form(`what does ${NAME} default to in ${OF}`)],
  ['value', 'pt', form(`qual é o valor (?:por omissão|padrão) (?:de|do parâmetro) ${NAME} (?:em|de|do|da) ${OF}`)],
];

function form(pattern: string): RegExp {
  return new RegExp(`^${pattern}$`, 'iu');
}

/** The question in a message. Undefined for any other. */
export function parameterAsked(message: string): Asked | undefined {
  const said = message.trim().replace(/[\s?.!]+$/, '');
  for (const [what, language, pattern] of FORMS) {
    const [, parameter, of] = pattern.exec(said) ?? [];
    if (parameter !== undefined && of !== undefined) return { what, language, parameter, of };
  }
  return undefined;
}

/** Undefined if no file, or more than one function, has such a parameter. */
export function parameterAnswer(
  { what, parameter, of, language }: Asked,
  documents: readonly SourceDocument[],
  factsOf: (document: SourceDocument) => Facts | undefined,
): string | undefined {
  const words = WORDS[language];
  const [found, ...others] = documents
    .flatMap((document) => factsOf(document)?.definitions ?? [])
    .filter(({ name, broken }) => name === of && !broken)
    .flatMap(({ parameters = [], line }) => parameters.map((each) => ({ ...each, line })))
    .filter(({ name }) => name.replace(/^(?:\.\.\.|\*+)|\?$/g, '') === parameter);
  if (!found || others.length > 0) return undefined;
  const shown = words.parameterOf(quoted(parameter), quoted(of));
  const value = found[what];
  const told =
    what === 'type'
      ? value === undefined
        ? words.hasNoType(shown)
        : words.hasType(shown, quoted(value))
      : value === undefined
        ? words.hasNoDefault(shown)
        : words.hasDefault(shown, quoted(value));
  return `${told} ${words.line(found.line)}.`;
}
