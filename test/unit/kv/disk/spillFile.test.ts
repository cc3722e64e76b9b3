/** The spill file: what reads back, what is visible on the disk, and what is left behind. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LostRows, SEAL_BYTES, SpillFile } from '../../../../engine/kv/disk/spillFile.ts';
import { CAN_REACH, damage, openSpillFiles } from '../../../support/kv/damagedSpill.ts';

/** What the disk says to a write: the system's code, or `short`, that it took a part; null: it takes it. */
const disk = vi.hoisted(() => ({ fault: null as string | null }));
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const writevSync: typeof fs.writevSync = (fd, buffers, position) => {
    if (disk.fault === 'short') return fs.writevSync(fd, [buffers[0]!], position);
    if (disk.fault) throw Object.assign(new Error(disk.fault), { code: disk.fault, syscall: 'writev' });
    return fs.writevSync(fd, buffers, position);
  };
  return { ...fs, writevSync };
});

let folder: string;
const lines: string[] = [];
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kvasir-spill-'));
  lines.length = 0;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const opened = (maxBytes = 10_000, dir = folder): SpillFile => new SpillFile(dir, maxBytes, (line) => lines.push(line));
/** Of a piece that takes n bytes in the file. */
const data = (n: number, seed: number): Uint8Array =>
  Uint8Array.from({ length: n - SEAL_BYTES }, (_, i) => (i * 7 + seed) & 255);

test('pieces read back unchanged, also in reused places', () => {
  const file = opened();
  const [a, b, c] = [data(1000, 1), data(1000, 2), data(500, 3)].map((each) => file.put(each)!);
  file.free(a!);
  const d = file.put(data(1000, 4))!;
  expect(d.at).toBe(a!.at);
  expect([b, c, d].map((piece) => [...file.read(piece!)])).toEqual(
    [data(1000, 2), data(500, 3), data(1000, 4)].map((each) => [...each]),
  );
  expect(file.bytes).toBe(2500);
  for (const piece of [b, c, d]) file.free(piece!);
  expect(file.bytes).toBe(0);
  file.close();
});

test('the cap holds, and what is given back is there again', () => {
  const file = opened(2500);
  const pieces = [file.put(data(1000, 1)), file.put(data(1000, 2))];
  expect(file.put(data(1000, 3))).toBeNull();
  expect(file.put(data(500, 3))).not.toBeNull();
  file.free(pieces[1]!);
  expect(file.put(data(1000, 4))).not.toBeNull();
  file.close();
});

test('holes of any size are used, and grow together', () => {
  const file = opened(4000);
  const pieces = Array.from({ length: 40 }, (_, i) => file.put(data(100, i))!);
  expect(file.put(data(SEAL_BYTES + 1, 0))).toBeNull();
  for (const piece of pieces.slice(5, 25)) file.free(piece);
  const large = file.put(data(1950, 7))!;
  expect(large.at).toBe(500);
  expect([...file.read(large)]).toEqual([...data(1950, 7)]);
  expect(file.put(data(51, 0))).toBeNull();
  expect(file.put(data(50, 0))!.at).toBe(2450);
  expect([...file.read(pieces[4]!)]).toEqual([...data(100, 4)]);
  expect([...file.read(pieces[25]!)]).toEqual([...data(100, 25)]);
  file.close();
});

test.skipIf(process.platform === 'win32')(
  'the folder shows nothing while it is open, and the disk has none of the bytes',
  () => {
    const file = opened();
    const text = new TextEncoder().encode('a secret that stands in the rows, again and again. '.repeat(20));
    const piece = file.put(text)!;
    expect(readdirSync(folder)).toEqual([]);
    // The file itself, by the process's own handle on it.
    if (process.platform === 'linux') {
      const own = openSpillFiles(folder).map((fd) => readFileSync(fd));
      expect(own).toHaveLength(1);
      expect(own[0]!.includes('secret')).toBe(false);
    }
    expect(new TextDecoder().decode(file.read(piece))).toContain('a secret that stands');
    file.close();
  },
);

test.skipIf(!CAN_REACH).each([0, 517, 999, 1000 - SEAL_BYTES])(
  'a bit that changes in the file is noticed, and other pieces are as they were: byte %i',
  (at) => {
    const file = opened();
    const [before, piece, after] = [1, 2, 3].map((seed) => file.put(data(1000, seed))!);
    damage(folder, piece!.at + at);
    expect(() => file.read(piece!)).toThrow(new LostRows(`${folder}: the temporary file is damaged`));
    // What becomes of them, and so what is to be told, is another's to decide.
    expect(lines).toEqual([]);
    expect([before, after].map((each) => [...file.read(each!)])).toEqual([[...data(1000, 1)], [...data(1000, 3)]]);
    file.close();
  },
);

test.skipIf(!CAN_REACH)('a truncated spill file loses only the pieces that were cut', () => {
  const file = opened();
  const [before, piece] = [1, 2].map((seed) => file.put(data(1000, seed))!);
  truncateSync(openSpillFiles(folder)[0]!, 1999);
  expect(() => file.read(piece!)).toThrow(new LostRows(`${folder}: the temporary file is shorter than it was`));
  expect([...file.read(before!)]).toEqual([...data(1000, 1)]);
  file.close();
});

test('to read from it once it is closed is a fault of ours', () => {
  const file = opened();
  const piece = file.put(data(100, 1))!;
  file.close();
  expect(() => file.read(piece)).not.toThrow(LostRows);
  expect(() => file.read(piece)).toThrow('closed');
});

test('a reused place is not read as its old content', () => {
  const file = opened();
  const old = file.put(data(1000, 1))!;
  file.free(old);
  const piece = file.put(data(1000, 1))!;
  expect(piece.at).toBe(old.at);
  expect(() => file.read(old)).toThrow('damaged');
  expect([...file.read(piece)]).toEqual([...data(1000, 1)]);
  file.close();
});

test('old spill files of other processes are removed, recent ones are not', () => {
  const [old, fresh, other] = ['.spill-0123456789ab', '.spill-ba9876543210', 'notes.txt'].map((name) =>
    path.join(folder, name),
  );
  for (const name of [old!, fresh!, other!]) writeFileSync(name, 'x');
  utimesSync(old!, 1, 1);
  const file = opened();
  file.put(data(100, 1));
  expect(
    readdirSync(folder)
      .filter((name) => !name.startsWith('.spill-') || [old, fresh].includes(path.join(folder, name)))
      .sort(),
  ).toEqual([path.basename(fresh!), 'notes.txt'].sort());
  file.close();
});

test('a folder that somebody has removed is made again', () => {
  const file = opened(10_000, path.join(folder, 'removed'));
  const piece = file.put(data(100, 1))!;
  expect([...file.read(piece)]).toEqual([...data(100, 1)]);
  file.close();
  expect(lines).toEqual([]);
});

test('an unwritable folder stores nothing and logs one line with the reason', () => {
  writeFileSync(path.join(folder, 'file'), '');
  const file = opened(10_000, path.join(folder, 'file', 'below'));
  expect(file.put(data(100, 1))).toBeNull();
  expect(lines.join()).toMatch(/cannot be written to .*below/);
  expect(file.failure).toMatchObject({
    reason: 'system',
    folder: path.join(folder, 'file', 'below'),
    message: expect.stringContaining('ENOTDIR'),
  });
  expect(file.bytes).toBe(0);
});

test('the reason why the spill file takes nothing is logged once, until it takes a piece again', () => {
  const file = opened(2500);
  expect(file.failure).toBeNull();
  expect(file.put(data(3000, 1))).toBeNull();
  expect(file.failure).toEqual({ reason: 'cap', folder, maxBytes: 2500, message: '' });
  expect(lines).toEqual([]);
  for (const { fault, reason } of [
    { fault: 'ENOSPC', reason: 'full' },
    { fault: 'EDQUOT', reason: 'full' },
    { fault: 'short', reason: 'full' },
    { fault: 'EIO', reason: 'system' },
  ]) {
    disk.fault = fault;
    for (let i = 0; i < 2; i++) expect(file.put(data(1000, 1))).toBeNull();
    expect(file.failure).toMatchObject({ reason });
    expect(lines).toHaveLength(1);
    disk.fault = null;
    const piece = file.put(data(1000, 1))!;
    expect([...file.read(piece)]).toEqual([...data(1000, 1)]);
    expect(file.failure).toBeNull();
    file.free(piece);
    lines.length = 0;
  }
  file.close();
});
