/** The words of questions in English and Portuguese: kinds of definitions, and intents. Does not read messages. */

export type Language = 'en' | 'pt';
type InBoth = Readonly<Record<Language, string>>;

/** The first word is the title of a list. */
export const KINDS = {
  classes: { en: 'classes', pt: 'classes' },
  functions: { en: 'functions', pt: 'funções' },
  methods: { en: 'methods', pt: 'métodos' },
  types: { en: 'types', pt: 'tipos' },
  interfaces: { en: 'interfaces', pt: 'interfaces' },
  enums: { en: 'enums', pt: 'enums' },
  namespaces: { en: 'namespaces', pt: 'namespaces' },
  constants: { en: 'constants', pt: 'constantes' },
  variables: { en: 'variables', pt: 'variáveis' },
  accessors: { en: 'accessors', pt: 'acessores' },
  fields: { en: 'fields|properties|attributes', pt: 'campos|propriedades|atributos' },
  tables: { en: 'tables', pt: 'tabelas' },
  views: { en: 'views', pt: 'visões' },
  indexes: { en: 'indexes|indices', pt: 'índices' },
  triggers: { en: 'triggers', pt: 'gatilhos' },
  keys: { en: 'keys', pt: 'chaves' },
  headings: { en: 'headings|sections|chapters', pt: 'títulos|cabeçalhos|seções|capítulos' },
} as const satisfies Record<string, InBoth>;
export type Kind = keyof typeof KINDS;

/** `THROW` with other words in any order. */
const THROWS = '(?=.*THROW)(?:(?:#|THROW|WHO|WHERE|ERROR)(?: |$))+';

/**
 * Patterns for the words of a question that are left without fillers. `#` is the name or the file, `# !` a
 * question what it is. `KINDS` are one or more words of `KINDS`, other capitals are in `WORDS`.
 */
export const INTENTS = {
  outline: {
    en: '(?:top-level )?KINDS(?: # (?:define|have|contain)| defined| declared| exist)?|# (?:define|contain)',
    pt: 'KINDS(?: # (?:define|contém|tem)| (?:defin|declar)[ia]d[oa]s)?|# (?:define|contém)',
  },
  imports: {
    en: '(?:modules |packages |libraries )?(?:# imports?|imports|imported)|dependencies(?: # have)?',
    pt: '(?:módulos |pacotes |bibliotecas )?(?:# importa|importações|importad[oa]s)|dependências(?: # tem)?',
  },
  exports: {
    en: '(?:KINDS )?(?:# exports?|exports|exported)',
    pt: '(?:KINDS )?(?:# exporta|exportações|exportad[oa]s?)',
  },
  purpose: {
    en: '(?:EXPLAIN )?(?:# (?:!|do|mean)|#(?: !)? (?:used )?for)|purpose(?: #)?',
    pt: '(?:EXPLAIN )?(?:# (?:!|faz|serve|significa)|(?:faz|serve|significa) #)|propósito(?: #)?',
  },
  where: {
    en: 'WHERE #(?: DEFINED| come)?|# exist|value #|class # belong|class has #',
    pt: 'WHERE (?:DEFINED )?#(?: DEFINED| fica| vem)?|valor #|classe pertence #',
  },
  signature: {
    en: 'ARGUMENTS #(?: take| have)?|# (?:take|accept)|(?:type|default(?: value)?) #(?: #)?|# default #',
    pt: 'ARGUMENTS #(?: recebe| tem)?|# recebe|recebe #|(?:tipo|valor padrão) #(?: #)?',
  },
  returns: {
    en: '# returns?|return(?: type| value)? #|type # return|returned #',
    pt: '# retorna|retorna #|# devolve|(?:tipo |valor )?retorno #',
  },
  callers: {
    en: '(?:WHO )?(?:calls?|uses?) #|(?:WHERE )?# CALLED|(?:callers|usages) #',
    pt: '(?:WHO )?(?:chama|usa)m? #|(?:WHERE )?# CALLED|WHERE CALLED #|usos #',
  },
  members: { en: 'MEMBERS #(?: have)?|# MEMBERS', pt: 'MEMBERS #(?: tem| possui)?' },
  base: {
    en: '(?:base class|superclass|parent class) #(?: have)?|(?:class )?# (?:extend|inherit)',
    pt: '(?:classe base|superclasse|classe mãe) #(?: tem)?|(?:classe )?# (?:herda|estende)',
  },
  changes: {
    en: '(?:WHERE )?(?:value )?# CHANGED|WHERE # (?:set|change)|(?:WHO )?CHANGE #',
    pt: '(?:WHERE )?(?:valor )?# CHANGED|WHERE CHANGED #|WHERE # muda|(?:WHO )?CHANGE #',
  },
  throws: { en: THROWS, pt: THROWS },
} as const satisfies Readonly<Record<string, InBoth>>;
export type Intent = keyof typeof INTENTS;

/** Intents of questions about the file, and about a name or the file. All others are about a name. */
export const OF_FILE: readonly Intent[] = ['outline', 'imports', 'exports'];
export const OF_EITHER: readonly Intent[] = ['purpose', 'throws'];

/** Words that stand for others in `INTENTS`, and those that questions have beside them. */
export const WORDS: Readonly<Record<string, InBoth>> = {
  WHO: { en: '(?:who|functions?|methods?|code|lines?)', pt: '(?:quem|funções|função|métodos?|código|linhas?)' },
  ARGUMENTS: { en: '(?:parameters|arguments|signature)', pt: '(?:parâmetros|argumentos|assinatura)' },
  WHERE: { en: '(?:where|lines?)', pt: '(?:onde|linhas?)' },
  DEFINED: { en: '(?:defined|declared|imported)', pt: '(?:definid|declarad|importad)[oa]' },
  MEMBERS: {
    en: '(?:members|methods|accessors|fields|properties|attributes)',
    pt: '(?:membros|métodos|acessores|campos|propriedades|atributos)',
  },
  CALLED: { en: '(?:called|used)', pt: '(?:chamad|usad)[oa]' },
  CHANGED: {
    en: '(?:changed|assigned|reassigned|modified|updated|incremented|initialized)',
    pt: '(?:alterad|modificad|mudad|atribuíd|atualizad|inicializad)[oa]',
  },
  CHANGE: {
    en: '(?:change|assign|modif(?:y|ie)|update|set|increment)s?',
    pt: '(?:altera|muda|modifica|atualiza|incrementa)m?',
  },
  THROW: { en: '(?:throws?|thrown|raises?|raised|panics?)', pt: '(?:lança[mr]?|lançad[oa]s?|levanta[mr]?)' },
  ERROR: { en: '(?:exceptions?|errors?|statements|directly|anything)', pt: '(?:exceção|exceções|erros?|ser)' },
  ASK: {
    en: 'what|which|how|is|are|does|can|list|show|tell|in|on',
    pt: 'o|que|qual|quais|quant[oa]s|em|há|existe|liste|mostre|me|este|para|a',
  },
  EXPLAIN: { en: '(?:explain|describe|summari[sz]e)', pt: '(?:expli(?:que|ca)|descreva|resuma)' },
  /** Without a meaning of their own. They are names only right behind "does" and "can". */
  FILLER: {
    en: 'ASK|the|an?|of|from|by|to|and|all|any|many|there|here|please|me|you|be|ever|get|about',
    pt: 'ASK|os|as|um|uma|d[eoa]|n[oa]|e|é|está|são|pode|podem|existem|aqui|tod[oa]s|alguma?',
  },
  /** The attached file, with or without words that say nothing. */
  FILE: { en: '(?:this|the) (?:file|module)', pt: '(?:este|esse|o) arquivo' },
  INSIDE: { en: '(?:in|of|from) %', pt: '(?:em|d[eo]|no) %|(?:[nd]o|[nd]es[st]e) arquivo' },
  SELECTION: {
    en: 'this(?: code| function| method| class)?|the (?:selection|selected code)',
    pt: '(?:este|esse|o) (?:código|trecho)(?: selecionado)?|isto|isso',
  },
  NOUN: {
    en: '(?:class|function|method|field|property|type|interface|constant|variable|table|key|section)',
    pt: '(?:classe|função|método|campo|propriedade|tipo|interface|constante|variável|tabela|chave|seção)',
  },
  IS: { en: '(?:what is|is there|EXPLAIN) #|what # does', pt: '(?:o que é|existe|EXPLAIN) #' },
  /** A name with the words that belong to it. */
  NAMED: {
    en: '(?:(?:the|an?) )?(?:NOUN (?:called )?)?#(?: NOUN)?',
    pt: '(?:(?:o|a|um|uma|alguma?) )?(?:NOUN (?:chamad[oa] )?)?#',
  },
};
