/**
 * Describes this machine. Runs machineProbe.ts in a thread with a time limit. Unknown values are null. Never rejects.
 * Does not query the system itself.
 */
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { MachineInfo } from '../protocol/stats.ts';

/** Time limit of the probe. Windows and macOS may take seconds to list graphics adapters. */
const MAX_PROBE_MS = 10_000;
/** How long the battery state is cached. On some systems the query starts a program. */
const BATTERY_MS = 5 * 60_000;

export class Machine {
  readonly #script: string | URL;
  readonly #patienceMs: number;
  /** Measured once. */
  #readBytesPerSecond: number | null = null;
  /** Running probes, by their query. Equal queries share one probe. */
  readonly #asking = new Map<string, Promise<MachineInfo>>();
  /** Null means no battery or an unknown state. Then it is not queried again. */
  #onBattery: { value: boolean | null; until: number } | undefined;

  /** @param script the bundle of machineProbe.ts */
  constructor(script: string | URL = join(__dirname, 'machineProbe.js'), patienceMs = MAX_PROBE_MS) {
    this.#script = script;
    this.#patienceMs = patienceMs;
  }

  /** @param speed whether to measure how fast memory is read, if that is unknown */
  async describe({ graphics, speed }: { graphics: boolean; speed: boolean }): Promise<MachineInfo> {
    const wanted = { graphics, speed: speed && this.#readBytesPerSecond === null };
    const key = JSON.stringify(wanted);
    let asking = this.#asking.get(key);
    if (!asking) {
      asking = this.#ask(wanted).finally(() => this.#asking.delete(key));
      this.#asking.set(key, asking);
    }
    const machine = await asking;
    this.#readBytesPerSecond ??= machine.readBytesPerSecond;
    return { ...machine, readBytesPerSecond: this.#readBytesPerSecond };
  }

  /** Whether the machine runs on battery. Then idle work should wait. */
  async onBattery(): Promise<boolean> {
    const known = this.#onBattery;
    if (known && (known.value === null || performance.now() < known.until)) return known.value === true;
    const { onBattery } = await this.#ask({ graphics: false, speed: false, batteryAlone: true });
    this.#onBattery = { value: onBattery, until: performance.now() + BATTERY_MS };
    return onBattery === true;
  }

  #ask(wanted: { graphics: boolean; speed: boolean; batteryAlone?: boolean }): Promise<MachineInfo> {
    const machine: MachineInfo = {
      cpu: cpus()[0]?.model.trim() ?? '',
      cores: availableParallelism(),
      memory: { totalBytes: totalmem(), availableBytes: process.availableMemory() },
      gpus: null,
      onBattery: null,
      readBytesPerSecond: null,
    };
    return new Promise((resolve) => {
      const probe = new Worker(this.#script, {
        name: 'kvasir-machine',
        execArgv: [],
        stdout: true,
        stderr: true,
        workerData: wanted,
      });
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
