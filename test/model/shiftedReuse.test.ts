/**
 * Position-shifted reuse with the built-in model: its loss, that it is used only where the loss is small, and that idle
 * time removes all of it.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { KvPool } from '../../engine/kv/pool.ts';
import { Client } from '../../engine/cli/cliClient.ts';
import { importModel } from '../../engine/model/import/importModel.ts';
import { kvShape } from '../../engine/model/load/importedModel.ts';
import { NativeRunner } from '../../engine/model/native/nativeRunner.ts';
import { measureShift, MAX_SHIFT_DIVERGENCE } from '../../engine/model/calibrate/shiftQuality.ts';
import type { ChatTask } from '../../engine/protocol/tasks.ts';
import { Tokenizer } from '../../engine/text/tokenizer/tokenizer.ts';
import { temporaryFolder } from '../support/model/fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

/** A short context, because the loss is measured with contexts of its length. */
const LOAD = {
  modelDir: 'model',
  cacheDir: folder.dir,
  precision: 'int8',
  maxBytes: 200e6,
  threads: 1,
  contextTokens: 2048,
} as const;
const SOURCE = readFileSync('test/fixtures/samples/prefixTree.ts.txt', 'utf8').slice(0, 4200);
const ASK: ChatTask = {
  kind: 'chat',
  docIds: ['d'],
  messages: [{ role: 'user', content: 'Why is it written like this?' }],
  anyway: true,
};
const EDIT = { start: 900, end: 900, text: '\n/** One more line. */\n' };

async function withModel(
  reuseShifted: boolean,
  work: (client: Client, klMean: number | undefined) => Promise<void>,
): Promise<void> {
  const client = new Client();
  try {
    const info = await client.load({ ...LOAD, reuseShifted });
    client.send({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/a.ts', text: SOURCE });
    await client.flush();
    client.send({ type: 'documentChanged', docId: 'd', version: 2, edits: [EDIT] });
    await work(client, info.shifted?.klMean);
  } finally {
    await client.close();
  }
}
const ask = (client: Client) => client.generate(ASK, { sampling: { maxTokens: 16 } });

test('shifted rows are reused until idle prefill computes exact ones; the loss is measured once, and above the limit there is no reuse', async () => {
  let exact: number[] = [];
  await withModel(false, async (client, klMean) => {
    expect(klMean).toBeUndefined();
    const { usage, tokenIds } = await ask(client);
    expect(usage).not.toHaveProperty('shiftedTokens');
    exact = tokenIds;
  });
  await withModel(true, async (_, klMean) => {
    expect(klMean).toBeGreaterThan(0);
    expect(klMean).toBeLessThan(MAX_SHIFT_DIVERGENCE);
  });
  const record = join(folder.dir, readdirSync(folder.dir).find((name) => name.startsWith('int8-'))!, 'shifted.json');
  const { result, ...rest } = JSON.parse(readFileSync(record, 'utf8'));
  const measuredAs = (klMean: number): void =>
    writeFileSync(record, JSON.stringify({ ...rest, result: { ...result, klMean } }));
  measuredAs(MAX_SHIFT_DIVERGENCE);
  await withModel(true, async (client, klMean) => {
    expect(klMean).toBe(MAX_SHIFT_DIVERGENCE);
    const { usage } = await ask(client);
    const { shiftedTokens = 0 } = usage;
    expect(shiftedTokens).toBeGreaterThan(300);
    expect(usage.cachedTokens).toBeGreaterThan(usage.blockTokens - 150);
    const before = await client.stats();
    expect(before.tokens.promptShifted).toBe(shiftedTokens);
    expect(before.files[0]!.shiftedTokens).toBe(shiftedTokens);
    await client.flush();
    const after = await client.stats();
    // Idle time computes exactly the shifted rows. None of them counted as computed before.
    expect(after.tokens.idleComputed - before.tokens.idleComputed).toBe(shiftedTokens);
    expect(after.files[0]!.shiftedTokens).toBe(0);
    const again = await ask(client);
    expect(again.usage).not.toHaveProperty('shiftedTokens');
    expect(again.tokenIds).toEqual(exact);
  });
  measuredAs(1.01 * MAX_SHIFT_DIVERGENCE);
  await withModel(true, async (client, klMean) => {
    expect(klMean).toBe(1.01 * MAX_SHIFT_DIVERGENCE);
    const { usage, tokenIds } = await ask(client);
    expect(usage).not.toHaveProperty('shiftedTokens');
    expect(tokenIds).toEqual(exact);
  });
});

test('shifted reuse loses little, and rows at a wrong position lose many times more', async () => {
  const model = await importModel({ modelDir: 'model', cacheDir: folder.dir, precision: 'int8', products: 'native' });
  const runner = NativeRunner.create(model, new KvPool(kvShape(model.config, 'int8', model.biased), 0), {
    threads: 1,
  });
  const tokenizer = await Tokenizer.load('model');
  try {
    const measure = () =>
      measureShift(runner, (text) => tokenizer.encode(text), SOURCE, { contextTokens: 1024, places: [0.2] });
    const shifted = await measure();
    const mean = ({ klSum, numTokens }: typeof shifted): number => klSum / numTokens;
    expect(shifted.numTokens).toBe(4 * 4 * 32);
    expect(mean(shifted)).toBeGreaterThan(0);
    expect(mean(shifted)).toBeLessThan(4 * MAX_SHIFT_DIVERGENCE);
    expect(shifted.agreed).toBeGreaterThan(0.9 * shifted.numTokens);
    expect(runner.pool.numSlots).toBe(0);
    runner.shiftKeys = () => {};
    expect(mean(await measure())).toBeGreaterThan(30 * mean(shifted));
  } finally {
    await runner.dispose();
  }
});
