/**
 * Tests the native kernels on this processor: a tiny model must give the same bits with the fastest kernels and with the
 * plain ones, which use no special instructions. Does not test speed.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { KvPool } from '../../kv/pool.ts';
import type { BatchSpan } from '../batch.ts';
import type { ModelConfig } from '../load/hfConfig.ts';
import { type ImportedModel, kvShape, WEIGHT_FILE } from '../load/importedModel.ts';
import { planWeights, type WeightPlan } from '../load/weightPlan.ts';
import { loadAddon } from './addon.ts';
import { NativeRunner } from './nativeRunner.ts';

/** No size is a multiple of a vector, except the usual size of a head. */
const CONFIG: ModelConfig = {
  architecture: 'qwen2',
  numLayers: 2,
  hiddenSize: 72,
  ffnSize: 136,
  numHeads: 2,
  kvHeads: 1,
  headSize: 64,
  vocabSize: 77,
  contextTokens: 512,
  rmsEps: 1e-6,
  rope: { type: 'default', theta: 10_000 },
  tied: true,
  qkvBias: true,
  outputBias: false,
  ffnBias: false,
  qkNorm: false,
  int8Weights: false,
  eosIds: [],
  bosId: null,
};
/** Layer 1 has a large key bias. */
const BIASED = [1];
/** A page that is no multiple of a block. */
const NUM_SLOTS = 70;

/** Pseudo-random weights. Codes from -127 to 127, numbers around 0.1. */
function weightsOf(plan: WeightPlan): Uint8Array {
  const bytes = new Uint8Array(plan.bytes);
  let state = 1;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 8;
  };
  for (const { type, offset, length } of plan.stored.values()) {
    if (type === 'float32') {
      const values = new Float32Array(bytes.buffer, offset, length / 4);
      for (let i = 0; i < values.length; i++) values[i] = ((next() % 2001) - 1000) / 10_000;
    } else if (type === 'int16') {
      const codes = new Int16Array(bytes.buffer, offset, length / 2);
      for (let i = 0; i < codes.length; i++) codes[i] = (next() % 2001) - 1000;
    } else for (let i = offset; i < offset + length; i++) bytes[i] = (next() % 255) - 127;
  }
  return bytes;
}

/** A prompt in two parts, then two tokens of two sequences at once. All slots are scattered. */
async function logitsOf(runner: NativeRunner): Promise<Float32Array[]> {
  const slots = Int32Array.from({ length: NUM_SLOTS }, (_, i) => (i * 37) % NUM_SLOTS);
  const span = (from: number, to: number, first: number): BatchSpan => ({
    tokenIds: Array.from({ length: to - from }, (_, i) => (from + i) % CONFIG.vocabSize),
    startIndex: from,
    contextSlots: slots.slice(first, first + from),
    newSlots: slots.slice(first + from, first + to),
    numLogits: 1,
  });
  const results: Float32Array[] = [];
  for (const spans of [[span(0, 17, 0)], [span(17, 20, 0), span(0, 5, 40)], [span(20, 21, 0), span(5, 6, 40)]])
    results.push(Float32Array.from(await runner.run(spans)));
  return results;
}

/** @throws Error with the reason why the native kernels cannot be used here */
async function runSelfTest(): Promise<void> {
  const addon = loadAddon();
  const kernels = [addon.kernels()[0]!, 'plain'];
  const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-native-'));
  try {
    for (const precision of ['int8', 'int4'] as const) {
      const plan = planWeights(CONFIG, precision, true, 'native', BIASED);
      writeFileSync(path.join(folder, WEIGHT_FILE), weightsOf(plan));
      const model: ImportedModel = {
        dir: folder,
        key: '',
        config: CONFIG,
        precision,
        products: 'native',
        tied: true,
        biased: BIASED,
        parameters: plan.parameters,
        weightsBytes: plan.bytes,
        residentBytes: plan.bytes,
        contentHash: '',
        imported: true,
      };
      const results: Buffer[] = [];
      for (const name of kernels) {
        const runner = NativeRunner.create(model, new KvPool(kvShape(CONFIG, 'int8', BIASED), NUM_SLOTS), {
          threads: 2,
          kernels: name,
        });
        try {
          results.push(Buffer.concat((await logitsOf(runner)).map((logits) => Buffer.from(logits.buffer))));
        } finally {
          await runner.dispose();
        }
      }
      if (!results[0]!.equals(results[1]!))
        throw new Error(`the kernels for ${kernels[0]} give other results than the plain ones`);
    }
  } finally {
    // A virus scanner on Windows may hold the file for a moment.
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The reason why a test failed, or null. */
export function selfTestFault(test = runSelfTest): Promise<string | null> {
  return test().then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

let result: Promise<string | null> | null = null;

/** Why the native kernels cannot be used here, or null. Tests them once per process. */
export function nativeFault(): Promise<string | null> {
  result ??= selfTestFault();
  return result;
}
