/** `kvasir eval --shifted`: what position-shifted reuse costs behind edits in the middle of a file, against exact rows. */
import type { Divergence } from '../model/calibrate/divergence.ts';
import { KvPool } from '../kv/pool.ts';
import { RequestError } from '../protocol/errors.ts';
import { importModel } from '../model/import/importModel.ts';
import { kvShape } from '../model/load/importedModel.ts';
import { openRunner } from '../model/calibrate/threadChoice.ts';
import { measureShift, MAX_SHIFT_DIVERGENCE } from '../model/calibrate/shiftQuality.ts';
import type { LoadOptions } from '../protocol/messages.ts';
import type { Tokenizer } from '../text/tokenizer/tokenizer.ts';
import { log, printJson, table } from './output.ts';

/** Where the text is edited, as shares of its lines. */
const PLACES = [0.15, 0.3, 0.45, 0.6];

export async function evaluateShifted(
  source: string,
  tokenizer: Tokenizer,
  options: LoadOptions,
  json: boolean,
): Promise<void> {
  const model = await importModel({ modelDir: options.modelDir, cacheDir: options.cacheDir, precision: 'int8' });
  const contextTokens = Math.min(model.config.contextTokens, options.contextTokens ?? Number.POSITIVE_INFINITY);
  const runner = await openRunner(model, new KvPool(kvShape(model.config, 'int8', model.biased), 0), {
    threads: options.threads,
  });
  try {
    const { shifted, rounding } = await measureShift(runner, (text) => tokenizer.encode(text), source, {
      contextTokens,
      places: PLACES,
      rounding: true,
    });
    if (shifted.numTokens === 0)
      throw new RequestError(
        'badRequest',
        'eval: the text is too short: behind an edit, so little of it is computed anew',
      );
    const rows = [result('shifted', shifted), result('exact, other lane', rounding)];
    if (json) for (const row of rows) printJson(row);
    else {
      process.stdout.write(
        `${table([['rows behind the edit', 'KL mean', 'KL max', 'top-1', 'tokens'], ...rows.map((r) => [r.rows, r.kldMean.toExponential(2), r.kldMax.toExponential(2), `${(100 * r.top1).toFixed(2)}%`, String(r.numTokens)])])}\n`,
      );
      log(`taken over where the mean is at most ${MAX_SHIFT_DIVERGENCE.toExponential(0)}, on a sample of its own`);
    }
  } finally {
    await runner.dispose();
  }
}

function result(
  rows: string,
  { klSum, klMax, agreed, numTokens }: Divergence,
): { rows: string; kldMean: number; kldMax: number; top1: number; numTokens: number } {
  return { rows, kldMean: klSum / numTokens, kldMax: klMax, top1: agreed / numTokens, numTokens };
}
