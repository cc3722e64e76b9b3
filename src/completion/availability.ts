/**
 * Decides whether anything may be offered, before any text is read: by settings, filters, snooze, battery and the
 * engine's state.
 */
import type * as vscode from 'vscode';
import type { Settings } from '../config.ts';
import type { EngineClient } from '../client/engineClient.ts';
import { excluded } from './filter.ts';
import type { CompletionRecord, SilentReason } from './record.ts';
import type { Snooze } from './snooze.ts';
import { silence } from './trigger.ts';

export class Availability {
  readonly #client: EngineClient;
  readonly #settings: Settings;
  readonly #snooze: Snooze;
  readonly #battery: Battery;

  constructor(client: EngineClient, settings: Settings, snooze: Snooze, battery: Battery) {
    this.#client = client;
    this.#settings = settings;
    this.#snooze = snooze;
    this.#battery = battery;
  }

  /** Why nothing is offered in this document, whatever its text; undefined where something may be. */
  async refusal(
    document: vscode.TextDocument,
    trigger: CompletionRecord['trigger'],
  ): Promise<SilentReason | undefined> {
    const settings = this.#settings.current.completion;
    const byItself = trigger === 'typing';
    if (byItself && !settings.enable) return 'automatic completions are off (kvasir.completion.enable)';
    if (byItself && this.#snooze.active) return 'completions are snoozed';
    const reason = excluded(document, settings);
    if (reason) return reason;
    const { state } = this.#client;
    if (state.kind === 'ready' && !state.model.canComplete) return 'the model cannot complete';
    if (state.kind === 'failed' && trigger !== 'explicit') return 'the engine is down';
    if (byItself && settings.pauseOnBattery && (await this.#battery.ask()))
      return 'the machine runs on battery (kvasir.completion.pauseOnBattery)';
    return undefined;
  }

  /** Whether a completion would be offered automatically. */
  get byItself(): boolean {
    return this.#settings.current.completion.enable && !this.#snooze.active;
  }
}

const ASK_EVERY_MS = 60_000;
export const ASK_RARELY_MS = 5 * 60_000;
/** The first call waits for the answer, but not longer than this. */
const PATIENCE_MS = 400;

/**
 * Whether the machine runs on battery. Asks the engine at most once a minute for pausing completions, less often for
 * background work, and never again where there is no battery.
 */
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
