/** Random int8 rows for tests of the codecs, and their float values. */
import { RopeTable } from '../../../engine/model/runtime/rope.ts';
import type { CodecShape } from '../../../engine/kv/approx/codecs/codecFormat.ts';
import { type KvRows, newKvRows } from '../../../engine/kv/kvRows.ts';
import { seededRandom } from '../engine/workload.ts';

export const rope = (headSize: number): RopeTable => new RopeTable({ type: 'default', theta: 10_000 }, headSize);

/** Rows in the graph's format: the largest code of each row is 127. Each channel has its own mean and spread. */
export function randomRows(shape: CodecShape, numTokens: number, seed: number, offset = 1): KvRows {
  const random = seededRandom(seed);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const rows = newKvRows({ ...shape, kv: 'int8' }, numTokens);
  const { headSize } = shape;
  for (let head = 0; head < shape.numLayers * shape.kvHeads; head++) {
    for (const side of ['keys', 'values'] as const) {
      const means = Array.from({ length: headSize }, () => offset * normal());
      const spreads = Array.from({ length: headSize }, () => Math.exp(normal()));
      for (let t = 0; t < numTokens; t++) {
        const row = means.map((mean, d) => mean + spreads[d]! * normal());
        const scale = Math.max(...row.map(Math.abs)) / 127;
        rows[side === 'keys' ? 'keyScales' : 'valueScales'][head * numTokens + t] = scale;
        for (let d = 0; d < headSize; d++) {
          const at = side === 'keys' ? (head * headSize + d) * numTokens + t : (head * numTokens + t) * headSize + d;
          rows[side][at] = Math.round(row[d]! / scale);
        }
      }
    }
  }
  return rows;
}

/** K and V of one token and head as floats, [headSize] each. */
export function tokenFloats(
  { headSize }: CodecShape,
  rows: KvRows,
  head: number,
  t: number,
): { keys: number[]; values: number[] } {
  const n = rows.numTokens;
  return {
    keys: Array.from(
      { length: headSize },
      (_, d) => rows.keys[(head * headSize + d) * n + t]! * rows.keyScales[head * n + t]!,
    ),
    values: Array.from(
      { length: headSize },
      (_, d) => rows.values[(head * n + t) * headSize + d]! * rows.valueScales[head * n + t]!,
    ),
  };
}

/** Square root of the squared error divided by the sum of squares, for K and V of tokens [from, to). */
export function relativeError(
  shape: CodecShape,
  rows: KvRows,
  other: KvRows,
  from = 0,
  to = rows.numTokens,
): { keys: number; values: number } {
  const sums = { keys: [0, 0], values: [0, 0] };
  for (let head = 0; head < shape.numLayers * shape.kvHeads; head++) {
    for (let t = from; t < to; t++) {
      const a = tokenFloats(shape, rows, head, t);
      const b = tokenFloats(shape, other, head, t);
      for (const side of ['keys', 'values'] as const) {
        a[side].forEach((value, d) => {
          sums[side][0]! += (value - b[side][d]!) ** 2;
          sums[side][1]! += value ** 2;
        });
      }
    }
  }
  const ratio = ([error, all]: number[]): number => (all! > 0 ? Math.sqrt(error! / all!) : 0);
  return { keys: ratio(sums.keys), values: ratio(sums.values) };
}
