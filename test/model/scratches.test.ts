/**
 * The prefill lane's scratches over the real graph. Long and short prompts that take turns have the same bits as
 * prompts computed alone.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type BatchSpan, SHORT_ROWS } from '../../engine/model/batch.ts';
import { KvPool } from '../../engine/kv/pool.ts';
import { importModel } from '../../engine/model/import/importModel.ts';
import { kvShape } from '../../engine/model/load/importedModel.ts';
import { OnnxRunner } from '../../engine/model/runtime/runner.ts';
import { below, seededRandom } from '../support/engine/workload.ts';

const cacheDir = await mkdtemp(join(tmpdir(), 'kvasir-scratches-'));
afterAll(() => rm(cacheDir, { recursive: true, force: true }));

// The second model has a key bias, which the scratch adds.
test.each(['qwen3-tied-sharded', 'qwen2-untied-bf16'])(
  '%s: two long and two short prompts in turns get exact results',
  async (name) => {
    const model = await importModel({ modelDir: `test/fixtures/models/${name}`, cacheDir, precision: 'int8' });
    const pool = new KvPool(kvShape(model.config, 'int8', model.biased), 4096);
    const runner = await OnnxRunner.create(model, pool, { threads: 1 });
    runner.separatesShort = true;
    const random = seededRandom(5);
    let slot = 0;
    const prompts = [SHORT_ROWS + 300, 200, SHORT_ROWS + 77, SHORT_ROWS - 500].map((length, i) => {
      const slots = Int32Array.from({ length }, () => slot++);
      return {
        ids: Array.from({ length }, () => below(random, model.config.vocabSize)),
        slots,
        chunk: [150, 60, 97, 33][i]!,
      };
    });
    type Prompt = (typeof prompts)[number];
    const part = ({ ids, slots }: Prompt, at: number, count: number): BatchSpan => ({
      tokenIds: ids.slice(at, at + count),
      startIndex: at,
      contextSlots: slots.subarray(0, at),
      newSlots: slots.subarray(at, at + count),
      lane: 'prefill',
      prefillEnd: ids.length,
      numLogits: at + count >= ids.length ? 1 : 0,
    });
    try {
      const alone: Float32Array[] = [];
      for (const prompt of prompts) {
        runner.releaseScratch();
        alone.push((await runner.run([part(prompt, 0, prompt.ids.length)])).slice());
      }
      runner.releaseScratch();
      const byTurns: Float32Array[] = [];
      const at = prompts.map(() => 0);
      while (at.some((done, i) => done < prompts[i]!.ids.length)) {
        for (const [i, prompt] of prompts.entries()) {
          if (at[i]! >= prompt.ids.length) continue;
          const logits = await runner.run([part(prompt, at[i]!, prompt.chunk)]);
          at[i]! += prompt.chunk;
          if (at[i]! >= prompt.ids.length) byTurns[i] = logits.slice();
        }
      }
      expect(byTurns).toEqual(alone);
      expect(runner.scratches.every(({ capacity }) => capacity > 0)).toBe(true);
      expect(runner.scratches[0]!.capacity).toBeLessThanOrEqual(SHORT_ROWS);
    } finally {
      await runner.dispose();
    }
  },
);
