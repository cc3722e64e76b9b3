/** Engines that share a folder count how many of them are alive, also after a crash, a sleep or a disk error. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { MAX_BEAT_AGE_MS, LiveEngines } from '../../../engine/server/liveEngines.ts';

const BEAT_MS = 20;

/** Long enough for a busy machine. */
const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 10_000 });

let folder: string;
let lines: string[];

beforeEach(async () => {
  folder = path.join(await mkdtemp(path.join(tmpdir(), 'kvasir-live-')), 'engines');
  lines = [];
});
// Engines that are killed, or leave after it, may be writing meanwhile.
afterEach(() => rm(path.dirname(folder), { recursive: true, force: true, maxRetries: 10, retryDelay: 20 }));

/** Leaves at the end of the test. `told`: the number reported at each change. */
async function joined(): Promise<{ engines: LiveEngines; told: number[] }> {
  const told: number[] = [];
  const engines: LiveEngines = await LiveEngines.join(
    folder,
    () => told.push(engines.num),
    (line) => lines.push(line),
    BEAT_MS,
  );
  onTestFinished(() => engines.leave());
  return { engines, told };
}

/** `node liveEngine.ts`, and the numbers that it has printed. */
async function startedProcess(): Promise<{ child: ChildProcess; told: number[] }> {
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON',
      path.join(import.meta.dirname, '../../support/liveEngine.ts'),
      folder,
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const told: number[] = [];
  child.stdout!.setEncoding('utf8').on('data', (text: string) => told.push(...text.trim().split('\n').map(Number)));
  await once(child.stdout!, 'data');
  return { child, told };
}

test('each engine counts the others within a beat, is told of every change, and leaves no file behind', async () => {
  const one = await joined();
  expect(one.engines.num).toBe(1);
  const other = await joined();
  expect(other.engines.num).toBe(2);
  await eventually(() => one.told).toEqual([2]);
  const third = await joined();
  await eventually(() => [one.told.at(-1), other.told.at(-1), third.engines.num]).toEqual([3, 3, 3]);
  await other.engines.leave();
  await third.engines.leave();
  await eventually(() => one.engines.num).toBe(1);
  expect(await readdir(folder)).toHaveLength(1);
  await one.engines.leave();
  // Nothing is under way that would write it again.
  await new Promise((resolve) => setTimeout(resolve, 3 * BEAT_MS));
  expect(await readdir(folder)).toEqual([]);
  expect(lines).toEqual([]);
});

test('an engine that leaves during a count does not write its file again', async () => {
  for (let i = 0; i < 50; i++) {
    const engines = await LiveEngines.join(
      folder,
      () => {},
      (line) => lines.push(line),
      1,
    );
    await new Promise((resolve) => setTimeout(resolve, 1 + (i % 4)));
    await engines.leave();
  }
  await new Promise((resolve) => setTimeout(resolve, 3 * BEAT_MS));
  expect([await readdir(folder), lines]).toEqual([[], []]);
});

test('the folder is readable by the user only', async () => {
  await joined();
  expect((await stat(folder)).mode & 0o777).toBe(process.platform === 'win32' ? 0o666 : 0o700);
});

test('processes count each other; a killed process no longer counts, a process that ends removes its file', async () => {
  const { engines } = await joined();
  const [killed, ended] = [await startedProcess(), await startedProcess()];
  await eventually(() => [engines.num, killed.told.at(-1), ended.told.at(-1)]).toEqual([3, 3, 3]);
  killed.child.kill('SIGKILL');
  await eventually(() => [engines.num, ended.told.at(-1)]).toEqual([2, 2]);
  // What it has left may be another machine's until it is old.
  expect(await readdir(folder)).toHaveLength(3);
  const left = path.join(folder, (await readdir(folder)).find((name) => name.startsWith(`${killed.child.pid}-`))!);
  await utimes(left, 1, 1);
  await eventually(() => readdir(folder)).toHaveLength(2);
  ended.child.stdin!.end();
  await once(ended.child, 'exit');
  expect(await readdir(folder)).toHaveLength(1);
  await eventually(() => engines.num).toBe(1);
});

test('a reused process id counts for at most a minute, also after a clock change; other files in the folder stay', async () => {
  await mkdir(folder);
  const [alive, other] = [path.join(folder, `${process.pid}-0123abcd`), path.join(folder, 'notes.txt')];
  for (const file of [alive, other]) await writeFile(file, '');
  const { engines } = await joined();
  expect(engines.num).toBe(2);
  for (const shift of [-MAX_BEAT_AGE_MS - 5000, MAX_BEAT_AGE_MS + 5000]) {
    await writeFile(alive, '');
    await eventually(() => engines.num).toBe(2);
    const at = (Date.now() + shift) / 1000;
    await utimes(alive, at, at);
    await eventually(() => engines.num).toBe(1);
    await eventually(async () => (await readdir(folder)).includes(path.basename(alive))).toBe(false);
  }
  expect(await readdir(folder)).toContain('notes.txt');
});

/** One that looks when `beat` says so, beside another that has not looked since it came. */
async function besideOneThatWaits(): Promise<{ engines: LiveEngines; told: number[]; beat: () => void }> {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const waiting = await LiveEngines.join(
    folder,
    () => {},
    (line) => lines.push(line),
    1e9,
  );
  onTestFinished(() => waiting.leave());
  return { ...(await joined()), beat: () => void vi.advanceTimersByTime(BEAT_MS) };
}

test('after a sleep of the machine, engines that have not written yet still count', async () => {
  const { engines, beat } = await besideOneThatWaits();
  const asleep = Date.now() / 1000 - 3600;
  for (const [i, name] of (await readdir(folder)).entries())
    await utimes(path.join(folder, name), asleep + i, asleep + i);
  beat();
  await engines.leave();
  expect(await readdir(folder)).toHaveLength(1);
});

test('an unusable folder keeps the last count, so no engine takes the whole memory', async () => {
  const { engines, told, beat } = await besideOneThatWaits();
  await rm(folder, { recursive: true });
  await writeFile(folder, 'no folder');
  beat();
  await eventually(() => lines).toEqual([expect.stringContaining('divided by 2')]);
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect([engines.num, told]).toEqual([2, []]);
});

test('an unusable folder is logged once, and the engine counts alone until the folder works', async () => {
  await writeFile(folder, 'no folder');
  const { engines } = await joined();
  await new Promise((resolve) => setTimeout(resolve, 5 * BEAT_MS));
  expect([engines.num, lines.length]).toEqual([1, 1]);
  expect(lines[0]).toContain('divided by 1');
  await rm(folder);
  const other = await joined();
  await eventually(() => [engines.num, other.engines.num]).toEqual([2, 2]);
  await other.engines.leave();
  // The folder is removed and made again. In one step, because both engines write to it every few milliseconds.
  await rename(folder, `${folder}-removed`);
  await eventually(() => readdir(folder).catch(() => [])).toHaveLength(1);
  // One more line if the folder was removed while the engine wrote.
  expect(lines.length).toBeLessThanOrEqual(2);
});
