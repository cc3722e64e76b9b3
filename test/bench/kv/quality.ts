/**
 * What a codec costs: all of a context but its recent tokens is encoded and decoded, then the next tokens are fed over it and
 * over the rows as they were. Compared are the rows, what attention makes of them, and the distributions of the next tokens.
 */
import { type CodecName, FORMATS } from '../../../engine/cache/codecs/registry.ts';
import type { KvRows } from '../../../engine/cache/kvRows.ts';
import { type RowErrors, rowErrors } from './attentionError.ts';
import { queriesOf } from './queries.ts';
import { type KvSubject, throughCodec } from './subject.ts';

export interface QualityOptions {
  /** Encoded tokens of each text; then come recent ones, which keep their rows, then those that are compared. */
  coded: number;
  recent: number;
  scored: number;
  /** Tokens of a run, as the store's blocks. */
  runTokens: number;
  /** Texts of which attention is compared, too: the queries take seconds each. */
  attentionTexts: number;
}

interface CodecQuality {
  codec: CodecName;
  errors: RowErrors;
  /** Nats, against the rows as they were. */
  kldMean: number;
  kldMax: number;
  /** Share of positions with the same best token. */
  top1: number;
  /** Change of the mean negative log-likelihood of the text, nats. */
  nll: number;
  /** Of the codec in these runs, with what it keeps exactly. */
  bytesPerToken: number;
}

export interface QualityResult extends QualityOptions {
  model: string;
  numTexts: number;
  /** Of the text over the rows as they were. */
  nll: number;
  codecs: CodecQuality[];
}

interface Sums {
  kld: number;
  kldMax: number;
  agreed: number;
  nll: number;
  bytes: number;
  errors: RowErrors[];
}

function logSoftmax(logits: Float32Array, row: number, width: number): Float64Array {
  const out = Float64Array.from(logits.subarray(row * width, (row + 1) * width));
  let max = Number.NEGATIVE_INFINITY;
  for (const v of out) if (v > max) max = v;
  let sum = 0;
  for (const v of out) sum += Math.exp(v - max);
  const norm = max + Math.log(sum);
  for (let i = 0; i < out.length; i++) out[i]! -= norm;
  return out;
}

function argmax(row: Float64Array): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i]! > row[best]!) best = i;
  return best;
}

function joined(subject: KvSubject, parts: readonly KvRows[]): KvRows {
  const n = parts.reduce((sum, { numTokens }) => sum + numTokens, 0);
  const { window } = subject.runner;
  // Through the window, which knows how rows lie.
  const slots = Int32Array.from({ length: n }, (_, i) => i);
  const kept = window.read(slots);
  let at = 0;
  for (const part of parts) {
    subject.write(at, part);
    at += part.numTokens;
  }
  const all = window.read(slots);
  subject.write(0, kept);
  return all;
}

/** @param texts each of coded + recent + scored + 1 tokens. */
export async function measureQuality(subject: KvSubject, texts: readonly (readonly number[])[], options: QualityOptions, onProgress: (line: string) => void): Promise<QualityResult> {
  const { coded, recent, scored, runTokens, attentionTexts } = options;
  const { vocabSize } = subject.runner;
  const context = coded + recent;
  const sums = FORMATS.map((): Sums => ({ kld: 0, kldMax: 0, agreed: 0, nll: 0, bytes: 0, errors: [] }));
  let referenceNll = 0;
  for (const [i, text] of texts.entries()) {
    const tokenIds = text.slice(0, context + scored);
    const next = text.slice(context + 1);
    await subject.compute(tokenIds.slice(0, context));
    const rows = subject.read(0, context);
    const reference: Float64Array[] = [];
    const logits = await subject.logits(tokenIds, context);
    for (let r = 0; r < scored; r++) reference.push(logSoftmax(logits, r, vocabSize));
    for (let r = 0; r < scored; r++) referenceNll -= reference[r]![next[r]!]!;
    const all = subject.read(0, context + scored);
    const queries = i < attentionTexts ? await queriesOf(subject.modelDir, subject.model.config, subject.rope, tokenIds) : [];
    for (const [f, { name }] of FORMATS.entries()) {
      const sum = sums[f]!;
      subject.write(0, all);
      const { rows: parts, bytes } = throughCodec(subject, name, coded, runTokens, context);
      sum.bytes += bytes;
      if (queries.length) {
        const after = joined(subject, [...parts, subject.read(coded, context + scored)]);
        sum.errors.push(rowErrors(subject, all, after, coded, queries, context));
      }
      subject.write(0, rows);
      let at = 0;
      for (const part of parts) {
        subject.write(at, part);
        at += part.numTokens;
      }
      const got = await subject.logits(tokenIds, context);
      for (let r = 0; r < scored; r++) {
        const p = reference[r]!;
        const q = logSoftmax(got, r, vocabSize);
        let kld = 0;
        for (let v = 0; v < vocabSize; v++) kld += Math.exp(p[v]!) * (p[v]! - q[v]!);
        sum.kld += kld;
        sum.kldMax = Math.max(sum.kldMax, kld);
        sum.agreed += Number(argmax(p) === argmax(q));
        sum.nll -= q[next[r]!]!;
      }
    }
    onProgress(`${subject.name}: text ${i + 1} of ${texts.length}`);
  }
  const positions = texts.length * scored;
  const mean = (errors: readonly RowErrors[], key: keyof RowErrors): number => errors.reduce((sum, error) => sum + error[key], 0) / errors.length;
  return {
    ...options,
    model: subject.name,
    numTexts: texts.length,
    nll: referenceNll / positions,
    codecs: FORMATS.map(({ name }, f) => {
      const { kld, kldMax, agreed, nll, bytes, errors } = sums[f]!;
      return {
        codec: name,
        errors: { keys: mean(errors, 'keys'), values: mean(errors, 'values'), attention: mean(errors, 'attention') },
        kldMean: kld / positions,
        kldMax,
        top1: agreed / positions,
        nll: (nll - referenceNll) / positions,
        bytesPerToken: bytes / (texts.length * coded),
      };
    }),
  };
}
