/** What the machine is: asked in a thread of its own, whose silence, crash or nonsense ends in nulls. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { Machine } from '../../../engine/server/machine.ts';
import { gpusOf, mostWithin, onBatteryOf, readSpeed, withAmdMemory } from '../../../engine/server/machineProbe.ts';

const PROBE = new URL('../../../engine/server/machineProbe.ts', import.meta.url);
const script = (code: string): URL =>
  new URL(`data:text/javascript,${encodeURIComponent(`import { parentPort } from 'node:worker_threads';\n${code}`)}`);
const UNKNOWN = { gpus: null, onBattery: null, readBytesPerSecond: null };

test('this machine is described as its system reports it', async () => {
  const machine = await new Machine(PROBE).describe({ graphics: true, speed: false });
  expect(machine.cpu).not.toBe('');
  expect(machine.cores).toBeGreaterThanOrEqual(1);
  expect(machine.memory.totalBytes).toBeGreaterThan(machine.memory.availableBytes);
  expect(machine.gpus).toBeInstanceOf(Array);
  expect(machine.readBytesPerSecond).toBeNull();
});

test('the reading speed is measured once, on request', async () => {
  const machine = new Machine(PROBE);
  const [plain, measured] = await Promise.all([
    machine.describe({ graphics: true, speed: false }),
    machine.describe({ graphics: true, speed: true }),
  ]);
  expect(plain.readBytesPerSecond).toBeNull();
  // Between an old laptop's and a server's; more would be the caches.
  expect(measured.readBytesPerSecond).toBeGreaterThan(1e9);
  expect(measured.readBytesPerSecond).toBeLessThan(1e12);
  expect((await machine.describe({ graphics: true, speed: true })).readBytesPerSecond).toBe(
    measured.readBytesPerSecond,
  );
  expect((await machine.describe({ graphics: true, speed: false })).readBytesPerSecond).toBe(
    measured.readBytesPerSecond,
  );
});

test('graphics adapters are queried only on request', async () => {
  expect((await new Machine(PROBE).describe({ graphics: false, speed: false })).gpus).toBeNull();
});

test('the speed counts the reads of all threads in the fastest window', () => {
  expect(mostWithin([], 10)).toBe(0);
  expect(mostWithin([0, 10, 20], 10)).toBe(1);
  expect(mostWithin([0, 4, 9, 30, 31, 32, 33, 60], 10)).toBe(4);
});

test('one reader thread is enough to measure', async () => {
  expect(await readSpeed(1)).toBeGreaterThan(1e8);
});

test.for([
  ['hangs', 'setInterval(() => {}, 1000);'],
  ['spins', 'for (;;);'],
  ['throws', 'throw new Error("no such helper");'],
  ['ends', ''],
])('a probe that %s leaves nulls', async ([, code]) => {
  const machine = await new Machine(script(code!), 500).describe({ graphics: true, speed: true });
  expect(machine).toMatchObject(UNKNOWN);
  expect(machine.memory.totalBytes).toBeGreaterThan(0);
});

test('results before a hang are kept', async () => {
  const code = 'parentPort.postMessage({ onBattery: true }); setInterval(() => {}, 1000);';
  expect(await new Machine(script(code), 500).describe({ graphics: true, speed: false })).toMatchObject({
    ...UNKNOWN,
    onBattery: true,
  });
});

test('the battery is queried at most every five minutes, and never again without a battery', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  // What it says depends on how often it is asked: a file counts.
  const counter = join(mkdtempSync(join(tmpdir(), 'kvasir-battery-')), 'asked');
  const counting = (onBattery: string) =>
    script(
      `import { appendFileSync } from 'node:fs'; import { workerData } from 'node:worker_threads'; appendFileSync(${JSON.stringify(counter)}, String(workerData.batteryAlone)); parentPort.postMessage({ onBattery: ${onBattery} }); parentPort.close();`,
    );
  const laptop = new Machine(counting('true'));
  expect([await laptop.onBattery(), await laptop.onBattery()]).toEqual([true, true]);
  expect(readFileSync(counter, 'utf8')).toBe('true');
  vi.advanceTimersByTime(5 * 60_000);
  await laptop.onBattery();
  const desktop = new Machine(counting('null'));
  expect(await desktop.onBattery()).toBe(false);
  vi.advanceTimersByTime(5 * 60_000);
  expect(await desktop.onBattery()).toBe(false);
  expect(readFileSync(counter, 'utf8')).toBe('truetruetrue');
  vi.useRealTimers();
  expect(typeof (await new Machine(PROBE).onBattery())).toBe('boolean');
});

test('a missing probe is no error either', async () => {
  expect(await new Machine('/nowhere/probe.js').describe({ graphics: true, speed: false })).toMatchObject(UNKNOWN);
});

test('real graphics adapters are listed with their known memory, virtual ones are not', () => {
  const MB = 1024 * 1024;
  expect(
    gpusOf([{ vendor: 'NVIDIA', model: 'NVIDIA RTX 4060', vram: 8188, memoryTotal: 8188, memoryUsed: 1024 }]),
  ).toEqual([{ name: 'NVIDIA RTX 4060', totalBytes: 8188 * MB, usedBytes: 1024 * MB, estimated: false }]);
  expect(
    gpusOf([{ vendor: 'Intel Corporation', model: 'UHD Graphics 620', vram: 256, vramDynamic: true } as never]),
  ).toEqual([{ name: 'Intel Corporation UHD Graphics 620', totalBytes: 256 * MB, usedBytes: null, estimated: true }]);
  expect(gpusOf([{ vendor: 'Apple', model: 'Apple M3', vram: null }])).toEqual([
    { name: 'Apple M3', totalBytes: null, usedBytes: null, estimated: true },
  ]);
  expect(
    gpusOf([
      { vendor: 'VMware', model: 'SVGA II Adapter', vram: 16 },
      { vendor: 'Red Hat, Inc.', model: 'Virtio 1.0 GPU' },
      { vendor: 'Microsoft', model: 'Microsoft Basic Display Adapter' },
      { vendor: '', model: '' },
    ]),
  ).toEqual([]);
});

test('the battery state is on, off or unknown', () => {
  expect(onBatteryOf({ hasBattery: true, acConnected: false })).toBe(true);
  expect(onBatteryOf({ hasBattery: true, acConnected: true })).toBe(false);
  expect(onBatteryOf({ hasBattery: false, acConnected: true })).toBeNull();
});

test('memory of AMD adapters comes from Linux if the adapter is certain', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kvasir-drm-'));
  try {
    mkdirSync(join(folder, 'card0/device'), { recursive: true });
    mkdirSync(join(folder, 'card1/device'), { recursive: true });
    writeFileSync(join(folder, 'card1/device/mem_info_vram_total'), '8573157376\n');
    writeFileSync(join(folder, 'card1/device/mem_info_vram_used'), '1048576\n');
    const gpu = (name: string) => ({ name, totalBytes: null, usedBytes: null, estimated: true });
    const intel = gpu('Intel UHD Graphics');
    const amd = gpu('Advanced Micro Devices, Inc. [AMD/ATI] Navi 23');
    expect(withAmdMemory([intel, amd], folder)).toEqual([
      intel,
      { ...amd, totalBytes: 8573157376, usedBytes: 1048576, estimated: false },
    ]);
    expect(withAmdMemory([amd, amd], folder)).toEqual([amd, amd]);
    expect(withAmdMemory([amd], join(folder, 'none'))).toEqual([amd]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
