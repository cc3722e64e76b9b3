/**
 * The disk tier: segments are found again by their tokens, stay under a cap, are private, and damaged ones are not
 * used.
 */
import {
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DiskTier } from '../../../../engine/kv/disk/diskTier.ts';
import {
  fileName,
  type FoundSegment,
  ownerOf,
  rootKey,
  segmentKey,
  type SegmentName,
} from '../../../../engine/kv/disk/segment.ts';
import { below, seededRandom } from '../../../support/engine/workload.ts';

const ROOT = rootKey('model');
const PATH = 'src/a.ts';
const CONTENT = Uint8Array.from({ length: 1000 }, (_, i) => i);
/** As a file: with header and length. */
const FILE_BYTES = 1052;

let folder: string;
let lines: string[];
const log = (line: string): void => void lines.push(line);
const openTier = (maxBytes = 1e6): Promise<DiskTier> => DiskTier.open(folder, maxBytes, log);

const nameOf = (segment: SegmentName, filePath = PATH): string =>
  fileName({ ...segment, owner: ownerOf(segment.key, filePath) });

beforeEach(async () => {
  folder = path.join(await mkdtemp(path.join(tmpdir(), 'kvasir-disk-')), 'kv');
  lines = [];
});
afterEach(() => rm(path.dirname(folder), { recursive: true }));

/** The segments of a context of so many tokens. */
function segments(seed: number, numTokens: number): { ids: number[]; all: FoundSegment[] } {
  const ids = Array.from({ length: numTokens }, (_, i) => seed + i);
  const all: FoundSegment[] = [];
  let parent = ROOT;
  for (let startIndex = 0; startIndex < numTokens; startIndex += 256) {
    const tokens = ids.slice(startIndex, startIndex + 256);
    const key = segmentKey(parent, tokens);
    all.push({ parent, key, numTokens: tokens.length, startIndex });
    parent = key;
  }
  return { ids, all };
}

test('written segments are found by the next process, as far as the tokens match', async () => {
  const { ids, all } = segments(5, 600);
  const first = await openTier();
  for (const segment of all) await first.write(segment, [CONTENT, CONTENT.subarray(10)], PATH);
  expect(first.numSegments).toBe(3);
  const disk = await openTier();
  expect(disk.bytes).toBe(first.bytes);
  expect(disk.find(ROOT, ids)).toEqual(all);
  expect(disk.find(ROOT, [...ids, 1])).toEqual(all);
  // The last one is of 88 tokens: with one of them missing, none is there.
  expect(disk.find(ROOT, ids.slice(0, 599))).toEqual(all.slice(0, 2));
  expect(disk.find(ROOT, ids.with(300, 0))).toEqual(all.slice(0, 1));
  expect(disk.find(rootKey('other'), ids)).toEqual([]);
  expect(await disk.read(all[1]!)).toEqual([CONTENT, CONTENT.subarray(10)]);
});

test('a lookup needs one key per stored length, however many files there are', async () => {
  const disk = await openTier();
  for (let i = 1; i <= 30; i++) await disk.write(segments(1000 * i, i % 3 ? 256 : 100).all[0]!, [CONTENT], PATH);
  const { ids, all } = segments(15_000, 100);
  const longer = [...ids, ...segments(7, 300).ids];
  // Each key is over a part of the tokens.
  const slice = vi.spyOn(longer, 'slice');
  expect(disk.find(ROOT, longer)).toEqual(all);
  expect(slice).toHaveBeenCalledTimes(2);
});

test('files and folder are for their owner alone', async () => {
  const disk = await openTier();
  await disk.write(segments(5, 100).all[0]!, [CONTENT], PATH);
  expect((await stat(folder)).mode & 0o777).toBe(process.platform === 'win32' ? 0o666 : 0o700);
  for (const name of await readdir(folder))
    expect((await stat(path.join(folder, name))).mode & 0o777).toBe(process.platform === 'win32' ? 0o666 : 0o600);
});

test('a damaged, truncated, missing or foreign segment is not used, and is forgotten', async () => {
  const other = (file: string): Promise<void> => copyFile(path.join(folder, 'other'), file);
  const damage: ((file: string) => Promise<unknown>)[] = [
    other,
    async (file) => writeFile(file, (await readFile(file)).with(700, 0)),
    (file) => truncate(file, 500),
    (file) => truncate(file, 0),
    (file) => rm(file),
  ];
  for (const [i, harm] of damage.entries()) {
    const { ids, all } = segments(1000 * (i + 1), 100);
    const another = segments(77_000, 100).all[0]!;
    await (await openTier()).write(another, [CONTENT.toReversed()], PATH);
    await rename(path.join(folder, nameOf(another)), path.join(folder, 'other'));
    const disk = await openTier();
    await disk.write(all[0]!, [CONTENT], PATH);
    await harm(path.join(folder, nameOf(all[0]!)));
    const before = disk.bytes;
    expect(await disk.read(all[0]!)).toBeNull();
    expect(disk.find(ROOT, ids)).toEqual([]);
    expect(disk.bytes).toBe(before - FILE_BYTES);
    expect(await readdir(folder)).toEqual(['other']);
  }
  expect(lines).toHaveLength(4);
  for (const line of lines) expect(line).toContain('is damaged and is not used: what it had is computed anew');
});

test('half-written files are never found and are removed when old; other files stay', async () => {
  await openTier();
  const [young, old] = ['.segment-0123456789ab', '.segment-ba9876543210'].map((name) => path.join(folder, name));
  for (const file of [young!, old!, path.join(folder, 'notes.txt')]) await writeFile(file, 'x');
  await utimes(old!, 1, 1);
  const disk = await openTier();
  expect(disk.numSegments).toBe(0);
  expect((await readdir(folder)).sort()).toEqual(['.segment-0123456789ab', 'notes.txt']);
  expect(lines).toEqual([
    `Files that a process had not written to their end, removed from ${folder}: 1; what they had is computed anew`,
  ]);
  await writeFile(path.join(folder, '.spill-0123456789ab'), 'x');
  await disk.clear();
  expect(await readdir(folder)).toEqual(['notes.txt']);
});

test('the disk limit removes the least recently used segment first, never one that another depends on', async () => {
  const disk = await openTier(4 * FILE_BYTES);
  const [a, b] = [segments(1, 512), segments(5000, 512)];
  for (const segment of [...a.all, ...b.all]) {
    await disk.write(segment, [CONTENT], PATH);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(disk.bytes).toBe(4 * FILE_BYTES);
  // Its first segment is older than all others but this one, and is used now.
  await disk.read(a.all[1]!);
  const c = segments(9000, 256);
  await disk.write(c.all[0]!, [CONTENT], PATH);
  expect(disk.bytes).toBe(4 * FILE_BYTES);
  expect(disk.find(ROOT, a.ids)).toEqual(a.all);
  expect(disk.find(ROOT, b.ids)).toEqual(b.all.slice(0, 1));
  expect(await readdir(folder)).toHaveLength(4);
  // A smaller cap holds at once.
  expect((await openTier(2.5 * FILE_BYTES)).numSegments).toBe(2);
  expect(await disk.write(segments(20_000, 256).all[0]!, [new Uint8Array(5 * FILE_BYTES)], PATH)).toBe(false);
  expect(disk.numSegments).toBe(2);
});

test('a much smaller disk limit sorts segments once and removes the same as one by one', async () => {
  const random = seededRandom(5);
  const writer = await openTier();
  // Trees of segments, used in any order.
  const all: { segment: FoundSegment; lastUse: number }[] = [];
  for (let i = 0; i < 120; i++) {
    const before = random() < 0.3 ? undefined : all[below(random, all.length)]?.segment;
    const startIndex = before ? before.startIndex + 256 : 0;
    const segment = {
      parent: before?.key ?? ROOT,
      key: segmentKey(before?.key ?? ROOT, [i]),
      numTokens: 256,
      startIndex,
    };
    await writer.write(segment, [CONTENT], PATH);
    all.push({ segment, lastUse: 1000 + ((i * 37) % 120) });
  }
  for (const { segment, lastUse } of all) await utimes(path.join(folder, nameOf(segment)), lastUse, lastUse);
  const left = [...all];
  while (left.length > 20) {
    const leaves = left.filter(({ segment }) => !left.some((each) => each.segment.parent === segment.key));
    const least = Math.min(...leaves.map(({ lastUse }) => lastUse));
    left.splice(
      left.findIndex(({ lastUse }) => lastUse === least),
      1,
    );
  }
  const values = vi.spyOn(Map.prototype, 'values');
  try {
    await openTier(20 * FILE_BYTES);
    expect(values.mock.calls.length).toBeLessThan(10);
  } finally {
    values.mockRestore();
  }
  expect((await readdir(folder)).sort()).toEqual(left.map(({ segment }) => nameOf(segment)).sort());
});

test('a context larger than the disk limit is kept as far as it fits, with no useless write', async () => {
  const disk = await openTier(4.5 * FILE_BYTES);
  const { ids, all } = segments(1, 6 * 256);
  const written = [];
  for (const segment of all.slice(0, 5)) written.push(await disk.write(segment, [CONTENT], PATH));
  expect(written).toEqual([true, true, true, true, false]);
  expect([disk.bytes, (await readdir(folder)).length]).toEqual([4 * FILE_BYTES, 4]);
  expect(disk.find(ROOT, ids)).toEqual(all.slice(0, 4));
});

test("processes that share a folder keep one limit, find each other's segments and survive removal of the folder", async () => {
  const tiers = [await openTier(4 * FILE_BYTES), await openTier(4 * FILE_BYTES), await openTier(4 * FILE_BYTES)];
  for (let i = 0; i < 12; i++) {
    await tiers[i % 3]!.write(segments(1000 * (i + 1), 100).all[0]!, [CONTENT], PATH);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await readdir(folder)).length).toBeLessThanOrEqual(4);
  }
  const [first, second] = tiers;
  const { ids, all } = segments(12_000, 100);
  expect(first!.find(ROOT, ids)).toEqual([]);
  await first!.write(segments(50_000, 100).all[0]!, [CONTENT], PATH);
  expect(first!.find(ROOT, ids)).toEqual(all);
  expect(await first!.read(all[0]!)).toEqual([CONTENT]);
  await rm(folder, { recursive: true });
  await second!.write(segments(60_000, 100).all[0]!, [CONTENT], PATH);
  expect([second!.numSegments, second!.bytes, (await readdir(folder)).length]).toEqual([1, FILE_BYTES, 1]);
  expect((await stat(folder)).mode & 0o777).toBe(process.platform === 'win32' ? 0o666 : 0o700);
});

test('forgetting a file removes its segments of every process and model and their descendants, and nothing else', async () => {
  const [disk, writer] = [await openTier(), await openTier()];
  const write = async (root: string, ids: readonly number[], filePath: string): Promise<string[]> => {
    let parent = root;
    const names: string[] = [];
    for (let startIndex = 0; startIndex < ids.length; startIndex += 256) {
      const tokens = ids.slice(startIndex, startIndex + 256);
      const segment = { parent, key: segmentKey(parent, tokens), numTokens: tokens.length, startIndex };
      await writer.write(segment, [CONTENT], filePath);
      names.push(nameOf(segment, filePath));
      parent = segment.key;
    }
    return names;
  };
  const [one, other] = [segments(5, 600).ids, segments(5000, 600).ids];
  // Two versions of a file, and the same file as another model's tokenizer has it.
  for (const ids of [one, one.with(300, 1)]) await write(ROOT, ids, 'src/a.ts');
  await write(rootKey('another model'), segments(9000, 400).ids, 'src/a.ts');
  const kept = [
    ...(await write(ROOT, other, 'src/b.ts')),
    ...(await write(rootKey('another model'), other, 'lib/a.ts')),
  ];
  // Behind what both begin with.
  const behind = await write(ROOT, other.with(599, 1), 'src/a.ts');
  expect(kept).toContain(nameOf(segments(5000, 600).all[0]!, 'src/b.ts'));
  await disk.removeFile('src/a.ts');
  expect((await readdir(folder)).sort()).toEqual(kept.sort());
  expect(disk.numSegments).toBe(kept.length);
  expect(behind).toHaveLength(3);
  // The others' rows stand on those of the one that wrote them first.
  await write(ROOT, other.with(599, 1), 'src/a.ts');
  await (await openTier()).removeFile('src/b.ts');
  expect(await readdir(folder)).toHaveLength(3);
});

test('clearing keeps the segments of the files to keep, with their ancestors, whoever wrote them', async () => {
  const disk = await openTier();
  const { ids, all } = segments(5, 600);
  for (const segment of all.slice(0, 2)) await disk.write(segment, [CONTENT], 'src/b.ts');
  await disk.write(all[2]!, [CONTENT], PATH);
  await disk.write(segments(5000, 100).all[0]!, [CONTENT], 'src/b.ts');
  const other = await openTier();
  await disk.write(segments(9000, 100).all[0]!, [CONTENT], 'src/b.ts');
  await other.clear([PATH, 'src/c.ts']);
  expect(other.find(ROOT, ids)).toEqual(all);
  expect([(await readdir(folder)).length, other.numSegments, other.bytes]).toEqual([3, 3, 3 * FILE_BYTES]);
  await other.clear();
  expect([await readdir(folder), other.numSegments, other.bytes]).toEqual([[], 0, 0]);
});

test('a file that cannot be removed is reported, and the others are removed', async () => {
  const { all } = segments(5, 600);
  for (const remove of [(disk: DiskTier) => disk.removeFile(PATH), (disk: DiskTier) => disk.clear()]) {
    const disk = await openTier();
    for (const segment of [...all, segments(5000, 100).all[0]!]) await disk.write(segment, [CONTENT], PATH);
    // A folder in the place of a file cannot be removed as one.
    const stuck = path.join(folder, nameOf(all[1]!));
    await rm(stuck);
    await mkdir(stuck);
    await expect(remove(disk)).rejects.toThrow(nameOf(all[1]!));
    expect(await readdir(folder)).toEqual([nameOf(all[1]!)]);
    await rmdir(stuck);
  }
});

test('file names reveal neither paths nor which segments belong together', async () => {
  const disk = await openTier();
  for (const segment of segments(5, 600).all) await disk.write(segment, [CONTENT], 'src/secret.ts');
  const names = await readdir(folder);
  expect(names.join()).not.toContain('secret');
  expect(new Set(names.map((name) => name.split('-')[2])).size).toBe(3);
});

test('a segment written by two processes for files with a common prefix is stored once, and forgetting one file keeps it for the other', async () => {
  const [segment, next] = [segments(5, 100).all[0]!, segments(1000, 100).all[0]!];
  const disk = await openTier();
  await disk.write(segment, [CONTENT], 'src/a.ts');
  const twice = (): Promise<void> =>
    copyFile(path.join(folder, nameOf(segment, 'src/a.ts')), path.join(folder, nameOf(segment, 'src/b.ts')));
  await twice();
  await disk.write(next, [CONTENT], PATH);
  expect((await readdir(folder)).sort()).toEqual([nameOf(segment, 'src/a.ts'), nameOf(next)].sort());
  await twice();
  const another = await openTier();
  expect([another.bytes, (await readdir(folder)).length]).toEqual([2 * FILE_BYTES, 2]);
});

test('segments of an earlier format version are removed', async () => {
  const disk = await openTier();
  const { parent, key, numTokens } = segments(5, 100).all[0]!;
  await disk.write(segments(5, 100).all[0]!, [CONTENT], PATH);
  for (const clear of [() => openTier(), () => disk.clear()]) {
    await writeFile(path.join(folder, `${parent}-${key}-${numTokens}.kv`), 'x');
    await clear();
    expect((await readdir(folder)).filter((name) => name !== nameOf(segments(5, 100).all[0]!))).toEqual([]);
  }
  expect(lines).toEqual(Array(2).fill(`Files of an earlier version, which nothing can use, removed from ${folder}: 1`));
});

test('segments behind a damaged or missing ancestor are removed', async () => {
  const { all } = segments(5, 600);
  const writeAll = async (disk: DiskTier): Promise<void> => {
    for (const segment of all) await disk.write(segment, [CONTENT], PATH);
  };
  for (const harm of [(file: string) => truncate(file, 500), (file: string) => rm(file)]) {
    const disk = await openTier();
    await writeAll(disk);
    await harm(path.join(folder, nameOf(all[0]!)));
    expect(await disk.read(all[0]!)).toBeNull();
    expect(await readdir(folder)).toEqual([]);
  }
  const [one, other] = [await openTier(), await openTier()];
  await one.write(all[0]!, [CONTENT], PATH);
  await other.removeFile(PATH);
  expect(await one.write(all[1]!, [CONTENT], PATH)).toBe(false);
  expect(await readdir(folder)).toEqual([]);
  // A name that goes on from itself, which we never write.
  await writeFile(path.join(folder, nameOf({ parent: ROOT, key: ROOT, numTokens: 100 })), 'x');
  await (await openTier()).removeFile(PATH);
  expect(await readdir(folder)).toEqual([]);
});

test('a failed segment write leaves no file', async () => {
  const disk = await openTier();
  await rm(folder, { recursive: true });
  await writeFile(folder, 'no folder any more');
  await expect(disk.write(segments(1, 10).all[0]!, [CONTENT], PATH)).rejects.toThrow('EEXIST');
  expect([disk.numSegments, disk.bytes]).toEqual([0, 0]);
});

test.runIf(process.platform === 'linux')(
  'a folder that cannot be made is an error, also where the file system answers ENOENT, with which mkdir of many folders never returns',
  async () => {
    for (const dir of ['/proc/kvasir', '/proc/kvasir/kv'])
      await expect(DiskTier.open(dir, 1e6, log)).rejects.toThrow('ENOENT');
    await writeFile(path.join(path.dirname(folder), 'file'), '');
    for (const dir of ['file', 'file/kv'])
      await expect(DiskTier.open(path.join(path.dirname(folder), dir), 1e6, log)).rejects.toThrow(/EEXIST|ENOTDIR/);
  },
);
