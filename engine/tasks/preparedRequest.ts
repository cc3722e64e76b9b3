/**
 * The form of a task for the scheduler: prompt ids, prefill ranges, sampling, and how raw text is shown. Prepares raw
 * prompts. Runs nothing.
 */
import { t } from '@vscode/l10n';
import type { KnownAnswer } from '../facts/ask.ts';
import { RequestError } from '../protocol/errors.ts';
import type { TokenRange } from '../kv/laneIds.ts';
import type { AnswerSource, SamplingParams } from '../protocol/tasks.ts';
import type { ConfidenceLimits } from './confidence.ts';
import type { ReasoningForm } from './reasoning.ts';
import type { CopyPrior } from '../text/copy/copyPrior.ts';
import type { Manifest } from '../text/format/manifest.ts';
import type { Opening } from '../text/tokenizer/healing.ts';
import { MIN_PREFILL } from '../model/batch.ts';
import { DEFAULT_SAMPLING } from '../sequence/sampler.ts';
import type { Layout } from '../text/prompt/layout.ts';

/** @throws RequestError `badRequest`, with `refusal`, for a model that does not follow instructions */
export function requireInstructions({ can }: Pick<Manifest, 'can'>, refusal: string): void {
  if (!can.edit) throw new RequestError('badRequest', refusal);
}

export interface Shaped {
  /** The text that is shown so far. More raw text only adds to it. */
  text: string;
  /** No more text will be shown, so generation can stop. */
  stop: boolean;
  /** Says for the user why the text is cut or empty. */
  note?: string;
  /** Left out if the model wrote the text. */
  source?: AnswerSource;
  /** It replaces the text of the model, so the notes on the prompt do not apply. */
  isInstead?: true;
}

export interface PreparedRequest {
  promptIds: number[];
  /** How many of the first ids are the file block. */
  blockTokens: number;
  /** The ids that go through the prefill lane (see prefillRanges). */
  prefill: TokenRange[];
  /** The document of the file block. Null without a block. */
  docId: string | null;
  sampling: Required<SamplingParams>;
  /** Generated text must begin with it. It is not part of the raw text. */
  opening?: Opening;
  /** Predictions from copies, which are mixed into the distribution of the model. */
  prior?: () => CopyPrior;
  stopTokenIds: number[];
  /** Token ids outside the prompt that drafts may copy, the likeliest last. */
  draftSources?: () => readonly (readonly number[])[];
  /** Limits for the confidence of shown text. Needs log-probabilities. If left out, everything is shown. */
  confidence?: ConfidenceLimits;
  /** How the model may reason before its answer. If left out, the whole text is the answer. */
  reasoning?: ReasoningForm;
  /** The user may read the reasoning. */
  tellsReasoning?: true;
  /** The text is prose for the user. A note says if it ends at its token limit. */
  isProse?: true;
  /** `finished`: no more raw text will come. A pure function. */
  shape: (rawText: string, finished: boolean) => Shaped;
  /** Notes for the user on the prompt, such as text that is left out. */
  notes: string[];
  /** An answer that is shown without running the model. */
  known?: KnownAnswer;
}

/**
 * Fills missing values with the defaults of the task, and limits `maxTokens` to the rest of the context. The sequence
 * checks the values.
 * @throws RequestError `contextTooLong` if the prompt leaves no token
 */
export function samplingFor(
  given: SamplingParams | undefined,
  defaults: SamplingParams,
  numPromptTokens: number,
  contextTokens: number,
): Required<SamplingParams> {
  const left = contextTokens - numPromptTokens;
  if (left < 1)
    throw new RequestError(
      'contextTooLong',
      t('the prompt takes {0} tokens, but this model reads {1} with its answer', numPromptTokens, contextTokens),
    );
  const wanted: Required<SamplingParams> = {
    ...DEFAULT_SAMPLING,
    ...withoutUndefined(defaults),
    ...withoutUndefined(given ?? {}),
  };
  // With temperature, the same request must give different answers.
  const seed = given?.seed ?? defaults.seed ?? (wanted.temperature > 0 ? Math.floor(Math.random() * 2 ** 32) : 0);
  return { ...wanted, seed, maxTokens: wanted.maxTokens > left ? left : wanted.maxTokens };
}

/** Tokens that the prompt leaves for an answer of `maxTokens`: at most a sixth of the context. */
export function reservedForAnswer(maxTokens: number, contextTokens: number): number {
  return Math.max(1, Math.min(maxTokens, Math.floor(contextTokens / 6)));
}

function withoutUndefined(params: SamplingParams): SamplingParams {
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));
}

/**
 * The tokens of a prompt that go through the prefill lane: the file block and long texts of the user. Two prompts with
 * the same beginning must agree there, or they could not share rows. So the ranges depend on the prompt, the model and
 * the machine alone, and not on the length of a conversation or on generated text.
 * @param numBlock tokens of the file block
 * @param texts ranges of the texts after the block, in order, counted from its end
 * @param fewest tokens of the shortest text for the prefill lane
 */
export function prefillRanges(numBlock: number, texts: readonly TokenRange[], fewest = MIN_PREFILL): TokenRange[] {
  const ranges: TokenRange[] = [[0, numBlock]];
  for (const [from, to] of texts) {
    if (to - from < fewest) continue;
    const [first, end] = ranges.at(-1)!;
    if (end === numBlock + from) ranges[ranges.length - 1] = [first, numBlock + to];
    else ranges.push([numBlock + from, numBlock + to]);
  }
  return ranges.filter(([from, to]) => to > from);
}

/**
 * Prepares a raw prompt, which the model continues. Control tokens in a text are read as such. The BOS of the model
 * comes first, unless the text begins with it. Ids are used as given.
 * @throws RequestError `badRequest` for an empty prompt
 */
export function prepareRaw(
  layout: Layout,
  prompt: string | readonly number[],
  sampling?: SamplingParams,
): PreparedRequest {
  const { tokenizer, endTokenIds } = layout.text;
  const ids = typeof prompt === 'string' ? tokenizer.encodeTemplate(prompt) : [...prompt];
  const hasHead = typeof prompt !== 'string' || tokenizer.headIds.every((id, i) => ids[i] === id);
  const promptIds = hasHead ? ids : [...tokenizer.headIds, ...ids];
  if (ids.length === 0) throw new RequestError('badRequest', t('the prompt is empty'));
  return {
    promptIds,
    blockTokens: 0,
    prefill: prefillRanges(0, [[0, promptIds.length]], layout.fewestPrefill),
    docId: null,
    sampling: samplingFor(sampling, { maxTokens: 128, temperature: 0 }, promptIds.length, layout.contextTokens),
    stopTokenIds: [...endTokenIds],
    shape: (rawText, finished) => ({ text: rawText, stop: finished }),
    notes: [],
  };
}
