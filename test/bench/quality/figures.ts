/** Calculates figures of suite `quality` by kind and language. Pure. */
import { median, quantile } from '../spread.ts';
import type { PromptLayout } from './engine.ts';
import { HOLE_KINDS, type HoleKind } from './holes.ts';
import { QUESTION_KINDS, type QuestionKind } from './questions.ts';
import { type HoleScore, mean } from './scores.ts';
import { LANGUAGES, type QualityLanguage } from './sources.ts';

interface Place {
  source: string;
  path: string;
  language: QualityLanguage;
}

export interface ScoredHole extends Place, HoleScore {
  layout: PromptLayout;
  kind: HoleKind;
  midWord: boolean;
  offset: number;
  /** Characters that had to be written, and characters offered. */
  numTaken: number;
  numShown: number;
  firstMs: number | null;
}

export interface ScoredQuestion extends Place {
  kind: QuestionKind;
  right: boolean;
  /** Equals the wording that the built-in model was trained on. */
  exact: boolean;
}

export interface ScoredSummary extends Place {
  name: string;
  rougeL: number;
  chrF: number;
  /** Score of the words of the function's name as a summary. */
  nameRougeL: number;
  nameChrF: number;
}

/** Shares are 0..1. Shares of shown completions are NaN if none is shown. */
export interface HoleFigures {
  n: number;
  exact: number;
  firstWord: number;
  shown: number;
  exactOfShown: number;
  firstWordOfShown: number;
  wholeOfShown: number;
  /** Mean characters per shown completion. */
  keptPerShown: number;
  shownCharacters: number;
  /** Mean characters that had to be written, over all holes. */
  takenCharacters: number;
  /** Time to the first ghost text in ms. */
  medianMs: number;
  p95Ms: number;
}

export function holeFigures(holes: readonly ScoredHole[]): HoleFigures {
  const shown = holes.filter((hole) => hole.shown);
  const share = (of: readonly ScoredHole[], what: (hole: ScoredHole) => boolean): number =>
    of.length === 0 ? Number.NaN : of.filter(what).length / of.length;
  const times = shown.flatMap(({ firstMs }) => firstMs ?? []);
  return {
    n: holes.length,
    exact: share(holes, ({ exact }) => exact),
    firstWord: share(holes, ({ firstWord }) => firstWord),
    shown: share(holes, (hole) => hole.shown),
    exactOfShown: share(shown, ({ exact }) => exact),
    firstWordOfShown: share(shown, ({ firstWord }) => firstWord),
    wholeOfShown: share(shown, ({ whole }) => whole),
    keptPerShown: shown.length === 0 ? Number.NaN : mean(shown.map(({ kept }) => kept)),
    shownCharacters: shown.length === 0 ? Number.NaN : mean(shown.map(({ numShown }) => numShown)),
    takenCharacters: mean(holes.map(({ numTaken }) => numTaken)),
    medianMs: median(times),
    p95Ms: quantile(times, 0.95),
  };
}

export interface Cell extends HoleFigures {
  layout: PromptLayout;
  kind: HoleKind | 'rest, in a word' | 'rest, between words';
  language: QualityLanguage | 'all';
}

/**
 * A cell per kind and language, per kind over all languages, and for rests per cursor position. Leaves out empty cells.
 */
export function cellsOf(holes: readonly ScoredHole[], layouts: readonly PromptLayout[]): Cell[] {
  return layouts.flatMap((layout) => {
    const of = holes.filter((hole) => hole.layout === layout);
    const cells = HOLE_KINDS.flatMap((kind) =>
      ([...LANGUAGES, 'all'] as const).map(
        (language): Cell => ({
          layout,
          kind,
          language,
          ...holeFigures(of.filter((hole) => hole.kind === kind && (language === 'all' || hole.language === language))),
        }),
      ),
    );
    const rests = of.filter(({ kind }) => kind === 'rest');
    const where = (
      [
        ['rest, between words', false],
        ['rest, in a word', true],
      ] as const
    ).map(
      ([kind, midWord]): Cell => ({
        layout,
        kind,
        language: 'all',
        ...holeFigures(rests.filter((hole) => hole.midWord === midWord)),
      }),
    );
    return [...cells, ...where].filter(({ n }) => n > 0);
  });
}

export interface QuestionFigures {
  kind: QuestionKind | 'all';
  language: QualityLanguage | 'all';
  n: number;
  right: number;
  exact: number;
}

/** By language, then by kind, then all. */
export function questionFigures(questions: readonly ScoredQuestion[]): QuestionFigures[] {
  const figures = (kind: QuestionFigures['kind'], language: QuestionFigures['language']): QuestionFigures => {
    const of = questions.filter(
      (question) =>
        (kind === 'all' || question.kind === kind) && (language === 'all' || question.language === language),
    );
    return {
      kind,
      language,
      n: of.length,
      right: mean(of.map(({ right }) => Number(right))),
      exact: mean(of.map(({ exact }) => Number(exact))),
    };
  };
  return [
    ...LANGUAGES.map((language) => figures('all', language)),
    ...QUESTION_KINDS.map((kind) => figures(kind, 'all')),
    figures('all', 'all'),
  ].filter(({ n }) => n > 0);
}

export interface SummaryFigures extends Pick<ScoredSummary, 'rougeL' | 'chrF' | 'nameRougeL' | 'nameChrF'> {
  language: QualityLanguage;
  n: number;
}

export function summaryFigures(summaries: readonly ScoredSummary[]): SummaryFigures[] {
  return LANGUAGES.filter((language) => summaries.some((summary) => summary.language === language)).map((language) => {
    const of = summaries.filter((summary) => summary.language === language);
    return {
      language,
      n: of.length,
      rougeL: mean(of.map(({ rougeL }) => rougeL)),
      chrF: mean(of.map(({ chrF }) => chrF)),
      nameRougeL: mean(of.map(({ nameRougeL }) => nameRougeL)),
      nameChrF: mean(of.map(({ nameChrF }) => nameChrF)),
    };
  });
}
