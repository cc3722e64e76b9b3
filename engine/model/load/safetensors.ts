/**
 * The header of a safetensors file: tensor names, types, shapes and places. Validated as strictly as the reference
 * library
 * does. Does not read tensors.
 */
import { invalid, unsupported } from './modelFolder.ts';

/** The reference library's own limit. */
const MAX_HEADER_BYTES = 100_000_000;
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

/**
 * Length in bytes of the JSON header, as the first 8 bytes of the file announce it. Checked against the size of the
 * file.
 */
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

/** Tensors of one file. `header`: the JSON bytes after the length. */
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
    // The size of a huge shape may exceed 2^53. It still differs from any real byte count.
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
