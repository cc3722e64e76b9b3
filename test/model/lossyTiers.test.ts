/**
 * A codec of the store costs its loss and nothing else. Answers equal those over the same rows coded in place, wherever
 * the rows are.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, expect, test } from 'vitest';
import { scratchRows, type Runner } from '../../engine/model/batch.ts';
import { reservedBytes } from '../../engine/kv/approx/approximations.ts';
import { type CodecName, codecNamed } from '../../engine/kv/approx/codecs/registry.ts';
import type { RunPlace } from '../../engine/kv/approx/codecs/codecFormat.ts';
import { KvCodec } from '../../engine/kv/approx/codecs/kvCodec.ts';
import { type KvRows, kvBytesPerToken, sliceRows } from '../../engine/kv/kvRows.ts';
import { codingReserve } from '../../engine/kv/approx/compression.ts';
import { PAGE_SLOTS } from '../../engine/kv/pool.ts';
import { Engine } from '../../engine/core/engine.ts';
import { parseConfig } from '../../engine/model/load/hfConfig.ts';
import { RopeTable } from '../../engine/model/runtime/rope.ts';
import { Tokenizer } from '../../engine/text/tokenizer/tokenizer.ts';
import { ask, drain, filesOf, type Watched } from '../support/engine/harness.ts';
import { contentOf } from '../support/engine/tracedCodec.ts';
import { below, seededRandom } from '../support/engine/workload.ts';
import { loadNativeRunner, temporaryFolder } from '../support/model/fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const PREFILL_TOKENS = 1023;
const NUM_TOKENS = 24;
/** Tokens of the shorter answers. */
const ANSWER_TOKENS = 12;
const range = (from: number, to: number): Int32Array => Int32Array.from({ length: to - from }, (_, i) => from + i);

/** Computes a block in the prefill lane and puts its rows into the pool's first slots. */
async function computeAlone(runner: Runner, block: readonly number[]): Promise<void> {
  const n = block.length;
  runner.pool.resize(8 * PAGE_SLOTS);
  await runner.run([
    {
      tokenIds: [...block],
      startIndex: 0,
      contextSlots: range(0, 0),
      newSlots: range(0, n),
      lane: 'prefill',
      prefillEnd: n,
      numLogits: 0,
    },
  ]);
}

/** A greedy answer over the rows in the pool's first n slots, without engine, store or tree. */
async function answerAlone(runner: Runner, n: number, tail: readonly number[], numTokens: number): Promise<number[]> {
  const answer: number[] = [];
  for (let at = n, next = [...tail]; answer.length < numTokens; ) {
    const logits = await runner.run([
      {
        tokenIds: next,
        startIndex: at,
        contextSlots: range(0, at),
        newSlots: range(at, at + next.length),
        numLogits: 1,
      },
    ]);
    at += next.length;
    answer.push(logits.subarray(0, runner.vocabSize).indexOf(Math.max(...logits.subarray(0, runner.vocabSize))));
    next = [answer.at(-1)!];
  }
  return answer;
}

/** Answers over a block in the pool whose rows were encoded and decoded in place. */
async function coded(
  runner: Runner,
  codec: KvCodec,
  block: readonly number[],
  tails: readonly (readonly number[])[],
): Promise<number[][]> {
  const { pool } = runner;
  const n = block.length;
  await computeAlone(runner, block);
  const { blockTokens } = codec.format;
  for (let at = 0; at < n; at += blockTokens) {
    const slots = range(at, Math.min(n, at + blockTokens));
    pool.write(slots, codec.through(pool.read(slots), { startIndex: at, contextEnd: n }), 0, at);
  }
  const answers: number[][] = [];
  for (const tail of tails) answers.push(await answerAlone(runner, n, tail, NUM_TOKENS));
  runner.releaseScratch();
  pool.resize(0);
  return answers;
}

let exactAnswers: number[][] | undefined;

/** Reports each row that it encodes: the input and the decoded result. */
class ToldCodec extends KvCodec {
  readonly #tell: (position: number, rows: KvRows, made: KvRows, i: number) => void;

  constructor(
    { format, shape }: KvCodec,
    rope: RopeTable,
    tell: (position: number, rows: KvRows, made: KvRows, i: number) => void,
  ) {
    super(format, shape, rope);
    this.#tell = tell;
  }

  override encode(rows: KvRows, place: RunPlace): Uint8Array {
    const encoded = super.encode(rows, place);
    const made = this.decode(encoded).rows;
    const [from, to] = this.codedTokens(rows.numTokens, place);
    for (let i = from; i < to; i++) this.#tell(place.startIndex + i, rows, made, i);
    return encoded;
  }
}

test.each<CodecName>(['nvfp4', 'int4-kivi', 'turboquant'])(
  'built-in model, %s: answers over a file that was coded, demoted, promoted and cut equal those over rows coded in place',
  async (name) => {
    const runner = await loadNativeRunner('model', `${folder.dir}/cache`, 'int8', { numSlots: 0 });
    const { pool } = runner;
    const config = parseConfig(JSON.parse(await readFile('model/config.json', 'utf8')), null);
    const codec = codecNamed(name, pool.shape, new RopeTable(config.rope, config.headSize));
    const tokenizer = await Tokenizer.load('model');
    const block = tokenizer
      .encode(`<|file_sep|>slots.ts\n${await readFile('test/fixtures/samples/slots.ts.txt', 'utf8')}`)
      .slice(0, 600);
    const tails = [
      '\n\n/** Takes',
      '\nexport class ',
      '\n  resize(',
      '\nfunction emptiest',
      '\n  get free',
      '\n  for (const ',
      '\n    this.#',
      '\n  /** Slots',
    ].map((text) => tokenizer.encode(text));
    // The exact answers are the same for all codecs.
    exactAnswers ??= await coded(runner, codecNamed('int8', pool.shape, null), block, tails);
    const [exact, expected] = [exactAnswers, await coded(runner, codec, block, tails)];

    // If they were equal, rows that were never encoded would pass the test.
    expect(expected).not.toEqual(exact);
    const clock = { now: 0 };
    const compression = { levels: [{ codec, idleMs: 1000, fullness: 0 }], only: null };
    const bytes = (slots: number): number =>
      slots * kvBytesPerToken(pool.shape) +
      scratchRows(PREFILL_TOKENS) * runner.prefillBytesPerToken +
      reservedBytes({ compression }, pool.shape);
    const engine = new Engine({
      runner,
      pool,
      maxContext: 2048,
      prefillTokens: PREFILL_TOKENS,
      prefillBytesPerToken: runner.prefillBytesPerToken,
      maxBytes: bytes(6000),
      clock: () => clock.now,
      compression,
    });
    const question = (tail: readonly number[]): Watched =>
      ask(engine, [...block, ...tail], { prefillTokens: block.length, maxTokens: NUM_TOKENS });
    const answers = async (): Promise<number[][]> => {
      const all = tails.map(question);
      await drain(engine);
      return all.map(({ tokenIds }) => tokenIds);
    };
    const rest = async (): Promise<void> => {
      clock.now += 100_000;
      while (await engine.runMaintenance(filesOf([block]))) engine.checkIntegrity();
    };
    expect(await answers()).toEqual(exact);
    engine.blocks.evict();
    ask(engine, block, { prefillTokens: block.length, maxTokens: 1 });
    await drain(engine);
    await rest();
    expect(engine.blocks.describe(block)).toMatchObject({ tokens: block.length, tier: 'store', codecs: [name] });
    expect(await answers()).toEqual(expected);
    expect(engine.stats().events.promotions).toBeGreaterThan(0);
    // A budget with no room for the copies and no room for two answers at a time. The memory for encoding is added.
    engine.setMaxBytes(bytes(650) + codingReserve(compression, pool.shape));
    expect(await answers()).toEqual(expected);
    expect(engine.stats().events.preemptions).toBeGreaterThan(0);
    await runner.dispose();
  },
);

test.each<CodecName>(['nvfp4', 'int4-kivi', 'turboquant'])(
  'built-in model, %s: while idle maintenance codes a file step by step under a moving budget, each answer equals the one over the rows that were coded at its start',
  async (name) => {
    const runner = await loadNativeRunner('model', `${folder.dir}/cache`, 'int8', { numSlots: 0 });
    const alone = await loadNativeRunner('model', `${folder.dir}/cache`, 'int8', { numSlots: 0 });
    const { pool } = runner;
    const { shape } = pool;
    const tokenizer = await Tokenizer.load('model');
    const block = tokenizer
      .encode(`<|file_sep|>slots.ts\n${await readFile('test/fixtures/samples/slots.ts.txt', 'utf8')}`)
      .slice(0, 600);
    const lines = (await readFile('test/fixtures/samples/window.ts.txt', 'utf8'))
      .split('\n')
      .filter((line) => line.length > 20);
    await computeAlone(alone, block);
    const exact = alone.pool.read(range(0, block.length));
    const contents = block.map((_, i) => contentOf(shape, exact, i));
    /** The block's encoded rows by position. */
    const codedRows = new Map<number, KvRows>();
    const rope = new RopeTable(
      parseConfig(JSON.parse(await readFile('model/config.json', 'utf8')), null).rope,
      shape.headSize,
    );
    const codec = new ToldCodec(codecNamed(name, shape, rope), rope, (position, rows, made, i) => {
      if (contentOf(shape, rows, i) === contents[position]) codedRows.set(position, sliceRows(shape, made, i, i + 1));
    });

    const clock = { now: 0 };
    const compression = { levels: [{ codec, idleMs: 1000, fullness: 0 }], only: null };
    const bytes = (slots: number): number =>
      slots * kvBytesPerToken(shape) +
      scratchRows(PREFILL_TOKENS) * runner.prefillBytesPerToken +
      reservedBytes({ compression }, shape) +
      codingReserve(compression, shape);
    const engine = new Engine({
      runner,
      pool,
      maxContext: 2048,
      prefillTokens: PREFILL_TOKENS,
      prefillBytesPerToken: runner.prefillBytesPerToken,
      maxBytes: bytes(6000),
      clock: () => clock.now,
      compression,
    });
    ask(engine, block, { prefillTokens: block.length, maxTokens: 1 });
    await drain(engine);

    const random = seededRandom(1);
    const asked: { watched: Watched; cut: number; tail: number[]; rows: ReadonlyMap<number, KvRows> }[] = [];
    const put = (): void => {
      const i = asked.length;
      // Each request continues from its own position, so no two share rows after the file.
      const cut = 150 + ((i * 137) % 451);
      const tail = tokenizer.encode(`\n${lines[i % lines.length]!}`);
      asked.push({
        watched: ask(engine, [...block.slice(0, cut), ...tail], { prefillTokens: cut, maxTokens: ANSWER_TOKENS }),
        cut,
        tail,
        rows: new Map(codedRows),
      });
    };
    const check = (): void => {
      engine.checkIntegrity();
      // Otherwise a part of the block would be computed again.
      expect(engine.blocks.describe(block).tokens).toBe(block.length);
    };
    for (let round = 0; round < 8; round++) {
      for (let n = below(random, 4); n > 0; n--) put();
      while (engine.hasWork()) {
        // Maintenance that begins before a step and ends during it.
        const maintaining = engine.runMaintenance(filesOf([block]));
        await engine.step();
        await maintaining;
        if (await engine.runMaintenance(filesOf([block]))) expect(engine.hasWork()).toBe(false);
        if (random() < 0.1) engine.setMaxBytes(bytes(2200 + below(random, 2000)));
        if (random() < 0.05) put();
        check();
      }
      clock.now += 100_000;
      for (let n = 2 + below(random, 12); n > 0; n--) {
        const maintaining = engine.runMaintenance(filesOf([block]));
        // A request arrives during maintenance.
        if (random() < 0.05) put();
        await maintaining;
        check();
      }
    }
    await drain(engine);
    let numOther = 0;
    for (const { watched, cut, tail, rows } of asked) {
      alone.pool.write(range(0, block.length), exact, 0, 0);
      for (const [position, row] of rows) alone.pool.write(Int32Array.of(position), row, 0, position);
      expect(watched.tokenIds).toEqual(await answerAlone(alone, cut, tail, ANSWER_TOKENS));
      if (numOther || !rows.size) continue;
      alone.pool.write(range(0, block.length), exact, 0, 0);
      if (watched.tokenIds.join() !== (await answerAlone(alone, cut, tail, ANSWER_TOKENS)).join()) numOther++;
    }
    // If they were equal, rows that were never encoded, or all encoded at once, would pass the test.
    expect(numOther).toBeGreaterThan(0);
    expect(new Set(asked.map(({ rows }) => rows.size)).size).toBeGreaterThan(2);
    // The budget may evict answers, but no row of the block (see `check`).
    expect(engine.stats().events).toMatchObject({ promotions: expect.toSatisfy((n: number) => n > 4) });
    await runner.dispose();
    await alone.dispose();
  },
);
