/** Spilled or compressed blocks that are cut: their parts keep their rows and take no more bytes (see ceilingWatch). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SEAL_BYTES, SpillFile } from '../../../../engine/kv/disk/spillFile.ts';
import { KvCache } from '../../../../engine/kv/kvCache.ts';
import { kvBytesPerToken, type KvRows, sliceRows } from '../../../../engine/kv/kvRows.ts';
import { sketchBytes, sketchKeys } from '../../../../engine/kv/approx/sparse/keySketch.ts';
import { KvStore } from '../../../../engine/kv/store.ts';
import { exactBytesPerToken, plainBlocks } from '../../../../engine/kv/storedBlocks.ts';
import { cacheOptions } from '../../../../engine/kv/approx/approximations.ts';
import { KvPool } from '../../../../engine/kv/pool.ts';
import { randomRows } from '../../../support/kv/codecRows.ts';
import { codec } from '../../../support/kv/ladderedCache.ts';

const SHAPE = { numLayers: 2, kvHeads: 2, headSize: 16, kv: 'int8' as const };
const BLOCK = 32;
const N = 10 * BLOCK;
const LONG = Array.from({ length: N }, (_, i) => i);
const ROWS = randomRows(SHAPE, N, 1);
const PIECE_BYTES = BLOCK * exactBytesPerToken(SHAPE) + SEAL_BYTES;
/** Within blocks. */
const CUTS = [9 * BLOCK + 20, 6 * BLOCK + 5, 6 * BLOCK + 2, 31];

/** A cache with LONG in a spill file that is full then, and nothing in the pool. */
function spilled(): {
  cache: KvCache;
  file: SpillFile;
  compute: (tokenIds: readonly number[], rows: KvRows, sparse?: number) => void;
} {
  const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-halves-'));
  const file = new SpillFile(folder, (N / BLOCK) * PIECE_BYTES, () => {});
  onTestFinished(() => {
    file.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const pool = new KvPool(SHAPE, 0);
  const cache = new KvCache({
    pool,
    maxBytes: 2048 * kvBytesPerToken(SHAPE),
    softSlots: 256,
    clock: () => 1,
    ...cacheOptions({ spillFile: file }),
  });
  const compute = (tokenIds: readonly number[], rows: KvRows, sparse = 0): void => {
    const lease = cache.open('chat', { longTokens: sparse });
    const slots = cache.memory.allocate(tokenIds.length)!;
    pool.write(slots, rows, 0, 0);
    cache.append(lease, slots);
    cache.commit(lease, tokenIds);
    cache.release(lease);
    cache.checkIntegrity();
  };
  compute(LONG, ROWS, N);
  expect(cache.prefixes.describe(LONG)).toMatchObject({ tokens: N, tier: 'store' });
  return { cache, file, compute };
}

/** Tokens of another sequence, and their rows. LONG is split behind them. */
const beginning = (at: number): [number[], KvRows] => [LONG.slice(0, at), sliceRows(SHAPE, ROWS, 0, at)];

/** From the pool as far as that has them. */
function readBack(cache: KvCache, numTokens: number): KvRows | null {
  return cache.prefixes.readExact(LONG, 0, numTokens);
}

test('splitting spilled rows writes nothing, also on a full disk, and the file space is freed with the last half', () => {
  const { cache, file } = spilled();
  const { bytes } = file;
  expect(bytes).toBe(file.maxBytes);
  for (const at of CUTS) {
    cache.prefixes.evict(LONG.slice(0, at));
    cache.checkIntegrity();
    expect(cache.prefixes.describe(LONG).tokens).toBe(at);
    expect(file.bytes).toBe(Math.ceil(at / BLOCK) * PIECE_BYTES);
    expect(readBack(cache, at)).toEqual(sliceRows(SHAPE, ROWS, 0, at));
  }
  cache.prefixes.evict();
  expect(file.bytes).toBe(0);
});

test('the halves of a split block have its rows and take no more memory', () => {
  const { cache, file, compute } = spilled();
  const before = cache.memory.store.bytes;
  for (const at of CUTS) {
    compute(...beginning(at));
    expect(cache.memory.store.bytes).toBe(before);
    expect(readBack(cache, N)).toEqual(ROWS);
  }
  expect(file.bytes).toBe(file.maxBytes);
});

test('splitting needs no memory, also with a full budget and nothing to evict', () => {
  const { cache, compute } = spilled();
  const lease = cache.open('chat', { longTokens: N });
  expect(cache.advance(lease, LONG, N)).toBe(N);
  cache.setMaxBytes(cache.memory.pool.bytes + cache.memory.store.bytes);
  for (const at of [5 * BLOCK + 20, 3 * BLOCK + 5, 3 * BLOCK + 2, 31, 17]) compute(...beginning(at));
  cache.release(lease);
  cache.checkIntegrity();
  expect(cache.prefixes.describe(LONG).tokens).toBe(N);
});

test('a budget too small for leased rows is refused', () => {
  const { cache } = spilled();
  const lease = cache.open('chat', { longTokens: N });
  cache.advance(lease, LONG, N);
  expect(() => cache.setMaxBytes(cache.memory.pool.bytes + cache.memory.store.bytes - 1)).toThrow('leases hold');
  cache.release(lease);
  cache.setMaxBytes(cache.memory.pool.bytes + cache.memory.store.bytes - 1);
  cache.checkIntegrity();
});

test('spilling a long node evicts others for the key sketches of its blocks', () => {
  const n = 64 * BLOCK;
  const file = new SpillFile(mkdtempSync(path.join(tmpdir(), 'kvasir-halves-')), 1e8, () => {});
  onTestFinished(() => file.close());
  const pool = new KvPool(SHAPE, 0);
  const cache = new KvCache({
    pool,
    maxBytes: 4096 * kvBytesPerToken(SHAPE),
    softSlots: n,
    clock: () => 1,
    ...cacheOptions({ spillFile: file }),
  });
  const lease = cache.open();
  const ids = Array.from({ length: n }, (_, i) => i);
  const slots = cache.memory.allocate(n)!;
  pool.write(slots, randomRows(SHAPE, n, 2), 0, 0);
  cache.append(lease, slots);
  cache.commit(lease, ids);
  // The store is full of unused nodes.
  const others = Array.from({ length: n }, (_, i) => 10_000 + i);
  expect(cache.prefixes.takeStored(others, 0, plainBlocks(SHAPE, randomRows(SHAPE, n, 3)), 'idle')).toBe(n);
  cache.setMaxBytes(cache.memory.pool.bytes + cache.memory.store.bytes);
  const sparse = cache.open('chat', { longTokens: n });
  expect(cache.advance(sparse, ids, n)).toBe(n);
  cache.checkIntegrity();
  expect(cache.prefixes.describe(others).tokens).toBeLessThan(n);
  for (const each of [sparse, lease]) cache.release(each);
});

test('parts of an encoded block are decoded one by one, and the block is freed with the last part', () => {
  const { cache, file } = spilled();
  cache.prefixes.evict();
  const store = new KvStore(SHAPE, file);
  const coded = store.compress(
    store.add(plainBlocks(SHAPE, sliceRows(SHAPE, ROWS, 0, 128))),
    codec('turboquant'),
    { startIndex: 1000 },
    [],
  )!.run;
  const [rows, bytes] = [store.read(coded, 0, 128), store.bytes];
  const [upper, lower] = store.split(coded, 50);
  const [middle, end] = store.split(lower, 30);
  const away = store.replace(middle, store.spill(middle.blocks, (rows) => sketchKeys(SHAPE, rows))!);
  expect(store.bytes).toBe(bytes + sketchBytes(SHAPE, 30));
  // What it has been through is not the block's to say any more: maybe nothing, where a codec has kept its rows as they were.
  expect(away.blocks.map((block) => block.codec)).toEqual([null]);
  expect([upper, away, end].map((run) => store.read(run, 0, run.numTokens))).toEqual(
    [
      [0, 50],
      [50, 80],
      [80, 128],
    ].map(([from, to]) => sliceRows(SHAPE, rows, from!, to!)),
  );
  store.drop(upper);
  expect(store.bytes).toBe(bytes + sketchBytes(SHAPE, 30));
  expect([store.bytesOf([away]), store.bytesOf([away, end])]).toEqual([sketchBytes(SHAPE, 30), store.bytes]);
  store.drop(end);
  expect(store.bytes).toBe(sketchBytes(SHAPE, 30));
  store.drop(away);
  expect([store.bytes, file.bytes]).toEqual([0, 0]);
});
