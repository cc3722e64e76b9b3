/**
 * Reads the header of a GGUF file (versions 2 and 3, little-endian): metadata, and names, types and places of tensors.
 * Every length is checked against the file before memory is taken. Does not know what keys and tensors mean.
 */
import { type OpenFile, invalid, refuseLfsPointer, unsupported } from '../modelFolder.ts';
import type { TensorInfo } from '../safetensors.ts';
import { readExactly } from '../tensorFiles.ts';
import { ggmlType, otherTypeName, SUPPORTED_TYPES } from './ggmlTypes.ts';

/** The largest known header, with 201,000 tokens and 447,000 merges, has 12 MB. */
const MAX_HEADER_BYTES = 32 * 2 ** 20;
const FIRST_READ_BYTES = 2 ** 20;
/** Keys, and tensors of a file. Real files have less than 100 and 2,000. */
const MAX_ENTRIES = 65_536;
const MAX_NAME_BYTES = 65_535;
/** Of a list that is kept. The longest known one has 447,000 merges. */
const MAX_LIST = 2 ** 19;
/** Of a text. Templates have less than 64 kB. */
const MAX_TEXT_BYTES = 2 ** 20;
const MAX_DIMENSIONS = 4;
const MAX_ALIGNMENT = 2 ** 16;
const AGAIN = 'download the file again';

/** Types of metadata values: the bytes of a number. */
const NUMBER_BYTES: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
};
const TEXT = 8;
const ARRAY = 9;

export type MetaValue = number | boolean | string | readonly number[] | readonly boolean[] | readonly string[];
export type Metadata = ReadonlyMap<string, MetaValue>;

export interface GgufHeader {
  readonly metadata: Metadata;
  /** By their names in the file. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
}

/** Thrown when the bytes that have been read end inside a value. */
class NeedsMore extends Error {}

/** `wanted`: keys whose lists are kept. The others are skipped. */
export async function readGgufHeader(file: OpenFile, wanted: ReadonlySet<string>): Promise<GgufHeader> {
  const reader = new HeaderReader(file, wanted);
  for (let size = FIRST_READ_BYTES; ; size *= 4) {
    const most = Math.min(size, file.size, MAX_HEADER_BYTES);
    await reader.extend(most);
    try {
      return reader.read();
    } catch (error) {
      if (!(error instanceof NeedsMore)) throw error;
    }
    if (most === file.size) throw invalid(`${file.name} ends inside its header: ${AGAIN}.`);
    if (most === MAX_HEADER_BYTES)
      throw invalid(
        `${file.name}: the header has more than ${MAX_HEADER_BYTES} bytes, which is not a header of a model.`,
      );
  }
}

class HeaderReader {
  readonly #file: OpenFile;
  readonly #wanted: ReadonlySet<string>;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  /** Where the entry begins that is read again when there are more bytes. */
  #entry = 0;
  #counts: { tensors: number; keys: number } | null = null;
  readonly #metadata = new Map<string, MetaValue>();
  readonly #found = new Map<string, { info: Omit<TensorInfo, 'start' | 'end'>; offset: number; bytes: number }>();
  #keysRead = 0;

  constructor(file: OpenFile, wanted: ReadonlySet<string>) {
    this.#file = file;
    this.#wanted = wanted;
  }

  /** Reads the file up to `size`. */
  async extend(size: number): Promise<void> {
    const bytes = Buffer.alloc(size);
    this.#bytes.copy(bytes);
    await readExactly(this.#file, bytes.subarray(this.#bytes.length), this.#bytes.length);
    this.#bytes = bytes;
  }

  read(): GgufHeader {
    this.#at = this.#entry;
    this.#counts ??= this.#start();
    const { keys, tensors } = this.#counts;
    for (this.#entry = this.#at; this.#keysRead < keys; this.#keysRead++, this.#entry = this.#at) this.#pair();
    for (; this.#found.size < tensors; this.#entry = this.#at) this.#tensor();
    return { metadata: this.#metadata, tensors: this.#placed() };
  }

  #invalid(problem: string): Error {
    return invalid(`${this.#file.name}${problem}: ${AGAIN}.`);
  }

  #start(): { tensors: number; keys: number } {
    const { name, size } = this.#file;
    const magic = this.#bytes.toString('latin1', 0, 4);
    if (magic !== 'GGUF') {
      refuseLfsPointer(name, this.#bytes.toString('latin1', 0, 1025));
      throw this.#invalid(size < 4 ? ` has ${size} bytes` : ' does not begin as a GGUF file');
    }
    this.#at = 4;
    const version = this.#uint32();
    if (version !== 0 && (version & 0xffff) === 0)
      throw unsupported(`${name} is a big-endian GGUF file; only little-endian ones are supported.`);
    if (version !== 2 && version !== 3)
      throw unsupported(`${name}: the GGUF version is ${version}; versions 2 and 3 are supported.`);
    const [tensors, keys] = [this.#uint64(), this.#uint64()];
    for (const [what, count] of [
      ['tensors', tensors],
      ['metadata entries', keys],
    ] as const)
      if (count > MAX_ENTRIES)
        throw this.#invalid(`: the header names ${count} ${what}; at most ${MAX_ENTRIES} are supported`);
    return { tensors, keys };
  }

  #pair(): void {
    const key = this.#text(MAX_NAME_BYTES, 'a metadata key');
    const type = this.#uint32();
    const value = type === ARRAY ? this.#array(key) : this.#value(type, key);
    if (this.#metadata.has(key)) throw this.#invalid(`: ${shown(key)} is there twice`);
    this.#metadata.set(key, value);
  }

  #value(type: number, key: string): number | boolean | string {
    return type === TEXT ? this.#text(MAX_TEXT_BYTES, shown(key)) : this.#number(type, key);
  }

  #number(type: number, key: string): number | boolean {
    const bytes = NUMBER_BYTES[type];
    if (bytes === undefined) throw this.#invalid(`: ${shown(key)} has the unknown type ${type}`);
    const at = this.#take(bytes);
    switch (type) {
      case 0:
        return this.#bytes.readUInt8(at);
      case 1:
        return this.#bytes.readInt8(at);
      case 2:
        return this.#bytes.readUInt16LE(at);
      case 3:
        return this.#bytes.readInt16LE(at);
      case 4:
        return this.#bytes.readUInt32LE(at);
      case 5:
        return this.#bytes.readInt32LE(at);
      case 6:
        return this.#bytes.readFloatLE(at);
      case 7:
        return this.#bytes.readUInt8(at) !== 0;
      case 10:
        return Number(this.#bytes.readBigUInt64LE(at));
      case 11:
        return Number(this.#bytes.readBigInt64LE(at));
      default:
        return this.#bytes.readDoubleLE(at);
    }
  }

  /** A list that is not wanted is empty. */
  #array(key: string): MetaValue {
    const type = this.#uint32();
    const count = this.#uint64();
    if (type === ARRAY)
      throw unsupported(`${this.#file.name}: ${shown(key)} is a list of lists, which is not supported.`);
    // A text takes the 8 bytes of its length at least.
    const bytes = type === TEXT ? 8 : NUMBER_BYTES[type];
    if (bytes === undefined) throw this.#invalid(`: ${shown(key)} has entries of the unknown type ${type}`);
    if (count * bytes > this.#file.size - this.#at)
      throw this.#invalid(`: ${shown(key)} has ${count} entries, more than the file can hold`);
    if (count * bytes > this.#bytes.length - this.#at) throw new NeedsMore();
    if (this.#wanted.has(key)) {
      if (count > MAX_LIST)
        throw this.#invalid(`: ${shown(key)} has ${count} entries; at most ${MAX_LIST} are supported`);
      return Array.from({ length: count }, () => this.#value(type, key)) as MetaValue;
    }
    if (type !== TEXT) this.#take(count * bytes);
    else for (let i = 0; i < count; i++) this.#take(this.#length(MAX_TEXT_BYTES, shown(key)));
    return [];
  }

  #tensor(): void {
    const name = this.#text(MAX_NAME_BYTES, 'the name of a tensor');
    const what = `: tensor ${shown(name)}`;
    const dimensions = this.#uint32();
    if (dimensions < 1 || dimensions > MAX_DIMENSIONS)
      throw this.#invalid(`${what} has ${dimensions} dimensions; 1 to ${MAX_DIMENSIONS} are supported`);
    // The dimension of a row comes first.
    const shape = Array.from({ length: dimensions }, () => this.#uint64()).reverse();
    const id = this.#uint32();
    const offset = this.#uint64();
    if (this.#found.has(name)) throw this.#invalid(`${what} is there twice`);
    const type = ggmlType(id);
    if (type === undefined)
      throw unsupported(
        `${this.#file.name}${what} has the type ${otherTypeName(id)}; ${SUPPORTED_TYPES} are supported: ` +
          'choose a file with one of these.',
      );
    if (dimensions === 1 && type.decode !== null)
      throw this.#invalid(`${what} is a vector of the type ${type.name}; vectors have the types F32, F16 and BF16`);
    const width = shape.at(-1)!;
    if (width % type.values !== 0)
      throw this.#invalid(`${what} has rows of ${width} values; ${type.name} needs a multiple of ${type.values}`);
    // The product of a huge shape may exceed 2^53. It still exceeds the size of any file.
    const bytes = shape.reduce((product, size) => product * size, type.bytes / type.values);
    this.#found.set(name, { info: { name, dtype: type.name, shape }, offset, bytes });
  }

  /** The tensors with their places in the file. */
  #placed(): Map<string, TensorInfo> {
    const { name: file, size } = this.#file;
    const alignment = this.#metadata.get('general.alignment') ?? 32;
    if (
      typeof alignment !== 'number' ||
      !(alignment >= 1 && alignment <= MAX_ALIGNMENT) ||
      Math.log2(alignment) % 1 !== 0
    )
      throw this.#invalid(`: general.alignment is no power of two up to ${MAX_ALIGNMENT}`);
    const data = Math.ceil(this.#at / alignment) * alignment;
    const tensors: TensorInfo[] = [];
    for (const { info, offset, bytes } of this.#found.values()) {
      const what = `: tensor ${shown(info.name)}`;
      if (offset % alignment !== 0)
        throw this.#invalid(`${what} has the offset ${offset}, which is no multiple of ${alignment}`);
      const start = data + offset;
      if (!(start + bytes <= size))
        throw invalid(
          `${file}${what} ends at byte ${start + bytes}, but the file has only ${size}; it is cut off: ${AGAIN}.`,
        );
      tensors.push({ ...info, start, end: start + bytes });
    }
    tensors.sort((a, b) => a.start - b.start || a.end - b.end);
    for (let i = 1; i < tensors.length; i++)
      if (tensors[i]!.start < tensors[i - 1]!.end)
        throw this.#invalid(`: tensor ${shown(tensors[i]!.name)} overlaps another tensor`);
    return new Map(tensors.map((tensor) => [tensor.name, tensor]));
  }

  /** Moves on by so many bytes. Returns where they begin. */
  #take(count: number): number {
    if (count > this.#bytes.length - this.#at) throw new NeedsMore();
    this.#at += count;
    return this.#at - count;
  }

  #uint32(): number {
    return this.#bytes.readUInt32LE(this.#take(4));
  }

  #uint64(): number {
    const at = this.#take(8);
    return this.#bytes.readUInt32LE(at) + this.#bytes.readUInt32LE(at + 4) * 2 ** 32;
  }

  /** The length of a text in bytes. */
  #length(most: number, what: string): number {
    const length = this.#uint64();
    if (length > this.#file.size - this.#at)
      throw this.#invalid(`: ${what} has ${length} bytes, more than the rest of the file`);
    if (length > most) throw this.#invalid(`: ${what} has ${length} bytes; at most ${most} are supported`);
    return length;
  }

  #text(most: number, what: string): string {
    const length = this.#length(most, what);
    const at = this.#take(length);
    return this.#bytes.toString('utf8', at, at + length);
  }
}

/** A name of the file in a message. */
function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}
