/**
 * Suite `kinds`: one token, and a chunk of a prompt, with the native kernels and with onnxruntime, for models whose layers
 * are of other kinds than those of Qwen2. Shapes are published ones or like them, with seeded random weights.
 */
import path from 'node:path';
import { parseConfig } from '../../engine/model/load/hfConfig.ts';
import { planWeights } from '../../engine/model/load/weightPlan.ts';
import { seededRandom } from '../support/engine/workload.ts';
import { type Case, engineCases, WORKLOAD } from './engineCases.ts';
import { EngineUnderTest } from './engineUnderTest.ts';
import type { TensorShape } from './shapes.ts';
import { type Figure, figure, short, table, withSpread } from './spread.ts';
import { writeFolder } from './writeShape.ts';

const ROUNDS = 9;

type Config = Record<string, unknown>;

/**
 * Windows of 512 tokens in five of six layers, as published; one of 1,024 in all layers; and two of the 48 layers of
 * Qwen3-30B-A3B, with 128 experts of which 8 compute a token.
 */
const KINDS: Readonly<Record<string, Config>> = {
  'gemma3-270m': {
    architectures: ['Gemma3ForCausalLM'],
    model_type: 'gemma3_text',
    hidden_size: 640,
    intermediate_size: 2048,
    num_hidden_layers: 18,
    num_attention_heads: 4,
    num_key_value_heads: 1,
    head_dim: 256,
    vocab_size: 262_144,
    max_position_embeddings: 32_768,
    query_pre_attn_scalar: 256,
    sliding_window: 512,
    sliding_window_pattern: 6,
    rms_norm_eps: 1e-6,
    hidden_activation: 'gelu_pytorch_tanh',
    tie_word_embeddings: true,
  },
  'mistral-like': {
    architectures: ['MistralForCausalLM'],
    model_type: 'mistral',
    hidden_size: 1024,
    intermediate_size: 3584,
    num_hidden_layers: 16,
    num_attention_heads: 8,
    num_key_value_heads: 2,
    head_dim: 128,
    vocab_size: 32_000,
    max_position_embeddings: 32_768,
    sliding_window: 1024,
    rms_norm_eps: 1e-5,
    hidden_act: 'silu',
    tie_word_embeddings: false,
  },
  'qwen3-moe-layers': {
    architectures: ['Qwen3MoeForCausalLM'],
    model_type: 'qwen3_moe',
    hidden_size: 2048,
    intermediate_size: 6144,
    num_hidden_layers: 2,
    num_attention_heads: 32,
    num_key_value_heads: 4,
    head_dim: 128,
    vocab_size: 32_000,
    max_position_embeddings: 32_768,
    num_experts: 128,
    num_experts_per_tok: 8,
    moe_intermediate_size: 768,
    norm_topk_prob: true,
    rms_norm_eps: 1e-6,
    hidden_act: 'silu',
    tie_word_embeddings: false,
  },
};

/** The tensors that the engine reads. */
function tensorsOf(config: Config): TensorShape[] {
  const parsed = parseConfig(config);
  const { needed } = planWeights(parsed, 'int8', parsed.tied, 'blocks');
  return Array.from(needed, ([name, shape]) => {
    const isNorm = /norm\.weight$/.test(name);
    return { name, shape: [...shape], mean: isNorm ? 1 - parsed.normOffset : 0, deviation: isNorm ? 0 : 0.02 };
  });
}

interface KindsResult {
  shape: string;
  context: number;
  /** How many tokens a step computes. */
  tokens: number;
  /** Milliseconds of a step. */
  native: Figure;
  onnxruntime: Figure;
}

interface KindsOptions {
  kinds?: Readonly<Record<string, Config>>;
  precision?: 'int8' | 'int4';
  threads?: number;
  rounds?: number;
  contexts?: readonly number[];
  /** Tokens of a chunk behind the first context. */
  chunk?: number;
  cache?: string;
  onProgress?: (line: string) => void;
}

export async function kindsBench({
  kinds = KINDS,
  precision = 'int8',
  threads = 0,
  rounds = ROUNDS,
  contexts = [512, 2048],
  chunk = 128,
  cache = path.resolve('.cache/bench'),
  onProgress = () => {},
}: KindsOptions = {}): Promise<KindsResult[]> {
  const results: KindsResult[] = [];
  for (const [shape, config] of Object.entries(kinds)) {
    const modelDir = await writeFolder(path.join(cache, shape), config, tensorsOf(config), 1);
    const lanes: { bench: EngineUnderTest; cases: Case[]; samples: number[][] }[] = [];
    try {
      for (const native of [true, false]) {
        // Each form in its own folder: an import replaces that of another form.
        const cacheDir = path.join(cache, native ? 'imported' : 'imported-graph');
        const bench = await EngineUnderTest.open({ modelDir, cacheDir, threads, seed: 1, native, precision });
        if ((bench.model.products === 'native') !== native) throw new Error('The native kernels cannot be used here.');
        const workload = { ...WORKLOAD, contexts, chunkContexts: contexts.slice(0, 1), chunks: [chunk] };
        const cases = engineCases(bench, workload).filter(({ group }) => group === 'decode' || group === 'prefill');
        lanes.push({ bench, cases, samples: cases.map(() => []) });
      }
      const random = seededRandom(1);
      // The first round is a warm-up.
      for (let round = 0; round <= rounds; round++) {
        for (const [i] of lanes[0]!.cases.entries())
          for (const { cases, samples } of random() < 0.5 ? lanes : lanes.toReversed()) {
            const { ms } = await cases[i]!.measure();
            if (round > 0) samples[i]!.push(ms!);
          }
        onProgress(`${shape}: round ${round} of ${rounds}`);
      }
      const [native, graph] = lanes.map(({ samples }) => samples.map(figure));
      for (const [i, { key }] of lanes[0]!.cases.entries()) {
        const [context, tokens] = [Number(key.context), Number(key.chunk ?? 1)];
        results.push({ shape, context, tokens, native: native![i]!, onnxruntime: graph![i]! });
      }
    } finally {
      for (const { bench } of lanes) await bench.dispose();
    }
  }
  return results;
}

export function kindsReport(results: readonly KindsResult[], precision = 'int8'): string {
  const rows = results.map(({ shape, context, tokens, native, onnxruntime }) => [
    shape,
    context,
    tokens,
    withSpread(native),
    withSpread(onnxruntime),
    `${short(onnxruntime.median / native.median)} (${short(onnxruntime.least / native.least)})`,
  ]);
  return [
    `## A step with the native kernels and with onnxruntime, ${precision}, random weights`,
    'Milliseconds: median (least–most); in turns. The ratio is of the medians (of the least).',
    table(['shape', 'tokens before', 'tokens', 'native', 'onnxruntime', 'ratio'], rows),
  ].join('\n\n');
}

export async function kindsSuite({
  only,
  precision = 'int8',
  threads,
  rounds,
}: {
  only?: string;
  precision?: string;
  threads?: string;
  rounds?: string;
}): Promise<{ result: KindsResult[]; report: string }> {
  const names = only?.split(',') ?? Object.keys(KINDS);
  const unknown = names.find((name) => !KINDS[name]);
  if (unknown !== undefined) throw new Error(`--only: ${Object.keys(KINDS).join(', ')}`);
  if (precision !== 'int8' && precision !== 'int4') throw new Error('--precision: int8, int4');
  const result = await kindsBench({
    precision,
    kinds: Object.fromEntries(names.map((name) => [name, KINDS[name]!])),
    threads: Number(threads ?? 0),
    rounds: Number(rounds ?? ROUNDS),
    onProgress: (line) => console.error(line),
  });
  return { result, report: kindsReport(result, precision) };
}
