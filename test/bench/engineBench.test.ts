/**
 * Runs the benchmark suite `engine` on a tiny shape. Checks that everything is measured and reported. Does not check
 * times.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { importModel } from '../../engine/model/import/importModel.ts';
import { ModelText, selfTest } from '../../engine/text/format/modelText.ts';
import { engineBench, engineOptions, takeTurns } from './engineBench.ts';
import { type Case, GROUPS } from './engineCases.ts';
import { engineCharts, engineReport, shares } from './engineReport.ts';
import { SHAPES, tensorsOf } from './shapes.ts';
import { shapeFolder } from './writeShape.ts';
import { temporaryFolder } from '../support/model/fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

test('a shape folder holds weights and a tokenizer, and equal seeds give equal folders', async () => {
  const dir = await shapeFolder('tiny', folder.dir);
  const imported = await importModel({ modelDir: dir, cacheDir: path.join(folder.dir, 'imported'), precision: 'int8' });
  expect(imported.tied).toBe(true);
  expect(imported.parameters).toBe(
    tensorsOf(SHAPES.tiny).reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0),
  );
  expect(selfTest(await ModelText.load(dir), SHAPES.tiny.vocab_size)).toEqual({});
  expect(readdirSync(folder.dir).sort()).toEqual(['imported', 'tiny-seed1']);

  const weights = (where: string): Buffer => readFileSync(path.join(where, 'model.safetensors'));
  const again = await shapeFolder('tiny', path.join(folder.dir, 'again'));
  const other = await shapeFolder('tiny', folder.dir, 2);
  expect(weights(again).equals(weights(dir))).toBe(true);
  expect(weights(other).equals(weights(dir))).toBe(false);
});

test('random weights have the requested spread, norms are 1', async () => {
  const bytes = readFileSync(path.join(await shapeFolder('tiny', folder.dir), 'model.safetensors'));
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString('utf8', 8, start)) as Record<string, { data_offsets: [number, number] }>;
  for (const { name, mean, deviation } of tensorsOf(SHAPES.tiny)) {
    const [from, to] = header[name]!.data_offsets;
    const values = Array.from(
      { length: (to - from) / 2 },
      (_, i) => new Float32Array(Uint32Array.of(bytes.readUInt16LE(start + from + 2 * i) << 16).buffer)[0]!,
    );
    const average = values.reduce((a, b) => a + b, 0) / values.length;
    const spread = Math.sqrt(values.reduce((sum, v) => sum + (v - average) ** 2, 0) / values.length);
    // Six times the standard error of the mean and of the deviation.
    const error = (6 * deviation) / Math.sqrt(values.length);
    expect(Math.abs(average - mean), name).toBeLessThanOrEqual(error);
    expect(Math.abs(spread - deviation), name).toBeLessThanOrEqual(error);
  }
});

test('each case runs once unmeasured and then in each round', async () => {
  const order: string[] = [];
  const made = (name: string, long = false): Case => ({
    group: 'decode',
    key: { name },
    long,
    measure: async () => ({ ms: order.push(name) }),
  });
  const results = await takeTurns([made('a'), made('b'), made('c', true)], 3, 1, 1, () => {});
  expect(order.slice(0, 2)).toEqual(['a', 'b']);
  expect(order.slice(2).sort()).toEqual(['a', 'a', 'a', 'b', 'b', 'b', 'c']);
  expect(results.map(({ figures }) => figures.ms!.samples.length)).toEqual([3, 3, 1]);
});

test('nonsensical options are refused', () => {
  expect(engineOptions({ shape: 'tiny', rounds: '2', only: 'decode,whole', profile: true })).toMatchObject({
    shape: 'tiny',
    precision: 'int8',
    rounds: 2,
    only: ['decode', 'whole'],
    profile: true,
  });
  expect(() => engineOptions({ shape: 'huge' })).toThrow(
    '--shape huge: it must be one of qwen2.5-0.5b, qwen2.5-1.5b, tiny',
  );
  expect(engineOptions({ precision: 'int4' }).precision).toBe('int4');
  expect(() => engineOptions({ precision: 'float32' })).toThrow('--precision float32: it must be one of int8, int4');
  expect(() => engineOptions({ rounds: '-1' })).toThrow('--rounds -1: it must be a whole number');
  expect(() => engineOptions({ only: 'decode,x' })).toThrow('--only x');
});

test('the whole suite, with profiles, tables and charts', async () => {
  const bench = await engineBench({
    shape: 'tiny',
    rounds: 2,
    longRounds: 1,
    profile: true,
    threads: 2,
    scanBytes: 2 ** 20,
    cache: folder.dir,
  });
  for (const { figures, key } of bench.results) {
    for (const [name, { samples }] of Object.entries(figures)) {
      expect(samples.length, JSON.stringify(key)).toBeGreaterThan(0);
      expect(
        samples.every(
          (value) =>
            Number.isFinite(value) &&
            (value > 0 ||
              name === 'outsideMs' ||
              name === 'allocatedKb' ||
              name === 'tiled' ||
              name.endsWith('Tokens')),
        ),
        `${JSON.stringify(key)} ${name}: ${samples}`,
      ).toBe(true);
    }
  }
  // A step leaves little garbage apart from the logits.
  for (const { figures } of bench.results.filter(({ group }) => group === 'decode'))
    expect(figures.allocatedKb!.median - figures.logitsKb!.median).toBeLessThan(200);
  expect(GROUPS.map((group) => [group, bench.results.filter((result) => result.group === group).length])).toEqual([
    ['bandwidth', 3],
    ['decode', 2],
    ['growth', 1],
    ['prefill', 4],
    ['tiles', 1],
    ['sequences', 3],
    ['whole', 2],
    ['questions', 1],
    ['sampling', 6],
    ['speculation', 5],
  ]);
  expect(bench.profiles.map(({ name }) => name)).toEqual([
    'one token, context 32',
    'one token, context 96',
    '4 sequences, context 32 each',
    'chunk of 32, context 0',
    'chunk of 32, context 64',
  ]);
  for (const profile of bench.profiles) {
    expect(profile.operatorsMs, profile.name).toBeLessThan(profile.callMs);
    const lane = profile.name.startsWith('chunk') ? 'attention: prefill lane' : 'attention: queries times pool keys';
    expect(profile.rows.find(({ part }) => part === lane)?.count, profile.name).toBe(SHAPES.tiny.num_hidden_layers);
  }
  expect(shares(bench)!.linear).toBeGreaterThan(0);
  const report = engineReport(bench);
  expect(report).not.toMatch(/NaN|undefined|null/);
  for (const title of [
    'Decoding, one sequence',
    'A chunk inside a prompt',
    'Whole prompts',
    'Choosing a token',
    'Drafts',
    'Share of the bandwidth',
    'Profile: one token, context 96',
  ])
    expect(report).toContain(title);
  const charts = engineCharts(bench);
  expect(Object.keys(charts).sort()).toEqual([
    'engine-decode.svg',
    'engine-prefill.svg',
    'engine-profile.svg',
    'engine-sequences.svg',
    'engine-whole.svg',
  ]);
  for (const svg of Object.values(charts)) expect(svg).not.toMatch(/NaN|undefined|null/);
});
