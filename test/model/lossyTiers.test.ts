/** What a codec of the store costs is its loss and nothing else: answers are those over the same rows coded where they stand, wherever they lie. */
import { readFile } from 'node:fs/promises';
import { afterAll, expect, test } from 'vitest';
import { scratchRows } from '../../engine/batch.ts';
import { type CodecName, codecNamed } from '../../engine/cache/codecs/registry.ts';
import type { KvCodec } from '../../engine/cache/codecs/kvCodec.ts';
import { kvBytesPerToken } from '../../engine/cache/kvRows.ts';
import { codingReserve } from '../../engine/cache/toCode.ts';
import { PAGE_SLOTS } from '../../engine/cache/window.ts';
import { Engine } from '../../engine/engine.ts';
import { parseConfig } from '../../engine/model/hfConfig.ts';
import { RopeTable } from '../../engine/model/rope.ts';
import type { OnnxRunner } from '../../engine/model/runner.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { ask, drain, filesOf, kernelShare, type Watched } from '../engine/harness.ts';
import { loadRunner, temporaryFolder } from './fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const PREFILL_TOKENS = 1023;
const NUM_TOKENS = 40;
const range = (from: number, to: number): Int32Array => Int32Array.from({ length: to - from }, (_, i) => from + i);

/** Greedy answers over a block in the window that has been through the codec there, without engine, store or tree. */
async function coded(runner: OnnxRunner, codec: KvCodec, block: readonly number[], tails: readonly (readonly number[])[]): Promise<number[][]> {
  const { window, vocabSize } = runner;
  const n = block.length;
  window.resize(8 * PAGE_SLOTS);
  await runner.run([{ tokenIds: [...block], startIndex: 0, contextSlots: range(0, 0), newSlots: range(0, n), lane: 'prefill', prefillEnd: n, numLogits: 0 }]);
  const { blockTokens } = codec.format;
  for (let at = 0; at < n; at += blockTokens) {
    const slots = range(at, Math.min(n, at + blockTokens));
    window.write(slots, codec.through(window.read(slots), { startIndex: at, contextEnd: n }), 0, at);
  }
  const answers: number[][] = [];
  for (const tail of tails) {
    const answer: number[] = [];
    for (let at = n, next = [...tail]; answer.length < NUM_TOKENS; ) {
      const logits = await runner.run([{ tokenIds: next, startIndex: at, contextSlots: range(0, at), newSlots: range(at, at + next.length), numLogits: 1 }]);
      at += next.length;
      answer.push(logits.subarray(0, vocabSize).indexOf(Math.max(...logits.subarray(0, vocabSize))));
      next = [answer.at(-1)!];
    }
    answers.push(answer);
  }
  runner.releaseScratch();
  window.resize(0);
  return answers;
}

test.each<CodecName>(['nvfp4', 'int4-kivi', 'kvquant3'])('built-in model, %s: over a file that was coded, demoted, promoted and cut, answers are those over rows coded in place', async (name) => {
  const runner = await loadRunner('model', `${folder.dir}/cache`, 'int8', 'int8', 0);
  const { window } = runner;
  const config = parseConfig(JSON.parse(await readFile('model/config.json', 'utf8')), null);
  const codec = codecNamed(name, window.shape, new RopeTable(config.rope, config.headSize));
  const tokenizer = await Tokenizer.load('model');
  const block = tokenizer.encode(`<|file_sep|>slots.ts\n${await readFile('engine/cache/slots.ts', 'utf8')}`).slice(0, 900);
  const tails = ['\n\n/** Takes', '\nexport class ', '\n  resize(', '\nfunction emptiest'].map((text) => tokenizer.encode(text));
  const [exact, expected] = [await coded(runner, codecNamed('int8', window.shape, null), block, tails), await coded(runner, codec, block, tails)];

  // Otherwise rows that no codec has touched would do.
  expect(expected).not.toEqual(exact);
  const clock = { now: 0 };
  const compression = { rungs: [{ codec, idleMs: 1000, fullness: 0 }], only: null };
  const bytes = (slots: number): number => slots * kvBytesPerToken(window.shape) + scratchRows(PREFILL_TOKENS) * runner.prefillBytesPerToken + kernelShare({ compression }, window.shape);
  const engine = new Engine({ runner, window, maxContext: 2048, prefillTokens: PREFILL_TOKENS, prefillBytesPerToken: runner.prefillBytesPerToken, maxBytes: bytes(6000), clock: () => clock.now, compression });
  const question = (tail: readonly number[]): Watched => ask(engine, [...block, ...tail], { prefillTokens: block.length, maxTokens: NUM_TOKENS });
  const answers = async (): Promise<number[][]> => {
    const all = tails.map(question);
    await drain(engine);
    return all.map(({ tokenIds }) => tokenIds);
  };
  const rest = async (): Promise<void> => {
    clock.now += 100_000;
    while (await engine.tidy(filesOf([block]))) engine.checkIntegrity();
  };
  expect(await answers()).toEqual(exact);
  engine.evict();
  ask(engine, block, { prefillTokens: block.length, maxTokens: 1 });
  await drain(engine);
  await rest();
  expect(engine.describe(block)).toMatchObject({ tokens: block.length, tier: 'store', codecs: [name] });
  expect(await answers()).toEqual(expected);
  expect(engine.stats().events.promotions).toBeGreaterThan(0);
  // Under a ceiling that has no room for the copies, and for two of them at a time.
  // What coding takes meanwhile is beside them.
  engine.setMaxBytes(bytes(950) + codingReserve(compression, window.shape).most);
  expect(await answers()).toEqual(expected);
  expect(engine.stats().events.preemptions).toBeGreaterThan(0);
  await runner.dispose();
});
