/**
 * Needles: a made-up constant said once in a comment among the lines of a source, and asked for behind its end by beginning the
 * same comment again. What is between the two is the distance. Pure.
 */
import type { Encoding } from '../../../engine/text/tokenizer/tokenizer.ts';

export interface Needle {
  /** The source with the needle in it. */
  readonly text: string;
  /** What the text goes on with, up to the value. */
  readonly recall: string;
  readonly value: string;
  /** Tokens between the value and the text's end. */
  readonly distance: number;
}

export interface NeedlePlace {
  /** Of the text, or somewhat less. */
  readonly numTokens: number;
  /** Met to within a line. */
  readonly distance: number;
}

/** Of names that stand in no source. */
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
/** More than the line with the needle takes. */
const LINE_TOKENS = 32;

/** @param filler of more than `numTokens` tokens. @param comment what begins one there. @param random numbers in 0..1 */
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
  // Whole lines.
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

/** Of the line that holds the offset. */
function lineStart(text: string, offset: number): number {
  return text.lastIndexOf('\n', offset - 1) + 1;
}
