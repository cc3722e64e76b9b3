/**
 * Rewrites the pre-tokenizer of a tokenizer.json, so that @huggingface/tokenizers splits as the reference does. The
 * library knows two behaviours of Split: it isolates matches, or keeps nothing but matches. Does not split text.
 */
import { hasBackReference, withoutAtomic } from './atomicGroups.ts';
import { type Step, unsupported } from './tokenizerJson.ts';

/** The step Metaspace at the beginning, which needs to know what stands before a text. */
export interface Metaspace {
  scheme: 'always' | 'first' | 'never';
}

export interface PreTokenizer {
  step: Step | null;
  metaspace: Metaspace | undefined;
}

const SPACE = '▁';
/** A character of a word, of Rust's regular expressions. */
const WORD = '\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}';
const PUNCTUATION = '[\\p{P}\\u0021-\\u002F\\u003A-\\u0040\\u005B-\\u0060\\u007B-\\u007E]';
const ANY = '(?:.|\\n)';
const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/** @throws RequestError `modelUnsupported` with the name of the step */
export function readPreTokenizer(json: Step | null): PreTokenizer {
  const steps = flat(json);
  const [first, ...rest] = steps;
  if (first?.type !== 'Metaspace') return { step: asOne(steps.flatMap(rewritten)), metaspace: undefined };
  const { scheme, split } = readMetaspace(first);
  return { step: asOne([...split, ...rest.flatMap(rewritten)]), metaspace: { scheme } };
}

function flat(step: Step | null): Step[] {
  if (step === null) return [];
  return step.type === 'Sequence' ? ((step.pretokenizers ?? []) as Step[]).flatMap(flat) : [step];
}

function asOne(steps: Step[]): Step | null {
  if (steps.length < 2) return steps[0] ?? null;
  return { type: 'Sequence', pretokenizers: steps };
}

function rewritten(step: Step): Step[] {
  switch (step.type) {
    case 'Split':
      return [readSplit(step)];
    case 'Punctuation':
      return [splitBy(PUNCTUATION, behaviorOf(step), false)];
    case 'Digits':
      // The library matches 0-9 only. The reference matches every character of the category N.
      return [splitBy(step.individual_digits === true ? '\\p{N}' : '\\p{N}+', 'isolated', false)];
    case 'Whitespace':
      return [onlyMatches(`[${WORD}]+|[^${WORD}\\s]+`)];
    case 'WhitespaceSplit':
      return [onlyMatches('\\S+')];
    case 'CharDelimiterSplit':
      return [splitBy(escaped(String(step.delimiter)), 'removed', false)];
    case 'FixedLength':
      return [isolated(`${ANY}{${Number(step.length)}}`)];
    case 'ByteLevel':
      return readByteLevel(step);
    case 'Metaspace': {
      const { scheme, split } = readMetaspace(step);
      if (scheme === 'first')
        throw unsupported('a Metaspace with prepend_scheme "first" follows another pre-tokenizer');
      return [{ type: 'Metaspace', replacement: SPACE, prepend_scheme: scheme }, ...split];
    }
    default:
      return [step];
  }
}

function readMetaspace(step: Step): { scheme: Metaspace['scheme']; split: Step[] } {
  const scheme = step.prepend_scheme ?? 'always';
  if (scheme !== 'always' && scheme !== 'first' && scheme !== 'never')
    throw unsupported(`Metaspace has the prepend_scheme ${JSON.stringify(scheme).slice(0, 40)}`);
  if (step.add_prefix_space === false && scheme !== 'never')
    throw unsupported(`Metaspace has add_prefix_space false, but the prepend_scheme "${scheme}"`);
  if ((step.replacement ?? SPACE) !== SPACE) throw unsupported('Metaspace has a replacement other than "▁"');
  return { scheme, split: step.split === false ? [] : [splitBy(SPACE, 'mergedwithnext', false)] };
}

/** The library's pattern takes other characters for white space than the reference. */
function readByteLevel(step: Step): Step[] {
  if (step.add_prefix_space === true) throw unsupported('ByteLevel puts a space before a text (add_prefix_space)');
  return step.use_regex === false ? [step] : [isolated(GPT2), { ...step, use_regex: false }];
}

function behaviorOf({ behavior = 'Isolated' }: Step): string {
  return String(behavior).toLowerCase().replaceAll('_', '');
}

function readSplit(step: Step): Step {
  const { Regex, String: text } = (step.pattern ?? {}) as { Regex?: string; String?: string };
  const pattern = Regex ?? (text === undefined ? undefined : escaped(text));
  if (typeof pattern !== 'string') throw unsupported('Split has no pattern');
  return splitBy(pattern, behaviorOf(step), step.invert === true);
}

/** What is between matches of `pattern`, one character at a time. */
const other = (pattern: string): string => `(?:(?!${pattern})${ANY})`;

/** If `inverted`, the text between matches counts as match, and matches as what is between them. */
function splitBy(pattern: string, behavior: string, inverted: boolean): Step {
  const match = `(?:${pattern})`;
  switch (behavior) {
    case 'isolated':
      return isolated(pattern);
    case 'removed':
      if (inverted) return onlyMatches(pattern);
      // The library would keep what groups capture.
      return {
        type: 'Split',
        pattern: { Regex: withoutAtomic(twice(pattern), false) },
        behavior: 'Removed',
        invert: false,
      };
    case 'contiguous':
      return isolated(`${match}+`);
    case 'mergedwithprevious':
    case 'mergedwithnext':
      return isolated(
        (behavior === 'mergedwithnext') === inverted
          ? `${other(twice(match))}*${match}`
          : `${match}${other(twice(match))}*`,
      );
    default:
      throw unsupported(`Split has the behaviour ${JSON.stringify(behavior).slice(0, 40)}`);
  }
}

/** A pattern that is repeated, or moved into another one, must not have numbered references. */
function twice(pattern: string): string {
  if (hasBackReference(pattern)) throw unsupported('Split merges matches of a pattern with a back reference');
  return pattern;
}

function isolated(pattern: string): Step {
  return { type: 'Split', pattern: { Regex: withoutAtomic(pattern) }, behavior: 'Isolated', invert: false };
}

function onlyMatches(pattern: string): Step {
  return { type: 'Split', pattern: { Regex: withoutAtomic(pattern) }, behavior: 'Removed', invert: true };
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
