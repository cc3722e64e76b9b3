/**
 * What this machine is. The asking is machineProbe.ts's, in a thread that is given up when it takes too long: what it
 * has not told by then is null. Never rejects.
 */
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { MachineInfo } from './protocol.ts';

/** Windows and macOS may take seconds to list their graphics adapters. */
const PATIENCE_MS = 10_000;
/** How long what is known of the battery holds: on some systems asking starts a program. */
const BATTERY_MS = 5 * 60_000;

export class Machine {
  readonly #script: string | URL;
  readonly #patienceMs: number;
  /** Measured once: memory does not become faster. */
  #readBytesPerSecond: number | null = null;
  #asking: Promise<MachineInfo> | null = null;
  #askingSpeed = false;
  /** null: there is no battery, or it does not tell; then it is not asked again. */
  #onBattery: { value: boolean | null; until: number } | undefined;

  /** `script` is the probe beside the engine's bundle. */
  constructor(script: string | URL = join(__dirname, 'machineProbe.js'), patienceMs = PATIENCE_MS) {
    this.#script = script;
    this.#patienceMs = patienceMs;
  }

  /** As it is now; asked twice at a time it is one answer. `speed` measures how fast memory is read, unless that is known. */
  async describe(speed: boolean): Promise<MachineInfo> {
    const measure = speed && this.#readBytesPerSecond === null;
    // One that is under way and does not measure is of no use to who wants that; it ends first.
    if (this.#asking && measure && !this.#askingSpeed) await this.#asking;
    if (!this.#asking) {
      this.#askingSpeed = measure;
      this.#asking = this.#ask(measure).finally(() => {
        this.#asking = null;
      });
    }
    const machine = await this.#asking;
    this.#readBytesPerSecond ??= machine.readBytesPerSecond;
    return { ...machine, readBytesPerSecond: this.#readBytesPerSecond };
  }

  /** Whether work that can wait should wait for mains power. */
  async onBattery(): Promise<boolean> {
    const known = this.#onBattery;
    if (known && (known.value === null || performance.now() < known.until)) return known.value === true;
    const { onBattery } = await this.#ask(false, true);
    this.#onBattery = { value: onBattery, until: performance.now() + BATTERY_MS };
    return onBattery === true;
  }

  #ask(speed: boolean, batteryAlone = false): Promise<MachineInfo> {
    const machine: MachineInfo = {
      cpu: cpus()[0]?.model.trim() ?? '',
      cores: availableParallelism(),
      memory: { totalBytes: totalmem(), availableBytes: process.availableMemory() },
      gpus: null,
      onBattery: null,
      readBytesPerSecond: null,
    };
    return new Promise((resolve) => {
      const probe = new Worker(this.#script, { name: 'kvasir-machine', execArgv: [], stdout: true, stderr: true, workerData: { speed, batteryAlone } });
      const end = () => {
        clearTimeout(timer);
        probe.unref();
        void probe.terminate();
        resolve(machine);
      };
      const timer = setTimeout(end, this.#patienceMs);
      probe.on('message', (known: Partial<MachineInfo>) => void Object.assign(machine, known));
      probe.on('error', end);
      probe.on('exit', end);
    });
  }
}
