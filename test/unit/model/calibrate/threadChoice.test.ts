/** The number of threads: which are measured, which is taken, and that it is measured once. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  bestOf,
  candidates,
  chooseThreads,
  measureOnnx,
  nativeSpeeds,
  type Speed,
} from '../../../../engine/model/calibrate/threadChoice.ts';
import { loadOnnxruntime } from '../../../../engine/model/runtime/onnxSession.ts';

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
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'threads.json');
  const measured: number[] = [];
  const prepare = () => async (threads: number) => {
    measured.push(threads);
    return { decodeMs: Math.abs(threads - 6) + 1, promptMs: 1 };
  };
  expect(await chooseThreads(file, prepare, 8)).toBe(6);
  expect(measured).toEqual([2, 3, 4, 6, 8]);
  expect(await chooseThreads(file, prepare, 8)).toBe(6);
  expect(measured.length).toBe(5);
  expect(await chooseThreads(file, prepare, 12)).toBe(6);
  expect(measured.length).toBe(10);
  writeFileSync(file, readFileSync(file, 'utf8').replace('"threads":6', '"threads":600'));
  expect(await chooseThreads(file, prepare, 12)).toBe(6);
  expect(measured.length).toBe(15);
  writeFileSync(file, '{');
  expect(await chooseThreads(file, prepare, 12)).toBe(6);
  expect(await chooseThreads('/nowhere/at/all', prepare, 12)).toBe(6);
  expect(await chooseThreads(file, prepare, 2)).toBe(2);
});

test.each([
  ['onnxruntime', async () => measureOnnx(await loadOnnxruntime(), 2)],
  ['the native kernels', () => nativeSpeeds()(2)],
])('the speed of %s is measured with real products', async (_, measure) => {
  const { decodeMs, promptMs } = await measure();
  expect(decodeMs).toBeGreaterThan(0);
  expect(promptMs).toBeGreaterThan(0);
});
