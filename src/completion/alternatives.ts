/**
 * Several candidates for a completion that the user has asked for by hand, for the editor's own "next suggestion": first the
 * most probable text, then samples over the same cached prompt, whose further lines are shown only where the model is sure of them: drawn
 * ones are rarely of one piece. They are written at the same time; the first is never held back for long.
 */
import { candidateSampling } from '../../engine/protocol.ts';
import type { Completion, CompletionCache } from './cache.ts';
import type { Finder, Found, Question } from './finder.ts';
import { carryOver, type Insertion, type Place } from './place.ts';
import type { CompletionRecord, SilentReason } from './record.ts';
import type { Run } from './run.ts';
import type { Runs } from './runs.ts';
import { EXPLICIT_DEADLINE_MS, silence } from './trigger.ts';

/** Besides the most probable text. */
const NUM_OTHERS = 2;
/** How long the first candidate waits for the others. */
const OTHERS_MS = 700;

export class Alternatives {
  readonly #finder: Finder;
  readonly #runs: Runs;
  readonly #cache: CompletionCache;

  constructor(finder: Finder, runs: Runs, cache: CompletionCache) {
    this.#finder = finder;
    this.#runs = runs;
    this.#cache = cache;
  }

  /** Like Finder.find, with `others` in the completion where the model has any by then. */
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
        // The samples may have come too late for this answer; the next one has them.
        if (!stop.signal.aborted) this.#cache.add(completion);
      });
      const inTime = await Promise.race([others.then(() => true), silence(OTHERS_MS, signal).then(() => false)]);
      return inTime ? { insertion: found.insertion, completion } : found;
    } finally {
      signal.removeEventListener('abort', stopped);
    }
  }

  async #sample({ document, origin, selected, place, version }: Question, signal: AbortSignal): Promise<string[]> {
    // After the first candidate, which leads through the prompt.
    await new Promise((resolve) => setImmediate(resolve));
    if (signal.aborted || document.version !== version) return [];
    const runs = Array.from({ length: NUM_OTHERS }, (_, i) =>
      this.#runs.start(document, origin, {
        purpose: 'other',
        given: selected,
        sampling: candidateSampling(i + 1),
        unsure: 'line',
      }),
    );
    const end = () => {
      for (const run of runs) run.abort();
    };
    signal.addEventListener('abort', end);
    const text = async (run: Run) =>
      (await run.settle(place, EXPLICIT_DEADLINE_MS, signal).catch(() => 'cancelled')) === 'ended' && !run.aborted
        ? run.text
        : '';
    return await Promise.all(runs.map(text)).finally(() => signal.removeEventListener('abort', end));
  }
}

/** What else is left to insert at `place`, in order, each different. */
export function otherInsertions(completion: Completion | undefined, place: Place, first: Insertion): Insertion[] {
  const left = (completion?.others ?? [])
    .map((insert) => carryOver(completion as Completion, insert, place))
    .filter((insertion) => insertion !== undefined);
  return left.filter(
    ({ text }, index) => text !== first.text && left.findIndex((other) => other.text === text) === index,
  );
}
