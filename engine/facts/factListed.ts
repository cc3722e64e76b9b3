/** Lists of what a file defines, by kind, and of what a class has. Pure. */
import type { Definition, Facts } from './extract/facts.ts';
import type { ListKind, QuestionLanguage } from './factKinds.ts';
import { type DefinedList, firstOf, MAX_NAMES, quoted } from './factPhrases.ts';
import { WORDS } from './factWords.ts';

/** Of each kind, in a list that is no answer by itself. */
const MAX_BRIEF = 5;

export const isOwn = ({ local, owner }: Definition): boolean => !local && owner === undefined;

/** What is a function where the tree has lost the class around it may be a method. */
const isKnown = ({ kind, broken }: Definition): boolean => kind !== 'function' || !broken;

const IS: Readonly<Record<ListKind, (definition: Definition) => boolean>> = {
  classes: ({ kind }) => kind === 'class',
  functions: ({ kind }) => kind === 'function',
  types: ({ kind }) => kind === 'type',
  interfaces: ({ word }) => word === 'interface',
  enums: ({ word }) => word === 'enum',
  constants: ({ kind, owner, constant }) => kind === 'value' && owner === undefined && constant === true,
  // What a variable holds is what it is, and a variable, too.
  variables: ({ kind, owner, held }) => owner === undefined && (kind === 'value' || held === true),
};

/** Python's types are its classes; undefined for what it has no statement for. */
export function inItsWords(
  lists: readonly ListKind[],
  { exports: { isPython } }: Facts,
): readonly ListKind[] | undefined {
  if (!isPython) return lists;
  return lists.some((list) => list === 'interfaces' || list === 'enums')
    ? undefined
    : lists.map((list) => (list === 'types' ? 'classes' : list));
}

export const isOfKind = (definition: Definition, list: ListKind): boolean => IS[list](definition);

/** A list of all that a file has, which may be short of something where the tree has errors. @param found how many there are in it */
export function asFarAsRead(
  { broken }: Facts,
  list: string | undefined,
  found: number,
  language: QuestionLanguage,
): string | undefined {
  if (!broken || list === undefined) return list;
  return found === 0 ? WORDS[language].unreadable : `${list} ${WORDS[language].partly}`;
}

/** Of each name the first one; inside others there may be more, in each one. */
function firsts(some: readonly Definition[]): Definition[] {
  const seen = new Set<string>();
  return some.filter(({ name, functionAt = '', ownerAt = '' }) => {
    const key = `${name} ${functionAt} ${ownerAt}`;
    return !seen.has(key) && seen.add(key);
  });
}

const placesOf = (
  some: readonly Definition[],
  language: QuestionLanguage,
  name = ({ name }: Definition) => name,
): string =>
  firstOf(
    some.map((each) => `${quoted(name(each))} (${WORDS[language].line} ${each.line})`),
    language,
  );

/** What stands inside a function or a class is named apart: nobody can use it from elsewhere by that name. Of variables such are not read. @param counted whether it is asked how many there are */
export function listAnswer(
  asked: readonly ListKind[],
  facts: Facts,
  language: QuestionLanguage,
  counted = false,
): string | undefined {
  const lists = inItsWords(asked, facts);
  if (!lists) return undefined;
  const all = facts.definitions.filter(
    (definition) => isKnown(definition) && lists.some((list) => IS[list](definition)),
  );
  const ofValues = (list: ListKind): boolean => list === 'variables' || list === 'constants';
  const own = firsts(all.filter(isOwn));
  const inside = firsts(
    all.filter((definition) => !isOwn(definition) && lists.some((list) => !ofValues(list) && IS[list](definition))),
  );
  const { defines, definesAll, inside: within, others, constants, constantsByCustom } = WORDS[language];
  const each = lists.map((kind) => ({ kind, some: own.filter(IS[kind]) }));
  const found = each
    .filter(({ some }) => some.length > 0)
    .map(({ kind, some }): DefinedList => ({ kind, count: some.length, places: placesOf(some, language) }));
  const sentences = [
    ...(found.length > 1 ? [definesAll(found)] : []),
    ...each
      .filter(({ some }) => found.length < 2 || some.length === 0)
      .map(({ kind, some }) => defines(kind, some.length, placesOf(some, language), counted)),
    ...(inside.length ? [within(placesOf(inside, language))] : []),
    ...(lists.includes('variables')
      ? [others]
      : lists.includes('constants')
        ? [constants, ...(facts.exports.isPython ? [constantsByCustom] : [])]
        : []),
  ];
  return asFarAsRead(facts, sentences.join(' '), all.length, language);
}

/** All at the top level, kind by kind. @param brief the first of each kind by their names alone */
export function definesAnswer(facts: Facts, language: QuestionLanguage, brief = false): string | undefined {
  const own = firsts(facts.definitions.filter((definition) => isKnown(definition) && isOwn(definition)));
  const lists = DEFINED.flatMap(([kind, of]): DefinedList[] => {
    const some = own.filter((definition) => definition.kind === of);
    return some.length
      ? [{ kind, count: some.length, places: brief ? namesOf(some, language) : placesOf(some, language) }]
      : [];
  });
  return asFarAsRead(facts, WORDS[language].definesAll(lists), own.length, language);
}

const namesOf = (some: readonly Definition[], language: QuestionLanguage): string =>
  firstOf(
    some.map(({ name }) => quoted(name)),
    language,
    MAX_BRIEF,
  );

const DEFINED = [
  ['classes', 'class'],
  ['functions', 'function'],
  ['types', 'type'],
  ['namespaces', 'namespace'],
  ['variables', 'value'],
] as const;

/** Those of classes, and those inside others, too. */
export function asyncAnswer(facts: Facts, language: QuestionLanguage): string | undefined {
  const some = firsts(facts.definitions.filter((definition) => definition.async));
  const places = placesOf(some, language, ({ owner, name }) => (owner === undefined ? name : `${owner}.${name}`));
  return asFarAsRead(facts, WORDS[language].async(some.length, places), some.length, language);
}

/** Of the same name there may be several, and objects. */
export const isMemberOf = (member: Definition, { name, at }: Definition): boolean =>
  member.owner === name && (member.ownerAt === undefined || member.ownerAt === at);

/** The only class or type of a name, whose members can be told. */
function onlyClass(called: readonly Definition[], { broken }: Facts): (Definition & { bases: string[] }) | undefined {
  const [definition, ...others] = called;
  if (!definition || others.length > 0 || broken || (definition.kind !== 'class' && definition.kind !== 'type'))
    return undefined;
  return definition.bases === undefined ? undefined : { ...definition, bases: definition.bases };
}

export function methodsAnswer(
  called: readonly Definition[],
  facts: Facts,
  language: QuestionLanguage,
): string | undefined {
  const definition = onlyClass(called, facts);
  if (!definition) return undefined;
  const members = facts.definitions.filter((each) => isMemberOf(each, definition));
  const named = (kinds: readonly string[]) => [
    ...new Set(members.filter(({ kind }) => kinds.includes(kind)).map(({ name }) => name)),
  ];
  const accessors = named(['accessor']);
  const methods = named(['method']).filter((name) => !accessors.includes(name));
  // A field may hold a function.
  if (methods.length === 0 && members.some(({ kind }) => kind === 'value')) return undefined;
  if (methods.length + accessors.length > MAX_NAMES) return undefined;
  return WORDS[language].members(quoted(definition.name), methods, accessors, definition.line, definition.bases);
}

/** Declared ones, and those that a constructor or a method gives a value. */
export function fieldsAnswer(
  called: readonly Definition[],
  facts: Facts,
  language: QuestionLanguage,
): string | undefined {
  const definition = onlyClass(called, facts);
  // Values inside a function are not read, and such calls may give it more.
  if (
    !definition ||
    definition.local ||
    facts.calls.some(
      ({ on, name }) => (on === 'Object' && /^(?:assign|definePropert)/.test(name)) || name === 'setattr',
    )
  )
    return undefined;
  const members = facts.definitions.filter((each) => isMemberOf(each, definition));
  // What a setter takes is no field.
  const accessors = new Set(members.filter(({ kind }) => kind === 'accessor').map(({ name }) => name));
  const fields = [
    ...members.filter((each) => each.kind === 'value' || (each.held === true && each.owner !== undefined)),
    ...facts.fields.filter(
      ({ classAt, of, name }) =>
        (of === undefined ? classAt === definition.at : of === definition.name) && !accessors.has(name),
    ),
  ].sort((a, b) => a.line - b.line);
  const names = [...new Set(fields.map(({ name }) => name))];
  return names.length > MAX_NAMES
    ? undefined
    : WORDS[language].fields(quoted(definition.name), names, definition.line, definition.bases);
}
