/**
 * Measures what the pool's int8 rows cost against float32 rows, both with float32 weights. All other measurements
 * compare with int8 rows.
 */
import type { Lane } from '../../../engine/model/batch.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import {
  addPosition,
  type Divergence,
  logProbabilities,
  noDivergence,
  forEachLogits,
} from '../../../engine/model/calibrate/measurement.ts';
import { importModel } from '../../../engine/model/import/importModel.ts';
import { kvShape } from '../../../engine/model/load/importedModel.ts';
import type { Runner } from '../../../engine/model/batch.ts';
import { openRunner } from '../../../engine/model/calibrate/threadChoice.ts';
import type { KvPrecision } from '../../../engine/protocol/tasks.ts';

export interface WindowCost {
  model: string;
  /** Whole texts, all tokens computed like prompts: queries and probabilities in float32. */
  read: Divergence;
  /** Whole texts, all tokens computed like answers: queries and probabilities also in integers. */
  written: Divergence;
}

/** @param texts start with an empty context each. */
export async function measurePool(
  name: string,
  modelDir: string,
  cacheDir: string,
  threads: number,
  texts: readonly (readonly number[])[],
): Promise<WindowCost> {
  const model = await importModel({ modelDir, cacheDir, precision: 'float32' });
  const open = (kv: KvPrecision): Promise<Runner> =>
    openRunner(model, new KvPool(kvShape(model.config, kv, model.biased), 0), { threads });
  const exact = await open('float32');
  const coded = await open('int8');
  const cost: Record<Lane, Divergence> = { prefill: noDivergence(), paged: noDivergence() };
  try {
    for (const text of texts) {
      const reference: Float64Array[] = [];
      await forEachLogits(exact, text, (_, logits) => void reference.push(logProbabilities(logits)));
      for (const lane of ['prefill', 'paged'] as const)
        await forEachLogits(
          coded,
          text,
          (position, logits) => addPosition(cost[lane], reference[position]!, logProbabilities(logits)),
          undefined,
          lane,
        );
    }
  } finally {
    await exact.dispose();
    await coded.dispose();
  }
  return { model: name, read: cost.prefill, written: cost.paged };
}
