/**
 * The engine's state of one request, from the token ids of its prompt to the one `onFinish` or `onError` that ends it.
 * Owns its tokens, stop conditions, text and times. Does not know the cache or the queues.
 */
import { RequestError } from '../protocol/errors.ts';
import type { Lane } from '../model/batch.ts';
import { type OtherNext, resolveSampling, type Sampled } from './sampler.ts';
import { clipped, laneIds, type TokenRange } from '../kv/laneIds.ts';
import type { FinishReason, Priority, SamplingParams, Timings, TokenLogprob } from '../protocol/tasks.ts';
import { numTakenOver } from '../kv/approx/approximations.ts';
import { StopStrings } from './stopStrings.ts';

export type SequenceStatus = 'waiting' | 'running' | 'finished';

/** Turns token ids into text in whole characters. The rest comes with a later token or with `flush`. */
export interface Detokenizer {
  push(tokenId: number): string;
  flush(): string;
}

/** A text that the generated text must begin with. It is not part of the answer. */
export interface ForcedStart {
  /** The next token must be one of these; null: any. */
  readonly allowed: readonly number[] | null;
  /** Whether all of it has been generated. */
  readonly isSaid: boolean;
  push(tokenId: number): void;
  /** The next text of the tokens, without the forced start. */
  hide(text: string): string;
}

/** Splits off text that is no part of the answer, such as reasoning. */
export interface Aside {
  /** Whether the next token belongs to it, as far as is known. */
  readonly isOpen: boolean;
  /** Its tokens so far. They do not count as tokens of the answer. */
  readonly numTokens: number;
  /** Most of its tokens. The sequence ends with them. */
  readonly most: number;
  /** Takes the text of the next token. May hold text back. */
  push(text: string): { answer: string; reasoning: string };
  /** The text that is held back, when no more will come. */
  flush(): { answer: string; reasoning: string };
}

/** A distribution to blend into the model's. It changes with each token. */
export interface Prior {
  next(): OtherNext | null;
  /** `answered`: the text that the token has added to the answer, without the forced start. */
  push(tokenId: number, answered: string): void;
}

export interface GeneratedToken {
  tokenId: number;
  /** Null if it was not requested. */
  logprob: number | null;
  /** As many as requested. */
  topLogprobs: TokenLogprob[];
  /** Text that may be shown now. Often empty, sometimes the text of several tokens. */
  text: string;
  /** Text before the answer that is no part of it. */
  reasoning: string;
}

export interface SequenceEvents {
  onToken(token: GeneratedToken): void;
  /** `rest`: text held back when the sequence was ended from outside (abort, no memory); otherwise empty. */
  onFinish(reason: FinishReason, rest: string): void;
  onError(error: RequestError): void;
}

export interface SequenceOptions extends SequenceEvents {
  id: string;
  /** Requests of one client share its part of the service (see VirtualTokens). A client of its own when left out. */
  clientId?: string;
  priority: Priority;
  promptIds: readonly number[];
  /** Ranges of the prompt for the prefill lane, in order, not overlapping; none when left out. */
  prefill?: readonly TokenRange[];
  sampling?: SamplingParams;
  /** Tokens that end the generation; they count as generated and have no text. */
  eosIds: Iterable<number>;
  detokenizer: Detokenizer;
  /** No forced start when left out. */
  opening?: ForcedStart;
  /** The whole text is the answer when left out. */
  aside?: Aside;
  /** Called when the answer begins; nothing is blended in when left out. */
  prior?: () => Prior;
  /** Called when the answer has begun: other texts that it may repeat, the likeliest last. Null: no drafts. */
  draftSources?: (() => readonly (readonly number[])[]) | null;
}

export class Sequence {
  readonly id: string;
  readonly clientId: string;
  /** Changes between steps, when a user begins to wait for a sequence that was computed ahead. */
  priority: Priority;
  /** Prompt, then generated tokens. */
  readonly tokenIds: number[];
  readonly numPromptTokens: number;
  /** `tokenIds` as the cache knows them (see laneIds). */
  readonly cacheIds: number[];
  readonly sampling: Required<SamplingParams>;
  readonly draftSources: (() => readonly (readonly number[])[]) | null;
  status: SequenceStatus = 'waiting';
  /** Set by the engine: longest sequence of the model. */
  maxContext = Number.POSITIVE_INFINITY;
  /** Set by the engine (see ModelRunner). */
  hasOneLane = false;
  /** Place in the order of arrival, set by the engine. */
  arrivalIndex = 0;
  /** Clock times in ms; NaN until then. */
  arrivedAt = Number.NaN;
  startedAt = Number.NaN;
  firstTokenAt = Number.NaN;
  lastTokenAt = Number.NaN;
  /** Time of the last step that computed something for it, or of its arrival. */
  lastServedAt = Number.NaN;
  /** Prompt tokens with K/V rows from the cache. */
  cachedTokens = 0;
  /** It has had a partial lease (see LongContexts). */
  inParts = false;
  /** Prompt tokens that have had K/V rows at any time. Preemption does not lower it. */
  numReached = 0;
  /** Ranges of the prompt for the prefill lane, in order, not overlapping. */
  #prefill: readonly TokenRange[];
  readonly #eosIds: ReadonlySet<number>;
  readonly #detokenizer: Detokenizer;
  readonly #stops: StopStrings;
  readonly #events: SequenceEvents;
  readonly #opening: ForcedStart | undefined;
  readonly #aside: Aside | undefined;
  readonly #makePrior: (() => Prior) | undefined;
  #prior: Prior | undefined;
  /** Generated tokens of the forced start only. */
  #numForced = 0;

  constructor(options: SequenceOptions) {
    if (options.promptIds.length === 0) throw new RequestError('badRequest', 'The prompt is empty.');
    this.id = options.id;
    this.clientId = options.clientId ?? options.id;
    this.priority = options.priority;
    this.tokenIds = [...options.promptIds];
    this.numPromptTokens = this.tokenIds.length;
    this.#prefill = clipped(options.prefill ?? [], this.numPromptTokens);
    this.cacheIds = laneIds(this.tokenIds, this.#prefill);
    this.sampling = resolveSampling(options.sampling);
    this.draftSources = options.draftSources === undefined ? () => [] : options.draftSources;
    this.#eosIds = new Set(options.eosIds);
    this.#detokenizer = options.detokenizer;
    this.#stops = new StopStrings(this.sampling.stop);
    this.#events = options;
    this.#opening = options.opening;
    this.#aside = options.aside;
    this.#makePrior = options.prior;
  }

  /** Limits the tokens for the prefill lane. The first `computed` tokens have rows and keep their lane. */
  limitPrefill(most: number, computed = 0): void {
    const end = Math.max(most, computed);
    if (this.prefillEnd <= end) return;
    this.#prefill = clipped(this.#prefill, end);
    // Ids before `end` may mark rows that were taken over, so they stay.
    const ids = laneIds(this.tokenIds, this.#prefill);
    for (let i = end; i < ids.length; i++) this.cacheIds[i] = ids[i]!;
  }

  /** From this index on, no token is computed in the prefill lane. */
  get prefillEnd(): number {
    return this.#prefill.at(-1)?.[1] ?? 0;
  }

  /** The lane that computes the token at `index`. */
  laneAt(index: number): Lane {
    if (this.hasOneLane) return 'paged';
    return this.#prefill.some(([from, to]) => from <= index && index < to) ? 'prefill' : 'paged';
  }

  /** Index of the first token after `index` that is for the other lane, or the number of tokens. */
  laneEnd(index: number): number {
    for (const [from, to] of this.hasOneLane ? [] : this.#prefill) if (index < to) return index < from ? from : to;
    return this.tokenIds.length;
  }

  get numGenerated(): number {
    return this.tokenIds.length - this.numPromptTokens;
  }

  /** Generated tokens after the first token of the answer; not positive before it. */
  get numAfterFirst(): number {
    return this.numGenerated - this.#numForced - 1;
  }

  /** Prompt tokens whose K/V rows come from an older version of the text: an approximation. */
  get approximateTokens(): number {
    return numTakenOver(this.cacheIds, this.numReached);
  }

  /** Generated tokens of reasoning. */
  get numReasoned(): number {
    return this.#aside?.numTokens ?? 0;
  }

  /** Tokens that may still be generated. More when the model reasons. */
  get numLeft(): number {
    if (this.#aside?.isOpen && this.#aside.numTokens >= this.#aside.most) return 0;
    return Math.min(
      this.sampling.maxTokens + this.#numForced + this.numReasoned - this.numGenerated,
      this.maxContext - this.tokenIds.length,
    );
  }

  /** Whether the prompt is only computed, and nothing generated. */
  get promptOnly(): boolean {
    return this.sampling.maxTokens === 0;
  }

  /** The next token must be one of these; null: any. */
  get allowedIds(): readonly number[] | null {
    return this.#opening?.allowed ?? null;
  }

  /** The distribution to blend into the model's for the next token, or null. */
  get copied(): OtherNext | null {
    this.#prior ??= this.#makePrior?.();
    return this.#prior?.next() ?? null;
  }

  /** Whether the forced start is still being generated. */
  get isForced(): boolean {
    return this.#opening?.isSaid === false;
  }

  /** Appends a sampled token and reports it. Returns why the generation ends with it, or null. Does not `finish`. */
  append(sampled: Sampled, now: number): FinishReason | null {
    const { tokenId } = sampled;
    this.tokenIds.push(tokenId);
    this.cacheIds.push(tokenId);
    const wasForced = this.isForced;
    this.#opening?.push(tokenId);
    this.lastTokenAt = now;

    const isEos = this.#eosIds.has(tokenId) && !this.sampling.ignoreEos;
    const written = isEos ? '' : this.#detokenizer.push(tokenId);
    const answered = this.#opening?.hide(written) ?? written;
    this.#prior?.push(tokenId, answered);
    if (wasForced && answered === '') this.#numForced++;
    else if (Number.isNaN(this.firstTokenAt)) this.firstTokenAt = now;
    const split = this.#aside?.push(answered) ?? { answer: answered, reasoning: '' };
    const isLast = this.numLeft <= 0;
    let { text, stopped } = this.#stops.push(split.answer);
    if (!stopped && (isEos || isLast)) {
      const end = this.#flush();
      split.reasoning += end.reasoning;
      const rest = this.#stops.push(end.answer);
      stopped = rest.stopped;
      text += rest.text + this.#stops.flush();
    }
    this.#events.onToken({ ...sampled, text, reasoning: split.reasoning });
    return isEos || stopped ? 'stop' : isLast ? 'length' : null;
  }

  /** Ends the sequence with `onFinish`. */
  finish(reason: FinishReason): void {
    this.#end();
    this.#events.onFinish(reason, this.#stops.push(this.#aside?.flush().answer ?? '').text + this.#stops.flush());
  }

  /** Ends the sequence with `onError`. */
  fail(error: RequestError): void {
    this.#end();
    this.#events.onError(error);
  }

  timings(): Timings {
    const since = (time: number, from: number): number => (Number.isNaN(time) ? 0 : time - from);
    const { numAfterFirst } = this;
    return {
      queueMs: since(this.startedAt, this.arrivedAt),
      ttftMs: since(this.firstTokenAt, this.arrivedAt),
      tpotMs: numAfterFirst > 0 ? (this.lastTokenAt - this.firstTokenAt) / numAfterFirst : 0,
    };
  }

  /** Text of unfinished characters, and text that the aside holds back. */
  #flush(): { answer: string; reasoning: string } {
    const bytes = this.#detokenizer.flush();
    if (!this.#aside) return { answer: bytes, reasoning: '' };
    // Not another token: the text only ends.
    const { answer, reasoning } = this.#aside.flush();
    return this.#aside.isOpen ? { answer, reasoning: reasoning + bytes } : { answer: answer + bytes, reasoning };
  }

  #end(): void {
    if (this.status === 'finished') throw new Error(`Request ${this.id} ends twice.`);
    this.status = 'finished';
  }
}
