/**
 * Suite `kv`: measures what compressed contexts cost. Parts: `speed` times the codecs on the 0.5B shape and the
 * built-in model; `rows` gives errors of rows and attention; `quality` gives what a model answers; `window` gives the
 * cost of the pool's own int8 rows, which the other parts compare with.
 */
import path from 'node:path';
import { KvSubject } from '../eval/subject.ts';
import { percent } from '../eval/report.ts';
import { Tokenizer } from '../../../engine/text/tokenizer/tokenizer.ts';
import { below, seededRandom } from '../../support/engine/workload.ts';
import type { ShapeName } from '../shapes.ts';
import { table, withSpread } from '../spread.ts';
import { shapeFolder } from '../writeShape.ts';
import { heldoutFiles } from './heldout.ts';
import { type QualityBench, qualityBench, STARTER_OPTIONS, windowBench } from './qualityBench.ts';
import { qualityCharts, qualityReport, pagedTable } from './qualityReport.ts';
import { measureRows, type RowsResult, rowsTable } from './rows.ts';
import { measureSpeed, type SpeedResult } from './speed.ts';
import type { WindowCost } from './windowCost.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const STARTER = path.join(ROOT, 'model');
const BIASED = path.join(ROOT, 'test/fixtures/models/qwen2-untied-bf16');
const SPEED_TOKENS = 512;
/** Tokens per run: the block length of the store, and the longest span over which a format shares data. */
const RUN_TOKENS = [32, 128];
const PARTS = ['speed', 'rows', 'quality', 'window'] as const;
/** Sizes of part `rows`. They are small because the queries of a text take seconds. */
const ROWS = { starter: { coded: 768, compared: 64, texts: 2 }, biased: { coded: 256, compared: 64, texts: 2 } };

export interface KvArguments {
  /** Comma-separated names of PARTS. */
  only?: string;
  rounds?: string;
  /** Number of texts in part `quality`. */
  requests?: string;
  threads?: string;
  shape?: string;
}

export interface KvBench {
  speed: SpeedResult[];
  rows?: RowsResult[];
  quality?: QualityBench;
  window?: WindowCost[];
}

export async function kvSuite(
  given: KvArguments,
): Promise<{ result: KvBench; report: string; charts: Record<string, string> }> {
  const only = given.only?.split(',') ?? PARTS;
  for (const part of only)
    if (!PARTS.includes(part as (typeof PARTS)[number]))
      throw new Error(`--only ${part}: it must be one of ${PARTS.join(', ')}`);
  const rounds = count('rounds', given.rounds, 5);
  const numTexts = count('requests', given.requests, STARTER_OPTIONS.numTexts);
  const threads = given.threads === undefined ? 0 : count('threads', given.threads, 0);
  const cache = path.resolve('.cache/bench');
  const imported = path.join(cache, 'imported');
  const shape = (given.shape ?? 'qwen2.5-0.5b') as ShapeName;
  const log = (line: string): void => console.error(line);
  const result: KvBench = { speed: [] };
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
    for (const [name, dir] of [
      [shape, await shapeFolder(shape, cache)],
      ['starter', STARTER],
    ] as const) {
      await over(name, dir, async (subject) => {
        for (const runTokens of RUN_TOKENS)
          result.speed.push(await measureSpeed(subject, SPEED_TOKENS, runTokens, rounds));
      });
    }
  }
  if (only.includes('rows')) {
    const rows: RowsResult[] = [];
    await over('starter', STARTER, async (subject) => {
      const { coded, compared, texts } = ROWS.starter;
      const tokenizer = await Tokenizer.load(STARTER);
      const long = heldoutFiles()
        .map(({ text }) => tokenizer.encode(text).slice(0, coded + compared))
        .filter((ids) => ids.length === coded + compared);
      rows.push(await measureRows(subject, long.slice(0, texts), coded));
    });
    await over('random weights, large key biases', BIASED, async (subject) => {
      const { coded, compared, texts } = ROWS.biased;
      const random = seededRandom(4);
      rows.push(
        await measureRows(
          subject,
          Array.from({ length: texts }, () =>
            Array.from({ length: coded + compared }, () => below(random, subject.runner.vocabSize)),
          ),
          coded,
        ),
      );
    });
    result.rows = rows;
  }
  const ofModels = { cache, shape, threads, starter: { ...STARTER_OPTIONS, numTexts }, log };
  if (only.includes('quality')) result.quality = await qualityBench(ofModels);
  if (only.includes('window')) result.window = await windowBench(ofModels);
  return { result, report: kvReport(result), charts: result.quality ? qualityCharts(result.quality) : {} };
}

function count(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${name} ${text}: it must be a whole number above 0`);
  return Number(text);
}

export function kvReport({ speed, rows = [], quality, window }: KvBench): string {
  const parts: string[] = [];
  for (const { model, numTokens, runTokens, recompute, codecs } of speed) {
    parts.push(
      `## Codecs, ${model}: ${numTokens} tokens in runs of ${runTokens}`,
      `Computing the same tokens from an empty context: ${withSpread(recompute)} tokens/s. MB are those of the window's rows; median (least–most).`,
      table(
        ['codec', 'bytes per token', 'against float16', 'encode, MB/s', 'decode, MB/s', 'both, of computing'],
        codecs.map((c) => [
          c.codec,
          c.bytesPerToken.toFixed(1),
          `${c.compression.toFixed(2)}x`,
          withSpread(c.encode),
          withSpread(c.decode),
          percent(c.ofRecompute.median, 2),
        ]),
      ),
    );
  }
  for (const of of rows)
    parts.push(
      `## Errors of the rows, ${of.model}: ${of.numTexts} texts, ${of.coded} tokens coded, attention of the next ${of.compared}`,
      'Relative, root mean square.',
      rowsTable(of),
    );
  // Old results that lack this part have an empty list.
  if (quality && 'starter' in quality) parts.push(qualityReport(quality));
  if (window) parts.push('## The window itself', pagedTable(window));
  return parts.join('\n\n');
}
