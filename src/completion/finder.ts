/**
 * The order in which a completion is looked up: the text being typed through, past completions, the running request, a
 * new request. Waits for the engine as long as the editor does. Does not show later results: lateDisplay.ts does.
 */
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import type { Done } from '../client/connection.ts';
import type { Completion, CompletionCache } from './completionCache.ts';
import type { LateDisplay } from './lateDisplay.ts';
import { carryOver, type Insertion, type Place } from './place.ts';
import type { CompletionRecord, SilentReason } from './record.ts';
import type { CompletionRequest } from './completionRequest.ts';
import type { CompletionRequests } from './completionRequests.ts';
import { DEADLINE_MS, EXPLICIT_DEADLINE_MS, silence, type Trigger } from './trigger.ts';

const NOT_READY = 'not ready before the editor stops waiting; shown when ready' satisfies SilentReason;

/** A completion request of the editor. */
export interface Question {
  document: vscode.TextDocument;
  version: number;
  line: number;
  /** The actual position in the document. */
  origin: Place;
  /** What accepting the suggestion selected in the list would add at `origin`. */
  selected: string;
  /** `origin` with `selected` inserted: the completion continues from here. */
  place: Place;
  /** By performance.now(). */
  started: number;
  /** Aborts when the editor or the extension no longer wants an answer. */
  signal: AbortSignal;
  /** Why no completion may be requested now; undefined if one may. */
  refusal(): Promise<SilentReason | undefined>;
}

export interface Found {
  insertion: Insertion;
  /** The whole completion; undefined while it is being written. */
  completion?: Completion;
}

export class Finder {
  readonly #requests: CompletionRequests;
  readonly #cache: CompletionCache;
  readonly #late: LateDisplay;
  readonly #trigger: Trigger;
  readonly #settings: Settings;
  /**
   * What the editor was given last. It stays on the screen while the user types through it, even if the cache has
   * another one.
   */
  #shown: Completion | undefined;
  /** The newest question. An older one at the same place may be about another suggestion of the list. */
  #latest: Question | undefined;

  constructor(
    requests: CompletionRequests,
    cache: CompletionCache,
    late: LateDisplay,
    trigger: Trigger,
    settings: Settings,
  ) {
    this.#requests = requests;
    this.#cache = cache;
    this.#late = late;
    this.#trigger = trigger;
    this.#settings = settings;
  }

  /** Records what the editor is given; undefined for a partial text, or to forget it. */
  show(completion: Completion | undefined): void {
    this.#shown = completion;
  }

  /** The text to show, or the reason why there is none. Writes the source and the cost to `record`. */
  async find(question: Question, record: CompletionRecord): Promise<Found | SilentReason> {
    const { document, place, version, started, signal } = question;
    this.#latest = question;
    const known = this.#known(place, record);
    if (known) return known;
    let request = this.#requests.join(place);
    if (record.trigger === 'refresh') {
      // What came late may not continue the suggestion that is selected now.
      if (!request) void this.#requestAgain(question, record);
      return (request && this.#part(request, question, record)) ?? NOT_READY;
    }
    if (request?.agreement(place) !== 'agrees') {
      const delay = this.#trigger.delay(
        place.docId,
        question.line,
        this.#settings.current.completion.debounceMs,
        record.trigger === 'explicit',
      );
      // The editor does not always cancel. A result computed after an edit would belong to another text.
      if (!(await silence(delay, signal)) || document.version !== version || document.isClosed)
        return 'superseded by further typing';
      record.waitedMs = performance.now() - started;
      const since = this.#known(place, record);
      if (since) return since;
      request = this.#requests.join(place);
    }
    record.source = request ? (request.purpose === 'ahead' ? 'computed ahead' : 'the running request') : 'engine';
    request ??= this.#start(question, record);
    for (;;) {
      const patience = this.#patience(record);
      const outcome = await request.settle(place, patience - (performance.now() - started), signal);
      // On a busy machine the editor may stop waiting before this timer fires. After a cursor move it does not want the
      // answer.
      const isLate =
        outcome === 'deadline' ||
        (outcome === 'cancelled' && performance.now() - started >= patience && isStillAt(question));
      if (isLate) return this.#part(request, question, record) ?? NOT_READY;
      if (outcome === 'cancelled') {
        this.#requests.leave(request, document, version);
        return 'superseded by further typing';
      }
      if (outcome === 'ended') {
        const done = request.done;
        if (!done || request.aborted || done.finishReason === 'abort' || document.version !== version)
          return 'superseded by further typing';
        noteCost(record, done);
        const completion = { ...request.place, insert: request.text };
        const insertion = wantsMore(done, record) ? undefined : carryOver(completion, completion.insert, place);
        if (insertion) return { insertion, completion: this.#cache.lookup(place)?.completion ?? completion };
        if (request.place.offset === place.offset && !wantsMore(done, record))
          return done.suppressed ? 'the confidence of the model is too low here' : 'the model has nothing to add here';
      }
      // The running request writes another text, or all of it has been typed.
      if (document.version !== version) return 'superseded by further typing';
      record.source = 'engine';
      request = this.#start(question, record);
    }
  }

  #start({ document, origin, selected }: Question, { trigger }: CompletionRecord): CompletionRequest {
    return this.#requests.start(document, origin, {
      purpose: 'ask',
      given: selected,
      showLowConfidence: trigger === 'explicit',
    });
  }

  #known(place: Place, record: CompletionRecord): Found | undefined {
    const shown = this.#shown;
    const known = this.#cache.lookup(place);
    if (wantsMore(known?.completion ?? {}, record)) return undefined;
    const typed =
      shown && shown.offset <= place.offset && record.trigger !== 'refresh'
        ? this.#cache.left(shown, place)
        : undefined;
    if (shown && typed) {
      record.source = 'typed as suggested';
      // The cache may hold the same text together with other candidates.
      return known?.insertion.text === typed.text ? known : { insertion: typed, completion: shown };
    }
    if (known) record.source = known.completion.ahead ? 'computed ahead' : 'a past completion';
    return known;
  }

  /** The text that an unfinished request has so far. The rest is shown when it is ready. */
  #part(request: CompletionRequest, question: Question, record: CompletionRecord): Found | undefined {
    const insertion = request.rest(question.place);
    const found = insertion?.text.trim() ? { insertion } : undefined;
    this.#late.watch(request, question.document, found ? request.text : '', () => {
      const { done } = request;
      if (done && done.finishReason !== 'abort') {
        noteCost(record, done);
        if (!found && !done.text)
          record.reason = done.suppressed
            ? 'the confidence of the model is too low here'
            : 'the model has nothing to add here';
      }
      if (!found && endedForAnotherPlace(request, question.place)) void this.#requestAgain(question, record);
    });
    if (found) record.source = 'engine, first part';
    return found;
  }

  /** Requests a text for the place of a question that was answered already. The editor does not ask again there. */
  async #requestAgain(question: Question, record: CompletionRecord): Promise<void> {
    if (!this.#isWanted(question)) return;
    const refusal = await question.refusal();
    if (refusal) record.reason = refusal;
    else if (this.#isWanted(question))
      // The user may have asked by hand meanwhile.
      this.#part(this.#requests.join(question.place) ?? this.#start(question, record), question, record);
  }

  #isWanted(question: Question): boolean {
    return question === this.#latest && isStillAt(question);
  }

  /**
   * A completion asked for by hand may take longer. The editor does not ask again at the same place, so an early empty
   * answer would be final.
   */
  #patience(record: CompletionRecord): number {
    return record.trigger === 'explicit' ? EXPLICIT_DEADLINE_MS : DEADLINE_MS;
  }
}

/** A completion asked for by hand also shows text of low confidence. */
function wantsMore({ suppressed }: Pick<Completion, 'suppressed'>, { trigger }: CompletionRecord): boolean {
  return suppressed === true && trigger === 'explicit';
}

/** Whether a request of an earlier place has ended without a text for `place`. */
function endedForAnotherPlace(request: CompletionRequest, place: Place): boolean {
  if (request.place.offset === place.offset) return false;
  // It is aborted as soon as its text contradicts what was typed.
  if (request.agreement(place) === 'diverged') return true;
  return request.done !== undefined && request.done.finishReason !== 'abort' && !request.rest(place)?.text.trim();
}

/** Whether text and cursor are unchanged since the question. */
function isStillAt({ document, version, origin }: Question): boolean {
  const editor = vscode.window.activeTextEditor;
  return (
    editor?.document === document &&
    document.version === version &&
    document.offsetAt(editor.selection.active) === origin.offset
  );
}

function noteCost(record: CompletionRecord, { usage, timings, diagnostics }: Done): void {
  Object.assign(record, { usage, timings, diagnostics });
}
