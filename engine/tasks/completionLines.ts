/**
 * Decides how many of the lines that a model writes at a cursor belong to the block there. The syntax tree tells where
 * one exists, otherwise indentation. A line is judged once it is complete, by the text up to its end, and for good:
 * what has been shown stays.
 */
import { t } from '@vscode/l10n';
import type { BlockScan } from '../text/syntax/syntax.ts';

export interface LinesContext {
  /** The line up to the cursor. */
  before: string;
  /** The next line that is not blank, with its indentation; empty at the end. */
  nextLine: string;
  /**
   * When a block opens before the cursor, whose lines follow: the indentation of the line where its statement begins.
   */
  openIndent?: number;
  /** Stop at the end of the paragraph, too: the cursor is on a blank line in the midst of a block. */
  paragraph: boolean;
  /** The block that opens is closed by a word, not by a bracket. */
  words?: boolean;
  /** How a line of the block that opens may begin at the indentation of its statement, too. */
  cases?: RegExp | undefined;
  /** From the syntax tree; whole lines only. */
  scan?: (written: string) => BlockScan;
}

/** [0, shown) of `raw` is final; all of it when `ended`. */
export interface LinesCut {
  shown: number;
  ended: boolean;
  note?: string;
}

/** Why a text that goes round in circles ends where it does. */
export const repeats = (): string => t('cut where the text starts to repeat itself');

/** What ends a block at the indentation of its beginning: brackets where one opened it, else a word. */
const BRACKETS = /^[})\]]+[;,]?/;
const WORDS = ['end', 'fi', 'done', 'esac'];
const ONLY_CLOSES = /^([})\]]+[;,]?|end|fi|done|esac)$/;

/**
 * A whole statement behind which nothing of its block is reached; not a property, a member or a function of such a
 * name.
 */
const LEAVES = /^(return|throw|raise|break|continue)(;|\s+(.*[^-([{,=+*&|?:.<>\\])?)?$/;
/**
 * In some languages what is behind it decides whether it does, or goes on with the lines of a text. Python has `else`
 * in what is no such condition.
 */
const DEPENDS = /\s(unless|while|until)\s|\sif\s(?!.*\selse\s)|<<[-~<]?["'\w]/;
/**
 * What is reached all the same: a label, what ends or parts a block whose lines are not indented, a function that may
 * be called before it stands there.
 */
const REACHED = /^(\w+:|(case|default|end|fi|done|esac|else|elif|elsif|when|rescue|ensure|function|async function)\b)/;

/**
 * From the line that opens a block: its `cases`. Most write those of Go, Swift and Ruby so, and many those of C and of
 * shells.
 */
export function casesOf(opening: string, words: boolean): RegExp | undefined {
  if (/\b(switch|select)\b.*\{$/.test(opening)) return /^(case|default|@unknown default)\b/;
  if (!words || !/^\s*case\b/.test(opening)) return undefined;
  // Any text may be a pattern of a shell's.
  return /\sin$/.test(opening) ? /^\(?[^()]+\)/ : /^(when|in|else)\b/;
}

export function cutLines(context: LinesContext, raw: string, finished: boolean): LinesCut {
  const { before, openIndent, words = false, cases, scan } = context;
  const lines = raw.split('\n');
  const base = openIndent ?? indentOf(before.trim() === '' ? before + (lines[0] as string) : before);
  const nextLine = context.nextLine.trim();
  const nextIndent = indentOf(context.nextLine);
  let nested = false;
  let previous = '';
  let previousIndent = 0;
  /** End of the last line that is shown. */
  let end = 0;
  let lineStart = 0;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] as string;
    const complete = finished || i < lines.length - 1;
    const lineEnd = lineStart + line.length;
    const text = line.trim();
    if (text === '' && i > 0) {
      if (complete && context.paragraph && !nested && raw.slice(0, end).trim() !== '')
        return { shown: end, ended: true };
      lineStart = lineEnd + 1;
      continue;
    }
    // Small models write a line over and over; two alike in a row are hardly ever meant.
    if (i > 0 && !complete && previous.startsWith(text)) return { shown: end, ended: false };
    if (i > 0 && complete && text === previous && text.length > 3 && !ONLY_CLOSES.test(text))
      return { shown: end, ended: true, note: repeats() };
    const indent = indentOf(i === 0 ? before + line : line);
    // Without a tree it may be any text: prose, or a language in which these words mean something else.
    if (
      i > 0 &&
      scan &&
      !nested &&
      indent === previousIndent &&
      /^\w/.test(text) &&
      LEAVES.test(previous) &&
      !DEPENDS.test(previous) &&
      !REACHED.test(text)
    ) {
      // A word by itself may yet be one of those.
      return { shown: end, ended: complete || !/^(\w+|async \w*)$/.test(text) };
    }
    previous = i === 0 ? (before + line).trim() : text;
    previousIndent = indent;
    if (i > 0 && !nested) {
      const atEnd = openIndent !== undefined && indent === base;
      const closer = atEnd
        ? (BRACKETS.exec(text)?.[0] ?? WORDS.find((word) => words && new RegExp(`^${word}\\b`).test(text)))
        : undefined;
      // Whether it is a case shows at its end.
      if (
        !complete &&
        (closer !== undefined ||
          (atEnd && (cases !== undefined || (words && WORDS.some((word) => word.startsWith(text))))))
      )
        return { shown: end, ended: false };
      const stays = closer !== undefined || (atEnd && cases?.test(text));
      if ((openIndent !== undefined ? indent <= base : indent < base) && !stays) return { shown: end, ended: true };
      if (nextLine !== '') {
        if (complete && text === nextLine && (indent === nextIndent || !ONLY_CLOSES.test(text)))
          return { shown: end, ended: true };
        if (!complete && nextLine.startsWith(text)) return { shown: end, ended: false };
      }
      if (closer !== undefined && (!scan || /^\w/.test(closer)))
        return { shown: lineStart + indent + closer.length, ended: true };
    }
    if (!scan) end = lineEnd;
    else if (complete) {
      const found = scan(raw.slice(0, Math.min(raw.length, lineEnd + 1)));
      if (found.end !== undefined) return { shown: Math.max(lineStart + settled(line), found.end), ended: true };
      nested = found.nested;
      end = lineEnd;
    } else end = lineStart + settled(line);
    lineStart = lineEnd + 1;
  }
  return { shown: end, ended: finished };
}

/** How much of an unfinished line no closing bracket can cut off: up to one that the line has not opened itself. */
function settled(line: string): number {
  let depth = 0;
  // Behind one of these a bracket may be text, so that none can be counted on.
  let plain = true;
  for (let at = 0; at < line.length; at++) {
    const character = line[at] as string;
    if ('"\'`/#'.includes(character)) plain = false;
    else if ('([{'.includes(character)) depth++;
    else if (')]}'.includes(character) && (!plain || --depth < 0)) return at;
  }
  return line.length;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}
