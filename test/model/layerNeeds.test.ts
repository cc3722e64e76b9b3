/** Which layers of the built-in model lose most from coded rows. The result is measured once and improves the codec. */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { RunFormat } from '../../engine/kv/approx/codecs/codecFormat.ts';
import type { KvCodec } from '../../engine/kv/approx/codecs/kvCodec.ts';
import { codecNamed, FORMATS } from '../../engine/kv/approx/codecs/registry.ts';
import { codecFor, codecQuality, layerNeeds } from '../../engine/model/calibrate/codecQuality.ts';
import { importModel } from '../../engine/model/import/importModel.ts';
import { RopeTable } from '../../engine/model/runtime/rope.ts';
import { ModelText } from '../../engine/text/format/modelText.ts';
import { randomRows } from '../support/kv/codecRows.ts';
import { isNarrowHere, loadRunner, temporaryFolder } from '../support/model/fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

test('built-in model: all layers are ranked, the second time without a step, and a codec that uses the ranking loses less', async () => {
  const imported = await importModel({ modelDir: 'model', cacheDir: `${folder.dir}/cache`, precision: 'int8' });
  const runner = await loadRunner('model', `${folder.dir}/cache`, 'int8');
  const { tokenizer } = await ModelText.load('model');
  const rope = new RopeTable(imported.config.rope, imported.config.headSize);
  const encode = (text: string): number[] => tokenizer.encode(text);
  const format: RunFormat = FORMATS.find(({ name }) => name === 'turboquant')!;
  const measuring = { model: imported, runner, rope, encode, contextTokens: 1024 };
  const needs = (await layerNeeds(format, measuring))!;
  expect([...needs].sort()).toEqual(Array.from({ length: imported.config.numLayers }, (_, l) => l));
  expect(runner.pool.numSlots).toBe(0);
  const { run } = runner;
  runner.run = () => Promise.reject(new Error('a step'));
  expect(await layerNeeds(format, measuring)).toEqual(needs);
  await expect(layerNeeds(format, { ...measuring, contextTokens: 512 })).rejects.toThrow('a step');
  runner.run = run;
  // One step for each layer and one for each of three contexts. A cancelled load ends at once and keeps no slots.
  const given: number[] = [];
  const stop = (fraction: number): void => {
    given.push(fraction);
    if (given.length > 3) throw new Error('given up');
  };
  await expect(layerNeeds(format, { ...measuring, contextTokens: 512, onProgress: stop })).rejects.toThrow('given up');
  expect([given, runner.pool.numSlots]).toEqual([
    [1, 2, 3, 4].map((step) => expect.closeTo(step / (imported.config.numLayers + 3))),
    0,
  ]);
  expect(await layerNeeds(format, { ...measuring, contextTokens: 128 })).toBeUndefined();

  const lossOf = async (name: string, order: readonly number[]): Promise<number> => {
    const dir = path.join(folder.dir, name);
    await mkdir(dir);
    return (await codecQuality(
      { ...imported, dir },
      runner,
      encode,
      codecNamed('turboquant', runner.pool.shape, rope, order),
      1024,
      () => {},
    ))!.klMean;
  };
  const best = await lossOf('needs', needs);
  // Measured with 7-bit activations: 0.019.
  expect(best).toBeLessThan(isNarrowHere ? 0.03 : 0.01);
  expect(await lossOf('reversed', needs.toReversed())).toBeGreaterThan(2 * best);

  // The product uses the codec with this order of layers.
  const rows = randomRows(runner.pool.shape, 128, 1);
  const bytesOf = (codec: KvCodec): Uint8Array => codec.encode(rows, { startIndex: 0 });
  expect(bytesOf(await codecFor('turboquant', measuring))).toEqual(
    bytesOf(codecNamed('turboquant', runner.pool.shape, rope, needs)),
  );
  expect((await codecFor('nvfp4', measuring)).name).toBe('nvfp4');
  await expect(codecFor('int5', measuring)).rejects.toThrow('unknown codec int5');
  await runner.dispose();
});
