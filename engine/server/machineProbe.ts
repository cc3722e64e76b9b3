/**
 * Thread that asks the system about this machine and posts what it learns piece by piece. It is a thread of its own
 * because the programs that it starts (nvidia-smi, powershell, system_profiler) may be slow or hang.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import type { battery } from 'systeminformation/lib/battery.js';
import type { Gpu, MachineInfo } from '../protocol/stats.ts';

/** What to ask for. Each answer is independent: one that fails does not delay the others. */
type Asked = { graphics: boolean; speed: boolean; batteryAlone?: boolean };

const MB = 1024 * 1024;
/** Virtual display adapters, which cannot compute. */
const VIRTUAL =
  /virtual|vmware|svga ii|virtio|qemu|bochs|cirrus|qxl|parallels|hyper-v|basic (display|render)|remote display|aspeed|matrox g200|mirage/i;
/** Memory read by all threads together. It must be larger than the CPU caches. */
const BUFFER_BYTES = 128 * MB;
const READ_MS = 120;
/** More threads than this add hardly any bandwidth on a laptop. */
const MAX_READERS = 4;

/** The program of a reader thread: after `start` it searches its buffer in vain, with the C library's memchr. */
const READER = `
const { parentPort, workerData } = require('node:worker_threads');
const buffer = Buffer.alloc(workerData.bytes, 1);
parentPort.once('message', () => {
  const start = performance.now();
  let read = 0;
  while (performance.now() - start < workerData.ms) { buffer.indexOf(0); read += buffer.length; }
  parentPort.postMessage((read * 1000) / (performance.now() - start));
});
parentPort.postMessage('ready');
`;

/** Converts the graphics adapters of systeminformation to the protocol's form. */
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
 * Adds the memory of AMD adapters, which Linux's driver reports in files. Assumes the same order in `folder` and
 * `gpus`.
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
    // Another system, or a container without these files.
    return gpus;
  }
  const isAmd = (gpu: Gpu) => /\bAMD\b|\bATI\b|Advanced Micro Devices/i.test(gpu.name);
  // With different numbers, the match would be a guess.
  if (known.length !== gpus.filter(isAmd).length) return gpus;
  return gpus.map((gpu) => (isAmd(gpu) ? { ...gpu, ...known.shift(), estimated: false } : gpu));
}

/** null: no battery, or its state is unknown. */
export function onBatteryOf({
  hasBattery,
  acConnected,
}: Pick<Awaited<ReturnType<typeof battery>>, 'hasBattery' | 'acConnected'>): boolean | null {
  return hasBattery && typeof acConnected === 'boolean' ? !acConnected : null;
}

/** Bytes per second that `readers` threads read from memory together. */
export async function readSpeed(readers: number): Promise<number> {
  const workers = Array.from(
    { length: readers },
    () =>
      new Worker(READER, {
        eval: true,
        execArgv: [],
        workerData: { bytes: Math.floor(BUFFER_BYTES / readers), ms: READ_MS },
      }),
  );
  const next = (worker: Worker) =>
    new Promise<unknown>((resolve, reject) => worker.once('message', resolve).once('error', reject));
  try {
    await Promise.all(workers.map(next));
    const speeds = workers.map(next);
    for (const worker of workers) worker.postMessage('start');
    return (await Promise.all(speeds)).reduce<number>((sum, speed) => sum + Number(speed), 0);
  } finally {
    for (const worker of workers) void worker.terminate();
  }
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
