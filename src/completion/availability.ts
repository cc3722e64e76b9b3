/**
 * Whether anything may be offered, before any text is read: settings, filters, snooze, battery and the engine's state.
 */
import type * as vscode from 'vscode';
import type { Settings } from '../config.ts';
import type { EngineClient } from '../client/engineClient.ts';
import type { Battery } from './battery.ts';
import { excluded } from './filter.ts';
import type { CompletionRecord, SilentReason } from './record.ts';
import type { Snooze } from './snooze.ts';

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
