/**
 * Entry of a thread that queries the system about this machine and posts each result. It is a thread of its own,
 * because the programs that it starts (nvidia-smi, powershell, system_profiler) may hang. Has no time limit (see
 * machine.ts).
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import type { battery } from 'systeminformation/lib/battery.js';
import type { Gpu, MachineInfo } from '../protocol/stats.ts';

/** The query. A part that fails does not stop the others. */
type Asked = { graphics: boolean; speed: boolean; batteryAlone?: boolean };

const MB = 1024 * 1024;
/** Virtual display adapters, which cannot compute. */
const VIRTUAL =
  /virtual|vmware|svga ii|virtio|qemu|bochs|cirrus|qxl|parallels|hyper-v|basic (display|render)|remote display|aspeed|matrox g200|mirage/i;
/** Memory that all threads read together. It must be larger than the CPU caches. */
const BUFFER_BYTES = 128 * MB;
/** One timed read. */
const READ_BYTES = 2 * MB;
/** Speed is taken over windows of this length. The fastest counts: one in which other programs hardly ran. */
const WINDOW_MS = 10;
const READ_MS = 120;
/** On a laptop more threads hardly add bandwidth. */
const MAX_READERS = 4;

/**
 * The program of a reader thread. After `start` it searches its buffer for a missing byte, with memchr of the C
 * library, and posts when each read ended, in ms of the system's clock.
 */
const READER = `
const { parentPort, workerData: { bytes, readBytes, ms } } = require('node:worker_threads');
const buffer = Buffer.alloc(bytes, 1);
const now = () => performance.timeOrigin + performance.now();
parentPort.once('message', () => {
  const ends = [];
  const end = now() + ms;
  do {
    for (let at = 0; at + readBytes <= bytes; at += readBytes) {
      buffer.subarray(at, at + readBytes).indexOf(0);
      ends.push(now());
    }
  } while (now() < end);
  parentPort.postMessage(ends);
});
parentPort.postMessage('ready');
`;

/** Converts the graphics adapters of systeminformation to those of the protocol. */
export function gpusOf(
  controllers: readonly {
    vendor?: string;
    model?: string;
    vram?: number | null;
    memoryTotal?: number;
    memoryUsed?: number;
  }[],
): Gpu[] {
  return controllers
    .filter(({ vendor = '', model = '' }) => (vendor || model) && !VIRTUAL.test(`${vendor} ${model}`))
    .map(({ vendor = '', model = '', vram, memoryTotal, memoryUsed }) => ({
      name: (model.startsWith(vendor) ? model : `${vendor} ${model}`).trim(),
      totalBytes: memoryTotal ? memoryTotal * MB : vram ? vram * MB : null,
      usedBytes: memoryTotal && memoryUsed !== undefined ? memoryUsed * MB : null,
      estimated: !memoryTotal,
    }));
}

/**
 * Adds the memory of AMD adapters from the files of the Linux driver. Assumes the same order in `folder` and `gpus`.
 */
export function withAmdMemory(gpus: Gpu[], folder = '/sys/class/drm'): Gpu[] {
  const known: Pick<Gpu, 'totalBytes' | 'usedBytes'>[] = [];
  const read = (card: string, name: string) =>
    Number(readFileSync(join(folder, card, 'device', `mem_info_vram_${name}`), 'utf8'));
  try {
    for (const card of readdirSync(folder)
      .filter((name) => /^card\d+$/.test(name))
      .sort()) {
      if (existsSync(join(folder, card, 'device/mem_info_vram_total')))
        known.push({ totalBytes: read(card, 'total'), usedBytes: read(card, 'used') });
    }
  } catch {
    // This is another system, or a container without these files.
    return gpus;
  }
  const isAmd = (gpu: Gpu) => /\bAMD\b|\bATI\b|Advanced Micro Devices/i.test(gpu.name);
  // If the numbers differ, it is unknown which memory belongs to which adapter.
  if (known.length !== gpus.filter(isAmd).length) return gpus;
  return gpus.map((gpu) => (isAmd(gpu) ? { ...gpu, ...known.shift(), estimated: false } : gpu));
}

/** Whether the machine runs on battery. Null if there is no battery or its state is unknown. */
export function onBatteryOf({
  hasBattery,
  acConnected,
}: Pick<Awaited<ReturnType<typeof battery>>, 'hasBattery' | 'acConnected'>): boolean | null {
  return hasBattery && typeof acConnected === 'boolean' ? !acConnected : null;
}

/** Bytes per second that `readers` threads read from memory together, also while other programs use the processor. */
export async function readSpeed(readers: number): Promise<number> {
  const workers = Array.from(
    { length: readers },
    () =>
      new Worker(READER, {
        eval: true,
        execArgv: [],
        workerData: { bytes: Math.floor(BUFFER_BYTES / readers), readBytes: READ_BYTES, ms: READ_MS },
      }),
  );
  const next = (worker: Worker) =>
    new Promise<unknown>((resolve, reject) => worker.once('message', resolve).once('error', reject));
  try {
    await Promise.all(workers.map(next));
    const ends = workers.map(next);
    for (const worker of workers) worker.postMessage('start');
    const all = ((await Promise.all(ends)) as number[][]).flat().sort((a, b) => a - b);
    return (mostWithin(all, WINDOW_MS) * READ_BYTES * 1000) / WINDOW_MS;
  } finally {
    for (const worker of workers) void worker.terminate();
  }
}

/** Most of the ascending `times` that lie within any `length`. */
export function mostWithin(times: readonly number[], length: number): number {
  let [most, first] = [0, 0];
  for (const [i, time] of times.entries()) {
    while (time - times[first]! >= length) first++;
    most = Math.max(most, i - first + 1);
  }
  return most;
}

async function probe(
  { graphics: withGraphics, speed, batteryAlone }: Asked,
  tell: (known: Partial<MachineInfo>) => void,
): Promise<void> {
  const ask = (question: () => Promise<Partial<MachineInfo>>) => question().then(tell, () => undefined);
  const askBattery = () =>
    ask(async () => ({ onBattery: onBatteryOf(await (await import('systeminformation/lib/battery.js')).battery()) }));
  if (batteryAlone) return askBattery();
  tell({
    cpu: cpus()[0]?.model.trim() ?? '',
    cores: availableParallelism(),
    memory: { totalBytes: totalmem(), availableBytes: process.availableMemory() },
  });
  await ask(async () => {
    const { physicalCores, brand, manufacturer } = await (await import('systeminformation/lib/cpu.js')).cpu();
    const cores = Math.min(physicalCores, availableParallelism());
    return { ...(cores > 0 ? { cores } : {}), ...(cpus()[0] ? {} : { cpu: `${manufacturer} ${brand}`.trim() }) };
  });
  await askBattery();
  if (speed)
    await ask(async () => ({ readBytesPerSecond: await readSpeed(Math.min(MAX_READERS, availableParallelism())) }));
  if (withGraphics)
    await ask(async () => ({
      gpus: withAmdMemory(gpusOf((await (await import('systeminformation/lib/graphics.js')).graphics()).controllers)),
    }));
}

if (parentPort) {
  const port = parentPort;
  void probe(workerData as Asked, (known) => port.postMessage(known)).finally(() => port.close());
}
