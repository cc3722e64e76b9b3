/** Finds what a name means in one file, and writes sentences about it in the user's language. Answers nothing. */
import { occursIn } from '../text/syntax/occurrences.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { Definition } from './extract/definitions.ts';
import { dataFacts, type Facts, NO_FACTS } from './extract/facts.ts';
import { type Kind, KINDS, type Language } from './intents.ts';

/** In English and Portuguese. `#` is what the sentence is about, `%` its file or something else. Items follow. */
const TITLES = {
  list: ['# of %:', '# de %:'],
  outline: ['Outline of #:', 'Estrutura de #:'],
  group: ['#:', '#:'],
  imports: ['Imports of #:', 'Importações de #:'],
  exports: ['Exports of #:', 'Exportações de #:'],
  reexports: ['It re-exports from', 'Reexporta de'],
  publics: ['Public names of #:', 'Nomes públicos de #:'],
  unclear: ['It is not certain what # exports.', 'Não é certo o que # exporta.'],
  defined: ['# is defined', 'A definição de # está'],
  overloaded: ['# has overloads. It is defined', '# tem sobrecargas. A definição está'],
  imported: ['# is imported from', '# é importado de'],
  signature: ['The signature of # is', 'A assinatura de # está'],
  returns: ['# returns', '# retorna'],
  returnsNo: ['# returns', '# não retorna'],
  inherits: ['Inherited members are not listed.', 'Membros herdados não são listados.'],
  bases: ['Base classes of #:', 'Classes base de #:'],
  called: ['Callers of #:', 'Quem chama #:'],
  noUse: ['Nothing in % uses #.', 'Nada em % usa #.'],
  appears: ['# appears', '# aparece'],
  alsoAppears: ['Its name also appears', 'O nome aparece também'],
  missing: ['# does not appear in %.', '# não aparece em %.'],
  assigned: ['Assignments to #:', 'Atribuições a #:'],
  notAssigned: ['No assignment in % changes #. A call may.', 'Nenhuma atribuição em % altera #. Uma chamada pode.'],
  first: ['First values of #:', 'Primeiros valores de #:'],
  deleted: ['Deletions of #:', 'Remoções de #:'],
  thrown: ['Code that throws #:', 'Código que lança #:'],
  throws: ['Thrown in #:', 'Lançado em #:'],
  noThrows: ['# throws nothing directly.', '# não lança nada diretamente.'],
  mayThrow: ['What it calls may throw.', 'O que é chamado pode lançar.'],
  says: ['The comment of # says:', 'O comentário de # diz:'],
  commentSays: ['The comment says:', 'O comentário diz:'],
  noComment: ['No comment above # says what it does.', 'Nenhum comentário acima de # diz o que faz.'],
  nothingDefined: ['# defines nothing at its top level.', '# não define nada no nível do arquivo.'],
  partly: ['The file has syntax errors: there may be more.', 'O arquivo tem erros de sintaxe: pode haver mais.'],
  unread: ['Kvasir cannot read this from #.', 'O Kvasir não consegue ler isto em #.'],
  tooLong: ['# is too long to be read for this.', '# é longo demais para ser lido.'],
  noFile: ['No file is attached. Open or attach one.', 'Nenhum arquivo está anexado. Abra ou anexe um.'],
  noName: ['Which name? Write `# NAME`.', 'Que nome? Escreva `# NOME`.'],
  tooMany: ['Attach at most # files for this.', 'Anexe no máximo # arquivos para isso.'],
  // In items.
  none: ['none', 'não há'],
  outside: ['outside functions', 'fora de funções'],
  aValue: ['a value', 'um valor'],
  nothing: ['nothing', 'nada'],
  more: ['# more', 'mais #'],
  line: ['line #', 'linha #'],
  on: ['on #', 'na #'],
} as const;
export type Title = keyof typeof TITLES;

/** One thing in an answer. */
export interface Item {
  /** Ready for display, as `detail`. Without it, the item is a place. */
  text?: string;
  /** From 1. */
  lines: readonly number[];
  detail?: string | undefined;
  depth?: number;
}

/** More items, and those with details, are a list with bullets. */
const MAX_INLINE = 8;
/** Of an item, lines that are shown. */
const MAX_LINES = 20;
/** Places that are shown with their code. Longer code is cut. */
const MAX_PLACES = 3;
const MAX_CODE = 200;
/** Writes a name or code in backticks, more of them than it contains. */
export function quoted(code: string): string {
  const marks = '`'.repeat(1 + Math.max(0, ...(code.match(/`+/g) ?? []).map(({ length }) => length)));
  const cut = code.length > MAX_CODE ? `${code.slice(0, MAX_CODE)} …` : code;
  return marks.length > 1 ? `${marks} ${cut} ${marks}` : `\`${cut}\``;
}

export const words = (language: Language, title: Title, about = '', other = ''): string =>
  TITLES[title][language === 'en' ? 0 : 1].replace(/[#%]/g, (mark) => (mark === '#' ? about : other));

/** Joins sentences, or paragraphs if one of them has several lines. Undefined without any. */
export function joined(parts: readonly (string | undefined)[]): string | undefined {
  const all = [...new Set(parts)].filter((part) => part !== undefined);
  return all.join(all.some((part) => part.includes('\n')) ? '\n\n' : ' ') || undefined;
}
/** The name with its owner. If brackets are missing, a method may seem to belong to another class. */
export const fullName = ({ name, owner }: Definition, { facts }: Source): string =>
  quoted(owner === undefined || facts.broken ? name : `${owner}.${name}`);
export const asItem = ({ name, line }: { name: string; line: number }): Item => ({ text: quoted(name), lines: [line] });

/** One file with what it defines, and the sentences about it. */
export class Source {
  readonly document: SourceDocument;
  readonly facts: Facts;
  readonly language: Language;

  constructor(document: SourceDocument, facts: Facts = NO_FACTS, language: Language = 'en') {
    this.document = document;
    this.facts = dataFacts(document) ?? facts;
    this.language = language;
  }

  /** Whether the text has the name. */
  has(name: string): boolean {
    return name === '' || occursIn(this.document.lf, name);
  }

  /** All names of the file. */
  get names(): Set<string> {
    const { changes, definitions, fields, imports, localNames } = this.facts;
    return new Set([
      ...definitions.flatMap(({ name }) => [name, ...name.split('.')]),
      ...[...fields, ...changes.writes, ...changes.throws].flatMap(({ name }) => name ?? []),
      ...imports.flatMap(({ names }) => names),
      ...localNames,
    ]);
  }

  /** A sentence about a name, or about the file, with its items in it or as a list. `other` is the file, too. */
  say(title: Title, about?: string, items?: readonly Item[], other?: string): string {
    const path = quoted(this.document.path);
    const said = words(this.language, title, about ?? path, other ?? path);
    if (!items) return said;
    const isList = items.some(({ text, detail, depth = 0 }) => depth > 0 || (detail && (text || items.length > 1)));
    if (!isList && items.length <= MAX_INLINE) return `${said} ${this.listed(items) || this.say('none')}.`;
    const bullets = items.map((item) => `${'  '.repeat(item.depth ?? 0)}- ${this.itemText(item)}`);
    return `${said.replace(/:?$/, ':')}\n\n${bullets.join('\n')}`;
  }

  /** The same, or undefined without items. */
  sayAny(title: Title, items: readonly Item[], about?: string): string | undefined {
    return items.length > 0 ? this.say(title, about, items) : undefined;
  }

  /** "`flush` (line 3): detail", or "on line 3: detail" for a place. */
  itemText({ text, lines, detail }: Item): string {
    const all = lines.slice(0, MAX_LINES).map((line) => words(this.language, 'line', `${line}`));
    if (lines.length > MAX_LINES) all.push(words(this.language, 'more', `${lines.length - MAX_LINES}`));
    const at = all.join(', ');
    const place = text === undefined ? words(this.language, 'on', at) : at === '' ? text : `${text} (${at})`;
    return detail === undefined ? place : `${place}: ${detail}`;
  }

  listed(items: readonly Item[]): string {
    return items.map((item) => this.itemText(item)).join(', ');
  }

  /** That there may be more. Undefined if the file has no errors. */
  partly(): string | undefined {
    return this.facts.broken ? this.say('partly') : undefined;
  }

  /** "Functions" for `function`. In other languages, structs and enums are read as classes. */
  titleOf(kind: Kind): string {
    const [word = ''] = KINDS[kind === 'class' && this.facts.partial ? 'type' : kind][this.language].split('|');
    return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
  }

  /** Few lines with their code, or more lines as one item. */
  placesOf(lines: readonly number[]): Item[] {
    const all = [...new Set(lines)].sort((a, b) => a - b);
    if (all.length > MAX_PLACES) return [{ lines: all }];
    const code = this.document.lf.split('\n');
    return all.map((line) => ({ lines: [line], detail: quoted((code[line - 1] ?? '').trim()) }));
  }

  /** An item for each function and detail, with all its lines. */
  byFunction(acts: readonly { line: number; within?: string | undefined; detail?: string | undefined }[]): Item[] {
    const items = new Map<string, Item & { lines: number[] }>();
    for (const { line, within, detail } of acts) {
      const text = within === undefined ? this.say('outside') : quoted(within);
      const item = items.get(`${text} ${detail}`) ?? { text, lines: [], detail };
      items.set(`${text} ${detail}`, item);
      if (!item.lines.includes(line)) item.lines.push(line);
    }
    return [...items.values()];
  }
}
