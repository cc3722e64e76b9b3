/**
 * A model whose K/V rows the codecs are measured on: its runner over a window in which a text stands in slots 0, 1, 2 and so
 * on, and what the codecs need to know of the model.
 */
import type { RunPlace } from '../../../engine/cache/codecs/codecFormat.ts';
import { type CodecName, codecNamed } from '../../../engine/cache/codecs/registry.ts';
import type { KvRows, KvShape } from '../../../engine/cache/kvRows.ts';
import { KvWindow } from '../../../engine/cache/window.ts';
import { type ImportedModel, importModel, kvShape, readKeyBiases } from '../../../engine/model/importModel.ts';
import { RopeTable } from '../../../engine/model/rope.ts';
import { OnnxRunner } from '../../../engine/model/runner.ts';

/** Tokens of a chunk when a context is computed. */
const CHUNK_TOKENS = 512;

export class KvSubject {
  readonly name: string;
  readonly modelDir: string;
  readonly model: ImportedModel;
  readonly runner: OnnxRunner;
  readonly rope: RopeTable;
  /** By layer, where rows hold keys without it: [kvHeads * headSize]. */
  readonly biases: ReadonlyMap<number, Float32Array>;

  private constructor(name: string, modelDir: string, model: ImportedModel, runner: OnnxRunner, biases: ReadonlyMap<number, Float32Array>) {
    this.name = name;
    this.modelDir = modelDir;
    this.model = model;
    this.runner = runner;
    this.rope = new RopeTable(model.config.rope, model.config.headSize);
    this.biases = biases;
  }

  static async open(name: string, modelDir: string, cacheDir: string, threads: number): Promise<KvSubject> {
    const model = await importModel({ modelDir, cacheDir, precision: 'int8' });
    const runner = await OnnxRunner.create(model, new KvWindow(kvShape(model.config, 'int8'), 0), { threads });
    return new KvSubject(name, modelDir, model, runner, await readKeyBiases(model));
  }

  get shape(): KvShape {
    return this.runner.window.shape;
  }

  dispose(): Promise<void> {
    return this.runner.dispose();
  }

  codec(name: CodecName): ReturnType<typeof codecNamed> {
    return codecNamed(name, this.shape, this.rope);
  }

  /** Computes a context from its first token. @returns milliseconds. */
  async compute(tokenIds: readonly number[]): Promise<number> {
    const { window } = this.runner;
    if (window.numSlots < tokenIds.length) window.resize(tokenIds.length);
    const slots = Int32Array.from(tokenIds, (_, i) => i);
    const start = performance.now();
    for (let at = 0; at < tokenIds.length; at += CHUNK_TOKENS) {
      const ids = tokenIds.slice(at, at + CHUNK_TOKENS);
      await this.runner.run([{ tokenIds: ids, startIndex: at, contextSlots: slots.subarray(0, at), newSlots: slots.subarray(at, at + ids.length), lane: 'prefill', prefillEnd: tokenIds.length, numLogits: 0 }]);
    }
    return performance.now() - start;
  }

  /** Logits of the tokens from position `from` on, which see the rows in slots 0 .. from-1; valid until the next run. */
  logits(tokenIds: readonly number[], from: number): Promise<Float32Array> {
    const { window } = this.runner;
    if (window.numSlots < tokenIds.length) window.resize(tokenIds.length);
    const slots = Int32Array.from(tokenIds, (_, i) => i);
    const ids = tokenIds.slice(from);
    return this.runner.run([{ tokenIds: ids, startIndex: from, contextSlots: slots.subarray(0, from), newSlots: slots.subarray(from), numLogits: ids.length }]);
  }

  /** Rows of the tokens in slots from .. to-1. */
  read(from: number, to: number): KvRows {
    return this.runner.window.read(Int32Array.from({ length: to - from }, (_, i) => from + i));
  }

  /** Puts rows into the slots from `from` on, which are their positions, too. */
  write(from: number, rows: KvRows): void {
    this.runner.window.write(Int32Array.from({ length: rows.numTokens }, (_, i) => from + i), rows, 0, from);
  }
}

/** Tokens [0, end) of a context, encoded and decoded in runs of `runTokens`. */
export function throughCodec(subject: KvSubject, name: CodecName, end: number, runTokens: number, contextEnd?: number): { rows: KvRows[]; bytes: number } {
  const codec = subject.codec(name);
  const rows: KvRows[] = [];
  let bytes = 0;
  for (let from = 0; from < end; from += runTokens) {
    const place: RunPlace = { startIndex: from, contextEnd };
    const encoded = codec.encode(subject.read(from, Math.min(end, from + runTokens)), place);
    bytes += encoded.length;
    rows.push(codec.decode(encoded).rows);
  }
  return { rows, bytes };
}
