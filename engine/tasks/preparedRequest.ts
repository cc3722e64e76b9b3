/** What a task becomes before it reaches the scheduler: token ids, resolved sampling, and how its raw text is shown. */
import { t } from '@vscode/l10n';
import type { KnownAnswer } from '../facts/ask.ts';
import { RequestError } from '../protocol/errors.ts';
import type { TokenRange } from '../kv/laneIds.ts';
import type { AnswerSource, SamplingParams } from '../protocol/tasks.ts';
import type { ConfidenceLimits } from './confidence.ts';
import type { CopyPrior } from '../text/copy/copyPrior.ts';
import type { Opening } from '../text/tokenizer/healing.ts';
import { MIN_PREFILL } from '../model/batch.ts';
import type { Layout } from '../text/prompt/layout.ts';

export interface Shaped {
  /** What is shown so far; a call with more raw text only ever adds to it. */
  text: string;
  /** Nothing more will be shown: generation can stop. */
  stop: boolean;
  /** Why the text was cut or nothing is shown. */
  note?: string;
  /** Left out where the model wrote the text. */
  source?: AnswerSource;
}

export interface PreparedRequest {
  promptIds: number[];
  /** How many of the first ids are the document's file block. */
  blockTokens: number;
  /** Which of the ids are for the prefill lane (see prefillRanges). */
  prefill: TokenRange[];
  /** The document whose block it is; null when there is none. */
  docId: string | null;
  sampling: Required<SamplingParams>;
  /** What is generated has to begin with it, before the raw text; nothing when left out. */
  opening?: Opening;
  /** What stands elsewhere and may be said again, mixed with what the model says; nothing when left out. */
  prior?: () => CopyPrior;
  stopTokenIds: number[];
  /** Texts beside the prompt that the answer may repeat, the likeliest last. */
  draftSources?: () => readonly (readonly number[])[];
  /**
   * How sure the model has to be of what is shown; its log-probabilities are asked for then. All is shown when left
   * out.
   */
  confidence?: ConfidenceLimits;
  /** People read it: where it ends because it may have no more tokens, that is said. */
  isProse?: true;
  /** Pure; `finished` when no more raw text will come. */
  shape: (rawText: string, finished: boolean) => Shaped;
  /** What the user should know of the prompt: text left out. */
  notes: string[];
  /** Shown instead, without running the model. */
  known?: KnownAnswer;
}

/**
 * The task's defaults for what is not given, and never more tokens than the context leaves. Whether values make sense
 * is
 * the sequence's to check. Throws `contextTooLong`.
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
    temperature: 0,
    topP: 1,
    topK: 0,
    repetitionPenalty: 1,
    seed: 0,
    maxTokens: 128,
    stop: [],
    ignoreEos: false,
    logprobs: false,
    topLogprobs: 0,
    ...withoutUndefined(defaults),
    ...withoutUndefined(given ?? {}),
  };
  // Whoever asks twice with temperature wants two answers.
  const seed = given?.seed ?? defaults.seed ?? (wanted.temperature > 0 ? Math.floor(Math.random() * 2 ** 32) : 0);
  return { ...wanted, seed, maxTokens: wanted.maxTokens > left ? left : wanted.maxTokens };
}

/** Tokens to keep free for an answer of that length: never most of the context. */
export function answerRoom(maxTokens: number, contextTokens: number): number {
  return Math.max(1, Math.min(maxTokens, Math.floor(contextTokens / 6)));
}

function withoutUndefined(params: SamplingParams): SamplingParams {
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));
}

/**
 * @param numBlock tokens of the file block. @param texts behind it, in order, counted from its end. @param fewest
 * tokens of a text that is worth it.
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
 * Control tokens in a text prompt are read as such: whoever writes a raw prompt means them. What the model's tokenizer
 * puts before every text (its BOS) comes first, unless the text brings it itself. Ids stay as given. Throws
 * `badRequest`.
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
