/**
 * Opens the safetensors files of a model folder, with shards by the index file, and reads rows of tensors as float32.
 * Does not know what the tensors mean.
 */
import { type Hash, createHash } from 'node:crypto';
import { RequestError, reasonOf } from '../../protocol/errors.ts';
import { fromCodes, toFloat32, BYTES_PER_ELEMENT, headerLength, parseHeader, type TensorInfo } from './safetensors.ts';
import { type ModelFolder, type OpenFile, invalid, refuseLfsPointer, unsupported } from './modelFolder.ts';
import { CHOOSE_UNQUANTISED, otherContent, otherQuantisation } from './otherFormats.ts';

const SINGLE = 'model.safetensors';
const INDEX = 'model.safetensors.index.json';
/** Most weight files. Each stays open. */
const MAX_SHARDS = 512;
/** A pointer of Git LFS has about 130 bytes. */
const MAX_POINTER_BYTES = 1024;
/** What torch.compile puts into the names of tensors. */
const COMPILED = /(^|\.)_orig_mod\./g;
const PACKED = '_packed';
const FLOATS: readonly string[] = ['F32', 'F16', 'BF16'];

async function readExactly(file: OpenFile, target: Uint8Array, position: number): Promise<void> {
  let done = 0;
  while (done < target.length) {
    let count: number;
    try {
      count = (await file.handle.read(target, done, target.length - done, position + done)).bytesRead;
    } catch (error) {
      throw invalid(`${file.name} cannot be read: ${reasonOf(error)}.`);
    }
    if (count === 0) throw invalid(`${file.name} became shorter while it was read.`);
    done += count;
  }
}

/** A tensor and its file. Its name may be another one (see COMPILED and unpacked). */
interface Owned {
  readonly file: OpenFile;
  readonly info: TensorInfo;
  /** Four codes of a row are an int32, the first one in its low byte, each with 128 added to it. */
  readonly packed?: boolean;
}

/**
 * A tensor under the name by which it is asked for. The format pack-quantized of compressed-tensors stores 8-bit codes
 * as NAME_packed, int32 [rows, width / 4] (`pack_to_int32` there): the same bytes as int8 [rows, width], but for 128.
 */
function unpacked({ file, tensors }: Shard, stored: string): [name: string, owned: Owned] {
  const info = tensors.get(stored)!;
  const name = stored.replace(COMPILED, '$1');
  const [rows, width] = info.shape;
  if (info.dtype !== 'I32' || info.shape.length !== 2 || !name.endsWith(PACKED)) return [name, { file, info }];
  const codes = { ...info, dtype: 'I8', shape: [rows!, 4 * width!] };
  return [name.slice(0, -PACKED.length), { file, info: codes, packed: true }];
}

interface Shard {
  readonly file: OpenFile;
  readonly header: Uint8Array;
  readonly tensors: Map<string, TensorInfo>;
}

async function openShard(folder: ModelFolder, name: string): Promise<Shard | null> {
  const file = await folder.openFile(name);
  if (!file) return null;
  try {
    const start = new Uint8Array(Math.min(file.size <= MAX_POINTER_BYTES ? MAX_POINTER_BYTES : 8, file.size));
    await readExactly(file, start, 0);
    refuseLfsPointer(name, new TextDecoder('latin1').decode(start));
    const prefix = start.subarray(0, 8);
    const header = new Uint8Array(headerLength(prefix, name, file.size));
    await readExactly(file, header, 8);
    return { file, header, tensors: parseHeader(header, name, file.size) };
  } catch (error) {
    await file.handle.close();
    throw error;
  }
}

/**
 * Matrices may be stored as int8 of compressed-tensors: NAME holds codes (I8, [rows, width]), NAME_scale one scale per
 * row ([rows, 1]), and x = code * scale. The codes may be packed (see unpacked).
 */
export class Weights {
  private readonly shards: Map<string, Shard>;
  private readonly owners: ReadonlyMap<string, Owned>;
  private scratch: Uint8Array = new Uint8Array(0);

  private constructor(shards: Map<string, Shard>, owners: ReadonlyMap<string, Owned>) {
    this.shards = shards;
    this.owners = owners;
  }

  /** Opens model.safetensors, or the shards that model.safetensors.index.json names. Close it after use. */
  static async open(folder: ModelFolder): Promise<Weights> {
    const shards = new Map<string, Shard>();
    const owners = new Map<string, Owned>();
    const own = (shard: Shard, stored: string): void => {
      const [name, owned] = unpacked(shard, stored);
      if (owners.has(name))
        throw invalid(`${shard.file.name}: tensor ${JSON.stringify(name.slice(0, 200))} is there under two names.`);
      owners.set(name, owned);
    };
    try {
      const single = await openShard(folder, SINGLE);
      if (single) {
        shards.set(SINGLE, single);
        for (const name of single.tensors.keys()) own(single, name);
        return new Weights(shards, owners);
      }
      const index = await folder.readJson(INDEX);
      if (!index) throw invalid(await withoutWeights(folder));
      const map = index.value.weight_map;
      if (typeof map !== 'object' || map === null || Array.isArray(map))
        throw invalid(`${INDEX}: weight_map is missing; it must map tensor names to files.`);
      for (const [tensor, name] of Object.entries(map)) {
        if (typeof name !== 'string')
          throw invalid(`${INDEX}: weight_map names no file for ${JSON.stringify(tensor.slice(0, 200))}.`);
        let shard = shards.get(name);
        if (!shard) {
          if (shards.size >= MAX_SHARDS)
            throw invalid(`${INDEX}: weight_map names more than ${MAX_SHARDS} files: download it again.`);
          const opened = await openShard(folder, name);
          if (!opened) throw invalid(`${name.slice(0, 200)} is missing, although ${INDEX} names it: download it.`);
          shard = opened;
          shards.set(name, shard);
        }
        if (!shard.tensors.has(tensor))
          throw invalid(
            `${name}: tensor ${JSON.stringify(tensor.slice(0, 200))} is missing, although ${INDEX} places it there.`,
          );
        own(shard, tensor);
      }
      return new Weights(shards, owners);
    } catch (error) {
      for (const shard of shards.values()) await shard.file.handle.close();
      throw error;
    }
  }

  get files(): string[] {
    return [...this.shards.keys()];
  }

  has(name: string): boolean {
    return this.owners.has(name);
  }

  /** @throws RequestError `modelUnsupported` that names the way in which the tensors are quantised or adapted */
  refuseOtherForms(): void {
    const form = otherQuantisation(this.owners.keys());
    if (form === 'LoRA')
      throw unsupported(
        `${this.files.join(', ')} holds LoRA tensors: merge the adapter into its base model (merge_and_unload in peft), ` +
          'and choose the folder of the result.',
      );
    if (form !== null)
      throw unsupported(
        `${this.files[0]}: the weights are quantised by ${form}, which is not supported: ${CHOOSE_UNQUANTISED}.`,
      );
  }

  /**
   * Checks a tensor. `int8`: a matrix may be stored as codes with scales. Then type and shape of the scales are
   * checked.
   * @throws RequestError if the tensor is missing or has another shape or an unsupported type
   */
  check(name: string, shape: readonly number[], int8 = false): void {
    const { file, info } = this.find(name, 'is missing, although config.json asks for it: download the model again');
    const what = `${file.name}: tensor ${JSON.stringify(name)}`;
    const hasCodes = info.dtype === 'I8' && int8 && shape.length === 2;
    if (!FLOATS.includes(info.dtype) && !hasCodes)
      throw unsupported(
        `${what} has the dtype ${info.dtype}; F32, F16 and BF16 are supported` +
          `${info.dtype === 'I8' ? ', and I8 for matrices if config.json has a quantization_config' : ''}.`,
      );
    if (info.shape.join() !== shape.join())
      throw invalid(`${what} has the shape [${info.shape.join(', ')}]; config.json asks for [${shape.join(', ')}].`);
    if (!hasCodes) return;
    if (this.has(`${name}_zero_point`))
      throw unsupported(
        `${what} has zero points (${JSON.stringify(`${name}_zero_point`)}); ` +
          'quantise the model with one symmetric scale per row, or choose another one.',
      );
    const scale = this.find(
      `${name}_scale`,
      `with the scales of the 8-bit ${JSON.stringify(name)} is missing: download the model again`,
    );
    const whatScale = `${scale.file.name}: tensor ${JSON.stringify(scale.info.name)}`;
    if (!FLOATS.includes(scale.info.dtype))
      throw unsupported(`${whatScale} has the dtype ${scale.info.dtype}; F32, F16 and BF16 are supported for scales.`);
    if (scale.info.shape.join() !== `${shape[0]},1`)
      throw unsupported(
        `${whatScale} has the shape [${scale.info.shape.join(', ')}]; ` +
          `quantise the model with one scale per row ([${shape[0]}, 1]), or choose another one.`,
      );
  }

  /** @throws RequestError that ends with `missing` if there is no such tensor. */
  private find(name: string, missing: string): Owned {
    const owned = this.owners.get(name);
    if (!owned)
      throw invalid(`${this.files.length === 1 ? this.files[0] : INDEX}: tensor ${JSON.stringify(name)} ${missing}.`);
    return owned;
  }

  /** Hashes names, sizes, modification times and headers of the files. Does not read the tensors. */
  fingerprint(hash: Hash): void {
    for (const { file, header } of this.shards.values())
      hash.update(`${file.name}|${file.size}|${file.mtimeMs}|${header.length}|`).update(header);
  }

  /**
   * Rows first .. first+count-1 of a checked tensor as float32, [count, rest]. A vector is one row. Valid until the
   * next call with the same `out`. `hash` takes the raw bytes of the rows, then those of their scales.
   * @throws RequestError for NaN or infinity, and for scales that are not positive
   */
  async rows(name: string, first: number, count: number, out: Float32Array, hash?: Hash): Promise<Float32Array> {
    const { file, info, packed } = this.find(name, 'is missing');
    const numRows = info.shape.length < 2 ? 1 : info.shape[0]!;
    const rowBytes = (info.end - info.start) / numRows;
    const bytes = rowBytes * count;
    if (this.scratch.length < bytes) this.scratch = new Uint8Array(bytes);
    const raw = this.scratch.subarray(0, bytes);
    await readExactly(file, raw, info.start + first * rowBytes);
    hash?.update(raw);
    if (packed) for (let i = 0; i < bytes; i++) raw[i]! ^= 0x80;
    const result = out.subarray(0, bytes / BYTES_PER_ELEMENT[info.dtype]!);
    if (info.dtype === 'I8') fromCodes(raw, await this.scales(`${name}_scale`, first, count, hash), result);
    else if (!toFloat32(raw, info.dtype, result))
      throw invalid(
        `${file.name}: tensor ${JSON.stringify(name)} holds NaN or infinity; only finite weights are supported.`,
      );
    return result;
  }

  /** Entries first .. first+count-1 of a checked tensor of scales, [rows, 1]. */
  private async scales(name: string, first: number, count: number, hash?: Hash): Promise<Float32Array> {
    const { file, info } = this.find(name, 'is missing');
    const bytes = BYTES_PER_ELEMENT[info.dtype]!;
    const raw = new Uint8Array(count * bytes);
    await readExactly(file, raw, info.start + first * bytes);
    hash?.update(raw);
    const scales = new Float32Array(count);
    toFloat32(raw, info.dtype, scales);
    const bad = scales.findIndex((scale) => !(scale > 0 && Number.isFinite(Math.fround(127 * scale))));
    if (bad >= 0)
      throw invalid(
        `${file.name}: tensor ${JSON.stringify(name)} holds ${scales[bad]} for row ${first + bad}; ` +
          'a scale must be positive, and 127 times the scale finite: download or quantise the model again.',
      );
    return scales;
  }

  /** Whether two tensors of the same shape hold the same numbers. */
  async equal(a: string, b: string): Promise<boolean> {
    const digest = async (name: string) => {
      const { shape } = this.owners.get(name)!.info;
      const width = shape[1] ?? 1;
      const step = rowsPerRead(width);
      const out = new Float32Array(step * width);
      const hash = createHash('sha256');
      for (let r = 0; r < shape[0]!; r += step) {
        const part = await this.rows(name, r, Math.min(step, shape[0]! - r), out);
        hash.update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
      }
      return hash.digest('hex');
    };
    return (await digest(a)) === (await digest(b));
  }

  async close(): Promise<void> {
    this.scratch = new Uint8Array(0);
    for (const shard of this.shards.values()) {
      await shard.file.handle.close().catch((error: unknown) => {
        throw error instanceof RequestError
          ? error
          : invalid(`${shard.file.name} cannot be closed: ${reasonOf(error)}.`);
      });
    }
  }
}

/** Message for a folder without weights: what it holds instead. */
async function withoutWeights(folder: ModelFolder): Promise<string> {
  const other = await otherContent(folder);
  return `${SINGLE} and ${INDEX} are missing; ${other ?? 'only weights in safetensors files are supported'}.`;
}

/** Rows that are read at a time: about 4 MB of float32. */
export function rowsPerRead(width: number): number {
  return Math.max(1, Math.floor(2 ** 20 / Math.max(1, width)));
}
