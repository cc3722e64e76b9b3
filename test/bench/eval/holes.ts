/** Holes for fill-in-the-middle: a line of code, or the rest of one, is taken out of a text and has to be written again. Pure. */

const HOLE_KINDS = ['line', 'rest'] as const;
type HoleKind = (typeof HOLE_KINDS)[number];

export interface Hole {
  readonly kind: HoleKind;
  /** The text without it, and where it was. */
  readonly text: string;
  readonly offset: number;
  readonly taken: string;
}

/** Shorter lines are brackets, longer ones nothing that a line is right by chance. */
const SHORTEST = 4;
const LONGEST = 80;
/** Lines of code, not comments. */
const COMMENT = /^(\/\/|\/\*|\*|#(?!\w+\()|"""|''')/;
/** Where the rest of a line may begin: behind what separates words. */
const BOUNDARY = /[\s.([{=,:]/g;

/** Whether a line, without its indentation, is one that a model may be asked to write. */
export function isCode(code: string): boolean {
  return code.length >= SHORTEST && code.length <= LONGEST && !COMMENT.test(code) && /\w/.test(code);
}

/** Of a line without white space at its end: where the rest of it may begin, behind its indentation and before its last characters. */
export function boundariesIn(line: string): number[] {
  const indent = line.length - line.trimStart().length;
  return [...line.slice(0, -SHORTEST).matchAll(BOUNDARY)]
    .map(({ index }) => index + 1)
    .filter((place) => place > indent);
}

/**
 * `count` of each kind, as many as there are, none of them on the same line. @param from share of the lines before the first:
 * a context needs a beginning. @param random numbers in 0..1
 */
export function holesIn(text: string, count: number, from: number, random: () => number): Hole[] {
  const lines = text.split('\n');
  const starts: number[] = [];
  for (let i = 0, at = 0; i < lines.length; at += lines[i]!.length + 1, i++) starts.push(at);
  const candidates = shuffled(
    lines.map((_, i) => i).filter((i) => i >= from * lines.length && isCode(lines[i]!.trim())),
    random,
  );
  const holes: Hole[] = [];
  for (const kind of HOLE_KINDS) {
    for (let found = 0; found < count && candidates.length > 0; ) {
      const i = candidates.pop()!;
      const line = lines[i]!.trimEnd();
      let begin = line.length - line.trimStart().length;
      if (kind === 'rest') {
        const places = boundariesIn(line);
        if (places.length === 0) continue;
        begin = places[Math.floor(random() * places.length)]!;
      }
      const offset = starts[i]! + begin;
      holes.push({
        kind,
        offset,
        taken: line.slice(begin),
        text: text.slice(0, offset) + text.slice(starts[i]! + line.length),
      });
      found++;
    }
  }
  return holes;
}

export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}
