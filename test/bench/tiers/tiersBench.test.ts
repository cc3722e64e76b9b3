/** Runs a tiny suite `tiers`. Checks that every tier has hits and that coded files are found in the store. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { tiersBench } from './tiersBench.ts';
import { tiersReport } from './tiersReport.ts';

const cache = await mkdtemp(join(tmpdir(), 'kvasir-tiers-bench-'));
afterAll(() => rm(cache, { recursive: true, force: true }));

test('both scenes: whole files are found in pool, store and disk; other files are read in between', async () => {
  const result = await tiersBench('tiny', cache, 1, {
    numFiles: 12,
    fileTokens: 512,
    maxBytes: 900_000,
    diskBytes: 1e8,
    revisits: 48,
    anewEvery: 16,
  });
  expect(result.scenes.map(({ setting }) => setting)).toEqual([null, 'int4-kivi']);
  for (const { setting, anew, written, revisits, peakBytes, diskBytes } of result.scenes) {
    expect([anew.samples.length, written.samples.length, revisits.length]).toEqual([3, 12, 48]);
    expect(diskBytes).toBeGreaterThan(12 * result.fileBytes);
    expect(peakBytes).toBeLessThanOrEqual(result.maxBytes);
    const tiers = new Set(revisits.map(({ tier }) => tier));
    expect([...tiers]).toEqual(expect.arrayContaining(setting === null ? ['pool', 'disk'] : ['pool', 'store', 'disk']));
    const coded = revisits.filter(({ tier, codecs }) => tier === 'store' && codecs.includes('int4-kivi'));
    expect(coded.length > 0).toBe(setting !== null);
    for (const { found } of revisits) expect(found).toBe(512);
  }
  const report = tiersReport(result);
  expect(report).toContain('| store, int4-kivi |');
  expect(report).not.toContain('NaN');
  // Only the shape and its import remain.
  expect((await readdir(cache)).filter((name) => name.startsWith('tiers-'))).toEqual([]);
});
