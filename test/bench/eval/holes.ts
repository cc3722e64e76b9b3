/**
 * Makes holes for fill-in-the-middle: removes a line of code, or the rest of one, for the model to write again. Pure.
 */

const HOLE_KINDS = ['line', 'rest'] as const;
type HoleKind = (typeof HOLE_KINDS)[number];

export interface Hole {
  readonly kind: HoleKind;
  /** The text without the removed part, and the offset where that part was. */
  readonly text: string;
  readonly offset: number;
  readonly taken: string;
}

/** Shorter lines are only brackets. Longer ones are too long to be written right by chance. */
const SHORTEST = 4;
const LONGEST = 80;
/** Start of a line that is a comment. */
const COMMENT = /^(\/\/|\/\*|\*|#(?!\w+\()|"""|''')/;
/** The rest of a line may begin after one of these separators. */
const BOUNDARY = /[\s.([{=,:]/g;

/** Whether a model may be asked to write this line. `code` has no indentation. */
export function isCode(code: string): boolean {
  return code.length >= SHORTEST && code.length <= LONGEST && !COMMENT.test(code) && /\w/.test(code);
}

/**
 * Offsets where the rest of a line may begin: after its indentation and before its last characters.
 * @param line has no white space at its end.
 */
export function boundariesIn(line: string): number[] {
  const indent = line.length - line.trimStart().length;
  return [...line.slice(0, -SHORTEST).matchAll(BOUNDARY)]
    .map(({ index }) => index + 1)
    .filter((place) => place > indent);
}

/**
 * Up to `count` holes of each kind, no two on the same line.
 * @param from share of the lines before the first hole, which a context needs.
 * @param random gives numbers in 0..1.
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
