/**
 * One request to the engine. It may outlive the editor's question, because typing along its text keeps it alive. Owns
 * its text and its waiters. Does not decide when to start or abort: completionRequests.ts does.
 */
import type { Done } from '../client/connection.ts';
import { carryOver, type Insertion, type Place, placeAfter, type Agreement, agreement, withLineEnds } from './place.ts';

/**
 * `ask`: for a question of the editor. `other`: one more candidate at the same place. `ahead`: for after an acceptance.
 * `warm`: to compute the prompt only.
 */
export type Purpose = 'ask' | 'other' | 'ahead' | 'warm';

/** Why waiting ended. */
export type Outcome = 'ended' | 'diverged' | 'deadline' | 'cancelled';

export class CompletionRequest {
  /** The position when the document's text was read. */
  readonly origin: Place;
  /** Text taken as already inserted there. */
  readonly given: string;
  /** Where it writes: `origin` with `given` inserted. */
  readonly place: Place;
  readonly purpose: Purpose;
  readonly #eol: '\n' | '\r\n';
  readonly #abort = new AbortController();
  readonly #hurry = new AbortController();
  readonly #listeners = new Set<() => void>();
  #raw = '';
  #done: Done | undefined;
  #failure: unknown;
  #ended = false;
  /** The message has been sent: from now on the engine's prompt is that of `origin`. */
  sent = false;
  /** Number of the editor's questions that wait for it. */
  numWaiting = 0;
  /** The editor was answered before the end. Later text is shown when it is ready. */
  late = false;

  constructor(origin: Place, given: string, purpose: Purpose, eol: '\n' | '\r\n') {
    this.origin = origin;
    this.given = given;
    this.place = placeAfter(origin, given);
    this.purpose = purpose;
    this.#eol = eol;
  }

  /** Whether its text may answer a question at its place. */
  get answers(): boolean {
    return this.purpose === 'ask' || this.purpose === 'ahead';
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Aborts when the editor begins to wait for it. */
  get hurry(): AbortSignal {
    return this.#hurry.signal;
  }

  get aborted(): boolean {
    return this.#abort.signal.aborted;
  }

  /** Its result; undefined while it runs. */
  get done(): Done | undefined {
    return this.#done;
  }

  /** It has a result, has failed or was aborted. */
  get ended(): boolean {
    return this.#ended || this.aborted;
  }

  /** What it has written so far, with the document's line ends. */
  get text(): string {
    return withLineEnds(this.#done?.text ?? this.#raw, this.#eol);
  }

  add(chunk: string): void {
    this.#raw += chunk;
    this.#notify();
  }

  end(done: Done): void {
    this.#done = done;
    this.#ended = true;
    this.#notify();
  }

  fail(error: unknown): void {
    this.#failure = error;
    this.#ended = true;
    this.#notify();
  }

  /** Aborts it in the engine and notifies the waiting callers. */
  abort(): void {
    this.#abort.abort();
    this.#notify();
  }

  agreement(place: Place): Agreement {
    return agreement(this.place, this.text, place);
  }

  /** What there is to insert at `place` so far. */
  rest(place: Place): Insertion | undefined {
    return carryOver(this.place, this.text, place);
  }

  /** Calls `listener` at each new text and at the end. */
  onChange(listener: () => void): { dispose(): void } {
    this.#listeners.add(listener);
    return { dispose: () => this.#listeners.delete(listener) };
  }

  /**
   * Waits until it has ended or cannot serve `place`, at most `ms` milliseconds. Throws the error of a failed request.
   */
  async settle(place: Place, ms: number, signal: AbortSignal): Promise<Outcome> {
    this.numWaiting++;
    this.#hurry.abort();
    try {
      return await new Promise<Outcome>((resolve, reject) => {
        const leave = (outcome: Outcome) => {
          clearTimeout(timer);
          subscription.dispose();
          signal.removeEventListener('abort', cancelled);
          resolve(outcome);
        };
        const cancelled = () => leave('cancelled');
        const look = () => {
          if (this.#failure !== undefined) {
            reject(this.#failure);
            leave('ended');
          } else if (this.ended) leave('ended');
          else if (this.agreement(place) === 'diverged') leave('diverged');
        };
        const timer = setTimeout(() => leave('deadline'), Math.max(0, ms));
        const subscription = this.onChange(look);
        signal.addEventListener('abort', cancelled);
        if (signal.aborted) cancelled();
        else look();
      });
    } finally {
      this.numWaiting--;
    }
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
