/**
 * Unloads the model after a time without use, so that an editor left open overnight holds no memory. Runs one timer
 * while the engine is up and no request is running, none otherwise. Does not know the engine: engineHost.ts unloads.
 */
import * as vscode from '../vscode.ts';

/** Share of the time that applies while the window is unfocused, counted from the loss of focus. */
const UNFOCUSED_SHARE = 1 / 3;

export class IdleUnload implements vscode.Disposable {
  readonly #minutes: () => number;
  readonly #unload: (minutes: number) => void;
  readonly #subscription: vscode.Disposable;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastUse = 0;
  /** A model is loaded and not in use. */
  #idle = false;
  #unfocusedSince: number | null;

  /** Calls `unload` after `minutes` without use; 0 is never. */
  constructor(minutes: () => number, unload: (minutes: number) => void) {
    this.#minutes = minutes;
    this.#unload = unload;
    this.#unfocusedSince = vscode.window.state.focused ? null : Date.now();
    this.#subscription = vscode.window.onDidChangeWindowState(({ focused }) => {
      if (focused === (this.#unfocusedSince === null)) return;
      this.#unfocusedSince = focused ? null : Date.now();
      this.review();
    });
  }

  /** A use of the engine has begun or ended; `numUses` are running. */
  used(numUses: number): void {
    this.#lastUse = Date.now();
    this.#idle = numUses === 0;
    this.review();
  }

  /** Nothing is loaded any more. */
  stopped(): void {
    this.#idle = false;
    this.review();
  }

  /** Call it when the time limit may have changed. */
  review(): void {
    clearTimeout(this.#timer);
    const minutes = this.#minutes();
    if (!this.#idle || minutes === 0) return;
    const limit = minutes * 60_000;
    let due = this.#lastUse + limit;
    if (this.#unfocusedSince !== null)
      due = Math.min(due, Math.max(this.#lastUse, this.#unfocusedSince) + limit * UNFOCUSED_SHARE);
    this.#timer = setTimeout(
      () => {
        this.#idle = false;
        this.#unload(Math.round((Date.now() - this.#lastUse) / 60_000));
      },
      Math.max(0, due - Date.now()),
    );
  }

  dispose(): void {
    this.stopped();
    this.#subscription.dispose();
  }
}
