/**
 * What a message that asks for a fact has to fit: the wordings of each language (factWordings*.ts) with their marks filled in, and what may be
 * said around them. Pure.
 */
import { anyList, type FactKind, LANGUAGES, type QuestionLanguage, type Wording } from './factKinds.ts';
import { ENGLISH } from './factWordingsEn.ts';
import { PORTUGUESE } from './factWordingsPt.ts';

/**
 * Marked, or a word: which words are none is asked of the file, and whether it may be a name at all behind the match (factQuestion.ts). With letters
 * of all languages in each of these patterns, whatever their case, it takes half a second to compile them all.
 */
const NAME = String.raw`(?:\x60[^\x60\s]+\x60|'[\w$.#]+'|"[\w$.#]+"|[^\x60'"\s()[\],;:?!]+(?:\(\))?)`;
const MODULE = String.raw`(?:\x60[^\x60\s]+\x60|'[^'\s]+'|"[^"\s]+"|[^\x60'"\s()[\],;?!]+)`;
const PARAMETERS = {
  en: '(?:parameters?|params?|arguments?|args?|inputs?)',
  pt: '(?:parâmetros?|parametros?|argumentos?)',
};
const KIND = {
  en: '(?:(?:the |a |an )?(?:(?:function|method|class|interface|type|constructor|variable|constant|parameter|argument|definition|symbol)(?: called| named)? )?)',
  pt: '(?:(?:o |a |um |uma |os |as )?(?:(?:função|funcao|método|metodo|classe|interface|tipo|construtor|variável|constante|parâmetro|parametro|argumento|definição|símbolo)(?: chamad[oa])? )?)',
};
const IN = { en: '(?:of|in|from|on|for|to)', pt: '(?:do|da|de|no|na|em|para o|para a|para)' };

const PATTERNS: Readonly<Record<QuestionLanguage, readonly Wording[]>> = { en: ENGLISH, pt: PORTUGUESE };

/** Said before a question, or behind it. */
export const AROUND: Readonly<
  Record<QuestionLanguage, { before: RegExp; behind: RegExp; file: string; list: RegExp }>
> = {
  en: {
    before:
      /^(?:(?:please|hi|hello|hey|ok|okay|so|and|kvasir|just)[, ]+|(?:can|could|would) you (?:please )?(?:tell|show) me[, ]+|(?:please )?(?:tell|show) me[, ]+|i(?: would|'d) like to know[, ]+|do you know )+/i,
    behind: /[, ]+(?:please|exactly|again)$/i,
    file: '(?:in|of|from|inside) (?:this|the|the current|the open|the attached) (?:file|module|document|code|script)|here',
    list: /^(?:list|show|name|give me|what about)(?: all)? (?:of )?(?:the )?(?=(?:parameters|params|arguments|args|methods|fields|properties|imports|imported|exports|exported [a-z]+|async(?:hronous)? (?:functions|methods)|classes|functions|types|interfaces|enums|constants|variables|definitions|declarations)\b)/i,
  },
  pt: {
    before:
      /^(?:(?:por favor|oi|olá|ei|ok|então|e|kvasir)[, ]+|(?:(?:você )?(?:pode|poderia) )?(?:me )?(?:diga|dizer|mostre|mostrar)(?: me|-me)?[, ]+|(?:você )?sabe (?:me )?(?:dizer )?)+/i,
    behind: /[, ]+(?:por favor|exatamente)$/i,
    file: '(?:neste|nesse|deste|desse|no|do) (?:arquivo|módulo|documento|código)(?: aberto| atual)?|aqui',
    list: /^(?:liste|mostre|cite|dê)(?: tod[ao]s)? (?:[ao]s )?(?=(?:parâmetros|parametros|argumentos|métodos|metodos|imports|módulos importados|exports|exportações|classes|funções|funcoes|tipos|variáveis|variaveis|definições|declarações)(?![\p{L}]))/iu,
  },
};

/** Other words for the same. */
const SAME: Readonly<Record<QuestionLanguage, readonly (readonly [RegExp, string])[]>> = {
  en: [[/(?<!\p{L})(what|where|which|who)['’]s(?!\p{L})/giu, '$1 is']],
  pt: [
    [/(?<!\p{L})ficheiro/giu, 'arquivo'],
    [/(?<!\p{L})(o que|onde|como) é que(?!\p{L})/giu, '$1'],
  ],
};

/** What is said of several files, in the words for one. */
const SEVERAL: Readonly<Record<QuestionLanguage, readonly (readonly [RegExp, string])[]>> = {
  en: [
    [
      /(?<!\p{L})(?:(?:each|every|both|all)(?: of)?(?: the| these| those)?|the|these|those)(?: two| three| attached| open)? files?(?!\p{L})/giu,
      'this file',
    ],
  ],
  pt: [
    [/(?<!\p{L})em (?:cada|ambos|todos)(?: um)?(?: d?os| estes| esses)? arquivos?(?!\p{L})/giu, 'neste arquivo'],
    [
      /(?<!\p{L})(n|d)?(?:estes|esses|os|cada|ambos os|todos os)(?: dois| três)? arquivos?(?!\p{L})/giu,
      '$1este arquivo',
    ],
    [/(?<!\p{L})(define|declara|importa|exporta)m(?!\p{L})/giu, '$1'],
    [/(?<!\p{L})têm(?!\p{L})/giu, 'tem'],
  ],
};

/** In the words that the patterns have. */
export function inOurWords(message: string, language: QuestionLanguage, numFiles: number): string {
  return [...SAME[language], ...(numFiles > 1 ? SEVERAL[language] : [])].reduce(
    (said, [theirs, ours]) => said.replace(theirs, ours),
    message,
  );
}

export const FIRST = { en: 'which are the ', pt: 'quais são os ' };

export const COMPILED = Object.fromEntries(
  LANGUAGES.map((language) => [
    language,
    PATTERNS[language].map(([kind, pattern]) => [kind, compiled(pattern, language)] as const),
  ]),
) as Record<QuestionLanguage, (readonly [FactKind, RegExp])[]>;

function compiled(pattern: string, language: QuestionLanguage): RegExp {
  // Node 20 refuses two groups of one name, also where only one of them can be there.
  let numGroups = 0;
  const source = pattern
    .replaceAll('PARAMS', PARAMETERS[language])
    .replaceAll(
      'MODULE',
      () =>
        `(?:(?:the |o |a )?(?:module|package|library|módulo|pacote|biblioteca) )?(?<module${numGroups++}>${MODULE})`,
    )
    .replaceAll(
      'LISTS',
      () =>
        `(?<lists${numGroups++}>${anyList(language)}(?:(?:, ?| and |, and | e )(?:the |all |as |os |tod[ao]s [ao]s )?${anyList(language)})*)`,
    )
    .replaceAll('NOUN', '(?:modules?|packages?|libraries|library|dependencies|files?|things)')
    .replace(/K?[NP]O?|\bIN\b/g, (mark) => {
      if (mark === 'IN') return IN[language];
      const role = mark.includes('P') ? 'parameter' : 'name';
      const n = numGroups++;
      const kind = mark.startsWith('K') ? `(?<${role}Kind${n}>${KIND[language]})` : '';
      return `${kind}(?<${role}${n}>${NAME})${mark.endsWith('O') ? `(?: (?:of|in|from|on|do|da|de|no|na|em) ${KIND[language]}(?<owner${n}>${NAME}))?` : ''}`;
    });
  return new RegExp(`^${source}$`, 'i');
}

/** What the patterns have become. */
export const PATTERN_SOURCES: readonly string[] = LANGUAGES.flatMap((language) =>
  COMPILED[language].map(([, { source }]) => source),
);
