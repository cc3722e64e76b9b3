/**
 * Which questions ask for a fact that stands in a file (facts.ts), in English and in Brazilian Portuguese. A whole message has to
 * be such a question: what says anything more is for the model. Pure.
 */
import type { ChatMessage, Snippet } from '../protocol.ts';
import { type SourceDocument, shortPath } from '../text/sourceDocument.ts';

const LANGUAGES = ['en', 'pt'] as const;
export type QuestionLanguage = (typeof LANGUAGES)[number];

/** Of a file: what of one kind it defines. */
export type ListKind = 'classes' | 'functions' | 'types';

type FactKind = 'imports' | ListKind | 'members' | 'parameters' | 'type' | 'default' | 'returns' | 'base' | 'owner' | 'where' | 'exists';

export interface FactQuestion {
  kind: FactKind;
  language: QuestionLanguage;
  /** What it is about, as it is called, without what it belongs to; '' for the file. */
  name: string;
  /** What `name` is said to belong to. */
  owner?: string;
  /** The parameter that a type or a default value is asked of. */
  parameter?: string;
  /** It was said as one with what it belongs to, which may be something of the language. */
  dotted?: true;
  /** What it is said to be: "the function". */
  ofKind?: string;
  /** The name is marked as one, or no word of any language looks like it. */
  sure: boolean;
}

/** Marked, or a word: which words are none is asked of the file. */
const NAME = String.raw`(?:\x60[^\x60\s]+\x60|'[\w$.#]+'|"[\w$.#]+"|(?:\.\.\.|\*{1,2})?[\p{L}_$#][\p{L}\w$.#]*(?:\(\))?)`;
const PARAMETERS = { en: '(?:parameters?|params?|arguments?|args?|inputs?)', pt: '(?:parâmetros?|parametros?|argumentos?)' };
const KIND = {
  en: '(?:(?:the |a |an )?(?:(?:function|method|class|interface|type|constructor|variable|constant|parameter|argument|definition|symbol)(?: called| named)? )?)',
  pt: '(?:(?:o |a |um |uma |os |as )?(?:(?:função|funcao|método|metodo|classe|interface|tipo|construtor|variável|constante|parâmetro|parametro|argumento|definição|símbolo)(?: chamad[oa])? )?)',
};
const IN = { en: '(?:of|in|from|on|for|to)', pt: '(?:do|da|de|no|na|em|para o|para a|para)' };

/** `K` a kind that may be said, `N` the name, `P` a parameter, `O` what the name belongs to. */
const PATTERNS: Readonly<Record<QuestionLanguage, readonly (readonly [FactKind, string])[]>> = {
  en: [
    ['imports', '(?:what|which)(?: all)?(?: other| external)?(?: NOUN)? (?:does|do) (?:this file|the file|it) (?:imports?|requires?|depends? on)(?: here)?'],
    ['imports', '(?:what|which) (?:(?:is|are) imported|NOUN (?:is|are) (?:imported|required))(?: here)?'],
    ['imports', '(?:what|which) (?:are the |are )?(?:imports?|imported modules|dependencies)(?: (?:are there|there are|does (?:this|the) file have))?'],
    ...(['classes', 'functions', 'types'] as const).flatMap((kind) => [
      [kind, `(?:what|which|how many) ${kind} (?:(?:does|do) )?(?:this file|the file|it) (?:defines?|declares?|has|have|contains?)(?: here)?`] as const,
      [kind, `(?:what|which|how many)(?: are)?(?: all)?(?: of)?(?: the)? ${kind}(?: are)?(?: there| defined| declared| here)*`] as const,
    ]),
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
    ['returns', '(?:what|which)(?: is|’s|\'s) (?:the )?(?:declared )?return(?:ed)? type IN KNO'],
    ['returns', '(?:what|which) (?:return )?type does KNO (?:return|have as (?:its )?return type)'],
    ['base', '(?:what|which)(?: is|’s|\'s) (?:the )?(?:base|parent|super)[ -]?class IN KN'],
    ['base', '(?:what|which)(?: class(?:es)?)? does KN (?:extend|inherit from|derive from|subclass)'],
    ['owner', '(?:what|which) class (?:does KN belong to|has KN|defines KN|contains KN|owns KN|is KN (?:a )?(?:method|member|part) of|is KN (?:in|defined in))'],
    ['owner', '(?:to )?(?:what|which) class does KN belong'],
    ['owner', 'KN (?:belongs to|is a method of|is in) (?:what|which) class'],
    ['where', 'where(?: is|’s|\'s| are) KNO(?: defined| declared| implemented)?'],
    ['where', '(?:on |in |at )?(?:what|which) line (?:is|defines|declares|has) KNO(?: defined| declared| on| in| at)?(?: on| in| at)?'],
    ['where', 'where (?:can i find|do i find|does this file define) KNO'],
    ['exists', 'is there (?:a|an|any) KN'],
    ['exists', '(?:does|do) (?:this file|the file|it) (?:define|declare|have|contain) KN'],
    ['exists', 'is KN defined'],
  ],
  pt: [
    // "O que importa aqui?" is what matters.
    ['imports', '(?:o que|que|quais|quais são os) ?(?:módulos?|modulos?|pacotes?|bibliotecas?|dependências|arquivos)? ?(?:que )?(?:(?:este|esse|o) arquivo |ele )(?:importa|requer)(?: aqui)?'],
    ['imports', '(?:que|quais|quais são os) (?:módulos?|modulos?|pacotes?|bibliotecas?|dependências|arquivos) (?:que )?(?:é |são )?(?:importa|importam|requer|importad[oa]s?)(?: (?:este|esse|o) arquivo)?(?: aqui)?'],
    ['imports', '(?:o que|que) (?:importa|requer) (?:este|esse|o) arquivo'],
    ['imports', '(?:o que|que) é importado(?: aqui)?'],
    ['imports', '(?:quais|que)(?: são)?(?: os| as)? (?:imports|importações|módulos importados|dependências)(?: há| existem)?'],
    ...([['classes', 'classes'], ['functions', '(?:funções|funcoes)'], ['types', 'tipos']] as const).flatMap(([kind, word]) => [
      [kind, `(?:que|quais|quant[ao]s) ${word} (?:que )?(?:(?:este|esse|o) arquivo|ele) (?:define|declara|tem|contém|possui)`] as const,
      [kind, `(?:que|quais|quant[ao]s)(?: são)?(?: tod[ao]s)?(?: as| os)? ${word}(?: são| estão| foram| há| existem)?(?: definid[ao]s| declarad[ao]s)?(?: aqui)?(?: há| existem)?`] as const,
    ]),
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
    ['base', '(?:qual|que)(?: é| e)?(?: a)? (?:classe[ -](?:base|mãe|pai)|superclasse) IN KN'],
    ['base', '(?:de )?(?:qual|que|quais) classes? KN (?:herda|estende|deriva)'],
    ['base', '(?:de )?(?:qual|que|quais) classes? (?:herda|estende|deriva) KN'],
    ['owner', '(?:a |em |de )?(?:qual|que) classe (?:pertence |está |é |tem |define |contém )KN'],
    ['owner', '(?:a |em |de )?(?:qual|que) classe KN (?:pertence|está|é (?:um )?(?:método|membro)|é definid[oa])'],
    ['owner', 'KN (?:pertence a|é (?:um )?método de|está em) (?:qual|que) classe'],
    ['where', '(?:onde|aonde)(?: é que)?(?: está| é| fica| foi| se define| se encontra)?(?: definid[oa]| declarad[oa]| implementad[oa])? KNO(?: está| é| fica| foi)?(?: definid[oa]| declarad[oa]| implementad[oa])?'],
    ['where', '(?:em )?(?:que|qual) linha (?:está|é|fica|foi)?(?: definid[oa])? ?KNO(?: está| é| fica| foi)?(?: definid[oa]| declarad[oa])?'],
    ['exists', '(?:há|existe|tem) (?:um|uma|algum|alguma) KN'],
    ['exists', '(?:este|esse|o) arquivo (?:define|declara|tem|contém|possui) KN'],
    ['exists', 'KN (?:está|é) definid[oa]'],
  ],
};

/** Said before a question, or behind it. */
const AROUND: Readonly<Record<QuestionLanguage, { before: RegExp; behind: RegExp; file: string; list: RegExp }>> = {
  en: {
    before: /^(?:(?:please|hi|hello|hey|ok|okay|so|and|kvasir|just)[, ]+|(?:can|could|would) you (?:please )?(?:tell|show) me[, ]+|(?:please )?(?:tell|show) me[, ]+|i(?: would|'d) like to know[, ]+|do you know )+/i,
    behind: /[, ]+(?:please|exactly|again)$/i,
    file: '(?:in|of|from|inside) (?:this|the|the current|the open|the attached) (?:file|module|document|code|script)|here',
    list: /^(?:list|show|name|give me|what about)(?: all)? (?:of )?(?:the )?(?=(?:parameters|params|arguments|args|methods|imports|imported|classes|functions|types)\b)/i,
  },
  pt: {
    before: /^(?:(?:por favor|oi|olá|ei|ok|então|e|kvasir)[, ]+|(?:(?:você )?(?:pode|poderia) )?(?:me )?(?:diga|dizer|mostre|mostrar)(?: me|-me)?[, ]+|(?:você )?sabe (?:me )?(?:dizer )?)+/i,
    behind: /[, ]+(?:por favor|exatamente)$/i,
    file: '(?:neste|nesse|deste|desse|no|do) (?:arquivo|módulo|documento|código)(?: aberto| atual)?|aqui',
    list: /^(?:liste|mostre|cite|dê)(?: tod[ao]s)? (?:[ao]s )?(?=(?:parâmetros|parametros|argumentos|métodos|metodos|imports|módulos importados|classes|funções|funcoes|tipos)(?![\p{L}]))/iu,
  },
};
const FIRST = { en: 'which are the ', pt: 'quais são os ' };

const COMPILED = Object.fromEntries(LANGUAGES.map((language) => [language, PATTERNS[language].map(([kind, pattern]) => [kind, compiled(pattern, language)] as const)])) as Record<QuestionLanguage, (readonly [FactKind, RegExp])[]>;

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

/** By role: what was found of it, wherever it may stand in the pattern. */
function roles(groups: Readonly<Record<string, string | undefined>>): Partial<Record<string, string>> {
  return Object.fromEntries(Object.entries(groups).flatMap(([group, found]) => (found === undefined ? [] : [[group.replace(/\d+$/, ''), found]])));
}

/** What the patterns have become. */
export const PATTERN_SOURCES: readonly string[] = LANGUAGES.flatMap((language) => COMPILED[language].map(([, { source }]) => source));

/** The fact that a conversation's last turn asks of its only file, if it does. */
export function factAsked(messages: readonly ChatMessage[], docs: readonly SourceDocument[], snippets: readonly Snippet[] = []): { question: FactQuestion; document: SourceDocument } | undefined {
  const last = messages.at(-1);
  const [document, ...others] = docs;
  if (last?.role !== 'user' || !document || others.length > 0 || snippets.some(({ path }) => shortPath(path) !== document.path)) return undefined;
  const question = factQuestion(last.content, document.path);
  const earlier = messages.slice(0, -1);
  // What was said before may be meant.
  if (!question || (earlier.length > 0 && /(?<!\p{L})(?:it|ele|ela)(?!\p{L})/iu.test(last.content))) return undefined;
  // So may code in the conversation: that something is not in the file is no answer then.
  const isKnown = (name: string | undefined): boolean => name !== undefined && name !== '' && earlier.some(({ content }) => content.includes('\n') && content.includes(name));
  return { question: isKnown(question.name) || isKnown(question.owner) ? { ...question, sure: false } : question, document };
}

/** @param message of a user. @param path of the only file that it can be about. Undefined for what is no such question, or not surely. */
export function factQuestion(message: string, path: string): FactQuestion | undefined {
  // Longer ones say more than that.
  if (message.length > 200) return undefined;
  const file = path.slice(path.lastIndexOf('/') + 1);
  for (const language of LANGUAGES) {
    const said = bare(message, language, [file, path]);
    for (const [kind, pattern] of COMPILED[language]) {
      const groups = pattern.exec(said)?.groups;
      if (!groups && !pattern.test(said)) continue;
      const question = questionOf(kind, language, roles(groups ?? {}), said, file);
      if (question) return question;
    }
  }
  return undefined;
}

/** Without what is said around a question, without the file that it is about. */
function bare(message: string, language: QuestionLanguage, files: readonly string[]): string {
  const { before, behind, file, list } = AROUND[language];
  const named = files.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  const about = new RegExp(`,? (?:${file}|${language === 'en' ? '(?:in|of|from|inside)' : '(?:em|no|do|de)'} [\`'"]?(?:${named})[\`'"]?)(?= |$)`, 'iu');
  const here = new RegExp(`(?<= )[\`'"]?(?:${named})[\`'"]?(?= )`, 'iu');
  return message.trim().replace(/\s+/g, ' ').replace(/[\s?.!:]+$/, '').replace(before, '').replace(behind, '').replace(about, '').replace(here, language === 'en' ? 'this file' : 'este arquivo').replace(list, FIRST[language]).trim();
}

/** What no question means when it says it without marks. */
const WORDS = /^(?:it|its|this|that|these|those|the|a|an|there|he|she|they|you|your|my|we|i|me|us|what|which|file|files|code|function|method|class|module|everything|anything|each|all|every|main part|ele|ela|isso|isto|este|esta|esse|essa|o|os|as|um|uma|aqui|arquivo|código|função|método|classe|tudo|cada|todos|todas|que|qual|é|está|são)$/iu;

/** Nobody writes these of anything but a program. */
const MARKED = /^[`'"]|[_$#.*\d]|\(\)$|\p{Ll}\p{Lu}/u;
const IDENTIFIER = /^#?[\p{L}_$][\p{L}\w$]*(?:[.#][\p{L}_$#][\p{L}\w$]*)*$/u;
const ARTICLE = /^(?:the|an?|os?|as?|uma?)\s*$/i;
const DEFINED = /(?<!\p{L})(?:define|declare|implement|line |definid|declarad|implementad|linha )/iu;
const CALLED = / (?:called|named|chamad[oa])\s*$/iu;
const COMPUTED = /^\[[\w$.]+\]$/;

export const isList = (kind: FactKind): kind is ListKind => kind === 'classes' || kind === 'functions' || kind === 'types';

function questionOf(kind: FactKind, language: QuestionLanguage, { name, nameKind = '', owner, parameter }: Partial<Record<string, string>>, said: string, file: string): FactQuestion | undefined {
  // Two words, "which functions?", ask on from what was said before.
  if (name === undefined) return (kind === 'imports' || isList(kind)) && said.includes(' ', said.indexOf(' ') + 1) ? { kind, language, name: '', sure: true } : undefined;
  const [about, of, at] = [name, owner, parameter].map((part) => (part === undefined ? undefined : part.replace(/^[`'"]|[`'"]$/g, '').replace(/\(\)$/, '').replace(/^(?:\.\.\.|\*{1,2})(?=.)/, '')));
  if (about === undefined || [about, of, at].some((part) => part !== undefined && !IDENTIFIER.test(part) && !COMPUTED.test(part))) return undefined;
  const marked = [name, owner, parameter].map((part) => part === undefined || MARKED.test(part));
  if (CALLED.test(nameKind)) marked[0] = true;
  // "Where is the error?", "does this file have tests?": any word, though something may be called so.
  const isKind = nameKind !== '' && !ARTICLE.test(nameKind);
  if (!marked[0] && !isKind && (kind === 'exists' || (kind === 'where' && (nameKind !== '' || !DEFINED.test(said))))) return undefined;
  if ([name, owner, parameter].some((part) => part !== undefined && WORDS.test(part))) return undefined;
  // Another file's name.
  if ([about, of, at].some((part) => part !== undefined && (part === file || /\.(?:[cm]?[jt]sx?|pyw?|pyi|ipynb|json|md|vue|svelte)$/i.test(part)))) return undefined;
  // Also what a language, a library or a product is called has capitals inside and digits.
  if (kind === 'exists' && !isKind && name !== undefined && !/^[`'"]|\(\)$/.test(name)) marked[0] = false;
  const parts = COMPUTED.test(about) ? [about] : about.split(/(?<=[^#.])[.#](?=[^.])/);
  const within = of ?? parts.slice(0, -1).at(-1);
  return { kind, language, name: parts.at(-1) as string, ...(within === undefined ? {} : { owner: within.split('.').at(-1) as string }), ...(at === undefined ? {} : { parameter: at }), ...(of === undefined && parts.length > 1 ? { dotted: true as const } : {}), ...(isKind ? { ofKind: nameKind.trim().toLowerCase() } : {}), sure: marked.every(Boolean) };
}
