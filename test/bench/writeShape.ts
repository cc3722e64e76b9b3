/**
 * Writes a shape as a Hugging Face folder with seeded random weights in bfloat16: config.json, model.safetensors and a
 * byte-level tokenizer.json that covers only bytes, because benchmarks pass token ids. Streams in pieces, so memory use
 * does not depend on the size. A folder exists completely or not at all.
 */
import { existsSync } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { BYTE_CHARACTERS } from '../../engine/text/tokenizer/spelling.ts';
import { SHAPES, type ShapeName, type TensorShape, tensorsOf } from './shapes.ts';

const PIECE_VALUES = 1 << 22;
const TABLE_BITS = 16;
const END_OF_TEXT = '<|endoftext|>';

/** The upper half of a float32, rounded to nearest. */
function bfloat16(value: number): number {
  const bits = new Uint32Array(Float32Array.of(value).buffer)[0]!;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

/**
 * Draws bfloat16 values of one distribution. They are quantiles of the normal distribution, picked by a 32-bit random
 * generator.
 */
class Weights {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 1;
  }

  /** @param table see `normalTable`. */
  fill(codes: Uint16Array, table: Uint16Array): void {
    // xorshift32: each state gives two table indices.
    let x = this.#state;
    for (let i = 0; i < codes.length; i += 2) {
      x ^= x << 13;
      x ^= x >>> 17;
      x ^= x << 5;
      codes[i] = table[x & 0xffff]!;
      if (i + 1 < codes.length) codes[i + 1] = table[x >>> 16]!;
    }
    this.#state = x;
  }
}

/** 2^16 values of N(mean, deviation^2) as bfloat16, by Box-Muller over an even grid. */
function normalTable(mean: number, deviation: number): Uint16Array {
  const size = 1 << TABLE_BITS;
  const side = 1 << (TABLE_BITS / 2);
  return Uint16Array.from({ length: size }, (_, i) => {
    const radius = Math.sqrt(-2 * Math.log(((i >> (TABLE_BITS / 2)) + 0.5) / side));
    return bfloat16(mean + deviation * radius * Math.cos((2 * Math.PI * ((i % side) + 0.5)) / side));
  });
}

const numValues = ({ shape }: TensorShape): number => shape.reduce((a, b) => a * b, 1);

async function writeWeights(file: FileHandle, tensors: readonly TensorShape[], seed: number): Promise<void> {
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  let position = 0;
  for (const tensor of tensors) {
    const end = position + 2 * numValues(tensor);
    header[tensor.name] = { dtype: 'BF16', shape: tensor.shape, data_offsets: [position, end] };
    position = end;
  }
  const json = Buffer.from(JSON.stringify(header));
  const padded = Buffer.concat([json, Buffer.alloc((8 - (json.length % 8)) % 8, ' ')]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  await file.writeFile(Buffer.concat([length, padded]));

  const weights = new Weights(seed);
  const tables = new Map<string, Uint16Array>();
  const piece = new Uint16Array(PIECE_VALUES);
  for (const tensor of tensors) {
    const key = `${tensor.mean} ${tensor.deviation}`;
    if (!tables.has(key)) tables.set(key, normalTable(tensor.mean, tensor.deviation));
    for (let left = numValues(tensor); left > 0; left -= PIECE_VALUES) {
      const codes = piece.subarray(0, Math.min(left, PIECE_VALUES));
      weights.fill(codes, tables.get(key)!);
      await file.writeFile(new Uint8Array(codes.buffer, 0, codes.byteLength));
    }
  }
}

/** A byte-level BPE without merges. It reproduces every text, with one token for each byte. */
function byteTokenizer(): unknown {
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false };
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: [
      {
        id: BYTE_CHARACTERS.length,
        content: END_OF_TEXT,
        single_word: false,
        lstrip: false,
        rstrip: false,
        normalized: false,
        special: true,
      },
    ],
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: '',
      end_of_word_suffix: '',
      fuse_unk: false,
      byte_fallback: false,
      vocab: Object.fromEntries(BYTE_CHARACTERS.map((character, byte) => [character, byte])),
      merges: [],
    },
  };
}

/** @returns the model folder in `root`. Writes the folder if it does not exist. */
export function shapeFolder(name: ShapeName, root: string, seed = 1): Promise<string> {
  return writeFolder(path.join(root, `${name}-seed${seed}`), SHAPES[name], tensorsOf(SHAPES[name]), seed);
}

/** Writes a model folder, if it does not exist. Returns its path. */
export async function writeFolder(
  folder: string,
  config: object,
  tensors: readonly TensorShape[],
  seed: number,
): Promise<string> {
  if (existsSync(folder)) return folder;
  const temporary = `${folder}.writing-${process.pid}`;
  try {
    await mkdir(temporary, { recursive: true });
    const file = await open(path.join(temporary, 'model.safetensors'), 'wx');
    try {
      await writeWeights(file, tensors, seed);
    } finally {
      await file.close();
    }
    await writeFile(path.join(temporary, 'config.json'), `${JSON.stringify(config, null, 1)}\n`);
    await writeFile(path.join(temporary, 'tokenizer.json'), JSON.stringify(byteTokenizer()));
    await rename(temporary, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return folder;
}
