/**
 * Makes a shape with key biases like those of Qwen2 and Qwen2.5. Their first and last layers have biases with a norm of
 * 600 to 900 per head where the products are around 10, which breaks codecs that ignore them (llama.cpp #21385,
 * transformers #35185). Copies the seeded random weights of writeShape and changes only the biases of these two layers.
 */
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { uniform } from '../../../engine/sequence/sampler.ts';
import { SHAPES, type ShapeName } from '../shapes.ts';
import { shapeFolder } from '../writeShape.ts';

/** Norm of the bias of one KV head. */
const NORM = 700;

/**
 * Writes the model folder if it does not exist.
 * @returns the model folder in `root`.
 */
export async function biasedShapeFolder(name: ShapeName, root: string, seed = 1): Promise<string> {
  const folder = path.join(root, `${name}-seed${seed}-biased`);
  if (existsSync(folder)) return folder;
  const plain = await shapeFolder(name, root, seed);
  const temporary = `${folder}.writing-${process.pid}`;
  mkdirSync(temporary, { recursive: true });
  try {
    for (const file of ['config.json', 'tokenizer.json', 'model.safetensors'])
      copyFileSync(path.join(plain, file), path.join(temporary, file));
    await writeBiases(
      path.join(temporary, 'model.safetensors'),
      SHAPES[name].num_hidden_layers,
      SHAPES[name].num_key_value_heads,
      seed,
    );
    renameSync(temporary, folder);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  return folder;
}

/** Puts large key biases into the first and the last layer of a safetensors file in bfloat16. */
async function writeBiases(file: string, numLayers: number, kvHeads: number, seed: number): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    const length = Buffer.alloc(8);
    await handle.read(length, 0, 8, 0);
    const headerBytes = Number(length.readBigUInt64LE());
    const header = Buffer.alloc(headerBytes);
    await handle.read(header, 0, headerBytes, 8);
    const tensors = JSON.parse(header.toString()) as Record<
      string,
      { shape: number[]; data_offsets: [number, number] }
    >;
    for (const layer of [0, numLayers - 1]) {
      const {
        shape,
        data_offsets: [from],
      } = tensors[`model.layers.${layer}.self_attn.k_proj.bias`]!;
      const headSize = shape[0]! / kvHeads;
      const bytes = Buffer.alloc(2 * shape[0]!);
      for (let head = 0; head < kvHeads; head++) {
        const values = Array.from({ length: headSize }, (_, i) => uniform(seed + layer, head * headSize + i) - 0.5);
        const norm = Math.hypot(...values);
        for (const [i, value] of values.entries())
          bytes.writeUInt16LE(bfloat16((value / norm) * NORM), 2 * (head * headSize + i));
      }
      await handle.write(bytes, 0, bytes.length, 8 + headerBytes + from);
    }
  } finally {
    await handle.close();
  }
}

/** The upper half of a float32. That is close enough for a random number. */
function bfloat16(value: number): number {
  return new Uint32Array(Float32Array.of(value).buffer)[0]! >>> 16;
}
