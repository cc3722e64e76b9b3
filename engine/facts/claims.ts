/**
 * What a small model says by itself, and what is said for it. It was taught to say what code does, in a sentence or two, and to state facts in a
 * few fixed words ("`flush` takes `force`."). The facts are often wrong, and a syntax tree has them right: where an answer states one, what the
 * files say is put in its place, or nothing. Where it was asked for something else than what code does, its sentences are about something that
 * nobody asked for. Pure.
 */
import { isDenial } from './denial.ts';
import type { FactKind, QuestionLanguage } from './factKinds.ts';
import type { FactQuestion } from './factQuestion.ts';
import type { Shaped } from '../tasks/preparedRequest.ts';

type Shape = (rawText: string, finished: boolean) => Shaped;

/** A fact that an answer states. */
export interface Claim {
  /** Of what the question would have been; undefined where that cannot be told from the words. */
  kind: FactKind | undefined;
  /** Whose fact it is; '' for the file's, undefined for that of what was said before: "It takes `force`." */
  name: string | undefined;
}

/** The words behind a name that begin a fact, and those that begin one about the file or what was said before. */
const OF_NAMES: readonly (readonly [words: string, kind: FactKind | undefined])[] = [
  [' takes `', 'parameters'],
  [' takes no parameters', 'parameters'],
  [' recebe `', 'parameters'],
  [' não recebe parâmetros', 'parameters'],
  [' is defined here', 'where'],
  [' está definido aqui', 'where'],
  [' returns `', 'returned'],
  [' devolve `', 'returned'],
  [' retorna `', 'returned'],
  [' has the type `', undefined],
  [' é do tipo `', undefined],
  [' defaults to `', 'default'],
  [' extends `', 'base'],
  [' herda de `', 'base'],
  [' is a method of `', 'owner'],
  [' é um método de `', 'owner'],
  [' has `', 'methods'],
  [' tem `', 'methods'],
];
const OF_FILES: readonly (readonly [words: string, kind: FactKind | undefined, name: '' | undefined])[] = [
  ['It takes `', 'signature', undefined],
  ['It takes no parameters', 'signature', undefined],
  ['It returns `', 'signature', undefined],
  ['Its methods include `', 'methods', undefined],
  ['It defines the ', 'defines', ''],
  ...['This file', 'Este ficheiro', 'Este arquivo'].flatMap((file) => [
    ...[' defines ', ' define ', ' não define '].map((verb) => [`${file}${verb}`, 'defines', ''] as const),
    ...[' imports ', ' importa ', ' não importa '].map((verb) => [`${file}${verb}`, 'imports', ''] as const),
  ]),
  ['Yes: `', undefined, ''],
  ['Sim: `', undefined, ''],
  ['O valor por omissão de `', undefined, ''],
];

/** The first one behind a sentence. */
const BOUNDARY_ONCE = /[.!?]\s+|\n/;
/** Where a sentence may begin. */
const BOUNDARY = /[.!?:]["'`)]*\s+(?:[-*+]\s+)?|\n+\s*(?:[-*+]\s+)?/g;

/** The first fact that a text states, and what comes before it. `open`: what follows `before` may become one. */
export function claimIn(text: string, ended: boolean): { before: string; claim: Claim | 'open' | undefined } {
  for (const at of [
    /^(?:[-*+]\s+)?/.exec(text)?.[0].length ?? 0,
    ...[...text.matchAll(BOUNDARY)].map((boundary) => boundary.index + boundary[0].length),
  ]) {
    const claim = claimOf(text.slice(at), ended);
    if (claim) return { before: text.slice(0, at), claim };
  }
  return { before: text, claim: undefined };
}

function claimOf(sentence: string, ended: boolean): Claim | 'open' | undefined {
  for (const [words, kind, name] of OF_FILES) {
    if (sentence.startsWith(words)) return { kind, name };
    if (!ended && sentence !== '' && words.startsWith(sentence)) return 'open';
  }
  if (!sentence.startsWith('`')) return undefined;
  const [, name, rest = ''] = /^`([^`\n]+)`(.*)/.exec(sentence) ?? [];
  // Three such marks begin code.
  if (!ended && /^`{1,2}$/.test(sentence)) return 'open';
  if (name === undefined) return !ended && /^`(?:[^`\n][^\n]*)?$/.test(sentence) ? 'open' : undefined;
  for (const [words, kind] of OF_NAMES) {
    if (rest.startsWith(words)) return { kind, name };
    if (!ended && words.startsWith(rest)) return 'open';
  }
  return undefined;
}

export interface OwnWords {
  /** What it says of code is shown: not at all, since something else was asked; as the guess that it is; of a file only as far as it stands in it, for small models tell of others. */
  describes: 'nothing' | 'guess' | 'file';
  /** Said before a guess; '' for nothing. */
  lead?: () => string;
  /** Said where it guesses what stands in the file of something else; '' for `beyond`. */
  without?: () => string;
  /** What the file says of itself, which goes before all that the model says of it; '' for nothing. */
  head?: () => string;
  /** Whether a sentence stands in the file. */
  stands?: (sentence: string) => boolean;
  /** What the files say of a claim, where they settle it; '' for nothing. */
  instead: (claim: Claim) => string;
  /** Said where there is nothing to show. */
  beyond: Shaped;
}

/** `shape` with nothing that the model states but does not know. */
export function inOwnWords(
  shape: Shape,
  { describes, lead = () => '', without = () => '', head = () => '', stands, instead, beyond }: OwnWords,
): Shape {
  // Files are long, and what is shaped grows token by token.
  const known = remembered((_, claim: Claim) => instead(claim));
  const said = remembered((key) => ({ lead, without, head })[key as 'lead' | 'without' | 'head']());
  const standing = remembered((sentence) => stands?.(sentence) === true);
  return (rawText, finished) => {
    const shaped = shape(rawText, finished);
    if (shaped.source) return shaped;
    if (isDenial(shaped.text)) return denialOf(shaped);
    // It was taught to write code only in comments for it.
    const fence = shaped.text.search(/^```/m);
    const ended = finished || shaped.stop || fence >= 0;
    const written = fence < 0 ? shaped.text : shaped.text.slice(0, fence);
    const { before, claim } = claimIn(written, ended);
    const fact = claim && claim !== 'open' ? known(`${claim.kind} ${claim.name}`, claim) : '';
    if (describes === 'file') return ofFile(shaped, before, claim, ended);
    // Not the mark of an item that is none.
    const described = before.replace(/(?:^|\n)\s*[-*+]\s*$/, '').trimEnd();
    if (described !== '' && describes === 'nothing') return beyond;
    // Small models go on about something else.
    const end = stands ? BOUNDARY_ONCE.exec(described) : null;
    const guess = end ? described.slice(0, end.index + 1) : described;
    const isDecided = !stands || end !== null || ended || (claim !== undefined && claim !== 'open');
    if (guess !== '' && !isDecided) return { ...shaped, text: '' };
    if (guess !== '' && stands && isOfElse(guess))
      return said('without', undefined) === ''
        ? beyond
        : { text: said('without', undefined), stop: true, source: 'files' };
    const prose = guess === '' ? '' : together(said('lead', undefined), guess);
    if (prose === '' && !claim && fence >= 0) return beyond;
    if (!claim || claim === 'open')
      return { ...shaped, text: prose, ...(fence >= 0 || (end && !claim) ? { stop: true } : {}) };
    if (prose === '') return fact === '' ? beyond : { text: fact, stop: true, source: 'files' };
    return { ...shaped, text: together(prose, fact), stop: true };
  };

  /** It is a comment of something else, what it is asked about having none, or quotes code that there is not. */
  function isOfElse(guess: string): boolean {
    return (
      standing(guess, undefined) ||
      [...guess.matchAll(/`([^`]+)`/g)].some(([, code = '']) => !standing(code, undefined))
    );
  }

  /** What stands in the file of it, sentence by sentence, and then what the file defines. */
  function ofFile(shaped: Shaped, before: string, claim: Claim | 'open' | undefined, ended: boolean): Shaped {
    if (shaped.text === '') return ended ? beyond : shaped;
    const top = said('head', undefined);
    const isWhole = ended || (claim !== undefined && claim !== 'open');
    const ends = [...before.matchAll(BOUNDARY)].map(({ index, 0: mark }) => index + mark.length);
    const sentences = [...ends, ...(isWhole && (ends.at(-1) ?? 0) < before.length ? [before.length] : [])].map(
      (end, i) => before.slice(ends[i - 1] ?? 0, end),
    );
    const numStanding = sentences.findIndex((sentence) => !standing(sentence.trim(), undefined));
    const shown = top || (numStanding < 0 ? sentences : sentences.slice(0, numStanding)).join('').trimEnd();
    if (!top && !isWhole && numStanding < 0) return { ...shaped, text: shown };
    const kind = claim && claim !== 'open' && claim.kind === 'imports' ? 'imports' : 'defines';
    const list = known(`${kind} `, { kind, name: '' });
    const text = together(shown, list);
    return text === '' ? beyond : { text, stop: true, source: 'files' };
  }
}

/** A denial is one sentence. */
function denialOf(shaped: Shaped): Shaped {
  const end = /(?<=`[^`]*)\.(?=\s)/.exec(shaped.text);
  return end ? { ...shaped, text: shaped.text.slice(0, end.index + 1), stop: true } : shaped;
}

/** Whether a text has this sentence, whatever marks and line breaks are in it. */
export function standsIn(sentence: string, text: string): boolean {
  const bare = (written: string) =>
    written
      .replace(/[`*/#"'\s]+/g, ' ')
      .trim()
      .replace(/[.!?:; ]+$/, '')
      .toLowerCase();
  return bare(sentence) !== '' && bare(text).includes(bare(sentence));
}

export const together = (...parts: readonly string[]): string => parts.filter((part) => part !== '').join(' ');

/** `make`'s results by their keys. */
function remembered<T, Of = undefined>(make: (key: string, of: Of) => T): (key: string, of: Of) => T {
  const made = new Map<string, T>();
  return (key, of) => {
    if (!made.has(key)) made.set(key, make(key, of));
    return made.get(key) as T;
  };
}

/** What a file says of itself. */
export const OF_ITSELF: FactQuestion = { kind: 'about', language: 'en', name: '', sure: true };

/** The question that a claim answers. @param subject what was asked about, for what it says of "it" */
export function questionOf(
  { kind, name }: Claim,
  subject: string | undefined,
  language: QuestionLanguage,
): FactQuestion | undefined {
  const about = name ?? subject;
  if (kind === undefined || about === undefined) return undefined;
  const path = about.replace(/\(.*$/, '').split('.');
  const owner = path.at(-2);
  const question = {
    kind,
    language,
    name: path.at(-1) as string,
    ...(owner === undefined ? {} : { owner }),
    sure: true,
  };
  if (kind === 'default') return { ...question, name: '', parameter: question.name };
  // As one sentence of a few: what there is most of, without all of it.
  return kind === 'defines' ? { ...question, brief: true } : question;
}

/** What a file is about, or all of it. */
const OF_FILE =
  /(?<!\p{L})(?:this|the|o|este|esse|do|deste|desse)(?: \p{L}+)? (?:file|module|code|script|program|arquivo|módulo|código)(?!\p{L})|^\/?(?:please )?(?:explain|describe|summari[sz]e|summary|overview|tl;?dr|resum\p{L}+|expli\p{L}+|descrev\p{L}+)(?: (?:it|this|everything|isso|isto|tudo))?[\s.!?]*$|^what(?: is|['’]s|(?: does)?) (?:it|this)(?: (?:for|about|do))?[\s.!?]*$/iu;
/** A yes or no is asked for, a reason, or something new. */
const NO_DESCRIPTION =
  /^(?:why|when|who|which|is|are|was|were|does|do|did|has|have|should|write|make|add|fix|rename|por ?que|porque|quando|quem|qual|quais|quero|será|há|existe|escreva|faça(?! um resumo)|adicione|corrija)(?!\p{L})/iu;
const DESCRIBED: readonly RegExp[] = [
  /(?<!\p{L})(?:explain|describe|summari[sz]e|sum(?: it| this)? up|outline|summary|overview|tl;?dr|gist|tell me about|walk me through)(?!\p{L})/iu,
  /(?<!\p{L})what(?: does| do| is| are|['’]s)(?!\p{L})[\s\S]*(?<!\p{L})(?:(?:do|doing|for|about|mean|represent)[\s?.!]*$|(?:purpose|job|role|point) of(?!\p{L}))/iu,
  /(?<!\p{L})what(?: is|['’]s) (?:this|that|it)[\s?.!]*$/iu,
  /(?<!\p{L})how (?:does|do)(?!\p{L})[\s\S]*(?<!\p{L})work(?!\p{L})/iu,
  /(?<!\p{L})(?:expli\p{L}+|descrev\p{L}+|resum\p{L}+|visão geral|finalidade|propósito|objetivo)(?!\p{L})/iu,
  /^(?:e )?(?:o )?que (?:[\s\S]*(?<!\p{L}))?(?:faz|fazem|é|são|significa|representa)(?!\p{L})|^(?:e )?(?:para|pra) que (?:serve|é)|(?<!\p{L})como (?:[\s\S]*(?<!\p{L}))?funciona|(?<!\p{L})(?:sobre o que|do que se trata)/iu,
];

/** What a message asks to be described, in whatever words: a file, some other code, or nothing. */
export function askedToDescribe(message: string): 'file' | 'code' | undefined {
  if (NO_DESCRIPTION.test(message.trim()) || !DESCRIBED.some((words) => words.test(message))) return undefined;
  return OF_FILE.test(message.trim()) ? 'file' : 'code';
}
