/**
 * Which levels of the cache's compression a model tolerates: measured once with the built-in model, then with changed
 * result files.
 */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { KvPool } from '../../engine/kv/pool.ts';
import { importModel } from '../../engine/model/import/importModel.ts';
import { kvShape } from '../../engine/model/load/importedModel.ts';
import { NativeRunner } from '../../engine/model/native/nativeRunner.ts';
import { type ApproximationChoice, chooseApproximations } from '../../engine/server/approximationChoice.ts';
import type { LoadOptions } from '../../engine/protocol/messages.ts';
import type { CodecQuality } from '../../engine/protocol/stats.ts';
import { ModelText } from '../../engine/text/format/modelText.ts';
import { temporaryFolder } from '../support/model/fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

test('auto uses only codecs with a small loss for the model, and logs a rejected codec', async () => {
  const imported = await importModel({
    modelDir: 'model',
    cacheDir: folder.dir,
    precision: 'int8',
    products: 'native',
  });
  const runner = NativeRunner.create(imported, new KvPool(kvShape(imported.config, 'int8'), 0), { threads: 1 });
  const modelText = await ModelText.load('model');
  let lines: string[] = [];
  let shown: number[] = [];
  type Choice = ApproximationChoice['approximations'] & { qualities: readonly CodecQuality[] };
  const bears = async (compress: LoadOptions['compress'], contextTokens = 2048): Promise<Choice> => {
    [lines, shown] = [[], []];
    const { approximations, info } = await chooseApproximations(
      { compress },
      {
        imported,
        runner,
        text: modelText,
        contextTokens,
        onProgress: (fraction) => void shown.push(fraction),
        log: (line) => void lines.push(line),
      },
    );
    return { ...approximations, qualities: info.compressed ?? [] };
  };
  const levels = ({ compression }: Choice): unknown => compression?.levels.map(({ codec }) => codec.name) ?? null;
  const spoil = async (codec: string, klMean: number): Promise<void> => {
    const file = path.join(imported.dir, `codec-${codec}.json`);
    const kept = JSON.parse(await readFile(file, 'utf8')) as { key: object; result: CodecQuality };
    await writeFile(file, JSON.stringify({ ...kept, result: { ...kept.result, klMean } }));
  };

  const all = await bears('auto');
  expect([levels(all), lines, all.pruning]).toEqual([['int4-kivi', 'turboquant', 'turboquant'], [], undefined]);
  // Two codecs with three contexts each share one progress bar. The second codec first measures its layers one by one.
  expect(shown.slice(0, 3)).toEqual([1, 2, 3].map((part) => expect.closeTo(part / 6)));
  expect(shown.slice(-3)).toEqual([10, 11, 12].map((part) => expect.closeTo(part / 12)));
  expect(shown.length).toBeGreaterThan(6 + imported.config.numLayers);
  expect(shown).toEqual([...shown].sort((a, b) => a - b));
  const [mild, hard] = all.qualities as [CodecQuality, CodecQuality];
  expect(hard.klMean).toBeGreaterThan(mild.klMean);
  expect(hard.compression).toBeGreaterThan(mild.compression);
  expect([(await bears('auto')).qualities, shown]).toEqual([all.qualities, []]);

  const tooMuch = (codec: string): string =>
    `${codec} is not used: it loses too much with this model (mean KL divergence 0.200, limit 0.05)`;
  await spoil('turboquant', 0.2);
  const without = await bears('auto');
  expect([levels(without), lines, without.qualities.map(({ klMean }) => klMean)]).toEqual([
    ['int4-kivi'],
    [tooMuch('turboquant')],
    [mild.klMean, 0.2],
  ]);
  await spoil('int4-kivi', 0.2);
  expect([levels(await bears('auto')), lines]).toEqual([null, [tooMuch('int4-kivi'), tooMuch('turboquant')]]);
  await spoil('turboquant', 0.01);
  expect([levels(await bears('auto')), lines]).toEqual([['turboquant', 'turboquant'], [tooMuch('int4-kivi')]]);
  expect([levels(await bears('turboquant')), levels(await bears('int4-kivi'))]).toEqual([['turboquant'], null]);
  // The fifth of the layers that need their rows most decides which rows are pruned. Kept rows are encoded in the same
  // order of layers.
  const kvzip = await bears('kvzip');
  const neediest = (
    JSON.parse(await readFile(path.join(imported.dir, 'layers-turboquant.json'), 'utf8')).result as number[]
  ).slice(0, Math.round(imported.config.numLayers / 5));
  expect([
    levels(kvzip),
    kvzip.compression!.only,
    kvzip.pruning!.layers,
    kvzip.qualities.map(({ codec }) => codec),
  ]).toEqual([['turboquant'], 'kept', new Set(neediest), ['kvzip', 'h2o']]);
  // Measured: 0.021.
  expect(kvzip.qualities[0]!.klMean).toBeLessThan(0.03);
  expect(kvzip.qualities[0]!.compression).toBeGreaterThan(1.05 * hard.compression);
  // With another order of the layers it would be a different codec.
  const layers = path.join(imported.dir, 'layers-turboquant.json');
  const needs = JSON.parse(await readFile(layers, 'utf8')) as { key: object; result: number[] };
  await writeFile(layers, JSON.stringify({ ...needs, result: needs.result.toReversed() }));
  expect((await bears('turboquant')).qualities[0]!.klMean).toBeGreaterThan(2 * hard.klMean);
  await writeFile(layers, JSON.stringify({ ...needs, result: [99] }));
  expect((await bears('turboquant')).qualities[0]!.compression).toBeCloseTo(hard.compression);
  const short = await bears('auto', 64);
  expect([levels(short), short.qualities, lines]).toEqual([
    null,
    [],
    ['int4-kivi', 'turboquant'].map(
      (codec) => `${codec} is not used: the context is too short to measure what it loses`,
    ),
  ]);
  await runner.dispose();
});
