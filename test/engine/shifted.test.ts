/**
 * Position-shifted reuse with a runner whose rows hold only a token and its position, not what came before. So shifted
 * rows are right wherever they come from. Every mistake in positions, rotation or accounting changes tokens or throws.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { BatchSpan, ModelRunner } from '../../engine/model/batch.ts';
import { type KvRows, kvBytesPerToken, newKvRows } from '../../engine/kv/kvRows.ts';
import { KvPool } from '../../engine/kv/pool.ts';
import { Engine } from '../../engine/core/engine.ts';
import { chain, fakeLogits, fakeShape, VOCAB_SIZE } from '../support/engine/fakeRunner.ts';
import { ask, drain, tokens } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';

/** Keys hold the position and values hold the token, two bytes each, in all layers and heads. */
class PlainRunner implements ModelRunner {
  readonly vocabSize = VOCAB_SIZE;
  readonly paidColumns = 0;
  readonly pool: KvPool;
  numComputed = 0;

  constructor(pool: KvPool) {
    this.pool = pool;
  }

  async run(batch: readonly BatchSpan[]): Promise<Float32Array> {
    const logits = new Float32Array(batch.reduce((sum, span) => sum + span.numLogits, 0) * VOCAB_SIZE);
    let row = 0;
    for (const { tokenIds, startIndex, contextSlots, newSlots, numLogits } of batch) {
      let hash = 0;
      const context = this.pool.read(contextSlots);
      for (let i = 0; i < startIndex; i++) hash = chain(hash, this.#tokenAt(context, i), i);
      const rows = newKvRows(this.pool.shape, tokenIds.length);
      for (const [i, tokenId] of tokenIds.entries()) {
        hash = chain(hash, tokenId, startIndex + i);
        this.#each(rows, i, (set) => {
          set('keys', startIndex + i);
          set('values', tokenId);
        });
        if (i >= tokenIds.length - numLogits) fakeLogits(hash, logits.subarray(row * VOCAB_SIZE, ++row * VOCAB_SIZE));
      }
      this.pool.write(newSlots, rows, 0, startIndex);
      this.numComputed += tokenIds.length;
    }
    return logits;
  }

  shiftKeys(rows: KvRows, by: number): void {
    for (let i = 0; i < rows.numTokens; i++) this.#each(rows, i, (set, get) => set('keys', get('keys') + by));
  }

  /** The token of a context row. The row must be the same in all layers and heads and hold its own position. */
  #tokenAt(rows: KvRows, i: number): number {
    const tokenIds = new Set<number>();
    this.#each(rows, i, (_, get) => {
      if (get('keys') !== i) throw new Error(`A row of position ${get('keys')} stands at ${i}.`);
      tokenIds.add(get('values'));
    });
    if (tokenIds.size !== 1) throw new Error(`Rows of ${tokenIds.size} tokens stand at ${i}.`);
    return [...tokenIds][0]!;
  }

  #each(
    rows: KvRows,
    i: number,
    visit: (set: (side: 'keys' | 'values', value: number) => void, get: (side: 'keys' | 'values') => number) => void,
  ): void {
    const { numLayers, kvHeads, headSize } = this.pool.shape;
    for (let head = 0; head < numLayers * kvHeads; head++) {
      const at = (side: 'keys' | 'values', d: number): number =>
        side === 'keys' ? (head * headSize + d) * rows.numTokens + i : (head * rows.numTokens + i) * headSize + d;
      visit(
        (side, value) => {
          rows[side][at(side, 0)] = value & 127;
          rows[side][at(side, 1)] = value >> 7;
        },
        (side) => rows[side][at(side, 0)]! | (rows[side][at(side, 1)]! << 7),
      );
    }
  }
}

function newEngine(options: { slots?: number; reuseShifted?: boolean } = {}) {
  const pool = new KvPool(fakeShape(), 0);
  const runner = new PlainRunner(pool);
  let now = 0;
  const engine = new Engine({
    runner,
    pool,
    maxContext: 8192,
    tokenBudget: 256,
    prefillTokens: 8191,
    prefillBytesPerToken: 1,
    maxBytes: (options.slots ?? 8192) * kvBytesPerToken(fakeShape()) + 8192,
    clock: () => now++,
    reuseShifted: options.reuseShifted ?? true,
  });
  return { engine, runner };
}

const alone = (prompt: number[], maxTokens: number): number[] =>
  runAlone(prompt, { maxTokens }, { maxContext: 1e9, capacity: 1e9 }).tokenIds;
const edit = (text: readonly number[], at: number, removed: number, inserted: readonly number[]): number[] => [
  ...text.slice(0, at),
  ...inserted,
  ...text.slice(at + removed),
];
/** A question about a file's block. */
const question = (engine: Engine, block: readonly number[], maxTokens = 4, seed = 7) =>
  ask(engine, [...block, ...tokens(20, seed)], { prefillTokens: block.length, maxTokens });
const read = (engine: Engine, block: readonly number[]) =>
  ask(engine, block, { priority: 'idle', prefillTokens: block.length, maxTokens: 0 });

test('shifted reuse: the rest of a file after an edit is reused except for its first tokens; a second question finds it', async () => {
  const { engine, runner } = newEngine();
  const before = tokens(1000, 1);
  read(engine, before);
  await drain(engine);
  const after = edit(before, 300, 3, tokens(5, 2));
  runner.numComputed = 0;
  const first = question(engine, after);
  await drain(engine);
  expect(first.tokenIds).toEqual(alone([...after, ...tokens(20, 7)], 4));
  expect(first.sequence.approximateTokens).toBe(1000 - 303 - 64);
  // The inserted tokens, 64 tokens after them, the question, and the generated tokens.
  expect(runner.numComputed).toBe(5 + 64 + 20 + 3);
  const second = question(engine, after, 4, 8);
  await drain(engine);
  expect(second.tokenIds).toEqual(alone([...after, ...tokens(20, 8)], 4));
  expect(second.sequence.approximateTokens).toBe(1000 - 303 - 64);
  expect(engine.stats().tokens.promptShifted).toBe(1000 - 303 - 64);
  expect(runner.numComputed).toBe(5 + 64 + 2 * (20 + 3));
});

test('shifted rows are never found as exact ones: idle work computes the exact rows, and later questions use them', async () => {
  const { engine, runner } = newEngine();
  const before = tokens(1000, 1);
  read(engine, before);
  await drain(engine);
  const after = edit(before, 300, 0, tokens(10, 2));
  question(engine, after);
  await drain(engine);
  expect(engine.blocks.describe(after)).toMatchObject({ tokens: 374, shiftedTokens: 1010 - 374 });
  runner.numComputed = 0;
  read(engine, after);
  await drain(engine);
  expect(runner.numComputed).toBe(1010 - 374);
  const held = engine.stats().poolSlots.held;
  engine.blocks.dropApproximate(after);
  engine.checkIntegrity();
  expect(engine.stats().poolSlots.held).toBeLessThanOrEqual(held - (1010 - 374));
  expect(engine.blocks.describe(after)).toMatchObject({ tokens: 1010, shiftedTokens: 0 });
  const again = question(engine, after);
  await drain(engine);
  expect(again.sequence.approximateTokens).toBe(0);
});

test('no shifted reuse when it is off, and none for idle work', async () => {
  const before = tokens(1000, 1);
  const after = edit(before, 300, 0, tokens(10, 2));
  for (const reuseShifted of [false, true]) {
    const { engine, runner } = newEngine({ reuseShifted });
    read(engine, before);
    await drain(engine);
    runner.numComputed = 0;
    const watched = reuseShifted ? read(engine, after) : question(engine, after, 1);
    await drain(engine);
    expect(watched.sequence.approximateTokens).toBe(0);
    expect(runner.numComputed).toBe(reuseShifted ? 710 : 730);
    expect(engine.stats().tokens.promptShifted).toBe(0);
  }
});

test('shifted rows are no source for the next edit; only computed rows are, of any version', async () => {
  const { engine, runner } = newEngine();
  const one = tokens(2000, 1);
  read(engine, one);
  await drain(engine);
  const two = edit(one, 300, 0, tokens(10, 2));
  question(engine, two);
  // Idle time had computed this much.
  read(engine, two.slice(0, 900));
  await drain(engine);
  const three = edit(two, 500, 7, tokens(2, 3));
  runner.numComputed = 0;
  const watched = question(engine, three, 1);
  await drain(engine);
  expect(watched.tokenIds).toEqual(alone([...three, ...tokens(20, 7)], 1));
  // After the edit the source is the second version as far as it was computed, then the first version.
  expect(runner.numComputed).toBe(2 + 64 + 20);
  expect(engine.stats().tokens.promptShifted).toBe(2010 - 374 + three.length - 566);
});

test('without an older version or free slots the tokens are computed', async () => {
  const { engine, runner } = newEngine({ slots: 1400 });
  const before = tokens(1000, 1);
  read(engine, before);
  await drain(engine);
  const after = edit(before, 100, 0, tokens(10, 2));
  const watched = question(engine, after, 4);
  await drain(engine);
  expect(watched.tokenIds).toEqual(alone([...after, ...tokens(20, 7)], 4));
  engine.checkIntegrity();
  expect(watched.sequence.approximateTokens).toBe(0);
  expect(runner.numComputed).toBeGreaterThan(1800);
});

test("property: any edits under any budget give the oracle's tokens, rows at the right positions and no lost slot", async () => {
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    removed: fc.nat(60),
    inserted: fc.nat(80),
    moved: fc.boolean(),
  });
  let numShifted = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 700, max: 5000 }),
      fc.array(fc.array(change, { maxLength: 3 }), { minLength: 1, maxLength: 5 }),
      fc.integer(),
      async (slots, versions, seed) => {
        const { engine } = newEngine({ slots });
        let text = tokens(600, 1);
        let inserted = 0;
        const watched: { prompt: number[]; got: ReturnType<typeof ask> }[] = [];
        for (const [v, changes] of versions.entries()) {
          for (const { at, removed, inserted: count, moved } of changes) {
            const place = Math.floor(at * (text.length - 1));
            // Inserts a copy of the text's beginning, or new text.
            text = edit(text, place, removed, moved ? text.slice(0, count) : tokens(count, 100 + inserted++)).slice(
              0,
              640,
            );
          }
          if ((seed >> v) & 1) read(engine, text);
          for (const k of [0, 1]) {
            const prompt = [...text, ...tokens(12, 50 + k)];
            watched.push({
              prompt,
              got: ask(engine, prompt, { prefillTokens: text.length, maxTokens: 2, priority: k ? 'summary' : 'chat' }),
            });
          }
          if ((seed >> (v + 8)) & 1) await drain(engine);
          if ((seed >> (v + 16)) & 1) engine.blocks.dropApproximate(text);
        }
        await drain(engine);
        for (const { prompt, got } of watched) expect(got.tokenIds).toEqual(alone(prompt, 2));
        numShifted += engine.stats().tokens.promptShifted;
      },
    ),
    { numRuns: 60, seed: 1 },
  );
  expect(numShifted).toBeGreaterThan(5000);
});
