/**
 * The parts of a codec. A format says how the floats of one side (K or V) of one layer become bytes. What all formats
 * share (header,
 * exact tokens, layers, rotation, int8 rows at both ends) is in KvCodec.
 */
import type { KvRows, KvShape } from '../../kvRows.ts';
import { kernels } from './kernels.ts';

/** Of int8 rows; what KvShape says besides is of no concern here. */
export type CodecShape = Pick<KvShape, 'numLayers' | 'kvHeads' | 'headSize'>;

/**
 * Floats of one side of one layer: for n tokens, `byChannel` [kvHeads, headSize, n] or `byToken` [kvHeads, n,
 * headSize].
 */
export type Layout = 'byChannel' | 'byToken';

/**
 * Pure: the same floats give the same bytes. The number of bytes depends on sizes only. Floats and bytes are at
 * addresses of the
 * kernels' memory (kernels.ts); at `spare` there is room for what is kept beside them (layerRoom.ts).
 */
export interface SideFormat {
  readonly layout: Layout;
  bytes(kvHeads: number, headSize: number, n: number): number;
  /** Writes bytes(..) bytes from `out` on. May use `x` as scratch. */
  encode(x: number, kvHeads: number, headSize: number, n: number, out: number, spare: number): void;
  /** @throws MalformedRun when the bytes cannot have been written by `encode`. */
  decode(from: number, kvHeads: number, headSize: number, n: number, x: number, spare: number): void;
}

/** V is coded by token in all formats. */
export interface TokenFormat extends SideFormat {
  readonly layout: 'byToken';
}

/** How K and V of a layer are coded. */
export interface LayerSides {
  readonly keys: SideFormat;
  readonly values: TokenFormat;
}

export interface RunFormat {
  readonly name: string;
  /** In the header; never given to another format. */
  readonly id: number;
  /** How the tokens that are not kept exactly are coded; null: all are kept exactly. */
  readonly sides: LayerSides | null;
  /**
   * The same of those layers that a model needs most, a fifth of them for each of these, the neediest first; of none
   * when left out.
   */
  readonly finer?: readonly LayerSides[];
  /** Tokens that are coded together at most: what scales, levels and outliers are shared by. */
  readonly blockTokens: number;
  /** Fewer tokens than this at the end of a run are kept exactly: what a block shares would outweigh them. */
  readonly leastTokens: number;
  /** Tokens at the positions 0 .. sinkTokens-1 are kept exactly: all later ones attend to them. */
  readonly sinkTokens: number;
  /** The last tokens of the context that are kept exactly. */
  readonly recentTokens: number;
  /** K and V are rotated by a Hadamard matrix along the head, which spreads outliers over it. */
  readonly hadamard: boolean;
  /** K is coded as it was before the rotary embedding. */
  readonly unrotated: boolean;
}

/** Cosines and sines of the rotary embedding, [positions, half] each, for pairs (i, i + half). */
export interface Rotation {
  readonly half: number;
  readonly cos: Float32Array;
  readonly sin: Float32Array;
  /** Makes rows 0 .. numPositions-1 available; may replace the arrays. */
  ensure(numPositions: number): void;
}

/** Where a run stands. */
export interface RunPlace {
  /** Position of its first token. */
  readonly startIndex: number;
  /** Position after the last token of the context that the run belongs to; none: no token counts as recent. */
  readonly contextEnd?: number;
  /** Of its rows, where tokens between them have none: of as many as it has, ascending. */
  readonly positions?: Int32Array | null;
}

/** How many of a run's tokens are kept exactly, at its beginning and at its end. */
export interface ExactTokens {
  readonly first: number;
  readonly last: number;
}

export interface DecodedRun extends RunPlace {
  readonly rows: KvRows;
}

/** Bytes that are no run of this format and shape: cut short, of another format, damaged. */
export class MalformedRun extends Error {
  constructor(reason: string) {
    super(`These bytes are no encoded K/V run: ${reason}.`);
    this.name = 'MalformedRun';
  }
}

/** What may be read back as a scale. */

/**
 * A scale as it was read, whose codes are up to `mostCode`. @throws MalformedRun when what they stand for is not
 * finite.
 */
export function finite(scale: number, mostCode: number): number {
  if (!(scale >= 0 && scale * mostCode < 1e38)) throw new MalformedRun(`it has a scale of ${scale}`);
  return scale;
}

/** As above for each of `count` float32 scales in the kernels' memory. */
export function finiteScales(at: number, count: number, mostCode: number): void {
  const view = new DataView(kernels().memory.buffer, at);
  for (let i = 0; i < count; i++) finite(view.getFloat32(4 * i, true), mostCode);
}

export function exactBytes({ numLayers, kvHeads, headSize }: CodecShape, n: number): number {
  return numLayers * kvHeads * n * (2 * headSize + 8);
}

const bytesOf = (a: Int8Array | Float32Array): Uint8Array => new Uint8Array(a.buffer, a.byteOffset, a.byteLength);

/** Moves the pieces of tokens [from, from + n) of `rows` to or from the bytes, in their order there. */
function eachPiece(
  shape: CodecShape,
  rows: KvRows,
  from: number,
  n: number,
  at: number,
  move: (rows: Uint8Array, start: number, at: number, length: number) => void,
): void {
  const { headSize } = shape;
  const heads = shape.numLayers * shape.kvHeads;
  const all = rows.numTokens;
  const keys = bytesOf(rows.keys);
  const values = bytesOf(rows.values);
  if (n === all) {
    for (const array of [keys, values, bytesOf(rows.keyScales), bytesOf(rows.valueScales)]) {
      move(array, 0, at, array.length);
      at += array.length;
    }
    return;
  }
  for (let row = 0; row < heads * headSize; row++, at += n) move(keys, row * all + from, at, n);
  for (let head = 0; head < heads; head++, at += n * headSize)
    move(values, (head * all + from) * headSize, at, n * headSize);
  for (const scales of [bytesOf(rows.keyScales), bytesOf(rows.valueScales)]) {
    for (let head = 0; head < heads; head++, at += 4 * n) move(scales, 4 * (head * all + from), at, 4 * n);
  }
}

/** Writes tokens [from, from + n) of `rows` to out[at] and on. */
export function writeExact(
  shape: CodecShape,
  rows: KvRows,
  from: number,
  n: number,
  out: Uint8Array,
  at: number,
): void {
  if (n > 0)
    eachPiece(shape, rows, from, n, at, (source, start, target, length) =>
      out.set(source.subarray(start, start + length), target),
    );
}

/**
 * @throws MalformedRun when a scale is not finite: as one of the pool's it would spoil every sequence, masked or not.
 */
export function readExact(
  shape: CodecShape,
  bytes: Uint8Array,
  at: number,
  rows: KvRows,
  from: number,
  n: number,
): void {
  if (n === 0) return;
  eachPiece(shape, rows, from, n, at, (target, start, source, length) =>
    target.set(bytes.subarray(source, source + length), start),
  );
  for (const scales of [rows.keyScales, rows.valueScales]) {
    for (let head = 0; head < scales.length; head += rows.numTokens)
      for (let t = from; t < from + n; t++) finite(scales[head + t]!, 128);
  }
}

/**
 * The header of an encoded run, 32 bytes, little endian: magic "KVR1", format id u16, flags u16 (0), layers u32,
 * kvHeads
 * u16, headSize u16, tokens u32, position of the first token u32, tokens kept exactly at the beginning u16, 0 u16, and
 * at the end u32.
 */

export const HEADER_BYTES = 32;

/** "KVR1". */
const MAGIC = 0x3152564b;
/** No context is longer (see hfConfig). Positions beyond it are damage, and would size a table of cosines. */
const MAX_TOKENS = 65_536;

export interface RunHeader extends ExactTokens {
  readonly numTokens: number;
  readonly startIndex: number;
}

export function writeHeader(out: Uint8Array, formatId: number, shape: CodecShape, header: RunHeader): void {
  const view = new DataView(out.buffer, out.byteOffset, HEADER_BYTES);
  view.setUint32(0, MAGIC, true);
  view.setUint16(4, formatId, true);
  view.setUint16(6, 0, true);
  view.setUint32(8, shape.numLayers, true);
  view.setUint16(12, shape.kvHeads, true);
  view.setUint16(14, shape.headSize, true);
  view.setUint32(16, header.numTokens, true);
  view.setUint32(20, header.startIndex, true);
  view.setUint16(24, header.first, true);
  view.setUint16(26, 0, true);
  view.setUint32(28, header.last, true);
}

/** @throws MalformedRun unless the bytes begin with the header of a run of this format and shape. */
export function readHeader(bytes: Uint8Array, formatId: number, formatName: string, shape: CodecShape): RunHeader {
  if (bytes.length < HEADER_BYTES) throw new MalformedRun(`${bytes.length} bytes are less than a header`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  if (view.getUint32(0, true) !== MAGIC || view.getUint16(6, true) !== 0 || view.getUint16(26, true) !== 0)
    throw new MalformedRun('they have another header');
  if (view.getUint16(4, true) !== formatId) throw new MalformedRun(`the format is not ${formatName}`);
  const sizes = [view.getUint32(8, true), view.getUint16(12, true), view.getUint16(14, true)];
  const expected = [shape.numLayers, shape.kvHeads, shape.headSize];
  if (sizes.some((size, i) => size !== expected[i]))
    throw new MalformedRun(`layers x heads x head size are ${sizes.join(' x ')}, not ${expected.join(' x ')}`);
  const header = {
    numTokens: view.getUint32(16, true),
    startIndex: view.getUint32(20, true),
    first: view.getUint16(24, true),
    last: view.getUint32(28, true),
  };
  if (header.first + header.last > header.numTokens || header.startIndex + header.numTokens > MAX_TOKENS)
    throw new MalformedRun('its counts of tokens contradict each other');
  return header;
}
