/**
 * The answer to a question for a fact (factQuestion.ts), in the question's language, from what the syntax tree says (facts.ts), with
 * the lines that say it. What the tree does not say is not said: the model is asked then. Pure.
 */
import type { Definition, Facts, Import, Parameter } from '../text/facts.ts';
import { type FactQuestion, isList, type ListKind, type QuestionLanguage } from './factQuestion.ts';

/** More of one name are a list that nobody reads. */
const MOST_PLACES = 8;
/** More are a list. */
const MOST_IN_LINE = 2;
const MOST_NAMES = 60;
/** Longer ones are no short answer. */
const LONGEST_TYPE = 200;
const LONGEST_LINE = 140;
const CONSTRUCTOR = /^(?:constructor|construtor|__init__)$/;

/** @param path as the answer names the file. Undefined where the facts do not settle it. */
export function factAnswer(question: FactQuestion, facts: Facts, text: string, path: string): string | undefined {
  const { kind, language, owner } = question;
  // Python has another word for it.
  const name = CONSTRUCTOR.test(question.name) && !occurs(text, question.name) ? (['constructor', '__init__'].find((each) => occurs(text, each)) ?? question.name) : question.name;
  const words = WORDS[language];
  if (kind === 'imports') return facts.broken ? undefined : importsAnswer(facts, path, language);
  if (isList(kind)) return facts.broken ? undefined : listAnswer(kind, facts, language);
  if (![name, ...(question.parameter === undefined || kind === 'exists' ? [] : [question.parameter])].every((each) => occurs(text, each)) || (owner !== undefined && !occurs(text, owner))) {
    const absent = [owner, name, question.parameter].find((each) => each !== undefined && !occurs(text, each)) as string;
    // What comes before a dot may be something of the language.
    if (absent === owner && question.dotted) return undefined;
    // A word without marks may be none of a program.
    return question.sure ? missing(absent, facts, path, language) : undefined;
  }
  const called = facts.definitions.filter((definition) => definition.name === name && (owner === undefined || definition.owner === owner));
  const from = owner === undefined ? facts.imports.filter(({ names }) => names.includes(name)) : [];
  if (called.length + from.length === 0 || called.length + from.length > MOST_PLACES || called.some(({ broken }) => broken)) return undefined;
  if (kind === 'where' || kind === 'exists') return facts.localNames.has(name) && owner === undefined ? alsoLocal(question, called, from, name) : whereAnswer(called, from, name, language);
  if (called.length === 0) return undefined;
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

const together = (sentences: readonly string[]): string => (sentences.length <= MOST_IN_LINE ? sentences.join(' ') : sentences.map((each) => `- ${each}`).join('\n'));

/** A setter returns nothing, and says so nowhere. */
function withoutSetters(called: readonly Definition[]): readonly Definition[] {
  const others = called.filter(({ kind, parameters }) => kind !== 'accessor' || parameters?.length === 0);
  return others.length > 0 ? others : called;
}

const withoutOwner = ({ owner: _, ...rest }: Definition): Definition => rest;

/** In one sentence each; undefined unless there is an answer for all. */
function every(definitions: readonly Definition[], answer: (definition: Definition) => string | undefined): string | undefined {
  const answers = definitions.map(answer);
  return answers.every((each) => each !== undefined) ? together([...new Set(answers)]) : undefined;
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

const brief = (text: string | undefined): boolean => text === undefined || (text.length <= LONGEST_TYPE && !text.includes('`'));

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
function alsoLocal({ language, ofKind = '' }: FactQuestion, called: readonly Definition[], from: readonly Import[], name: string): string | undefined {
  if (/variable|constant|parameter|argument|variável|constante|parâmetro|parametro|argumento/.test(ofKind)) return undefined;
  return `${whereAnswer(called, from, name, language)} ${WORDS[language].alsoLocal}`;
}

function importsAnswer({ imports, reexports }: Facts, path: string, language: QuestionLanguage): string | undefined {
  const modules = (of: readonly Import[]) => [...new Set(of.map(({ module }) => module))];
  const top = modules(imports.filter((each) => each.top));
  const deeper = modules(imports.filter((each) => !each.top)).filter((module) => !top.includes(module));
  if (top.length + deeper.length > MOST_NAMES) return undefined;
  const lines = imports.filter((each) => each.top).map(({ line }) => line);
  return WORDS[language].imports(quoted(path), top, deeper, modules(reexports), lines, imports.filter((each) => !each.top).map(({ line }) => line), reexports.map(({ line }) => line));
}

/** What stands inside a function or a class is named apart: nobody can use it from elsewhere by that name. */
function listAnswer(kind: ListKind, { definitions }: Facts, language: QuestionLanguage): string | undefined {
  const all = definitions.filter((definition) => definition.kind === DEFINES[kind]);
  const isOwn = ({ local, owner }: Definition): boolean => !local && owner === undefined;
  const firsts = (some: readonly Definition[]): Definition[] => some.filter(({ name }, i) => some.findIndex((each) => each.name === name) === i);
  const own = firsts(all.filter(isOwn));
  const inside = firsts(all.filter((definition) => !isOwn(definition)));
  if (own.length + inside.length > MOST_NAMES) return undefined;
  const { defines, inside: within } = WORDS[language];
  const places = (some: readonly Definition[]): string => joined(some.map(({ name, line }) => `${quoted(name)} (${WORDS[language].line} ${line})`), language);
  return [defines(kind, own.length, places(own)), ...(inside.length ? [within(places(inside))] : [])].join(' ');
}

const DEFINES: Readonly<Record<ListKind, Definition['kind']>> = { classes: 'class', functions: 'function', types: 'type' };

function whereAnswer(called: readonly Definition[], from: readonly Import[], name: string, language: QuestionLanguage): string {
  const words = WORDS[language];
  const shown = ({ text }: Definition): string | undefined => (text.length <= LONGEST_LINE && !text.includes('`') ? text : undefined);
  const places = called.map((definition) => words.where(definition.line, shown(definition)));
  const imported = from.map(({ module, line }) => words.imported(quoted(name), quoted(module), line));
  return [...(places.length ? [sentence(places, words.defined(quoted(name)), language)] : []), ...imported].join(places.length > MOST_IN_LINE ? '\n\n' : ' ');
}

/** What is written in another case is named: it is likely meant. */
function missing(name: string, { definitions }: Facts, path: string, language: QuestionLanguage): string {
  const like = definitions.find((definition) => definition.name.toLowerCase() === name.toLowerCase());
  return `${WORDS[language].missing(quoted(name), quoted(path))}${like ? ` ${WORDS[language].like(quoted(like.name), like.line)}` : ''}`;
}

const occurs = (text: string, name: string): boolean => new RegExp(`(?<![\\p{L}\\p{N}_$])${name.replace(/[$.[\]]/g, '\\$&')}(?![\\p{L}\\p{N}_$])`, 'u').test(text);

/** What has such marks inside needs more of them. */
const quoted = (name: string): string => (name.includes('`') ? `\`\` ${name} \`\`` : `\`${name}\``);

/** With what it belongs to where that tells several apart. */
function qualified(all: readonly Definition[], name: string, owner: string | undefined): string {
  return quoted(owner !== undefined && new Set(all.map((each) => each.owner)).size > 1 ? `${owner}.${name}` : name);
}

function listed(names: readonly string[], language: QuestionLanguage): string {
  return joined(names.map(quoted), language);
}

function joined(each: readonly string[], language: QuestionLanguage): string {
  return each.length < 2 ? each.join('') : `${each.slice(0, -1).join(', ')} ${language === 'en' ? 'and' : 'e'} ${each.at(-1)}`;
}

function sentence(places: readonly string[], subject: string, language: QuestionLanguage): string {
  if (places.length > MOST_IN_LINE) return `${subject}\n\n${places.map((each) => `- ${each}`).join('\n')}`;
  return `${subject} ${places.join(language === 'en' ? ', and ' : ', e ')}.`;
}

const span = (lines: readonly number[], one: string, many: string): string => {
  const [first, last] = [Math.min(...lines), Math.max(...lines)];
  return first === last ? `${one} ${first}` : `${many} ${first}–${last}`;
};

const WORDS = {
  en: {
    line: 'line',
    alsoLocal: 'Variables or parameters inside functions are called so, too.',
    defines: (kind: ListKind, n: number, places: string) => {
      const [one, many] = ({ classes: ['class', 'classes'], functions: ['function', 'functions'], types: ['type', 'types'] } as const)[kind];
      return n === 0 ? `This file defines no ${many} at its top level.` : `This file defines the ${n === 1 ? one : many} ${places}.`;
    },
    inside: (places: string) => `Inside others it defines ${places}.`,
    defined: (n: string) => `${n} is defined`,
    where: (line: number, text?: string) => `in line ${line}${text === undefined ? '' : `: \`${text}\``}`,
    missing: (n: string, path: string) => `There is no ${n} in ${path}.`,
    like: (n: string, line: number) => `There is ${n} (line ${line}).`,
    imported: (n: string, module: string, line: number) => `${n} is imported from ${module} (line ${line}).`,
    parameters: (n: string, names: readonly string[], line: number) => `${n} takes ${names.length ? listed(names, 'en') : 'no parameters'} (line ${line}).`,
    hasType: (p: string, type: string, line: number) => `${p} has the type \`${type}\` (line ${line}).`,
    noType: (p: string, n: string, line: number) => `${p} of ${n} is declared without a type (line ${line}).`,
    hasDefault: (p: string, value: string, line: number) => `${p} defaults to \`${value}\` (line ${line}).`,
    noDefault: (p: string, n: string, line: number) => `${p} of ${n} has no default value (line ${line}).`,
    returns: (n: string, type: string | undefined, line: number) => (type === undefined ? `${n} is declared without a return type (line ${line}).` : `${n} returns \`${type}\` (line ${line}).`),
    base: (n: string, bases: readonly string[], interfaces: readonly string[], line: number) => `${n} ${bases.length ? `extends ${listed(bases, 'en')}` : 'has no base class'}${interfaces.length ? ` and implements ${listed(interfaces, 'en')}` : ''} (line ${line}).`,
    owner: (n: string, isMethod: boolean, owner: string, isClass: boolean, line: number) => `${n} is a ${isMethod ? 'method' : 'member'} of ${owner}${isClass ? '' : ', which is an object and no class'} (line ${line}).`,
    noOwner: (n: string, line: number) => `${n} belongs to no class: it is a function (line ${line}).`,
    members: (n: string, methods: readonly string[], accessors: readonly string[], line: number, bases: readonly string[]) =>
      `${n} has ${methods.length ? `the method${methods.length > 1 ? 's' : ''} ${listed(methods, 'en')}` : 'no methods of its own'}${accessors.length ? ` and the accessor${accessors.length > 1 ? 's' : ''} ${listed(accessors, 'en')}` : ''} (from line ${line})${bases.length ? ', besides those that it inherits' : ''}.`,
    imports: (path: string, top: readonly string[], deeper: readonly string[], reexports: readonly string[], lines: readonly number[], deeperLines: readonly number[], exportLines: readonly number[]) => [
      top.length ? `This file imports ${listed(top, 'en')} (${span(lines, 'line', 'lines')}).` : `There are no imports at the top level of ${path}.`,
      ...(deeper.length ? [`Inside blocks or functions it imports ${listed(deeper, 'en')} (${span(deeperLines, 'line', 'lines')}).`] : []),
      ...(reexports.length ? [`It exports from ${listed(reexports, 'en')} (${span(exportLines, 'line', 'lines')}).`] : []),
    ].join(' '),
  },
  pt: {
    line: 'linha',
    alsoLocal: 'Variáveis ou parâmetros dentro de funções também se chamam assim.',
    defines: (kind: ListKind, n: number, places: string) => {
      const [none, one, many] = ({ classes: ['classes', 'a classe', 'as classes'], functions: ['funções', 'a função', 'as funções'], types: ['tipos', 'o tipo', 'os tipos'] } as const)[kind];
      return n === 0 ? `Este arquivo não define ${none} no nível do arquivo.` : `Este arquivo define ${n === 1 ? one : many} ${places}.`;
    },
    inside: (places: string) => `Dentro de outras definições há ${places}.`,
    defined: (n: string) => `A definição de ${n} está`,
    where: (line: number, text?: string) => `na linha ${line}${text === undefined ? '' : `: \`${text}\``}`,
    missing: (n: string, path: string) => `Não há ${n} em ${path}.`,
    like: (n: string, line: number) => `Há ${n} (linha ${line}).`,
    imported: (n: string, module: string, line: number) => `${n} é importado de ${module} (linha ${line}).`,
    parameters: (n: string, names: readonly string[], line: number) => `${n} ${names.length ? `recebe ${listed(names, 'pt')}` : 'não recebe parâmetros'} (linha ${line}).`,
    hasType: (p: string, type: string, line: number) => `${p} tem o tipo \`${type}\` (linha ${line}).`,
    noType: (p: string, n: string, line: number) => `${p} de ${n} é declarado sem tipo (linha ${line}).`,
    hasDefault: (p: string, value: string, line: number) => `O valor padrão de ${p} é \`${value}\` (linha ${line}).`,
    noDefault: (p: string, n: string, line: number) => `${p} de ${n} não tem valor padrão (linha ${line}).`,
    returns: (n: string, type: string | undefined, line: number) => (type === undefined ? `${n} é declarado sem tipo de retorno (linha ${line}).` : `${n} retorna \`${type}\` (linha ${line}).`),
    base: (n: string, bases: readonly string[], interfaces: readonly string[], line: number) => `${n} ${bases.length ? `herda de ${listed(bases, 'pt')}` : 'não tem classe base'}${interfaces.length ? ` e implementa ${listed(interfaces, 'pt')}` : ''} (linha ${line}).`,
    owner: (n: string, isMethod: boolean, owner: string, isClass: boolean, line: number) => `${n} é ${isMethod ? 'um método' : 'um membro'} de ${owner}${isClass ? '' : ', que é um objeto e não uma classe'} (linha ${line}).`,
    noOwner: (n: string, line: number) => `${n} não pertence a nenhuma classe: é uma função (linha ${line}).`,
    members: (n: string, methods: readonly string[], accessors: readonly string[], line: number, bases: readonly string[]) =>
      `${n} ${methods.length ? `tem ${methods.length > 1 ? 'os métodos' : 'o método'} ${listed(methods, 'pt')}` : 'não tem métodos próprios'}${accessors.length ? ` e ${accessors.length > 1 ? 'os acessores' : 'o acessor'} ${listed(accessors, 'pt')}` : ''} (a partir da linha ${line})${bases.length ? ', além dos que herda' : ''}.`,
    imports: (path: string, top: readonly string[], deeper: readonly string[], reexports: readonly string[], lines: readonly number[], deeperLines: readonly number[], exportLines: readonly number[]) => [
      top.length ? `Este arquivo importa ${listed(top, 'pt')} (${span(lines, 'linha', 'linhas')}).` : `Não há importações no nível do arquivo em ${path}.`,
      ...(deeper.length ? [`Dentro de blocos ou funções importa ${listed(deeper, 'pt')} (${span(deeperLines, 'linha', 'linhas')}).`] : []),
      ...(reexports.length ? [`Exporta de ${listed(reexports, 'pt')} (${span(exportLines, 'linha', 'linhas')}).`] : []),
    ].join(' '),
  },
} as const;
