/**
 * Opens a model to measure changed contexts. Computes a context once into slots 0, 1, 2, ... of the pool.
 * The caller treats it, continues it and restores it.
 */
import type { TurnIds } from '../../../engine/kv/approx/pruned/attentionMeter.ts';
import { FORMATS } from '../../../engine/kv/approx/codecs/registry.ts';
import type { KvCodec } from '../../../engine/kv/approx/codecs/kvCodec.ts';
import type { KvRows, KvShape } from '../../../engine/kv/kvRows.ts';
import { queriesByToken } from '../../../engine/kv/approx/sparse/residentBlocks.ts';
import { KvPool, PAGE_SLOTS } from '../../../engine/kv/pool.ts';
import { logProbabilities } from '../../../engine/model/calibrate/measurement.ts';
import { codecFor } from '../../../engine/model/calibrate/codecQuality.ts';
import { type ImportedModel, kvShape, readKeyBiases } from '../../../engine/model/load/importedModel.ts';
import { importModel } from '../../../engine/model/import/importModel.ts';
import { RopeTable } from '../../../engine/model/runtime/rope.ts';
import type { Runner } from '../../../engine/model/batch.ts';
import { openRunner } from '../../../engine/model/calibrate/threadChoice.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';

/** Tokens per chunk when a context is computed. */
const CHUNK_TOKENS = 512;
/** Answers written in one batch. */
const TOGETHER = 8;

/** A context with its rows as the model computed them. */
export interface ComputedContext {
  readonly tokenIds: readonly number[];
  /** Slots of the tokens in order: 0, 1, 2, ... */
  readonly slots: Int32Array;
  readonly rows: KvRows;
  /** Time to compute the context. */
  readonly ms: number;
}

/** A continuation of a context. */
export interface Tail {
  readonly ids: readonly number[];
  readonly maxTokens: number;
  /** Whether this token ends the answer. */
  readonly ends: (tokenId: number) => boolean;
}

export class KvSubject {
  readonly name: string;
  readonly modelDir: string;
  readonly model: ImportedModel;
  readonly runner: Runner;
  readonly rope: RopeTable;
  /** Key bias of each layer whose rows hold keys without it: [kvHeads * headSize]. */
  readonly biases: ReadonlyMap<number, Float32Array>;
  /** Tokens around a question about a context. */
  readonly turn: TurnIds;

  readonly #codecs: ReadonlyMap<string, KvCodec>;

  private constructor(
    name: string,
    modelDir: string,
    model: ImportedModel,
    runner: Runner,
    rope: RopeTable,
    codecs: ReadonlyMap<string, KvCodec>,
    biases: ReadonlyMap<number, Float32Array>,
    turn: TurnIds,
  ) {
    this.name = name;
    this.modelDir = modelDir;
    this.model = model;
    this.runner = runner;
    this.rope = rope;
    this.#codecs = codecs;
    this.biases = biases;
    this.turn = turn;
  }

  /**
   * Opens the model with int8 weights.
   * @param threads 0 takes the number that a measurement finds best on this machine.
   * @param codecNames the codecs to open. Some of them first need a measurement of the model.
   */
  static async open(
    name: string,
    modelDir: string,
    cacheDir: string,
    threads: number,
    codecNames: Iterable<string> = FORMATS.map((format) => format.name),
  ): Promise<KvSubject> {
    const model = await importModel({ modelDir, cacheDir, precision: 'int8' });
    const runner = await openRunner(model, new KvPool(kvShape(model.config, 'int8', model.biased), 0), {
      threads,
    });
    const rope = RopeTable.of(model.config);
    const { tokenizer, turn } = await ModelText.load(modelDir);
    const encode = (text: string): number[] => tokenizer.encode(text);
    const codecs = new Map<string, KvCodec>();
    for (const codecName of new Set(codecNames))
      codecs.set(
        codecName,
        await codecFor(codecName, { model, runner, rope, encode, contextTokens: model.config.contextTokens }),
      );
    return new KvSubject(name, modelDir, model, runner, rope, codecs, await readKeyBiases(model), turn);
  }

  get shape(): KvShape {
    return this.runner.pool.shape;
  }

  /** Bytes per token of K and V as float16. Compression is stated relative to this. */
  get float16Bytes(): number {
    const { numLayers, kvHeads, headSize } = this.shape;
    return numLayers * kvHeads * headSize * 2 * 2;
  }

  dispose(): Promise<void> {
    return this.runner.dispose();
  }

  codec(name: string): KvCodec {
    const codec = this.#codecs.get(name);
    if (!codec) throw new Error(`unknown codec ${name}; there are ${[...this.#codecs.keys()].join(', ')}`);
    return codec;
  }

  /** Computes a context from its first token in the prefill lane. */
  async compute(tokenIds: readonly number[]): Promise<ComputedContext> {
    this.reserve(tokenIds.length);
    const slots = Int32Array.from(tokenIds, (_, i) => i);
    const start = performance.now();
    for (let at = 0; at < tokenIds.length; at += CHUNK_TOKENS) {
      const ids = tokenIds.slice(at, at + CHUNK_TOKENS);
      await this.runner.run([
        {
          tokenIds: ids,
          startIndex: at,
          contextSlots: slots.subarray(0, at),
          newSlots: slots.subarray(at, at + ids.length),
          lane: 'prefill',
          prefillEnd: tokenIds.length,
          numLogits: 0,
        },
      ]);
    }
    const ms = performance.now() - start;
    return { tokenIds, slots, rows: this.runner.pool.read(slots), ms };
  }

  /** Writes the rows back as they were computed. */
  restore({ slots, rows }: ComputedContext): void {
    this.runner.pool.write(slots, rows, 0, 0);
  }

  /**
   * Log-probabilities of the token after each of `ids`, one row of [vocabSize] per token. `ids` follow the context.
   * @param slots of the context that `ids` attend to. There may be fewer slots than tokens. Positions do not change.
   */
  async follow({ tokenIds }: ComputedContext, slots: Int32Array, ids: readonly number[]): Promise<Float64Array[]> {
    const { vocabSize } = this.runner;
    const n = tokenIds.length;
    this.reserve(n + ids.length);
    const newSlots = Int32Array.from(ids, (_, i) => n + i);
    const logits = await this.runner.run([
      { tokenIds: ids, startIndex: n, contextSlots: slots, newSlots, numLogits: ids.length },
    ]);
    return ids.map((_, i) => logProbabilities(logits.subarray(i * vocabSize, (i + 1) * vocabSize)));
  }

  /**
   * Queries of the last `count` of `ids`, each [numLayers * numHeads, headSize].
   * @param startIndex position of the first id. The ids follow the context or repeat its last tokens.
   * @param slots see `follow`.
   */
  async ask(
    { tokenIds }: ComputedContext,
    slots: Int32Array,
    startIndex: number,
    ids: readonly number[],
    count: number,
  ): Promise<Float32Array[]> {
    const n = tokenIds.length;
    this.reserve(n + ids.length);
    await this.runner.run([
      {
        tokenIds: ids,
        startIndex,
        contextSlots: slots,
        newSlots: Int32Array.from(ids, (_, i) => n + i),
        numLogits: 0,
        numQueries: count,
      },
    ]);
    return queriesByToken(this.runner.queries!, count, this.shape.headSize);
  }

  /**
   * Greedy answer to each tail, without the token that ended it.
   * @param slots of each tail, see `follow`.
   */
  async answer(context: ComputedContext, slots: readonly Int32Array[], tails: readonly Tail[]): Promise<number[][]> {
    const answers: number[][] = [];
    for (let at = 0; at < tails.length; at += TOGETHER)
      answers.push(...(await this.#answer(context, slots.slice(at, at + TOGETHER), tails.slice(at, at + TOGETHER))));
    return answers;
  }

  async #answer(
    { tokenIds }: ComputedContext,
    slotsOf: readonly Int32Array[],
    tails: readonly Tail[],
  ): Promise<number[][]> {
    const n = tokenIds.length;
    let end = n;
    const running = tails.map((tail, t) => {
      const slots = slotsOf[t]!;
      const length = tail.ids.length + tail.maxTokens;
      const all = new Int32Array(slots.length + length);
      all.set(slots);
      for (let i = 0; i < length; i++) all[slots.length + i] = end + i;
      end += length;
      // `all` counts the slots attended to. There may be fewer of them than tokens.
      return {
        tail,
        all,
        numSlots: slots.length,
        next: [...tail.ids] as number[],
        done: 0,
        answer: [] as number[],
        over: tail.maxTokens === 0,
      };
    });
    this.reserve(end);
    const { vocabSize } = this.runner;
    const step = async (batch: typeof running): Promise<void> => {
      const logits = await this.runner.run(
        batch.map(({ all, numSlots, next, done }) => ({
          tokenIds: next,
          startIndex: n + done,
          contextSlots: all.subarray(0, numSlots + done),
          newSlots: all.subarray(numSlots + done, numSlots + done + next.length),
          numLogits: 1,
        })),
      );
      for (const [i, sequence] of batch.entries()) {
        const tokenId = argmax(logits.subarray(i * vocabSize, (i + 1) * vocabSize));
        sequence.done += sequence.next.length;
        sequence.over = sequence.tail.ends(tokenId);
        if (sequence.over) continue;
        sequence.answer.push(tokenId);
        sequence.next = [tokenId];
        sequence.over = sequence.answer.length === sequence.tail.maxTokens;
      }
    };
    for (const sequence of running) if (!sequence.over) await step([sequence]);
    for (;;) {
      const batch = running.filter(({ over }) => !over);
      if (batch.length === 0) return running.map(({ answer }) => answer);
      await step(batch);
    }
  }

  /** Grows the pool to at least this many slots. Keeps its rows. */
  reserve(numSlots: number): void {
    const { pool } = this.runner;
    if (pool.numSlots < numSlots) pool.resize(Math.ceil(numSlots / PAGE_SLOTS) * PAGE_SLOTS);
  }
}

export function argmax(row: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i]! > row[best]!) best = i;
  return best;
}
