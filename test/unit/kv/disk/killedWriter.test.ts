/** A process that is killed while it writes segments: the next one finds all complete segments. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { DiskTier } from '../../../../engine/kv/disk/diskTier.ts';
import type { FoundSegment } from '../../../../engine/kv/disk/segment.ts';
import { seededRandom } from '../../../support/engine/workload.ts';
import { part } from '../../../support/testLength.ts';
import { CHAIN_ROOT, type ChainSegment, chain, runsOf } from '../../../support/kv/segmentChain.ts';

const ROUNDS = part(30);
/** A machine may rarely leave a file half written. */
const MAX_ROUNDS = 150;
const LENGTH = 64;
/** Of what each round leaves behind, for the next ones to find. */
const KEPT = 1;
const WRITER = path.join(import.meta.dirname, '../../../support/kv/segmentWriter.ts');

const folder = await mkdtemp(path.join(tmpdir(), 'kvasir-killed-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Starts a writer and kills it so long after its first write has begun. @returns how many segments it had told to be written. */
async function killedAfter(seed: number, ms: number): Promise<number> {
  const child = spawn(
    process.execPath,
    ['--disable-warning=MODULE_TYPELESS_PACKAGE_JSON', WRITER, folder, String(seed), String(LENGTH)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let told = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (told += text));
  const closed = once(child, 'close');
  await once(child.stdout, 'data');
  await sleep(ms);
  child.kill('SIGKILL');
  await closed;
  return told.trimEnd().split('\n').length - 1;
}

const temporaryFiles = async (): Promise<string[]> =>
  (await readdir(folder)).filter((name) => name.startsWith('.segment-'));

async function expectWhole(disk: DiskTier, segments: readonly FoundSegment[]): Promise<void> {
  for (const segment of segments) {
    const runs = await disk.read(segment);
    expect(runs?.length).toBe(2);
    // Compared as buffers: comparing half a million elements each would take minutes.
    expect(runsOf(segment).map((run, i) => Buffer.compare(run, runs![i]!))).toEqual([0, 0]);
  }
}

test(`killed in the midst of writing, ${ROUNDS} times and more: nothing is lost but what was being written`, async () => {
  const random = seededRandom(23);
  const earlier: ChainSegment[][] = [];
  let numHalf = 0;
  let numCut = 0;
  // How often a file is half written then is up to the machine: on, until it has been some times.
  for (let seed = 1; seed <= ROUNDS || (numHalf <= 2 && seed <= MAX_ROUNDS); seed++) {
    const numTold = await killedAfter(seed, 25 * random());
    const half = await temporaryFiles();
    // One writer writes one file at a time.
    expect(half.length).toBeLessThanOrEqual(1);
    numHalf += half.length;
    const lines: string[] = [];
    const disk = await DiskTier.open(folder, 1e9, (line) => lines.push(line));
    const segments = chain(seed, LENGTH);
    const found = disk.find(
      CHAIN_ROOT,
      segments.flatMap(({ ids }) => ids),
    );
    // It may have died between the renaming and the telling.
    expect([numTold, numTold + 1]).toContain(found.length);
    if (found.length < LENGTH) numCut++;
    await expectWhole(disk, found);
    for (const kept of earlier) {
      expect(
        disk.find(
          CHAIN_ROOT,
          kept.flatMap(({ ids }) => ids),
        ),
      ).toHaveLength(kept.length);
      await expectWhole(disk, kept);
    }
    expect(lines).toEqual([]);
    // What is half written goes when it is too old to be of a process that is at work.
    for (const name of half) await utimes(path.join(folder, name), 1, 1);
    await DiskTier.open(folder, 1e9, (line) => lines.push(line));
    expect(await temporaryFiles()).toEqual([]);
    expect(lines).toHaveLength(half.length);
    for (const line of lines) expect(line).toContain('not written to their end');
    await disk.remove(found.slice(KEPT));
    if (found.length) earlier.push(segments.slice(0, Math.min(KEPT, found.length)));
  }
  expect(await readdir(folder)).toHaveLength(earlier.flat().length);
  // Otherwise nothing has been tried.
  expect(numCut).toBeGreaterThan(ROUNDS / 2);
  expect(numHalf).toBeGreaterThan(2);
});
