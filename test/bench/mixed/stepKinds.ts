/** What the steps of a replay had in them: by whether a part of a prompt, and by how many sequences had a token of their answer. Pure. */
import type { BatchSpan } from '../../../engine/model/batch.ts';

export interface StepKind {
  prompt: boolean;
  /** Tokens of answers in a step, at least and at most. */
  least: number;
  most: number;
  steps: number;
  /** In the runner, all of them. */
  ms: number;
  promptTokens: number;
  answerTokens: number;
}

/** Steps with no more tokens of answers than this are of one kind. */
const MOST = [0, 1, 4, 8, Number.POSITIVE_INFINITY];

export class StepKinds {
  readonly #kinds = new Map<string, StepKind>();

  add(batch: readonly BatchSpan[], ms: number): void {
    // Nobody drafts here: one token that is to say the next one is of an answer, or all that was left of a prompt.
    const answers = batch.filter(({ tokenIds, numLogits }) => tokenIds.length === 1 && numLogits === 1).length;
    const promptTokens = batch.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0) - answers;
    const i = MOST.findIndex((most) => answers <= most);
    const key = `${promptTokens > 0} ${i}`;
    const kind = this.#kinds.get(key) ?? {
      prompt: promptTokens > 0,
      least: (MOST[i - 1] ?? -1) + 1,
      most: MOST[i]!,
      steps: 0,
      ms: 0,
      promptTokens: 0,
      answerTokens: 0,
    };
    this.#kinds.set(key, kind);
    kind.steps++;
    kind.ms += ms;
    kind.promptTokens += promptTokens;
    kind.answerTokens += answers;
  }

  /** Those with prompts first, by their answers. */
  get all(): StepKind[] {
    return [...this.#kinds.values()].sort((a, b) => Number(b.prompt) - Number(a.prompt) || a.least - b.least);
  }
}
