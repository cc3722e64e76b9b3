/** Speculation over the real graph: the same tokens, greedy and sampled, with right and wrong drafts. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { kvBytesPerToken } from '../../engine/kv/kvRows.ts';
import { KvPool } from '../../engine/kv/pool.ts';
import { Engine } from '../../engine/core/engine.ts';
import { importModel } from '../../engine/model/import/importModel.ts';
import { kvShape, usualKv } from '../../engine/model/load/importedModel.ts';
import { OnnxRunner } from '../../engine/model/runtime/runner.ts';
import type { SequenceOptions } from '../../engine/sequence/sequence.ts';
import { below, driveWorkload, makeWorkload, seededRandom, type WorkItem } from '../support/engine/workload.ts';
import { policyOptions } from '../support/engine/policies.ts';
import { part } from '../support/testLength.ts';

const cacheDir = await mkdtemp(join(tmpdir(), 'kvasir-speculation-'));
afterAll(() => rm(cacheDir, { recursive: true, force: true }));

const MAX_CONTEXT = 260;
const noText = { detokenizer: () => ({ push: () => '', flush: () => '' }) };

// The second model has a key bias, for which its graph contains rotations.
test.each([
  ['qwen3-tied-sharded', 'int8'],
  ['qwen2-untied-bf16', 'int8'],
  ['qwen2-untied-bf16', 'int4'],
  ['qwen3-tied-sharded', 'float32'],
] as const)('%s, %s: tokens with drafts equal those without', async (name, precision) => {
  const { config, ...model } = await importModel({ modelDir: `test/fixtures/models/${name}`, cacheDir, precision });
  const pool = new KvPool(kvShape(config, usualKv(precision)), 0);
  const runner = await OnnxRunner.create({ config, ...model }, pool, { threads: 1 });
  try {
    const run = async (items: readonly (WorkItem & Pick<SequenceOptions, 'draftSources'>)[], speculation: boolean) => {
      const engine = new Engine({
        runner,
        pool,
        maxBytes: 700 * kvBytesPerToken(pool.shape),
        maxContext: MAX_CONTEXT,
        tokenBudget: 32,
        ...policyOptions({ speculation }),
      });
      const outcomes = await driveWorkload(engine, items, { ...noText, afterStep: () => engine.checkIntegrity() });
      return { outcomes, ...engine.stats() };
    };
    const items = makeWorkload({
      seed: 31,
      // How many drafts are accepted depends on the times of the steps.
      numRequests: Math.max(60, part(240)),
      numTokens: config.vocabSize,
      numFiles: 4,
      fileTokens: 40,
      maxTokens: 48,
      arrivalsPerStep: 0.2,
      aborts: 0,
      sampled: 0.5,
    });
    const plain = await run(items, false);
    expect(plain.tokens.drafted).toBe(0);
    const random = seededRandom(2);
    const drafting = items.map((item) => {
      const text = [...item.promptIds.slice(-2), ...plain.outcomes.get(item.id)!.tokenIds];
      const source = text.map((tokenId) => (random() < 0.08 ? below(random, config.vocabSize) : tokenId));
      return { ...item, draftSources: () => [source] };
    });
    const drafted = await run(drafting, true);
    for (const { id } of items) {
      const { tokenIds, finishReason, error } = drafted.outcomes.get(id)!;
      expect({ tokenIds, finishReason, error }, id).toEqual({
        tokenIds: plain.outcomes.get(id)!.tokenIds,
        finishReason: plain.outcomes.get(id)!.finishReason,
        error: plain.outcomes.get(id)!.error,
      });
    }
    expect(drafted.tokens.accepted).toBeGreaterThan(part(1000));
    expect(drafted.tokens.drafted - drafted.tokens.accepted).toBeGreaterThan(part(200));
    expect(drafted.events.steps).toBeLessThan(plain.events.steps);
  } finally {
    await runner.dispose();
  }
});
