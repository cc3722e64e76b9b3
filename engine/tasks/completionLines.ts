/**
 * Decides how many generated lines belong to the block at the cursor, by the syntax tree, or else by indentation.
 * Decides on each line when it is complete, and never takes shown text back. Does not cut inside lines.
 */
import { t } from '@vscode/l10n';
import type { BlockScan } from '../text/syntax/syntax.ts';

export interface LinesContext {
  /** The cursor's line up to the cursor. */
  before: string;
  /** The next line that is not blank, with its indentation. Empty at the end of the file. */
  nextLine: string;
  /** If a block opens before the cursor, the indentation of the line where its statement begins. */
  openIndent?: number;
  /** Whether the completion also ends at a blank line. So for a cursor on a blank line inside a block. */
  paragraph: boolean;
  /** Whether the block is closed by a word instead of a bracket. */
  words?: boolean;
  /** Lines that belong to the block although they have the indentation of its statement (see casesOf). */
  cases?: RegExp | undefined;
  /** Finds the end of the block in the syntax tree. Takes whole lines only. */
  scan?: (written: string) => BlockScan;
}

export interface LinesCut {
  /** [0, shown) of the raw text may be shown. */
  shown: number;
  /** Nothing after `shown` will be shown. */
  ended: boolean;
  note?: string;
}

/** The note on a text that repeats itself. */
export const repeats = (): string => t('cut where the text starts to repeat itself');

/** The brackets or words that end a block at the indentation of its beginning. */
const BRACKETS = /^[})\]]+[;,]?/;
const WORDS = ['end', 'fi', 'done', 'esac'];
const QUOTES = /^("{3}|'{3}|`{3})$/;
const ONLY_CLOSES = /^([})\]]+[;,]?|end|fi|done|esac)$/;

/** A whole statement that leaves its block. Does not match a property, member or function with such a name. */
const LEAVES = /^(return|throw|raise|break|continue)(;|\s+(.*[^-([{,=+*&|?:.<>\\])?)?$/;
/**
 * A statement that leaves its block only under a condition, in languages that write it after the statement, or that has
 * the lines of a text below it. An `if` with `else` is no such condition in Python.
 */
const DEPENDS = /\s(unless|while|until)\s|\sif\s(?!.*\selse\s)|<<[-~<]?["'\w]/;
/**
 * Lines that may follow such a statement: a label, words that end or divide a block without indentation, and functions,
 * which may be called before their definition.
 */
const REACHED = /^(\w+:|(case|default|end|fi|done|esac|else|elif|elsif|when|rescue|ensure|function|async function)\b)/;

/**
 * The `cases` for the line that opens a block. In Go, Swift and Ruby, and often in C and shells, cases have the
 * indentation of their statement.
 */
export function casesOf(opening: string, words: boolean): RegExp | undefined {
  if (/\b(switch|select)\b.*\{$/.test(opening)) return /^(case|default|@unknown default)\b/;
  if (!words || !/^\s*case\b/.test(opening)) return undefined;
  // In a shell any text may be a pattern.
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
  /** The end of the last line that is shown. */
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
    // Small models repeat lines. Two equal lines in a row are rarely correct.
    if (i > 0 && !complete && previous.startsWith(text)) return { shown: end, ended: false };
    if (i > 0 && complete && text === previous && (text.length > 3 || QUOTES.test(text)) && !ONLY_CLOSES.test(text))
      return { shown: end, ended: true, note: repeats() };
    const indent = indentOf(i === 0 ? before + line : line);
    // Only with a tree, because other texts may be prose, or a language in which these words mean something else.
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
      // A word alone may still become one of the lines that may follow.
      return { shown: end, ended: complete || !/^(\w+|async \w*)$/.test(text) };
    }
    previous = i === 0 ? (before + line).trim() : text;
    previousIndent = indent;
    if (i > 0 && !nested) {
      const atEnd = openIndent !== undefined && indent === base;
      const closer = atEnd
        ? (BRACKETS.exec(text)?.[0] ?? WORDS.find((word) => words && new RegExp(`^${word}\\b`).test(text)))
        : undefined;
      // The end of the line shows whether it is a case.
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

/**
 * Length of the part of an unfinished line that cannot be cut: up to a closing bracket that the line has not opened.
 */
function settled(line: string): number {
  let depth = 0;
  // After a quote or a comment sign a bracket may be text, so brackets are not counted any more.
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
