/**
 * Reads commands, and recognises questions by their keywords and the name in them. In doubt a message is for the model.
 * Does not answer.
 */
import { ENTRY_NAMES } from './changeWords.ts';
import type { EntryKind } from './extract/entries.ts';
import { DETERMINERS, type FactKind, type Language, PARTS, type Part, WORDS, type Words } from './words.ts';

/** Longer messages are no such questions. */
const MAX_QUESTION = 120;

export interface Question {
  query: FactQuery;
  language: Language;
  /** The name is in backticks or before `()`. Then it need not be in the syntax tree. */
  isMarked: boolean;
  /**
   * The message asks for a name. False for other sentences, as in "Add parameters", and if the name is a word of other
   * questions, as in "What does update do?".
   */
  isAsked: boolean;
  /** Paths of the files that the question names. */
  paths: readonly string[];
}

const IDENTIFIER = /^#?[\p{L}_$][\p{L}\p{N}_$]*(?:[.#][\p{L}_$][\p{L}\p{N}_$]*)*$/u;
/** A name that may be an ordinary word. */
const PLAIN = /^\p{Ll}+$/u;
/** In backticks, the name of a key or a heading. */
const WORDED = /^[\p{L}\p{N}_][\p{L}\p{N}_ -]*$/u;
/** "Does it throw anything?" asks for no name. */
const ANYTHING =
  /(?<= (?:throws?|raises?|panics?|lanç\S+|levanta\S*)) (?:anything|something|algo|alguma coisa)(?=\s|$)/giu;

const plain = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

const split = (list: string): string[] =>
  plain(list)
    .split(',')
    .filter((word) => word !== '');

/** Matches any phrase of the lists between spaces, the longest first. */
function anyOf(...lists: readonly string[]): RegExp {
  const phrases = split(lists.join(',')).sort((a, b) => b.length - a.length);
  return new RegExp(`(?<= )(?:${phrases.join('|')})(?= )`, 'gu');
}

function vocabularyOf({ language, keywords }: Words) {
  const { fillers, file, nouns, ofFile, ofName } = keywords;
  const noun = `(?:${split(nouns).join('|')})`;
  const patterns = (intents: Readonly<Record<string, string>>) =>
    Object.entries(intents).map(([kind, list]) => {
      const [need = '', may = ''] = list.split('|');
      return { kind: kind as FactKind, need: anyOf(need), may: anyOf(may, fillers, '#,%') };
    });
  const all = [fillers, file, nouns, ...Object.values(ofFile), ...Object.values(ofName)].join(',');
  return {
    language,
    words: new Set(split(all).flatMap((phrase) => phrase.split(/[ |]/))),
    file: anyOf(file),
    noun: new RegExp(`(?<= )(?:${noun} )?#(?: ${noun})?(?= )`, 'u'),
    parts: Object.entries(PARTS).map(([part, { [language]: list }]) => [part as Part, anyOf(list)] as const),
    entries: Object.entries(ENTRY_NAMES).map(
      ([entry, { [language]: list }]) => [entry as EntryKind, anyOf(list)] as const,
    ),
    fileIntents: patterns(ofFile),
    nameIntents: patterns(ofName),
  };
}
type Vocabulary = ReturnType<typeof vocabularyOf>;
const VOCABULARIES = [vocabularyOf(WORDS.en), vocabularyOf(WORDS.pt)];

/**
 * The question in a message. Several if it is not sure which word is the name. Empty for a message to the model.
 * @param paths of the files that it can be about
 * @param isFirst whether it is the first message, so that "it" means the file
 */
export function readQuestions(message: string, paths: readonly string[], isFirst: boolean): Question[] {
  const said = message.trim().replace(/[\s?.!]+$/, '');
  // A message with a second sentence, code or a list is no such question.
  if (said.length > MAX_QUESTION || /[\n;:]|```|[.?!]\s/.test(said)) return [];
  const found = VOCABULARIES.flatMap((vocabulary) => readIn(vocabulary, said, paths, isFirst));
  const [first] = found;
  if (!first) return guessed(said, paths, isFirst);
  return found.every(({ query }) => query.kind === first.query.kind) ? [first] : [];
}

/** The questions in which a word of the vocabulary is the name. */
function guessed(said: string, paths: readonly string[], isFirst: boolean): Question[] {
  const words = [...new Set(said.split(/\s+/))].filter((word) => PLAIN.test(word) && !NEVER_NAMES.has(plain(word)));
  return VOCABULARIES.flatMap((vocabulary) =>
    words
      .filter((word) => vocabulary.words.has(plain(word)))
      .flatMap((word) => {
        const others = { ...vocabulary, words: new Set([...vocabulary.words].filter((each) => each !== plain(word))) };
        return readIn(others, said, paths, isFirst).map((question) => ({ ...question, isAsked: false }));
      }),
  );
}

/** The questions of one language that match the words. */
function readIn(vocabulary: Vocabulary, said: string, paths: readonly string[], isFirst: boolean): Question[] {
  const read = tokensOf(said, vocabulary, paths, isFirst);
  if (!read) return [];
  const { tokens, names, files } = read;
  const [name] = names;
  if (names.length > 1) return [];
  const sentence = ` ${tokens.join(' ')} `.replace(vocabulary.file, '%');
  const bare = sentence.replace(vocabulary.noun, '#');
  const merged = bare.replace(DETERMINER, '#');
  if (name && !name.isMarked && PLAIN.test(name.text) && !isSurelyName(tokens, bare === sentence)) return [];
  // `this.total` is a field of the class around the code that says so.
  const path = name?.text.replace(/^(?:this|self)\.(?=[\p{L}_$#])/u, '');
  const query = path ? pathOf(path) : { name: '' };
  return (name ? vocabulary.nameIntents : vocabulary.fileIntents).flatMap(({ kind, need, may }): Question[] => {
    const rest = merged.replace(need, (phrase) => (phrase.includes('#') ? '#' : ''));
    if (rest === merged || rest.replace(may, '').trim() !== '') return [];
    const only = vocabulary.parts.filter(([, words]) => merged.search(words) >= 0).map(([part]) => part);
    const entry = vocabulary.entries.filter(([, words]) => merged.search(words) >= 0).map(([part]) => part);
    const asked = {
      kind,
      ...query,
      ...(only.length > 0 ? { only } : {}),
      ...(kind === 'entries' ? { entry } : {}),
    };
    return [
      {
        query: asked,
        language: vocabulary.language,
        isMarked: name?.isMarked ?? false,
        isAsked: ASKS.test(said),
        paths: files,
      },
    ];
  });
}

const ASKS =
  /^(?:(?:[oi]n )?(?:what|which)|where|who|does|is|are|(?:em )?(?:que|qual|quais)|o que|onde|quem|para que|existe|há|tem)\b/i;

/** These stand for something that the question does not name. */
const PRONOUNS = new Set(
  split(
    'it,its,they,them,these,those,he,she,both,everything,anything,nothing,someone,ele,ela,eles,elas,isto,isso,aquilo,tudo,nada',
  ),
);

/** Words that are no names. */
const NEVER_NAMES = new Set(
  [WORDS.en, WORDS.pt].flatMap(({ keywords }) => split(keywords.fillers)).concat(split(DETERMINERS)),
);

const DETERMINER = new RegExp(`(?<= )(?:${split(DETERMINERS).join('|')}) #`, 'u');

/** A plain word is a name unless it begins the question or follows a determiner without a noun, as in "the total". */
function isSurelyName(tokens: readonly string[], isBare: boolean): boolean {
  const at = tokens.indexOf('#');
  return at > 0 && !(isBare && split(DETERMINERS).includes(tokens[at - 1] as string));
}

/** The words in lower case and without accents, with `#` for a name and `%` for a file. Undefined for other text. */
function tokensOf(said: string, { words }: Vocabulary, paths: readonly string[], isFirst: boolean) {
  const tokens: string[] = [];
  const names: { text: string; isMarked: boolean }[] = [];
  const files: string[] = [];
  for (const { 0: token, index } of said
    .replace(ANYTHING, '')
    .replace(/['’]s\b/g, ' is')
    .matchAll(/`[^`]+`(?:\(\))?|[^\s,`]+/gu)) {
    const isMarked = /^`|\(\)$/.test(token);
    const bare = token.replace(/\(\)$/, '').replace(/^`|`$/g, '').replace(/\(\)$/, '');
    const word = plain(bare);
    const file = paths.find((path) => path === bare || path.slice(path.lastIndexOf('/') + 1) === bare);
    if (file !== undefined) {
      tokens.push('%');
      files.push(file);
    } else if (!isMarked && PRONOUNS.has(word) && word !== 'it' && word !== 'ele') return undefined;
    else if (!isMarked && words.has(word) && (index === 0 || bare === bare.toLowerCase())) tokens.push(word);
    else if (!isMarked && isFirst && (word === 'it' || word === 'ele')) tokens.push('%');
    else if (IDENTIFIER.test(bare) || (isMarked && WORDED.test(bare))) {
      tokens.push('#');
      names.push({ text: bare, isMarked });
    } else return undefined;
  }
  return { tokens, names, files };
}

export interface FactQuery {
  kind: FactKind;
  /** '' asks about the whole file. */
  name: string;
  /** The class of `name`, as in `Store.flush`. */
  owner?: string;
  /** Limits an outline, exports or members to these kinds. Default: all. */
  only?: readonly Part[];
  /** Which entries of a data file. */
  entry?: readonly EntryKind[];
  /** Limits the query to definitions that begin in this range of the LF text. */
  within?: { start: number; end: number };
}

/** The commands, and whether they take a name. */
export const FACT_COMMANDS = { outline: false, where: true, signature: true, imports: false, callers: true } as const;

/** The command in a message. Undefined for any other message. `name` is undefined if it is missing. */
export function parseCommand(message: string): (Omit<FactQuery, 'name'> & { name: string | undefined }) | undefined {
  const [, word = '', rest = ''] = /^\/([a-z]+)(?:\s+([\s\S]*))?$/i.exec(message.trim()) ?? [];
  const kind = word.toLowerCase() as keyof typeof FACT_COMMANDS;
  if (!Object.hasOwn(FACT_COMMANDS, kind)) return undefined;
  if (!FACT_COMMANDS[kind]) return { kind, name: '' };
  const said = rest.trim().replace(/^`|`$|\(\)`?$/g, '');
  return said === '' || /\s/.test(said) ? { kind, name: undefined } : { kind, ...pathOf(said) };
}

/** Splits `Store.flush` into the name `flush` and the owner `Store`. */
function pathOf(said: string): { name: string; owner?: string } {
  const parts = said.split(/(?<=[^.#])[.#](?=[^.])/);
  const owner = parts.at(-2);
  return { name: parts.at(-1) as string, ...(owner === undefined ? {} : { owner }) };
}
