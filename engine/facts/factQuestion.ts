/**
 * Which questions ask for a fact that stands in a file (facts.ts), in English and in Brazilian Portuguese. A whole message has to
 * be such a question: what says anything more is for the model. Pure.
 */
import type { ChatMessage, Snippet } from '../protocol/tasks.ts';
import { type SourceDocument, shortPath } from '../text/syntax/sourceDocument.ts';
import { type FactKind, isOfFile, LANGUAGES, type ListKind, listsIn, type QuestionLanguage } from './factKinds.ts';
import { AROUND, COMPILED, FIRST, inOurWords } from './factPatterns.ts';
import { CONSTRUCTOR } from './factPhrases.ts';

export interface FactQuestion {
  kind: FactKind;
  language: QuestionLanguage;
  /** What it is about, as it is called, without what it belongs to; '' for the file, or for any function that has `parameter`. */
  name: string;
  /** What `name` is said to belong to. */
  owner?: string;
  /** What `listed` and `exported` ask for. */
  lists?: readonly ListKind[];
  /** How many there are is asked. */
  counted?: true;
  /** Without lines; of `defines` the first of each kind. */
  brief?: true;
  /** Only of what begins there, in the LF text: one of several that are called so. */
  within?: { start: number; end: number };
  /** The parameter that a type or a default value is asked of. */
  parameter?: string;
  /** It was said as one with what it belongs to, which may be something of the language. */
  dotted?: true;
  /** What it is said to be: "the function". */
  ofKind?: string;
  /** The name is marked as one, or no word of any language looks like it. */
  sure: boolean;
  /** Two words, "which functions?": behind others they ask on from what was said before. */
  short?: true;
  /** Code in the conversation has the name, too, and may be meant. */
  elsewhere?: true;
}

export interface AskedFact {
  question: FactQuestion;
  /** What it is asked of, in the order given. */
  documents: readonly SourceDocument[];
}

/** By role: what was found of it, wherever it may stand in the pattern. */
function roles(groups: Readonly<Record<string, string | undefined>>): Partial<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(groups).flatMap(([group, found]) =>
      found === undefined ? [] : [[group.replace(/\d+$/, ''), found]],
    ),
  );
}

/** The fact that a conversation's last turn asks of its files, if it does: of all of them, or of those that it names. */
export function factAsked(
  messages: readonly ChatMessage[],
  docs: readonly SourceDocument[],
  snippets: readonly Snippet[] = [],
): AskedFact | undefined {
  const last = messages.at(-1);
  if (
    last?.role !== 'user' ||
    docs.length === 0 ||
    snippets.some(({ path }) => !docs.some((doc) => doc.path === shortPath(path)))
  )
    return undefined;
  const named = docs.filter(({ path }) => names(last.content, path));
  const documents = named.length > 0 ? named : docs;
  const question = factQuestion(last.content, ...documents.map(({ path }) => path));
  const earlier = messages.slice(0, -1);
  // What was said before may be meant.
  if (
    !question ||
    (earlier.length > 0 &&
      (question.short ||
        (/(?<!\p{L})(?:it|ele|ela)(?!\p{L})/iu.test(last.content) && !isOnlyFile(question, earlier, docs))))
  )
    return undefined;
  // So may code in the conversation: that something is not in the file is no answer then.
  const isKnown = (name: string | undefined): boolean =>
    name !== undefined &&
    name !== '' &&
    earlier.some(({ content }) => content.includes('\n') && content.includes(name));
  return {
    question:
      isKnown(question.name) || isKnown(question.owner) ? { ...question, sure: false, elsewhere: true } : question,
    documents,
  };
}

/** Only files import and export, and no code or other file was spoken of. */
function isOnlyFile({ kind }: FactQuestion, earlier: readonly ChatMessage[], docs: readonly SourceDocument[]): boolean {
  return (
    docs.length === 1 &&
    /^(?:imports|imported|exports)$/.test(kind) &&
    earlier.every(
      ({ content }) =>
        !content.includes('```') &&
        [...content.matchAll(FILES)].every(([file]) => docs.some(({ path }) => names(file, path))),
    )
  );
}

const FILES = /[\w./-]+\.(?:[cm]?[jt]sx?|pyw?|pyi)(?!\w)/gi;

/** Whether a message has a file's name in it. */
export function names(message: string, path: string): boolean {
  return new RegExp(`(?<![\\w./-])(?:${[path, fileOf(path)].map(escaped).join('|')})(?![\\w-]|\\.\\w)`, 'iu').test(
    message,
  );
}

const fileOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
const escaped = (name: string): string => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** @param message of a user. @param paths of the only files that it can be about. Undefined for what is no such question, or not surely. */
export function factQuestion(message: string, ...paths: readonly string[]): FactQuestion | undefined {
  // Longer ones say more than that.
  if (message.length > 200 || GENERAL.test(message) || TAKEN.test(message)) return undefined;
  const files = paths.flatMap((path) => [fileOf(path), path]);
  for (const language of LANGUAGES) {
    const said = bare(inOurWords(message, language, paths.length), language, files);
    for (const [kind, pattern] of COMPILED[language]) {
      const groups = pattern.exec(said)?.groups;
      if (!groups && !pattern.test(said)) continue;
      const question = questionOf(kind, language, roles(groups ?? {}), said, files);
      if (question) return question;
    }
  }
  return undefined;
}

/** "What are functions?": of any language. */
const GENERAL = /(?<!\p{L})(?:what are|que são) \p{L}+[\s?.!]*$/iu;
/** What one file takes from another, or others from it. */
const TAKEN =
  /(?<!\p{L}|be )(?:import(?:ed)?|required?) from (?!this |here|the file)|(?<!\p{L})(?:importam?|importad[oa]s?|requer) d(?:[aeo]s?|este|esse) /iu;

/** Without what is said around a question, without the files that it is about. */
function bare(message: string, language: QuestionLanguage, files: readonly string[]): string {
  const { before, behind, file, list } = AROUND[language];
  const one = `[\`'"]?(?:${files.map(escaped).join('|')})[\`'"]?`;
  const named = `${one}(?:(?:, | and | e |, and )${one})*`;
  const about = new RegExp(
    `,? (?:${file}|${language === 'en' ? '(?:in|of|from|inside)' : '(?:em|no|do|de)'} ${named})(?= |$)`,
    'iu',
  );
  const here = new RegExp(`(?<= )${named}(?= )`, 'iu');
  return message
    .trim()
    .replace(/\s+/g, ' ')
    .replace(/[\s?.!:]+$/, '')
    .replace(before, '')
    .replace(behind, '')
    .replace(about, '')
    .replace(here, language === 'en' ? 'this file' : 'este arquivo')
    .replace(list, FIRST[language])
    .trim();
}

/** What no question means when it says it without marks. */
const WORDS =
  /^(?:it|its|this|that|these|those|the|a|an|there|he|she|they|you|your|my|we|i|me|us|what|which|file|files|code|function|method|class|module|everything|anything|something|nothing|each|all|every|called|named|main part|why|how|more|it all|further|better|again|now|outside|inside|yourself|itself|themselves|them|him|her|ele|ela|isso|isto|este|esta|esse|essa|o|os|as|um|uma|aqui|arquivo|código|função|método|classe|tudo|nada|algo|cada|todos|todas|que|qual|por|porque|porquê|como|mais|melhor|novamente|agora|devagar|fora|dentro|é|está|são|chamad[oa])$/iu;

/** How something is to be explained, unless it is a name that is marked. */
const ADVERB = /^\p{L}+(?:ly|mente)$/iu;

/** Nobody writes these of anything but a program. */
const MARKED = /^[`'"]|[_$#.*\d]|\(\)$|\p{Ll}\p{Lu}/u;
const IDENTIFIER = /^#?[\p{L}_$][\p{L}\w$]*(?:[.#][\p{L}_$#][\p{L}\w$]*)*$/u;
const ARTICLE = /^(?:the|an?|os?|as?|uma?)\s*$/i;
const DEFINED = /(?<!\p{L})(?:define|declare|implement|line |definid|declarad|implementad|linha )/iu;
const CALLED = / (?:called|named|chamad[oa])\s*$/iu;
const COMPUTED = /^\[[\w$.]+\]$/;

/** Kinds of things, which may be meant as such where something is called so. */
const NOUNS =
  /^(?:class(?:es)?|functions?|types?|methods?|members?|variables?|constants?|interfaces?|parameters?|arguments?|constructors?|values|names|imports?|exports?|modules?|tests?|errors?|comments?|lines?|things?|returned|imported|exported|defined|declared|wrong|new|funç(?:ão|ões)|tipos?|métodos?|membros?|variáve(?:l|is)|constantes?|parâmetros?|argumentos?|construtor(?:es)?|valor(?:es)?|nomes|módulos?|testes?|erros?|comentários?|linhas?|coisas?|retornado|importado|exportado|definido)$/iu;
/** What has a name beside it: "is there a class Basket". */
const NAMED_KIND = /class|interface|function|method|função|funcao|método|metodo/i;

/** With a capital where no sentence begins, among words without. */
const isCapitalised = (name: string, said: string): boolean =>
  /^\p{Lu}[\p{L}\d]*$/u.test(name) && said.indexOf(name) > 0 && !/\p{Lu}/u.test(said.slice(1).replace(name, ''));

function questionOf(
  kind: FactKind,
  language: QuestionLanguage,
  found: Partial<Record<string, string>>,
  said: string,
  files: readonly string[],
): FactQuestion | undefined {
  const { name, parameter, module, lists } = found;
  if (module !== undefined) return moduleQuestion(kind, language, module, files);
  if (name === undefined && parameter === undefined) {
    const isShort = !said.includes(' ', said.indexOf(' ') + 1);
    return isOfFile(kind)
      ? {
          kind,
          language,
          name: '',
          sure: true,
          ...(lists === undefined ? {} : { lists: listsIn(lists, language) }),
          ...(isShort ? { short: true as const } : {}),
          ...(/^(?:how many|quant[ao]s)\b/i.test(said) ? { counted: true as const } : {}),
        }
      : undefined;
  }
  return namedQuestion(kind, language, found, said, files);
}

/** A module, by any part of its path, or what is imported from one; not one of the files that are asked, which take from each other then. */
function moduleQuestion(
  kind: FactKind,
  language: QuestionLanguage,
  module: string,
  files: readonly string[],
): FactQuestion | undefined {
  const name = unmarked(module);
  // Python's `os` is a word in Portuguese, of no module.
  return (WORDS.test(name) && name !== 'os') || NOUNS.test(name) || files.includes(name)
    ? undefined
    : { kind, language, name, sure: MARKED.test(module) || /[/@:]/.test(module) };
}

/** Without the marks that say that it is a name. */
const unmarked = (part: string): string =>
  part
    .replace(/^[`'"]|[`'"]$/g, '')
    .replace(/\(\)$/, '')
    .replace(/^(?:\.\.\.|\*{1,2})(?=.)/, '');

function namedQuestion(
  kind: FactKind,
  language: QuestionLanguage,
  { name, nameKind = '', owner, parameter, parameterKind = '' }: Partial<Record<string, string>>,
  said: string,
  files: readonly string[],
): FactQuestion | undefined {
  const [about, of, at] = [name, owner, parameter].map((part) => (part === undefined ? undefined : unmarked(part)));
  if ([about, of, at].some((part) => part !== undefined && !IDENTIFIER.test(part) && !COMPUTED.test(part)))
    return undefined;
  const marked = [name, owner, parameter].map((part) => part === undefined || MARKED.test(part));
  if (CALLED.test(nameKind)) marked[0] = true;
  // "Where is the error?", "does this file have tests?": any word, though something may be called so.
  const isKind = nameKind !== '' && !ARTICLE.test(nameKind);
  if (
    !marked[0] &&
    !isKind &&
    ((kind === 'exists' && !DEFINED.test(said)) ||
      (/^(?:does|is|where|source)$/.test(kind) && nameKind !== '' && !CONSTRUCTOR.test(name ?? '')))
  )
    return undefined;
  const parts = [name, owner, parameter].filter((part) => part !== undefined);
  if (
    parts.some((part) => WORDS.test(part) || ADVERB.test(part)) ||
    (/^(?:does|is|returned|exists|default|passed|called|source|used|signature)$/.test(kind) &&
      parts.some((part) => NOUNS.test(part) && !(kind === 'does' && CONSTRUCTOR.test(part))))
  )
    return undefined;
  // Of what is no parameter.
  if (
    name === undefined &&
    parameterKind !== '' &&
    !ARTICLE.test(parameterKind) &&
    !/param|argument|parâm/i.test(parameterKind)
  )
    return undefined;
  // A file's name.
  if (
    [about, of, at].some(
      (part) =>
        part !== undefined &&
        (files.includes(part) || /\.(?:[cm]?[jt]sx?|pyw?|pyi|ipynb|json|md|vue|svelte)$/i.test(part)),
    )
  )
    return undefined;
  // Also what a language, a library or a product is called has capitals inside and digits.
  if (
    (kind === 'does' || kind === 'is' || (kind === 'exists' && !DEFINED.test(said))) &&
    !isKind &&
    name !== undefined &&
    !/^[`'"]|\(\)$/.test(name)
  )
    marked[0] = false;
  if (
    kind === 'exists' &&
    name !== undefined &&
    isCapitalised(name, said) &&
    (NAMED_KIND.test(nameKind) || DEFINED.test(said))
  )
    marked[0] = true;
  // What returns something or is defined somewhere is no word, unless it is "the server", and neither is what is imported.
  if (
    (((kind === 'returned' || (kind === 'where' && DEFINED.test(said))) && !ARTICLE.test(nameKind)) ||
      (kind === 'source' && /import/i.test(said))) &&
    owner === undefined
  )
    marked[0] = true;
  const path = about === undefined || COMPUTED.test(about) ? [about ?? ''] : about.split(/(?<=[^#.])[.#](?=[^.])/);
  const within = of ?? path.slice(0, -1).at(-1);
  return {
    kind,
    language,
    name: path.at(-1) as string,
    ...(within === undefined ? {} : { owner: within.split('.').at(-1) as string }),
    ...(at === undefined ? {} : { parameter: at }),
    ...(of === undefined && path.length > 1 ? { dotted: true as const } : {}),
    ...(isKind ? { ofKind: nameKind.trim().toLowerCase() } : {}),
    sure: marked.every(Boolean),
  };
}
