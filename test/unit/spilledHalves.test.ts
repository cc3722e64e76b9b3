/** What is out of memory is cut within a block: its halves are where it was, and nothing takes a byte too many for a moment (see ceilingWatch). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SEAL_BYTES, SpillFile } from '../../engine/cache/disk/spillFile.ts';
import { KvCache } from '../../engine/cache/kvCache.ts';
import { kvBytesPerToken, type KvRows, sliceRows } from '../../engine/cache/kvRows.ts';
import { sketchBytes } from '../../engine/cache/keySketch.ts';
import { exactBytesPerToken } from '../../engine/cache/storedBlocks.ts';
import { KvWindow } from '../../engine/cache/window.ts';
import { randomRows } from './codecRows.ts';

const SHAPE = { numLayers: 2, kvHeads: 2, headSize: 16, kv: 'int8' as const };
const BLOCK = 32;
const N = 10 * BLOCK;
const LONG = Array.from({ length: N }, (_, i) => i);
const ROWS = randomRows(SHAPE, N, 1);
const PIECE_BYTES = BLOCK * exactBytesPerToken(SHAPE) + SEAL_BYTES;
/** What the halves of a block take in memory beyond what it took. */
const MORE = 2 * sketchBytes(SHAPE, BLOCK / 2) - sketchBytes(SHAPE, BLOCK);
/** Within blocks. */
const CUTS = [9 * BLOCK + 20, 6 * BLOCK + 5, 6 * BLOCK + 2, 31];

/** A cache that has LONG out of memory, in a file that has room for nothing else, and nothing in the window. */
function spilled(): { cache: KvCache; file: SpillFile; compute: (tokenIds: readonly number[], rows: KvRows, sparse?: number) => void } {
  const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-halves-'));
  const file = new SpillFile(folder, (N / BLOCK) * PIECE_BYTES, () => {});
  onTestFinished(() => {
    file.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const window = new KvWindow(SHAPE, 0);
  const cache = new KvCache({ window, maxBytes: 2048 * kvBytesPerToken(SHAPE), softSlots: 256, clock: () => 1, spillFile: file });
  const compute = (tokenIds: readonly number[], rows: KvRows, sparse = 0): void => {
    const lease = cache.open('chat', { sparse });
    const slots = cache.allocate(tokenIds.length)!;
    window.write(slots, rows, 0, 0);
    cache.append(lease, slots);
    cache.commit(lease, tokenIds);
    cache.release(lease);
    cache.checkIntegrity();
  };
  compute(LONG, ROWS, N);
  expect(cache.describe(LONG)).toMatchObject({ tokens: N, tier: 'store' });
  return { cache, file, compute };
}

/** Tokens that somebody else has computed, and their rows: LONG is cut behind them. */
const beginning = (at: number): [number[], KvRows] => [LONG.slice(0, at), sliceRows(SHAPE, ROWS, 0, at)];

/** From the window as far as that has them. */
function readBack(cache: KvCache, numTokens: number): KvRows | null {
  return cache.runs.readExact(LONG, 0, numTokens);
}

test('no half is written again, a disk that is full is no matter, and what is on it goes with the last half', () => {
  const { cache, file } = spilled();
  const { bytes } = file;
  expect(bytes).toBe(file.maxBytes);
  for (const at of CUTS) {
    cache.evict(LONG.slice(0, at));
    cache.checkIntegrity();
    expect(cache.describe(LONG).tokens).toBe(at);
    expect(file.bytes).toBe(Math.ceil(at / BLOCK) * PIECE_BYTES);
    expect(readBack(cache, at)).toEqual(sliceRows(SHAPE, ROWS, 0, at));
  }
  cache.evict();
  expect(file.bytes).toBe(0);
});

test('both halves have the rows that the block had, and each its own sketch', () => {
  const { cache, file, compute } = spilled();
  const before = cache.storeBytes;
  for (const [i, at] of CUTS.entries()) {
    compute(...beginning(at));
    expect(cache.storeBytes - before).toBe((i + 1) * MORE);
    expect(readBack(cache, N)).toEqual(ROWS);
  }
  expect(file.bytes).toBe(file.maxBytes);
});

test('where the ceiling has no byte more, the halves have room all the same', () => {
  for (let spare = 0; spare <= 2 * MORE; spare += MORE / 16) {
    const { cache, compute } = spilled();
    cache.setMaxBytes(cache.windowBytes + cache.storeBytes + spare);
    cache.checkIntegrity();
    for (const at of CUTS) compute(...beginning(at));
  }
});
