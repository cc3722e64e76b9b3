/**
 * Writes the definitions in the lines of a file that its block leaves out, with their line numbers. Does not find
 * definitions, and does not decide where they stand in the prompt.
 */
import { t } from '@vscode/l10n';
import type { SourceDocument } from '../syntax/sourceDocument.ts';
import { fenced } from './fenced.ts';
import type { FileBlock, Layout } from './layout.ts';

/** The line that a definition begins on. */
export interface DefinitionLine {
  /** From 1. */
  line: number;
  /** It belongs to a class, which has a line of its own. */
  isMember: boolean;
}

export interface RestOutline {
  /** To be put after the first question. */
  text: string;
  /** Says for the user which lines are shown in this way. */
  note: string;
}

/** The share of the tokens that a block leaves free. It is fixed, so that a conversation keeps its outline. */
export const OUTLINE_SHARE = 0.4;
/** Longer lines are cut. */
const MAX_LINE = 120;

/** Undefined if nothing is left out, or no definition is there. Members are left out if not all lines fit. */
export function restOutline(
  layout: Layout,
  doc: SourceDocument,
  block: FileBlock,
  definitions: readonly DefinitionLine[],
): RestOutline | undefined {
  if (block.omitted === '' || block.endLine <= block.startLine) return undefined;
  const total = doc.numWrittenLines;
  const ranges = [
    ...(block.startLine > 0 ? [[1, block.startLine] as const] : []),
    ...(block.endLine < total ? [[block.endLine + 1, total] as const] : []),
  ];
  const lineAt = (line: number): string => doc.lf.slice(doc.lineStart(line - 1), doc.lineStart(line));
  const limit = Math.floor(layout.reservedTokens * OUTLINE_SHARE);
  return lineOutline(layout, { path: doc.path, total, ranges, lineAt }, definitions, limit);
}

/** The lines of a file that are not shown, from 1. */
interface LeftOut {
  path: string;
  /** Lines of the file. */
  total: number;
  ranges: readonly (readonly [first: number, last: number])[];
  lineAt: (line: number) => string;
}

/** An outline of at most `limit` tokens. Undefined if no definition is there. Members are left out if not all fit. */
export function lineOutline(
  layout: Layout,
  { path, total, ranges, lineAt }: LeftOut,
  definitions: readonly DefinitionLine[],
  limit: number,
): RestOutline | undefined {
  const isLeftOut = (line: number): boolean => ranges.some(([first, last]) => line >= first && line <= last);
  const left = definitions.filter(({ line }) => isLeftOut(line)).sort((a, b) => a.line - b.line);
  const said = ranges.map(([first, last]) => `${first}-${last}`).join(', ');
  const written = (some: readonly DefinitionLine[]): string => {
    const lines = [...new Set(some.map(({ line }) => line))].map((line) => `${line}: ${cut(lineAt(line))}`);
    return `\n${path}, outline of lines ${said}\n${fenced(lines.join('\n'), path)}`;
  };
  const fits = (some: readonly DefinitionLine[]): boolean =>
    layout.text.tokenizer.encode(written(some)).length <= limit;
  const tops = left.filter(({ isMember }) => !isMember);
  const shown = [left, tops].find((some) => some.length > 0 && fits(some)) ?? longestPart(tops, fits);
  if (shown.length === 0) return undefined;
  const last = shown.at(-1)?.line ?? total;
  const isCut = shown.length < tops.length;
  return {
    text: written(shown),
    note: isCut
      ? t('{0}: lines {1} of {2} as outline, up to line {3}', path, said, total, last)
      : t('{0}: lines {1} of {2} as outline', path, said, total),
  };
}

const cut = (line: string): string => {
  const code = line.trim();
  return code.length <= MAX_LINE ? code : `${code.slice(0, MAX_LINE)} …`;
};

/** The longest beginning that fits. */
function longestPart<T>(all: readonly T[], fits: (some: readonly T[]) => boolean): readonly T[] {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(all.slice(0, middle))) low = middle;
    else high = middle - 1;
  }
  return all.slice(0, low);
}
