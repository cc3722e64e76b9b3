/**
 * Whether the machine runs on battery. Asks the engine at most once a minute for pausing completions, less often for
 * background work, and never again where there is no battery.
 */
import type { EngineClient } from '../client/engineClient.ts';
import { silence } from './trigger.ts';

const ASK_EVERY_MS = 60_000;
export const ASK_RARELY_MS = 5 * 60_000;
/** The first call waits for the answer, but not longer than this. */
const PATIENCE_MS = 400;

export class Battery {
  readonly #client: Pick<EngineClient, 'machine'>;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;
  #onBattery: boolean | null = false;

  constructor(client: Pick<EngineClient, 'machine'>) {
    this.#client = client;
  }

  /** The last known state. Asks again first if the last answer is older than `everyMs`. */
  async ask(everyMs = ASK_EVERY_MS): Promise<boolean> {
    const first = this.#askedAt === Number.NEGATIVE_INFINITY;
    if (this.#onBattery !== null && performance.now() - this.#askedAt >= everyMs) {
      this.#askedAt = performance.now();
      this.#asking = this.#client.machine({ graphics: false }).then(
        ({ onBattery }) => {
          this.#onBattery = onBattery;
        },
        // An engine that is down is reported where a completion is asked for.
        () => {},
      );
    }
    if (first && this.#asking) await Promise.race([this.#asking, silence(PATIENCE_MS, new AbortController().signal)]);
    return this.#onBattery === true;
  }
}
