/**
 * Shapes generated text into a completion: one line or a block, without repetition and without text that already
 * follows the cursor. Holds back what may still be cut, and never takes shown text back. Does not run the model.
 */
import { t } from '@vscode/l10n';
import { balancedLength } from './balance.ts';
import { cutLines, type LinesContext, repeats } from './completionLines.ts';
import {
  anglesIn,
  closersOf,
  closingOf,
  endBefore,
  heldBefore,
  leftOpen,
  quotesIn,
  runIn,
  unclosedIn,
} from './nesting.ts';
import type { Shaped } from './preparedRequest.ts';
import { repeatedEnd, runaway } from './repetition.ts';

/** The text around the cursor, with LF line ends. */
export interface CursorContext extends LinesContext {
  /** The rest of the cursor's line. */
  after: string;
  multiline: boolean;
  /** Whether the syntax tree has a string or comment at the cursor. Undefined without a tree. */
  inText?: boolean;
  /** Whether the last `<` before the cursor begins a tag. Undefined if nothing tells. */
  inTag?: boolean | undefined;
  lineEnd: '\n' | '\r\n';
  /** Finds where the first line begins that does not fit the place. Takes whole lines. Left out if all lines fit. */
  fits?: (written: string) => number | undefined;
  /** Whether text adds no error to the cursor's line. Left out if any text may be shown. */
  parses?: (written: string) => boolean;
  /** Whether whole lines add no error, if what they leave open is closed. Left out if any lines may be shown. */
  continues?: (written: string) => boolean;
  /** See PlaceSyntax. */
  excess?: (written: string) => number | undefined;
}

/**
 * Copies of a unit that count as endless repetition. Short units need more copies: "0, 0, 0, 0" or a line of dashes may
 * be correct, but not 16 equal letters or semicolons.
 */
const minCopies = (period: number, unit: () => string): number =>
  period >= 8
    ? 3
    : period >= 3
      ? 6
      : /^([a-z\d]+|[;:<>()[\]{}'"`]+)$/i.test(unit())
        ? 16 / period
        : Math.max(12, 48 / period);

/** What a cut text may not end with. The arrow of a function stays. Its body may follow by hand. */
const OPERATORS = /(?:[\s,]|&&|\|\||\?\?|(?<=\s)[-+%=?|]|(?<!:):)+$/;

/** Where a text may end to leave its line without an error. */
const WORD_END = /(?:[\p{L}\p{N}_]|\$(?!\{))+|[)\]}"'`>]/gu;
const MAX_TRIES = 12;
/** What else a line may leave open. */
const MARKUP = /<[\p{L}>/]/u;

interface Cut {
  text: string;
  /** [0, shown) of `text` may be shown. The rest may still be cut. */
  shown: number;
  /** All of `text` is shown, and no more. */
  ended: boolean;
  /** [0, keep) of `text` does not count as repetition of the rest of the line. */
  keep?: number;
  note?: string;
}

export function shapeCompletion(context: CursorContext, rawText: string, finished: boolean): Shaped {
  let raw = rawText.replaceAll('\r\n', '\n');
  if (!finished && raw.endsWith('\r')) raw = raw.slice(0, -1);
  let cut = cutAtExistingCloser(context, cutMarks(context, cutRunaway(context, cutAtEnd(context, raw, finished))));
  cut = cutUnbalanced(context, cutOverlap(context, cut));
  cut = cutExcess(context, cutUnfit(context, dropUseless(context, cut, raw)));
  cut = cutBroken(context, cutBrokenLines(context, cut));
  const text = cut.text.slice(0, cut.ended ? cut.text.length : cut.shown).replaceAll('\n', context.lineEnd);
  return { text, stop: cut.ended, ...(cut.note === undefined ? {} : { note: cut.note }) };
}

/** Cuts at the end of the line, or at the end of the block if more lines are wanted. */
function cutAtEnd(context: CursorContext, raw: string, finished: boolean): Cut {
  if (context.multiline && context.after.trim() === '') {
    const { shown, ended, note } = cutLines(context, raw, finished);
    return { text: ended ? raw.slice(0, shown) : raw, shown, ended, ...(note === undefined ? {} : { note }) };
  }
  const end = raw.indexOf('\n');
  const text = end < 0 ? raw : raw.slice(0, end);
  return { text, shown: text.length, ended: finished || end >= 0 };
}

function cutRunaway(context: CursorContext, cut: Cut): Cut {
  const found = runaway(cut.text, minCopies);
  if (found === undefined) return cut.ended ? cut : { ...cut, shown: Math.min(cut.shown, repeatedEnd(cut.text)) };
  const text = cut.text.slice(0, found.start + found.period);
  // One copy stays, as if the model had ended after it.
  return {
    ...(cut.ended ? { text, shown: text.length, ended: true } : cutAtEnd(context, text, true)),
    note: repeats(),
  };
}

/** Ends before a tag is closed that does not begin here, and before marks that the rest of the line closes. */
function cutMarks(context: CursorContext, cut: Cut): Cut {
  const { before, inTag, inText } = context;
  if (inTag === false && before.endsWith('<') && cut.text.startsWith('/')) return cutAt(cut, 0);
  return inText === false ? cut : cutAt(cut, runIn(cut.text, context));
}

/**
 * If the rest of the line begins with a closing bracket or quote, which the editor often inserts, ends before the same
 * one in the completion. So none is doubled, and the shown text is the inserted text.
 */
function cutAtExistingCloser(context: CursorContext, cut: Cut): Cut {
  const closing = closingOf(context);
  if (closing && closing.kind !== 'string') {
    const isTag = closing.kind === 'tag';
    const { closed, open } = anglesIn(cut.text, isTag);
    const [first] = closed;
    // Behind a tag there may be others, the last of which the rest of the line closes.
    const end = isTag ? (open ?? closed.at(-1)) : (first ?? open);
    const isKnown = cut.ended || (!isTag && first !== undefined);
    const shown = Math.min(cut.shown, first ?? open ?? cut.shown);
    const whole = isKnown ? cutAt(cut, end) : { ...cut, shown };
    return { ...whole, keep: whole.text.length };
  }
  const whole = cutAtBracket(context, cut);
  return closing?.kind === 'string' ? cutAtQuote(whole, closing.closer, context.after) : whole;
}

function cutAtBracket({ before, after, inText }: CursorContext, cut: Cut): Cut {
  const closer = after.trimStart()[0] ?? '';
  // At the end of a comment nothing closes a bracket, as in "(path".
  if (/^\s*($|\*\/|-->)/.test(after) && inText && !'\'"`'.includes(leftOpen(before).at(-1) ?? ' ')) {
    const end = cut.text.slice(0, unclosedIn(cut.text)).trimEnd().length;
    return cut.ended ? cutAt(cut, end) : { ...cut, shown: Math.min(cut.shown, end) };
  }
  if (closer === '') return cut;
  if (!')]}'.includes(closer)) return inText ? cut : cutAtOpened(cut, closersOf(before, ')').quote);
  // The completion may close brackets that the line has opened and its rest does not close.
  const line = closersOf(before, closer);
  const allowed = Math.max(0, line.open - closersOf(after, closer).at.length);
  // Inside `${` of a template there is code.
  const quote = closer === leftOpen(before).at(-1) ? '' : line.quote;
  const { at } = closersOf(cut.text, closer, quote);
  const keep = (at[Math.min(allowed, at.length) - 1] ?? -1) + 1;
  const whole = { ...cutAt(cut, at[allowed]), keep };
  return inText ? whole : cutAtOpened(whole, quote);
}

/** The rest of the line would be inside, or would close, what the completion opens and leaves open. */
function cutAtOpened(cut: Cut, quote: string): Cut {
  const text = cut.text.slice(0, cut.ended ? cut.text.length : cut.shown);
  const opened = ')]}'
    .split('')
    .map((closer) => closersOf(text, closer, quote).unclosed ?? text.length)
    .reduce((first, at) => Math.min(first, at));
  // In a pattern, and behind a backslash, a bracket is text.
  if (opened === text.length || /[/\\]/.test(text.slice(0, opened))) return cut;
  return cut.ended ? cutAt(cut, withoutOperator(text.slice(0, opened))) : { ...cut, shown: opened };
}

/** The length of a cut text without the commas and operators at its end, whose operand is cut away. */
const withoutOperator = (text: string): number => text.replace(OPERATORS, '').length;

function cutAt(cut: Cut, end: number | undefined): Cut {
  return end === undefined
    ? cut
    : { ...cut, text: cut.text.slice(0, end), shown: Math.min(cut.shown, end), ended: true };
}

/** Ends before the quote that the rest of the line has, unless the completion begins a string again behind it. */
function cutAtQuote(cut: Cut, closer: string, after: string): Cut {
  const { first, count } = quotesIn(cut.text, closer);
  // Its end may be the beginning of the closing quotes.
  if (!cut.ended)
    return { ...cut, shown: Math.min(cut.shown, first ?? Math.max(0, cut.text.length - closer.length + 1)) };
  // No language has a name directly behind a string.
  const isText =
    first !== undefined && after.startsWith(closer) && /^[\p{L}\p{N}_]/u.test(cut.text.slice(first + closer.length));
  if (first !== undefined && (count % 2 === 1 || isText)) return cutAt(cut, first);
  // All quotes in it are its own.
  return { ...cut, keep: Math.max(cut.keep ?? 0, cut.text.lastIndexOf(closer) + 1) };
}

/** Ends before what the rest of the line would not close, or would close twice, and before a comma that this leaves. */
function cutUnbalanced({ before, after, inText, inTag }: CursorContext, cut: Cut): Cut {
  if (after.trim() === '') return cut;
  // In a comment nothing has to be closed.
  if (inText && /(^|\s)(\/[/*]|\*|#|--|<!--)/.test(before) && leftOpen(before).at(-1) === undefined) return cut;
  const closing = closingOf({ before, after, inText, inTag });
  const isOnLine = /["'`]/.test(leftOpen(before).at(-1) ?? '');
  const text = cut.ended ? cut.text : cut.text.slice(0, cut.shown);
  const length = balancedLength(before, text, after, {
    // While text is added, an apostrophe may still begin a string.
    isKnown: inText !== undefined || !cut.ended,
    ...(closing?.kind === 'string' && !isOnLine ? { closer: closing.closer } : {}),
  });
  const kept = text.slice(0, length);
  // A comma may stand before a bracket.
  const isDangling = !inText && after.startsWith(')') && !/,\s*$/.test(kept);
  if (cut.ended && kept === text && !isDangling && closing?.kind !== 'angle') return cut;
  const end = withoutOperator(kept);
  return cut.ended ? cutAt(cut, end) : { ...cut, shown: end };
}

/** Removes the end that repeats the rest of the line. Keeps brackets and quotes that close those of the text itself. */
function cutOverlap(context: CursorContext, cut: Cut): Cut {
  const rest = context.after;
  if (rest.trim() === '') {
    const { text } = cut;
    const trimmed = text.slice(0, cut.ended ? text.length : cut.shown).trimEnd();
    return cut.ended ? { ...cut, text: trimmed } : { ...cut, shown: trimmed.length };
  }
  // All text after `shown` may still be cut as repetition. So the overlap is that of the shown text. heldBefore never
  // moves back when its text grows.
  if (!cut.ended) return { ...cut, shown: heldBefore(cut.text.slice(0, cut.shown), rest, context.inText) };
  return { ...cut, text: cut.text.slice(0, Math.max(endBefore(cut.text, rest, context.inText), cut.keep ?? 0)) };
}

function dropUseless(context: CursorContext, cut: Cut, raw: string): Cut {
  const nothing = { ...cut, text: '', shown: 0 };
  const shown = cut.text.slice(0, cut.ended ? cut.text.length : cut.shown);
  if (shown.trim() === '') return cut.ended ? { ...nothing, note: cut.note ?? emptyReason(context, raw) } : nothing;
  const nextLine = context.nextLine.trim();
  if (nextLine === '' || context.after.trim() !== '') return cut;
  const line = (context.before + shown).trim();
  if (cut.ended) return line === nextLine ? { ...nothing, note: t('the same as the next line') } : cut;
  // Text that begins as the next line is held back until it differs from it.
  return nextLine.startsWith(line) ? nothing : cut;
}

/** Holds each line back until it is complete, because only then it is known whether it fits. */
function cutUnfit({ fits }: CursorContext, cut: Cut): Cut {
  if (!fits) return cut;
  const lines = cut.ended ? cut.text : cut.text.slice(0, cut.text.lastIndexOf('\n', cut.shown) + 1).trimEnd();
  const end = lines === '' ? undefined : fits(lines);
  if (end === undefined) return cut.ended ? cut : { ...cut, shown: lines.length };
  const text = lines.slice(0, end).trimEnd();
  return { text, shown: text.length, ended: true, note: t('cut where the text is copied and does not fit here') };
}

/** Ends before a closing bracket that nothing opens, at the end of a line. */
function cutExcess({ after, fits, continues, excess }: CursorContext, cut: Cut): Cut {
  if (!fits || after.trim() !== '') return cut;
  const written = cut.text.slice(0, cut.ended ? cut.text.length : cut.shown);
  const end = excess ? excess(written) : cut.ended && continues ? excessAtEnd(written, continues) : undefined;
  if (end === undefined) return cut;
  return cutAt(cut, written.slice(0, end).trimEnd().length);
}

/** The same for a single line. The syntax tree tells whether it has an error. */
function excessAtEnd(text: string, continues: (written: string) => boolean): number | undefined {
  const [closers = ''] = text.includes('\n') ? [] : (/[)\]}]{1,8}[;,:]?$/.exec(text) ?? []);
  if (closers === '' || continues(text)) return undefined;
  const ends = Array.from(closers, (_, i) => text.length - 1 - i);
  return ends.find((at) => continues(text.slice(0, at)));
}

/** Holds back lines until the text has no error but what it leaves open. At the end they are cut. */
function cutBrokenLines({ after, fits, continues }: CursorContext, cut: Cut): Cut {
  if (!fits || !continues || after.trim() !== '') return cut;
  const text = cut.text.slice(0, cut.ended ? cut.text.length : cut.shown);
  // Where a text of one line has ended, more may follow on that line.
  if (text.trim() === '' || (cut.ended && !text.includes('\n')) || MARKUP.test(text) || continues(text)) return cut;
  const lineEnds = [...text.matchAll(/\s*\n/g)].map(({ index }) => index).reverse();
  const end = lineEnds.slice(0, MAX_TRIES).find((at) => at > 0 && continues(text.slice(0, at))) ?? 0;
  return cut.ended ? brokenAt(cut, end) : { ...cut, shown: end };
}

const brokenAt = (cut: Cut, end: number): Cut => ({
  ...cutAt(cut, end),
  note: cut.note ?? t('cut where the line would have an error'),
});

/** Ends at the last word with which the cursor's line has no error. Only where each line is held back. */
function cutBroken({ after, fits, parses, continues, excess }: CursorContext, cut: Cut): Cut {
  // At the end of a line only the judge of Python knows all that may follow.
  const reads = after.trim() === '' ? excess && continues : parses;
  if (!fits || !reads || !cut.ended || cut.text === '' || reads(cut.text)) return cut;
  const ends = [...cut.text.matchAll(WORD_END)].map(({ index, 0: word }) => index + word.length).reverse();
  const end = ends
    .filter((at) => at < cut.text.length)
    .slice(0, MAX_TRIES)
    .find((at) => reads(cut.text.slice(0, at)));
  return brokenAt(cut, end ?? 0);
}

function emptyReason(context: CursorContext, raw: string): string {
  if (raw === '') return t('the model had nothing to add here');
  if (raw.trim() === '') return t('only white space');
  return /^\s*\n/.test(raw) && !context.multiline
    ? t('the model would start a new line here')
    : t('the model repeats what follows the cursor');
}
