/**
 * A sequence: the engine's state of one request, from its prompt's token ids to the one `onFinish` or `onError` that
 * ends it. Owns its tokens, its stop conditions, its text and its times; knows neither cache nor queue.
 */
import { RequestError } from '../protocol/errors.ts';
import type { Lane } from '../model/batch.ts';
import type { OtherNext } from './blending.ts';
import { clipped, laneIds, type TokenRange } from '../kv/laneIds.ts';
import type { FinishReason, Priority, SamplingParams, Timings, TokenLogprob } from '../protocol/tasks.ts';
import type { Sampled } from './sampler.ts';
import { numTakenOver } from '../kv/approx/approximations.ts';
import { StopStrings } from './stopStrings.ts';

export type SequenceStatus = 'waiting' | 'running' | 'finished';

/** Token ids to text, never half a character: what cannot be shown yet comes with a later token or with `flush`. */
export interface Detokenizer {
  push(tokenId: number): string;
  flush(): string;
}

/** What a generated text has to begin with; it is not part of the answer. */
export interface ForcedStart {
  /** Tokens of which one has to come next; null: any. */
  readonly allowed: readonly number[] | null;
  /** Whether all of it has been said. */
  readonly isSaid: boolean;
  push(tokenId: number): void;
  /** The next text of the tokens without what it has to begin with. */
  hide(text: string): string;
}

/** What may come next besides what the model says, as the text goes on. */
export interface Prior {
  next(): OtherNext | null;
  /** `answered`: what the token has added to the answer, without what that has to begin with. */
  push(tokenId: number, answered: string): void;
}

export interface GeneratedToken {
  tokenId: number;
  /** null where it was not asked for. */
  logprob: number | null;
  /** As many as asked for. */
  topLogprobs: TokenLogprob[];
  /** Text that may be shown now; often empty, sometimes of several tokens. */
  text: string;
}

export interface SequenceEvents {
  onToken(token: GeneratedToken): void;
  /** `rest`: text held back when the end came from outside (abort, no memory); otherwise empty. */
  onFinish(reason: FinishReason, rest: string): void;
  onError(error: RequestError): void;
}

export interface SequenceOptions extends SequenceEvents {
  id: string;
  /** On whose behalf: those of one client share what fairness gives it. Its own when left out. */
  clientId?: string;
  priority: Priority;
  promptIds: readonly number[];
  /** What of the prompt is for the prefill lane, in order and apart; none when left out. */
  prefill?: readonly TokenRange[];
  sampling?: SamplingParams;
  /** Tokens that end the generation; they count as generated and have no text. */
  eosIds: Iterable<number>;
  detokenizer: Detokenizer;
  /** Anything when left out. */
  opening?: ForcedStart;
  /** Asked for once the answer begins; the model alone decides when left out. */
  prior?: () => Prior;
  /** Texts beside the prompt that the answer may repeat, the likeliest last; asked for once the answer has begun. null: nothing is drafted. */
  draftSources?: (() => readonly (readonly number[])[]) | null;
}

const NUMBERS = [
  'temperature',
  'topP',
  'topK',
  'minP',
  'repetitionPenalty',
  'seed',
  'maxTokens',
  'topLogprobs',
] as const;

/** Fills in the defaults: greedy, 128 tokens. Throws a RequestError on values that make no sense. */
export function resolveSampling(sampling: SamplingParams = {}): Required<SamplingParams> {
  const params: Required<SamplingParams> = {
    temperature: sampling.temperature ?? 0,
    topP: sampling.topP ?? 1,
    topK: sampling.topK ?? 0,
    minP: sampling.minP ?? 0,
    repetitionPenalty: sampling.repetitionPenalty ?? 1,
    seed: sampling.seed ?? Math.floor(Math.random() * 2 ** 32),
    maxTokens: sampling.maxTokens ?? 128,
    stop: sampling.stop ?? [],
    ignoreEos: sampling.ignoreEos ?? false,
    logprobs: sampling.logprobs ?? false,
    topLogprobs: sampling.topLogprobs ?? 0,
  };
  const demand = (name: keyof SamplingParams, holds: boolean, what: string): void => {
    if (!holds) throw new RequestError('badRequest', `${name} is ${String(params[name])}; it must be ${what}.`);
  };
  const isNumber = (value: unknown): value is number => typeof value === 'number';
  for (const name of NUMBERS) demand(name, isNumber(params[name]), 'a number');
  demand(
    'stop',
    Array.isArray(params.stop) && params.stop.every((text) => typeof text === 'string'),
    'a list of strings',
  );
  demand('ignoreEos', typeof params.ignoreEos === 'boolean', 'true or false');
  demand('logprobs', typeof params.logprobs === 'boolean', 'true or false');
  demand('temperature', params.temperature >= 0 && params.temperature < Infinity, 'a number from 0');
  demand('topP', params.topP > 0 && params.topP <= 1, 'above 0 and at most 1');
  demand('topK', Number.isInteger(params.topK) && params.topK >= 0, 'a whole number from 0');
  demand('minP', params.minP >= 0 && params.minP <= 1, 'between 0 and 1');
  demand('repetitionPenalty', params.repetitionPenalty > 0 && params.repetitionPenalty < Infinity, 'above 0');
  demand('seed', Number.isSafeInteger(params.seed), 'a whole number');
  demand('maxTokens', Number.isInteger(params.maxTokens) && params.maxTokens >= 0, 'a whole number from 0');
  demand(
    'topLogprobs',
    Number.isInteger(params.topLogprobs) && params.topLogprobs >= 0 && params.topLogprobs <= 100,
    'a whole number from 0 to 100',
  );
  return params;
}

export class Sequence {
  readonly id: string;
  readonly clientId: string;
  /** Changes where somebody begins to wait for what was computed ahead. Between steps. */
  priority: Priority;
  /** Prompt, then generated tokens. */
  readonly tokenIds: number[];
  readonly numPromptTokens: number;
  /** `tokenIds` as the cache knows them. */
  readonly cacheIds: number[];
  readonly sampling: Required<SamplingParams>;
  readonly draftSources: (() => readonly (readonly number[])[]) | null;
  status: SequenceStatus = 'waiting';
  /** Set by the engine: longest sequence of the model. */
  maxContext = Number.POSITIVE_INFINITY;
  /** Place in the order of arrival, set by the engine. */
  arrivalIndex = 0;
  /** Clock times in ms; NaN until it has happened. */
  arrivedAt = Number.NaN;
  startedAt = Number.NaN;
  firstTokenAt = Number.NaN;
  lastTokenAt = Number.NaN;
  /** Last time a step computed something for it, or its arrival. */
  lastServedAt = Number.NaN;
  /** Prompt tokens whose K/V rows this sequence did not have to compute itself. */
  cachedTokens = 0;
  /** It has had a partial lease, see LongContexts. */
  inParts = false;
  /** Prompt tokens that have had K/V rows at some time; preemption does not lower it. */
  numReached = 0;
  /** What of the prompt is for the prefill lane, in order and apart. */
  #prefill: readonly TokenRange[];
  readonly #eosIds: ReadonlySet<number>;
  readonly #detokenizer: Detokenizer;
  readonly #stops: StopStrings;
  readonly #events: SequenceEvents;
  readonly #opening: ForcedStart | undefined;
  readonly #makePrior: (() => Prior) | undefined;
  #prior: Prior | undefined;
  /** Generated tokens that say nothing but what the answer has to begin with. */
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
    this.#makePrior = options.prior;
  }

  /** The engine's bound on the tokens for the prefill lane; the first `computed`, which are there already, stay what they are. Between steps. */
  limitPrefill(most: number, computed = 0): void {
    const end = Math.max(most, computed);
    if (this.prefillEnd <= end) return;
    this.#prefill = clipped(this.#prefill, end);
    // Those before it may say that rows were taken over.
    const ids = laneIds(this.tokenIds, this.#prefill);
    for (let i = end; i < ids.length; i++) this.cacheIds[i] = ids[i]!;
  }

  /** No token from it on is computed in the prefill lane. */
  get prefillEnd(): number {
    return this.#prefill.at(-1)?.[1] ?? 0;
  }

  /** The lane that computes the token at `index`, whoever shares the step. */
  laneAt(index: number): Lane {
    return this.#prefill.some(([from, to]) => from <= index && index < to) ? 'prefill' : 'paged';
  }

  /** First token behind `index` that is for the other lane, or the number of tokens. */
  laneEnd(index: number): number {
    for (const [from, to] of this.#prefill) {
      if (index < from) return from;
      if (index < to) return to;
    }
    return this.tokenIds.length;
  }

  get numGenerated(): number {
    return this.tokenIds.length - this.numPromptTokens;
  }

  /** Generated tokens after the first one that counts; 0 or less before it. */
  get numAfterFirst(): number {
    return this.numGenerated - this.#numForced - 1;
  }

  /** Prompt tokens whose K/V rows were taken over from an older version of the text: an approximation. */
  get approximateTokens(): number {
    return numTakenOver(this.cacheIds, this.numReached);
  }

  /** Tokens that may still be generated. */
  get numLeft(): number {
    return Math.min(
      this.sampling.maxTokens + this.#numForced - this.numGenerated,
      this.maxContext - this.tokenIds.length,
    );
  }

  /** Whether all that is asked for is that the prompt be computed. */
  get promptOnly(): boolean {
    return this.sampling.maxTokens === 0;
  }

  /** Tokens of which the next one has to be one; null: any. */
  get allowedIds(): readonly number[] | null {
    return this.#opening?.allowed ?? null;
  }

  /** What may come next besides what the model says. */
  get copied(): OtherNext | null {
    this.#prior ??= this.#makePrior?.();
    return this.#prior?.next() ?? null;
  }

  /** Whether what it says is still what it has to begin with. */
  get isForced(): boolean {
    return this.#opening?.isSaid === false;
  }

  /** Takes a sampled token and reports it; returns why the generation ends with it, or null. `finish` is left to the caller. */
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
    const isLast = this.numLeft <= 0;
    let { text, stopped } = this.#stops.push(answered);
    if (!stopped && (isEos || isLast)) {
      const rest = this.#stops.push(this.#detokenizer.flush());
      stopped = rest.stopped;
      text += rest.text + this.#stops.flush();
    }
    this.#events.onToken({ ...sampled, text });
    return isEos || stopped ? 'stop' : isLast ? 'length' : null;
  }

  /** Ends the sequence with `onFinish`. */
  finish(reason: FinishReason): void {
    this.#end();
    this.#events.onFinish(reason, this.#stops.flush());
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

  #end(): void {
    if (this.status === 'finished') throw new Error(`Request ${this.id} ends twice.`);
    this.status = 'finished';
  }
}
