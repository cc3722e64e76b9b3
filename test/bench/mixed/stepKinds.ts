/** Groups the steps of a replay by whether they have prompt tokens and by their number of answer tokens. Pure. */
import type { BatchSpan } from '../../../engine/model/batch.ts';

export interface StepKind {
  prompt: boolean;
  /** Least and most answer tokens in a step of this kind. */
  least: number;
  most: number;
  steps: number;
  /** Total time in the runner. */
  ms: number;
  promptTokens: number;
  answerTokens: number;
}

/** Most answer tokens of each kind of step. */
const MOST = [0, 1, 4, 8, Number.POSITIVE_INFINITY];

export class StepKinds {
  readonly #kinds = new Map<string, StepKind>();

  add(batch: readonly BatchSpan[], ms: number): void {
    // There are no drafts here. A single token with logits belongs to an answer, or it is the only token left of a
    // prompt.
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

  /** Kinds with prompt tokens first, then by answer tokens. */
  get all(): StepKind[] {
    return [...this.#kinds.values()].sort((a, b) => Number(b.prompt) - Number(a.prompt) || a.least - b.least);
  }
}
