/**
 * The header of an encoded run, 32 bytes, little endian: magic "KVR1", format id u16, flags u16 (0), layers u32, kvHeads
 * u16, headSize u16, tokens u32, position of the first token u32, tokens kept exactly at the beginning u16, 0 u16, and at the end u32.
 */
import { type CodecShape, type ExactTokens, MalformedRun } from './codecFormat.ts';

export const HEADER_BYTES = 32;

/** "KVR1". */
const MAGIC = 0x3152564b;
/** No context is longer (see hfConfig). Positions beyond it are damage, and would size a table of cosines. */
const MOST_TOKENS = 65_536;

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
  if (header.first + header.last > header.numTokens || header.startIndex + header.numTokens > MOST_TOKENS)
    throw new MalformedRun('its counts of tokens contradict each other');
  return header;
}
