/** The lock of a file: who holds it, and when it is taken over or given up. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { isHeld, withLock } from '../../../engine/download/fileLock.ts';

let folder: string;
let lock: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kvasir-lock-'));
  lock = path.join(folder, 'a.lock');
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

const { signal } = new AbortController();
const onWait = vi.fn();
beforeEach(() => onWait.mockClear());
const locked = () => withLock(lock, signal, onWait, async () => 'run', 1);
const touch = (ageMs: number) => utimesSync(lock, new Date(Date.now() - ageMs), new Date(Date.now() - ageMs));

test('a lock of another machine is taken over after many looks that find it untouched, not before', async () => {
  writeFileSync(lock, '1 elsewhere 00\n');
  let [looks, touched] = [0, 0];
  const running = withLock(
    lock,
    signal,
    () => {
      if (++looks !== 60) return;
      touched = looks;
      touch(5000);
    },
    async () => readFileSync(lock, 'utf8'),
    1,
  );
  expect(await running).toContain(` ${hostname()} `);
  expect(looks - touched).toBeGreaterThanOrEqual(100);
  expect(readdirSync(folder)).toEqual([]);
});

test('a lock whose content cannot be read is taken over by its time alone', async () => {
  mkdirSync(lock);
  expect(await locked()).toBe('run');
  expect(onWait.mock.calls.length).toBeGreaterThanOrEqual(100);
});

// A link to nothing: nothing can be made under the name, and nothing is there.
test.skipIf(process.platform === 'win32')('a lock that can neither be made nor found ends the waiting', async () => {
  symlinkSync('nowhere', lock);
  await expect(locked()).rejects.toMatchObject({ code: 'EEXIST' });
  expect(onWait.mock.calls.length).toBeGreaterThan(10);
});

test.skipIf(process.platform === 'win32')('others may read who holds a lock', async () => {
  const umask = process.umask(0);
  try {
    const mode = await withLock(lock, signal, onWait, async () => statSync(lock).mode & 0o777);
    expect(mode).toBe(0o644);
  } finally {
    process.umask(umask);
  }
});

test('a lock that cannot be written is not left behind', async () => {
  const handle = await open(path.join(folder, 'any'), 'w');
  await handle.close();
  const full = Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
  vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'writeFile').mockRejectedValueOnce(full);
  await expect(locked()).rejects.toBe(full);
  expect(existsSync(lock)).toBe(false);
});

test('a process of this machine holds its lock while it runs; any other only while it is touched', async () => {
  expect(await isHeld(lock)).toBe(false);
  writeFileSync(lock, `${process.pid} ${hostname()} 00\n`);
  touch(3_600_000);
  expect(await isHeld(lock)).toBe(true);
  // Higher than any process id of Linux.
  writeFileSync(lock, `4194305 ${hostname()} 00\n`);
  expect(await isHeld(lock)).toBe(false);
  for (const mark of ['1 elsewhere 00\n', '']) {
    writeFileSync(lock, mark);
    expect(await isHeld(lock)).toBe(true);
    touch(3_600_000);
    expect(await isHeld(lock)).toBe(false);
  }
});
