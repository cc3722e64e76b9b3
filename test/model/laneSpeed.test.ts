/** Measures with a real runner which lane reads short texts faster. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { KvPool } from '../../engine/kv/pool.ts';
import { importModel } from '../../engine/model/import/importModel.ts';
import { kvShape } from '../../engine/model/load/importedModel.ts';
import { crossoverOf, laneCrossover, type LaneTimes } from '../../engine/model/calibrate/laneCrossover.ts';
import { OnnxRunner } from '../../engine/model/runtime/runner.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-crossover-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('both lanes are measured once and leave the pool empty; a small model keeps the default', async () => {
  const model = await importModel({ modelDir: 'model', cacheDir: folder, precision: 'int8' });
  const pool = new KvPool(kvShape(model.config, 'int8', model.biased), 0);
  const runner = await OnnxRunner.create(model, pool, { threads: 1 });
  try {
    const choose = (parameters: number, contextTokens = 2048): Promise<number> =>
      laneCrossover(model.dir, runner, { parameters, contextTokens });
    expect([await choose(model.parameters), await choose(1e9, 500)]).toEqual([32, 32]);
    const run = runner.run.bind(runner);
    const before: Record<string, number[]> = { paged: [], prefill: [] };
    runner.run = (spans) => {
      before[spans[0]!.lane!]!.push(spans[0]!.contextSlots[0]!);
      return run(spans);
    };
    const fractions: number[] = [];
    const chosen = await laneCrossover(model.dir, runner, { parameters: 1e9, contextTokens: 2048 }, (fraction) =>
      fractions.push(fraction),
    );
    expect(fractions).toEqual([0, 0.25, 0.5, 0.75]);
    // Each run follows other rows, so the prefill lane has to receive them, as in real use.
    for (const starts of Object.values(before))
      expect(starts.every((start, i) => i === 0 || start !== starts[i - 1])).toBe(true);
    expect(before.prefill!.length).toBeGreaterThan(10);
    const { result } = JSON.parse(readFileSync(path.join(model.dir, 'crossover.json'), 'utf8')) as {
      result: { fewest: number; times: LaneTimes[] };
    };
    expect(result.times.map(({ tokens }) => tokens)).toEqual([16, 32, 64, 128]);
    for (const { paged, prefill } of result.times) expect(Math.min(paged, prefill)).toBeGreaterThan(0);
    expect([chosen, result.fewest]).toEqual([crossoverOf(result.times), crossoverOf(result.times)]);
    expect([pool.numSlots, runner.scratchBytes]).toEqual([0, 0]);
    // A cancelled load stops this measurement at once and leaves no entry.
    runner.run = run;
    await expect(
      laneCrossover(path.join(folder, 'nowhere'), runner, { parameters: 1e9, contextTokens: 2048 }, (fraction) => {
        if (fraction > 0.4) throw new Error('given up');
      }),
    ).rejects.toThrow('given up');
    expect([pool.numSlots, runner.scratchBytes]).toEqual([0, 0]);
    runner.run = () => Promise.reject(new Error('measured again'));
    expect(await choose(1e9)).toBe(chosen);
  } finally {
    await runner.dispose();
  }
});
