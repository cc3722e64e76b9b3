/**
 * Finds several candidates for a completion asked for by hand, for the editor's "next suggestion" command. The first is
 * the most probable text. The others are sampled over the same cached prompt and go beyond one line only where the
 * model is confident, because samples are rarely coherent.
 */
import { candidateSampling } from '../../engine/protocol/tasks.ts';
import type { Completion, CompletionCache } from './completionCache.ts';
import type { Finder, Found, Question } from './finder.ts';
import { carryOver, type Insertion, type Place } from './place.ts';
import type { CompletionRecord, SilentReason } from './record.ts';
import type { CompletionRequest } from './completionRequest.ts';
import type { CompletionRequests } from './completionRequests.ts';
import { EXPLICIT_DEADLINE_MS, silence } from './trigger.ts';

/** Samples besides the most probable text. */
const NUM_OTHERS = 2;
/** How long the first candidate waits for the others. */
const OTHERS_MS = 700;

export class Alternatives {
  readonly #finder: Finder;
  readonly #requests: CompletionRequests;
  readonly #cache: CompletionCache;

  constructor(finder: Finder, requests: CompletionRequests, cache: CompletionCache) {
    this.#finder = finder;
    this.#requests = requests;
    this.#cache = cache;
  }

  /** Like Finder.find, with `others` in the completion if the samples are ready in time. */
  async find(question: Question, record: CompletionRecord): Promise<Found | SilentReason> {
    const { place, signal } = question;
    const stop = new AbortController();
    const stopped = () => stop.abort();
    signal.addEventListener('abort', stopped);
    const known = this.#cache.lookup(place)?.completion.others !== undefined;
    const sampling = known ? undefined : this.#sample(question, stop.signal);
    try {
      const found = await this.#finder.find(question, record);
      if (typeof found === 'string') stop.abort();
      if (typeof found === 'string' || !found.completion || found.insertion.replaces > 0) return found;
      if (found.completion.others || !sampling) return found;
      const completion: Completion = { ...place, insert: found.insertion.text };
      const others = sampling.then((texts) => {
        completion.others = [...new Set(texts)].filter((text) => text.trim() !== '' && text !== completion.insert);
        // The samples may be too late for this answer. The next one has them.
        if (!stop.signal.aborted) this.#cache.add(completion);
      });
      const inTime = await Promise.race([others.then(() => true), silence(OTHERS_MS, signal).then(() => false)]);
      return inTime ? { insertion: found.insertion, completion } : found;
    } finally {
      signal.removeEventListener('abort', stopped);
    }
  }

  async #sample({ document, origin, selected, place, version }: Question, signal: AbortSignal): Promise<string[]> {
    // Start after the first candidate, which computes the prompt.
    await new Promise((resolve) => setImmediate(resolve));
    if (signal.aborted || document.version !== version) return [];
    const requests = Array.from({ length: NUM_OTHERS }, (_, i) =>
      this.#requests.start(document, origin, {
        purpose: 'other',
        given: selected,
        sampling: candidateSampling(i + 1),
        showLowConfidence: 'line',
      }),
    );
    const end = () => {
      for (const request of requests) request.abort();
    };
    signal.addEventListener('abort', end);
    const text = async (request: CompletionRequest) =>
      (await request.settle(place, EXPLICIT_DEADLINE_MS, signal).catch(() => 'cancelled')) === 'ended' &&
      !request.aborted
        ? request.text
        : '';
    return await Promise.all(requests.map(text)).finally(() => signal.removeEventListener('abort', end));
  }
}

/** The other candidates that still fit at `place`, in order and without duplicates. */
export function otherInsertions(completion: Completion | undefined, place: Place, first: Insertion): Insertion[] {
  const left = (completion?.others ?? [])
    .map((insert) => carryOver(completion as Completion, insert, place))
    .filter((insertion) => insertion !== undefined);
  return left.filter(
    ({ text }, index) => text !== first.text && left.findIndex((other) => other.text === text) === index,
  );
}
