/** Reads commands, and questions of known words and a name. In doubt a message is for the model. Answers nothing. */
import { INTENTS, type Intent, KINDS, type Kind, type Language, WORDS } from './intents.ts';

export interface Query {
  intent: Intent;
  /** '' asks about the whole file. */
  name: string;
  /** The class of `name`, as in `Store.flush`. */
  owner?: string | undefined;
  parameter?: string | undefined;
  /** Limits an outline or members to these kinds, if there are any. */
  kinds?: readonly Kind[];
  /** Limits the query to definitions that begin in this range of the LF text. */
  within?: { start: number; end: number };
}

export interface Question {
  query: Query;
  language: Language;
  /** Paths of the files that the question names. */
  paths: readonly string[];
}

/** The commands, and whether they take a name. */
export const FACT_COMMANDS = { outline: false, where: true, signature: true, imports: false, callers: true } as const;

/** The command in a message, with `name` '' if it is missing. Undefined for any other message. */
export function parseCommand(message: string): Query | undefined {
  const [, word = '', rest = ''] = /^\/([a-z]+)(?:\s+([\s\S]*))?$/i.exec(message.trim()) ?? [];
  const intent = word.toLowerCase() as keyof typeof FACT_COMMANDS;
  if (!Object.hasOwn(FACT_COMMANDS, intent)) return undefined;
  const said = rest.trim().replace(/^`|`$|\(\)`?$/g, '');
  return { intent, ...(FACT_COMMANDS[intent] && !/\s/.test(said) ? pathOf(said) : { name: '' }) };
}

/** Splits `Store.flush` into the name `flush` and the owner `Store`. */
function pathOf(said: string): { name: string; owner?: string | undefined } {
  const parts = said.split(/(?<=[^.#])[.#](?=[^.])/);
  return { name: parts.at(-1) ?? '', owner: parts.at(-2) };
}

/** Longer messages are no such questions. */
const MAX_QUESTION = 120;
/** What asks for the type or default of a parameter: the signature of the function tells it. */
const PARAMETER =
  /^(what is|qual é) \S+ (?:type|default(?: value)?|tipo|valor padrão) (?:of|d[eo]) `?([\w$]+)`? (?:in|of|em|de) (?=\S+$)/i;
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

/** What a message may be about: attached files, selected code. */
interface Around {
  paths: readonly string[];
  hasSelection: boolean;
}

/** The question in a message. Undefined for a message to the model. @param known names, which need no marks */
export function readQuestion(message: string, around: Around, known: ReadonlySet<string>): Question | undefined {
  const written = message
    .trim()
    .replace(/[\s?.!]+$/, '')
    .replace(/['’]s\b/g, ' is')
    .replace(/ the (`?[\w$]+`?) parameter\b/i, ' $1');
  const parameter = PARAMETER.exec(written)?.[2];
  const said = written.replace(PARAMETER, '$1 signature ');
  // A message with a second sentence, code or a list is no such question.
  if (said.length > MAX_QUESTION || /[\n;:]|```|[.?!]\s/.test(said)) return undefined;
  // In "What does update set?" and "What does get throw?", the names are `update` and `get`.
  const [, subject = ''] = /\b(?:does|can) (?!(?:the|an?|any|all|it|this)\b)(\S+)/i.exec(said) ?? [];
  const isKnown = (word: string): boolean => known.has(pathOf(word).name);
  const isFiller = (word: string): boolean => LANGUAGES.some((language) => fits(word, 'FILLER', language));
  // A word of the vocabulary may be the name, as in "What does update do?".
  const names = (said.match(TOKEN) ?? []).filter((word) => isKnown(word) && !isFiller(word));
  for (const name of isKnown(subject) ? [subject] : ['', ...names])
    for (const language of LANGUAGES) {
      const question = readIn(language, said, name, around);
      if (question) return { ...question, query: { ...question.query, parameter } };
    }
  return undefined;
}

/** The question in one language. @param chosen a word that is a name, beside those that surely are */
function readIn(language: Language, said: string, chosen: string, around: Around): Question | undefined {
  const names: string[] = [];
  const files: string[] = [];
  const words = (said.match(TOKEN) ?? []).map((token) => {
    const text = token.replace(/^`|`?(?:\(\))?`?$/g, '');
    const path = around.paths.find((each) => each === text || each.endsWith(`/${text}`));
    if (path !== undefined) files.push(path);
    else if ((/^`|\(\)$/.test(token) ? MARKED : LIKE_CODE).test(text) || text === chosen) names.push(text);
    else return plain(text);
    return path === undefined ? '#' : '%';
  });
  const [name = ''] = names;
  if (names.length > 1 || !fits(plain(said).split(' ')[0] ?? '', 'ASK|EXPLAIN|WHERE|who|quem', language))
    return undefined;
  // "How many" and "What are the" ask for a list. "How are functions" and "What are functions" do not.
  if (name === '' && /^(?:how (?!many\b)|(?:what are|o que são) \S+$)/i.test(said)) return undefined;
  const ofFile = replaced(` ${words.join(' ')} `, 'FILE', '%', language);
  const ofCode = around.hasSelection && name === '' ? replaced(ofFile, 'SELECTION', '%', language) : ofFile;
  const named = replaced(replaced(ofCode, 'INSIDE', '', language), 'NAMED', '#', language);
  const sentence = replaced(replaced(named, 'EXISTS', '# exist', language), 'IS', '!', language)
    .trim()
    .split(/ +/);
  const left = sentence.filter((word) => !fits(word, 'FILLER', language)).join(' ');
  const intent = (Object.keys(INTENTS) as Intent[]).find((each) => fits(left, INTENTS[each], language));
  if (intent === undefined) return undefined;
  const isOf = (kind: Kind): boolean => sentence.some((word) => fits(word, KINDS[kind][language], language));
  const kinds = (Object.keys(KINDS) as Kind[]).filter(isOf);
  // `this.total` is a field of the class around the code that says so.
  const query = { intent, ...pathOf(name.replace(/^(?:this|self)\./, '')), kinds };
  return { query, language, paths: files };
}
