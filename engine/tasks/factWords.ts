/** The words that answers to questions for facts are made of, in English and in Brazilian Portuguese. Pure. */
import type { ListKind, QuestionLanguage } from './factPatterns.ts';

/** More is a list that nobody reads: */
export const MOST_NAMES = 60;
/** of those that are longer so many are named. */
const NAMED = 20;
/** More are a list. */
export const MOST_IN_LINE = 2;
/** Longer ones are no short answer. */
const LONGEST_TYPE = 200;

export const CONSTRUCTOR = /^(?:constructor|construtor|__init__)$/;

export const brief = (text: string | undefined): boolean => text === undefined || (text.length <= LONGEST_TYPE && !text.includes('`'));

const together = (sentences: readonly string[]): string => (sentences.length <= MOST_IN_LINE ? sentences.join(' ') : sentences.map((each) => `- ${each}`).join('\n'));

/** In one sentence each; undefined unless there is an answer for all. */
export function every<T>(definitions: readonly T[], answer: (definition: T) => string | undefined): string | undefined {
  const answers = definitions.map(answer);
  return answers.every((each) => each !== undefined) ? together([...new Set(answers)]) : undefined;
}

/** What has such marks inside needs more of them. */
export const quoted = (name: string): string => (name.includes('`') ? `\`\` ${name} \`\`` : `\`${name}\``);

/** With what it belongs to where that tells several apart. */
export function qualified(all: readonly { owner?: string }[], name: string, owner: string | undefined): string {
  return quoted(owner !== undefined && new Set(all.map((each) => each.owner)).size > 1 ? `${owner}.${name}` : name);
}

function listed(names: readonly string[], language: QuestionLanguage): string {
  return joined(names.map(quoted), language);
}

/** @param last between the last two */
export function joined(each: readonly string[], language: QuestionLanguage, last: string = WORDS[language].and): string {
  return each.length < 2 ? each.join('') : `${each.slice(0, -1).join(', ')} ${last} ${each.at(-1)}`;
}

/** All of them, or the first and how many more there are. */
export function firstOf(items: readonly string[], language: QuestionLanguage): string {
  return joined(items.length <= MOST_NAMES ? items : [...items.slice(0, NAMED), WORDS[language].more(items.length - NAMED)], language);
}

const span = (lines: readonly number[], one: string, many: string): string => {
  const [first, last] = [Math.min(...lines), Math.max(...lines)];
  return first === last ? `${one} ${first}` : `${many} ${first}–${last}`;
};

/** How a function gives what it gives. */
interface Gives {
  generator: boolean;
  async: boolean;
}

/** What says what a file exports; a number is the line of Python's `__all__`. */
export type ExportRule = 'statements' | 'names' | number;

/** Of definitions at a file's top level. */
type Defined = ListKind | 'namespaces';

const KINDS = {
  en: { classes: ['class', 'classes'], functions: ['function', 'functions'], types: ['type', 'types'], namespaces: ['namespace', 'namespaces'], variables: ['variable', 'variables'] },
  pt: { classes: ['classe', 'a classe', 'as classes'], functions: ['função', 'a função', 'as funções'], types: ['tipo', 'o tipo', 'os tipos'], namespaces: ['namespace', 'o namespace', 'os namespaces'], variables: ['variável', 'a variável', 'as variáveis'] },
} as const;

/** One kind of what a file defines, and where. */
export interface DefinedList {
  kind: Defined;
  count: number;
  places: string;
}

/** Why there is nothing in a file to find. */
export type Nothing = 'empty' | 'comments';

export const WORDS = {
  en: {
    line: 'line',
    and: 'and',
    or: 'or',
    yes: 'Yes',
    no: 'No',
    more: (n: number) => `${n} more`,
    alsoLocal: 'Variables or parameters inside functions are called so, too.',
    defines: (kind: ListKind, n: number, places: string) => {
      const [one, many] = KINDS.en[kind];
      if (n > MOST_NAMES) return `This file defines ${n} ${many}: ${places}.`;
      return n === 0 ? `This file defines no ${many} at its top level.` : `This file defines the ${n === 1 ? one : many} ${places}.`;
    },
    definesAll: (lists: readonly DefinedList[]) => (lists.length === 0 ? 'This file defines nothing at its top level.' : `This file defines ${lists.map(({ kind, count, places }) => `the ${KINDS.en[kind][count === 1 ? 0 : 1]} ${places}`).join('; ')}.`),
    nothing: (path: string, why: Nothing, what: 'imports' | 'exports' | 'defines') => `${path} ${why === 'empty' ? 'is empty' : 'has only comments'}: it ${what} nothing.`,
    noAnswer: (paths: readonly string[]) => `${listed(paths, 'en')} ${paths.length === 1 ? 'is' : 'are'} empty: there is nothing in ${paths.length === 1 ? 'it' : 'them'} to answer from.`,
    others: 'What is imported, and variables of functions and loops, are not listed.',
    lines: (n: number) => `This file has ${n} ${n === 1 ? 'line' : 'lines'}.`,
    partly: 'The file has syntax errors, so there may be more.',
    unreadable: 'That cannot be told: the file has syntax errors.',
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
    defaultOf: (p: string, n: string, value: string, line: number) => `${p} of ${n} defaults to \`${value}\` (line ${line}).`,
    noDefault: (p: string, n: string, line: number) => `${p} of ${n} has no default value (line ${line}).`,
    returns: (n: string, type: string | undefined, line: number) => (type === undefined ? `${n} is declared without a return type (line ${line}).` : `${n} returns \`${type}\` (line ${line}).`),
    /** @param values undefined: none */
    returned: (n: string, { generator, async }: Gives, values: string | undefined, line: number) => {
      const what = values ?? `nothing: no \`${generator ? 'yield' : 'return'}\` in it has a value (line ${line})`;
      if (generator) return `${n} is ${async ? 'an asynchronous' : 'a'} generator and yields ${what}.`;
      return async ? `${n} is \`async\`: awaited, it returns ${what}.` : `${n} returns ${what}.`;
    },
    nothingGiven: 'nothing',
    moreReturned: (count: number, { generator }: Gives, lines: readonly number[]) => `what ${count === 1 ? 'another' : `${count} other`} \`${generator ? 'yield' : 'return'}\`${count === 1 ? ' gives' : 's give'} (${span(lines, 'line', 'lines')})`,
    says: (n: string, docstring: boolean, line: number) => `The ${docstring ? 'docstring' : 'comment'} of ${n} (line ${line}) says:`,
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
    /** @param items '' for none */
    exports: (by: ExportRule, kind: ListKind | undefined, n: number, items: string) => {
      const [one, many] = kind ? KINDS.en[kind] : ['', ''];
      const what = items === '' ? (kind ? `nothing that it defines as a ${one}` : 'nothing') : kind ? `the ${n === 1 ? one : many} ${items}` : items;
      if (by === 'statements') return `This file exports ${what}.`;
      if (by !== 'names') return `By \`__all__\` (line ${by}), this file exports ${what}.`;
      if (items === '') return `There is no \`__all__\` in this file, and no ${kind ? `${one} with a public name` : 'public name'} is defined at its top level.`;
      return `There is no \`__all__\` in this file, so it exports what it defines at its top level under a public name: ${what}.`;
    },
    noExports: (path: string) => `There is no export in ${path}.`,
    notExported: (n: string, by: ExportRule, line: number) => (by === 'statements' ? `this file does not export ${n} (line ${line}).` : `\`__all__\` (line ${by}) does not have ${n} (line ${line}).`),
    as: (n: string, name: string) => `${n} as ${name}`,
    noDefaultExport: (path: string) => `There is no default export in ${path}.`,
    asDefault: (n: string | undefined) => (n === undefined ? 'a default' : `${n} as the default`),
    from: (n: string, module: string) => `${n} from ${module}`,
    /** @param n undefined: without a name */
    whole: (n: string | undefined, kind: 'function' | 'class' | undefined, line: number) => `What it exports as a whole is ${n ?? `a ${kind}`} (line ${line}).`,
    besides: (items: string) => `It exports ${items}, too, and does not say what that is.`,
    passesOn: (modules: readonly string[], lines: readonly number[]) => `It passes on all exports of ${listed(modules, 'en')} (${span(lines, 'line', 'lines')}).`,
  },
  pt: {
    line: 'linha',
    and: 'e',
    or: 'ou',
    yes: 'Sim',
    no: 'Não',
    more: (n: number) => `mais ${n}`,
    alsoLocal: 'Variáveis ou parâmetros dentro de funções também se chamam assim.',
    defines: (kind: ListKind, n: number, places: string) => {
      const [none, one, many] = ({ classes: ['classes', 'a classe', 'as classes'], functions: ['funções', 'a função', 'as funções'], types: ['tipos', 'o tipo', 'os tipos'], variables: ['variáveis', 'a variável', 'as variáveis'] } as const)[kind];
      if (n > MOST_NAMES) return `Este arquivo define ${n} ${none}: ${places}.`;
      return n === 0 ? `Este arquivo não define ${none} no nível do arquivo.` : `Este arquivo define ${n === 1 ? one : many} ${places}.`;
    },
    definesAll: (lists: readonly DefinedList[]) => (lists.length === 0 ? 'Este arquivo não define nada no nível do arquivo.' : `Este arquivo define ${lists.map(({ kind, count, places }) => `${KINDS.pt[kind][count === 1 ? 1 : 2]} ${places}`).join('; ')}.`),
    nothing: (path: string, why: Nothing, what: 'imports' | 'exports' | 'defines') => `${path} ${why === 'empty' ? 'está vazio' : 'só tem comentários'}: não ${({ imports: 'importa', exports: 'exporta', defines: 'define' } as const)[what]} nada.`,
    noAnswer: (paths: readonly string[]) => `${listed(paths, 'pt')} ${paths.length === 1 ? 'está vazio: não há nele' : 'estão vazios: não há neles'} de onde tirar uma resposta.`,
    others: 'O que é importado e variáveis de funções e laços não são listados.',
    lines: (n: number) => `Este arquivo tem ${n} ${n === 1 ? 'linha' : 'linhas'}.`,
    partly: 'O arquivo tem erros de sintaxe, então pode haver mais.',
    unreadable: 'Não dá para dizer: o arquivo tem erros de sintaxe.',
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
    defaultOf: (p: string, n: string, value: string, line: number) => `O valor padrão de ${p} em ${n} é \`${value}\` (linha ${line}).`,
    noDefault: (p: string, n: string, line: number) => `${p} de ${n} não tem valor padrão (linha ${line}).`,
    returns: (n: string, type: string | undefined, line: number) => (type === undefined ? `${n} é declarado sem tipo de retorno (linha ${line}).` : `${n} retorna \`${type}\` (linha ${line}).`),
    returned: (n: string, { generator, async }: Gives, values: string | undefined, line: number) => {
      const none = `nada: nenhum \`${generator ? 'yield' : 'return'}\` ali tem valor (linha ${line})`;
      const [not, what] = values === undefined ? ['não ', none] : ['', values];
      if (generator) return `${n} é um gerador${async ? ' assíncrono' : ''} e ${not}produz ${what}.`;
      return async ? `${n} é \`async\`: com \`await\`, ${not}retorna ${what}.` : `${n} ${not}retorna ${what}.`;
    },
    nothingGiven: 'nada',
    moreReturned: (count: number, { generator }: Gives, lines: readonly number[]) => `o que ${count === 1 ? 'outro' : `outros ${count}`} \`${generator ? 'yield' : 'return'}\` ${count === 1 ? 'dá' : 'dão'} (${span(lines, 'linha', 'linhas')})`,
    says: (n: string, docstring: boolean, line: number) => `${docstring ? 'A docstring' : 'O comentário'} de ${n} (linha ${line}) diz:`,
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
    exports: (by: ExportRule, kind: ListKind | undefined, n: number, items: string) => {
      const [none, one, many] = kind ? KINDS.pt[kind] : ['', '', ''];
      const what = items === '' ? (kind ? `nada que defina como ${none}` : 'nada') : kind ? `${n === 1 ? one : many} ${items}` : items;
      const not = items === '' ? 'não ' : '';
      if (by === 'statements') return `Este arquivo ${not}exporta ${what}.`;
      if (by !== 'names') return `Por \`__all__\` (linha ${by}), este arquivo ${not}exporta ${what}.`;
      if (items === '') return `Não há \`__all__\` neste arquivo, nem ${kind ? `${none} com nome público` : 'nome público'} no nível do arquivo.`;
      return `Não há \`__all__\` neste arquivo, então ele exporta o que define no nível do arquivo com nome público: ${what}.`;
    },
    noExports: (path: string) => `Não há exportações em ${path}.`,
    notExported: (n: string, by: ExportRule, line: number) => (by === 'statements' ? `este arquivo não exporta ${n} (linha ${line}).` : `\`__all__\` (linha ${by}) não tem ${n} (linha ${line}).`),
    as: (n: string, name: string) => `${n} como ${name}`,
    noDefaultExport: (path: string) => `Não há exportação padrão em ${path}.`,
    asDefault: (n: string | undefined) => (n === undefined ? 'uma exportação padrão' : `${n} como padrão`),
    from: (n: string, module: string) => `${n} de ${module}`,
    whole: (n: string | undefined, kind: 'function' | 'class' | undefined, line: number) => `O que exporta como um todo é ${n ?? (kind === 'class' ? 'uma classe' : 'uma função')} (linha ${line}).`,
    besides: (items: string) => `Exporta também ${items}, sem dizer o que é.`,
    passesOn: (modules: readonly string[], lines: readonly number[]) => `Repassa tudo o que ${modules.length === 1 ? 'exporta' : 'exportam'} ${listed(modules, 'pt')} (${span(lines, 'linha', 'linhas')}).`,
  },
} as const;
