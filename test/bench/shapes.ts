/**
 * Shapes of published models for benchmarks: the contents of config.json and the matching tensors. Times do not depend
 * on the values of weights, so random weights in a real shape can replace the model. Does not write files (see
 * writeShape).
 */

/** The fields of config.json that the engine and its peers read. */
export interface Qwen2Config {
  architectures: ['Qwen2ForCausalLM'];
  model_type: 'qwen2';
  hidden_size: number;
  intermediate_size: number;
  num_hidden_layers: number;
  num_attention_heads: number;
  num_key_value_heads: number;
  vocab_size: number;
  max_position_embeddings: number;
  rms_norm_eps: number;
  rope_theta: number;
  tie_word_embeddings: boolean;
  hidden_act: 'silu';
  torch_dtype: 'bfloat16';
  use_sliding_window: false;
}

type Sizes = Pick<
  Qwen2Config,
  | 'hidden_size'
  | 'intermediate_size'
  | 'num_hidden_layers'
  | 'num_attention_heads'
  | 'num_key_value_heads'
  | 'vocab_size'
>;

function qwen2(sizes: Sizes): Qwen2Config {
  return {
    architectures: ['Qwen2ForCausalLM'],
    model_type: 'qwen2',
    ...sizes,
    max_position_embeddings: 32_768,
    rms_norm_eps: 1e-6,
    rope_theta: 1e6,
    tie_word_embeddings: true,
    hidden_act: 'silu',
    torch_dtype: 'bfloat16',
    use_sliding_window: false,
  };
}

/** `tiny` is for tests of the benchmarks. */
export const SHAPES = {
  'qwen2.5-0.5b': qwen2({
    hidden_size: 896,
    intermediate_size: 4864,
    num_hidden_layers: 24,
    num_attention_heads: 14,
    num_key_value_heads: 2,
    vocab_size: 151_936,
  }),
  'qwen2.5-1.5b': qwen2({
    hidden_size: 1536,
    intermediate_size: 8960,
    num_hidden_layers: 28,
    num_attention_heads: 12,
    num_key_value_heads: 2,
    vocab_size: 151_936,
  }),
  tiny: qwen2({
    hidden_size: 64,
    intermediate_size: 128,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    vocab_size: 512,
  }),
} as const;

export type ShapeName = keyof typeof SHAPES;

export interface TensorShape {
  name: string;
  shape: number[];
  /** Mean of the normal distribution. */
  mean: number;
  deviation: number;
}

/**
 * Every tensor, in the order of the file. Norms are 1 and the other values are small, so that activations stay finite.
 */
export function tensorsOf(config: Qwen2Config): TensorShape[] {
  const { hidden_size: hidden, intermediate_size: ffn, vocab_size: vocab } = config;
  const headSize = hidden / config.num_attention_heads;
  const kv = config.num_key_value_heads * headSize;
  const matrix = (name: string, rows: number, width: number): TensorShape => ({
    name: `${name}.weight`,
    shape: [rows, width],
    mean: 0,
    deviation: 0.02,
  });
  const bias = (name: string, rows: number): TensorShape => ({
    name: `${name}.bias`,
    shape: [rows],
    mean: 0,
    deviation: 0.1,
  });
  const norm = (name: string): TensorShape => ({ name: `${name}.weight`, shape: [hidden], mean: 1, deviation: 0 });
  const layer = (l: number): TensorShape[] => {
    const at = (name: string): string => `model.layers.${l}.${name}`;
    return [
      norm(at('input_layernorm')),
      ...[
        ['q', hidden],
        ['k', kv],
        ['v', kv],
      ].flatMap(([part, rows]) => [
        matrix(at(`self_attn.${part}_proj`), Number(rows), hidden),
        bias(at(`self_attn.${part}_proj`), Number(rows)),
      ]),
      matrix(at('self_attn.o_proj'), hidden, hidden),
      norm(at('post_attention_layernorm')),
      matrix(at('mlp.gate_proj'), ffn, hidden),
      matrix(at('mlp.up_proj'), ffn, hidden),
      matrix(at('mlp.down_proj'), hidden, ffn),
    ];
  };
  return [
    matrix('model.embed_tokens', vocab, hidden),
    ...Array.from({ length: config.num_hidden_layers }, (_, l) => layer(l)).flat(),
    norm('model.norm'),
  ];
}
