/**
 * The completion after the one that is on the screen, computed while the user reads: accepting is then followed by the next
 * one at once. One at a time, in the lowest class, only after a moment of quiet, never on battery, and nothing after a text
 * that is long enough to be thought over. It ends with the first key that goes another way (runs.ts).
 */
import type * as vscode from 'vscode';
import { ASK_RARELY_MS, type Battery } from './battery.ts';
import type { CompletionCache } from './cache.ts';
import type { Found, Question } from './finder.ts';
import { placeAfter } from './place.ts';
import type { Runs } from './runs.ts';

/** Typing through what is shown must not become a request for each key. */
const QUIET_MS = 150;
const MOST_LINES = 4;
const MOST_CHARACTERS = 240;

export class Ahead implements vscode.Disposable {
  readonly #runs: Runs;
  readonly #cache: CompletionCache;
  readonly #battery: Battery;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(runs: Runs, cache: CompletionCache, battery: Battery) {
    this.#runs = runs;
    this.#cache = cache;
    this.#battery = battery;
  }

  /** `found` is what the editor has just been given for `question`. */
  schedule({ document, origin, selected, version }: Question, { insertion, completion }: Found): void {
    this.cancel();
    const { text, replaces } = insertion;
    if (!completion || replaces > 0 || text.length > MOST_CHARACTERS || text.split('\n').length > MOST_LINES) return;
    const given = selected + text;
    const after = placeAfter(origin, given);
    if (this.#cache.lookup(after) || this.#runs.join(after)) return;
    const timer = setTimeout(async () => {
      if (
        (await this.#battery.ask(ASK_RARELY_MS)) ||
        this.#timer !== timer ||
        document.version !== version ||
        document.isClosed
      )
        return;
      this.#runs.abortAll('ahead');
      this.#runs.start(document, origin, { purpose: 'ahead', given });
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
