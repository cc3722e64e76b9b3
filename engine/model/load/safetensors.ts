/**
 * The safetensors files of a model folder: header validation as strict as the reference library's, shards by the index
 * file, and rows of one tensor at a time as float32. Matrices may be stored as compressed-tensors' int8: NAME holds codes
 * (I8, [rows, width]), NAME_scale one scale a row ([rows, 1]), and x = code * scale. Does not know what the tensors mean.
 */
import { type Hash, createHash } from 'node:crypto';
import { RequestError } from '../../protocol/errors.ts';
import { type ModelFolder, type OpenFile, invalid, reasonOf, unsupported } from './modelFolder.ts';

const SINGLE = 'model.safetensors';
const INDEX = 'model.safetensors.index.json';
/** The reference library's own limit. */
const MAX_HEADER_BYTES = 100_000_000;
const BYTES_PER_ELEMENT: Readonly<Record<string, number>> = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E5M2: 1,
  F8_E4M3: 1,
  F8_E8M0: 1,
  I16: 2,
  U16: 2,
  F16: 2,
  BF16: 2,
  I32: 4,
  U32: 4,
  F32: 4,
  F64: 8,
  I64: 8,
  U64: 8,
  C64: 8,
};

export interface TensorInfo {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Bytes from the start of the file. */
  readonly start: number;
  readonly end: number;
}

const FLOATS: readonly string[] = ['F32', 'F16', 'BF16'];

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Length of the JSON header that the file's first 8 bytes announce, checked against the file's size. */
export function headerLength(prefix: Uint8Array, file: string, fileSize: number): number {
  if (prefix.length < 8 || fileSize < 8)
    throw invalid(`${file} has ${fileSize} bytes; a safetensors file starts with an 8-byte header length.`);
  const length = new DataView(prefix.buffer, prefix.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(fileSize - 8))
    throw invalid(
      `${file}: the header length is ${length} bytes, but the file has only ${fileSize}: download it again.`,
    );
  if (length > BigInt(MAX_HEADER_BYTES))
    throw invalid(`${file}: the header length is ${length} bytes; at most ${MAX_HEADER_BYTES} are supported.`);
  return Number(length);
}

/** Tensors of one file. header: the JSON bytes after the length. */
export function parseHeader(header: Uint8Array, file: string, fileSize: number): Map<string, TensorInfo> {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(header));
  } catch {
    throw invalid(`${file}: the header is not valid JSON.`);
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw invalid(`${file}: the header must be a JSON object.`);
  const dataStart = 8 + header.length;
  const dataSize = fileSize - dataStart;
  const tensors: TensorInfo[] = [];
  for (const [name, entry] of Object.entries(json)) {
    if (name === '__metadata__') continue;
    const what = `${file}: tensor ${JSON.stringify(name.slice(0, 200))}`;
    if (typeof entry !== 'object' || entry === null)
      throw invalid(`${what} must be a JSON object with dtype, shape and data_offsets.`);
    const { dtype, shape, data_offsets: offsets } = entry as Record<string, unknown>;
    const elementBytes =
      typeof dtype === 'string' && Object.hasOwn(BYTES_PER_ELEMENT, dtype) ? BYTES_PER_ELEMENT[dtype] : undefined;
    if (elementBytes === undefined)
      throw unsupported(
        `${what} has the dtype ${(JSON.stringify(dtype) ?? 'undefined').slice(0, 40)}; F32, F16 and BF16 are supported.`,
      );
    if (!Array.isArray(shape) || shape.length > 8 || !shape.every(isSize))
      throw invalid(`${what} has a shape that is not a list of at most 8 sizes.`);
    if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isSize))
      throw invalid(`${what} has data_offsets that are not two byte offsets.`);
    const [begin, end] = offsets as [number, number];
    if (end > dataSize)
      throw invalid(
        `${what} ends at byte ${end} of the data section, which has only ${Math.max(0, dataSize)}; the file is cut off or its header is wrong: download it again.`,
      );
    // Sizes of a huge shape may exceed 2^53; they then differ from any real byte count all the same.
    const bytes = shape.reduce((product: number, size: number) => product * size, elementBytes);
    if (begin > end || bytes !== end - begin)
      throw invalid(
        `${what} has the shape [${shape.join(', ')}] and dtype ${String(dtype)}, which is not the size of its data_offsets [${begin}, ${end}].`,
      );
    tensors.push({
      name,
      dtype: dtype as string,
      shape: shape as number[],
      start: dataStart + begin,
      end: dataStart + end,
    });
  }
  tensors.sort((a, b) => a.start - b.start || a.end - b.end);
  let position = dataStart;
  for (const tensor of tensors) {
    if (tensor.start !== position)
      throw invalid(
        `${file}: tensor ${JSON.stringify(tensor.name)} ${tensor.start < position ? 'overlaps another tensor' : 'leaves a gap before it'} in the data section.`,
      );
    position = tensor.end;
  }
  if (position !== fileSize) throw invalid(`${file} has ${fileSize - position} bytes that belong to no tensor.`);
  return new Map(tensors.map((t) => [t.name, t]));
}

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

interface Shard {
  readonly file: OpenFile;
  readonly header: Uint8Array;
  readonly tensors: Map<string, TensorInfo>;
}

async function openShard(folder: ModelFolder, name: string): Promise<Shard | null> {
  const file = await folder.openFile(name);
  if (!file) return null;
  try {
    const prefix = new Uint8Array(Math.min(8, file.size));
    await readExactly(file, prefix, 0);
    const header = new Uint8Array(headerLength(prefix, name, file.size));
    await readExactly(file, header, 8);
    return { file, header, tensors: parseHeader(header, name, file.size) };
  } catch (error) {
    await file.handle.close();
    throw error;
  }
}

export class Weights {
  private readonly shards: Map<string, Shard>;
  private readonly owners: ReadonlyMap<string, Shard>;
  private scratch: Uint8Array = new Uint8Array(0);

  private constructor(shards: Map<string, Shard>, owners: ReadonlyMap<string, Shard>) {
    this.shards = shards;
    this.owners = owners;
  }

  /** Opens model.safetensors, or the shards that model.safetensors.index.json names. Close it when done. */
  static async open(folder: ModelFolder): Promise<Weights> {
    const shards = new Map<string, Shard>();
    const owners = new Map<string, Shard>();
    try {
      const single = await openShard(folder, SINGLE);
      if (single) {
        shards.set(SINGLE, single);
        for (const name of single.tensors.keys()) owners.set(name, single);
        return new Weights(shards, owners);
      }
      const index = await folder.readJson(INDEX);
      if (!index)
        throw invalid(`${SINGLE} is missing, and so is ${INDEX}; only weights in safetensors files are supported.`);
      const map = index.value.weight_map;
      if (typeof map !== 'object' || map === null || Array.isArray(map))
        throw invalid(`${INDEX}: weight_map is missing; it must map tensor names to files.`);
      for (const [tensor, name] of Object.entries(map)) {
        if (typeof name !== 'string')
          throw invalid(`${INDEX}: weight_map names no file for ${JSON.stringify(tensor.slice(0, 200))}.`);
        let shard = shards.get(name);
        if (!shard) {
          const opened = await openShard(folder, name);
          if (!opened) throw invalid(`${name.slice(0, 200)} is missing, although ${INDEX} names it.`);
          shard = opened;
          shards.set(name, shard);
        }
        if (!shard.tensors.has(tensor))
          throw invalid(
            `${name}: tensor ${JSON.stringify(tensor.slice(0, 200))} is missing, although ${INDEX} places it there.`,
          );
        owners.set(tensor, shard);
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

  /**
   * @param int8 whether a matrix may be stored as codes with scales, which are checked then, but for their values.
   * @throws RequestError if the tensor is missing, misshapen or of an unsupported type.
   */
  check(name: string, shape: readonly number[], int8 = false): void {
    const { file, info } = this.find(name, 'is missing');
    const what = `${file.name}: tensor ${JSON.stringify(name)}`;
    const hasCodes = info.dtype === 'I8' && int8 && shape.length === 2;
    if (!FLOATS.includes(info.dtype) && !hasCodes)
      throw unsupported(
        `${what} has the dtype ${info.dtype}; F32, F16 and BF16 are supported${info.dtype === 'I8' ? ', and I8 for matrices if config.json has a quantization_config' : ''}.`,
      );
    if (info.shape.join() !== shape.join())
      throw invalid(`${what} has the shape [${info.shape.join(', ')}]; config.json asks for [${shape.join(', ')}].`);
    if (!hasCodes) return;
    if (this.has(`${name}_zero_point`))
      throw unsupported(
        `${what} has zero points (${JSON.stringify(`${name}_zero_point`)}); of 8-bit weights those with a symmetric scale a row are supported: quantise the model so.`,
      );
    const scale = this.find(
      `${name}_scale`,
      `is missing, the scales of the 8-bit ${JSON.stringify(name)}: download the model again`,
    );
    const whatScale = `${scale.file.name}: tensor ${JSON.stringify(scale.info.name)}`;
    if (!FLOATS.includes(scale.info.dtype))
      throw unsupported(`${whatScale} has the dtype ${scale.info.dtype}; F32, F16 and BF16 are supported for scales.`);
    if (scale.info.shape.join() !== `${shape[0]},1`)
      throw unsupported(
        `${whatScale} has the shape [${scale.info.shape.join(', ')}]; of 8-bit weights those with one scale a row ([${shape[0]}, 1]) are supported: quantise the model so.`,
      );
  }

  /** @throws RequestError that ends in `missing` if there is no such tensor. */
  private find(name: string, missing: string): { file: OpenFile; info: TensorInfo } {
    const shard = this.owners.get(name);
    if (!shard)
      throw invalid(`${this.files.length === 1 ? this.files[0] : INDEX}: tensor ${JSON.stringify(name)} ${missing}.`);
    return { file: shard.file, info: shard.tensors.get(name)! };
  }

  /** What identifies the files without reading the tensors: names, sizes, modification times and headers. */
  fingerprint(hash: Hash): void {
    for (const { file, header } of this.shards.values())
      hash.update(`${file.name}|${file.size}|${file.mtimeMs}|${header.length}|`).update(header);
  }

  /**
   * Rows first .. first+count-1 of a checked tensor as float32, [count, rest]; a vector is one row. Valid until the
   * next call with the same `out`. @param hash takes the raw bytes, those of a matrix's scales behind its codes'.
   * @throws RequestError on NaN or infinity, and on scales that are not positive.
   */
  async rows(name: string, first: number, count: number, out: Float32Array, hash?: Hash): Promise<Float32Array> {
    const { file, info } = this.find(name, 'is missing');
    const numRows = info.shape.length < 2 ? 1 : info.shape[0]!;
    const rowBytes = (info.end - info.start) / numRows;
    const bytes = rowBytes * count;
    if (this.scratch.length < bytes) this.scratch = new Uint8Array(bytes);
    const raw = this.scratch.subarray(0, bytes);
    await readExactly(file, raw, info.start + first * rowBytes);
    hash?.update(raw);
    const result = out.subarray(0, bytes / BYTES_PER_ELEMENT[info.dtype]!);
    if (info.dtype === 'I8') fromCodes(raw, await this.scales(`${name}_scale`, first, count, hash), result);
    else if (!toFloat32(raw, info.dtype, result))
      throw invalid(
        `${file.name}: tensor ${JSON.stringify(name)} holds NaN or infinity; only finite weights are supported.`,
      );
    return result;
  }

  /** Entries first .. first+count-1 of a checked tensor [rows, 1]. */
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
        `${file.name}: tensor ${JSON.stringify(name)} holds ${scales[bad]} for row ${first + bad}; a scale must be positive and 127 times it finite: download the model again, or quantise it so.`,
      );
    return scales;
  }

  /** Whether two tensors of the same shape hold the same numbers. */
  async equal(a: string, b: string): Promise<boolean> {
    const digest = async (name: string) => {
      const { shape } = this.owners.get(name)!.tensors.get(name)!;
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

/** About 4 MB of float32 at a time. */
export function rowsPerRead(width: number): number {
  return Math.max(1, Math.floor(2 ** 20 / Math.max(1, width)));
}

/**
 * 8-bit codes [scales.length, width] -> out, code * scale. The code -128 counts as -127. The engine's own codes end there, so
 * quantising such a row anew would move all of its codes; and the format's writers take the largest weight / 127.5 for the
 * scale, so what became -128 was -127.5, to which -127 is as near. Measured on the built-in model as that library stores it, where a
 * quarter of the rows have a -128, mean KL divergence from bfloat16 over random tokens: 0.0018 with -128, with -127 as well, 0.0023 quantised anew.
 */
export function fromCodes(raw: Uint8Array, scales: Float32Array, out: Float32Array): void {
  const codes = new Int8Array(raw.buffer, raw.byteOffset, raw.length);
  const width = codes.length / scales.length;
  for (let r = 0; r < scales.length; r++)
    for (let i = r * width, end = i + width; i < end; i++) out[i] = Math.max(-127, codes[i]!) * scales[r]!;
}

/** Little-endian raw bytes -> out. False if one of the numbers is not finite. */
export function toFloat32(raw: Uint8Array, dtype: string, out: Float32Array): boolean {
  // Finite times 0 is 0; NaN and infinity times 0 are NaN, and a NaN stays in the sum.
  let check = 0;
  if (dtype === 'F32') {
    new Uint8Array(out.buffer, out.byteOffset, out.byteLength).set(raw);
    for (let i = 0; i < out.length; i++) check += out[i]! * 0;
    return check === 0;
  }
  const halves =
    raw.byteOffset % 2 === 0
      ? new Uint16Array(raw.buffer, raw.byteOffset, out.length)
      : new Uint16Array(raw.slice().buffer);
  if (dtype === 'BF16') {
    const bits = new Uint32Array(out.buffer, out.byteOffset, out.length);
    for (let i = 0; i < out.length; i++) bits[i] = halves[i]! << 16;
  } else {
    const table = halfTable();
    for (let i = 0; i < out.length; i++) out[i] = table[halves[i]!]!;
  }
  for (let i = 0; i < out.length; i++) check += out[i]! * 0;
  return check === 0;
}

let halves: Float32Array | null = null;

/** float16 bits -> float32, all 65,536 of them. */
function halfTable(): Float32Array {
  if (halves) return halves;
  halves = new Float32Array(65_536);
  for (let bits = 0; bits < 65_536; bits++) {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const value =
      exponent === 31
        ? fraction
          ? Number.NaN
          : Number.POSITIVE_INFINITY
        : exponent === 0
          ? fraction * 2 ** -24
          : (1024 + fraction) * 2 ** (exponent - 25);
    halves[bits] = bits & 0x8000 ? -value : value;
  }
  return halves;
}
