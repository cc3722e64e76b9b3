/**
 * The answer to a question for a fact (factQuestion.ts), in the question's language, from what the syntax tree says (facts.ts), with
 * the lines that say it. What the tree does not say is not said: the model is asked then. Pure.
 */
import type { Import } from '../text/factImports.ts';
import type { Definition, Facts, Parameter } from '../text/facts.ts';
import { exportsAnswer, KIND_OF, passedAnswer } from './factExported.ts';
import { type FactKind, isExport, isList, type ListKind, type QuestionLanguage } from './factPatterns.ts';
import { purposeAnswer } from './factPurpose.ts';
import type { FactQuestion } from './factQuestion.ts';
import { returnedAnswer } from './factReturned.ts';
import { brief, CONSTRUCTOR, type DefinedList, every, firstOf, MOST_IN_LINE, MOST_NAMES, qualified, quoted, WORDS } from './factWords.ts';

/** More of one name are a list that nobody reads. */
const MOST_PLACES = 8;
/** Longer ones are no short answer. */
const LONGEST_LINE = 140;

/** @param path as the answer names the file. Undefined where the facts do not settle it. */
export function factAnswer(asked: FactQuestion, facts: Facts, text: string, path: string): string | undefined {
  const question = asWritten(asked, facts, text);
  const { language, owner } = question;
  const kind = inItsWords(question.kind, facts);
  // Python has another word for it.
  const name = CONSTRUCTOR.test(question.name) && !occurs(text, question.name) ? (['constructor', '__init__'].find((each) => occurs(text, each)) ?? question.name) : question.name;
  const words = WORDS[language];
  if (kind === 'imports') return asFarAsRead(facts, importsAnswer(facts, path, language), facts.imports.length + facts.reexports.length, language);
  if (kind === 'defines') return asFarAsRead(facts, definesAnswer(facts, language), facts.definitions.filter(isOwn).length, language);
  if (isExport(kind)) return exportsAnswer(kind, facts, text, path, language);
  if (isList(kind)) return asFarAsRead(facts, listAnswer(kind, facts, language), facts.definitions.filter((definition) => isOfKind(definition, kind)).length, language);
  const absent = [owner, name, question.parameter].find((each) => each !== undefined && each !== '' && !occurs(text, each));
  if (absent !== undefined) {
    // What comes before a dot may be something of the language, and what that has is known to many.
    if (question.dotted && (absent === owner || (kind !== 'where' && kind !== 'exists' && !facts.definitions.some((definition) => definition.name === owner)))) return undefined;
    // A word without marks may be none of a program; one that is said to be a class may be written with a capital.
    return question.sure || (question.ofKind !== undefined && writtenLike(absent, facts)) ? missing(absent, facts, path, language) : undefined;
  }
  if (kind === 'passed') return owner === undefined ? passedAnswer(name, facts, text, language) : undefined;
  if (name === '') return defaultsAnswer(question, facts, text);
  const called = facts.definitions.filter((definition) => definition.name === name && (owner === undefined || definition.owner === owner));
  const from = owner === undefined ? facts.imports.filter(({ names }) => names.includes(name)) : [];
  if (called.length + from.length === 0 || called.length + from.length > MOST_PLACES || called.some(({ broken }) => broken)) return undefined;
  if (kind === 'where' || kind === 'exists') return facts.localNames.has(name) && owner === undefined ? alsoLocal(question, called, from, name) : foundAnswer(question, called, from, name);
  if (called.length === 0) return undefined;
  if (kind === 'does' || kind === 'returned') {
    // What is imported may be meant.
    if (from.length > 0) return undefined;
    return kind === 'does' ? purposeAnswer(called, name, text, language) : returnedAnswer(withoutSetters(called), name, text, language);
  }
  if (kind === 'members') return membersAnswer(called, facts, language);
  if (kind === 'base') return every(called, (definition) => baseOf(definition, language));
  // Where brackets are missing, things stand in what they do not belong to.
  if (kind === 'owner') return facts.broken ? undefined : every(called.filter((each, i) => called.findIndex(({ owner: of }) => of === each.owner) === i), (definition) => ownerOf(definition, facts, language));
  if (kind === 'returns') return every(withoutSetters(called), ({ parameters, returns, line, owner: of, annotated }) => (parameters === undefined || !brief(returns) || (returns === undefined && isTypedElsewhere(annotated, text)) ? undefined : words.returns(qualified(called, name, of), returns, line)));
  const callables = called.flatMap((definition) => callable(definition, facts) ?? []);
  if (callables.length !== called.length || callables.some(({ parameters = [] }) => parameters.some((parameter) => !brief(parameter.name)))) return undefined;
  // A class's field may be meant that is called so.
  if (kind !== 'parameters' && called.some((definition) => definition.kind === 'class' && facts.definitions.some((each) => isMemberOf(each, definition) && each.name === question.parameter))) return undefined;
  if (kind === 'parameters') return every(callables, ({ parameters, line, owner: of }) => words.parameters(qualified(callables, name, of), (parameters ?? []).map((parameter) => parameter.name), line));
  // An overload may be without it, but what takes something apart may have it inside.
  const having = callables.filter(({ parameters = [] }) => parameters.some((each) => bareName(each) === question.parameter || /^[{[(]/.test(each.name)));
  return having.length === 0 ? undefined : every(having, (definition) => parameterAnswer(question, definition, language, text));
}

/** Python's types are its classes. */
function inItsWords(kind: FactKind, { exports: { isPython } }: Facts): FactKind {
  if (!isPython) return kind;
  return kind === 'types' ? 'classes' : kind === 'exported types' ? 'exported classes' : kind;
}

/** A class's parameters are its constructor's. Undefined where there is none, or not one. */
function callable(definition: Definition, { definitions, broken }: Facts): Definition | undefined {
  if (definition.parameters) return definition;
  // A bracket too many ends a class early.
  if (definition.kind !== 'class' || broken) return undefined;
  const constructors = definitions.filter((each) => isMemberOf(each, definition) && CONSTRUCTOR.test(each.name));
  const only = constructors.length === 1 ? constructors[0] : undefined;
  return only && !only.broken ? withoutOwner(only) : undefined;
}

/** Of the same name there may be several, and objects. */
const isMemberOf = (member: Definition, { name, at }: Definition): boolean => member.owner === name && (member.ownerAt === undefined || member.ownerAt === at);

/** By the type of what it is assigned to, or in a comment. */
const isTypedElsewhere = (annotated: true | undefined, text: string): boolean => annotated === true || /@(?:param|arg|returns?|type|typedef)\b|# type:/.test(text);

/** A setter returns nothing, and says so nowhere. */
function withoutSetters(called: readonly Definition[]): readonly Definition[] {
  const others = called.filter(({ kind, parameters }) => kind !== 'accessor' || parameters?.length === 0);
  return others.length > 0 ? others : called;
}

const withoutOwner = ({ owner: _, ...rest }: Definition): Definition => rest;

/**
 * With names as they are written in the file: one that is called so only but for its case is meant where nothing is called so exactly,
 * and nothing else but for its case. Whether there is something of a name is another question.
 */
function asWritten(question: FactQuestion, { definitions, imports, localNames }: Facts, text: string): FactQuestion {
  if (question.elsewhere || question.kind === 'exists') return question;
  const spelled = (said: string, names: readonly string[]): string => {
    if (said === '' || names.includes(said) || localNames.has(said) || (question.sure && occurs(text, said))) return said;
    const [meant, ...others] = new Set(names.filter((name) => name.toLowerCase() === said.toLowerCase()));
    return meant === undefined || others.length > 0 ? said : meant;
  };
  const { name, owner, parameter } = question;
  return {
    ...question,
    name: spelled(name, [...definitions.map((each) => each.name), ...imports.flatMap(({ names }) => names)]),
    ...(owner === undefined ? {} : { owner: spelled(owner, definitions.flatMap((each) => [each.name, ...(each.owner === undefined ? [] : [each.owner])])) }),
    ...(parameter === undefined ? {} : { parameter: spelled(parameter, definitions.flatMap(({ parameters = [] }) => parameters.map(bareName))) }),
  };
}

/** Of a parameter of whichever functions have one that is called so. */
function defaultsAnswer({ parameter = '', language }: FactQuestion, { definitions }: Facts, text: string): string | undefined {
  const words = WORDS[language];
  const parameters = definitions.flatMap((of) => (of.parameters ?? []).map((each) => ({ ...each, of })));
  // What is taken apart may have it inside; a variable or a field may be meant that is called so.
  if (parameters.some(({ name }) => /^[{[(]/.test(name) && occurs(name, parameter)) || definitions.some(({ name, kind }) => name === parameter && kind === 'value')) return undefined;
  const found = parameters.filter((each) => bareName(each) === parameter);
  if (found.length === 0 || found.length > MOST_PLACES || found.some(({ of }) => of.broken) || !occurs(text, parameter)) return undefined;
  return every(found, ({ name, value, of }) => {
    const [p, n] = [quoted(name), quoted(of.owner === undefined ? of.name : `${of.owner}.${of.name}`)];
    return value === undefined ? words.noDefault(p, n, of.line) : brief(value) ? words.defaultOf(p, n, value, of.line) : undefined;
  });
}

function parameterAnswer({ kind, name, parameter }: FactQuestion, { parameters = [], line, owner, annotated }: Definition, language: QuestionLanguage, text: string): string | undefined {
  const words = WORDS[language];
  const found = parameters.find((each) => bareName(each) === parameter);
  // What is taken apart may hold it, and a variable may be called so.
  if (!found) return undefined;
  const n = quoted(owner === undefined ? name : `${owner}.${name}`);
  const p = quoted(found.name);
  if (kind === 'default') return found.value === undefined ? words.noDefault(p, n, line) : brief(found.value) ? words.hasDefault(p, found.value, line) : undefined;
  if (found.type === undefined && isTypedElsewhere(annotated, text)) return undefined;
  return found.type === undefined ? words.noType(p, n, line) : brief(found.type) ? words.hasType(p, found.type, line) : undefined;
}

const bareName = ({ name }: Parameter): string => name.replace(/^(?:\.\.\.|\*+)/, '');

function baseOf({ bases, interfaces = [], name, kind, line }: Definition, language: QuestionLanguage): string | undefined {
  if (kind !== 'class' && bases === undefined) return undefined;
  if (bases === undefined || bases.some((base) => !brief(base))) return undefined;
  return WORDS[language].base(quoted(name), bases, interfaces, line);
}

function ownerOf({ owner, ownerAt, name, kind, local, line }: Definition, { definitions }: Facts, language: QuestionLanguage): string | undefined {
  // What is put on a prototype has no place of its own.
  const isClass = ownerAt === undefined || definitions.some((each) => each.name === owner && each.at === ownerAt && (each.kind === 'class' || each.kind === 'type'));
  if (owner !== undefined) return WORDS[language].owner(quoted(name), kind === 'method', quoted(owner), isClass, line);
  return kind === 'function' && !local ? WORDS[language].noOwner(quoted(name), line) : undefined;
}

function membersAnswer(called: readonly Definition[], { definitions, broken: anyBroken }: Facts, language: QuestionLanguage): string | undefined {
  const [definition, ...others] = called.filter(({ kind }) => kind === 'class' || kind === 'type');
  if (!definition || others.length > 0 || called.length > 1 || anyBroken) return undefined;
  const members = definitions.filter((each) => isMemberOf(each, definition));
  const named = (kinds: readonly string[]) => [...new Set(members.filter(({ kind }) => kinds.includes(kind)).map(({ name }) => name))];
  const accessors = named(['accessor']);
  const methods = named(['method']).filter((name) => !accessors.includes(name));
  // A field may hold a function.
  if (methods.length === 0 && members.some(({ kind }) => kind === 'value')) return undefined;
  if (definition.bases === undefined || methods.length + accessors.length > MOST_NAMES) return undefined;
  return WORDS[language].members(quoted(definition.name), methods, accessors, definition.line, definition.bases);
}

/** Variables and parameters are listed nowhere: that there are some of this name is said, unless one of them was asked for. */
function alsoLocal(question: FactQuestion, called: readonly Definition[], from: readonly Import[], name: string): string | undefined {
  if (/variable|constant|parameter|argument|variável|constante|parâmetro|parametro|argumento/.test(question.ofKind ?? '')) return undefined;
  return `${foundAnswer(question, called, from, name)} ${WORDS[question.language].alsoLocal}`;
}

function importsAnswer({ imports, reexports }: Facts, path: string, language: QuestionLanguage): string | undefined {
  const modules = (of: readonly Import[]) => [...new Set(of.map(({ module }) => module))];
  const top = modules(imports.filter((each) => each.top));
  const deeper = modules(imports.filter((each) => !each.top)).filter((module) => !top.includes(module));
  if (top.length + deeper.length > MOST_NAMES) return undefined;
  const lines = imports.filter((each) => each.top).map(({ line }) => line);
  return WORDS[language].imports(quoted(path), top, deeper, modules(reexports), lines, imports.filter((each) => !each.top).map(({ line }) => line), reexports.map(({ line }) => line));
}

/** A list of all that a file has, which may be short of something where the tree has errors. @param found how many there are in it */
function asFarAsRead({ broken }: Facts, list: string | undefined, found: number, language: QuestionLanguage): string | undefined {
  if (!broken || list === undefined) return list;
  return found === 0 ? WORDS[language].unreadable : `${list} ${WORDS[language].partly}`;
}

const isOwn = ({ local, owner }: Definition): boolean => !local && owner === undefined;
/** Of each name the first one; inside others there may be more, in each one. */
function firsts(some: readonly Definition[]): Definition[] {
  const seen = new Set<string>();
  return some.filter(({ name, functionAt = '', ownerAt = '' }) => {
    const key = `${name} ${functionAt} ${ownerAt}`;
    return !seen.has(key) && seen.add(key);
  });
}

/** What a variable holds is what it is, and a variable, too. */
const isOfKind = ({ kind, owner, held }: Definition, asked: ListKind): boolean => (asked === 'variables' ? owner === undefined && (kind === 'value' || held === true) : kind === KIND_OF[asked]);

const placesOf = (some: readonly Definition[], language: QuestionLanguage): string => firstOf(some.map(({ name, line }) => `${quoted(name)} (${WORDS[language].line} ${line})`), language);

/** What stands inside a function or a class is named apart: nobody can use it from elsewhere by that name. Of variables such are not read. */
function listAnswer(kind: ListKind, { definitions }: Facts, language: QuestionLanguage): string {
  const all = definitions.filter((definition) => isOfKind(definition, kind));
  const own = firsts(all.filter(isOwn));
  const inside = firsts(all.filter((definition) => !isOwn(definition)));
  const { defines, inside: within, others } = WORDS[language];
  if (kind === 'variables') return `${defines(kind, own.length, placesOf(own, language))} ${others}`;
  return [defines(kind, own.length, placesOf(own, language)), ...(inside.length ? [within(placesOf(inside, language))] : [])].join(' ');
}

/** All at the top level, kind by kind. */
function definesAnswer({ definitions }: Facts, language: QuestionLanguage): string {
  const own = firsts(definitions.filter(isOwn));
  const lists = DEFINED.flatMap(([kind, of]): DefinedList[] => {
    const some = own.filter((definition) => definition.kind === of);
    return some.length ? [{ kind, count: some.length, places: placesOf(some, language) }] : [];
  });
  return WORDS[language].definesAll(lists);
}

const DEFINED = [['classes', 'class'], ['functions', 'function'], ['types', 'type'], ['namespaces', 'namespace'], ['variables', 'value']] as const;

function whereAnswer(called: readonly Definition[], from: readonly Import[], name: string, language: QuestionLanguage): string {
  const words = WORDS[language];
  const shown = ({ text }: Definition): string | undefined => (text.length <= LONGEST_LINE && !text.includes('`') ? text : undefined);
  const places = called.map((definition) => words.where(definition.line, shown(definition)));
  const imported = from.map(({ module, line }) => words.imported(quoted(name), quoted(module), line));
  return [...(places.length ? [sentence(places, words.defined(quoted(name)), language)] : []), ...imported].join(places.length > MOST_IN_LINE ? '\n\n' : ' ');
}

/** Where it is; to whether there is one, yes or no besides, if the kind that was said settles it. */
function foundAnswer({ kind, language, ofKind = '' }: FactQuestion, called: readonly Definition[], from: readonly Import[], name: string): string {
  const where = whereAnswer(called, from, name, language);
  const behind = where.replace(/^A /, 'a ');
  const said = OF_KIND.find(([word]) => word.test(ofKind));
  if (kind !== 'exists' || called.length > MOST_IN_LINE || !said) return where;
  const [, kinds, others] = said;
  if (kinds === undefined || called.some((definition) => kinds.includes(definition.kind))) return `${WORDS[language].yes}: ${behind}`;
  return others && from.length === 0 && called.every((definition) => others.includes(definition.kind)) ? `${WORDS[language].no}: ${behind}` : where;
}

/** By the word that was said: what is one, undefined for anything, and what is surely none. A value may be anything. */
const OF_KIND: readonly (readonly [RegExp, (readonly Definition['kind'][])?, (readonly Definition['kind'][])?])[] = [
  [/^$|definition|symbol|definição|símbolo/],
  [/class/, ['class'], ['function', 'method', 'accessor', 'type']],
  [/function|method|função|funcao|método|metodo/, ['function', 'method', 'accessor'], ['class', 'type']],
];

const writtenLike = (name: string, { definitions }: Facts): Definition | undefined => definitions.find((definition) => definition.name.toLowerCase() === name.toLowerCase());

/** What is written in another case is named: it is likely meant. */
function missing(name: string, facts: Facts, path: string, language: QuestionLanguage): string {
  const like = writtenLike(name, facts);
  return `${WORDS[language].missing(quoted(name), quoted(path))}${like ? ` ${WORDS[language].like(quoted(like.name), like.line)}` : ''}`;
}

const occurs = (text: string, name: string): boolean => new RegExp(`(?<![\\p{L}\\p{N}_$])${name.replace(/[$.[\]]/g, '\\$&')}(?![\\p{L}\\p{N}_$])`, 'u').test(text);

function sentence(places: readonly string[], subject: string, language: QuestionLanguage): string {
  if (places.length > MOST_IN_LINE) return `${subject}\n\n${places.map((each) => `- ${each}`).join('\n')}`;
  return `${subject} ${places.join(language === 'en' ? ', and ' : ', e ')}.`;
}
