/**
 * The format of an encoded run: header, exact tokens, and the interface of number formats, which turn the floats of one
 * side (K or V) of one layer into bytes. Does not encode whole runs; KvCodec does.
 */
import type { KvRows, KvShape } from '../../kvRows.ts';
import { kernels } from './kernels.ts';

/** Shape of int8 rows. */
export type CodecShape = Pick<KvShape, 'numLayers' | 'kvHeads' | 'headSize'>;

/**
 * Order of the floats of one side of one layer, for n tokens: `byChannel` [kvHeads, headSize, n], `byToken` [kvHeads,
 * n, headSize].
 */
export type Layout = 'byChannel' | 'byToken';

/**
 * Pure: the same floats give the same bytes, and the number of bytes depends on sizes only. Floats and bytes are at
 * addresses of the kernels' memory (kernels.ts). At `spare` is scratch memory (see LayerBuffers).
 */
export interface SideFormat {
  readonly layout: Layout;
  bytes(kvHeads: number, headSize: number, n: number): number;
  /** Writes bytes(..) bytes at `out`. May use `x` as scratch. */
  encode(x: number, kvHeads: number, headSize: number, n: number, out: number, spare: number): void;
  /** @throws MalformedRun when the bytes cannot have been written by `encode`. */
  decode(from: number, kvHeads: number, headSize: number, n: number, x: number, spare: number): void;
}

/** All formats code V by token. */
export interface TokenFormat extends SideFormat {
  readonly layout: 'byToken';
}

/** The formats of K and V of a layer. */
export interface LayerSides {
  readonly keys: SideFormat;
  readonly values: TokenFormat;
}

export interface RunFormat {
  readonly name: string;
  /** Stored in the header. Never reused for another format. */
  readonly id: number;
  /** The formats of the tokens that are not exact. Null: all tokens are exact. */
  readonly sides: LayerSides | null;
  /**
   * Finer formats for the layers that the model needs most: a fifth of the layers for each, the neediest first. None
   * when left out.
   */
  readonly finer?: readonly LayerSides[];
  /** Most tokens that are coded together and share scales and levels. */
  readonly blockTokens: number;
  /**
   * Fewer tokens at the end of a run stay exact, because the shared values of a block would take more bytes than they
   * save.
   */
  readonly leastTokens: number;
  /** Tokens at positions 0 .. sinkTokens-1 stay exact, because all later tokens attend to them. */
  readonly sinkTokens: number;
  /** So many of the last tokens of the context stay exact. */
  readonly recentTokens: number;
  /** Whether a Hadamard matrix rotates K and V along the head, which spreads outliers over all channels. */
  readonly hadamard: boolean;
  /** Whether K is coded as it was before the rotary embedding. */
  readonly unrotated: boolean;
}

/** Cosines and sines of the rotary embedding, [positions, half] each, for pairs (i, i + half). */
export interface Rotation {
  readonly half: number;
  readonly cos: Float32Array;
  readonly sin: Float32Array;
  /** Makes rows 0 .. numPositions-1 available. May replace the arrays. */
  ensure(numPositions: number): void;
}

/** Where a run is in its context. */
export interface RunPlace {
  /** Position of its first token. */
  readonly startIndex: number;
  /** End of the context that the run belongs to. Left out: no token counts as recent. */
  readonly contextEnd?: number;
  /** Positions of its rows, ascending, where some tokens have no rows. */
  readonly positions?: Int32Array | null;
}

/** How many tokens at the beginning and at the end of a run stay exact. */
export interface ExactTokens {
  readonly first: number;
  readonly last: number;
}

export interface DecodedRun extends RunPlace {
  readonly rows: KvRows;
}

/** Bytes are not an encoded run of this format and shape: cut short, of another format, or damaged. */
export class MalformedRun extends Error {
  constructor(reason: string) {
    super(`These bytes are no encoded K/V run: ${reason}.`);
    this.name = 'MalformedRun';
  }
}

/**
 * Returns a scale that was read. Codes are at most `mostCode`. @throws MalformedRun when a coded value would not be
 * finite.
 */
export function finite(scale: number, mostCode: number): number {
  if (!(scale >= 0 && scale * mostCode < 1e38)) throw new MalformedRun(`it has a scale of ${scale}`);
  return scale;
}

/** Checks `count` float32 scales in the kernels' memory. */
export function finiteScales(at: number, count: number, mostCode: number): void {
  const view = new DataView(kernels().memory.buffer, at);
  for (let i = 0; i < count; i++) finite(view.getFloat32(4 * i, true), mostCode);
}

export function exactBytes({ numLayers, kvHeads, headSize }: CodecShape, n: number): number {
  return numLayers * kvHeads * n * (2 * headSize + 8);
}

const bytesOf = (a: Int8Array | Float32Array): Uint8Array => new Uint8Array(a.buffer, a.byteOffset, a.byteLength);

/**
 * Exact tokens are stored as in the pool: per layer and head K [headSize, n] int8, V [n, headSize] int8, and a float32
 * scale per token for each, little endian. Calls `move` for each piece of tokens [from, from + n) of `rows`, in the
 * order of the bytes.
 */
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

/** Writes tokens [from, from + n) of `rows` at out[at]. */
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
 * Reads what `writeExact` wrote. @throws MalformedRun when a scale is not finite: in the pool it would make all
 * sequences NaN, even where it is masked.
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
 * kvHeads u16, headSize u16, tokens u32, position of the first token u32, tokens kept exactly at the beginning u16, 0
 * u16, and at the end u32.
 */

export const HEADER_BYTES = 32;

/** "KVR1". */
const MAGIC = 0x3152564b;
/** No context is longer (see hfConfig). A larger position is damage, and would make the table of cosines huge. */
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
