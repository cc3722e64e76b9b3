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
