/**
 * Measures what drafts gain and what they cost. A model with random weights writes unrealistic text, so its choices are
 * dictated: every step is computed as in real use, then the logits are changed so that the next token comes from a
 * given text. Only the text is not real, and the text decides how many drafts are right:
 *
 * - `insert`: code of the recorded session with the lines that its author added. The prompt is the code without them.
 * - `rename`: the same code with a common name changed everywhere.
 * - `fresh`: code of a different file than the prompt's.
 * - `random`: random tokens. They repeat nothing.
 * - `pairs`: random tokens out of twelve. Every pair has occurred before, with any token after it: the worst case.
 */
import { Tokenizer } from '../../engine/text/tokenizer/tokenizer.ts';
import { below } from '../support/engine/workload.ts';
import type { Case } from './engineCases.ts';
import type { EngineUnderTest, Watched } from './engineUnderTest.ts';
import { finalTexts, readSession } from '../support/session/session.ts';
import { median } from './spread.ts';

export interface Dictation {
  name: string;
  prompt: number[];
  answer: number[];
}

const FILE = 'engine/scheduler/scheduler.ts';
const OTHER_FILE = 'src/engineClient.ts';
const RENAMED = [/\bsequence\b/g, 'request'] as const;
/** Number of unchanged lines with which the answer begins, before the first change. */
const LEADING_LINES = 8;
const NUM_PAIRED = 12;

/** Makes prompts of at most `promptTokens` tokens and answers of `answerTokens` tokens. */
export async function dictations(
  bench: EngineUnderTest,
  promptTokens: number,
  answerTokens: number,
): Promise<Dictation[]> {
  const tokenizer = await Tokenizer.load('model');
  // The ids of the built-in model fit into the vocabulary of every shape but the smallest.
  const encode = (text: string): number[] => tokenizer.encode(text).map((id) => id % bench.model.config.vocabSize);
  const session = readSession();
  const textOf = (file: string): string => session.files.find((one) => one.file === file)!.text;
  const before = textOf(FILE);
  const after = finalTexts(session).get(FILE)!;
  let start = [...before].findIndex((character, i) => character !== after[i]);
  for (let n = 0; n <= LEADING_LINES; n++) start = before.lastIndexOf('\n', start - 1);
  start++;
  const code = encode(before.slice(start)).length;
  const asked = [
    ...encode(before.slice(0, start)),
    ...encode(before.slice(start)).slice(0, Math.min(code, 2 * answerTokens)),
    ...encode('\n```\nAnswer with the whole changed code only.\n```ts\n'),
  ].slice(-promptTokens);
  const answer = (text: string): number[] => encode(text).slice(0, answerTokens);
  const paired = (count: number): number[] => Array.from({ length: count }, () => below(bench.random, NUM_PAIRED));
  return [
    { name: 'insert', prompt: asked, answer: answer(after.slice(start)) },
    { name: 'rename', prompt: asked, answer: answer(before.slice(start).replaceAll(...RENAMED)) },
    { name: 'fresh', prompt: asked, answer: answer(textOf(OTHER_FILE)) },
    { name: 'random', prompt: bench.tokens(promptTokens), answer: bench.tokens(answerTokens) },
    { name: 'pairs', prompt: paired(promptTokens), answer: paired(answerTokens) },
  ];
}

/** Two engines have the same model. Each engine writes every answer once without drafts and once with drafts. */
export function speculationCases(
  engines: readonly [EngineUnderTest, EngineUnderTest],
  texts: readonly Dictation[],
): Case[] {
  const [first, second] = engines;
  return texts.map((text) => ({
    group: 'speculation',
    long: true,
    key: { text: text.name, context: text.prompt.length, answer: text.answer.length },
    measure: async () => {
      const [one, other] = [await inTurns(first, second, text), await inTurns(second, first, text)];
      const sum = (of: (turns: Turns) => number): number => of(one) + of(other);
      const numTokens = 2 * (text.answer.length - 1);
      const [plainMs, draftedMs] = [
        sum(({ plainMs }) => plainMs) / numTokens,
        sum(({ draftedMs }) => draftedMs) / numTokens,
      ];
      return {
        plainMs,
        draftedMs,
        gain: plainMs / draftedMs,
        tokensPerStep: numTokens / (numTokens - sum(({ accepted }) => accepted)),
        draftedTokens: sum(({ drafted }) => drafted) / 2,
        acceptedTokens: sum(({ accepted }) => accepted) / 2,
      };
    },
  }));
}

interface Turns {
  plainMs: number;
  draftedMs: number;
  drafted: number;
  accepted: number;
}

/** Writes the same answer without and with drafts. The steps alternate, so that a disturbance affects both. */
async function inTurns(plain: EngineUnderTest, drafting: EngineUnderTest, text: Dictation): Promise<Turns> {
  const [without, having] = [new Dictated(plain, text, false), new Dictated(drafting, text, true)];
  await without.begin();
  await having.begin();
  while (!without.finished) {
    await without.step();
    if (having.numTokens < without.numTokens) await having.step();
  }
  const { drafted, accepted } = drafting.engine.stats().tokens;
  return { plainMs: without.ms, draftedMs: having.ms, drafted, accepted };
}

/** An answer that is being dictated. */
class Dictated {
  readonly #bench: EngineUnderTest;
  readonly #text: Dictation;
  readonly #watched: Watched;
  /** Milliseconds of the steps, by number of rows in the step. */
  readonly #times = new Map<number, number[]>();

  constructor(bench: EngineUnderTest, text: Dictation, drafts: boolean) {
    this.#bench = bench;
    this.#text = text;
    bench.renew({ tokenBudget: text.prompt.length + text.answer.length });
    this.#watched = bench.add(text.prompt, text.answer.length, 'chat', drafts);
  }

  get finished(): boolean {
    return this.#watched.finished;
  }

  get numTokens(): number {
    return this.#watched.sequence.numGenerated;
  }

  /**
   * Sum over all steps. Each step counts as the median of the steps with the same number of rows, so that outside
   * disturbances do not count.
   */
  get ms(): number {
    return [...this.#times.values()].reduce((sum, steps) => sum + steps.length * median(steps), 0);
  }

  /** Runs up to the first token. */
  begin(): Promise<void> {
    return this.#dictate(() => this.#bench.pretend(() => this.numTokens > 0));
  }

  async step(): Promise<void> {
    const { drafted } = this.#bench.engine.stats().tokens;
    const ms = await this.#dictate(() => this.#bench.step());
    const rows = 1 + this.#bench.engine.stats().tokens.drafted - drafted;
    this.#times.set(rows, [...(this.#times.get(rows) ?? []), ms]);
    const { tokenIds } = this.#watched.sequence;
    const { prompt, answer } = this.#text;
    if (tokenIds.some((id, i) => i >= prompt.length && id !== answer[i - prompt.length]))
      throw new Error('The answer is not the one that was dictated.');
  }

  #dictate<T>(work: () => Promise<T>): Promise<T> {
    return this.#bench.dictate(this.#text.prompt.length, this.#text.answer, work);
  }
}
