/** What a task becomes before it reaches the scheduler: token ids, resolved sampling, and how its raw text is shown. */
import { t } from '@vscode/l10n';
import type { KnownAnswer } from '../facts/ask.ts';
import { RequestError } from '../protocol/errors.ts';
import type { TokenRange } from '../kv/laneIds.ts';
import type { AnswerSource, SamplingParams } from '../protocol/tasks.ts';
import type { ConfidenceLimits } from './confidence.ts';
import type { CopyPrior } from '../text/copy/copyPrior.ts';
import type { Opening } from '../text/tokenizer/healing.ts';

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
