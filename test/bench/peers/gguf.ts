/**
 * Writes a Qwen2 folder as GGUF with the matrix types of llama.cpp's quantiser for Q8_0 or Q4_0 (see headType). Codes
 * values as in ggml-quants.c (quantize_row_q8_0_ref, quantize_row_q4_0_ref; Q6_K without its search for the best
 * scales). Vectors are float32. Token texts are invented.
 */
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { parseConfig, type ModelConfig } from '../../../engine/model/load/hfConfig.ts';
import { rowsPerRead, Weights } from '../../../engine/model/load/weights.ts';
import { ModelFolder } from '../../../engine/model/load/modelFolder.ts';

export type BlockFormat = 'q8_0' | 'q4_0';

/** Storage type of a matrix. */
export type BlockType = BlockFormat | 'q6_K';

const ALIGNMENT = 32;
/** Values of general.file_type. */
const FILE_TYPES: Record<BlockFormat, number> = { q8_0: 7, q4_0: 2 };
/** Values per block, bytes per block, and the bytes of a number of values in whole blocks. */
export const BLOCKS = {
  q8_0: { ggmlType: 8, values: 32, bytes: 34, encode: encodeQ8 },
  q4_0: { ggmlType: 2, values: 32, bytes: 18, encode: encodeQ4 },
  q6_K: { ggmlType: 14, values: 256, bytes: 210, encode: encodeQ6 },
} as const;

/**
 * Type of a head that is also the embedding. In a Q4_0 file llama.cpp's quantiser (src/llama-quant.cpp) gives such a
 * token_embd the type of the output matrix, Q6_K (llama_tensor_get_type_impl). If its rows are not whole blocks of 256,
 * it uses the fallback Q8_0 (tensor_type_fallback). All other matrices are Q4_0 without an importance matrix.
 */
export function headType(format: BlockFormat, width: number): BlockType {
  if (format === 'q8_0') return 'q8_0';
  return width % BLOCKS.q6_K.values === 0 ? 'q6_K' : 'q8_0';
}

/** Bits of the nearest float16, ties to even. Infinite above the range. */
export function halfBits(value: number): number {
  const bits = new Uint32Array(Float32Array.of(value).buffer)[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const size = Math.abs(value);
  if (size >= 65_520) return sign | 0x7c00;
  if (size < 2 ** -14) return sign | roundEven(size * 2 ** 24);
  // Mantissa and exponent as one number: a carry out of the mantissa raises the exponent.
  const rebased = (bits & 0x7fffffff) - (112 << 23);
  return sign | ((rebased + 0xfff + ((rebased >>> 13) & 1)) >>> 13);
}

function roundEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

/** d = max|x| / 127 as float16, then 32 signed bytes of x / d. */
function encodeQ8(values: Float32Array, out: DataView): void {
  const { values: size, bytes } = BLOCKS.q8_0;
  for (let block = 0, at = 0; block < values.length; block += size, at += bytes) {
    let most = 0;
    for (let i = 0; i < size; i++) most = Math.max(most, Math.abs(values[block + i]!));
    const scale = most / 127;
    const inverse = scale ? 1 / scale : 0;
    out.setUint16(at, halfBits(scale), true);
    for (let i = 0; i < size; i++) out.setInt8(at + 2 + i, Math.round(values[block + i]! * inverse));
  }
}

/**
 * d = (value with the largest magnitude) / -8 as float16, then 16 bytes. Byte i has value i in its low half and value
 * i + 16 in its high half.
 */
function encodeQ4(values: Float32Array, out: DataView): void {
  const { values: size, bytes } = BLOCKS.q4_0;
  for (let block = 0, at = 0; block < values.length; block += size, at += bytes) {
    const scale = extremeOf(values, block, size) / -8;
    const inverse = scale ? 1 / scale : 0;
    const code = (i: number): number => Math.min(15, Math.floor(values[block + i]! * inverse + 8.5));
    out.setUint16(at, halfBits(scale), true);
    for (let i = 0; i < size / 2; i++) out.setUint8(at + 2 + i, code(i) | (code(i + size / 2) << 4));
  }
}

/** The value with the largest magnitude. */
function extremeOf(values: Float32Array, from: number, count: number): number {
  let extreme = 0;
  for (let i = from; i < from + count; i++) if (Math.abs(values[i]!) > Math.abs(extreme)) extreme = values[i]!;
  return extreme;
}

/** Values that share a scale in Q6_K. */
const GROUP = 16;

/**
 * 256 values d * scale * (code - 32), with one scale (signed byte) per 16 values and codes of 6 bits. Layout: 128 bytes
 * of low halves, 64 of upper bits, 16 scales, d as float16.
 * In each 128 values, value 32 q + l has its low half in byte l of the first 32 bytes (q 0 in the low half, q 2 in the
 * high half) or of the second 32 (q 1, q 3). Its upper bits are bits 2 q of byte l.
 */
function encodeQ6(values: Float32Array, out: DataView): void {
  const { values: size, bytes } = BLOCKS.q6_K;
  const steps = new Float64Array(size / GROUP);
  for (let block = 0, at = 0; block < values.length; block += size, at += bytes) {
    let greatest = 0;
    for (let g = 0; g < steps.length; g++) {
      steps[g] = extremeOf(values, block + g * GROUP, GROUP) / -32;
      if (Math.abs(steps[g]!) > Math.abs(greatest)) greatest = steps[g]!;
    }
    const unit = greatest / -128;
    for (let i = 0; i < 192; i++) out.setUint8(at + i, 0);
    for (let g = 0; g < steps.length; g++) {
      const scale = unit ? Math.min(127, Math.round(steps[g]! / unit)) : 0;
      out.setInt8(at + 192 + g, scale);
      const inverse = scale ? 1 / (unit * scale) : 0;
      for (let i = g * GROUP; i < (g + 1) * GROUP; i++) {
        const code = Math.max(0, Math.min(63, Math.round(values[block + i]! * inverse) + 32));
        const [half, quarter, l] = [i >> 7, (i >> 5) & 3, i & 31];
        const low = at + 64 * half + 32 * (quarter & 1) + l;
        const upper = at + 128 + 32 * half + l;
        out.setUint8(low, out.getUint8(low) | ((code & 15) << (quarter < 2 ? 0 : 4)));
        out.setUint8(upper, out.getUint8(upper) | ((code >> 4) << (2 * quarter)));
      }
    }
    out.setUint16(at + 208, halfBits(unit), true);
  }
}

const u32 = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value: number): Buffer => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const f32 = (value: number): Buffer => Buffer.from(Float32Array.of(value).buffer);
const text = (value: string): Buffer => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);

/** Types of metadata values. */
const U32 = 4;
const I32 = 5;
const F32 = 6;
const TEXT = 8;
const ARRAY = 9;

function metadata(config: ModelConfig, fileType: number): Buffer[] {
  const entry = (key: string, type: number, value: Buffer): Buffer => Buffer.concat([text(key), u32(type), value]);
  const array = (type: number, count: number, values: Buffer): Buffer => Buffer.concat([u32(type), u64(count), values]);
  const { vocabSize } = config;
  return [
    entry('general.architecture', TEXT, text('qwen2')),
    entry('general.alignment', U32, u32(ALIGNMENT)),
    entry('general.file_type', U32, u32(fileType)),
    entry('qwen2.block_count', U32, u32(config.numLayers)),
    entry('qwen2.context_length', U32, u32(config.contextTokens)),
    entry('qwen2.embedding_length', U32, u32(config.hiddenSize)),
    entry('qwen2.feed_forward_length', U32, u32(config.ffnSize)),
    entry('qwen2.attention.head_count', U32, u32(config.numHeads)),
    entry('qwen2.attention.head_count_kv', U32, u32(config.kvHeads)),
    entry('qwen2.rope.freq_base', F32, f32(config.rope.theta)),
    entry('qwen2.attention.layer_norm_rms_epsilon', F32, f32(config.rmsEps)),
    entry('tokenizer.ggml.model', TEXT, text('gpt2')),
    entry('tokenizer.ggml.pre', TEXT, text('qwen2')),
    entry(
      'tokenizer.ggml.tokens',
      ARRAY,
      array(TEXT, vocabSize, Buffer.concat(Array.from({ length: vocabSize }, (_, id) => text(`t${id}`)))),
    ),
    entry(
      'tokenizer.ggml.token_type',
      ARRAY,
      array(I32, vocabSize, Buffer.from(new Int32Array(vocabSize).fill(1).buffer)),
    ),
    entry('tokenizer.ggml.merges', ARRAY, array(TEXT, 1, text('t 1'))),
    entry('tokenizer.ggml.eos_token_id', U32, u32(vocabSize - 1)),
    entry('tokenizer.ggml.bos_token_id', U32, u32(vocabSize - 1)),
  ];
}

interface Tensor {
  name: string;
  /** Name in the safetensors file. */
  source: string;
  /** [rows, width] or [width]. */
  shape: number[];
  type: BlockType | 'f32';
  bytes: number;
}

/** Rows keep the folder's order. llama.cpp rotates Qwen2's heads by halves, as the folder does. */
function tensorsOf(config: ModelConfig, format: BlockFormat): Tensor[] {
  const { hiddenSize: hidden, ffnSize: ffn } = config;
  const queries = config.numHeads * config.headSize;
  const kv = config.kvHeads * config.headSize;
  const vector = (name: string, source: string, size: number): Tensor => ({
    name,
    source,
    shape: [size],
    type: 'f32',
    bytes: 4 * size,
  });
  const matrix = (name: string, source: string, rows: number, width: number, type: BlockType = format): Tensor => {
    const { values, bytes } = BLOCKS[type];
    if (width % values !== 0)
      throw new Error(`${source} has rows of ${width} values; ${type} needs a multiple of ${values}`);
    return { name, source, shape: [rows, width], type, bytes: rows * (width / values) * bytes };
  };
  const layers = Array.from({ length: config.numLayers }, (_, l) => {
    const [to, from] = [`blk.${l}.`, `model.layers.${l}.`];
    const linear = (name: string, source: string, rows: number, width: number, bias: boolean): Tensor[] => [
      matrix(`${to}${name}.weight`, `${from}${source}.weight`, rows, width),
      ...(bias ? [vector(`${to}${name}.bias`, `${from}${source}.bias`, rows)] : []),
    ];
    return [
      vector(`${to}attn_norm.weight`, `${from}input_layernorm.weight`, hidden),
      ...linear('attn_q', 'self_attn.q_proj', queries, hidden, true),
      ...linear('attn_k', 'self_attn.k_proj', kv, hidden, true),
      ...linear('attn_v', 'self_attn.v_proj', kv, hidden, true),
      ...linear('attn_output', 'self_attn.o_proj', hidden, queries, false),
      vector(`${to}ffn_norm.weight`, `${from}post_attention_layernorm.weight`, hidden),
      ...linear('ffn_gate', 'mlp.gate_proj', ffn, hidden, false),
      ...linear('ffn_up', 'mlp.up_proj', ffn, hidden, false),
      ...linear('ffn_down', 'mlp.down_proj', hidden, ffn, false),
    ];
  }).flat();
  return [
    matrix('token_embd.weight', 'model.embed_tokens.weight', config.vocabSize, hidden, headType(format, hidden)),
    vector('output_norm.weight', 'model.norm.weight', hidden),
    ...layers,
  ];
}

const aligned = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

/** Writes `target` from a Qwen2 folder with tied embeddings. Writes it completely or not at all. */
export async function writeGguf(modelDir: string, target: string, format: BlockFormat): Promise<void> {
  const folder = await ModelFolder.open(modelDir);
  const json = await folder.readJson('config.json');
  if (!json) throw new Error(`${modelDir} has no config.json`);
  const config = parseConfig(json.value);
  if (config.architecture !== 'qwen2' || !config.tied)
    throw new Error(`${modelDir}: only Qwen2 with tied embeddings is written as GGUF`);
  const weights = await Weights.open(folder);
  const temporary = `${target}.writing-${process.pid}`;
  try {
    const file = await open(temporary, 'wx');
    try {
      await writeAll(file, weights, config, format);
    } finally {
      await file.close();
    }
    await rename(temporary, target);
  } finally {
    await weights.close();
    await rm(temporary, { force: true });
  }
}

async function writeAll(file: FileHandle, weights: Weights, config: ModelConfig, format: BlockFormat): Promise<void> {
  const tensors = tensorsOf(config, format);
  const entries = metadata(config, FILE_TYPES[format]);
  let offset = 0;
  const infos = tensors.map(({ name, shape, type, bytes }) => {
    // The fastest dimension comes first.
    const info = Buffer.concat([
      text(name),
      u32(shape.length),
      ...[...shape].reverse().map(u64),
      u32(type === 'f32' ? 0 : BLOCKS[type].ggmlType),
      u64(offset),
    ]);
    offset += aligned(bytes);
    return info;
  });
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    u32(3),
    u64(tensors.length),
    u64(entries.length),
    ...entries,
    ...infos,
  ]);
  await file.writeFile(Buffer.concat([head, Buffer.alloc(aligned(head.length) - head.length)]));
  for (const { source, shape, type, bytes } of tensors) {
    weights.check(source, shape, config.quantisation?.kind === 'int8');
    const [rows, width] = shape.length === 1 ? [1, shape[0]!] : [shape[0]!, shape[1]!];
    const step = rowsPerRead(width);
    const values = new Float32Array(Math.min(step, rows) * width);
    for (let first = 0; first < rows; first += step) {
      const part = await weights.rows(source, first, Math.min(step, rows - first), values);
      if (type === 'f32') await file.writeFile(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
      else {
        const { values: size, bytes: blockBytes, encode } = BLOCKS[type];
        const out = new DataView(new ArrayBuffer((part.length / size) * blockBytes));
        encode(part, out);
        await file.writeFile(new Uint8Array(out.buffer));
      }
    }
    await file.writeFile(new Uint8Array(aligned(bytes) - bytes));
  }
}
