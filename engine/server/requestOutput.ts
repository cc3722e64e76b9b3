/**
 * The output of one request: shapes generated text and sends it as `chunk` messages, then exactly one `done` or
 * `error`. Does not know the engine.
 */
import { t } from '@vscode/l10n';
import type { RequestError } from '../protocol/errors.ts';
import type { EngineMessage } from '../protocol/messages.ts';
import { answerTokens, type FinishReason, type Timings, type TokenLogprob, type Usage } from '../protocol/tasks.ts';
import type { GeneratedToken } from '../sequence/sequence.ts';
import { Confidence } from '../tasks/confidence.ts';
import type { PreparedRequest } from '../tasks/preparedRequest.ts';

/** The result of a request, or of one of its sequences. */
export interface Outcome {
  finishReason: FinishReason;
  usage: Usage;
  timings: Timings;
}

/**
 * The outcome of a request with several sequences. Token counts are summed. The queue time is the shortest, because the
 * sequences are added together. `tpotMs` is the mean over all tokens. `ttftMs` is 0, because only the caller knows when
 * the first text was shown. A pure function.
 */
export function outcomeOf(parts: readonly Outcome[]): Outcome {
  const usage: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, blockTokens: 0 };
  let [generatingMs, numAfterFirst] = [0, 0];
  for (const {
    usage: { inParts, ...counts },
    timings,
  } of parts) {
    for (const key of Object.keys(counts) as (keyof typeof counts)[])
      usage[key] = (usage[key] ?? 0) + (counts[key] ?? 0);
    if (inParts) usage.inParts = true;
    const numTimed = Math.max(0, counts.completionTokens - 1);
    generatingMs += timings.tpotMs * numTimed;
    numAfterFirst += numTimed;
  }
  const queueMs = parts.length > 0 ? Math.min(...parts.map(({ timings }) => timings.queueMs)) : 0;
  const finishReason = parts.some((part) => part.finishReason === 'abort') ? 'abort' : 'stop';
  return {
    finishReason,
    usage,
    timings: { queueMs, ttftMs: 0, tpotMs: numAfterFirst > 0 ? generatingMs / numAfterFirst : 0 },
  };
}

/** The note on prose that reached its token limit. Empty for anything else. */
export function lengthNote(
  { isProse }: Pick<PreparedRequest, 'isProse'>,
  { finishReason, usage }: Pick<Outcome, 'finishReason' | 'usage'>,
): string[] {
  if (finishReason !== 'length') return [];
  const numTokens = answerTokens(usage);
  if (numTokens === 0 && usage.reasoningTokens)
    return [t('the model was still reasoning after {0} tokens', usage.reasoningTokens)];
  return isProse ? [t('cut off after {0} tokens', numTokens)] : [];
}

export interface Presentation
  extends Pick<PreparedRequest, 'shape' | 'notes' | 'confidence' | 'isProse' | 'tellsReasoning'> {
  /** Whether `topLogprobs` are reported. */
  withAlternatives: boolean;
}

export class RequestOutput {
  readonly requestId: string;
  readonly #presentation: Presentation;
  readonly #emit: (message: EngineMessage) => void;
  /** Holds back low-confidence text. Null shows everything. */
  readonly #confidence: Confidence | null;
  #raw = '';
  #shown = '';
  #reasoning = '';
  #tokenIds: number[] = [];
  #logprobs: number[] = [];
  #topLogprobs: TokenLogprob[][] = [];
  #sentTokens = 0;
  /** Why the text was cut while it was streamed. */
  #note: string | undefined;
  #complete = false;
  /** Stopped early, because the confidence fell too low. */
  #givenUp = false;
  #ended = false;

  constructor(requestId: string, presentation: Presentation, emit: (message: EngineMessage) => void) {
    this.requestId = requestId;
    this.#presentation = presentation;
    this.#emit = emit;
    this.#confidence = presentation.confidence ? new Confidence(presentation.confidence) : null;
  }

  /** Adds one token and its text. @returns whether the shown text is complete, so that decoding may stop */
  add({ tokenId, text, logprob, topLogprobs, reasoning }: GeneratedToken): boolean {
    this.#tokenIds.push(tokenId);
    if (logprob !== null) this.#logprobs.push(logprob);
    if (this.#presentation.withAlternatives) this.#topLogprobs.push(topLogprobs);
    this.#confidence?.push(text, logprob ?? 0);
    this.#tellReasoning(reasoning);
    return this.addText(text);
  }

  /** Adds text without tokens: from several sequences, or from the stop string filter. */
  addText(text: string): boolean {
    // The stop string filter may add text after the shown text is complete.
    if (this.#complete || this.#ended) return true;
    this.#raw += text;
    if (this.#confidence && this.#presentation.shape(this.#raw, false).stop) this.#confidence.settle();
    const shaped = this.#presentation.shape(this.#sure, false);
    this.#show(shaped.text);
    this.#note ??= shaped.note;
    this.#givenUp = !shaped.stop && this.#confidence?.isLost === true;
    this.#complete = shaped.stop || this.#givenUp;
    return this.#complete;
  }

  finish({ finishReason, usage, timings }: Outcome): void {
    if (this.#ended) return;
    // After a natural end the last line is complete. After a length limit or an abort it is not.
    if (finishReason === 'stop') this.#confidence?.settle();
    const shaped = this.#presentation.shape(this.#sure, true);
    this.#show(shaped.text);
    const suppressed =
      this.#givenUp || (this.#confidence !== null && this.#presentation.shape(this.#raw, true).text !== this.#shown);
    const doubt =
      this.#shown === ''
        ? t('the confidence of the model is too low here')
        : t('cut where the confidence of the model is too low');
    // An aborted request without text needs no note on the confidence.
    const stoppedBefore = finishReason === 'abort' && this.#shown === '';
    const note = suppressed ? doubt : stoppedBefore ? this.#note : (shaped.note ?? this.#note);
    const cut = lengthNote(this.#presentation, { finishReason, usage });
    this.#ended = true;
    this.#emit({
      type: 'done',
      requestId: this.requestId,
      finishReason,
      text: this.#shown,
      ...(this.#reasoning === '' ? {} : { reasoning: this.#reasoning }),
      tokenIds: this.#tokenIds,
      logprobs: this.#logprobs,
      ...(this.#presentation.withAlternatives ? { topLogprobs: this.#topLogprobs } : {}),
      usage,
      timings,
      diagnostics: [
        ...(shaped.isInstead ? [] : this.#presentation.notes),
        ...(note === undefined ? [] : [note]),
        ...cut,
      ],
      ...(suppressed ? { suppressed } : {}),
      ...(shaped.source ? { source: shaped.source } : {}),
    });
  }

  fail(error: RequestError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#emit({ type: 'error', requestId: this.requestId, code: error.code, message: error.message });
  }

  /** The part of the raw text that may be shown. */
  get #sure(): string {
    return this.#confidence ? this.#raw.slice(0, this.#confidence.numSure) : this.#raw;
  }

  #tellReasoning(reasoning: string): void {
    // Some models open and close it with nothing in it.
    if (!this.#presentation.tellsReasoning || this.#ended || (this.#reasoning + reasoning).trim() === '') return;
    const added = this.#reasoning === '' ? reasoning.trimStart() : reasoning;
    if (added === '') return;
    this.#reasoning += added;
    this.#emit({
      type: 'chunk',
      requestId: this.requestId,
      text: '',
      reasoning: added,
      tokenIds: [],
      logprobs: [],
    });
  }

  /** Sends the text that was added, with the tokens since the last chunk. */
  #show(text: string): void {
    if (!text.startsWith(this.#shown))
      throw new Error(
        `the shown text of ${this.requestId} changed from ${JSON.stringify(this.#shown)} to ${JSON.stringify(text)}`,
      );
    const piece = text.slice(this.#shown.length);
    if (!piece) return;
    this.#shown = text;
    this.#emit({
      type: 'chunk',
      requestId: this.requestId,
      text: piece,
      tokenIds: this.#tokenIds.slice(this.#sentTokens),
      logprobs: this.#logprobs.slice(this.#sentTokens),
    });
    this.#sentTokens = this.#tokenIds.length;
  }
}
