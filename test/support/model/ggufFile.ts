/** Writes GGUF files for tests: single entries and tensors, or a whole model folder. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseHeader } from '../../../engine/model/load/safetensors.ts';
import { readJson } from './fixtures.ts';

/** Types of metadata values. */
export const U8 = 0;
export const U16 = 2;
export const U32 = 4;
export const I32 = 5;
export const F32 = 6;
export const BOOL = 7;
export const TEXT = 8;
export const ARRAY = 9;
export const U64 = 10;

export type Entry = readonly [key: string, type: number, value: unknown];
export interface GgufTensor {
  readonly name: string;
  /** Rows first. */
  readonly shape: readonly number[];
  readonly type: number;
  readonly bytes: Uint8Array;
  /** Instead of the place behind the tensor before it. */
  readonly offset?: bigint;
}

export const u32 = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer);
export const u64 = (value: number | bigint): Buffer => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
export const text = (value: string): Buffer => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);

/** A list is { type, list }. */
function valueBytes(type: number, value: unknown): Buffer {
  switch (type) {
    case U8:
      return Buffer.from([value as number]);
    case U16:
      return Buffer.from(Uint16Array.of(value as number).buffer);
    case U32:
      return u32(value as number);
    case I32:
      return Buffer.from(Int32Array.of(value as number).buffer);
    case F32:
      return Buffer.from(Float32Array.of(value as number).buffer);
    case BOOL:
      return Buffer.from([value ? 1 : 0]);
    case TEXT:
      return text(value as string);
    case U64:
      return u64(value as bigint);
    default: {
      const { type: inner, list } = value as { type: number; list: readonly unknown[] };
      return Buffer.concat([u32(inner), u64(list.length), ...list.map((each) => valueBytes(inner, each))]);
    }
  }
}

const entryBytes = ([key, type, value]: Entry): Buffer =>
  Buffer.concat([text(key), u32(type), valueBytes(type, value)]);

const aligned = (bytes: number): number => Math.ceil(bytes / 32) * 32;

export function ggufBytes(entries: readonly Entry[], tensors: readonly GgufTensor[], version = 3): Buffer {
  let offset = 0;
  const infos = tensors.map((tensor) => {
    const info = [
      text(tensor.name),
      u32(tensor.shape.length),
      ...[...tensor.shape].reverse().map(u64),
      u32(tensor.type),
      u64(tensor.offset ?? offset),
    ];
    offset += aligned(tensor.bytes.length);
    return Buffer.concat(info);
  });
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    u32(version),
    u64(tensors.length),
    u64(entries.length),
    ...entries.map(entryBytes),
    ...infos,
  ]);
  const padded = (bytes: Uint8Array): Buffer =>
    Buffer.concat([bytes, Buffer.alloc(aligned(bytes.length) - bytes.length)]);
  return Buffer.concat([padded(head), ...tensors.map(({ bytes }) => padded(bytes))]);
}

interface Folder {
  config: Record<string, number> & { model_type: string; rope_parameters?: Rope; rope_scaling?: Rope };
  tokenizer: {
    model: {
      type: string;
      vocab: Record<string, number>;
      merges: (string | [string, string])[];
      byte_fallback?: boolean;
    };
    added_tokens: { id: number; content: string; special: boolean }[];
  };
  tokenizerConfig: Record<string, unknown>;
}
interface Rope {
  rope_type: string;
  rope_theta?: number;
  factor: number;
  low_freq_factor: number;
  high_freq_factor: number;
  original_max_position_embeddings: number;
}

/** The tokenizer of a folder. `pre`: the name of how it splits text. Undefined for SentencePiece. */
export function tokenizerEntries(dir: string, pre: string | undefined, vocabSize?: number): Entry[] {
  const { tokenizer, tokenizerConfig } = readFolder(dir);
  const { vocab, merges } = tokenizer.model;
  const size = vocabSize ?? Math.max(...Object.values(vocab), ...tokenizer.added_tokens.map(({ id }) => id)) + 1;
  const tokens = Array.from({ length: size }, (_, id) => `[PAD${id}]`);
  const types = tokens.map(() => 5);
  for (const [token, id] of Object.entries(vocab)) {
    tokens[id] = token;
    types[id] = pre === undefined && /^<0x..>$/.test(token) ? 6 : 1;
  }
  for (const { id, content, special } of tokenizer.added_tokens) {
    tokens[id] = content;
    types[id] = pre === undefined && content === '<unk>' ? 2 : special || /^<[|｜]/.test(content) ? 3 : 4;
  }
  const pairs = merges.map((merge) => (typeof merge === 'string' ? merge.split(' ') : merge));
  const ranks = new Map(pairs.map(([left, right], rank) => [`${left}${right}`, -rank]));
  const id = (name: string): Entry[] => {
    const value = tokenizerConfig[`${name}_token`] as string | { content: string } | null | undefined;
    const at = tokens.indexOf(typeof value === 'object' && value !== null ? value.content : String(value));
    return at < 0 ? [] : [[`tokenizer.ggml.${name}_token_id`, U32, at]];
  };
  const template = tokenizerConfig.chat_template ?? readTemplate(dir);
  return [
    ['tokenizer.ggml.model', TEXT, pre === undefined ? 'llama' : 'gpt2'],
    ['tokenizer.ggml.pre', TEXT, pre ?? 'default'],
    ['tokenizer.ggml.tokens', ARRAY, { type: TEXT, list: tokens }],
    ['tokenizer.ggml.token_type', ARRAY, { type: I32, list: types }],
    pre === undefined
      ? ['tokenizer.ggml.scores', ARRAY, { type: F32, list: tokens.map((token) => ranks.get(token) ?? -1e4) }]
      : ['tokenizer.ggml.merges', ARRAY, { type: TEXT, list: pairs.map((pair) => pair.join(' ')) }],
    ...id('bos'),
    ...id('eos'),
    ...(typeof template === 'string' ? [['tokenizer.chat_template', TEXT, template] as const] : []),
  ];
}

function readTemplate(dir: string): string | undefined {
  return readdirSync(dir).includes('chat_template.jinja')
    ? readFileSync(path.join(dir, 'chat_template.jinja'), 'utf8')
    : undefined;
}

function readFolder(dir: string): Folder {
  const has = readdirSync(dir).includes('config.json');
  return {
    config: has ? readJson(dir, 'config.json') : ({} as Folder['config']),
    tokenizer: readJson(dir, 'tokenizer.json'),
    tokenizerConfig: readJson(dir, 'tokenizer_config.json'),
  };
}

/** The shape of the model in a folder, as metadata. */
export function configEntries(dir: string): Entry[] {
  const { config: c } = readFolder(dir);
  const arch = c.model_type;
  const head = c.head_dim ?? c.hidden_size! / c.num_attention_heads!;
  const count = (key: string, value: number): Entry => [`${arch}.${key}`, U32, value];
  return [
    ['general.architecture', TEXT, arch],
    ['general.name', TEXT, 'test'],
    ['general.tags', ARRAY, { type: TEXT, list: ['a', 'b'] }],
    count('block_count', c.num_hidden_layers!),
    count('context_length', c.max_position_embeddings!),
    count('embedding_length', c.hidden_size!),
    count('feed_forward_length', c.intermediate_size!),
    count('attention.head_count', c.num_attention_heads!),
    count('attention.head_count_kv', c.num_key_value_heads!),
    count('attention.key_length', head),
    count('attention.value_length', head),
    [`${arch}.attention.layer_norm_rms_epsilon`, F32, c.rms_norm_eps],
    [`${arch}.rope.freq_base`, F32, c.rope_parameters?.rope_theta ?? c.rope_theta],
    ...(arch === 'llama' ? [count('rope.dimension_count', head)] : []),
  ];
}

const PARTS: Record<string, string> = {
  input_layernorm: 'attn_norm',
  post_attention_layernorm: 'ffn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
};
const NAMES: Record<string, string> = {
  'model.embed_tokens.weight': 'token_embd.weight',
  'model.norm.weight': 'output_norm.weight',
  'lm_head.weight': 'output.weight',
};
const TYPES: Record<string, number> = { F32: 0, F16: 1, BF16: 30 };

/** The tensors of a folder in their stored types, as convert_hf_to_gguf.py orders the rows of llama. */
export function folderTensors(dir: string): GgufTensor[] {
  const { config } = readFolder(dir);
  const head = config.head_dim ?? config.hidden_size! / config.num_attention_heads!;
  const tensors: GgufTensor[] = [];
  for (const file of readdirSync(dir).filter((name) => name.endsWith('.safetensors'))) {
    const bytes = readFileSync(path.join(dir, file));
    const header = bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0)));
    for (const { name, dtype, shape, start, end } of parseHeader(header, file, bytes.length).values()) {
      const [, layer, part, kind] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(name) ?? [];
      const data = bytes.subarray(start, end);
      const swapped = config.model_type === 'llama' && /^self_attn\.[qk]_proj$/.test(part ?? '');
      tensors.push({
        name: part === undefined ? NAMES[name]! : `blk.${layer}.${PARTS[part]}.${kind}`,
        shape,
        type: TYPES[dtype]!,
        bytes: swapped ? interleaved(data, shape[0]!, head) : data,
      });
    }
  }
  const rope = config.rope_parameters ?? config.rope_scaling;
  return rope?.rope_type === 'llama3' ? [...tensors, factorsOf(rope, config.rope_theta!, head)] : tensors;
}

/** Row j of a head goes to row 2 j, row head / 2 + j to row 2 j + 1. */
function interleaved(data: Uint8Array, rows: number, head: number): Uint8Array {
  const [out, size] = [new Uint8Array(data.length), data.length / rows];
  for (let r = 0; r < rows; r++) {
    const [first, inHead] = [r - (r % head), r % head];
    const to = first + 2 * (inHead % (head / 2)) + Math.floor(inHead / (head / 2));
    out.set(data.subarray(r * size, (r + 1) * size), to * size);
  }
  return out;
}

/** As convert_hf_to_gguf.py computes them (`LlamaModel.generate_extra_tensors`). */
function factorsOf(rope: Rope, theta: number, head: number): GgufTensor {
  const { factor, low_freq_factor: low, high_freq_factor: high, original_max_position_embeddings: original } = rope;
  const factors = Float32Array.from({ length: head / 2 }, (_, i) => {
    const length = 2 * Math.PI * (rope.rope_theta ?? theta) ** ((2 * i) / head);
    if (length < original / high) return 1;
    if (length > original / low) return factor;
    const smooth = (original / length - low) / (high - low);
    return 1 / ((1 - smooth) / factor + smooth);
  });
  return { name: 'rope_freqs.weight', shape: [head / 2], type: 0, bytes: new Uint8Array(factors.buffer) };
}

/** A whole model folder as a GGUF file. */
export function folderAsGguf(dir: string, pre: string): Buffer {
  const { config } = readFolder(dir);
  return ggufBytes([...configEntries(dir), ...tokenizerEntries(dir, pre, config.vocab_size)], folderTensors(dir));
}
