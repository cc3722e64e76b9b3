/**
 * The wordings by which a message asks for a fact that stands in a file, in English and in Brazilian Portuguese, as patterns that a whole
 * message has to fit. Pure.
 */

export const LANGUAGES = ['en', 'pt'] as const;
export type QuestionLanguage = (typeof LANGUAGES)[number];

const LIST_KINDS = ['classes', 'functions', 'types'] as const;
export type ExportedList = (typeof LIST_KINDS)[number];
/** Of what one file defines. */
export type ListKind = ExportedList | 'variables';
export type ExportKind = 'exports' | `exported ${ExportedList | 'default'}`;

/** `defines`: all that the file does; `returns`: the type that is declared; `returned`: whatever can be said of what comes back; `does`: what its comment says; `passed`: whether it is exported. */
export type FactKind = 'imports' | 'defines' | 'lines' | ListKind | ExportKind | 'members' | 'parameters' | 'type' | 'default' | 'returns' | 'returned' | 'does' | 'base' | 'owner' | 'where' | 'exists' | 'passed';

export const isList = (kind: FactKind): kind is ListKind => kind === 'variables' || LIST_KINDS.some((each) => each === kind);
export const isExport = (kind: FactKind): kind is ExportKind => kind.startsWith('export');
/** Of a file as a whole: there is no name in the question. */
export const isOfFile = (kind: FactKind): boolean => kind === 'imports' || kind === 'defines' || kind === 'lines' || isList(kind) || isExport(kind);

/** Marked, or a word: which words are none is asked of the file. */
const NAME = String.raw`(?:\x60[^\x60\s]+\x60|'[\w$.#]+'|"[\w$.#]+"|(?:\.\.\.|\*{1,2})?[\p{L}_$#][\p{L}\w$.#]*(?:\(\))?)`;
const PARAMETERS = { en: '(?:parameters?|params?|arguments?|args?|inputs?)', pt: '(?:parâmetros?|parametros?|argumentos?)' };
const KIND = {
  en: '(?:(?:the |a |an )?(?:(?:function|method|class|interface|type|constructor|variable|constant|parameter|argument|definition|symbol)(?: called| named)? )?)',
  pt: '(?:(?:o |a |um |uma |os |as )?(?:(?:função|funcao|método|metodo|classe|interface|tipo|construtor|variável|constante|parâmetro|parametro|argumento|definição|símbolo)(?: chamad[oa])? )?)',
};
const FILE = { en: '(?:(?:this|the) (?:file|module)|it)', pt: '(?:(?:este|esse|o) (?:arquivo|módulo)|ele)' };
const IN = { en: '(?:of|in|from|on|for|to)', pt: '(?:do|da|de|no|na|em|para o|para a|para)' };

/** `K` a kind that may be said, `N` the name, `P` a parameter, `O` what the name belongs to. */
const PATTERNS: Readonly<Record<QuestionLanguage, readonly (readonly [FactKind, string])[]>> = {
  en: [
    ['imports', '(?:what|which)(?: all)?(?: other| external)?(?: NOUN)? (?:does|do) (?:this file|the file|it) (?:imports?|requires?|depends? on)(?: here)?'],
    ['imports', '(?:what|which) (?:(?:is|are) imported|NOUN (?:is|are) (?:imported|required))(?: here)?'],
    ['imports', '(?:what|which) (?:are the |are )?(?:imports?|imported modules|dependencies)(?: (?:are there|there are|does (?:this|the) file have))?'],
    ['defines', `(?:what|which(?: names?| symbols?| things?)?)(?: all)? (?:(?:does|do) )?${FILE.en} (?:defines?|declares?)(?: here)?`],
    ['defines', '(?:what|which(?: names?| symbols?| things?)?) (?:is|are|gets?) (?:defined|declared)(?: here)?'],
    ['defines', `(?:what|which)(?: are)?(?: all)?(?: the)? (?:definitions|declarations)(?: are there| there are| here|(?: (?:does|do))? ${FILE.en} ha(?:s|ve))?`],
    ['exports', `(?:what|which)(?: all)?(?: (?:names?|symbols?|things?|members?|definitions?))? (?:(?:does|do) )?${FILE.en} exports?`],
    ['exports', `(?:what|which(?: names?| symbols?| things?)?) (?:is|are|gets?) exported(?: by ${FILE.en})?`],
    // "What are exports?" is about the language.
    ['exports', '(?:what|which) are (?:all )?(?:the|its) exports'],
    ['exports', `(?:what|which) exports (?:are there|there are|(?:does|do) ${FILE.en} have)`],
    ['exports', 'what can (?:be imported|others import)'],
    ['exported default', '(?:what|which)(?: is|’s|\'s) (?:the |its )?default export'],
    ['exported default', `what does ${FILE.en} export (?:by|as) (?:the )?default`],
    ...LIST_KINDS.flatMap((kind) => [
      [`exported ${kind}`, `(?:what|which|how many) ${kind} (?:(?:does|do) )?${FILE.en} exports?`] as const,
      [`exported ${kind}`, `(?:what|which|how many)(?: of (?:the|its))? ${kind} (?:is|are|gets?) exported(?: by ${FILE.en})?`] as const,
      [`exported ${kind}`, `(?:what|which)(?: are)?(?: all)?(?: the)? exported ${kind}(?: are there| there are)?`] as const,
    ]),
    ...[...LIST_KINDS, 'variables' as const].flatMap((kind) => [
      [kind, `(?:what|which|how many) ${kind} (?:(?:does|do) )?(?:this file|the file|it) (?:defines?|declares?|has|have|contains?)(?: here)?`] as const,
      [kind, `(?:what|which|how many)(?: are)?(?: all)?(?: of)?(?: the)? ${kind}(?: are)?(?: there| defined| declared| here)*`] as const,
    ]),
    ['lines', `how many lines (?:does|do) ${FILE.en} (?:have|contain)`],
    ['lines', 'how many lines(?: are)?(?: there)?'],
    ['lines', `how long is ${FILE.en}`],
    // Members are more than methods: what is assigned in a constructor, for one.
    ['members', '(?:what|which)(?: are)?(?: all)?(?: the)? (?:methods?|member functions)(?: does| do| are there| are defined| has)? ?(?:IN )?KN(?: have| has| define| defines| contain| offer)?'],
    ['parameters', '(?:what|which|how many)(?: are)?(?: the)? PARAMS (?:does|do|can|must|should) KNO (?:take|accept|have|expect|receive|need|require|get)s?'],
    ['parameters', '(?:what|which)(?: are)?(?: all)?(?: the)?(?: names of the)? PARAMS IN KNO'],
    ['parameters', 'what does KNO (?:take|accept|expect|receive)(?: as (?:an )?PARAMS| as inputs?)?'],
    ['type', '(?:what|which)(?: is| are|’s|\'s) (?:the )?(?:declared )?type IN KP IN KN'],
    ['type', '(?:what|which) type (?:is|has) KP IN KN'],
    ['type', '(?:what|which) type does KP (?:have )?IN KN(?: have)?'],
    ['default', '(?:what|which)(?: is|’s|\'s) (?:the )?default(?: value)? IN KP IN KN'],
    ['default', 'what does KP (?:default to IN KN|IN KN default to)'],
    ['default', '(?:what|which) default(?: value)? does KP have IN KN'],
    ['default', '(?:(?:what|which)(?: is|’s|\'s) (?:the )?)?default(?: value)? IN KP'],
    ['default', 'what does KP default to'],
    ['default', '(?:what|which) default(?: value)? does KP have'],
    ['returns', '(?:what|which)(?: is|’s|\'s) (?:the )?(?:declared )?return(?:ed)? type IN KNO'],
    ['returns', '(?:what|which) (?:return )?type does KNO (?:return|have as (?:its )?return type)'],
    ['returned', 'what(?: values?)? does KNO (?:return|give back)'],
    ['returned', 'what(?: value)? is returned (?:by|from) KNO'],
    ['returned', '(?:what|which)(?: is|’s|\'s) (?:the )?return(?:ed)? value IN KNO'],
    ['returned', 'what does (?:calling|a call (?:to|of)) KNO return'],
    ['does', 'what (?:does|do) KNO do'],
    ['does', 'what(?: is|’s|\'s) KNO (?:used )?for'],
    ['does', 'what(?: is|’s|\'s) the (?:purpose|point|job) IN KNO'],
    ['does', '(?:(?:can|could|would) you (?:please )?)?(?:explain|describe)(?: to me| me)? KNO(?: to me| briefly)?'],
    ['does', '(?:(?:can|could|would) you (?:please )?)?(?:explain|describe)(?: to me)? what KNO (?:does|is for)'],
    ['base', '(?:what|which)(?: is|’s|\'s) (?:the )?(?:base|parent|super)[ -]?class IN KN'],
    ['base', '(?:what|which)(?: class(?:es)?)? does KN (?:extend|inherit from|derive from|subclass)'],
    ['owner', '(?:what|which) class (?:does KN belong to|has KN|defines KN|contains KN|owns KN|is KN (?:a )?(?:method|member|part) of|is KN (?:in|defined in))'],
    ['owner', '(?:to )?(?:what|which) class does KN belong'],
    ['owner', 'KN (?:belongs to|is a method of|is in) (?:what|which) class'],
    ['where', 'where(?: is|’s|\'s| are) KNO(?: defined| declared| implemented)?'],
    ['where', '(?:on |in |at )?(?:what|which) line (?:is|defines|declares|has) KNO(?: defined| declared| on| in| at)?(?: on| in| at)?'],
    // The line says it.
    ['where', '(?:what|which)(?: is|’s|\'s) the value (?:of|assigned to) KN'],
    ['where', 'where (?:can i find|do i find|does this file define) KNO'],
    ['exists', 'is there (?:a|an|any) KN(?: defined| declared)?'],
    ['exists', 'does KN exist'],
    ['exists', '(?:does|do) (?:this file|the file|it) (?:define|declare|have|contain) KN'],
    ['exists', 'is KN defined'],
    ['passed', 'is KN exported'],
    ['passed', `(?:does|do) ${FILE.en} export KN`],
  ],
  pt: [
    // "O que importa aqui?" is what matters.
    ['imports', '(?:o que|que|quais|quais são os) ?(?:módulos?|modulos?|pacotes?|bibliotecas?|dependências|arquivos)? ?(?:que )?(?:(?:este|esse|o) arquivo |ele )(?:importa|requer)(?: aqui)?'],
    ['imports', '(?:que|quais|quais são os) (?:módulos?|modulos?|pacotes?|bibliotecas?|dependências|arquivos) (?:que )?(?:é |são )?(?:importa|importam|requer|importad[oa]s?)(?: (?:este|esse|o) arquivo)?(?: aqui)?'],
    ['imports', '(?:o que|que) (?:importa|requer) (?:este|esse|o) arquivo'],
    ['imports', '(?:o que|que) é importado(?: aqui)?'],
    ['imports', '(?:quais|que)(?: são)?(?: os| as)? (?:imports|importações|módulos importados|dependências)(?: há| existem)?'],
    ['defines', `(?:o que|que|quais)(?: (?:nomes|símbolos|coisas))? (?:é que )?${FILE.pt} (?:define|declara)`],
    ['defines', `(?:o que|que) (?:define|declara) ${FILE.pt}`],
    ['defines', '(?:o que|que) (?:é|está|foi|está sendo) (?:definido|declarado)'],
    ['defines', `(?:quais|que)(?: são)?(?: todas)?(?: as)? (?:definições|declarações)(?: há| existem| ${FILE.pt} tem)?`],
    ['exports', `(?:o que|que|quais)(?: (?:nomes|símbolos|coisas))? (?:é que )?${FILE.pt} exporta`],
    ['exports', `(?:o que|que) exporta ${FILE.pt}`],
    ['exports', `(?:o que|que) (?:é|está sendo) exportado(?: por ${FILE.pt})?`],
    ['exports', '(?:quais|que)(?: são)? (?:os|as) (?:exports|exportações)'],
    ['exports', `(?:quais|que) (?:exports|exportações) (?:há|existem|${FILE.pt} tem)`],
    ['exported default', '(?:qual|que)(?: é| e)?(?: o| a)? (?:export default|export padrão|exportação padrão|exportação default)'],
    ...([['classes', 'classes'], ['functions', '(?:funções|funcoes)'], ['types', 'tipos']] as const).flatMap(([kind, word]) => [
      [`exported ${kind}`, `(?:que|quais|quant[ao]s) ${word} (?:é )?(?:que )?${FILE.pt} exporta`] as const,
      [`exported ${kind}`, `(?:que|quais|quant[ao]s) ${word} (?:são|estão|foram) exportad[ao]s(?: por ${FILE.pt})?`] as const,
      [`exported ${kind}`, `(?:quais|que)(?: são)?(?: as| os)? ${word} exportad[ao]s`] as const,
    ]),
    ...([['classes', 'classes'], ['functions', '(?:funções|funcoes)'], ['types', 'tipos'], ['variables', '(?:variáveis|variaveis)']] as const).flatMap(([kind, word]) => [
      [kind, `(?:que|quais|quant[ao]s) ${word} (?:que )?(?:(?:este|esse|o) arquivo|ele) (?:define|declara|tem|contém|possui)`] as const,
      [kind, `(?:que|quais|quant[ao]s)(?: são)?(?: tod[ao]s)?(?: as| os)? ${word}(?: são| estão| foram| há| existem)?(?: definid[ao]s| declarad[ao]s)?(?: aqui)?(?: há| existem)?`] as const,
    ]),
    ['lines', `quantas linhas (?:há|existem|${FILE.pt} (?:tem|possui|contém)|(?:tem|possui|contém)(?: ${FILE.pt})?)`],
    ['members', '(?:que|quais)(?: são)?(?: todos)?(?: os)? (?:métodos|metodos)(?: IN| tem| possui| há IN| existem IN) KN'],
    ['members', '(?:que|quais)(?: são)?(?: os)? (?:métodos|metodos) (?:que )?KN (?:tem|possui|define|oferece)'],
    ['parameters', '(?:que|quais|quantos)(?: são)?(?: os)? PARAMS (?:que )?KNO (?:recebe|aceita|tem|espera|possui|toma|exige)'],
    ['parameters', '(?:que|quais|quantos) PARAMS (?:recebe|aceita|tem|espera|possui|toma|exige) KNO'],
    ['parameters', '(?:que|quais)(?: são)?(?: todos)?(?: os)? PARAMS IN KNO'],
    ['parameters', 'o que KNO recebe(?: como PARAMS)?'],
    ['parameters', 'KNO (?:recebe|tem|aceita) (?:que|quais) PARAMS'],
    // Before types: a `tipo de retorno` is no parameter's.
    ['returns', '(?:qual|que)(?: é| e)?(?: o)? tipo (?:de retorno|do retorno|retornado) (?:IN|por) KNO'],
    ['returns', '(?:que|qual) tipo KNO (?:retorna|devolve)'],
    ['type', '(?:qual|que)(?: é| e)?(?: o)? tipo IN KP IN KN'],
    ['type', '(?:de )?(?:qual|que) tipo (?:é|tem) KP IN KN'],
    ['default', '(?:qual|que)(?: é| e)?(?: o)? valor (?:padrão|padrao|default|por omissão|predefinido) IN KP IN KN'],
    ['default', '(?:qual|que)(?: é| e)?(?: o)? (?:padrão|default) IN KP IN KN'],
    ['default', '(?:(?:qual|que)(?: é| e)?(?: o)? )?valor (?:padrão|padrao|default|por omissão|predefinido) IN KP'],
    ['default', '(?:qual|que)(?: é| e)?(?: o)? (?:padrão|default) IN KP'],
    ['returned', '(?:o )?que (?:valor )?(?:é que )?KNO (?:retorna|devolve)'],
    ['returned', '(?:o )?que (?:retorna|devolve) KNO'],
    ['returned', '(?:o )?que é (?:retornado|devolvido) (?:por|pel[oa]) KNO'],
    ['returned', '(?:qual|que)(?: é| e)?(?: o)? (?:retorno|valor de retorno|valor retornado) (?:IN|por) KNO'],
    ['does', '(?:o )?que (?:é que )?KNO faz'],
    ['does', '(?:o )?que faz KNO'],
    ['does', 'para (?:o )?que (?:serve|é) KNO'],
    ['does', '(?:qual|que)(?: é| e)?(?: a| o)? (?:finalidade|propósito|objetivo|função|utilidade) IN KNO'],
    ['does', '(?:(?:você )?(?:pode|poderia) )?(?:me )?(?:explique|explica|explicar|descreva|descrever)(?: para mim)? KNO'],
    ['does', '(?:(?:você )?(?:pode|poderia) )?(?:me )?(?:explique|explica|explicar|descreva|descrever)(?: para mim)? o que KNO faz'],
    ['base', '(?:qual|que)(?: é| e)?(?: a)? (?:classe[ -](?:base|mãe|pai)|superclasse) IN KN'],
    ['base', '(?:de )?(?:qual|que|quais) classes? KN (?:herda|estende|deriva)'],
    ['base', '(?:de )?(?:qual|que|quais) classes? (?:herda|estende|deriva) KN'],
    ['owner', '(?:a |em |de )?(?:qual|que) classe (?:pertence |está |é |tem |define |contém )KN'],
    ['owner', '(?:a |em |de )?(?:qual|que) classe KN (?:pertence|está|é (?:um )?(?:método|membro)|é definid[oa])'],
    ['owner', 'KN (?:pertence a|é (?:um )?método de|está em) (?:qual|que) classe'],
    ['where', '(?:onde|aonde)(?: é que)?(?: está| é| fica| foi| se define| se encontra)?(?: definid[oa]| declarad[oa]| implementad[oa])? KNO(?: está| é| fica| foi)?(?: definid[oa]| declarad[oa]| implementad[oa])?'],
    ['where', '(?:em )?(?:que|qual) linha (?:está|é|fica|foi)?(?: definid[oa])? ?KNO(?: está| é| fica| foi)?(?: definid[oa]| declarad[oa])?'],
    ['where', '(?:qual|que)(?: é| e)?(?: o)? valor IN KN'],
    ['exists', '(?:há|existe|tem) (?:um|uma|algum|alguma) KN'],
    ['exists', '(?:há|existe) KN'],
    ['exists', 'KN existe'],
    ['exists', '(?:este|esse|o) arquivo (?:define|declara|tem|contém|possui) KN'],
    ['exists', 'KN (?:está|é) definid[oa]'],
    ['passed', 'KN (?:é|está sendo) exportad[oa]'],
    ['passed', `${FILE.pt} exporta KN`],
  ],
};

/** Said before a question, or behind it. */
export const AROUND: Readonly<Record<QuestionLanguage, { before: RegExp; behind: RegExp; file: string; list: RegExp }>> = {
  en: {
    before: /^(?:(?:please|hi|hello|hey|ok|okay|so|and|kvasir|just)[, ]+|(?:can|could|would) you (?:please )?(?:tell|show) me[, ]+|(?:please )?(?:tell|show) me[, ]+|i(?: would|'d) like to know[, ]+|do you know )+/i,
    behind: /[, ]+(?:please|exactly|again)$/i,
    file: '(?:in|of|from|inside) (?:this|the|the current|the open|the attached) (?:file|module|document|code|script)|here',
    list: /^(?:list|show|name|give me|what about)(?: all)? (?:of )?(?:the )?(?=(?:parameters|params|arguments|args|methods|imports|imported|exports|exported (?:classes|functions|types)|classes|functions|types|variables|definitions|declarations)\b)/i,
  },
  pt: {
    before: /^(?:(?:por favor|oi|olá|ei|ok|então|e|kvasir)[, ]+|(?:(?:você )?(?:pode|poderia) )?(?:me )?(?:diga|dizer|mostre|mostrar)(?: me|-me)?[, ]+|(?:você )?sabe (?:me )?(?:dizer )?)+/i,
    behind: /[, ]+(?:por favor|exatamente)$/i,
    file: '(?:neste|nesse|deste|desse|no|do) (?:arquivo|módulo|documento|código)(?: aberto| atual)?|aqui',
    list: /^(?:liste|mostre|cite|dê)(?: tod[ao]s)? (?:[ao]s )?(?=(?:parâmetros|parametros|argumentos|métodos|metodos|imports|módulos importados|exports|exportações|classes|funções|funcoes|tipos|variáveis|variaveis|definições|declarações)(?![\p{L}]))/iu,
  },
};

/** What is said of several files, in the words for one. */
const SEVERAL: Readonly<Record<QuestionLanguage, readonly (readonly [RegExp, string])[]>> = {
  en: [[/(?<!\p{L})(?:(?:each|every|both|all)(?: of)?(?: the| these| those)?|the|these|those)(?: two| three| attached| open)? files?(?!\p{L})/giu, 'this file']],
  pt: [
    [/(?<!\p{L})em (?:cada|ambos|todos)(?: um)?(?: d?os| estes| esses)? arquivos?(?!\p{L})/giu, 'neste arquivo'],
    [/(?<!\p{L})(n|d)?(?:estes|esses|os|cada|ambos os|todos os)(?: dois| três)? arquivos?(?!\p{L})/giu, '$1este arquivo'],
    [/(?<!\p{L})(define|declara|importa|exporta)m(?!\p{L})/giu, '$1'],
    [/(?<!\p{L})têm(?!\p{L})/giu, 'tem'],
  ],
};

export function asOfOne(message: string, language: QuestionLanguage): string {
  return SEVERAL[language].reduce((said, [several, one]) => said.replace(several, one), message);
}

export const FIRST = { en: 'which are the ', pt: 'quais são os ' };

export const COMPILED = Object.fromEntries(LANGUAGES.map((language) => [language, PATTERNS[language].map(([kind, pattern]) => [kind, compiled(pattern, language)] as const)])) as Record<QuestionLanguage, (readonly [FactKind, RegExp])[]>;

function compiled(pattern: string, language: QuestionLanguage): RegExp {
  // Node 20 refuses two groups of one name, also where only one of them can be there.
  let numGroups = 0;
  const source = pattern
    .replaceAll('PARAMS', PARAMETERS[language])
    .replaceAll('NOUN', '(?:modules?|packages?|libraries|library|dependencies|files?|things)')
    .replace(/K?[NP]O?|\bIN\b/g, (mark) => {
      if (mark === 'IN') return IN[language];
      const role = mark.includes('P') ? 'parameter' : 'name';
      const n = numGroups++;
      const kind = mark.startsWith('K') ? `(?<${role}Kind${n}>${KIND[language]})` : '';
      return `${kind}(?<${role}${n}>${NAME})${mark.endsWith('O') ? `(?: (?:of|in|from|on|do|da|de|no|na|em) ${KIND[language]}(?<owner${n}>${NAME}))?` : ''}`;
    });
  return new RegExp(`^${source}$`, 'iu');
}

/** What the patterns have become. */
export const PATTERN_SOURCES: readonly string[] = LANGUAGES.flatMap((language) => COMPILED[language].map(([, { source }]) => source));
