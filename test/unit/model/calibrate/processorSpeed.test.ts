/** The form of 8-bit weights: which is taken, and that it is measured once. */
import { mkdtempSync, readFileSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir, availableParallelism } from 'node:os';
import path from 'node:path';
import { expect, test, onTestFinished } from 'vitest';
import { loadOnnxruntime, isNarrow, blockRowMultiple } from '../../../../engine/model/runtime/onnxSession.ts';
import { faster, productForm } from '../../../../engine/model/calibrate/processorSpeed.ts';
import { measuredOnce } from '../../../../engine/model/calibrate/measurement.ts';

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
