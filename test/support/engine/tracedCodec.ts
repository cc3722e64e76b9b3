/**
 * A codec that remembers the rows that it makes. It does not code such rows again. The fake runner uses it to recognise
 * coded rows, so that its chain continues through changed rows.
 */
import type { RunPlace } from '../../../engine/kv/approx/codecs/codecFormat.ts';
import { KvCodec } from '../../../engine/kv/approx/codecs/kvCodec.ts';
import { codecNamed } from '../../../engine/kv/approx/codecs/registry.ts';
import type { KvRows, KvShape } from '../../../engine/kv/kvRows.ts';
import { rope } from '../kv/codecRows.ts';

/** Coded rows by their contents. `tokenId` and `hash` belong to the row that the fake runner had written. */
export class CodedRows {
  readonly made = new Map<string, { tokenId: number; hash: number }>();
}

/** The contents of row i. */
export function contentOf(
  { numLayers, kvHeads, headSize }: KvShape,
  { numTokens: n, keys, values, keyScales, valueScales }: KvRows,
  i: number,
): string {
  const cells = new Float32Array(numLayers * kvHeads * (2 * headSize + 2));
  let next = 0;
  for (let h = 0; h < numLayers * kvHeads; h++) {
    for (let d = 0; d < headSize; d++) {
      cells[next++] = keys[(h * headSize + d) * n + i]!;
      cells[next++] = values[(h * n + i) * headSize + d]!;
    }
    cells[next++] = keyScales[h * n + i] ?? Number.NaN;
    cells[next++] = valueScales[h * n + i] ?? Number.NaN;
  }
  return Buffer.from(cells.buffer).toString('latin1');
}

class TracedCodec extends KvCodec {
  readonly #shape: KvShape;
  readonly #coded: CodedRows;

  constructor(name: string, shape: KvShape, coded: CodedRows) {
    const rotation = rope(shape.headSize);
    super(codecNamed(name, shape, rotation).format, shape, rotation);
    this.#shape = shape;
    this.#coded = coded;
  }

  override encode(rows: KvRows, place: RunPlace): Uint8Array {
    const encoded = super.encode(rows, place);
    const decoded = this.decode(encoded, place.positions).rows;
    const { made } = this.#coded;
    const [from, to] = this.codedTokens(rows.numTokens, place);
    for (let i = from; i < to; i++)
      if (made.has(contentOf(this.#shape, rows, i)))
        throw new Error(`The row at ${place.startIndex + i} is coded a second time, with ${this.name}.`);
    for (let i = from; i < to; i++) {
      const byte = (at: number): number => rows.keys[at * rows.numTokens + i]! & 255;
      made.set(contentOf(this.#shape, decoded, i), {
        tokenId: byte(0) | (byte(1) << 8),
        hash: byte(4) | (byte(5) << 8) | (byte(6) << 16) | (byte(7) << 24),
      });
    }
    return encoded;
  }
}

/** @param coded the rows that all traced codecs have made. */
export function tracedCodecs(names: readonly string[], shape: KvShape, coded: CodedRows): KvCodec[] {
  return names.map((name) => new TracedCodec(name, shape, coded));
}
