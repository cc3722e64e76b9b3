/**
 * Says a fault of the files that are made from a GGUF file, such as config.json, as a fault of that file: with its name
 * and its keys. Does not find faults.
 */

const FILES = ['generation_config.json', 'tokenizer_config.json', 'tokenizer.json', 'config.json'];
/** Keys below that of the family. */
const CONFIG: Readonly<Record<string, string>> = {
  num_hidden_layers: 'block_count',
  hidden_size: 'embedding_length',
  intermediate_size: 'feed_forward_length',
  num_attention_heads: 'attention.head_count',
  num_key_value_heads: 'attention.head_count_kv',
  head_dim: 'attention.key_length',
  max_position_embeddings: 'context_length',
  rms_norm_eps: 'attention.layer_norm_rms_epsilon',
  norm_epsilon: 'attention.layer_norm_epsilon',
  sliding_window: 'attention.sliding_window',
  layer_types: 'attention.sliding_window_pattern',
  embedding_multiplier: 'embedding_scale',
  attention_multiplier: 'attention.scale',
  residual_multiplier: 'residual_scale',
  logits_scaling: 'logit_scale',
  attn_logit_softcapping: 'attn_logit_softcapping',
  final_logit_softcapping: 'final_logit_softcapping',
  rope_local_base_freq: 'rope.freq_base_swa',
  partial_rotary_factor: 'rope.dimension_count',
  'rope_scaling.attention_factor': 'rope.scaling.attn_factor',
  original_max_position_embeddings: 'rope.scaling.original_context_length',
  'rope_scaling.factor': 'rope.scaling.factor',
  rope_theta: 'rope.freq_base',
};
const OTHERS: Readonly<Record<string, string>> = {
  'rope_scaling.factors': 'rope_freqs.weight',
  'rope_scaling.short_factor': 'rope_factors_short.weight',
  vocab_size: 'token_embd.weight',
  eos_token_id: 'tokenizer.ggml.eos_token_id',
  bos_token_id: 'tokenizer.ggml.bos_token_id',
  'model.vocab': 'tokenizer.ggml.tokens',
  'model.merges': 'tokenizer.ggml.merges',
  added_tokens: 'tokenizer.ggml.tokens',
};

/** What changes a message about a made file. Names in quotes stay. `manifest`: the name of kvasir.json. */
export function ownWords(file: string, family: string, manifest: string): (message: string) => string {
  const words = new Map([
    ...FILES.map((name) => [name, file] as const),
    ['kvasir.json', manifest],
    ...Object.entries(CONFIG).map(([key, own]) => [key, `${family}.${own}`] as const),
    ...Object.entries(OTHERS),
  ]);
  const names = [...words.keys()].sort((a, b) => b.length - a.length).map((name) => name.replaceAll('.', '\\.'));
  const known = new RegExp(`"(?:[^"\\\\]|\\\\.)*"|(?<![\\w./\\\\-])(?:${names.join('|')})(?![\\w/\\\\-]|\\.\\w)`, 'g');
  return (message) => message.replace(known, (found) => words.get(found) ?? found);
}
