/**
 * One layer of a run in the kernels' memory: its int8 rows, and buffers for the floats and bytes of one block. Converts
 * rows to floats and back, and applies the two rotations. Does not know formats.
 */
import type { KvRows } from '../../kvRows.ts';
import type { CodecShape, Layout, Rotation } from './codecFormat.ts';
import { areaEnd, kernelMemory, kernels, SLACK } from './kernels.ts';

type Row = 'keys' | 'values';

/** Scratch bytes per value of a block, for what kernels keep: bounds, bins, transposed rows. */
const SPARE_PER_VALUE = 8;
const MIN_SPARE = 65_536;

/** The addresses for a run of `all` tokens with blocks of up to `n` tokens and `bytes` bytes; keys come first. */
function addresses({ kvHeads, headSize }: CodecShape, all: number, n: number, bytes: number) {
  const keyScales = areaEnd(0, kvHeads * headSize * all);
  const values = areaEnd(keyScales, 4 * kvHeads * all);
  const valueScales = areaEnd(values, kvHeads * headSize * all);
  const x = areaEnd(valueScales, 4 * kvHeads * all);
  const block = areaEnd(x, 4 * kvHeads * headSize * n);
  const cos = areaEnd(block, bytes);
  const sin = areaEnd(cos, 2 * headSize * all);
  const spare = areaEnd(sin, 2 * headSize * all);
  return {
    keyScales,
    values,
    valueScales,
    x,
    bytes: block,
    cos,
    sin,
    spare,
    end: spare + Math.max(MIN_SPARE, SPARE_PER_VALUE * kvHeads * headSize * n) + SLACK,
  };
}

/** Bytes of the kernels' memory that LayerBuffers take. */
export function layerBufferBytes(shape: CodecShape, all: number, n: number, bytes: number): number {
  return addresses(shape, all, n, bytes).end;
}

export class LayerBuffers {
  /**
   * Addresses of a block's floats, of its bytes, and of scratch memory: SPARE_PER_VALUE bytes per value, at least
   * MIN_SPARE.
   */
  readonly x: number;
  readonly bytes: number;
  readonly spare: number;
  readonly memory: Uint8Array;
  /** Addresses of the angles of the rotary embedding. */
  readonly turns: Turns;
  readonly #shape: CodecShape;
  /** Tokens of the run. */
  readonly #all: number;
  readonly #rows: Record<Row, number>;
  readonly #scales: Record<Row, number>;

  /** For a run of `all` tokens with blocks of up to `n` tokens and `bytes` bytes. */
  constructor(shape: CodecShape, all: number, n: number, bytes: number) {
    this.#shape = shape;
    this.#all = all;
    const at = addresses(shape, all, n, bytes);
    this.#rows = { keys: 0, values: at.values };
    this.#scales = { keys: at.keyScales, values: at.valueScales };
    this.x = at.x;
    this.bytes = at.bytes;
    this.turns = { cos: at.cos, sin: at.sin, n: all };
    this.spare = at.spare;
    this.memory = kernelMemory(at.end);
  }

  /** Copies layer `l` of the rows into the buffers. */
  load(rows: KvRows, l: number): void {
    this.#eachArray(rows, l, (array, at) => this.memory.set(array, at));
  }

  /** Copies the buffers to layer `l` of the rows. */
  save(rows: KvRows, l: number): void {
    this.#eachArray(rows, l, (array, at) => array.set(this.memory.subarray(at, at + array.length)));
  }

  #eachArray(
    { keys, values, keyScales, valueScales }: KvRows,
    l: number,
    move: (array: Uint8Array, at: number) => void,
  ): void {
    const heads = this.#shape.kvHeads * this.#all;
    const length = heads * this.#shape.headSize;
    move(new Uint8Array(keys.buffer, keys.byteOffset + l * length, length), this.#rows.keys);
    move(new Uint8Array(values.buffer, values.byteOffset + l * length, length), this.#rows.values);
    move(new Uint8Array(keyScales.buffer, keyScales.byteOffset + 4 * l * heads, 4 * heads), this.#scales.keys);
    move(new Uint8Array(valueScales.buffer, valueScales.byteOffset + 4 * l * heads, 4 * heads), this.#scales.values);
  }

  /** Converts tokens [from, from + n) to floats. */
  toFloats(row: Row, from: number, n: number, layout: Layout): void {
    const { kvHeads, headSize } = this.#shape;
    const { channelsToFloats, rowsToFloats, transpose } = kernels();
    const all = this.#all;
    const scales = this.#scales[row] + 4 * from;
    if (layout === 'byChannel') {
      channelsToFloats(this.#rows[row] + from, scales, kvHeads, headSize, all, n, this.x);
      return;
    }
    for (let h = 0; h < kvHeads; h++) {
      let tokens = this.#rows.values + (h * all + from) * headSize;
      if (row === 'keys') {
        tokens = this.spare;
        transpose(this.#rows.keys + h * headSize * all + from, all, headSize, n, tokens, headSize);
      }
      rowsToFloats(tokens, scales + 4 * h * all, n, headSize, this.x + 4 * h * n * headSize);
    }
  }

  /**
   * Converts floats to tokens [from, from + n), as the step graph quantises rows: symmetric, per token and head, the
   * largest value is 127.
   */
  toRows(row: Row, from: number, n: number, layout: Layout): void {
    const { kvHeads, headSize } = this.#shape;
    const { floatsToChannels, floatsToRows, transpose } = kernels();
    const all = this.#all;
    const scales = this.#scales[row] + 4 * from;
    if (layout === 'byChannel') {
      floatsToChannels(this.x, kvHeads, headSize, n, this.#rows[row] + from, scales, all, this.spare);
      return;
    }
    for (let h = 0; h < kvHeads; h++) {
      const tokens = row === 'keys' ? this.spare : this.#rows.values + (h * all + from) * headSize;
      floatsToRows(this.x + 4 * h * n * headSize, n, headSize, tokens, scales + 4 * h * all);
      if (row === 'keys') transpose(tokens, headSize, n, headSize, this.#rows.keys + h * headSize * all + from, all);
    }
  }
}

/** Addresses of the cosines and sines of a run's n tokens, [half, n] each. */
export interface Turns {
  readonly cos: number;
  readonly sin: number;
  readonly n: number;
}

/** Writes the angles of tokens at these positions, or from this position on. */
export function writeTurns({ cos, sin, n }: Turns, rotation: Rotation, places: Int32Array | number): void {
  const positions = typeof places === 'number' ? Int32Array.from({ length: n }, (_, t) => places + t) : places;
  rotation.ensure(Math.max(0, ...positions) + 1);
  const { half } = rotation;
  const { buffer } = kernels().memory;
  for (const [angles, at] of [
    [rotation.cos, cos],
    [rotation.sin, sin],
  ] as const) {
    const turned = new Float32Array(buffer, at, half * n);
    for (let i = 0; i < half; i++) for (let t = 0; t < n; t++) turned[i * n + t] = angles[positions[t]! * half + i]!;
  }
}

/**
 * Rotary embedding of keys x [kvHeads, headSize, n], of the run's tokens from `from` on, in place. `direction`: -1
 * removes it, 1 applies it. Without it the values of a channel are almost equal from token to token, which per-channel
 * codes need. Both together lose one float32 rounding.
 */
export function rotateKeys(
  x: number,
  kvHeads: number,
  headSize: number,
  n: number,
  turns: Turns,
  from: number,
  direction: 1 | -1,
): void {
  kernels().rotate(x, kvHeads, headSize, n, turns.cos + 4 * from, turns.sin + 4 * from, turns.n, direction);
}

/** Bytes of the kernels' memory that so many values take. */
export function hadamardBytes(numValues: number): number {
  return 4 * numValues + SLACK;
}

/**
 * Fast Walsh-Hadamard transform along the head, in place; x as in `layout`. Normalised, so it is its own inverse and
 * keeps dot products. It spreads what is large in a few channels over all of them. A head size that is not a power of
 * two is transformed in blocks of its largest power of two.
 */
export function hadamard(x: Float32Array, kvHeads: number, headSize: number, n: number, layout: Layout): void {
  const memory = kernelMemory(hadamardBytes(x.length));
  memory.set(new Uint8Array(x.buffer, x.byteOffset, x.byteLength));
  hadamardAt(0, kvHeads, headSize, n, layout);
  x.set(new Float32Array(memory.buffer, 0, x.length));
}

/** The same for floats at an address of the kernels' memory. */
export function hadamardAt(x: number, kvHeads: number, headSize: number, n: number, layout: Layout): void {
  // By token the values of a vector are adjacent. By channel n values of a channel are adjacent, and are transformed
  // together.
  kernels().hadamard(x, kvHeads * headSize * n, layout === 'byToken' ? 1 : n, headSize & -headSize);
}
