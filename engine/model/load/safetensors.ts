/**
 * The safetensors format: the header (names, types, shapes and offsets of tensors) and raw values as float32. Checks
 * headers as strictly as the reference library. Pure functions; reads no files.
 */
import { JsonTooLarge, parseBoundedJson } from './boundedJson.ts';
import { invalid, unsupported } from './modelFolder.ts';

/** The header of a model with 1,024 layers has about 3 MB. The reference library reads up to 100 MB. */
const MAX_HEADER_BYTES = 16 * 2 ** 20;
/** Ten times those of a model with 126 layers whose matrices have scales. */
const MAX_TENSORS = 65_536;
export const BYTES_PER_ELEMENT: Readonly<Record<string, number>> = {
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

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Length of the JSON header in bytes, from the first 8 bytes of the file. Checked against the size of the file. */
export function headerLength(prefix: Uint8Array, file: string, fileSize: number): number {
  if (prefix.length < 8 || fileSize < 8)
    throw invalid(
      `${file} has ${fileSize} bytes; a safetensors file starts with an 8-byte header length: download it again.`,
    );
  const length = new DataView(prefix.buffer, prefix.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(fileSize - 8))
    throw invalid(
      `${file}: the header length is ${length} bytes, but the file has only ${fileSize}: download it again.`,
    );
  if (length > BigInt(MAX_HEADER_BYTES))
    throw invalid(`${file}: the header length is ${length} bytes; at most ${MAX_HEADER_BYTES} are supported.`);
  return Number(length);
}

/** The tensors of one file, by name. `header`: the JSON bytes after the length. */
export function parseHeader(header: Uint8Array, file: string, fileSize: number): Map<string, TensorInfo> {
  let json: unknown;
  try {
    json = parseBoundedJson(new TextDecoder('utf-8', { fatal: true }).decode(header));
  } catch (error) {
    const what = error instanceof JsonTooLarge ? error.message : 'is not valid JSON';
    throw invalid(`${file}: the header ${what}: download the file again.`);
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw invalid(`${file}: the header must be a JSON object.`);
  const entries = Object.entries(json);
  if (entries.length > MAX_TENSORS)
    throw invalid(`${file}: the header names ${entries.length} tensors; at most ${MAX_TENSORS} are supported.`);
  const dataStart = 8 + header.length;
  const dataSize = fileSize - dataStart;
  const tensors: TensorInfo[] = [];
  for (const [name, entry] of entries) {
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
        `${what} ends at byte ${end} of the data section, which has only ${Math.max(0, dataSize)}; ` +
          'the file is cut off or its header is wrong: download it again.',
      );
    // The size of a huge shape may exceed 2^53. It still differs from any real byte count.
    const bytes = shape.reduce((product: number, size: number) => product * size, elementBytes);
    if (begin > end || bytes !== end - begin)
      throw invalid(
        `${what} has the shape [${shape.join(', ')}] and dtype ${String(dtype)}, ` +
          `which is not the size of its data_offsets [${begin}, ${end}].`,
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
        `${file}: tensor ${JSON.stringify(tensor.name)} ` +
          `${tensor.start < position ? 'overlaps another tensor' : 'leaves a gap before it'} in the data section.`,
      );
    position = tensor.end;
  }
  if (position !== fileSize) throw invalid(`${file} has ${fileSize - position} bytes that belong to no tensor.`);
  return new Map(tensors.map((t) => [t.name, t]));
}

/**
 * Decodes 8-bit codes [scales.length, width] into out: code * scale. The code -128 is read as -127, because the codes
 * of the engine end there, and requantising would change all codes of the row. The scale of the library is the largest
 * weight / 127.5, so -128 stands for -127.5, and -127 is as near to that as -128.
 * Mean KL divergence from bfloat16 over random tokens of the built-in model, a quarter of whose rows have a -128:
 * 0.0018 with -128 and with -127, 0.0023 after requantising.
 */
export function fromCodes(raw: Uint8Array, scales: Float32Array, out: Float32Array): void {
  const codes = new Int8Array(raw.buffer, raw.byteOffset, raw.length);
  const width = codes.length / scales.length;
  for (let r = 0; r < scales.length; r++)
    for (let i = r * width, end = i + width; i < end; i++) out[i] = Math.max(-127, codes[i]!) * scales[r]!;
}

/** Converts little-endian F32, F16 or BF16 bytes into `out`. Returns false if a number is not finite. */
export function toFloat32(raw: Uint8Array, dtype: string, out: Float32Array): boolean {
  // A finite number times 0 is 0. NaN and infinity times 0 are NaN, and the sum keeps a NaN.
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

/** The float32 value of each of the 65,536 float16 bit patterns. */
export function halfTable(): Float32Array {
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
