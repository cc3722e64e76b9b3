/** The bytes that the budget keeps free for the techniques, in numbers: other tests compute their budgets with them. */
import { beforeEach, expect, test, vi } from 'vitest';
import type { SpillFile } from '../../../../engine/kv/disk/spillFile.ts';
import { rope } from '../../../support/kv/codecRows.ts';

/** The shape of Qwen2.5-Coder 1.5B. */
const SHAPE = { numLayers: 28, kvHeads: 2, headSize: 128, kv: 'int8' as const };
/** A page of the memory of WebAssembly. */
const PAGE = 65_536;
const spillFile = { maxBytes: 1e9 } as SpillFile;

/** New module instances, whose kernels have no memory yet. */
async function fresh() {
  const [approximations, registry, kernels] = await Promise.all([
    import('../../../../engine/kv/approx/approximations.ts'),
    import('../../../../engine/kv/approx/codecs/registry.ts'),
    import('../../../../engine/kv/approx/codecs/kernels.ts'),
  ]);
  const compression = (name: string) =>
    approximations.compressionOf(
      name,
      approximations.codecNames(name).map((codec) => registry.codecNamed(codec, SHAPE, rope(SHAPE.headSize))),
    );
  return { ...approximations, ...kernels, compression };
}

beforeEach(() => vi.resetModules());

test('without techniques nothing is kept free', async () => {
  const { reservedBytes } = await fresh();
  expect(reservedBytes({}, SHAPE)).toBe(0);
});

test('each technique keeps the pages of its kernels free; several share them', async () => {
  const { reservedBytes, compression } = await fresh();
  const numPages = (setting: string, file: SpillFile | null = null): number =>
    reservedBytes({ compression: compression(setting), spillFile: file }, SHAPE) / PAGE;
  expect(reservedBytes({ spillFile }, SHAPE) / PAGE).toBe(1);
  expect(['int4-kivi', 'nvfp4', 'turboquant', 'kvzip', 'auto'].map((name) => numPages(name))).toEqual([
    4, 4, 12, 12, 12,
  ]);
  expect(['int4-kivi', 'turboquant'].map((name) => numPages(name, spillFile))).toEqual([4, 12]);
});

test('rows of float32 have no sketches, so a spill file needs nothing', async () => {
  const { reservedBytes } = await fresh();
  expect(reservedBytes({ spillFile }, { ...SHAPE, kv: 'float32' })).toBe(0);
});

test('memory that the kernels already have stays reserved', async () => {
  const { reservedBytes, kernelMemory } = await fresh();
  kernelMemory(40 * PAGE - 1);
  expect(reservedBytes({}, SHAPE)).toBe(40 * PAGE);
  expect(reservedBytes({ spillFile }, SHAPE)).toBe(40 * PAGE);
});
