/** Pruned rows in the store: compressed together and read back at their positions, from memory or from disk. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SpillFile } from '../../../../../engine/kv/disk/spillFile.ts';
import { KEPT_CODEC } from '../../../../../engine/kv/approx/pruned/keptRows.ts';
import { sliceRows } from '../../../../../engine/kv/kvRows.ts';
import { KvStore } from '../../../../../engine/kv/store.ts';
import { BLOCK_TOKENS, keptBlocks } from '../../../../../engine/kv/storedBlocks.ts';
import { KvPool } from '../../../../../engine/kv/pool.ts';
import { randomRows } from '../../../../support/kv/codecRows.ts';
import { codec } from '../../../../support/kv/ladderedCache.ts';

const SHAPE = { numLayers: 2, kvHeads: 2, headSize: 16, kv: 'int8' as const };
const START = 1000;
const N = 5 * BLOCK_TOKENS;
/** One of three tokens is gone. */
const POSITIONS = Int32Array.from({ length: N }, (_, i) => START + i + Math.floor(i / 2));
const NUM_TOKENS = N + Math.floor(N / 2);

test('pruned rows are encoded with their own positions and read back at those positions', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-kept-'));
  const file = new SpillFile(folder, 1_000_000, () => {});
  onTestFinished(() => {
    file.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const rows = randomRows(SHAPE, N, 1);
  const store = new KvStore(SHAPE, file);
  const kept = codec(KEPT_CODEC);
  const run = store.add(keptBlocks(SHAPE, rows, POSITIONS, NUM_TOKENS));
  const { run: coded, lossy } = store.compress(run, kept, { startIndex: START }, [])!;
  expect(coded.blocks.map(({ numRows }) => numRows)).toEqual([4 * BLOCK_TOKENS, BLOCK_TOKENS]);
  expect([coded.numTokens, coded.numRows, lossy]).toEqual([
    NUM_TOKENS,
    N,
    [{ from: 0, to: 4 * BLOCK_TOKENS, codec: KEPT_CODEC }],
  ]);
  const [first] = coded.blocks;
  const positions = POSITIONS.slice(0, 4 * BLOCK_TOKENS);
  expect(first!.positions).toEqual(positions);
  expect(first!.bytes).toBe(kept.encodedBytes(4 * BLOCK_TOKENS, { startIndex: START }) + positions.byteLength);
  const pool = new KvPool(SHAPE, 256);
  const slots = Int32Array.from({ length: N }, (_, i) => i);
  store.copyTo(pool, coded, slots, START);
  expect(pool.positionsOf(slots)).toEqual(POSITIONS);
  const through = kept.through(sliceRows(SHAPE, rows, 0, positions.length), { startIndex: START, positions });
  expect(first!.rows()).toEqual(through);
  // Out of memory they are read as they were.
  const [away] = store.spill([first!], () => new Uint8Array(1))!;
  expect(away!.rows()).toEqual(through);
});
