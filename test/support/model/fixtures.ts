/** Reads the inference fixtures and runs a runner on them, for the model tests. */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { BatchSpan, Runner } from '../../../engine/model/batch.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import { importModel } from '../../../engine/model/import/importModel.ts';
import { kvShape, usualKv } from '../../../engine/model/load/importedModel.ts';
import { isNarrow, loadOnnxruntime } from '../../../engine/model/runtime/onnxSession.ts';
import { NativeRunner } from '../../../engine/model/native/nativeRunner.ts';
import { OnnxRunner } from '../../../engine/model/runtime/runner.ts';
import type { ProductForm } from '../../../engine/model/load/quantise.ts';
import type { KvPrecision, Precision } from '../../../engine/protocol/tasks.ts';

export const FIXTURES = path.join(import.meta.dirname, '../../fixtures');
export const MODELS = path.join(FIXTURES, 'models');
export const modelNames = readdirSync(MODELS).sort();

export function readJson<T>(...parts: string[]): T {
  return JSON.parse(readFileSync(path.join(...parts), 'utf8')) as T;
}

export function readFloats(...parts: string[]): Float32Array {
  const bytes = readFileSync(path.join(...parts));
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

export interface Prompt {
  input_ids: number[];
  top5_ids: number[][];
  top5_logprobs: number[][];
  greedy_ids: number[];
}

/** A temporary folder. Call `remove` when the test file is done. */
export function temporaryFolder(): { dir: string; remove(): void } {
  const dir = mkdtempSync(path.join(tmpdir(), 'kvasir-model-'));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/** Whether this CPU needs the 7-bit form (see ProductForm). */
export const isNarrowHere = await isNarrow(await loadOnnxruntime());
/** The forms that this CPU computes correctly. */
export const formsHere: readonly Exclude<ProductForm, 'native'>[] = isNarrowHere
  ? ['narrow']
  : ['rows', 'blocks', 'narrow'];

export async function loadRunner(
  modelDir: string,
  cacheDir: string,
  precision: Precision,
  kv: KvPrecision = usualKv(precision),
  numSlots = 1024,
  products?: Exclude<ProductForm, 'native'>,
): Promise<OnnxRunner> {
  const model = await importModel({ modelDir, cacheDir, precision, products });
  return OnnxRunner.create(model, new KvPool(kvShape(model.config, kv, model.biased), numSlots), { threads: 1 });
}

/** A runner of the native kernels, by default of the fastest ones, over a pool of 8 bits. */
export async function loadNativeRunner(
  modelDir: string,
  cacheDir: string,
  precision: 'int8' | 'int4',
  { numSlots = 1024, threads = 1, kernels }: { numSlots?: number; threads?: number; kernels?: string } = {},
): Promise<NativeRunner> {
  const model = await importModel({ modelDir, cacheDir, precision, products: 'native' });
  const pool = new KvPool(kvShape(model.config, 'int8', model.biased), numSlots);
  return NativeRunner.create(model, pool, { threads, kernels });
}

export function argmax(row: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i]! > row[best]!) best = i;
  return best;
}

export function logSoftmax(row: ArrayLike<number>): Float64Array {
  const max = row[argmax(row)]!;
  let sum = 0;
  for (let i = 0; i < row.length; i++) sum += Math.exp(row[i]! - max);
  const norm = Math.log(sum);
  // Float64Array.from is much slower.
  const out = new Float64Array(row.length);
  for (let i = 0; i < row.length; i++) out[i] = row[i]! - max - norm;
  return out;
}

export function maxDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return Number.POSITIVE_INFINITY;
  let max = 0;
  for (let i = 0; i < a.length; i++) max = Math.max(max, Math.abs(a[i]! - b[i]!));
  return max;
}

/** KL divergence and top-1 agreement of logits against a reference, over rows. */
export class Divergence {
  private sum = 0;
  private agreed = 0;
  private rows = 0;
  max = 0;

  add(reference: ArrayLike<number>, logits: ArrayLike<number>): void {
    const p = logSoftmax(reference);
    const q = logSoftmax(logits);
    let kl = 0;
    for (let i = 0; i < p.length; i++) kl += Math.exp(p[i]!) * (p[i]! - q[i]!);
    this.sum += kl;
    this.max = Math.max(this.max, kl);
    if (argmax(p) === argmax(q)) this.agreed++;
    this.rows++;
  }

  get mean(): number {
    return this.sum / this.rows;
  }

  get topAgreement(): number {
    return this.agreed / this.rows;
  }
}

/** A small deterministic generator (mulberry32). */
export function random(seed: number): () => number {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Sequences in shuffled slots of one pool. Any of them may be part of a step. */
class Slots {
  private readonly free: number[];

  constructor(numSlots: number, seed: number) {
    const next = random(seed);
    this.free = Array.from({ length: numSlots }, (_, i) => i);
    for (let i = numSlots - 1; i > 0; i--) {
      const j = Math.floor(next() * (i + 1));
      [this.free[i], this.free[j]] = [this.free[j]!, this.free[i]!];
    }
  }

  span(sequence: { slots: number[] }, tokenIds: number[], numLogits: number): BatchSpan {
    if (this.free.length < tokenIds.length) throw new Error('the pool is too small for this test');
    const newSlots = this.free.splice(0, tokenIds.length);
    const span = {
      tokenIds,
      startIndex: sequence.slots.length,
      contextSlots: Int32Array.from(sequence.slots),
      newSlots: Int32Array.from(newSlots),
      numLogits,
    };
    sequence.slots.push(...newSlots);
    return span;
  }

  release(sequence: { slots: number[] }): void {
    this.free.push(...sequence.slots.splice(0));
  }
}

/**
 * Greedy continuations of several prompts that run together. Every step has one chunk of each unfinished prompt and one
 * token of each running sequence. `onLogits` receives every row that was sampled from.
 */
export async function generateTogether(
  runner: Runner,
  prompts: readonly number[][],
  numTokens: number,
  chunk: number,
  seed: number,
): Promise<number[][]> {
  const slots = new Slots(runner.pool.numSlots, seed);
  const sequences = prompts.map((prompt) => ({ prompt, slots: [] as number[], ids: [] as number[] }));
  for (;;) {
    const running = sequences.filter((s) => s.ids.length < numTokens);
    if (running.length === 0) break;
    const batch = running.map((s) => {
      if (s.slots.length >= s.prompt.length) return slots.span(s, [s.ids.at(-1)!], 1);
      const part = s.prompt.slice(s.slots.length, s.slots.length + chunk);
      return slots.span(s, part, s.slots.length + part.length === s.prompt.length ? 1 : 0);
    });
    const logits = await runner.run(batch);
    let row = 0;
    batch.forEach((span, i) => {
      if (span.numLogits === 0) return;
      running[i]!.ids.push(argmax(logits.subarray(row * runner.vocabSize, ++row * runner.vocabSize)));
    });
  }
  for (const s of sequences) slots.release(s);
  return sequences.map((s) => s.ids);
}
