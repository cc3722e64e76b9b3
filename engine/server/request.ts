/**
 * What a `generate` message has become: its sequence's text shaped for showing, sent as `chunk`s, and its end. Makes sure
 * that exactly one `done` or `error` is sent.
 */
import { t } from '@vscode/l10n';
import type { RequestError } from '../protocol/errors.ts';
import type { EngineMessage } from '../protocol/messages.ts';
import type { FinishReason, Timings, TokenLogprob, Usage } from '../protocol/tasks.ts';
import type { GeneratedToken } from '../sequence/sequence.ts';
import { Confidence } from '../tasks/confidence.ts';
import type { PreparedRequest } from '../tasks/preparedRequest.ts';

/** What a request, or one of its sequences, came to. */
export interface Outcome {
  finishReason: FinishReason;
  usage: Usage;
  timings: Timings;
}

/**
 * PURE: what the sequences of one request came to together. Their tokens are added up. They are asked at once: it has waited as long as
 * the one that waited least, and the time of a token is the mean over all of them. When the first token could be shown only the caller knows: 0.
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

export interface Presentation extends Pick<PreparedRequest, 'shape' | 'notes' | 'confidence' | 'isProse'> {
  /** Whether `topLogprobs` are reported. */
  withAlternatives: boolean;
}

export class Request {
  readonly requestId: string;
  readonly #presentation: Presentation;
  readonly #emit: (message: EngineMessage) => void;
  /** null: everything is shown. */
  readonly #confidence: Confidence | null;
  #raw = '';
  #shown = '';
  #tokenIds: number[] = [];
  #logprobs: number[] = [];
  #topLogprobs: TokenLogprob[][] = [];
  #sentTokens = 0;
  /** Why the text was cut while it streamed. */
  #note: string | undefined;
  #complete = false;
  /** More was to come, but not surely enough. */
  #givenUp = false;
  #ended = false;

  constructor(requestId: string, presentation: Presentation, emit: (message: EngineMessage) => void) {
    this.requestId = requestId;
    this.#presentation = presentation;
    this.#emit = emit;
    this.#confidence = presentation.confidence ? new Confidence(presentation.confidence) : null;
  }

  /** Takes one token and the text that it completes; true when the shown text is complete and decoding may stop. */
  add({ tokenId, text, logprob, topLogprobs }: GeneratedToken): boolean {
    this.#tokenIds.push(tokenId);
    if (logprob !== null) this.#logprobs.push(logprob);
    if (this.#presentation.withAlternatives) this.#topLogprobs.push(topLogprobs);
    this.#confidence?.push(text, logprob ?? 0);
    return this.addText(text);
  }

  /** Text without tokens of its own: made from several sequences, or held back in case it became a stop string. */
  addText(text: string): boolean {
    // What was held back in case it became a stop string may come after the shown text is complete.
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
    // What ends where it may have no more tokens, or is given up, has said what it had to say only as far as its lines are whole.
    if (finishReason === 'stop') this.#confidence?.settle();
    const shaped = this.#presentation.shape(this.#sure, true);
    this.#show(shaped.text);
    const suppressed =
      this.#givenUp || (this.#confidence !== null && this.#presentation.shape(this.#raw, true).text !== this.#shown);
    const doubt =
      this.#shown === ''
        ? t('the confidence of the model is too low here')
        : t('cut where the confidence of the model is too low');
    // That there is nothing is no fault of the model's where it was stopped.
    const stoppedBefore = finishReason === 'abort' && this.#shown === '';
    const note = suppressed ? doubt : stoppedBefore ? this.#note : (shaped.note ?? this.#note);
    const cut =
      this.#presentation.isProse && finishReason === 'length'
        ? [t('cut off after {0} tokens', usage.completionTokens)]
        : [];
    this.#ended = true;
    this.#emit({
      type: 'done',
      requestId: this.requestId,
      finishReason,
      text: this.#shown,
      tokenIds: this.#tokenIds,
      logprobs: this.#logprobs,
      ...(this.#presentation.withAlternatives ? { topLogprobs: this.#topLogprobs } : {}),
      usage,
      timings,
      diagnostics: [...this.#presentation.notes, ...(note === undefined ? [] : [note]), ...cut],
      ...(suppressed ? { suppressed } : {}),
      ...(shaped.source ? { source: shaped.source } : {}),
    });
  }

  fail(error: RequestError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#emit({ type: 'error', requestId: this.requestId, code: error.code, message: error.message });
  }

  /** What has been written, as far as it may be shown. */
  get #sure(): string {
    return this.#confidence ? this.#raw.slice(0, this.#confidence.numSure) : this.#raw;
  }

  /** Sends what has been added to the shown text; the tokens that made it travel with it. */
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
