/**
 * Makes needles: puts an invented constant into a comment of a source and repeats the start of the comment at the end.
 * The distance is the number of tokens between the two. Pure.
 */
import type { Encoding } from '../../../engine/text/tokenizer/tokenizer.ts';

export interface Needle {
  /** The source with the needle in it. */
  readonly text: string;
  /** The continuation of the text up to the value. */
  readonly recall: string;
  readonly value: string;
  /** Tokens between the value and the end of the text. */
  readonly distance: number;
}

export interface NeedlePlace {
  /** Upper limit for the tokens of the text. The text may have slightly fewer. */
  readonly numTokens: number;
  /** Kept to within one line. */
  readonly distance: number;
}

/** Syllables of names that occur in no source. */
const SYLLABLES = [
  'VOR',
  'TAK',
  'MEL',
  'QUN',
  'ZIR',
  'DOB',
  'FEX',
  'GAL',
  'HUB',
  'JOT',
  'KED',
  'LUM',
  'NAV',
  'PIX',
  'RUD',
  'SYB',
];
/** Upper limit for the tokens of the line with the needle. */
const LINE_TOKENS = 32;

/**
 * @param filler has more than `numTokens` tokens.
 * @param comment starts a comment in the filler.
 * @param random gives numbers in 0..1.
 */
export function needleIn(
  filler: string,
  comment: string,
  { numTokens, distance }: NeedlePlace,
  encode: (text: string) => Encoding,
  random: () => number,
): Needle {
  const { ends } = encode(filler);
  const room = numTokens - LINE_TOKENS;
  const first = Math.floor(random() * Math.max(1, ends.length - room));
  const start = lineStart(filler, ends[first] ?? 0);
  // Cuts at line starts.
  const body = filler
    .slice(start, lineStart(filler, ends[Math.min(ends.length - 1, first + room - 1)] ?? filler.length))
    .trimEnd();
  const inBody = encode(body).ends;
  const at = lineStart(body, inBody[Math.max(0, inBody.length - distance)] ?? body.length);
  const name = Array.from({ length: 4 }, () => SYLLABLES[Math.floor(random() * SYLLABLES.length)]).join('');
  const value = String(1000 + Math.floor(random() * 9000));
  const said = `${comment} The value of ${name} is `;
  const text = `${body.slice(0, at)}${said}${value}.\n${body.slice(at)}`;
  const whole = encode(text);
  const end = at + said.length + value.length;
  return {
    text,
    recall: `\n${said}`,
    value,
    distance: whole.ids.length - 1 - whole.ends.findIndex((tokenEnd) => tokenEnd >= end),
  };
}

/** Start of the line that holds the offset. */
function lineStart(text: string, offset: number): number {
  return text.lastIndexOf('\n', offset - 1) + 1;
}
