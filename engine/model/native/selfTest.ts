/**
 * Tests the native kernels on this processor: tiny models must give the bits that they give everywhere. Does not test
 * speed.
 */
import { createHash } from 'node:crypto';
import { KvPool } from '../../kv/pool.ts';
import type { BatchSpan } from '../batch.ts';
import type { ModelConfig } from '../load/hfConfig.ts';
import { kvShape } from '../load/importedModel.ts';
import { loadAddon } from './addon.ts';
import { NativeRunner } from './nativeRunner.ts';
import { PLAIN_CONFIG, syntheticModel } from './syntheticModel.ts';

/** What `digestOf` gives with any kernels on any processor. A change of the arithmetic changes it. */
export const SELF_TEST_DIGEST = 'ae67d9fe04a59fcda743a66d48f87d965bbcf9822e35db17decd43547b264b97';
/** No size is a multiple of a vector, except the usual size of a head. */
const CONFIG: ModelConfig = {
  ...PLAIN_CONFIG,
  numLayers: 2,
  hiddenSize: 72,
  ffnSize: 136,
  numHeads: 2,
  kvHeads: 1,
  vocabSize: 77,
  qkvBias: true,
};
/** One model for each kind of layer, and the layers with a large key bias. */
const MODELS: readonly (readonly [ModelConfig, readonly number[]])[] = [
  [CONFIG, [1]],
  // As Gemma: norms on both sides, a GELU, limits, and a window in layers with their own rope.
  [
    {
      ...CONFIG,
      qkvBias: false,
      gate: 'gelu',
      norms: 'both',
      qkNorm: 'head',
      sliding: { tokens: 6, layers: [0], rope: { type: 'default', theta: 100 } },
      softcaps: { scores: 5, logits: 3 },
    },
    [],
  ],
  // As OLMo 2, and a layer without rope.
  [{ ...CONFIG, qkvBias: false, norms: 'after', qkNorm: 'whole', rope: { ...CONFIG.rope, unrotated: [1] } }, []],
  // As StarCoder2: norms with a mean, no gate, and a window in all layers.
  [
    { ...CONFIG, outputBias: true, ffnBias: true, isGpt: true, sliding: { tokens: 18, layers: [0, 1], rope: null } },
    [],
  ],
  // As Mellum: experts behind a layer without them.
  [{ ...CONFIG, qkvBias: false, experts: { count: 21, used: 3, size: 40, isNormed: true, layers: [1] } }, []],
];
/** A page that is no multiple of a block. */
const NUM_SLOTS = 70;

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

/** SHA-256 of the logits of the tiny models with 8 and with 4 bits. */
export async function digestOf(kernels: string): Promise<string> {
  const hash = createHash('sha256');
  for (const [config, biased] of MODELS)
    for (const precision of ['int8', 'int4'] as const) {
      const { model, weights } = syntheticModel(config, precision, biased);
      const pool = new KvPool(kvShape(config, 'int8', biased), NUM_SLOTS);
      const runner = NativeRunner.create(model, pool, { threads: 2, kernels, weights });
      try {
        for (const logits of await logitsOf(runner)) hash.update(new Uint8Array(logits.buffer));
      } finally {
        await runner.dispose();
      }
    }
  return hash.digest('hex');
}

/** @throws Error with the reason why the native kernels cannot be used here */
async function runSelfTest(): Promise<void> {
  const [fastest] = loadAddon().kernels();
  if (fastest === undefined) throw new Error('the processor lacks instructions that all of them need');
  if ((await digestOf(fastest)) !== SELF_TEST_DIGEST)
    throw new Error(`those for ${fastest} give other results than on other processors`);
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
