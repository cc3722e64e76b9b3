/** `Kvasir: Snooze Completions`: no automatic completions for a while. Ends with the time or with the window. */
import * as vscode from '../vscode.ts';

const CONTEXT_KEY = 'kvasir.snoozed';
const MINUTES = [5, 15, 60];
const MINUTE_MS = 60_000;

export class Snooze implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>();
  /** In milliseconds since 1970; infinite until the window is closed. */
  #until: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Fires when snoozing begins and ends. */
  get onDidChange(): vscode.Event<void> {
    return this.#changed.event;
  }

  get active(): boolean {
    return this.#until !== undefined;
  }

  /** When it ends; undefined when it has no end or is not active. */
  get until(): Date | undefined {
    return this.#until === undefined || this.#until === Number.POSITIVE_INFINITY ? undefined : new Date(this.#until);
  }

  /** Asks the user how long. */
  async choose(): Promise<void> {
    const t = vscode.l10n.t;
    const choices = [
      ...MINUTES.map((minutes) => ({ label: t('{0} minutes', minutes), minutes })),
      { label: t('Until the window is reloaded'), minutes: Number.POSITIVE_INFINITY },
    ];
    const chosen = await vscode.window.showQuickPick(choices, {
      title: t('Snooze completions'),
      placeHolder: t('How long to pause automatic completions'),
    });
    if (chosen) this.start(chosen.minutes);
  }

  start(minutes: number): void {
    this.#set(Date.now() + minutes * MINUTE_MS);
    if (Number.isFinite(minutes)) this.#timer = setTimeout(() => this.end(), minutes * MINUTE_MS);
  }

  end(): void {
    if (this.active) this.#set(undefined);
  }

  dispose(): void {
    this.end();
    this.#changed.dispose();
  }

  #set(until: number | undefined): void {
    clearTimeout(this.#timer);
    this.#until = until;
    void vscode.commands.executeCommand('setContext', CONTEXT_KEY, this.active);
    this.#changed.fire();
  }
}
