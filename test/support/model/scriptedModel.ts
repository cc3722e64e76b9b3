/**
 * Writes tiny models that say a written text: each token has one successor. Their embeddings are random signs, their
 * layers add almost nothing, and each row of the head is the sum of the embeddings that the token follows.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { BYTE_CHARACTERS } from '../../../engine/text/tokenizer/spelling.ts';
import { random } from './fixtures.ts';
import { encode, safetensorsBytes } from './randomModel.ts';

const HIDDEN = 256;
const HEAD = 64;

export interface ScriptedModel {
  /** Added tokens, and whether they are marked as special. */
  added: readonly (readonly [content: string, special: boolean])[];
  /** What is generated after which token, each text as one token. */
  script: readonly (readonly [after: string, next: string])[];
  /** An added token. */
  eos: string;
  template?: string;
  contextTokens?: number;
}

export function writeScriptedModel(
  dir: string,
  { added, script, eos, template, contextTokens = 2048 }: ScriptedModel,
): void {
  const isAdded = (text: string) => added.some(([content]) => content === text);
  const vocab = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));
  const spelt = (text: string) => Array.from(new TextEncoder().encode(text), (byte) => BYTE_CHARACTERS[byte]).join('');
  for (const text of script.flat()) if (!isAdded(text) && !vocab.has(spelt(text))) vocab.set(spelt(text), vocab.size);
  const size = vocab.size + added.length;
  const idOf = (text: string): number =>
    isAdded(text) ? vocab.size + added.findIndex(([content]) => content === text) : vocab.get(spelt(text))!;

  mkdirSync(dir, { recursive: true });
  const write = (name: string, json: unknown) => writeFileSync(path.join(dir, name), JSON.stringify(json));
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false };
  write('tokenizer.json', {
    version: '1.0',
    added_tokens: added.map(([content, special], i) => ({ id: vocab.size + i, content, special, normalized: false })),
    pre_tokenizer: { ...byteLevel, use_regex: true },
    decoder: byteLevel,
    model: { type: 'BPE', vocab: Object.fromEntries(vocab), merges: [] },
  });
  write('tokenizer_config.json', { eos_token: eos });
  if (template !== undefined) writeFileSync(path.join(dir, 'chat_template.jinja'), template);
  write('config.json', {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_size: HIDDEN,
    intermediate_size: HIDDEN,
    num_hidden_layers: 1,
    num_attention_heads: HIDDEN / HEAD,
    num_key_value_heads: HIDDEN / HEAD,
    hidden_act: 'silu',
    max_position_embeddings: contextTokens,
    rms_norm_eps: 1e-6,
    rope_theta: 10000,
    tie_word_embeddings: false,
    vocab_size: size,
    eos_token_id: idOf(eos),
  });
  writeFileSync(
    path.join(dir, 'model.safetensors'),
    weights(
      size,
      script.map(([after, next]) => [idOf(after), idOf(next)]),
    ),
  );
}

function weights(size: number, script: readonly (readonly [after: number, next: number])[]): Uint8Array {
  const next = random(7);
  const matrix = (value: () => number, rows = HIDDEN) => Float32Array.from({ length: rows * HIDDEN }, value);
  const small = () => (next() - 0.5) * 1e-3;
  const embeddings = matrix(() => (next() < 0.5 ? -1 : 1), size);
  const head = matrix(small, size);
  for (const [after, to] of script)
    for (let i = 0; i < HIDDEN; i++) head[to * HIDDEN + i]! += 0.3 * embeddings[after * HIDDEN + i]!;
  const ones = () => new Float32Array(HIDDEN).fill(1);
  const layer = 'model.layers.0';
  const matrices = [
    ...['q_proj', 'k_proj', 'v_proj', 'o_proj'].map((name) => `${layer}.self_attn.${name}`),
    ...['gate_proj', 'up_proj', 'down_proj'].map((name) => `${layer}.mlp.${name}`),
  ];
  const norms = [`${layer}.input_layernorm`, `${layer}.post_attention_layernorm`, 'model.norm'];
  const stored = (name: string, shape: number[], values: Float32Array) =>
    [`${name}.weight`, { dtype: 'F32', shape, bytes: encode(values, 'F32') }] as const;
  return safetensorsBytes([
    stored('model.embed_tokens', [size, HIDDEN], embeddings),
    stored('lm_head', [size, HIDDEN], head),
    ...matrices.map((name) => stored(name, [HIDDEN, HIDDEN], matrix(small))),
    ...norms.map((name) => stored(name, [HIDDEN], ones())),
  ]);
}
