/**
 * Suite `heads`: measures what grouped heads and fewer KV heads save. Models with the built-in model's shape and random
 * weights differ only in their KV heads. Measures bytes of a token, decoding and prompts, in turns. Does not measure
 * the quality loss of fewer heads: only training shows it.
 */
import { existsSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { kvBytesPerToken } from '../../engine/kv/kvRows.ts';
import { kvShape } from '../../engine/model/load/importedModel.ts';
import { seededRandom } from '../support/engine/workload.ts';
import { writeRandomModel } from '../support/model/randomModel.ts';
import type { ReferenceConfig } from '../support/model/reference.ts';
import { type Case, engineCases, WORKLOAD, type Workload } from './engineCases.ts';
import { EngineUnderTest } from './engineUnderTest.ts';
import { type Figure, figure, short, table, withSpread } from './spread.ts';

const STARTER = path.resolve(import.meta.dirname, '../../model');
const CONTEXTS = [512, 2048];
const ROUNDS = 9;
const SEED = 1;

export interface HeadsResult {
  kvHeads: number;
  parameters: number;
  /** Bytes of a token in the window, in int8. */
  kvBytes: number;
  /** Bytes of a token at two bytes per value. */
  float16Bytes: number;
  /** Milliseconds to write a token, by context. */
  decode: { context: number; ms: Figure }[];
  /** Tokens per second of a whole prompt, by length. */
  prefill: { context: number; tokensPerSecond: Figure }[];
}

export interface HeadsBench {
  threads: number;
  queryHeads: number;
  models: HeadsResult[];
}

export interface HeadsOptions {
  threads?: number;
  rounds?: number;
  contexts?: readonly number[];
  cache?: string;
  onProgress?: (line: string) => void;
}

export async function headsBench({
  threads = 0,
  rounds = ROUNDS,
  contexts = CONTEXTS,
  cache = path.resolve('.cache/bench'),
  onProgress = () => {},
}: HeadsOptions = {}): Promise<HeadsBench> {
  const starter = JSON.parse(await readFile(path.join(STARTER, 'config.json'), 'utf8')) as ReferenceConfig;
  const workload: Workload = { ...WORKLOAD, contexts, prompts: contexts };
  const subjects: { bench: EngineUnderTest; cases: Case[]; samples: number[][] }[] = [];
  try {
    // One KV head for each query head; as many as the built-in model has; one for all query heads.
    for (const kvHeads of [starter.num_attention_heads, starter.num_key_value_heads, 1]) {
      // The larger limit leaves room for an answer after a prompt as long as the starter model's context.
      const modelDir = await headsFolder(
        { ...starter, num_key_value_heads: kvHeads, max_position_embeddings: 4096 },
        cache,
      );
      const bench = await EngineUnderTest.open({
        modelDir,
        cacheDir: path.join(cache, 'imported'),
        threads,
        seed: SEED,
      });
      const cases = engineCases(bench, workload).filter(({ group }) => group === 'decode' || group === 'whole');
      subjects.push({ bench, cases, samples: cases.map(() => []) });
    }
    const random = seededRandom(SEED);
    // The first round is a warm-up.
    for (let round = 0; round <= rounds; round++) {
      const turns = subjects
        .flatMap(({ cases, samples }) => cases.map((each, i) => ({ each, samples: samples[i]!, order: random() })))
        .sort((a, b) => a.order - b.order);
      for (const { each, samples } of turns) {
        const { ms, tokensPerSecond } = await each.measure();
        if (round > 0) samples.push((each.group === 'decode' ? ms : tokensPerSecond)!);
      }
      onProgress(`heads: round ${round} of ${rounds}`);
    }
    const models = subjects.map(({ bench: { model }, cases, samples }): HeadsResult => {
      const { numLayers, kvHeads, headSize } = model.config;
      const of = (group: Case['group']): Figure[] => samples.filter((_, i) => cases[i]!.group === group).map(figure);
      return {
        kvHeads,
        parameters: model.parameters,
        kvBytes: kvBytesPerToken(kvShape(model.config, 'int8', model.biased)),
        float16Bytes: numLayers * kvHeads * headSize * 2 * 2,
        decode: of('decode').map((ms, i) => ({ context: contexts[i]!, ms })),
        prefill: of('whole').map((tokensPerSecond, i) => ({ context: contexts[i]!, tokensPerSecond })),
      };
    });
    return { threads: subjects[0]!.bench.threads, queryHeads: starter.num_attention_heads, models };
  } finally {
    for (const { bench } of subjects) await bench.dispose();
  }
}

/** Writes a model folder. The folder exists completely or not at all. */
async function headsFolder(config: ReferenceConfig, cache: string): Promise<string> {
  const folder = path.join(
    cache,
    `starter-${config.num_hidden_layers}x${config.hidden_size}-kv${config.num_key_value_heads}-seed${SEED}`,
  );
  if (existsSync(folder)) return folder;
  const temporary = `${folder}.writing-${process.pid}`;
  try {
    writeRandomModel(temporary, { config, dtype: 'BF16', seed: SEED });
    await rename(temporary, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return folder;
}

export async function headsSuite({
  threads,
  rounds,
}: {
  threads?: string;
  rounds?: string;
}): Promise<{ result: HeadsBench; report: string }> {
  const result = await headsBench({
    threads: Number(threads ?? 0),
    rounds: Number(rounds ?? ROUNDS),
    onProgress: (line) => console.error(line),
  });
  return { result, report: headsReport(result) };
}

export function headsReport({ threads, queryHeads, models }: HeadsBench): string {
  const [first] = models;
  const head = [
    'KV heads',
    'parameters',
    'bytes a token',
    'at 16 bits',
    ...first!.decode.map(({ context }) => `a token over ${context}, ms`),
    ...first!.prefill.map(({ context }) => `prompt of ${context}, tokens/s`),
  ];
  const rows = models.map(({ kvHeads, parameters, kvBytes, float16Bytes, decode, prefill }) => [
    `${kvHeads}${kvHeads === queryHeads ? ', one for each query head' : kvHeads === 1 ? ', one for all' : ''}`,
    `${short(parameters / 1e6)} M`,
    kvBytes,
    float16Bytes,
    ...decode.map(({ ms }) => withSpread(ms)),
    ...prefill.map(({ tokensPerSecond }) => withSpread(tokensPerSecond)),
  ]);
  return [
    `## Fewer KV heads: the built-in model's shape, ${queryHeads} query heads, random weights, ${threads} threads`,
    'Median (least–most); in turns.',
    table(head, rows),
  ].join('\n\n');
}
