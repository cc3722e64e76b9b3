/**
 * What a `generate` message has become: its sequence's text shaped for showing, sent as `chunk`s, and its end. Makes sure
 * that exactly one `done` or `error` is sent.
 */
import type { RequestError } from './errors.ts';
import type { EngineMessage, FinishReason, Timings, TokenLogprob, Usage } from './protocol.ts';
import type { GeneratedToken } from './sequence.ts';
import type { PreparedRequest } from './tasks/preparedRequest.ts';

/** What a request, or one of its sequences, came to. */
export interface Outcome {
  finishReason: FinishReason;
  usage: Usage;
  timings: Timings;
}

export interface Presentation extends Pick<PreparedRequest, 'shape' | 'notes'> {
  /** Whether `topLogprobs` are reported. */
  withAlternatives: boolean;
}

export class Request {
  readonly requestId: string;
  readonly #presentation: Presentation;
  readonly #emit: (message: EngineMessage) => void;
  #raw = '';
  #shown = '';
  #tokenIds: number[] = [];
  #logprobs: number[] = [];
  #topLogprobs: TokenLogprob[][] = [];
  #sentTokens = 0;
  /** Why the text was cut while it streamed. */
  #note: string | undefined;
  #complete = false;
  #ended = false;

  constructor(requestId: string, presentation: Presentation, emit: (message: EngineMessage) => void) {
    this.requestId = requestId;
    this.#presentation = presentation;
    this.#emit = emit;
  }

  /** Takes one token and the text that it completes; true when the shown text is complete and decoding may stop. */
  add({ tokenId, text, logprob, topLogprobs }: GeneratedToken): boolean {
    this.#tokenIds.push(tokenId);
    if (logprob !== null) this.#logprobs.push(logprob);
    if (this.#presentation.withAlternatives) this.#topLogprobs.push(topLogprobs);
    return this.addText(text);
  }

  /** Text without tokens of its own: made from several sequences, or held back in case it became a stop string. */
  addText(text: string): boolean {
    // What was held back in case it became a stop string may come after the shown text is complete.
    if (this.#complete) return true;
    this.#raw += text;
    const shaped = this.#presentation.shape(this.#raw, false);
    this.#show(shaped.text);
    this.#note ??= shaped.note;
    this.#complete = shaped.stop;
    return shaped.stop;
  }

  finish({ finishReason, usage, timings }: Outcome): void {
    if (this.#ended) return;
    const shaped = this.#presentation.shape(this.#raw, true);
    this.#show(shaped.text);
    const note = shaped.note ?? this.#note;
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
      diagnostics: [...this.#presentation.notes, ...(note === undefined ? [] : [note])],
    });
  }

  fail(error: RequestError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#emit({ type: 'error', requestId: this.requestId, code: error.code, message: error.message });
  }

  /** Sends what has been added to the shown text; the tokens that made it travel with it. */
  #show(text: string): void {
    if (!text.startsWith(this.#shown)) throw new Error(`the shown text of ${this.requestId} changed from ${JSON.stringify(this.#shown)} to ${JSON.stringify(text)}`);
    const piece = text.slice(this.#shown.length);
    if (!piece) return;
    this.#shown = text;
    this.#emit({ type: 'chunk', requestId: this.requestId, text: piece, tokenIds: this.#tokenIds.slice(this.#sentTokens), logprobs: this.#logprobs.slice(this.#sentTokens) });
    this.#sentTokens = this.#tokenIds.length;
  }
}
