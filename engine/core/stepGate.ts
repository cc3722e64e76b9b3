/**
 * Keeps changes of the cache out of the time in which a step, or maintenance, runs. Actions that come meanwhile run as
 * soon
 * as it has ended. Does not know what they do.
 */

export class StepGate {
  #isBusy = false;
  #actions: (() => void)[] = [];
  /** Maintenance under way; it ends soon once there is work. */
  #maintenance: Promise<unknown> | null = null;

  /** Whether a step or maintenance is under way. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Whether actions wait for it to end. */
  get hasWaiting(): boolean {
    return this.#actions.length > 0;
  }

  /** Runs an action now, or when the step under way has ended. */
  between(action: () => void): void {
    if (this.#isBusy) this.#actions.push(action);
    else action();
  }

  /** Runs a step, after maintenance that is under way. @throws an error while another step is under way */
  async step(work: () => Promise<void>): Promise<void> {
    if (this.#maintenance) await this.#maintenance;
    if (this.#isBusy) throw new Error('A step is under way.');
    this.#isBusy = true;
    try {
      await work();
    } finally {
      this.#isBusy = false;
    }
    // Not after a failed step: the engine is of no use any more.
    this.#runActions();
  }

  /** Runs maintenance; steps wait for it. */
  async maintain<T>(work: () => Promise<T>): Promise<T> {
    this.#isBusy = true;
    const done = work();
    this.#maintenance = done.catch(() => {});
    try {
      return await done;
    } finally {
      this.#maintenance = null;
      this.#isBusy = false;
      this.#runActions();
    }
  }

  /** Forgets the actions that wait. */
  clear(): void {
    this.#actions = [];
  }

  #runActions(): void {
    for (const action of this.#actions.splice(0)) action();
  }
}
