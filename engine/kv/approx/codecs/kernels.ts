/**
 * Loads the codecs' inner loops: WebAssembly with SIMD, compiled from kernels/ into kernelBytes.ts by `npm run
 * kernels`. Does not check addresses and counts.
 */
import { KERNEL_BYTES } from './kernelBytes.ts';

/*
 * Each thread has one instance, made on first use, with one memory that callers lay out. Nothing in it is kept after a
 * call of a codec. It holds one layer of the longest run so far and never shrinks.
 */

/** All addresses are bytes. The kernels' own comments say what is there. */
export interface Kernels {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  rowsToFloats(codes: number, scales: number, rows: number, width: number, x: number): void;
  floatsToRows(x: number, rows: number, width: number, codes: number, scales: number): void;
  channelsToFloats(
    codes: number,
    scales: number,
    kvHeads: number,
    headSize: number,
    all: number,
    n: number,
    x: number,
  ): void;
  floatsToChannels(
    x: number,
    kvHeads: number,
    headSize: number,
    n: number,
    codes: number,
    scales: number,
    all: number,
    inverses: number,
  ): void;
  transpose(from: number, fromStride: number, rows: number, columns: number, to: number, toStride: number): void;
  hadamard(x: number, numValues: number, unit: number, block: number): void;
  nvfp4Encode(x: number, rows: number, width: number, out: number, largest: number): void;
  nvfp4Decode(from: number, rows: number, width: number, x: number): number;
  kiviEncode(x: number, kvHeads: number, rows: number, width: number, group: number, out: number, bounds: number): void;
  kiviDecode(from: number, kvHeads: number, rows: number, width: number, group: number, x: number): void;
  gradedEncode(
    x: number,
    kvHeads: number,
    rows: number,
    width: number,
    byToken: boolean,
    bits: number,
    out: number,
    spare: number,
  ): void;
  gradedDecode(
    from: number,
    kvHeads: number,
    rows: number,
    width: number,
    byToken: boolean,
    bits: number,
    x: number,
    spare: number,
  ): void;
  rotate(
    x: number,
    kvHeads: number,
    headSize: number,
    n: number,
    cos: number,
    sin: number,
    stride: number,
    direction: number,
  ): void;
}

/** Kernels read and write up to so many bytes beyond an area. */
export const SLACK = 128;
const PAGE = 65_536;

let instance: Kernels | null = null;
let bytes = new Uint8Array(0);

export function kernels(): Kernels {
  instance ??= new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(KERNEL_BYTES, 'base64')))
    .exports as unknown as Kernels;
  return instance;
}

/** Bytes of this thread's memory now; 0 before the first use. */
export function kernelBytes(): number {
  return instance?.memory.buffer.byteLength ?? 0;
}

/** Bytes of that memory when at least so many are used. */
export function kernelBytesWith(least: number): number {
  return Math.ceil(least / PAGE) * PAGE;
}

/** The kernels' memory, with at least so many bytes. Invalid once it has grown. */
export function kernelMemory(least: number): Uint8Array {
  const { memory } = kernels();
  const missing = least - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / PAGE));
  if (bytes.buffer !== memory.buffer) bytes = new Uint8Array(memory.buffer);
  return bytes;
}

/** Address behind an area, for the next one. */
export function areaEnd(at: number, length: number): number {
  return (at + length + SLACK + 15) & ~15;
}
