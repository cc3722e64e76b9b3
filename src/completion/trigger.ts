/** When a completion is asked for, and how long the editor is kept waiting. Pure except for the clock. */

/** VS Code drops inline completions after about 750 ms. What is ready by then is returned before. */
export const DEADLINE_MS = 680;
/** For a completion asked for by hand. The first one may have to load a model. */
export const EXPLICIT_DEADLINE_MS = 60_000;

/**
 * The first request on a line is sent at once, later ones after `debounceMs` without a key. The engine answers in much
 * less time than there is between two keys, so the debounce only has to keep a burst of keys from becoming a burst of
 * requests.
 */
export class Trigger {
  #docId = '';
  #line = -1;

  /** Milliseconds to wait before asking at this place. */
  delay(docId: string, line: number, debounceMs: number, explicit: boolean): number {
    const first = docId !== this.#docId || line !== this.#line;
    this.#docId = docId;
    this.#line = line;
    return first || explicit ? 0 : debounceMs;
  }
}

/** Resolves to true after `ms` milliseconds, to false as soon as `signal` aborts. */
export function silence(ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false);
  if (ms <= 0) return Promise.resolve(true);
  return new Promise((resolve) => {
    const end = (quiet: boolean) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', interrupted);
      resolve(quiet);
    };
    const interrupted = () => end(false);
    const timer = setTimeout(() => end(true), ms);
    signal.addEventListener('abort', interrupted);
  });
}
