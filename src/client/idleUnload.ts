/**
 * Unloads the model when nobody has asked for anything for a while, so that an editor left open overnight holds no memory.
 * One timer while the engine is up and no request under way; none otherwise. Knows no engine: engineHost.ts says what happens.
 */
import * as vscode from '../vscode.ts';

/** An unfocused window's user is elsewhere: the model is kept for this share of the time, counted from when the focus went. */
const UNFOCUSED_SHARE = 1 / 3;

export class IdleUnload implements vscode.Disposable {
  readonly #minutes: () => number;
  readonly #unload: (minutes: number) => void;
  readonly #subscription: vscode.Disposable;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastUse = 0;
  /** There is something to unload, and nobody is using it. */
  #idle = false;
  #unfocusedSince: number | null;

  /** `minutes` without a use lead to `unload`; 0 is never. */
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

  /** A use of the engine has begun or ended; `numUses` are under way. */
  used(numUses: number): void {
    this.#lastUse = Date.now();
    this.#idle = numUses === 0;
    this.review();
  }

  /** There is nothing to unload. */
  stopped(): void {
    this.#idle = false;
    this.review();
  }

  /** The time may be another one now. */
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
