/**
 * A matrix in the formats of GPTQ, AWQ and compressed-tensors: codes of 4 or 8 bits in int32, a scale and a zero for
 * each group of inputs. Gives its rows as float32. Does not know names.
 */
import type { Hash } from 'node:crypto';
import { invalid, type OpenFile } from './modelFolder.ts';
import { BYTES_PER_ELEMENT, type TensorInfo, toFloat32 } from './safetensors.ts';
import { type Matrix, readExactly } from './tensorFiles.ts';

export interface PackedTensor {
  readonly file: OpenFile;
  readonly info: TensorInfo;
}

/** Tensors that hold a matrix [outputs, inputs]. */
export interface PackedParts {
  readonly codes: PackedTensor;
  readonly scales: PackedTensor;
  /** Null: the middle code is zero. */
  readonly zeros: PackedTensor | null;
  /** The group of each input. Null: groups of consecutive inputs. */
  readonly groups: PackedTensor | null;
}

export interface PackedLayout {
  readonly kind: 'gptq' | 'awq' | 'rows';
  readonly bits: 4 | 8;
  /** Inputs that share a scale. Null: all. */
  readonly groupSize: number | null;
  /** Zeros are stored minus 1. */
  readonly lessOne: boolean;
}

/** Where the outputs 0 .. 7 stand in an int32 of AWQ (AWQ_REVERSE_ORDER in AutoAWQ). */
const AWQ_PLACES = [0, 4, 1, 5, 2, 6, 3, 7];

/** Codes, scales and zeros in memory, and where the code of output o and input i stands. */
interface Loaded {
  readonly words: Uint32Array;
  readonly scales: Float32Array;
  readonly zeros: Int32Array;
  readonly groupOf: Int32Array;
}

export class PackedMatrix implements Matrix {
  readonly outputs: number;
  readonly inputs: number;
  readonly #parts: PackedParts;
  readonly #layout: PackedLayout;
  readonly #numGroups: number;
  #loaded: Loaded | null = null;

  /** @throws RequestError that names a tensor of another type or shape */
  constructor(parts: PackedParts, layout: PackedLayout) {
    const { codes, scales, zeros, groups } = parts;
    const per = 32 / layout.bits;
    const [a = 0, b = 0] = codes.info.shape;
    const byInput = layout.kind === 'gptq' || layout.kind === 'awq';
    this.inputs = layout.kind === 'gptq' ? a * per : layout.kind === 'awq' ? a : b * per;
    this.outputs = layout.kind === 'gptq' ? b : layout.kind === 'awq' ? b * per : a;
    this.#numGroups = layout.groupSize === null ? 1 : Math.ceil(this.inputs / layout.groupSize);
    this.#parts = parts;
    this.#layout = layout;
    const n = this.#numGroups;
    const packed = Math.ceil(this.outputs / per);
    check(codes, ['I32'], [a, b]);
    check(scales, ['F16', 'BF16', 'F32'], byInput ? [n, this.outputs] : [this.outputs, n]);
    if (zeros) check(zeros, ['I32'], byInput ? [n, packed] : [packed, n]);
    if (groups) check(groups, ['I32', 'I64'], [this.inputs]);
  }

  async rows(first: number, count: number, out: Float32Array, hash?: Hash): Promise<void> {
    const loaded = await this.#load(hash);
    const { kind, bits } = this.#layout;
    const { words, scales, zeros, groupOf } = loaded;
    const { inputs, outputs } = this;
    const per = 32 / bits;
    const mask = 2 ** bits - 1;
    const wordOf = Int32Array.from({ length: inputs }, (_, i) =>
      kind === 'awq' ? (i * outputs) / per : kind === 'gptq' ? Math.floor(i / per) * outputs : Math.floor(i / per),
    );
    const shiftOf = Uint8Array.from({ length: inputs }, (_, i) => (kind === 'awq' ? 0 : bits * (i % per)));
    const n = this.#numGroups;
    for (let r = 0; r < count; r++) {
      const o = first + r;
      const word = kind === 'awq' ? Math.floor(o / per) : kind === 'gptq' ? o : (o * inputs) / per;
      const shift = kind === 'awq' ? bits * AWQ_PLACES[o % per]! : 0;
      for (let i = 0; i < inputs; i++) {
        const code = (words[word + wordOf[i]!]! >>> (shift + shiftOf[i]!)) & mask;
        const group = o * n + groupOf[i]!;
        out[r * inputs + i] = (code - zeros[group]!) * scales[group]!;
      }
    }
  }

  release(): void {
    this.#loaded = null;
  }

  async #load(hash?: Hash): Promise<Loaded> {
    if (this.#loaded && !hash) return this.#loaded;
    const { codes, scales, zeros, groups } = this.#parts;
    const codeBytes = await bytesOf(codes, hash);
    const scaleBytes = await bytesOf(scales, hash);
    const values = new Float32Array(this.outputs * this.#numGroups);
    if (!toFloat32(scaleBytes, scales.info.dtype, values))
      throw invalid(`${shown(scales)} holds NaN or infinity; only finite scales are supported.`);
    this.#loaded = {
      words: wordsOf(codeBytes),
      scales: this.#byOutput(values),
      zeros: this.#zerosOf(zeros, zeros && wordsOf(await bytesOf(zeros, hash))),
      groupOf: await this.#groups(groups, hash),
    };
    return this.#loaded;
  }

  /** [groups, outputs] of GPTQ and AWQ -> [outputs, groups]. */
  #byOutput(values: Float32Array): Float32Array {
    if (this.#layout.kind === 'rows') return values;
    const n = this.#numGroups;
    return values.map((_, at) => values[(at % n) * this.outputs + Math.floor(at / n)]!);
  }

  /** [outputs, groups]. */
  #zerosOf(tensor: PackedTensor | null, words: Uint32Array | null): Int32Array {
    const { kind, bits, lessOne } = this.#layout;
    const { outputs } = this;
    const n = this.#numGroups;
    const zeros = new Int32Array(outputs * n);
    if (!words) return zeros.fill(2 ** (bits - 1));
    const per = 32 / bits;
    const mask = 2 ** bits - 1;
    for (let o = 0; o < outputs; o++) {
      const place = bits * (kind === 'awq' ? AWQ_PLACES[o % per]! : o % per);
      for (let g = 0; g < n; g++) {
        const at = Math.floor(o / per);
        const word = kind === 'rows' ? at * n + g : g * Math.ceil(outputs / per) + at;
        const zero = (words[word]! >>> place) & mask;
        // Programs disagree about what follows: 0, or 2 to the bits.
        if (lessOne && zero === mask)
          throw invalid(
            `${shown(tensor!)} holds the zero ${mask}, which programs read differently: choose another file.`,
          );
        zeros[o * n + g] = zero + (lessOne ? 1 : 0);
      }
    }
    return zeros;
  }

  async #groups(tensor: PackedTensor | null, hash?: Hash): Promise<Int32Array> {
    const { groupSize } = this.#layout;
    const consecutive = Int32Array.from({ length: this.inputs }, (_, i) => Math.floor(i / (groupSize ?? this.inputs)));
    if (!tensor) return consecutive;
    const words = wordsOf(await bytesOf(tensor, hash));
    const step = tensor.info.dtype === 'I64' ? 2 : 1;
    const groups = Int32Array.from({ length: this.inputs }, (_, i) => words[i * step]! | 0);
    // compressed-tensors writes -1 where the order does not count.
    if (this.#layout.kind === 'rows' && groups.includes(-1)) return consecutive;
    const sizes = new Map<number, number>();
    for (const group of groups) sizes.set(group, (sizes.get(group) ?? 0) + 1);
    const isWhole = groups.every((group) => group >= 0 && group < this.#numGroups);
    if (!isWhole || (this.#layout.kind === 'rows' && [...sizes.values()].some((size) => size !== groupSize)))
      throw invalid(
        `${shown(tensor)} does not give each input one of ${this.#numGroups} groups: download the file again.`,
      );
    return groups;
  }
}

function shown({ file, info }: PackedTensor): string {
  return `${file.name}: tensor ${JSON.stringify(info.name)}`;
}

function check(tensor: PackedTensor, types: readonly string[], shape: readonly number[]): void {
  const { dtype, shape: found } = tensor.info;
  if (!types.includes(dtype) || found.join() !== shape.join())
    throw invalid(
      `${shown(tensor)} is ${dtype} [${found.join(', ')}]; quantization_config in config.json asks for ` +
        `${types.join(' or ')} [${shape.join(', ')}].`,
    );
}

async function bytesOf({ file, info }: PackedTensor, hash?: Hash): Promise<Uint8Array> {
  const bytes = new Uint8Array(info.shape.reduce((a, b) => a * b, BYTES_PER_ELEMENT[info.dtype]!));
  await readExactly(file, bytes, info.start);
  hash?.update(bytes);
  return bytes;
}

function wordsOf(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.buffer, 0, bytes.length / 4);
}
