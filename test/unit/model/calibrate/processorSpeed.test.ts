/** The number of threads: which are measured, which is taken, and that it is measured once. */
import { mkdtempSync, readFileSync, writeFileSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir, availableParallelism } from 'node:os';
import path from 'node:path';
import { expect, test, onTestFinished } from 'vitest';
import { loadOnnxruntime, isNarrow, blockRowMultiple } from '../../../../engine/model/runtime/onnxSession.ts';
import {
  bestOf,
  candidates,
  chooseThreads,
  measureSpeed,
  type Speed,
  faster,
  productForm,
} from '../../../../engine/model/calibrate/processorSpeed.ts';
import { measuredOnce } from '../../../../engine/model/calibrate/measurement.ts';

const speeds = (...entries: [number, number, number][]) =>
  new Map(entries.map(([threads, decodeMs, promptMs]): [number, Speed] => [threads, { decodeMs, promptMs }]));

test('candidates are all numbers on a small machine, and shares of a large one', () => {
  expect(candidates(1)).toEqual([1]);
  expect(candidates(4)).toEqual([2, 3, 4]);
  expect(candidates(8)).toEqual([2, 3, 4, 6, 8]);
  expect(candidates(16)).toEqual([4, 6, 8, 12, 16]);
});

test('the fewest threads that are nearly the best for decode and prefill are chosen', () => {
  // Decoding is as fast with 2, prompts need 4, and 8 gain little more.
  expect(bestOf(speeds([2, 10, 40], [4, 10, 20], [8, 10, 19.5]))).toBe(4);
  // Slow cores hold the fast ones up.
  expect(bestOf(speeds([4, 10, 20], [8, 14, 24]))).toBe(4);
  expect(bestOf(speeds([2, 20, 40], [4, 10, 20], [8, 8, 12]))).toBe(8);
});

test('the thread count is measured once per machine; a foreign or invalid file is replaced', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'threads-'));
  const measured: number[] = [];
  const measure = async (_: unknown, threads: number): Promise<Speed> => {
    measured.push(threads);
    return { decodeMs: Math.abs(threads - 6) + 1, promptMs: 1 };
  };
  expect(await chooseThreads(null as never, folder, measure, 8)).toBe(6);
  expect(measured).toEqual([2, 3, 4, 6, 8]);
  expect(await chooseThreads(null as never, folder, measure, 8)).toBe(6);
  expect(measured.length).toBe(5);
  expect(await chooseThreads(null as never, folder, measure, 12)).toBe(6);
  expect(measured.length).toBe(10);
  const file = path.join(folder, 'threads.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"threads":6', '"threads":600'));
  expect(await chooseThreads(null as never, folder, measure, 12)).toBe(6);
  expect(measured.length).toBe(15);
  writeFileSync(file, '{');
  expect(await chooseThreads(null as never, folder, measure, 12)).toBe(6);
  expect(await chooseThreads(null as never, '/nowhere/at/all', measure, 12)).toBe(6);
  expect(await chooseThreads(null as never, folder, measure, 2)).toBe(2);
});

test('the number of threads is measured with the real runtime', async () => {
  const { decodeMs, promptMs } = await measureSpeed(await loadOnnxruntime(), 2);
  expect(decodeMs).toBeGreaterThan(0);
  expect(promptMs).toBeGreaterThan(0);
});

function newFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'products-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('the form that is faster for one row and for four is chosen', () => {
  expect(faster([10, 12], [8, 10])).toBe('blocks');
  expect(faster([10, 12], [9, 20])).toBe('rows');
  // A token a little slower, a few a lot faster.
  expect(faster([10, 20], [11, 14])).toBe('blocks');
  expect(faster([10, 10], [10, 10])).toBe('rows');
});

test('a failed measurement does not fail the import, and the next import measures again', async () => {
  const ort = await loadOnnxruntime();
  // Asked of every processor, and found out once.
  const rest = (await isNarrow(ort)) ? 'narrow' : 'rows';
  if (process.arch === 'x64') await blockRowMultiple(ort);
  let numTries = 0;
  const create = () => {
    numTries++;
    return Promise.reject(new Error('no memory'));
  };
  const failing = { ...ort, InferenceSession: { create } } as unknown as typeof ort;
  const folder = newFolder();
  for (let i = 0; i < 2; i++) expect(await productForm(failing, folder, 1e9)).toBe(rest);
  expect(existsSync(path.join(folder, 'products.json'))).toBe(false);
  if (rest === 'rows' && process.arch === 'x64' && (await blockRowMultiple(ort)) !== null) expect(numTries).toBe(2);
});

test('the folder exists before measuring; without it nothing is recorded and nothing fails', async () => {
  const folder = path.join(newFolder(), 'not', 'there yet');
  const measure = async (dir: string) => ({ isThere: existsSync(dir) });
  expect(await measuredOnce(folder, 'a.json', {}, () => measure(folder))).toEqual({ isThere: true });
  expect(readdirSync(folder)).toEqual(['a.json']);
  const inFile = path.join(folder, 'a.json', 'below');
  expect(await measuredOnce(inFile, 'b.json', {}, () => measure(inFile))).toEqual({ isThere: false });
});

test('the form is measured with the real runtime for large heads, and recorded beside the models', async () => {
  // As before the first import.
  const folder = path.join(newFolder(), 'not', 'there yet');
  const ort = await loadOnnxruntime();
  const file = path.join(folder, 'products.json');
  const small = await productForm(ort, folder, 1e6);
  expect(small).toBe(
    (await isNarrow(ort))
      ? 'narrow'
      : process.arch === 'x64' && (await blockRowMultiple(ort)) !== null
        ? 'blocks'
        : 'rows',
  );
  expect(existsSync(file)).toBe(false);
  const large = await productForm(ort, folder, 1e9);
  if (small !== 'blocks') return expect(large).toBe(small);
  // How many threads it took is kept, too, where that had to be measured.
  expect(readdirSync(folder).sort()).toEqual([
    'products.json',
    ...(availableParallelism() > 2 ? ['threads.json'] : []),
  ]);
  const { result } = JSON.parse(readFileSync(file, 'utf8'));
  expect(result.form).toBe(large);
  expect(faster(result.times.rows, result.times.blocks)).toBe(large);
});
