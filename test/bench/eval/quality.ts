/**
 * Measures the quality that treatments of a context cost. Computes each context once, then continues it untreated and
 * after each treatment. Compares the distributions of the next tokens, and the answers.
 */
import { addPosition, type Divergence, noDivergence } from '../../../engine/model/calibrate/measurement.ts';
import type { Exercise, ExerciseKind } from './exercises.ts';
import { argmax, type KvSubject } from './subject.ts';
import type { SlotsFor, Treatment } from './treatments.ts';
import { paced } from '../../../engine/cli/output.ts';

/** Counts of the answers of one kind. */
export interface AnswerCounts {
  kind: ExerciseKind;
  group: string;
  n: number;
  exact: number;
  right: number;
  /** Answers with the same text as over the untreated context. */
  same: number;
}

/** Answers of one kind that were right only without the treatment (lost) or only with it (gained). */
interface AnswerChanges {
  kind: ExerciseKind;
  lost: number;
  gained: number;
}

/** Sizes of the contexts of one kind of exercise. */
export interface ContextBytes {
  kind: ExerciseKind;
  numContexts: number;
  numTokens: number;
  /** Includes rows that are kept exactly, and whole contexts that are too short for the treatment. */
  bytes: number;
}

export interface TreatmentQuality {
  treatment: string;
  /** Bytes per token: of a long context, of the contexts here by kind, and of all contexts here together. */
  bytesPerToken: number;
  contexts: ContextBytes[];
  bytesPerTokenHere: number;
  /** Float16 size over `bytesPerToken`. */
  compression: number;
  /** KL divergence of the next token's distribution from that over the untreated context, in nats. */
  klMean: number;
  klMax: number;
  /** Share of positions with the same most probable token as over the untreated context. */
  top1: number;
  /** Relative change against the untreated context. */
  perplexity: number;
  /** Share of the next tokens that are the most probable one. */
  accuracy: number;
  answers: AnswerCounts[];
  changes: AnswerChanges[];
}

export interface QualityResult {
  model: string;
  /** Number of predicted tokens and of computed contexts. */
  numTokens: number;
  numContexts: number;
  /** Tokens of the longest context. */
  longestContext: number;
  /** Over the untreated contexts. */
  perplexity: number;
  accuracy: number;
  answers: AnswerCounts[];
  treatments: TreatmentQuality[];
}

class Tally {
  readonly divergence: Divergence = noDivergence();
  readonly #answers = new Map<string, AnswerCounts>();
  readonly #changes = new Map<ExerciseKind, AnswerChanges>();
  readonly #contexts = new Map<ExerciseKind, ContextBytes>();
  nll = 0;
  right = 0;

  addContext({ kind, contextIds }: Exercise, bytes: number): void {
    const counts = this.#contexts.get(kind) ?? { kind, numContexts: 0, numTokens: 0, bytes: 0 };
    this.#contexts.set(kind, {
      kind,
      numContexts: counts.numContexts + 1,
      numTokens: counts.numTokens + contextIds.length,
      bytes: counts.bytes + bytes,
    });
  }

  addRows(reference: readonly Float64Array[], rows: readonly Float64Array[], next: readonly number[]): void {
    for (const [i, row] of rows.entries()) {
      addPosition(this.divergence, reference[i]!, row);
      this.nll -= row[next[i + 1]!]!;
      this.right += argmax(row) === next[i + 1] ? 1 : 0;
    }
  }

  addAnswers({ kind, prompts }: Exercise, reference: readonly string[], texts: readonly string[]): void {
    const changes = this.#changes.get(kind) ?? { kind, lost: 0, gained: 0 };
    if (prompts.length) this.#changes.set(kind, changes);
    for (const [i, { group, judge }] of prompts.entries()) {
      const key = `${kind} ${group}`;
      const counts = this.#answers.get(key) ?? { kind, group, n: 0, exact: 0, right: 0, same: 0 };
      this.#answers.set(key, counts);
      const { exact, right } = judge(texts[i]!);
      const before = judge(reference[i]!).right;
      counts.n++;
      counts.exact += Number(exact);
      counts.right += Number(right);
      counts.same += Number(texts[i] === reference[i]);
      changes.lost += Number(before && !right);
      changes.gained += Number(right && !before);
    }
  }

  get answers(): AnswerCounts[] {
    return [...this.#answers.values()];
  }

  get changes(): AnswerChanges[] {
    return [...this.#changes.values()];
  }

  get contexts(): ContextBytes[] {
    return [...this.#contexts.values()];
  }
}

interface Continued {
  rows: Float64Array[];
  texts: string[];
}

export interface QualityHooks {
  /** Turns ids into text. Required where exercises have prompts. */
  readonly decode?: (ids: readonly number[]) => string;
  readonly onProgress?: (line: string) => void;
}

export async function measureQuality(
  subject: KvSubject,
  exercises: readonly Exercise[],
  treatments: readonly Treatment[],
  { decode = () => '', onProgress = () => {} }: QualityHooks = {},
): Promise<QualityResult> {
  const reference = new Tally();
  const tallies = treatments.map(() => new Tally());
  const started = performance.now();
  const progress = paced(onProgress);
  for (const [e, exercise] of exercises.entries()) {
    progress(
      `${subject.name}: ${e} of ${exercises.length} contexts, ${((performance.now() - started) / 1000).toFixed(0)} s`,
    );
    const { contextIds, next, prompts } = exercise;
    const context = await subject.compute(contextIds);
    const go = async (slotsFor: SlotsFor): Promise<Continued> => {
      const rows = next.length ? await subject.follow(context, await slotsFor([]), next.slice(0, -1)) : [];
      const slots: Int32Array[] = [];
      for (const { tail } of prompts) slots.push(await slotsFor(tail.ids));
      return {
        rows,
        texts: (
          await subject.answer(
            context,
            slots,
            prompts.map(({ tail }) => tail),
          )
        ).map(decode),
      };
    };
    const asItWas = await go(async () => context.slots);
    reference.addRows(asItWas.rows, asItWas.rows, next);
    reference.addAnswers(exercise, asItWas.texts, asItWas.texts);
    for (const [t, treatment] of treatments.entries()) {
      const tally = tallies[t]!;
      const { slotsFor, bytes } = await treatment.apply(subject, context);
      tally.addContext(exercise, bytes);
      const treated = await go(slotsFor);
      tally.addRows(asItWas.rows, treated.rows, next);
      tally.addAnswers(exercise, asItWas.texts, treated.texts);
      subject.restore(context);
    }
  }
  const { numTokens } = reference.divergence;
  return {
    model: subject.name,
    numTokens,
    numContexts: exercises.length,
    longestContext: Math.max(0, ...exercises.map(({ contextIds }) => contextIds.length)),
    perplexity: Math.exp(reference.nll / numTokens),
    accuracy: reference.right / numTokens,
    answers: reference.answers,
    treatments: treatments.map((treatment, t) => {
      const { divergence, nll, right, contexts, answers, changes } = tallies[t]!;
      const bytesPerToken = treatment.bytesPerToken(subject);
      const sum = (key: 'bytes' | 'numTokens'): number => contexts.reduce((total, counts) => total + counts[key], 0);
      return {
        treatment: treatment.name,
        bytesPerToken,
        contexts,
        bytesPerTokenHere: sum('bytes') / sum('numTokens'),
        compression: subject.float16Bytes / bytesPerToken,
        klMean: divergence.klSum / numTokens,
        klMax: divergence.klMax,
        top1: divergence.agreed / numTokens,
        perplexity: Math.expm1((nll - reference.nll) / numTokens),
        accuracy: right / numTokens,
        answers,
        changes,
      };
    }),
  };
}

/** Sums the answers of a kind over its groups. Null if there are none. */
export function answersOf(
  answers: readonly AnswerCounts[],
  kind: ExerciseKind,
): Omit<AnswerCounts, 'kind' | 'group'> | null {
  const of = answers.filter((counts) => counts.kind === kind);
  if (of.length === 0) return null;
  const sum = (key: 'n' | 'exact' | 'right' | 'same'): number => of.reduce((total, counts) => total + counts[key], 0);
  return { n: sum('n'), exact: sum('exact'), right: sum('right'), same: sum('same') };
}
