/** The `kv` benchmark, on a small model: what it measures is there, and tells good codecs from bad ones. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { FORMATS } from '../../engine/cache/codecs/registry.ts';
import { kvReport } from '../bench/kv/kvSuite.ts';
import { measureQuality } from '../bench/kv/quality.ts';
import { measureSpeed } from '../bench/kv/speed.ts';
import { KvSubject } from '../bench/kv/subject.ts';
import { below, seededRandom } from '../engine/workload.ts';

const cacheDir = mkdtempSync(path.join(tmpdir(), 'kvasir-kv-'));
afterAll(() => rmSync(cacheDir, { recursive: true, force: true }));

test('a model with large key biases: the lossless codec costs nothing, fewer bits cost more', async () => {
  const subject = await KvSubject.open('biased', 'test/fixtures/models/qwen2-untied-bf16', cacheDir, 1);
  try {
    expect(subject.biases.size).toBeGreaterThan(0);
    const random = seededRandom(1);
    const text = Array.from({ length: 64 + 16 + 16 + 1 }, () => below(random, subject.runner.vocabSize));
    const quality = await measureQuality(subject, [text], { coded: 64, recent: 16, scored: 16, runTokens: 32, attentionTexts: 1 }, () => {});
    const of = (name: string) => quality.codecs.find(({ codec }) => codec === name)!;
    expect(of('int8')).toMatchObject({ errors: { keys: 0, values: 0, attention: 0 }, kldMean: 0, kldMax: 0, top1: 1, nll: 0 });
    const errors = ['fp8', 'int4', 'kvquant3'].map((name) => of(name).errors);
    for (const key of ['keys', 'values', 'attention'] as const) {
      const [eight, four, three] = errors.map((error) => error[key]);
      expect(eight).toBeGreaterThan(0.001);
      expect(four).toBeGreaterThan(eight!);
      expect(three).toBeGreaterThan(four!);
      expect(three).toBeLessThan(0.4);
    }
    expect(of('fp8').kldMean).toBeLessThan(of('int4').kldMean);
    expect(of('kvquant3').bytesPerToken).toBeLessThan(of('int8').bytesPerToken);

    const speed = await measureSpeed(subject, 64, 32, 1);
    expect(speed.codecs.map(({ codec }) => codec)).toEqual(FORMATS.map(({ name }) => name));
    for (const { encode, decode, ofRecompute } of speed.codecs) for (const { median } of [encode, decode, ofRecompute]) expect(median).toBeGreaterThan(0);
    const report = kvReport({ speed: [speed], quality: [quality] });
    for (const { name } of FORMATS) expect(report.split(`| ${name} |`)).toHaveLength(3);
  } finally {
    await subject.dispose();
  }
});
