/**
 * Tests suite `quality` as a whole in a tiny form with the built-in model on our own texts. Compares it with `kvasir
 * complete`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../../engine/cli/cliClient.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { ThreadTransport } from '../../../src/client/transport.ts';
import { heldoutFiles } from '../kv/heldout.ts';
import { type EngineOptions, QualityEngine } from './engine.ts';
import { qualityReport } from './report.ts';
import { GROUPS, samplesOf } from './samples.ts';
import type { QualityText } from './sources.ts';
import { qualityBench } from './suite.ts';
import { BUILT_IN } from '../../support/builtIn.ts';
import { linkNative } from '../../support/linkNative.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-quality-'));
// A folder inside the project, so that the bundle finds onnxruntime like the packaged one.
const built = path.resolve('.cache', `quality-under-test-${process.pid}`);
const cacheDir = path.join(folder, 'imported');
const createTransport: EngineOptions['createTransport'] = (t) =>
  new ThreadTransport(path.join(built, 'worker.js'), t, () => {});
const texts: QualityText[] = heldoutFiles().map((file) => ({
  ...file,
  source: 'ours',
  language: file.path.endsWith('.py') ? 'python' : 'typescript',
}));

beforeAll(() => {
  buildSync({
    entryPoints: ['engine/server/worker.ts'],
    outfile: path.join(built, 'worker.js'),
    bundle: true,
    platform: 'node',
    format: 'cjs',
    external: ['onnxruntime-node'],
    logLevel: 'error',
  });
  linkNative(built);
});
afterAll(() => {
  rmSync(built, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

test('all samples are asked in both layouts and judged', async () => {
  const samples = await samplesOf(new Grammars('dist/grammars'), texts, { n: 2, groups: GROUPS, seed: 1, beside: 1 });
  for (const { path: file, language, beside } of samples.holes)
    expect(beside.map((other) => [other.path !== file, other.language])).toEqual([[true, language]]);
  const answers: Record<string, unknown>[] = [];
  const result = await qualityBench(
    samples,
    { n: 2, groups: GROUPS, modelDir: path.resolve('model'), threads: 2, beside: 1 },
    { cacheDir, folder, createTransport, onProgress: () => {}, onAnswer: (answer) => answers.push(answer) },
  );
  expect(result).toMatchObject({ model: BUILT_IN.manifest.name, shipped: 'blockAndTail' });
  expect(result.loadMs).toBeGreaterThan(0);
  expect(samples.holes).toHaveLength(12);
  expect(result.items.holes.map(({ layout }) => layout)).toEqual([
    ...Array(12).fill('blockAndTail'),
    ...Array(12).fill('tail'),
  ]);
  expect([result.items.questions.length, result.items.summaries.length]).toEqual([
    samples.questions.length,
    samples.summaries.length,
  ]);
  expect(answers).toHaveLength(24 + samples.questions.length + samples.summaries.length);
  // The model is confident in many places. Each shown completion has the time when it first appeared.
  const shown = result.items.holes.filter((hole) => hole.shown);
  expect(shown.length).toBeGreaterThan(5);
  for (const hole of result.items.holes) expect(hole.firstMs !== null, JSON.stringify(hole)).toBe(hole.shown);
  const said = (layout: string) => answers.filter((answer) => answer.layout === layout).map((answer) => answer.shown);
  expect(said('tail')).not.toEqual(said('blockAndTail'));
  expect(qualityReport(result)).toMatch(/file block \+ tail \(as shipped\) \| rest of the line \| TypeScript \| 2 \|/);
});

test('a completion equals that of the command line', async () => {
  const samples = await samplesOf(new Grammars('dist/grammars'), texts, {
    n: 1,
    groups: ['rest', 'line', 'block'],
    seed: 2,
  });
  const engine = await QualityEngine.open({ createTransport, modelDir: path.resolve('model'), cacheDir, threads: 2 });
  const client = new Client();
  try {
    await client.load({ modelDir: path.resolve('model'), cacheDir, precision: 'int8', maxBytes: 0, threads: 2 });
    for (const [i, { path: file, text, offset }] of samples.holes.entries()) {
      const opened = path.join(folder, `${i}-${path.basename(file)}`);
      writeFileSync(opened, text);
      const { docId } = await client.openFile(opened);
      const { text: expected } = await client.generate({ kind: 'complete', docId, offset });
      expect((await engine.complete(opened, text, offset)).text).toBe(expected);
    }
  } finally {
    await client.close();
    await engine.dispose();
  }
});
