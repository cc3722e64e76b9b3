/** Draws the samples of suite `quality` from the sources' texts, the same for the same seed. Does not score answers. */
import { shuffled } from '../eval/holes.ts';
import type { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { HOLE_KINDS, type HoleKind, holesOf, type QualityHole } from './holes.ts';
import { neighbours } from './neighbours.ts';
import { namesDefined, QUESTION_KINDS, type QualityQuestion, qualityQuestions } from './questions.ts';
import { LANGUAGES, type QualityLanguage, type QualityText } from './sources.ts';
import { type QualitySummary, summariesOf } from './summaries.ts';
import { inTurn, partsOf, randomOf, withTree } from './trees.ts';

export const GROUPS = [...HOLE_KINDS, 'questions', 'summaries'] as const;
export type Group = (typeof GROUPS)[number];

interface Of {
  readonly source: string;
  readonly path: string;
  readonly language: QualityLanguage;
}

export interface Samples {
  /** `beside`: other open files, the nearest first. */
  readonly holes: readonly (QualityHole & Of & { readonly beside: readonly QualityText[] })[];
  readonly questions: readonly (QualityQuestion & Of & { readonly file: string })[];
  readonly summaries: readonly (QualitySummary & Of)[];
}

/**
 * @param n number per language of holes of each kind, of questions (evenly over their kinds) and of summaries, if the
 * texts have enough.
 * @param beside number of other open files.
 */
export async function samplesOf(
  grammars: Grammars,
  texts: readonly QualityText[],
  { n, groups, seed, beside = 0 }: { n: number; groups: readonly Group[]; seed: number; beside?: number },
): Promise<Samples> {
  const samples: { [K in keyof Samples]: Samples[K][number][] } = { holes: [], questions: [], summaries: [] };
  for (const language of LANGUAGES) {
    const files = shuffled(
      texts.filter((text) => text.language === language),
      randomOf(seed, language),
    );
    const kinds = HOLE_KINDS.filter((kind) => groups.includes(kind));
    const holes: Record<HoleKind, (QualityHole & Of)[][]> = { rest: [], line: [], block: [] };
    const parts: { of: Of; text: string }[] = [];
    for (const { source, path, text } of files) {
      const of = { source, path, language };
      parts.push(...partsOf(text).map((part) => ({ of, text: part })));
      await withTree(grammars, path, text, (tree) => {
        for (const kind of kinds)
          holes[kind].push(
            holesOf(tree, text, kind, randomOf(seed, kind, source, path)).map((hole) => ({ ...hole, ...of })),
          );
      });
    }
    const open = new Map(files.map((file) => [`${file.source} ${file.path}`, neighbours(files, file, beside, seed)]));
    const chosen = kinds.flatMap((kind) => (kind === 'rest' ? halves(holes.rest, n) : inTurn(holes[kind], n)));
    samples.holes.push(...chosen.map((hole) => ({ ...hole, beside: open.get(`${hole.source} ${hole.path}`)! })));
    const mixed = shuffled(parts, randomOf(seed, language, 'parts'));
    if (groups.includes('questions')) samples.questions.push(...(await questions(grammars, mixed, n, seed)));
    if (groups.includes('summaries')) {
      const lists = await Promise.all(
        mixed.map(({ of, text }) =>
          withTree(grammars, of.path, text, (tree) =>
            summariesOf(tree, text, randomOf(seed, 'summaries', of.source, of.path)).map((summary) => ({
              ...summary,
              ...of,
            })),
          ),
        ),
      );
      samples.summaries.push(...inTurn(lists, n));
    }
  }
  // Sorts by file, so that the cache keeps the common text of a file's requests.
  samples.holes.sort((a, b) => order(a.source, b.source) || order(a.path, b.path) || a.offset - b.offset);
  return samples;
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Half of the rests inside words and half between words. */
function halves(lists: readonly (readonly (QualityHole & Of)[])[], n: number): (QualityHole & Of)[] {
  const some = (midWord: boolean, count: number) =>
    inTurn(
      lists.map((list) => list.filter((hole) => hole.midWord === midWord)),
      count,
    );
  return [...some(false, Math.ceil(n / 2)), ...some(true, Math.floor(n / 2))];
}

async function questions(
  grammars: Grammars,
  parts: readonly { of: Of; text: string }[],
  n: number,
  seed: number,
): Promise<Samples['questions'][number][]> {
  const names = await Promise.all(
    parts.map(({ of, text }) => withTree(grammars, of.path, text, (tree) => namesDefined(tree, text))),
  );
  const all = [...new Set(names.flat())];
  const lists = await Promise.all(
    parts.map(({ of, text }) =>
      withTree(grammars, of.path, text, (tree) =>
        qualityQuestions(tree, { path: of.path, text }, all, randomOf(seed, 'questions', of.source, of.path, text)).map(
          (question) => ({ ...question, ...of, file: text }),
        ),
      ),
    ),
  );
  // Takes turns between kinds, and within a kind between parts.
  return inTurn(
    QUESTION_KINDS.map((kind) =>
      inTurn(
        lists.map((list) => list.filter((question) => question.kind === kind)),
        n,
      ),
    ),
    n,
  );
}
