/** Writes answers: a title in the user's language, and items with name, lines and detail. Decides nothing. */
import { type Kind, KINDS, type Language } from './intents.ts';

/** In English and Portuguese. `#` is what the sentence is about, `%` its file or something else. Items follow. */
const TITLES = {
  list: ['# of %:', '# de %:'],
  topList: ['# of % at the top level:', '# de % no nível do arquivo:'],
  outline: ['Outline of #:', 'Estrutura de #:'],
  imports: ['Imports of #:', 'Importações de #:'],
  exports: ['Exports of #:', 'Exportações de #:'],
  someExports: ['Exports (#) of %:', 'Exportações (#) de %:'],
  reexports: ['It exports from', 'Exporta de'],
  passesOn: ['All exports of these are passed on:', 'Todas as exportações destes são repassadas:'],
  byName: ['There is no `__all__`: these names are public.', 'Não há `__all__`: estes nomes são públicos.'],
  unclear: ['It is not certain what # exports.', 'Não é certo o que # exporta.'],
  defined: ['# is defined', 'A definição de # está'],
  imported: ['# is imported from', '# é importado de'],
  signature: ['The signature of # is', 'A assinatura de # está'],
  returns: ['# returns', '# retorna'],
  returnsNo: ['# returns', '# não retorna'],
  yields: ['# yields', '# produz'],
  extends: ['# extends', '# herda de'],
  implements: ['It implements', 'Implementa'],
  noBase: ['# has no base class.', '# não tem classe base.'],
  called: ['Callers of #:', 'Quem chama #:'],
  otherObject: ['A call on another object may be of another #.', 'Em outro objeto, a chamada pode ser de outro #.'],
  noUse: ['Nothing in % uses #.', 'Nada em % usa #.'],
  appears: ['# appears', '# aparece'],
  alsoAppears: ['Its name also appears', 'O nome aparece também'],
  missing: ['# does not appear in %.', '# não aparece em %.'],
  assigned: ['Assignments to #:', 'Atribuições a #:'],
  notAssigned: ['No assignment in % changes #.', 'Nenhuma atribuição em % altera #.'],
  firstValue: ['Its first value is', 'Seu primeiro valor está'],
  callsOn: ['Calls on it may change it:', 'Chamadas nele podem alterá-lo:'],
  thrown: ['Code that throws #:', 'Código que lança #:'],
  throws: ['Directly thrown in #:', 'Lançado diretamente em #:'],
  noThrows: ['# throws nothing directly.', '# não lança nada diretamente.'],
  mayThrow: ['What it calls may throw.', 'O que é chamado pode lançar.'],
  says: ['The comment of # says:', 'O comentário de # diz:'],
  commentSays: ['The comment says:', 'O comentário diz:'],
  noComment: ['No comment says what # does.', 'Nenhum comentário diz o que # faz.'],
  nothingDefined: ['# defines nothing at its top level.', '# não define nada no nível do arquivo.'],
  partly: ['The file has syntax errors: there may be more.', 'O arquivo tem erros de sintaxe: pode haver mais.'],
  noSyntax: [
    '#: this command reads TypeScript, JavaScript, Python.',
    '#: este comando lê TypeScript, JavaScript, Python.',
  ],
  noTree: ['# cannot be parsed.', '# não pode ser analisado.'],
  noFile: ['No file is attached. Open or attach one.', 'Nenhum arquivo está anexado. Abra ou anexe um.'],
  noName: ['Which name? Write `# NAME`.', 'Que nome? Escreva `# NOME`.'],
  tooMany: ['Attach at most # files for this.', 'Anexe no máximo # arquivos para isso.'],
  // In items.
  none: ['none', 'não há'],
  outside: ['outside functions', 'fora de funções'],
  aValue: ['a value', 'um valor'],
  nothing: ['nothing', 'nada'],
  more: ['# more', 'mais #'],
  inner: ['in an inner function', 'em uma função interna'],
  as: ['# as %', '# como %'],
  from: ['# from %', '# de %'],
  line: ['line #', 'linha #'],
  on: ['on #', 'na #'],
} as const;
export type Title = keyof typeof TITLES;

/** One thing in an answer. */
export interface Item {
  /** Ready for display. Without it, the item is a place. */
  text?: string;
  /** From 1. 0 is no line. */
  lines: readonly number[];
  /** Ready for display. */
  detail?: string | undefined;
  depth?: number;
}

/** A list with more items shows only the first SHOWN. */
const MAX_ITEMS = 60;
const SHOWN = 20;

/** Writes a name or code in backticks, or in two if it contains one. */
export const quoted = (name: string): string => (name.includes('`') ? `\`\` ${name} \`\`` : `\`${name}\``);

/** "Functions" for `functions`. */
export function titleOf(kind: Kind, language: Language): string {
  const [word = ''] = KINDS[kind][language].split('|');
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}

export const words = (language: Language, title: Title, about = '', other = ''): string =>
  TITLES[title][language === 'en' ? 0 : 1].replace(/[#%]/g, (mark) => (mark === '#' ? about : other));

/** "`flush` (line 3): detail", or "on line 3: detail" for a place. */
export function itemText({ text, lines, detail }: Item, language: Language): string {
  const all = lines.filter((line) => line > 0).map((line) => words(language, 'line', `${line}`));
  const at = cut(all, language);
  const place = text === undefined ? words(language, 'on', at) : at === '' ? text : `${text} (${at})`;
  return detail === undefined ? place : `${place}: ${detail}`;
}

/** "a, b, c". A long list ends with the number of those that are left out. */
export function listed(items: readonly Item[], language: Language): string {
  return cut([...new Set(items.map((item) => itemText(item, language)))], language);
}

function cut(all: readonly string[], language: Language): string {
  const rest = words(language, 'more', `${all.length - SHOWN}`);
  return (all.length > MAX_ITEMS ? [...all.slice(0, SHOWN), rest] : all).join(', ');
}

export const bullets = (items: readonly Item[], language: Language): string =>
  items.map((item) => `${'  '.repeat(item.depth ?? 0)}- ${itemText(item, language)}`).join('\n');

/** A title with its items: in the sentence, or as a list if several have details. */
export function sentence(title: string, items: readonly Item[], language: Language): string {
  if (items.length > 1 && items.some(({ detail }) => detail !== undefined))
    return `${title.replace(/:?$/, ':')}\n\n${bullets(items, language)}`;
  return `${title} ${items.length > 0 ? listed(items, language) : words(language, 'none')}.`;
}

/** Joins sentences, or paragraphs if one of them has several lines. */
export function joined(parts: readonly (string | undefined)[]): string {
  const all = [...new Set(parts)].filter((part) => part !== undefined);
  return all.join(all.some((part) => part.includes('\n')) ? '\n\n' : ' ');
}
