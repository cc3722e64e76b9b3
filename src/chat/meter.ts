/**
 * Measures the prompt of the next question at each pause in typing. Works only while the view is visible, a model is
 * loaded and no answer is being written. Never loads a model.
 */
import type { PromptSize } from '../../engine/protocol/stats.ts';
import { RequestError } from '../../engine/protocol/errors.ts';
import type { Speech } from '../format.ts';
import type { ChipSizes } from './chatContext.ts';
import type { Meter } from './chatMessages.ts';

export interface Measured {
  size: PromptSize;
  /** The attached item of each part. */
  owners: readonly string[];
  /** What could not be read. */
  notes: readonly string[];
}

export interface MeterOptions {
  /** null while nothing can be measured. Throws what the answer would fail with. */
  measure(): Promise<Measured | null>;
  onResult(meter: Meter | null, sizes: ChipSizes): void;
  speech: Speech;
}

const DELAY_MS = 250;

export class TokenMeter {
  readonly #options: MeterOptions;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watched = false;
  #measuring = false;
  #again = false;

  constructor(options: MeterOptions) {
    this.#options = options;
  }

  watch(watched: boolean): void {
    this.#watched = watched;
    if (watched) this.changed();
    else clearTimeout(this.#timer);
  }

  /** Call it when something that is measured has changed. */
  changed(): void {
    clearTimeout(this.#timer);
    if (this.#watched) this.#timer = setTimeout(() => void this.#measure(), DELAY_MS);
  }

  dispose(): void {
    this.watch(false);
  }

  async #measure(): Promise<void> {
    // One at a time, because the engine counts between two steps.
    if (this.#measuring) {
      this.#again = true;
      return;
    }
    this.#measuring = true;
    const { onResult, measure, speech } = this.#options;
    try {
      const measured = await measure();
      if (!this.#again)
        onResult(measured && meterOf(measured, speech), measured ? sizesOf(measured, speech) : new Map());
    } catch (error) {
      // Other errors are reported when the question is asked.
      const problem = error instanceof RequestError && error.code === 'contextTooLong' ? error.message : undefined;
      if (!this.#again)
        onResult(
          problem === undefined
            ? null
            : { label: speech.t('Too long'), prompt: 1, answer: 0, notes: [problem], over: true, title: problem },
          new Map(),
        );
    } finally {
      this.#measuring = false;
      if (this.#again) {
        this.#again = false;
        this.changed();
      }
    }
  }
}

function meterOf({ size, notes }: Measured, { t, numbers: { count } }: Speech): Meter {
  return {
    label: t('{0} of {1} tokens', count(size.promptTokens), count(size.contextTokens)),
    prompt: size.promptTokens / size.contextTokens,
    answer: size.answerTokens / size.contextTokens,
    notes: [...notes, ...size.notes],
    over: false,
    title: t(
      'The question and its files take {0} of the {1} tokens that the model reads; {2} are reserved for the answer',
      count(size.promptTokens),
      count(size.contextTokens),
      count(size.answerTokens),
    ),
  };
}

/** Sizes of the attached items. A folder's size is that of its files. */
function sizesOf({ size, owners }: Measured, { t, numbers: { count } }: Speech): ChipSizes {
  const sums = new Map<string, { tokens: number; omitted: number }>();
  for (const [i, { tokens, omittedTokens }] of size.parts.entries()) {
    const id = owners[i];
    if (id === undefined) continue;
    const sum = sums.get(id) ?? { tokens: 0, omitted: 0 };
    sums.set(id, { tokens: sum.tokens + tokens, omitted: sum.omitted + omittedTokens });
  }
  return new Map(
    [...sums].map(([id, { tokens, omitted }]) => [
      id,
      { tokens: count(tokens), omitted: omitted > 0 ? t('{0} left out', count(omitted)) : null },
    ]),
  );
}
