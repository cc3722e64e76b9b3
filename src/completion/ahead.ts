/**
 * Computes the completion after the shown one while the user reads, so that accepting shows the next one at once. One
 * request at a time, at the lowest priority, after a pause, never on battery, and not after a long text. A key that
 * leaves its text ends it (completionRequests.ts).
 */
import type * as vscode from 'vscode';
import { ASK_RARELY_MS, type Battery } from './battery.ts';
import type { CompletionCache } from './completionCache.ts';
import type { Found, Question } from './finder.ts';
import { placeAfter } from './place.ts';
import type { CompletionRequests } from './completionRequests.ts';

/** Typing through the shown text must not send a request for each key. */
const QUIET_MS = 150;
const MAX_LINES = 4;
const MAX_CHARACTERS = 240;

export class Ahead implements vscode.Disposable {
  readonly #requests: CompletionRequests;
  readonly #cache: CompletionCache;
  readonly #battery: Battery;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(requests: CompletionRequests, cache: CompletionCache, battery: Battery) {
    this.#requests = requests;
    this.#cache = cache;
    this.#battery = battery;
  }

  /** `found` is what the editor was just given for `question`. */
  schedule({ document, origin, selected, version }: Question, { insertion, completion }: Found): void {
    this.cancel();
    const { text, replaces } = insertion;
    if (!completion || replaces > 0 || text.length > MAX_CHARACTERS || text.split('\n').length > MAX_LINES) return;
    const given = selected + text;
    const after = placeAfter(origin, given);
    if (this.#cache.lookup(after) || this.#requests.join(after)) return;
    const timer = setTimeout(async () => {
      if (
        (await this.#battery.ask(ASK_RARELY_MS)) ||
        this.#timer !== timer ||
        document.version !== version ||
        document.isClosed
      )
        return;
      this.#requests.abortAll('ahead');
      this.#requests.start(document, origin, { purpose: 'ahead', given });
    }, QUIET_MS);
    this.#timer = timer;
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  dispose(): void {
    this.cancel();
  }
}
