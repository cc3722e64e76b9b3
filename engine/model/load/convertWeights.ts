/**
 * Writes the weight file of a WeightPlan, one tensor at a time. Peak memory is the largest stored int8 tensor and a few
 * megabytes of source rows. Does not decide layouts.
 */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { keyBiasMatrix } from './keyBias.ts';
import { GROUP, packBlocks4, packRest8, packRows8 } from './packedWeights.ts';
import { type LinearItem, linearBits, type PlanItem } from './planItems.ts';
import {
  BLOCK,
  numBlocks,
  quantiseBlocks4,
  quantiseBlocks8,
  quantiseRows16,
  quantiseToColumns,
  rowScales,
} from './quantise.ts';
import { type Weights, rowsPerRead } from './weights.ts';
import { EMBEDDING, type WeightPlan } from './weightPlan.ts';

/** Multiplies rows of `width` numbers, the first of which is row `first` of its tensor (see RowSource). */
function multiply(values: Float32Array, width: number, factors: readonly number[], first: number): void {
  if (factors.length === 1 && factors[0] === 1) return;
  for (let r = 0; r * width < values.length; r++) {
    const factor = factors[(first + r) % factors.length]!;
    for (let i = r * width; i < (r + 1) * width; i++) values[i]! *= factor;
  }
}

type Scale = (values: Float32Array, n: number) => void;

class Conversion {
  private readonly weights: Weights;
  private readonly file: FileHandle;
  private readonly hash = createHash('sha256');
  private readonly hashed = new Set<string>();
  private readonly onWritten: (bytes: number) => void;
  private buffer = new Float32Array(0);

  constructor(weights: Weights, file: FileHandle, onWritten: (bytes: number) => void) {
    this.weights = weights;
    this.file = file;
    this.onWritten = onWritten;
  }

  digest(): string {
    return this.hash.digest('hex');
  }

  async item(item: PlanItem): Promise<void> {
    switch (item.kind) {
      case 'linear':
        return this.linear(item);
      case 'embedding':
        return this.embedding(item);
      case 'vector':
        return this.vector(item);
      case 'keyBias': {
        const bias = await this.wholeVector(item.tensor, item.weight.dims[1]! * item.weight.dims[2]!);
        return this.write(keyBiasMatrix(bias, item.weight.dims[2]!), item.weight.offset);
      }
    }
  }

  /** Reads the rows of a tensor in parts of about 4 MB. `part` is valid during a call of `use` only. */
  private async eachPart(
    tensor: string,
    rows: number,
    width: number,
    use: (part: Float32Array, first: number, count: number) => Promise<void> | void,
  ): Promise<void> {
    const step = Math.min(rows, rowsPerRead(width));
    if (this.buffer.length < step * width) this.buffer = new Float32Array(step * width);
    // A tied embedding is read twice but hashed once, so that the hash does not depend on the precision.
    const hash = this.hashed.has(tensor) ? undefined : this.hash;
    for (let first = 0; first < rows; first += step) {
      const count = Math.min(step, rows - first);
      await use(await this.weights.rows(tensor, first, count, this.buffer, hash), first, count);
    }
    this.hashed.add(tensor);
  }

  private linear(item: LinearItem): Promise<void> {
    switch (item.form) {
      case 'int8':
        return this.linearInt8(item);
      case 'fine8':
        return this.linearFine8(item);
      case 'blocks4':
      case 'blocks8':
        return this.linearBlocks(item);
      case 'float32':
        return this.linearFloat(item);
      case 'packed8':
      case 'packedFine8':
        return this.linearPacked8(item);
      case 'packed4':
        return this.linearPacked4(item);
    }
  }

  /**
   * Reads the rows of all sources in parts. `row`: of the layer, the first of the part. `scale` multiplies `n` numbers
   * of each row with the factors of the rows.
   */
  private async eachRows(
    { width, sources }: LinearItem,
    use: (part: Float32Array, row: number, count: number, scale: Scale) => Promise<void> | void,
  ): Promise<void> {
    let start = 0;
    for (const { tensor, rows, factors } of sources) {
      const before = start;
      await this.eachPart(tensor, rows, width, (part, first, count) =>
        use(part, before + first, count, (values, n) => multiply(values, n, factors, first)),
      );
      start += rows;
    }
  }

  private async linearPacked8(item: LinearItem): Promise<void> {
    const { form, width, weight, scales } = item;
    const [groups, vectors] = weight.dims as [number, number];
    const codes = new Int8Array(weight.length);
    const allScales = new Float32Array(groups * GROUP);
    await this.eachRows(item, (part, row, count, scale) => {
      const of = (first: number): Float32Array => allScales.subarray(first, first + count);
      rowScales(part, count, width, of(row));
      packRows8(part, count, width, of(row), codes, 4 * vectors, row);
      if (form === 'packedFine8') {
        const rest = row + (groups / 2) * GROUP;
        packRest8(part, count, width, of(row), of(rest), codes, 4 * vectors, row, rest);
        scale(of(rest), 1);
      }
      scale(of(row), 1);
    });
    await this.write(codes, weight.offset);
    await this.write(allScales, scales!.offset);
  }

  private async linearPacked4(item: LinearItem): Promise<void> {
    const { width, weight, scales } = item;
    const blocks = numBlocks(width);
    const codes = new Uint8Array(weight.length);
    const allScales = new Float32Array(scales!.length / 4);
    await this.eachRows(item, (part, row, count, scale) => {
      const partCodes = new Uint8Array((count * blocks * BLOCK) / 2);
      const partScales = new Float32Array(count * blocks);
      quantiseBlocks4(part, count, width, partCodes, partScales);
      scale(partScales, blocks);
      packBlocks4(partCodes, partScales, count, blocks, codes, allScales, row);
    });
    await this.write(codes, weight.offset);
    await this.write(allScales, scales!.offset);
  }

  private async linearInt8(item: LinearItem): Promise<void> {
    const { width, weight, scales } = item;
    const numColumns = weight.dims[1]!;
    const columns = new Int8Array(width * numColumns);
    const columnScales = new Float32Array(numColumns);
    await this.eachRows(item, (part, column, count, scale) => {
      const partScales = columnScales.subarray(column, column + count);
      rowScales(part, count, width, partScales);
      quantiseToColumns(part, count, width, partScales, columns, numColumns, column);
      scale(partScales, 1);
    });
    await this.write(columns, weight.offset);
    await this.write(columnScales, scales!.offset);
  }

  /** What the codes of the weights leave is coded once more, with steps of 1 / 254 of theirs. */
  private async linearFine8(item: LinearItem): Promise<void> {
    const { width, weight, scales } = item;
    const numColumns = weight.dims[1]!;
    const rows = numColumns / 2;
    const columns = new Int8Array(width * numColumns);
    const columnScales = new Float32Array(numColumns);
    await this.eachRows(item, (part, row, count, scale) => {
      const [high, low] = [
        columnScales.subarray(row, row + count),
        columnScales.subarray(rows + row, rows + row + count),
      ];
      rowScales(part, count, width, high);
      quantiseToColumns(part, count, width, high, columns, numColumns, row);
      for (let r = 0; r < count; r++) {
        low[r] = high[r]! / 254;
        for (let i = 0; i < width; i++) part[r * width + i]! -= columns[i * numColumns + row + r]! * high[r]!;
      }
      quantiseToColumns(part, count, width, low, columns, numColumns, rows + row);
      scale(high, 1);
      scale(low, 1);
    });
    await this.write(columns, weight.offset);
    await this.write(columnScales, scales!.offset);
  }

  private async linearBlocks(item: LinearItem): Promise<void> {
    const { width, weight, scales } = item;
    const blocks = numBlocks(width);
    const bytesPerRow = blocks * weight.dims[2]!;
    const quantise = linearBits(weight) === 4 ? quantiseBlocks4 : quantiseBlocks8;
    const allScales = new Float32Array(scales!.length / 4);
    await this.eachRows(item, (part, row, count, scale) => {
      const codes = new Uint8Array(count * bytesPerRow);
      const partScales = allScales.subarray(row * blocks, (row + count) * blocks);
      quantise(part, count, width, codes, partScales);
      scale(partScales, blocks);
      return this.write(codes, weight.offset + row * bytesPerRow);
    });
    await this.write(allScales, scales!.offset);
  }

  private linearFloat(item: LinearItem): Promise<void> {
    return this.eachRows(item, (part, row, _, scale) => {
      scale(part, item.width);
      return this.write(part, item.weight.offset + row * item.width * 4);
    });
  }

  private async embedding({
    width,
    rows,
    tensor,
    factor,
    weight,
    scales,
  }: Extract<PlanItem, { kind: 'embedding' }>): Promise<void> {
    await this.eachPart(tensor, rows, width, async (part, first, count) => {
      if (!scales) {
        multiply(part, width, [factor], first);
        return this.write(part, weight.offset + first * width * 4);
      }
      const partScales = new Float32Array(count);
      const codes = new Int16Array(part.length);
      quantiseRows16(part, count, width, partScales, codes);
      multiply(partScales, 1, [factor], first);
      await this.write(codes, weight.offset + first * width * 2);
      await this.write(partScales, scales.offset + first * 4);
    });
  }

  private async vector({ sources, weight }: Extract<PlanItem, { kind: 'vector' }>): Promise<void> {
    const values = new Float32Array(weight.length / 4);
    let position = 0;
    for (const { tensor, length, plus = 0, factor, repeat } of sources) {
      const source = tensor === null ? new Float32Array(length) : await this.wholeVector(tensor, length);
      for (let r = 0; r < repeat; r++, position += length)
        for (let i = 0; i < length; i++) values[position + i] = (source[i]! + plus) * factor;
    }
    await this.write(values, weight.offset);
  }

  private async wholeVector(tensor: string, length: number): Promise<Float32Array> {
    const result = new Float32Array(length);
    await this.eachPart(tensor, 1, length, (part) => result.set(part));
    return result;
  }

  private async write(data: Float32Array | Int8Array | Int16Array | Uint8Array, offset: number): Promise<void> {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.file.write(
        bytes,
        done,
        Math.min(bytes.length - done, 2 ** 26),
        offset + done,
      );
      done += bytesWritten;
      this.onWritten(bytesWritten);
    }
  }
}

/**
 * `weights` must have been checked against plan.needed. Returns a hash of the tensors, the same for every precision.
 * @throws RequestError for a bad tensor, or an error of the file system
 */
export async function convertWeights(
  weights: Weights,
  plan: WeightPlan,
  file: FileHandle,
  onProgress: (fraction: number) => void,
): Promise<string> {
  let written = 0;
  const conversion = new Conversion(weights, file, (bytes) => {
    written += bytes;
    onProgress(Math.min(1, written / plan.bytes));
  });
  for (const item of plan.items) await conversion.item(item);
  await file.truncate(plan.bytes);
  onProgress(1);
  return conversion.digest();
}

/** Whether the output head is the embedding. A head in the files overrides the config, unless it is a copy. */
export async function isTied(weights: Weights, configTied: boolean, head: string): Promise<boolean> {
  if (!weights.has(head)) return configTied;
  return configTied && (await weights.equal(EMBEDDING, head));
}
