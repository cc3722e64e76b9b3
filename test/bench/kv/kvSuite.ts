/**
 * Suite `kv`: what the codecs of the KV store cost in bytes, time and quality. Speed on the 0.5B shape and the built-in model,
 * quality on the built-in model over this repository's own sources, which it was not trained on, and on a random model with
 * large key biases.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Tokenizer } from '../../../engine/text/tokenizer.ts';
import { below, seededRandom } from '../../engine/workload.ts';
import type { ShapeName } from '../shapes.ts';
import { table, withSpread } from '../spread.ts';
import { shapeFolder } from '../writeShape.ts';
import { measureQuality, type QualityOptions, type QualityResult } from './quality.ts';
import { measureSpeed, type SpeedResult } from './speed.ts';
import { KvSubject } from './subject.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const STARTER = path.join(ROOT, 'model');
const BIASED = path.join(ROOT, 'test/fixtures/models/qwen2-untied-bf16');
const SPEED_TOKENS = 512;
/** As the store's blocks, and as long as any format shares anything. */
const RUN_TOKENS = [32, 128];
const PARTS = ['speed', 'quality'] as const;
const STARTER_QUALITY: QualityOptions = { coded: 768, recent: 128, scored: 127, runTokens: 128, attentionTexts: 2 };
const BIASED_QUALITY: QualityOptions = { coded: 256, recent: 128, scored: 100, runTokens: 128, attentionTexts: 2 };

export interface KvArguments {
  /** Comma-separated names of PARTS. */
  only?: string;
  rounds?: string;
  /** Texts of the quality. */
  requests?: string;
  threads?: string;
  shape?: string;
}

export interface KvBench {
  speed: SpeedResult[];
  quality: QualityResult[];
}

export async function kvSuite(given: KvArguments): Promise<{ result: KvBench; report: string }> {
  const only = given.only?.split(',') ?? PARTS;
  for (const part of only) if (!PARTS.includes(part as (typeof PARTS)[number])) throw new Error(`--only ${part}: it must be one of ${PARTS.join(', ')}`);
  const rounds = count('rounds', given.rounds, 5);
  const numTexts = count('requests', given.requests, 16);
  const threads = given.threads === undefined ? 0 : count('threads', given.threads, 0);
  const cache = path.resolve('.cache/bench');
  const imported = path.join(cache, 'imported');
  const log = (line: string): void => console.error(line);
  const result: KvBench = { speed: [], quality: [] };
  const over = async (name: string, dir: string, work: (subject: KvSubject) => Promise<void>): Promise<void> => {
    log(`model ${name}`);
    const subject = await KvSubject.open(name, dir, imported, threads);
    try {
      await work(subject);
    } finally {
      await subject.dispose();
    }
  };
  if (only.includes('speed')) {
    const shape = (given.shape ?? 'qwen2.5-0.5b') as ShapeName;
    for (const [name, dir] of [[shape, await shapeFolder(shape, cache)], ['starter', STARTER]] as const) {
      await over(name, dir, async (subject) => {
        for (const runTokens of RUN_TOKENS) result.speed.push(await measureSpeed(subject, SPEED_TOKENS, runTokens, rounds));
      });
    }
  }
  if (only.includes('quality')) {
    await over('starter', STARTER, async (subject) => {
      const { coded, recent, scored } = STARTER_QUALITY;
      for (const runTokens of RUN_TOKENS) result.quality.push(await measureQuality(subject, await sourceTexts(coded + recent + scored + 1, numTexts), { ...STARTER_QUALITY, runTokens, attentionTexts: runTokens === 128 ? 2 : 0 }, log));
    });
    await over('random weights, large key biases', BIASED, async (subject) => {
      const { coded, recent, scored } = BIASED_QUALITY;
      const random = seededRandom(4);
      const texts = Array.from({ length: numTexts }, () => Array.from({ length: coded + recent + scored + 1 }, () => below(random, subject.runner.vocabSize)));
      result.quality.push(await measureQuality(subject, texts, BIASED_QUALITY, log));
    });
  }
  return { result, report: kvReport(result) };
}

function count(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${name} ${text}: it must be a whole number above 0`);
  return Number(text);
}

/** Beginnings of this repository's longest files. */
async function sourceTexts(numTokens: number, numTexts: number): Promise<number[][]> {
  const tokenizer = await Tokenizer.load(STARTER);
  const files = globSync('{engine,src,test}/**/*.ts', { cwd: ROOT }).sort();
  const texts = files.map((file) => tokenizer.encode(readFileSync(path.join(ROOT, file), 'utf8')).slice(0, numTokens)).filter((ids) => ids.length === numTokens);
  const step = Math.max(1, Math.floor(texts.length / numTexts));
  return texts.filter((_, i) => i % step === 0).slice(0, numTexts);
}

const percent = (share: number, digits = 2): string => `${(100 * share).toFixed(digits)}%`;

export function kvReport({ speed, quality }: KvBench): string {
  const parts: string[] = [];
  for (const { model, numTokens, runTokens, recompute, codecs } of speed) {
    parts.push(
      `## Codecs, ${model}: ${numTokens} tokens in runs of ${runTokens}`,
      `Computing the same tokens from an empty context: ${withSpread(recompute)} tokens/s. MB are those of the window's rows; median (least–most).`,
      table(
        ['codec', 'bytes per token', 'against float16', 'encode, MB/s', 'decode, MB/s', 'both, of computing'],
        codecs.map((c) => [c.codec, c.bytesPerToken.toFixed(1), `${c.compression.toFixed(2)}x`, withSpread(c.encode), withSpread(c.decode), percent(c.ofRecompute.median)]),
      ),
    );
  }
  for (const { model, numTexts, coded, recent, scored, runTokens, nll, codecs } of quality) {
    parts.push(
      `## Cost of the codecs, ${model}: ${numTexts} texts, ${coded} tokens coded in runs of ${runTokens}, ${recent} recent ones not, the next ${scored} compared`,
      `Against the int8 rows as they were, whose perplexity is ${Math.exp(nll).toFixed(3)}. Errors are relative, root mean square.`,
      table(
        ['codec', 'bytes per token', 'K', 'V', 'attention', 'KL mean', 'KL max', 'same best token', 'perplexity'],
        codecs.map((c) => [c.codec, c.bytesPerToken.toFixed(1), ...(['keys', 'values', 'attention'] as const).map((key) => (Number.isNaN(c.errors[key]) ? '–' : percent(c.errors[key]))), c.kldMean.toExponential(2), c.kldMax.toExponential(2), percent(c.top1), `${c.nll < 0 ? '' : '+'}${percent(Math.expm1(c.nll))}`]),
      ),
    );
  }
  return parts.join('\n\n');
}
