/**
 * `kvasir eval`: what quantisation costs on a text, against float32: perplexity, KL divergence, top-1 agreement. The window's
 * precision is measured over float32 weights, so that a row is its own cost; the last rows are what ships. What happens to contexts
 * that nobody uses has a table of its own (evaluateTreated).
 */
import { kvBytesPerToken } from '../kv/kvRows.ts';
import { KvPool } from '../kv/pool.ts';
import { addPosition, type Divergence, logProbabilities, noDivergence } from '../model/calibrate/divergence.ts';
import { RequestError } from '../protocol/errors.ts';
import { importModel } from '../model/import/importModel.ts';
import { type ImportedModel, kvShape } from '../model/load/importedModel.ts';
import type { OnnxRunner } from '../model/runtime/runner.ts';
import { openRunner } from '../model/calibrate/threadChoice.ts';
import type { KvPrecision, Precision } from '../protocol/tasks.ts';
import { Tokenizer } from '../text/tokenizer/tokenizer.ts';
import { evaluateShifted } from './evaluateShifted.ts';
import { evaluateTreated } from './evaluateTreated.ts';
import { TREATMENTS } from './evaluateTreatments.ts';
import { tooFewNote } from './evaluateReport.ts';
import { MAX_INPUT_BYTES, readTextFile } from './cliFiles.ts';
import { type CommandLine, loadOptionsOf, required, text, UsageError } from './options.ts';
import { log, paced, printJson, table } from './output.ts';

/** Tokens per forward pass: logits of a chunk are held for all variants at once. */
const CHUNK_TOKENS = 32;
/** Each stretch of text is scored from an empty context; longer ones only cost time. */
const STRETCH_TOKENS = 1024;

interface Variant {
  kv: string;
  weights: Precision;
  window: KvPrecision;
}

interface Score extends Divergence {
  nll: number;
}

/** Of the window. */
const WINDOWS: Record<string, Variant> = {
  float32: { kv: 'float32', weights: 'float32', window: 'float32' },
  int8: { kv: 'int8', weights: 'float32', window: 'int8' },
};
/** Of contexts out of use; int8 is what they are without one. */
const TREATED: readonly string[] = TREATMENTS.map(({ name }) => name).filter((name) => !Object.hasOwn(WINDOWS, name));
const ALL = 'all';
/** What runs, by the precision of the weights. */
const SHIPPED: readonly Variant[] = [
  { kv: 'w8a8+int8', weights: 'int8', window: 'int8' },
  { kv: 'w4a8+int8', weights: 'int4', window: 'int8' },
];

export async function evaluate(line: CommandLine): Promise<number> {
  const wanted = (text(line, 'kv') ?? 'int8').split(',').map((name) => name.trim());
  const unknown = wanted.filter((name) => !Object.hasOwn(WINDOWS, name) && !TREATED.includes(name) && name !== ALL);
  if (unknown.length)
    throw new UsageError(
      `eval: unknown codec ${unknown.join(', ')}; known are ${[...Object.keys(WINDOWS), ...TREATED, ALL].join(', ')}`,
    );
  const treated = wanted.includes(ALL) ? TREATED : wanted.filter((name) => TREATED.includes(name));
  const file = required(line, 'text');
  const { kv: _, ...options } = loadOptionsOf({ ...line, values: { ...line.values, kv: undefined } });
  const source = await readTextFile(file, MAX_INPUT_BYTES, true);
  const tokenizer = await Tokenizer.load(options.modelDir);
  const ids = tokenizer.encode(source.replaceAll('\r\n', '\n'));
  if (ids.length < 2) throw new RequestError('badRequest', `${file}: too short to score`);
  if (line.values.shifted === true) {
    await evaluateShifted(source.replaceAll('\r\n', '\n'), tokenizer, options, line.json);
    return 0;
  }
  if (treated.length > 0) {
    await evaluateTreated(treated, { path: file, text: source }, options, line.json);
    if (!wanted.some((name) => Object.hasOwn(WINDOWS, name))) return 0;
  }

  const models: Partial<Record<Precision, ImportedModel>> = {};
  for (const { weights: precision } of [WINDOWS.float32!, ...SHIPPED])
    models[precision] = await importModel({ modelDir: options.modelDir, cacheDir: options.cacheDir, precision });
  const config = models.float32!.config;
  const stretch = Math.min(STRETCH_TOKENS, config.contextTokens, options.contextTokens ?? Number.POSITIVE_INFINITY);
  const variants = [
    WINDOWS.float32!,
    ...wanted.filter((name) => name !== 'float32' && Object.hasOwn(WINDOWS, name)).map((name) => WINDOWS[name]!),
    ...SHIPPED,
  ];
  const scores = variants.map((): Score => ({ nll: 0, ...noDivergence() }));
  const runners: OnnxRunner[] = [];
  const progress = paced(log);
  const tell = (numDone: number): void => progress(`scored ${numDone} of ${ids.length} tokens`);
  try {
    for (const variant of variants)
      runners.push(
        await openRunner(models[variant.weights]!, new KvPool(kvShape(config, variant.window), stretch), {
          threads: options.threads,
        }),
      );
    for (let start = 0; start + 1 < ids.length; start += stretch) {
      await scoreStretch(runners, scores, ids.slice(start, start + stretch + 1), (numFed) => tell(start + numFed));
    }
  } finally {
    for (const runner of runners) await runner.dispose();
  }

  // float16, 2 bytes a value, is what compression is quoted against.
  const float16Bytes = config.numLayers * config.kvHeads * config.headSize * 2 * 2;
  const results = variants.map((variant, i) => {
    const score = scores[i]!;
    const nll = score.nll / score.numTokens;
    const perToken = kvBytesPerToken(kvShape(config, variant.window));
    return {
      kv: variant.kv,
      weights: variant.weights,
      nll,
      ppl: Math.exp(nll),
      kldMean: score.klSum / score.numTokens,
      kldMax: score.klMax,
      top1: score.agreed / score.numTokens,
      kvBytesPerToken: perToken,
      compression: float16Bytes / perToken,
      numTokens: score.numTokens,
    };
  });
  if (line.json) for (const row of results) printJson(row);
  else {
    const rows = results.map((r) => [
      r.kv,
      r.weights,
      r.nll.toFixed(4),
      r.ppl.toFixed(3),
      r.kldMean.toExponential(2),
      r.kldMax.toExponential(2),
      `${(100 * r.top1).toFixed(2)}%`,
      String(r.kvBytesPerToken),
      `${r.compression.toFixed(2)}x`,
    ]);
    process.stdout.write(
      `${table([['kv', 'weights', 'nll', 'ppl', 'KL mean', 'KL max', 'top-1', 'bytes/token', 'vs float16'], ...rows])}\n`,
    );
    log(
      'KL and top-1 are against the first row: how far the next token is from its (KL divergence in nats), and how often the likeliest one is the same.',
    );
    const note = tooFewNote(results[0]!.numTokens);
    if (note !== undefined) log(note);
  }
  return 0;
}

/** Feeds the same tokens to all variants, chunk by chunk; ids has one token more than is fed, the last one's successor. */
async function scoreStretch(
  runners: OnnxRunner[],
  scores: Score[],
  ids: number[],
  onFed: (numFed: number) => void,
): Promise<void> {
  const numFed = ids.length - 1;
  const slots = Int32Array.from({ length: numFed }, (_, i) => i);
  for (let start = 0; start < numFed; start += CHUNK_TOKENS) {
    onFed(start);
    const tokenIds = ids.slice(start, Math.min(start + CHUNK_TOKENS, numFed));
    const span = {
      tokenIds,
      startIndex: start,
      contextSlots: slots.subarray(0, start),
      newSlots: slots.subarray(start, start + tokenIds.length),
      numLogits: tokenIds.length,
    };
    let reference: Float64Array[] = [];
    for (const [v, runner] of runners.entries()) {
      const logits = await runner.run([span]);
      const rows = tokenIds.map((_, i) =>
        logProbabilities(logits.subarray(i * runner.vocabSize, (i + 1) * runner.vocabSize)),
      );
      if (v === 0) reference = rows;
      for (const [i, row] of rows.entries()) {
        addPosition(scores[v]!, reference[i]!, row);
        scores[v]!.nll -= row[ids[start + i + 1]!]!;
      }
    }
  }
}
