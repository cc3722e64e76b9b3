/**
 * Makes cursors for suite `quality`: removes the rest of a line, a whole line or a block of lines for the model to
 * write again. Half of the rests begin inside a word, because most typing pauses are inside one. Pure.
 */
import type { Tree } from 'web-tree-sitter';
import { boundariesIn, isCode, shuffled } from '../eval/holes.ts';
import { named } from '../eval/questions.ts';
import { below, type Random } from '../../support/engine/workload.ts';
import { isInside } from './trees.ts';

export const HOLE_KINDS = ['rest', 'line', 'block'] as const;
export type HoleKind = (typeof HOLE_KINDS)[number];

export interface QualityHole {
  readonly kind: HoleKind;
  /** The cursor is between the first and the last character of a word. */
  readonly midWord: boolean;
  /** The file without `taken`, which was at `offset`. */
  readonly text: string;
  readonly offset: number;
  readonly taken: string;
}

/** Lines before the first hole. The model needs some context. */
const FIRST_LINE = 5;
/** Number of lines of a block. A block is the whole of a body. */
const LINES = { least: 2, most: 8 };
const MAX_BLOCK = 500;

/** All holes of a kind in random order, at most one per line. Every second rest begins inside a word. */
export function holesOf(tree: Tree, text: string, kind: HoleKind, random: Random): QualityHole[] {
  return kind === 'block' ? blocks(tree, text, random) : lines(tree, text, kind, random);
}

function without(kind: HoleKind, text: string, offset: number, end: number, midWord = false): QualityHole {
  return { kind, midWord, offset, taken: text.slice(offset, end), text: text.slice(0, offset) + text.slice(end) };
}

function lines(tree: Tree, text: string, kind: 'rest' | 'line', random: Random): QualityHole[] {
  const every = text.split('\n');
  const starts: number[] = [];
  for (let i = 0, at = 0; i < every.length; at += every[i]!.length + 1, i++) starts.push(at);
  const candidates = every
    .map((_, i) => i)
    .filter(
      (i) =>
        i >= FIRST_LINE &&
        isCode(every[i]!.trim()) &&
        !isInside(tree, starts[i]! + every[i]!.search(/\S/), /comment|string|regex/),
    );
  const holes: QualityHole[] = [];
  for (const i of shuffled(candidates, random)) {
    const line = every[i]!.trimEnd();
    const midWord = kind === 'rest' && holes.length % 2 === 1;
    const all = kind === 'line' ? [line.search(/\S/)] : midWord ? wordMiddles(line) : boundariesIn(line);
    const places = all.filter((place) => !isInside(tree, starts[i]! + place, /comment/));
    if (places.length > 0)
      holes.push(
        without(kind, text, starts[i]! + places[below(random, places.length)]!, starts[i]! + line.length, midWord),
      );
  }
  return holes;
}

function wordMiddles(line: string): number[] {
  return Array.from(line, (_, i) => i).filter((i) => i > 0 && /[\w$]/.test(line[i - 1]!) && /[\w$]/.test(line[i]!));
}

function blocks(tree: Tree, text: string, random: Random): QualityHole[] {
  const bodies = tree.rootNode.descendantsOfType(['statement_block', 'block']).flatMap((node) => {
    const inner = named(node);
    const [first, last] = [inner[0], inner.at(-1)];
    // Comments and documentation strings are not code to complete.
    if (
      !first ||
      !last ||
      inner.some(({ type }) => type === 'comment') ||
      (first.type === 'expression_statement' && first.firstNamedChild?.type === 'string')
    )
      return [];
    const { startIndex: start, endIndex: end } = {
      startIndex: first.startIndex,
      endIndex: last.startIndex + last.text.trimEnd().length,
    };
    const numLines = text.slice(start, end).split('\n').length;
    const alone =
      text.slice(text.lastIndexOf('\n', start - 1) + 1, start).trim() === '' && /^;?[ \t]*(\n|$)/.test(text.slice(end));
    const fits = numLines >= LINES.least && numLines <= LINES.most && end - start <= MAX_BLOCK;
    return alone && fits && text.slice(0, start).split('\n').length > FIRST_LINE
      ? [[start, end + (text[end] === ';' ? 1 : 0)] as const]
      : [];
  });
  const kept: (readonly [number, number])[] = [];
  for (const body of shuffled(bodies, random))
    if (kept.every(([start, end]) => body[1] <= start || body[0] >= end)) kept.push(body);
  return kept.map(([start, end]) => without('block', text, start, end));
}
