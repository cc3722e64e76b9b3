/** What questions for facts may ask for. Pure. */

export const LANGUAGES = ['en', 'pt'] as const;
export type QuestionLanguage = (typeof LANGUAGES)[number];

/** Of what one file defines or exports, by the word that asks for it. */
const LISTS = {
  en: {
    classes: 'classes',
    functions: 'functions',
    types: 'types',
    interfaces: 'interfaces',
    enums: '(?:enums|enumerations)',
    constants: '(?:constants|consts)',
    variables: 'variables',
  },
  pt: {
    classes: 'classes',
    functions: '(?:funções|funcoes)',
    types: 'tipos',
    interfaces: 'interfaces',
    enums: '(?:enums|enumerações)',
    constants: 'constantes',
    variables: '(?:variáveis|variaveis)',
  },
} as const;
export type ListKind = keyof (typeof LISTS)['en'];

export type ExportKind = 'exports' | 'exported' | 'exported default';

/**
 * `defines`: all that the file does; `listed`, `exported`: those of the kinds that are named; `imported`: whether a module or a name is; `source`: where a name is imported
 * from; `returns`: the type that is declared; `returned`: whatever can be said of what comes back; `does`: what its comment says; `is`: that, or its line; `passed`: whether it is exported; `used`: all lines that have it; `about`: what the file says of itself.
 */
export type FactKind =
  | 'imports'
  | 'imported'
  | 'source'
  | 'defines'
  | 'lines'
  | 'listed'
  | 'async'
  | ExportKind
  | 'methods'
  | 'fields'
  | 'parameters'
  | 'signature'
  | 'type'
  | 'default'
  | 'returns'
  | 'returned'
  | 'does'
  | 'is'
  | 'base'
  | 'owner'
  | 'where'
  | 'exists'
  | 'passed'
  | 'called'
  | 'used'
  | 'about';

export const isExport = (kind: FactKind): kind is ExportKind => kind.startsWith('export');
/** Of a file as a whole: there is no name in the question. */
export const isOfFile = (kind: FactKind): boolean =>
  /^(?:imports|defines|lines|listed|async|about)$/.test(kind) || isExport(kind);

/** Any of these words, of a language. */
export const anyList = (language: QuestionLanguage): string => `(?:${Object.values(LISTS[language]).join('|')})`;

/** Those that a text names, in its order. */
export function listsIn(text: string, language: QuestionLanguage): ListKind[] {
  const kinds = Object.entries(LISTS[language]) as [ListKind, string][];
  return text
    .split(/, (?:and |e )?| and | e /)
    .flatMap((part) =>
      kinds.filter(([, word]) => new RegExp(`(?:^| )${word}$`, 'iu').test(part)).map(([kind]) => kind),
    );
}

/** A kind, and a pattern that a whole message has to fit (factPatterns.ts). */
export type Wording = readonly [FactKind, string];
