/** Reads commands, and questions of known words and a name. In doubt a message is for the model. Answers nothing. */
import {
  AFTER_NAMES,
  BEFORE_NAMES,
  DETERMINERS,
  FILE,
  FILLERS,
  INTENTS,
  KINDS,
  NOUNS,
  ORDERS,
  SHARED,
} from './intents.ts';
import type { Intent, Kind, Language } from './intents.ts';

export interface Query {
  intent: Intent;
  /** '' asks about the whole file. */
  name: string;
  /** The class of `name`, as in `Store.flush`. */
  owner?: string;
  /** Limits an outline, exports or members to these kinds. */
  kinds?: readonly Kind[];
  /** A parameter of `name`. */
  parameter?: string;
  /** Limits the query to definitions that begin in this range of the LF text. */
  within?: { start: number; end: number };
}

export interface Question {
  query: Query;
  language: Language;
  /** The name is in backticks or before `()`. Then it need not be in the syntax tree. */
  isMarked: boolean;
  /** What is asked for is surely a name. False for "Which methods are private?" and "What does update do?". */
  isAsked: boolean;
  /** Paths of the files that the question names. */
  paths: readonly string[];
}

/** The commands, and whether they take a name. */
export const FACT_COMMANDS = { outline: false, where: true, signature: true, imports: false, callers: true } as const;

/** The command in a message. Undefined for any other message. `name` is undefined if it is missing. */
export function parseCommand(message: string): (Omit<Query, 'name'> & { name: string | undefined }) | undefined {
  const [, word = '', rest = ''] = /^\/([a-z]+)(?:\s+([\s\S]*))?$/i.exec(message.trim()) ?? [];
  const intent = word.toLowerCase() as keyof typeof FACT_COMMANDS;
  if (!Object.hasOwn(FACT_COMMANDS, intent)) return undefined;
  if (!FACT_COMMANDS[intent]) return { intent, name: '' };
  const said = rest.trim().replace(/^`|`$|\(\)`?$/g, '');
  return said === '' || /\s/.test(said) ? { intent, name: undefined } : { intent, ...pathOf(said) };
}

/** Splits `Store.flush` into the name `flush` and the owner `Store`. */
function pathOf(said: string): { name: string; owner?: string } {
  const parts = said.split(/(?<=[^.#])[.#](?=[^.])/);
  const owner = parts.at(-2);
  return { name: parts.at(-1) as string, ...(owner === undefined ? {} : { owner }) };
}

/** Longer messages are no such questions. */
const MAX_QUESTION = 120;
const IDENTIFIER = /^#?[\p{L}_$][\p{L}\p{N}_$]*(?:[.#][\p{L}_$][\p{L}\p{N}_$]*)*$/u;
/** Of a file that is not attached. */
const FILE_NAME = /\.(?:[cm]?[jt]sx?|py|go|rs|java|kt|rb|php|cs|cpp|sh|sql|ya?ml|json|toml|md|html|css|txt)$/i;
/** In backticks, the name of a key or a heading. */
const WORDED = /^[\p{L}\p{N}_][\p{L}\p{N}_ -]*$/u;
/** A name that may be an ordinary word. */
const PLAIN = /^\p{Ll}+$/u;
/** These stand for something that the question does not name. */
const PRONOUN = /^(?:its?|they|them|these|those|(?:every|any|no)thing|someone|el[ea]s?|isto|isso|aquilo|tudo|nada)$/;
/** "Does it throw anything?" asks for no name. */
const ANYTHING = /(?<! do) (?:anything|something|algo|alguma coisa)$/i;
const ASKS =
  /^(?:(?:[oi]n )?(?:what|which)|where|who|does|is|are|(?:em )?(?:que|qual|quais)|o que|onde|quem|existe|há|tem)\b/i;

const plain = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
const phrasesIn = (list: string): string[] =>
  [...plain(list).matchAll(/[^,|]+/g)].map(([phrase]) => phrase.trim().replace(/\s+/g, ' ')).filter(Boolean);
/** Any phrase of a list, the longest first. */
const anyOf = (list: string): string =>
  `(?:${phrasesIn(list)
    .sort((a, b) => b.length - a.length)
    .join('|')})`;
const between = (pattern: string): RegExp => new RegExp(`(?<= )${pattern}(?= )`, 'gu');

const DETERMINER = new RegExp(`^${anyOf(DETERMINERS)}$`);
const NEVER_NAMES = new Set(phrasesIn(`${FILLERS.en}, ${FILLERS.pt}, ${DETERMINERS}`));
/** "What is React?" asks for no name of the files. */
const KNOWLEDGE = / (?:what is|o que e) # $/;
/** "What does private mean?" asks about the language. */
const NAMES_IT = new RegExp(` (?:${anyOf(BEFORE_NAMES)} #(?! mean )|# ${anyOf(AFTER_NAMES)} )`);
const ORDER = new RegExp(`^${anyOf(ORDERS)}(?!\\S)`, 'i');

function vocabularyOf(language: Language) {
  const kinds = Object.values(KINDS).map((words) => words[language]);
  const filled = (list: string): string =>
    list.replace(/[A-Z]{3,}/g, (key) => SHARED[key]?.[language] ?? kinds.join(', '));
  const intents = (all: Readonly<Record<string, Readonly<Record<Language, string>>>>) =>
    Object.entries(all).map(([intent, words]) => {
      const [need = '', may = ''] = filled(words[language]).split('|');
      return {
        intent: intent as Intent,
        need: between(anyOf(need)),
        may: between(anyOf(`${may},${FILLERS[language]},#,%`)),
      };
    });
  const lists = [INTENTS.ofFile, INTENTS.ofName].flatMap((all) => Object.values(all).map((words) => words[language]));
  const all = [FILLERS[language], FILE[language], NOUNS[language], ...lists.map(filled)].join(',');
  const noun = anyOf(NOUNS[language]);
  return {
    language,
    words: new Set(phrasesIn(all).flatMap((phrase) => phrase.split(' '))),
    file: between(anyOf(FILE[language])),
    noun: between(`(?:${noun} )?#(?: ${noun})?`),
    /** Asks about parts of the name. */
    part: between(`${anyOf(`${kinds.join(',')}, function, method, função, método`)} (?:of|in|de|do|da|em|no|na) #`),
    kinds: Object.entries(KINDS).map(([kind, words]) => [kind as Kind, between(anyOf(words[language]))] as const),
    ofFile: intents(INTENTS.ofFile),
    ofName: intents(INTENTS.ofName),
  };
}
type Vocabulary = ReturnType<typeof vocabularyOf>;
const VOCABULARIES = [vocabularyOf('en'), vocabularyOf('pt')];

/**
 * The question in a message. Several if it is not sure which word is the name. Empty for a message to the model.
 * @param paths of the files that it can be about
 * @param isFirst whether it is the first message, so that "it" means the file
 */
export function readQuestions(message: string, paths: readonly string[], isFirst: boolean): Question[] {
  const said = message
    .trim()
    .replace(/[\s?.!]+$/, '')
    .replace(ANYTHING, '');
  // A message with a second sentence, code or a list is no such question.
  if (said.length > MAX_QUESTION || /[\n;:]|```|[.?!]\s/.test(said) || ORDER.test(said)) return [];
  const found = VOCABULARIES.flatMap((vocabulary) => readIn(vocabulary, said, paths, isFirst));
  const [first] = found;
  if (first) return found.every(({ query }) => query.intent === first.query.intent) ? [first] : [];
  // A word of the vocabulary may be the name.
  const names = said.split(/\s+/).filter((word) => PLAIN.test(word) && !NEVER_NAMES.has(plain(word)));
  return VOCABULARIES.flatMap((vocabulary) =>
    [...new Set(names)].flatMap((name) => {
      const words = new Set([...vocabulary.words].filter((word) => word !== plain(name)));
      const questions = readIn({ ...vocabulary, words }, said, paths, isFirst);
      return questions.map((question) => ({ ...question, isAsked: false }));
    }),
  );
}

/** The questions of one language that match the words. */
function readIn(vocabulary: Vocabulary, said: string, paths: readonly string[], isFirst: boolean): Question[] {
  const { tokens, names, files } = tokensOf(said, vocabulary, paths, isFirst) ?? { tokens: [], names: [], files: [] };
  const name = names.at(-1);
  const parameter = names.length === 2 ? names[0]?.text : undefined;
  const sentence = ` ${tokens.join(' ')} `.replace(vocabulary.file, '%');
  const bare = sentence.replace(vocabulary.noun, '#');
  // "The total" is no name, but "the total field" is one.
  const before = tokens[tokens.indexOf('#') - 1];
  const isUnsure = before === undefined || (bare === sentence && DETERMINER.test(before));
  if (names.length > 2 || (names.length === 1 && !name?.isMarked && PLAIN.test(name?.text ?? '') && isUnsure))
    return [];
  const merged = bare
    .replace(between(`${anyOf(DETERMINERS)} #`), '#')
    .replace(parameter === undefined ? /^$/ : /(?: (?:in|of|em|de))? # $/, ' ');
  const kinds = vocabulary.kinds.filter(([, words]) => merged.search(words) >= 0).map(([kind]) => kind);
  // `this.total` is a field of the class around the code that says so.
  const path = pathOf(name?.text.replace(/^(?:this|self)\.(?=[\p{L}_$#])/u, '') ?? '');
  return vocabulary[name ? 'ofName' : 'ofFile'].flatMap(({ intent, need, may }): Question[] => {
    const rest = merged.replace(need, (phrase) => (phrase.includes('#') ? '#' : ''));
    if (rest === merged || rest.replace(may, '').trim() !== '') return [];
    if ((intent === 'parameter') !== (parameter !== undefined)) return [];
    if (intent !== 'members' && merged.search(vocabulary.part) >= 0) return [];
    const query = { intent, ...path, ...(kinds.length > 0 ? { kinds } : {}), ...(parameter ? { parameter } : {}) };
    const isMarked = name?.isMarked ?? false;
    const isWord = PLAIN.test(name?.text ?? '') || (/^\p{Lu}/u.test(name?.text ?? '') && KNOWLEDGE.test(sentence));
    const isAsked = ASKS.test(said) && (!isWord || NAMES_IT.test(sentence));
    return [{ query, language: vocabulary.language, isMarked, isAsked, paths: files }];
  });
}

/** The words in lower case and without accents, with `#` for a name and `%` for a file. Undefined for other text. */
function tokensOf(said: string, { words }: Vocabulary, paths: readonly string[], isFirst: boolean) {
  const tokens: string[] = [];
  const names: { text: string; isMarked: boolean }[] = [];
  const files: string[] = [];
  for (const { 0: token, index } of said.replace(/['’]s\b/g, ' is').matchAll(/`[^`]+`(?:\(\))?|[^\s,`]+/g)) {
    const isMarked = /^`|\(\)$/.test(token);
    const bare = token.replace(/\(\)$/, '').replace(/^`|`$/g, '').replace(/\(\)$/, '');
    const word = plain(bare);
    const file = paths.find((path) => path === bare || path.slice(path.lastIndexOf('/') + 1) === bare);
    if (file !== undefined) files.push(file);
    if (file !== undefined || (!isMarked && isFirst && /^(?:it|ele)$/.test(word))) tokens.push('%');
    else if ((!isMarked && PRONOUN.test(word)) || FILE_NAME.test(bare)) return undefined;
    else if (!isMarked && words.has(word) && (index === 0 || bare === bare.toLowerCase())) tokens.push(word);
    else if (IDENTIFIER.test(bare) || (isMarked && WORDED.test(bare))) {
      tokens.push('#');
      names.push({ text: bare, isMarked });
    } else return undefined;
  }
  return { tokens, names, files };
}
