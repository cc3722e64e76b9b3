/**
 * Shapes what a model writes at a cursor into a completion: one line unless more is asked for, nothing that the text
 * after the cursor already contains, and no endless repetition. Works on the raw text so far and only ever adds to
 * what it has shown. What may still be cut is held back.
 */
import { t } from '@vscode/l10n';
import { cutLines, type LinesContext, repeats } from './completionLines.ts';
import type { Shaped } from './preparedRequest.ts';
import { repeatedEnd, runaway } from './repetition.ts';

/** What is around the cursor, with LF line ends. */
export interface CursorContext extends LinesContext {
  /** The rest of the cursor's line. */
  after: string;
  multiline: boolean;
  lineEnd: '\n' | '\r\n';
}

/**
 * Short periods need more copies: "0, 0, 0, 0" may be meant, and a line of dashes, but not 16 letters or semicolons
 * alike.
 */
const minCopies = (period: number, unit: () => string): number =>
  period >= 8
    ? 3
    : period >= 3
      ? 6
      : /^([a-z\d]+|[;:<>()[\]{}'"`]+)$/i.test(unit())
        ? 16 / period
        : Math.max(12, 48 / period);

/** Text that may still change its meaning is `held`: [0, shown) of `text` is final. */
interface Cut {
  text: string;
  shown: number;
  ended: boolean;
  /** What ends here is no repetition of the rest of the line. */
  keep?: number;
  note?: string;
}

export function shapeCompletion(context: CursorContext, rawText: string, finished: boolean): Shaped {
  let raw = rawText.replaceAll('\r\n', '\n');
  if (!finished && raw.endsWith('\r')) raw = raw.slice(0, -1);
  let cut = cutAtStandingCloser(context, cutRunaway(context, cutAtEnd(context, raw, finished)));
  cut = cutOverlap(context, cut);
  cut = dropUseless(context, cut, raw);
  const text = cut.text.slice(0, cut.ended ? cut.text.length : cut.shown).replaceAll('\n', context.lineEnd);
  return { text, stop: cut.ended, ...(cut.note === undefined ? {} : { note: cut.note }) };
}

/** Up to the end of the line or, where more are wanted, of the block. */
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
  // One copy stays, as if the model had ended there.
  return {
    ...(cut.ended ? { text, shown: text.length, ended: true } : cutAtEnd(context, text, true)),
    note: repeats(),
  };
}

/**
 * Ends before a bracket that closes one from before the cursor when the rest of the line begins with that bracket: most
 * often one that the editor has put there. So what is shown is what is inserted, and no bracket is doubled.
 */
function cutAtStandingCloser({ before, after }: CursorContext, cut: Cut): Cut {
  const closer = after.trimStart()[0] ?? '';
  if (!')]}'.includes(closer) || closer === '') return cut;
  // What the line has opened and its rest leaves open is the text's to close.
  const line = closersOf(before, closer);
  const allowed = Math.max(0, line.open - closersOf(after, closer).at.length);
  const { at } = closersOf(cut.text, closer, line.quote);
  const end = at[allowed];
  const keep = (at[Math.min(allowed, at.length) - 1] ?? -1) + 1;
  return end === undefined
    ? { ...cut, keep }
    : { ...cut, keep, text: cut.text.slice(0, end), shown: Math.min(cut.shown, end), ended: true };
}

/**
 * Outside strings: where a bracket closes one that the text has not opened, and how many it leaves open. `quote` is
 * that of a string that the text starts in.
 */
function closersOf(text: string, closer: string, quote = ''): { at: number[]; open: number; quote: string } {
  const opener = '([{'[')]}'.indexOf(closer)];
  const at: number[] = [];
  let open = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i] as string;
    if (quote !== '') {
      if (character === '\\') i++;
      else if (character === quote) quote = '';
    } else if ('\'"`'.includes(character)) quote = character;
    else if (character === opener) open++;
    else if (character === closer && open-- === 0) {
      at.push(i);
      open = 0;
    }
  }
  return { at, open, quote };
}

/** Leaves out the end that the rest of the line repeats, but for brackets and quotes that the text itself opened. */
function cutOverlap(context: CursorContext, cut: Cut): Cut {
  const rest = context.after;
  if (rest.trim() === '') {
    const { text } = cut;
    const trimmed = text.slice(0, cut.ended ? text.length : cut.shown).trimEnd();
    return cut.ended ? { ...cut, text: trimmed } : { ...cut, shown: trimmed.length };
  }
  // What is held may all be cut off as a repetition, so the overlap counts from where the text would then end, which is
  // `shown` or later: overlapStart never moves back as its text grows.
  if (!cut.ended) return { ...cut, shown: overlapStart(cut.text.slice(0, cut.shown), rest) };
  return {
    ...cut,
    text: cut.text.slice(0, Math.max(overlapStart(cut.text, rest), endOfOwnClosers(cut.text), cut.keep ?? 0)),
  };
}

/** Where the longest end of `text` starts that `rest` starts with. */
function overlapStart(text: string, rest: string): number {
  let overlap = Math.min(text.length, rest.length);
  while (overlap > 0 && !text.endsWith(rest.slice(0, overlap))) overlap--;
  return text.length - overlap;
}

/** Offset after the last bracket or quote that closes one opened in the same text. */
function endOfOwnClosers(text: string): number {
  const open: string[] = [];
  let end = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i] as string;
    const top = open.at(-1);
    if (top !== undefined && '\'"`'.includes(top)) {
      if (character === '\\') i++;
      else if (character === top) {
        open.pop();
        end = i + 1;
      }
    } else if ('\'"`'.includes(character)) {
      // A quote that nothing closes was opened before the cursor.
      if (text.includes(character, i + 1)) open.push(character);
    } else if ('([{'.includes(character)) open.push(character);
    else if (')]}'.includes(character) && top === '([{'[')]}'.indexOf(character)]) {
      open.pop();
      end = i + 1;
    }
  }
  return end;
}

function dropUseless(context: CursorContext, cut: Cut, raw: string): Cut {
  const nothing = { ...cut, text: '', shown: 0 };
  const shown = cut.text.slice(0, cut.ended ? cut.text.length : cut.shown);
  if (shown.trim() === '') return cut.ended ? { ...nothing, note: cut.note ?? emptyReason(context, raw) } : nothing;
  const nextLine = context.nextLine.trim();
  if (nextLine === '' || context.after.trim() !== '') return cut;
  const line = (context.before + shown).trim();
  if (cut.ended) return line === nextLine ? { ...nothing, note: t('the same as the next line') } : cut;
  // A text of the next line's own start is shown once it parts from it.
  return nextLine.startsWith(line) ? nothing : cut;
}

function emptyReason(context: CursorContext, raw: string): string {
  if (raw === '') return t('the model had nothing to add here');
  if (raw.trim() === '') return t('only white space');
  return /^\s*\n/.test(raw) && !context.multiline
    ? t('the model would start a new line here')
    : t('the model repeats what follows the cursor');
}
