/** One file on a disk that fails: it gets its name only when the disk has taken all of it. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { fetchBlob, type Transfer } from '../../../engine/download/blob.ts';
import { Hub } from '../../../engine/download/hub.ts';
import { FakeHub, unlike } from '../../support/hub/fakeHub.ts';

/** What the next opening of the part, or the next call of its handle, fails with. */
const disk = vi.hoisted(() => ({ open: undefined as Error | undefined, sync: [] as Error[], close: [] as Error[] }));
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  return {
    ...real,
    open: async (name: string, flags: string) => {
      const refusal = disk.open;
      disk.open = undefined;
      if (refusal) throw refusal;
      const handle = await real.open(name, flags);
      for (const method of ['sync', 'close'] as const) {
        const run = handle[method].bind(handle);
        handle[method] = async () => {
          const error = disk[method].shift();
          if (error) throw error;
          await run();
        };
      }
      return handle;
    },
  };
});

const BYTES = unlike(300_000, 1);
let fake: FakeHub;
let folder: string;
beforeEach(async () => {
  fake = await new FakeHub({ 'o/m': { 'm.gguf': BYTES } }).start();
  folder = mkdtempSync(path.join(tmpdir(), 'kvasir-blob-'));
});
afterEach(async () => {
  await fake.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function transferOf(isOurs = () => true): Promise<Transfer> {
  const hub = new Hub({ endpoint: fake.endpoint, fetch });
  const { repository, commit, files } = await hub.list('o/m', 'main');
  const { signal } = new AbortController();
  return {
    hub,
    repository,
    commit,
    file: files[0]!,
    blob: path.join(folder, 'blob'),
    part: path.join(folder, 'blob.part'),
    held: { isOurs },
    signal,
    onBytes: () => {},
    firstPauseMs: 1,
  };
}

const failing = (code: string): Error => Object.assign(new Error(code), { code });

test.each([
  ['sync', 'EIO', 'cannotWrite'],
  ['sync', 'ENOSPC', 'diskFull'],
  ['close', 'EDQUOT', 'diskFull'],
] as const)('a %s that fails with %s publishes nothing', async (method, code, kind) => {
  const transfer = await transferOf();
  disk[method].push(failing(code));
  await expect(fetchBlob(transfer)).rejects.toMatchObject({ problem: { kind } });
  expect(existsSync(transfer.blob)).toBe(false);
  await fetchBlob(transfer);
  expect(readFileSync(transfer.blob)).toEqual(BYTES);
});

test.each(['EINVAL', 'ENOTSUP', 'ENOSYS'])('a file system that cannot sync (%s) is no failure', async (code) => {
  const transfer = await transferOf();
  disk.sync.push(failing(code));
  await fetchBlob(transfer);
  expect(readFileSync(transfer.blob)).toEqual(BYTES);
});

test('a part that cannot be opened for the moment keeps its bytes', async () => {
  const transfer = await transferOf();
  writeFileSync(transfer.part, BYTES.subarray(0, 1000));
  disk.open = failing('EMFILE');
  await expect(fetchBlob(transfer)).rejects.toMatchObject({ problem: { kind: 'cannotWrite' } });
  expect(readFileSync(transfer.part)).toHaveLength(1000);
});

test('what another process has taken over is not given its name', async () => {
  // All of it is here: only the name is missing.
  const transfer = await transferOf(() => false);
  writeFileSync(transfer.part, BYTES);
  await expect(fetchBlob(transfer)).rejects.toMatchObject({ problem: { kind: 'taken' } });
  expect(existsSync(transfer.blob)).toBe(false);
});

test('a server without parts that cuts each time ends in one sentence', async () => {
  fake.faults.ignoresRanges = true;
  fake.faults.cutAfter = Array.from({ length: 50 }, () => 100_000);
  await expect(fetchBlob(await transferOf())).rejects.toMatchObject({ problem: { kind: 'cut' } });
  expect(fake.loads).toHaveLength(5);
});
