/**
 * The engine's statistics for the status bar and the cache panel. Polls twice a second while the panel is visible,
 * during activity and shortly after; no timer otherwise. Never starts the engine.
 */
import * as vscode from '../vscode.ts';
import type { EngineStats, Gpu, MachineInfo } from '../../engine/protocol/stats.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { Samples } from './samples.ts';

export const POLL_MS = 500;
/** Idle work, which computes a file's block ahead, starts a second after an edit and takes a moment. */
const AFTERGLOW_MS = 5000;
/** Interval for reading the graphics memory in use, where that is possible and the panel is visible. */
const MACHINE_MS = 10_000;
/** Key in the global state: this machine's graphics, from the last query. */
const GPUS = 'kvasir.gpus';

export class Figures implements vscode.Disposable {
  readonly samples = new Samples();
  readonly #host: EngineHost;
  readonly #memento: vscode.Memento;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #subscriptions: vscode.Disposable[];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asking = false;
  /** Asked for again while a query was running: its answer may be older. */
  #again = false;
  #pollUntil = 0;
  #watched = false;
  #stats: EngineStats | null = null;
  #machine: MachineInfo | null = null;
  #machineAt = Number.NEGATIVE_INFINITY;
  #disposed = false;

  constructor(host: EngineHost, memento: vscode.Memento) {
    this.#host = host;
    this.#memento = memento;
    this.#subscriptions = [
      host.onState((state) => {
        if (state.kind === 'ready') this.#poll();
        else this.#stats = null;
        this.#changed.fire();
      }),
      host.onActivity((numPending) => {
        this.#poll();
        // Queried once for the hover; the result is remembered.
        if (numPending === 0 && this.gpus === undefined) void this.#askMachine();
      }),
    ];
  }

  /** Fires after each answer and when the engine's state changes. */
  get onChange(): vscode.Event<void> {
    return this.#changed.event;
  }

  /** null while no model is loaded. */
  get stats(): EngineStats | null {
    return this.#stats;
  }

  get machine(): MachineInfo | null {
    return this.#machine;
  }

  /** What is known, perhaps from an earlier session; undefined if never queried. */
  get gpus(): Gpu[] | undefined {
    return this.#machine?.gpus ?? this.#memento.get<Gpu[]>(GPUS);
  }

  /** Whether the panel is visible, which also needs the radix tree. */
  watch(watched: boolean): void {
    if (this.#watched === watched) return;
    this.#watched = watched;
    this.#ask(0);
  }

  /** Reads the current statistics once. */
  refresh(): void {
    this.#ask(0);
  }

  dispose(): void {
    this.#disposed = true;
    clearTimeout(this.#timer);
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#changed.dispose();
  }

  /** Polls until it has been quiet for a while. */
  #poll(): void {
    this.#pollUntil = Date.now() + AFTERGLOW_MS;
    if (this.#timer === undefined) this.#ask(0);
  }

  #ask(delayMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#disposed) return;
    if (this.#asking) {
      this.#again = true;
      return;
    }
    this.#timer = setTimeout(() => void this.#askNow(), delayMs);
  }

  async #askNow(): Promise<void> {
    const { client } = this.#host;
    this.#asking = true;
    const stats = await client.stats(this.#watched ? { tree: true } : {}).catch(() => null);
    this.#asking = false;
    this.#timer = undefined;
    if (this.#disposed) return;
    if (stats) {
      this.#stats = stats;
      this.samples.add(stats, Date.now());
      if (this.#watched && this.#machineIsOld()) void this.#askMachine();
    }
    if (client.numPending > 0) this.#pollUntil = Date.now() + AFTERGLOW_MS;
    if (client.state.kind === 'ready' && this.#again) this.#ask(0);
    else if (client.state.kind === 'ready' && (this.#watched || Date.now() < this.#pollUntil)) this.#ask(POLL_MS);
    this.#again = false;
    this.#changed.fire();
  }

  #machineIsOld(): boolean {
    if (this.#machine && !this.#machine.gpus?.some((gpu) => gpu.usedBytes !== null)) return false;
    return Date.now() - this.#machineAt >= MACHINE_MS;
  }

  async #askMachine(): Promise<void> {
    if (this.#host.client.state.kind !== 'ready') return;
    this.#machineAt = Date.now();
    const machine = await this.#host.client.machine().catch(() => null);
    if (!machine || this.#disposed) return;
    this.#machine = machine;
    if (machine.gpus) void this.#memento.update(GPUS, machine.gpus);
    this.#changed.fire();
  }
}
