/**
 * Loads the native addon (engine/native) and types its functions. Does not know models.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** An open engine of the addon. Only the addon reads it. */
export type NativeEngine = { readonly __native: never };

/** Arguments of a step, in this order. Empty arrays for what a step does not have. */
type StepArguments = [
  ids: Int32Array,
  /** [ropes, rows, headSize / 2]. */
  cos: Float32Array,
  sin: Float32Array,
  /** [spans, 2]: rows and slots of the context. */
  spans: Int32Array,
  context: Int32Array,
  newSlots: Int32Array,
  /** Of all slots of the pool, if layers have a window. */
  positions: Int32Array,
  places: Int32Array,
  logitRows: Int32Array,
  queryRows: Int32Array,
  /** Result: [rows with logits, vocabulary padded to GROUP]. Its beginning is then [rows, vocabulary]. */
  logits: Float32Array,
  /** Result: [numLayers, numHeads, query rows, headSize]. */
  queries: Float32Array,
  /** Result: [2, numLayers, kvHeads, context + rows], most and sum of the received attention. */
  received: Float32Array,
];

/** Errors of all functions are exceptions with one sentence. */
export interface Addon {
  /** Names of the kernels that this processor can run, the fastest first. */
  kernels(): string[];
  /** `weights`: path of the file, or its bytes. `factors`: epsilon of norms, caps of scores and logits (0: none). */
  open(
    weights: string | Uint8Array,
    kernels: string,
    shape: Int32Array,
    factors: Float64Array,
    tensors: Float64Array,
    threads: number,
  ): NativeEngine;
  /** Not during a step. */
  close(engine: NativeEngine): void;
  /** How many threads compute: at most as many as asked for. */
  threads(engine: NativeEngine): number;
  bind(engine: NativeEngine, pageSlots: number, arrays: readonly (Int8Array | Float32Array)[]): void;
  step(engine: NativeEngine, args: StepArguments): Promise<void>;
}

/** `native` beside the bundle, or the source folder if the engine runs from source. */
function addonFile(): string {
  const name = `${process.platform}-${process.arch}.node`;
  // Node has no __dirname where it runs the source itself, and bundles have no import.meta.
  const here = typeof __dirname === 'undefined' ? import.meta.dirname : __dirname;
  const beside = join(here, 'native', name);
  return existsSync(beside) ? beside : join(here, '../../native/prebuilt', name);
}

let loaded: Addon | Error | null = null;

/** @throws Error if there is no addon for this platform or it cannot be loaded; always the same one */
export function loadAddon(): Addon {
  if (loaded === null) {
    try {
      const file = addonFile();
      const addon = createRequire(file)(file) as Partial<Addon>;
      if (typeof addon.step !== 'function') throw new Error('the program that runs it lacks functions of Node-API');
      loaded = addon as Addon;
    } catch (error) {
      loaded = error instanceof Error ? error : new Error(String(error));
    }
  }
  if (loaded instanceof Error) throw loaded;
  return loaded;
}
