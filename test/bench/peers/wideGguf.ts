/**
 * Writes a GGUF file again with all tensors in float32, so that llama.cpp computes in float32. Metadata is copied byte by
 * byte. For the small files of the fixtures: reads the whole file at once.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fromBlocks, ggmlType, hasBlocks } from '../../../engine/model/load/gguf/ggmlTypes.ts';
import { halfTable } from '../../../engine/model/load/safetensors.ts';

const ALIGNMENT = 32;
const F32 = 0;
const STRING = 8;
const ARRAY = 9;
/** Bytes of the other types of metadata, by their numbers. */
const SIZES: readonly number[] = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];

interface Tensor {
  name: Buffer;
  shape: number[];
  type: number;
  offset: number;
}

/** @returns the types of the tensors in the old file. */
export function writeWide(from: string, to: string): Set<string> {
  const file = readFileSync(from);
  let at = 24;
  const take = (length: number): Buffer => {
    at += length;
    return file.subarray(at - length, at);
  };
  const uint32 = (): number => take(4).readUInt32LE();
  const uint64 = (): number => Number(take(8).readBigUInt64LE());
  const text = (): Buffer => take(uint64());
  const skip = (type: number): void => {
    if (type === STRING) text();
    else if (type === ARRAY) {
      const [of, length] = [uint32(), uint64()];
      for (let i = 0; i < length; i++) skip(of);
    } else take(SIZES[type]!);
  };
  const numTensors = Number(file.readBigUInt64LE(8));
  let alignment = ALIGNMENT;
  for (let left = Number(file.readBigUInt64LE(16)); left > 0; left--) {
    const key = text().toString();
    const type = uint32();
    if (key === 'general.alignment') alignment = file.readUInt32LE(at);
    skip(type);
  }
  const metadata = file.subarray(0, at);
  const tensors = Array.from({ length: numTensors }, (): Tensor => {
    const name = text();
    const shape = Array.from({ length: uint32() }, uint64);
    return { name, shape, type: uint32(), offset: uint64() };
  });
  const start = Math.ceil(at / alignment) * alignment;
  const infos: Buffer[] = [];
  const parts: Buffer[] = [];
  let offset = 0;
  for (const { name, shape, type, offset: old } of tensors) {
    const values = floatsOf(
      file,
      start + old,
      type,
      shape.reduce((a, b) => a * b, 1),
    );
    infos.push(uint64Bytes(name.length), name, uint32Bytes(shape.length), ...shape.map(uint64Bytes));
    infos.push(uint32Bytes(F32), uint64Bytes(offset));
    const padding = Buffer.alloc(-values.byteLength & (alignment - 1));
    parts.push(Buffer.from(values.buffer, values.byteOffset, values.byteLength), padding);
    offset += values.byteLength + padding.length;
  }
  const header = Buffer.concat([metadata, ...infos]);
  const padding = Buffer.alloc(-header.length & (alignment - 1));
  writeFileSync(to, Buffer.concat([header, padding, ...parts]));
  return new Set(tensors.map(({ type }) => ggmlType(type)!.name));
}

function floatsOf(file: Buffer, at: number, type: number, length: number): Float32Array {
  const { name, values, bytes } = ggmlType(type)!;
  const raw = new Uint8Array(file.subarray(at, at + (length / values) * bytes));
  const out = new Float32Array(length);
  if (hasBlocks(name)) fromBlocks(raw, name, out);
  else if (name === 'F32') out.set(new Float32Array(raw.buffer));
  else {
    const codes = new Uint16Array(raw.buffer);
    const halves = halfTable();
    const bits = new Uint32Array(out.buffer);
    for (let i = 0; i < length; i++)
      if (name === 'F16') out[i] = halves[codes[i]!]!;
      else bits[i] = codes[i]! << 16;
  }
  return out;
}

function uint32Bytes(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64Bytes(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
