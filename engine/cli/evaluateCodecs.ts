/** `kvasir eval --kv CODEC,...`: what compressing a context in the store costs, against the rows as they were. */
import { codecNamed, type CodecName } from '../cache/codecs/registry.ts';
import { KvWindow } from '../cache/window.ts';
import { RequestError } from '../errors.ts';
import { type CodecMeasurement, measureCodecs } from '../model/codecQuality.ts';
import { importModel, kvShape } from '../model/importModel.ts';
import { RopeTable } from '../model/rope.ts';
import { OnnxRunner } from '../model/runner.ts';
import type { LoadOptions } from '../protocol.ts';
import { log, printJson, table } from './output.ts';

/** Each stretch of text is a context of its own. */
const STRETCH_TOKENS = 1024;

/** Over the weights that ship. */
export async function evaluateCodecs(names: readonly CodecName[], ids: readonly number[], options: LoadOptions, json: boolean): Promise<void> {
  const model = await importModel({ modelDir: options.modelDir, cacheDir: options.cacheDir, precision: 'int8' });
  const { config } = model;
  const contextTokens = Math.min(STRETCH_TOKENS, config.contextTokens, options.contextTokens ?? Number.POSITIVE_INFINITY);
  const shape = kvShape(config, 'int8');
  const rope = new RopeTable(config.rope, config.headSize);
  const codecs = names.map((name) => codecNamed(name, shape, rope));
  const runner = await OnnxRunner.create(model, new KvWindow(shape, 0), { threads: options.threads });
  const sums: CodecMeasurement[] = [];
  try {
    for (let start = 0; start < ids.length; start += contextTokens) {
      const measured = await measureCodecs(runner, ids.slice(start, start + contextTokens), codecs, { contextTokens });
      for (const [i, one] of measured.entries()) sums[i] = sums[i] ? added(sums[i], one) : one;
      log(`compressed ${Math.min(start + contextTokens, ids.length)} of ${ids.length} tokens`);
    }
  } finally {
    await runner.dispose();
  }
  if (!sums[0]?.numTokens) throw new RequestError('badRequest', 'eval: the text is too short: nothing of it is compressed before the tokens that are compared');
  const float16Bytes = config.numLayers * config.kvHeads * config.headSize * 2 * 2;
  const results = sums.map((sum, i) => {
    const perToken = codecs[i]!.bytesPerToken(codecs[i]!.format.blockTokens);
    return {
      codec: names[i]!, kldMean: sum.klSum / sum.numTokens, kldMax: sum.klMax, top1: sum.agreed / sum.numTokens, perplexity: Math.expm1(sum.nllSum / sum.numTokens),
      bytesPerToken: perToken, compression: float16Bytes / perToken, numTokens: sum.numTokens,
    };
  });
  if (json) for (const row of results) printJson(row);
  else {
    const rows = results.map((r) => [r.codec, r.kldMean.toExponential(2), r.kldMax.toExponential(2), `${(100 * r.top1).toFixed(2)}%`, `${r.perplexity < 0 ? '' : '+'}${(100 * r.perplexity).toFixed(2)}%`, r.bytesPerToken.toFixed(0), `${r.compression.toFixed(2)}x`, String(r.numTokens)]);
    process.stdout.write(`${table([['codec', 'KL mean', 'KL max', 'top-1', 'perplexity', 'bytes/token', 'vs float16', 'tokens'], ...rows])}\n`);
  }
}

function added(one: CodecMeasurement, other: CodecMeasurement): CodecMeasurement {
  return {
    klSum: one.klSum + other.klSum, klMax: Math.max(one.klMax, other.klMax), agreed: one.agreed + other.agreed, numTokens: one.numTokens + other.numTokens,
    nllSum: one.nllSum + other.nllSum, bytes: one.bytes + other.bytes, numCoded: one.numCoded + other.numCoded,
  };
}
