/**
 * The wordings of questions for facts in Brazilian Portuguese, each a pattern that a whole message has to fit: `K` a kind that may be said, `N` the name,
 * `P` a parameter, `O` what the name belongs to. Pure.
 */
import type { Wording } from './factKinds.ts';

const FILE = '(?:(?:este|esse|o) (?:arquivo|módulo)|ele)';

export const PORTUGUESE: readonly Wording[] = [
  // "O que importa aqui?" is what matters.
  [
    'imports',
    '(?:o que|que|quais|quais são os) ?(?:módulos?|modulos?|pacotes?|bibliotecas?|dependências|arquivos)? ?(?:que )?(?:(?:este|esse|o) arquivo |ele )(?:importa|requer)(?: aqui)?',
  ],
  [
    'imports',
    '(?:que|quais|quais são os) (?:módulos?|modulos?|pacotes?|bibliotecas?|dependências|arquivos) (?:que )?(?:é |são )?(?:importa|importam|requer|importad[oa]s?)(?: (?:este|esse|o) arquivo)?(?: aqui)?',
  ],
  ['imports', '(?:o que|que) (?:importa|requer) (?:este|esse|o) arquivo'],
  [
    'imports',
    `(?:que|quais)(?: são)?(?: os| as)? (?:imports|importações|dependências) (?:que )?(?:(?:tem|há em|existem em|possui|contém|faz) ${FILE}|${FILE} (?:tem|possui|contém|faz))`,
  ],
  ['imported', `${FILE} (?:importa|requer|depende de) MODULE`],
  ['imported', 'MODULE (?:é|está sendo) importad[oa](?: aqui)?'],
  ['source', 'de onde (?:(?:é importad[oa]|vem) KN|KN (?:é importad[oa]|vem))'],
  ['source', 'onde (?:(?:é|está) importad[oa] KN|KN (?:é|está) importad[oa])'],
  [
    'source',
    '(?:de |em )?(?:que|qual) (?:módulo|pacote|biblioteca|arquivo|linha) (?:(?:é importad[oa]|vem|importa) KN|KN (?:é importad[oa]|vem))',
  ],
  ['imports', '(?:o que|que) é importado(?: aqui)?'],
  [
    'imports',
    '(?:quais|que)(?: são)?(?: os| as)? (?:imports|importações|módulos importados|dependências)(?: há| existem)?',
  ],
  ['defines', `(?:o que|que|quais)(?: (?:nomes|símbolos|coisas))? (?:é que )?${FILE} (?:define|declara)`],
  ['defines', `(?:o que|que) (?:define|declara) ${FILE}`],
  ['defines', '(?:o que|que) (?:é|está|foi|está sendo) (?:definido|declarado)'],
  ['defines', `(?:quais|que)(?: são)?(?: todas)?(?: as)? (?:definições|declarações)(?: há| existem| ${FILE} tem)?`],
  ['exports', `(?:o que|que|quais)(?: (?:nomes|símbolos|coisas))? (?:é que )?${FILE} exporta`],
  ['exports', `(?:o que|que) exporta ${FILE}`],
  ['exports', `(?:o que|que) (?:é|está sendo) exportado(?: por ${FILE})?`],
  ['exports', '(?:quais|que)(?: são)? (?:os|as) (?:exports|exportações)'],
  ['exports', `(?:quais|que) (?:exports|exportações) (?:há|existem|${FILE} tem)`],
  [
    'exported default',
    '(?:qual|que)(?: é| e)?(?: o| a)? (?:export default|export padrão|exportação padrão|exportação default)',
  ],
  ['exported', `(?:que|quais|quant[ao]s) LISTS (?:é )?(?:que )?${FILE} exporta`],
  ['exported', `(?:que|quais|quant[ao]s) LISTS (?:são|estão|foram) exportad[ao]s(?: por ${FILE})?`],
  ['exported', '(?:quais|que)(?: são)?(?: as| os)? LISTS exportad[ao]s'],
  ['listed', `(?:que|quais|quant[ao]s) LISTS (?:que )?${FILE} (?:define|declara|tem|contém|possui)`],
  ['listed', `(?:que|quais|quant[ao]s) LISTS (?:define|declara|tem|contém|possui) ${FILE}`],
  [
    'listed',
    '(?:que|quais|quant[ao]s)(?: são)?(?: tod[ao]s)?(?: as| os)? LISTS(?: são| estão| foram| há| existem)?(?: definid[ao]s| declarad[ao]s)?(?: aqui)?(?: há| existem)?',
  ],
  ['listed', `${FILE} (?:tem|define|declara|contém|possui)(?: algum(?:as?|ns))? LISTS`],
  ['listed', '(?:há|existem|tem)(?: algum(?:as?|ns))? LISTS(?: aqui)?'],
  [
    'async',
    '(?:que|quais|quant[ao]s)(?: são)?(?: as| os)? (?:funções|funcoes|métodos|metodos)(?: são)? (?:async|ass[ií]ncron[ao]s)',
  ],
  ['lines', `quantas linhas (?:há|existem|${FILE} (?:tem|possui|contém)|(?:tem|possui|contém)(?: ${FILE})?)`],
  [
    'methods',
    '(?:que|quais|quantos)(?: são)?(?: todos)?(?: os)? (?:métodos|metodos)(?: IN| tem| possui| há IN| existem IN) KN',
  ],
  ['methods', '(?:que|quais|quantos)(?: são)?(?: os)? (?:métodos|metodos) (?:que )?KN (?:tem|possui|define|oferece)'],
  [
    'fields',
    '(?:que|quais|quant[ao]s)(?: são)?(?: tod[ao]s)?(?: [ao]s)? (?:campos|propriedades|atributos)(?: IN| tem| possui| há IN| existem IN) KN',
  ],
  [
    'fields',
    '(?:que|quais|quant[ao]s)(?: são)?(?: [ao]s)? (?:campos|propriedades|atributos) (?:que )?KN (?:tem|possui|define|declara)',
  ],
  [
    'parameters',
    '(?:que|quais|quantos)(?: são)?(?: os)? PARAMS (?:que )?KNO (?:recebe|aceita|tem|espera|possui|toma|exige)',
  ],
  ['parameters', '(?:que|quais|quantos) PARAMS (?:recebe|aceita|tem|espera|possui|toma|exige) KNO'],
  ['parameters', '(?:(?:que|quais)(?: são)?(?: todos)? )?(?:os )?PARAMS IN KNO'],
  ['signature', '(?:(?:qual|que)(?: é| e)? )?(?:a )?assinatura IN KNO'],
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
  [
    'does',
    '(?:(?:você )?(?:pode|poderia) )?(?:me )?(?:explique|explica|explicar|descreva|descrever)(?: para mim)? KNO',
  ],
  [
    'does',
    '(?:(?:você )?(?:pode|poderia) )?(?:me )?(?:explique|explica|explicar|descreva|descrever)(?: para mim)? o que KNO faz',
  ],
  ['does', 'como (?:funciona KNO|KNO funciona)'],
  [
    'does',
    '(?:(?:você )?(?:pode|poderia) )?(?:me )?(?:explique|explica|explicar|descreva|descrever)(?: para mim)? como (?:funciona KNO|KNO funciona)',
  ],
  ['base', '(?:qual|que)(?: é| e)?(?: a)? (?:classe[ -](?:base|mãe|pai)|superclasse) IN KN'],
  ['base', '(?:de )?(?:qual|que|quais) classes? KN (?:herda|estende|deriva)'],
  ['base', '(?:de )?(?:qual|que|quais) classes? (?:herda|estende|deriva) KN'],
  ['owner', '(?:a |em |de )?(?:qual|que) classe (?:pertence |está |é |tem |define |contém )KN'],
  ['owner', '(?:a |em |de )?(?:qual|que) classe KN (?:pertence|está|é (?:um )?(?:método|membro)|é definid[oa])'],
  ['owner', 'KN (?:pertence a|é (?:um )?método de|está em) (?:qual|que) classe'],
  [
    'where',
    '(?:onde|aonde)(?: é que)?(?: está| é| fica| foi| se define| se encontra)?(?: definid[oa]| declarad[oa]| implementad[oa])? KNO(?: está| é| fica| foi)?(?: definid[oa]| declarad[oa]| implementad[oa])?',
  ],
  [
    'where',
    '(?:em )?(?:que|qual) linha (?:está|é|fica|foi)?(?: definid[oa])? ?KNO(?: está| é| fica| foi)?(?: definid[oa]| declarad[oa])?',
  ],
  ['where', '(?:qual|que)(?: é| e)?(?: o)? valor IN KN'],
  [
    'called',
    'onde (?:(?:é|está sendo) (?:chamad[oa]|invocad[oa]|instanciad[oa]) KNO|KNO (?:é|está sendo) (?:chamad[oa]|invocad[oa]|instanciad[oa]))',
  ],
  ['called', '(?:que|quais|qual) (?:funç(?:ão|ões)|métodos?) chamam? KNO'],
  ['called', '(?:em )?(?:que|quais|qual) linhas? (?:(?:é chamad[oa]|chamam?) KNO|KNO é chamad[oa])'],
  ['called', '(?:o que|quem) chama KNO'],
  ['called', 'KNO (?:é|está sendo) (?:chamad[oa]|invocad[oa]|instanciad[oa])(?: em algum lugar)?'],
  [
    'used',
    '(?:onde|como) (?:(?:é|está sendo) (?:usad[oa]|utilizad[oa]) KNO|KNO (?:é|está sendo) (?:usad[oa]|utilizad[oa]))',
  ],
  [
    'used',
    '(?:em )?(?:que|quais|qual) (?:linhas?|funç(?:ão|ões)|métodos?) (?:(?:é usad[oa]|é utilizad[oa]|usam?|utilizam?) KNO|KNO é (?:usad[oa]|utilizad[oa]))',
  ],
  ['used', '(?:o que|quem) (?:usa|utiliza) KNO'],
  ['used', 'KNO (?:é|está sendo) (?:usad[oa]|utilizad[oa])(?: em algum lugar)?'],
  ['used', '(?:os |as )?(?:usos|referências|ocorrências) (?:de|a) KNO'],
  ['signature', 'como (?:eu |se )?(?:uso|chamo|usar|chamar|usa|chama|utilizo|utilizar) KNO'],
  ['exists', '(?:há|existe|tem) (?:um|uma|algum|alguma) KN'],
  ['exists', '(?:há|existe) KN'],
  ['exists', 'KN existe'],
  ['exists', '(?:este|esse|o) arquivo (?:define|declara|tem|contém|possui) KN'],
  ['exists', 'KN (?:está|é) definid[oa]'],
  ['passed', 'KN (?:é|está sendo) exportad[oa]'],
  ['passed', `${FILE} exporta KN`],
  // What any other pattern fits is asked for more exactly.
  ['is', '(?:o )?que é KNO'],
  ['is', '(?:o )?que (?:significa KNO|KNO significa)'],
  ['is', '(?:qual|que)(?: é| e)?(?: o)? significado IN KNO'],
];
