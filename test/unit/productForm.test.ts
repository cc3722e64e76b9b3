/** The form of the head's weights: which of two measurements wins, and that the real one is kept. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isNarrow, loadOnnxruntime, numRowsTogether } from '../../engine/model/onnxSession.ts';
import { faster, productForm } from '../../engine/model/productForm.ts';

test('whichever is faster, for one row and for four alike', () => {
  expect(faster([10, 12], [8, 10])).toBe('blocks');
  expect(faster([10, 12], [9, 20])).toBe('rows');
  // A token a little slower, a few a lot faster.
  expect(faster([10, 20], [11, 14])).toBe('blocks');
  expect(faster([10, 10], [10, 10])).toBe('rows');
});

test('the measurement runs on the real thing, for heads that are worth it, and what it says is kept beside the models', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'products-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const ort = await loadOnnxruntime();
  const file = path.join(folder, 'products.json');
  const small = await productForm(ort, folder, 1e6);
  expect(small).toBe((await isNarrow(ort)) ? 'narrow' : process.arch === 'x64' && (await numRowsTogether(ort)) !== null ? 'blocks' : 'rows');
  expect(existsSync(file)).toBe(false);
  const large = await productForm(ort, folder, 1e9);
  if (small !== 'blocks') return expect(large).toBe(small);
  const { result } = JSON.parse(readFileSync(file, 'utf8'));
  expect(result.form).toBe(large);
  expect(faster(result.times.rows, result.times.blocks)).toBe(large);
});
