/**
 * The command `kvasir eval`: measures what reduced precision costs on a text. Compares weights and KV rows with
 * float32, and codecs of the KV store with int8 rows. Does not measure answers (see test/bench/eval).
 */
import { FORMATS } from '../kv/approx/codecs/registry.ts';
import { kvBytesPerToken } from '../kv/kvRows.ts';
import { KvPool } from '../kv/pool.ts';
import { codecFor, measureCodec } from '../model/calibrate/codecQuality.ts';
import {
  addDivergence,
  addPosition,
  type Divergence,
  logProbabilities,
  noDivergence,
} from '../model/calibrate/measurement.ts';
import { openRunner } from '../model/calibrate/threadChoice.ts';
import { importModel } from '../model/import/importModel.ts';
import { type ImportedModel, kvShape } from '../model/load/importedModel.ts';
import { RopeTable } from '../model/runtime/rope.ts';
import type { Runner } from '../model/batch.ts';
import { RequestError } from '../protocol/errors.ts';
import type { LoadOptions } from '../protocol/messages.ts';
import type { KvPrecision, Precision } from '../protocol/tasks.ts';
import { Tokenizer } from '../text/tokenizer/tokenizer.ts';
import { MAX_INPUT_BYTES, readTextFile } from './cliFiles.ts';
import { type CommandLine, loadOptionsOf, required, text } from './options.ts';
import { UsageError } from './usageError.ts';
import { log, paced, printJson, table } from './output.ts';

/** Tokens per forward pass. The logits of one chunk are in memory for all variants at once. */
const CHUNK_TOKENS = 32;
/** The text is scored in stretches, each from an empty context. Longer stretches only take more time. */
const MAX_STRETCH_TOKENS = 1024;
/** With fewer predicted tokens the figures are not exact. With 1,000 a top-1 share of 96% is exact to 1.2 points. */
const MIN_TOKENS = 1000;

/** Precision of weights and KV rows. */
interface Variant {
  kv: string;
  weights: Precision;
  rows: KvPrecision;
}

interface Score extends Divergence {
  nll: number;
}

const REFERENCE: Variant = { kv: 'float32', weights: 'float32', rows: 'float32' };
/** With float32 weights, so that the row shows the cost of int8 KV rows alone. */
const INT8_ROWS: Variant = { kv: 'int8', weights: 'float32', rows: 'int8' };
/** The precisions of KV rows that the engine uses, by precision of the weights. */
const SHIPPED: readonly Variant[] = [
  { kv: 'w8a8+int8', weights: 'int8', rows: 'int8' },
  { kv: 'w4a8+int8', weights: 'int4', rows: 'int8' },
];
const CODECS: readonly string[] = FORMATS.map(({ name }) => name).filter((name) => name !== 'int8');
const ALL = 'all';

export async function evaluate(line: CommandLine): Promise<number> {
  const { precisions, codecs } = wantedOf(line);
  const file = required(line, 'text');
  const { kv: _, ...options } = loadOptionsOf({ ...line, values: { ...line.values, kv: undefined } });
  const source = await readTextFile(file, MAX_INPUT_BYTES, true);
  const tokenizer = await Tokenizer.load(options.modelDir);
  const ids = tokenizer.encode(source.replaceAll('\r\n', '\n'));
  if (ids.length < 2) throw new RequestError('badRequest', `${file}: too short to score`);
  if (precisions) await evaluatePrecisions(ids, precisions, options, line.json);
  if (codecs.length) await evaluateCodecs(ids, codecs, (text) => tokenizer.encode(text), options, line.json);
  return 0;
}

/** The precisions and codecs of `--kv`. Precisions are null if only codecs are named. */
function wantedOf(line: CommandLine): { precisions: readonly Variant[] | null; codecs: readonly string[] } {
  const wanted = (text(line, 'kv') ?? 'int8').split(',').map((name) => name.trim());
  const known = ['float32', 'int8', ...CODECS, ALL];
  const unknown = wanted.filter((name) => !known.includes(name));
  if (unknown.length) throw new UsageError(`eval: unknown codec ${unknown.join(', ')}; known are ${known.join(', ')}`);
  const codecs = wanted.includes(ALL) ? CODECS : CODECS.filter((name) => wanted.includes(name));
  const withInt8 = wanted.includes('int8');
  if (!withInt8 && !wanted.includes('float32')) return { precisions: null, codecs };
  return { precisions: [REFERENCE, ...(withInt8 ? [INT8_ROWS] : []), ...SHIPPED], codecs };
}

// --- precisions of weights and rows ----------------------------------------------

async function evaluatePrecisions(
  ids: number[],
  variants: readonly Variant[],
  options: LoadOptions,
  json: boolean,
): Promise<void> {
  const models: Partial<Record<Precision, ImportedModel>> = {};
  for (const { weights: precision } of [REFERENCE, ...SHIPPED])
    models[precision] = await importModel({ modelDir: options.modelDir, cacheDir: options.cacheDir, precision });
  const config = models.float32!.config;
  const stretch = Math.min(MAX_STRETCH_TOKENS, config.contextTokens, options.contextTokens ?? Number.POSITIVE_INFINITY);
  const scores = variants.map((): Score => ({ nll: 0, ...noDivergence() }));
  const runners: Runner[] = [];
  const progress = paced(log);
  try {
    for (const { weights, rows } of variants)
      runners.push(
        await openRunner(models[weights]!, new KvPool(kvShape(config, rows), stretch), { threads: options.threads }),
      );
    for (let start = 0; start + 1 < ids.length; start += stretch)
      await scoreStretch(runners, scores, ids.slice(start, start + stretch + 1), (numFed) =>
        progress(`scored ${start + numFed} of ${ids.length} tokens`),
      );
  } finally {
    for (const runner of runners) await runner.dispose();
  }
  const float16Bytes = float16BytesOf(config);
  const results = variants.map(({ kv, weights, rows }, i) => {
    const bytes = kvBytesPerToken(kvShape(config, rows));
    const nll = scores[i]!.nll / scores[i]!.numTokens;
    return {
      kv,
      weights,
      nll,
      ppl: Math.exp(nll),
      ...shares(scores[i]!),
      kvBytesPerToken: bytes,
      compression: float16Bytes / bytes,
    };
  });
  if (json) {
    for (const row of results) printJson(row);
    return;
  }
  const rows = results.map((r) => [r.kv, r.weights, r.nll.toFixed(4), r.ppl.toFixed(3), ...cells(r)]);
  process.stdout.write(`${table([['kv', 'weights', 'nll', 'ppl', ...HEAD], ...rows])}\n`);
  log(
    'KL mean and KL max: KL divergence from the first row, in nats per token. ' +
      'top-1: how often the most probable token is the same.',
  );
  noteTooFew(results[0]!.numTokens);
}

/** Feeds the same tokens to all variants, chunk by chunk. Does not feed the last of `ids`, which is only predicted. */
async function scoreStretch(
  runners: readonly Runner[],
  scores: readonly Score[],
  ids: readonly number[],
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

// --- codecs of the KV store --------------------------------------------------------

/** Compares the next tokens over compressed contexts with those over int8 rows, with int8 weights. */
async function evaluateCodecs(
  ids: readonly number[],
  names: readonly string[],
  encode: (text: string) => number[],
  options: LoadOptions,
  json: boolean,
): Promise<void> {
  const model = await importModel({ modelDir: options.modelDir, cacheDir: options.cacheDir, precision: 'int8' });
  const { config } = model;
  const contextTokens = Math.min(config.contextTokens, options.contextTokens ?? Number.POSITIVE_INFINITY);
  const stretch = Math.min(MAX_STRETCH_TOKENS, contextTokens);
  const runner = await openRunner(model, new KvPool(kvShape(config, 'int8', model.biased), 0), {
    threads: options.threads,
  });
  const progress = paced(log);
  const results: (Shares & { kv: string; kvBytesPerToken: number; compression: number })[] = [];
  try {
    const rope = RopeTable.of(config);
    for (const name of names) {
      const codec = await codecFor(name, { model, runner, rope, encode, contextTokens });
      const sum = noDivergence();
      for (let start = 0; start < ids.length; start += stretch) {
        progress(`${name}: ${start} of ${ids.length} tokens`);
        addDivergence(sum, await measureCodec(runner, ids.slice(start, start + stretch), codec, stretch, () => {}));
      }
      if (sum.numTokens === 0)
        throw new RequestError('badRequest', 'eval: the text is too short to measure a codec; take a longer one');
      const bytes = codec.bytesPerToken(codec.format.blockTokens);
      results.push({
        kv: name,
        ...shares(sum),
        kvBytesPerToken: bytes,
        compression: float16BytesOf(config) / bytes,
      });
    }
  } finally {
    await runner.dispose();
  }
  if (json) {
    for (const row of results) printJson(row);
    return;
  }
  process.stdout.write(`${table([['codec', ...HEAD], ...results.map((r) => [r.kv, ...cells(r)])])}\n`);
  log('KL and top-1 are against int8 rows, for the tokens that follow a compressed context.');
  noteTooFew(results[0]!.numTokens);
}

// --- both ------------------------------------------------------------------------------

const HEAD = ['KL mean', 'KL max', 'top-1', 'bytes/token', 'vs float16'];

interface Shares {
  kldMean: number;
  kldMax: number;
  top1: number;
  numTokens: number;
}

function shares({ klSum, klMax, agreed, numTokens }: Divergence): Shares {
  return { kldMean: klSum / numTokens, kldMax: klMax, top1: agreed / numTokens, numTokens };
}

function cells(r: Shares & { kvBytesPerToken: number; compression: number }): string[] {
  return [
    r.kldMean.toExponential(2),
    r.kldMax.toExponential(2),
    `${(100 * r.top1).toFixed(2)}%`,
    r.kvBytesPerToken.toFixed(0),
    `${r.compression.toFixed(2)}x`,
  ];
}

/** Bytes of K and V per token in float16, which compression is compared with. */
function float16BytesOf({ numLayers, kvHeads, headSize }: ImportedModel['config']): number {
  return numLayers * kvHeads * headSize * 2 * 2;
}

function noteTooFew(numTokens: number): void {
  if (numTokens < MIN_TOKENS)
    log(
      `note: the figures rest on ${numTokens} predicted ${numTokens === 1 ? 'token' : 'tokens'}; ` +
        `take a longer text, for ${MIN_TOKENS} or more`,
    );
}
