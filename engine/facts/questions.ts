/** Reads commands, and questions of known words and a name. In doubt a message is for the model. Answers nothing. */
import { INTENTS, type Intent, KINDS, type Kind, type Language, OF_EITHER, OF_FILE, WORDS } from './intents.ts';

export interface Query {
  intent: Intent;
  /** '' asks about the whole file. */
  name: string;
  /** The class of `name`, as in `Store.flush`. */
  owner?: string | undefined;
  /** Limits an outline, exports or members to these kinds, if there are any. */
  kinds?: readonly Kind[];
  /** Limits the query to functions with this parameter. */
  parameter?: string | undefined;
  /** Limits the query to definitions that begin in this range of the LF text. */
  within?: { start: number; end: number };
}

export interface Question {
  query: Query;
  language: Language;
  /** The name is in backticks or before `()`. Then it need not be in the syntax tree. */
  isMarked: boolean;
  /** It is about the selected code instead of the file. */
  isOfSelection: boolean;
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
function pathOf(said: string): { name: string; owner?: string | undefined } {
  const parts = said.split(/(?<=[^.#])[.#](?=[^.])/);
  return { name: parts.at(-1) ?? '', owner: parts.at(-2) };
}

/** Longer messages are no such questions. */
const MAX_QUESTION = 120;
/** In backticks, the name of a key or a heading may have spaces. */
const MARKED = /^[\p{L}\p{N}_$#][\p{L}\p{N}_$#. -]*$/u;
/** No word of a language is written like these: `nextId`, `next_id`. */
const LIKE_CODE = /^[\p{L}\p{N}$]*(?:\p{Ll}\p{Lu}|_)[\p{L}\p{N}_$]*$/u;

/** Part of a question. */
const TOKEN = /`[^`]+`(?:\(\))?|[^\s,`]+/g;

/** In lower case and without accents. */
const plain = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

const LANGUAGES: readonly Language[] = ['en', 'pt'];

/** A pattern with its words in capitals replaced. */
function filled(pattern: string, language: Language): string {
  const kind = `(?:${Object.values(KINDS)
    .map((words) => words[language])
    .join('|')})`;
  const wordsOf = (key: string): string => filled(WORDS[key]?.[language] ?? `${kind}(?: ${kind})*`, language);
  return plain(pattern.replace(/[A-Z]{2,}/g, wordsOf));
}

const compiled = new Map<string, RegExp>();

/** The pattern in a language, compiled once, with what stands before and after it. */
function patternOf(pattern: string, language: Language, before = '^', after = '$'): RegExp {
  const key = `${language}${before}${pattern}`;
  const found = compiled.get(key) ?? new RegExp(`${before}(?:${filled(pattern, language)})${after}`, 'g');
  compiled.set(key, found);
  return found;
}

/** Replaces phrases of a sentence that begins and ends with a space. */
const replaced = (sentence: string, pattern: string, by: string, language: Language): string =>
  sentence.replace(patternOf(pattern, language, '(?<= )', '(?= )'), by);

const fits = (text: string, pattern: string, language: Language): boolean =>
  text.search(patternOf(pattern, language)) >= 0;

/** What a message may be about. */
export interface Around {
  /** Of the attached files. */
  paths: readonly string[];
  /** It is the first message, so "it" means the file. */
  isFirst: boolean;
}

/** The question in a message. Undefined for a message to the model. @param known names, which need no marks */
export function readQuestion(message: string, around: Around, known: ReadonlySet<string>): Question | undefined {
  const said = message
    .trim()
    .replace(/[\s?.!]+$/, '')
    .replace(/['’]s\b/g, ' is');
  // A message with a second sentence, code or a list is no such question.
  if (said.length > MAX_QUESTION || /[\n;:]|```|[.?!]\s/.test(said)) return undefined;
  const isFiller = (word: string): boolean => LANGUAGES.some((language) => fits(word, 'FILLER', language));
  // In "What does update set?" and "What does get throw?", the names are `update` and `get`.
  const [, subject] = /\b(?:does|can) (?!(?:the|an?|any|all|it|this)\b)(\S+)/i.exec(said) ?? [];
  const maybe = (said.match(TOKEN) ?? []).filter(
    (word) => known.has(pathOf(word).name) && (word === subject || !isFiller(word)),
  );
  // A word of the vocabulary may be the name, as in "What does update do?". Two names are a function and its parameter.
  const pairs = maybe.flatMap((one, i) => maybe.slice(i + 1).map((other) => [one, other]));
  const all = [[], ...maybe.map((name) => [name]), ...pairs];
  const isOwn = (names: readonly string[]): boolean => subject !== undefined && names.includes(subject);
  for (const names of isOwn(maybe) ? all.filter(isOwn) : all)
    for (const language of LANGUAGES) {
      const question = readIn(language, said, names, around);
      if (question) return question;
    }
  return undefined;
}

/** The question in one language, with some words as names beside those that surely are. */
function readIn(
  language: Language,
  said: string,
  chosen: readonly string[],
  { paths, isFirst }: Around,
): Question | undefined {
  const names: { text: string; isMarked: boolean }[] = [];
  const files: string[] = [];
  const words = (said.match(TOKEN) ?? []).map((token) => {
    const isMarked = /^`|\(\)$/.test(token);
    const text = token.replace(/^`|`?(?:\(\))?`?$/g, '');
    const path = paths.find((each) => each === text || each.endsWith(`/${text}`));
    if (path !== undefined) files.push(path);
    else if ((isMarked ? MARKED : LIKE_CODE).test(text) || chosen.includes(text)) names.push({ text, isMarked });
    else return isFirst && /^(?:it|ele)$/i.test(token) ? '%' : plain(text);
    return path === undefined ? '#' : '%';
  });
  const [name] = names.slice(-1);
  if (names.length > 2 || !fits(plain(said).split(' ')[0] ?? '', 'ASK|EXPLAIN|WHERE|who|quem', language))
    return undefined;
  // "How many" and "What are the" ask for a list. "How are functions" and "What are functions" do not.
  if (!name && /^(?:how (?!many\b)|(?:what are|o que são) \S+$)/i.test(said)) return undefined;
  const ofFile = replaced(` ${words.join(' ')} `, 'FILE', '%', language);
  const ofSelection = name ? ofFile : replaced(ofFile, 'SELECTION', '%', language);
  const about = replaced(ofSelection, 'INSIDE', '', language).replace('%', name ? '' : '#');
  const named = replaced(about, 'NAMED', '#', language);
  const sentence = replaced(named, 'IS', '# !', language).trim().split(/ +/);
  const left = sentence.filter((word) => !fits(word, 'FILLER', language)).join(' ');
  const intent = (Object.keys(INTENTS) as Intent[]).find(
    (each) =>
      (OF_EITHER.includes(each) || OF_FILE.includes(each) === !name) &&
      (names.length < 2 || each === 'signature') &&
      fits(left, INTENTS[each][language], language),
  );
  if (intent === undefined) return undefined;
  const isOf = (kind: Kind): boolean => sentence.some((word) => fits(word, KINDS[kind][language], language));
  const kinds = (Object.keys(KINDS) as Kind[]).filter(isOf);
  // `this.total` is a field of the class around the code that says so.
  const path = pathOf(name?.text.replace(/^(?:this|self)\./, '') ?? '');
  return {
    query: { intent, ...path, kinds, parameter: names.length === 2 ? names[0]?.text : undefined },
    language,
    isMarked: name?.isMarked ?? false,
    isOfSelection: ofSelection !== ofFile,
    paths: files,
  };
}
