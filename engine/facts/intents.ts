/** The words of questions in English and Portuguese: kinds of definitions, and intents. Does not read messages. */

export type Language = 'en' | 'pt';
type InBoth = Readonly<Record<Language, string>>;

/** In the order of an outline. The first word is the title of a list. */
export const KINDS = {
  class: { en: 'classes', pt: 'classes' },
  table: { en: 'tables', pt: 'tabelas' },
  view: { en: 'views', pt: 'visões' },
  index: { en: 'indexes|indices', pt: 'índices' },
  trigger: { en: 'triggers', pt: 'gatilhos' },
  function: { en: 'functions', pt: 'funções' },
  method: { en: 'methods', pt: 'métodos' },
  property: { en: 'properties|fields|attributes', pt: 'propriedades|campos|atributos' },
  type: { en: 'types', pt: 'tipos' },
  interface: { en: 'interfaces', pt: 'interfaces' },
  enum: { en: 'enums', pt: 'enums' },
  namespace: { en: 'namespaces', pt: 'namespaces' },
  variable: { en: 'variables', pt: 'variáveis' },
  constant: { en: 'constants', pt: 'constantes' },
  key: { en: 'keys', pt: 'chaves' },
  heading: { en: 'headings|sections|chapters', pt: 'títulos|cabeçalhos|seções|capítulos' },
} as const satisfies Record<string, InBoth>;
export type Kind = keyof typeof KINDS;

/**
 * Patterns for the words of a question that are left without fillers. `#` is the name, `%` the file, `!` asks what it
 * is. `KINDS` are one or more words of `KINDS`, other capitals are in `WORDS`.
 */
export const INTENTS = {
  outline: '(?:top-level )?KINDS(?: % (?:DEFINE|HAVE)| HAVE| DEFINED| exist)?|% DEFINE',
  imports: '(?:MODULES )?(?:% IMPORT|IMPORTED)|DEPENDENCIES(?: % HAVE)?',
  exports: '% EXPORT|EXPORTED',
  purpose: '(?:EXPLAIN )?(?:! [#%](?: FOR| DO)?|[#%] (?:DO|FOR)|DO [#%])|PURPOSE(?: [#%])?',
  where: 'WHERE (?:DEFINED )?#(?: DEFINED| IMPORTED| COME)?|# exist|VALUE #|CLASS (?:# BELONG|BELONG #)',
  signature: 'ARGUMENTS #(?: TAKE| HAVE)?|# TAKE',
  returns: '# RETURNs?|RETURN #|TYPE # RETURN',
  callers: '(?:WHO )?CALL #|(?:WHERE )?# CALLED|WHERE CALLED #|CALLERS #',
  members: 'MEMBERS #(?: HAVE)?|# MEMBERS',
  base: 'BASE #(?: HAVE)?|(?:CLASS )?# EXTEND',
  changes: '(?:WHERE )?(?:VALUE )?# CHANGED|WHERE (?:CHANGED #|# CHANGE)|(?:WHO )?CHANGE #',
  // With other words in any order.
  throws: '(?=.*THROW)(?:(?:[#%]|THROW|WHO|WHERE|ERROR)(?: |$))+',
} as const;
export type Intent = keyof typeof INTENTS;

/** Words that stand for others in `INTENTS`, and those that questions have beside them. */
export const WORDS: Readonly<Record<string, InBoth>> = {
  WHO: { en: '(?:who|functions?|methods?|code|lines?)', pt: '(?:quem|funções|função|métodos?|código|linhas?)' },
  WHERE: { en: '(?:where|lines?)', pt: '(?:onde|linhas?)' },
  ARGUMENTS: { en: '(?:parameters|arguments|signature)', pt: '(?:parâmetros|argumentos|assinatura|signature)' },
  BASE: { en: '(?:base class|superclass|parent class)', pt: '(?:classe base|superclasse|classe mãe)' },
  BELONG: { en: '(?:belong|has)', pt: 'pertence' },
  CALL: { en: '(?:calls?|uses?)', pt: '(?:chama|usa)m?' },
  CALLED: { en: '(?:called|used)', pt: '(?:chamad|usad)[oa]' },
  CALLERS: { en: '(?:callers|usages)', pt: 'usos' },
  CHANGE: {
    en: '(?:change|assign|modif\\w+|update|set|increment)s?',
    pt: '(?:altera|muda|modifica|atualiza|incrementa)m?',
  },
  CHANGED: {
    en: '(?:changed|assigned|reassigned|modified|updated|incremented|initialized|deleted)',
    pt: '(?:alterad|modificad|mudad|atribuíd|atualizad|inicializad|apagad)[oa]',
  },
  CLASS: { en: 'class', pt: 'classe' },
  COME: { en: 'come', pt: '(?:fica|vem)' },
  DEFINE: { en: '(?:define|contain)', pt: '(?:define|contém)' },
  DEFINED: { en: '(?:defined|declared)', pt: '(?:definid|declarad)[oa]s?' },
  DEPENDENCIES: { en: 'dependencies', pt: 'dependências' },
  DO: { en: '(?:do|mean)', pt: '(?:faz|serve|significa)' },
  ERROR: { en: '(?:exceptions?|errors?|statements|directly|anything)', pt: '(?:exceção|exceções|erros?|ser)' },
  EXPORT: { en: 'exports?', pt: 'exporta' },
  EXPORTED: { en: '(?:exports|exported)', pt: '(?:exportações|exportad[oa]s?)' },
  EXTEND: { en: '(?:extend|inherit)', pt: '(?:estende|herda)' },
  FOR: { en: '(?:used )?for', pt: 'serve' },
  HAVE: { en: 'have', pt: '(?:tem|possui)' },
  IMPORT: { en: 'imports?', pt: 'importa' },
  IMPORTED: { en: '(?:imports|imported)', pt: '(?:importações|importad[oa]s?)' },
  MEMBERS: { en: '(?:members|KINDS)', pt: '(?:membros|KINDS)' },
  MODULES: { en: '(?:modules|packages|libraries)', pt: '(?:módulos|pacotes|bibliotecas)' },
  PURPOSE: { en: 'purpose', pt: 'propósito' },
  RETURN: { en: 'return(?:ed)?(?: type| value)?', pt: '(?:retorna|devolve|(?:tipo |valor )?retorno)' },
  TAKE: { en: '(?:take|accept)', pt: 'recebe' },
  THROW: { en: '(?:throws?|thrown|raises?|raised|panics?)', pt: '(?:lança[mr]?|lançad[oa]s?|levanta[mr]?)' },
  TYPE: { en: 'type', pt: 'tipo' },
  VALUE: { en: 'value', pt: 'valor' },
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
  IS: { en: '(?:what is|EXPLAIN)(?= [#%])|what(?= [#%] does)', pt: '(?:o que é|EXPLAIN)(?= [#%])' },
  EXISTS: { en: 'is there #', pt: 'existe #' },
  /** A name with the words that belong to it. */
  NAMED: {
    en: '(?:(?:the|an?) )?(?:NOUN (?:called )?)?#(?: NOUN)?',
    pt: '(?:(?:o|a|um|uma|alguma?) )?(?:NOUN (?:chamad[oa] )?)?#',
  },
};
