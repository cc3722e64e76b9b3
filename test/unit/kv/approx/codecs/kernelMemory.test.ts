/** The size of the kernels' memory is known in advance, to the byte. */
import { beforeEach, expect, test, vi } from 'vitest';
import { newKvRows } from '../../../../../engine/kv/kvRows.ts';
import { randomRows, rope } from '../../../../support/kv/codecRows.ts';

const PAGE = 65_536;

/** New module instances, whose kernels' memory is unused. */
async function fresh() {
  const [kernels, registry, memory, blocks, sketch, budget] = await Promise.all([
    import('../../../../../engine/kv/approx/codecs/kernels.ts'),
    import('../../../../../engine/kv/approx/codecs/registry.ts'),
    import('../../../../../engine/kv/approx/compression.ts'),
    import('../../../../../engine/kv/storedBlocks.ts'),
    import('../../../../../engine/kv/approx/sparse/keySketch.ts'),
    import('../../../../../engine/kv/approx/sparse/sparseBudget.ts'),
  ]);
  return { ...kernels, ...registry, ...memory, ...blocks, ...sketch, ...budget };
}

beforeEach(() => vi.resetModules());

test.each([
  [2, 64],
  [8, 128],
  [3, 80],
])(
  '%i heads of %i values: what is coded, in the largest run that the store makes, and decoded',
  async (kvHeads, headSize) => {
    const shape = { numLayers: 2, kvHeads, headSize };
    const names = (await fresh()).FORMATS.map(({ name }) => name);
    for (const name of names) {
      vi.resetModules();
      const { codecNamed, kernelBytes, codingBytes, BLOCK_TOKENS } = await fresh();
      const codec = codecNamed(name, shape, rope(headSize));
      const foretold = codingBytes({ levels: [{ codec, idleMs: 0, fullness: 0 }], only: null });
      expect([name, kernelBytes()]).toEqual([name, 0]);
      for (const numTokens of [1, codec.format.blockTokens, 2 * codec.format.blockTokens + BLOCK_TOKENS])
        codec.decode(codec.encode(randomRows(shape, numTokens, 1), { startIndex: 1000 }));
      expect([name, kernelBytes()]).toEqual([name, foretold]);
      expect(foretold).toBe(codec.lossless ? 0 : Math.ceil(foretold / PAGE) * PAGE);
      expect(foretold > 0).toBe(!codec.lossless);
    }
  },
);

test.each([64, 256, 1024])('sketches of blocks of keys with %i values', async (headSize) => {
  const { sketchKeys, sketchingBytes, kernelBytes } = await fresh();
  const shape = { numLayers: 1, kvHeads: 2, headSize, kv: 'int8' as const };
  sketchKeys(shape, newKvRows(shape, 32));
  expect(kernelBytes()).toBe(sketchingBytes(shape));
  expect(kernelBytes()).toBeGreaterThan(0);
});
