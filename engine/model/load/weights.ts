/**
 * Reads rows of the tensors of a model as float32. Does not know what the tensors mean, nor how their files are found.
 */
import { type Hash, createHash } from 'node:crypto';
import { RequestError, reasonOf } from '../../protocol/errors.ts';
import { fromBlocks, hasBlocks } from './gguf/ggmlTypes.ts';
import { GgufModel } from './gguf/ggufModel.ts';
import { asPlanned } from './familyTensors.ts';
import type { ModelConfig } from './hfConfig.ts';
import type { ModelFiles } from './modelFiles.ts';
import { type OpenFile, invalid, unsupported } from './modelFolder.ts';
import { CHOOSE_UNQUANTISED, otherQuantisation } from './otherFormats.ts';
import { BYTES_PER_ELEMENT, fromCodes, toFloat32 } from './safetensors.ts';
import { openSafetensors } from './safetensorsFiles.ts';
import { type Matrix, type OwnedTensor, readExactly, type TensorFiles } from './tensorFiles.ts';

const FLOATS: readonly string[] = ['F32', 'F16', 'BF16'];

/**
 * Matrices may be stored as int8 of compressed-tensors: NAME holds codes (I8, [rows, width]), NAME_scale one scale per
 * row ([rows, 1]), and x = code * scale. The codes may be packed (see unpacked).
 */
export class Weights {
  private opened: TensorFiles;
  private scratch: Uint8Array = new Uint8Array(0);
  /** The one that is in memory. */
  private matrix: Matrix | null = null;
  /** Rows of whole heads. */
  private heads = new Float32Array(0);

  private constructor(opened: TensorFiles) {
    this.opened = opened;
  }

  /** Opens the files with weights. Close it after use. `config`: without it tensors are as they stand in the files. */
  static async open(model: ModelFiles, config?: ModelConfig): Promise<Weights> {
    const opened = model instanceof GgufModel ? await model.openTensors() : await openSafetensors(model);
    const weights = new Weights(opened);
    try {
      if (config) weights.opened = { ...opened, tensors: asPlanned(opened.tensors, config) };
    } catch (error) {
      await weights.close();
      throw error;
    }
    return weights;
  }

  get files(): string[] {
    return this.opened.files.map(({ name }) => name);
  }

  /** The type that holds most of the layers' elements: "Q4_K", "BF16". */
  get mainType(): string {
    const elements = new Map<string, number>();
    for (const [name, { info }] of this.opened.tensors)
      if (name.startsWith('model.layers.'))
        elements.set(info.dtype, (elements.get(info.dtype) ?? 0) + info.shape.reduce((a, b) => a * b, 1));
    return [...elements].sort(([, a], [, b]) => b - a)[0]?.[0] ?? '';
  }

  has(name: string): boolean {
    return this.opened.tensors.has(name);
  }

  /** @throws RequestError `modelUnsupported` that names the way in which the tensors are quantised or adapted */
  refuseOtherForms(): void {
    const form = otherQuantisation(this.opened.tensors.keys());
    if (form === null) return;
    if (form.name === 'LoRA')
      throw unsupported(
        `${this.files.join(', ')} holds LoRA tensors: merge the adapter into its base model (merge_and_unload in peft), ` +
          'and choose the folder of the result.',
      );
    const reason = form.isRead
      ? `but ${this.opened.config} has no quantization_config that describes it: download ${this.opened.config} again, or `
      : 'which is not supported: ';
    throw unsupported(`${this.files[0]}: the weights are quantised by ${form.name}, ${reason}${CHOOSE_UNQUANTISED}.`);
  }

  /** @throws RequestError `modelUnsupported` that names the first tensor which is not among `needed` */
  refuseOthers(needed: ReadonlyMap<string, unknown>): void {
    for (const [name, { file }] of this.opened.tensors)
      if (!needed.has(name))
        throw unsupported(
          `${this.shown(file, name)} has no use in the model that ${this.opened.config} describes, so its answers ` +
            'would be wrong: choose another file.',
        );
  }

  /**
   * Checks a tensor. `int8`: a matrix may be stored as codes with scales. Then type and shape of the scales are
   * checked.
   * @throws RequestError if the tensor is missing or has another shape or an unsupported type
   */
  check(name: string, shape: readonly number[], int8 = false): void {
    const { config } = this.opened;
    const { file, info } = this.find(name, `is missing, although ${config} asks for it: download the model again`);
    const what = this.shown(file, name);
    const hasCodes = info.dtype === 'I8' && int8 && shape.length === 2;
    if (!FLOATS.includes(info.dtype) && !hasBlocks(info.dtype) && !hasCodes)
      throw unsupported(
        `${what} has the dtype ${info.dtype}; F32, F16 and BF16 are supported` +
          `${info.dtype === 'I8' ? ', and I8 for matrices if config.json has a quantization_config' : ''}.`,
      );
    if (info.shape.join() !== shape.join())
      throw invalid(`${what} has the shape [${info.shape.join(', ')}]; ${config} asks for [${shape.join(', ')}].`);
    if (!hasCodes) return;
    if (this.has(`${name}_zero_point`))
      throw unsupported(
        `${what} has zero points (${JSON.stringify(`${name}_zero_point`)}); ` +
          'quantise the model with one symmetric scale per row, or choose another one.',
      );
    const scale = this.find(
      `${name}_scale`,
      `with the scales of the 8-bit ${JSON.stringify(name)} is missing: download the model again`,
    );
    const whatScale = `${scale.file.name}: tensor ${JSON.stringify(scale.info.name)}`;
    if (!FLOATS.includes(scale.info.dtype))
      throw unsupported(`${whatScale} has the dtype ${scale.info.dtype}; F32, F16 and BF16 are supported for scales.`);
    if (scale.info.shape.join() !== `${shape[0]},1`)
      throw unsupported(
        `${whatScale} has the shape [${scale.info.shape.join(', ')}]; ` +
          `quantise the model with one scale per row ([${shape[0]}, 1]), or choose another one.`,
      );
  }

  /** A tensor in a message. */
  private shown(file: OpenFile, name: string): string {
    return `${file.name}: tensor ${JSON.stringify(this.opened.nameInFile(name))}`;
  }

  /** @throws RequestError that ends with `missing` if there is no such tensor. */
  private find(name: string, missing: string): OwnedTensor {
    const owned = this.opened.tensors.get(name);
    if (!owned)
      throw invalid(`${this.opened.index}: tensor ${JSON.stringify(this.opened.nameInFile(name))} ${missing}.`);
    return owned;
  }

  get openFiles(): readonly OpenFile[] {
    return this.opened.files;
  }

  /**
   * Rows first .. first+count-1 of a checked tensor as float32, [count, rest]. A vector is one row. Valid until the
   * next call with the same `out`. `hash` takes the raw bytes of the rows, then those of their scales.
   * @throws RequestError for NaN or infinity, and for scales that are not positive
   */
  async rows(name: string, first: number, count: number, out: Float32Array, hash?: Hash): Promise<Float32Array> {
    const { info, order } = this.find(name, 'is missing');
    if (!order) return this.storedRows(name, first, count, out, hash);
    // Whole heads are read. Entries of a vector are rows here.
    const isVector = info.shape.length < 2;
    const width = info.shape[1] ?? 1;
    const size = order.length;
    const start = isVector ? 0 : first - (first % size);
    const end = isVector ? info.shape[0]! : Math.min(info.shape[0]!, size * Math.ceil((first + count) / size));
    this.heads = this.heads.length < (end - start) * width ? new Float32Array((end - start) * width) : this.heads;
    const heads = await this.storedRows(name, start, isVector ? 1 : end - start, this.heads, hash);
    const numRows = isVector ? end : count;
    for (let r = 0; r < numRows; r++) {
      const inHead = (first + r) % size;
      const from = first + r - inHead + order[inHead]! - start;
      out.set(heads.subarray(from * width, (from + 1) * width), r * width);
    }
    return out.subarray(0, numRows * width);
  }

  /** Rows as they stand in the file. */
  private async storedRows(
    name: string,
    first: number,
    count: number,
    out: Float32Array,
    hash?: Hash,
  ): Promise<Float32Array> {
    const { file, info, packed, matrix, firstRow = 0, shift = 0 } = this.find(name, 'is missing');
    if (matrix) {
      if (this.matrix !== matrix) this.matrix?.release();
      this.matrix = matrix;
      const result = out.subarray(0, count * matrix.inputs);
      await matrix.rows(firstRow + first, count, result, first === 0 ? hash : undefined);
      return result;
    }
    const numRows = info.shape.length < 2 ? 1 : info.shape[0]!;
    const rowBytes = (info.end - info.start) / numRows;
    if (this.scratch.length < rowBytes * count) this.scratch = new Uint8Array(rowBytes * count);
    const raw = this.scratch.subarray(0, rowBytes * count);
    await readExactly(file, raw, info.start + first * rowBytes);
    hash?.update(raw);
    if (packed) for (let i = 0; i < raw.length; i++) raw[i]! ^= 0x80;
    const result = out.subarray(0, (info.shape.reduce((a, b) => a * b, 1) / numRows) * count);
    if (info.dtype === 'I8') fromCodes(raw, await this.scales(`${name}_scale`, first, count, hash), result);
    else if (!(hasBlocks(info.dtype) ? fromBlocks : toFloat32)(raw, info.dtype, result))
      throw invalid(`${this.shown(file, name)} holds NaN or infinity; only finite weights are supported.`);
    if (shift !== 0) for (let i = 0; i < result.length; i++) result[i]! += shift;
    return result;
  }

  /** Entries first .. first+count-1 of a checked tensor of scales, [rows, 1]. */
  private async scales(name: string, first: number, count: number, hash?: Hash): Promise<Float32Array> {
    const { file, info } = this.find(name, 'is missing');
    const bytes = BYTES_PER_ELEMENT[info.dtype]!;
    const raw = new Uint8Array(count * bytes);
    await readExactly(file, raw, info.start + first * bytes);
    hash?.update(raw);
    const scales = new Float32Array(count);
    toFloat32(raw, info.dtype, scales);
    const bad = scales.findIndex((scale) => !(scale > 0 && Number.isFinite(Math.fround(127 * scale))));
    if (bad >= 0)
      throw invalid(
        `${file.name}: tensor ${JSON.stringify(name)} holds ${scales[bad]} for row ${first + bad}; ` +
          'a scale must be positive, and 127 times the scale finite: download or quantise the model again.',
      );
    return scales;
  }

  /** Whether two tensors of the same shape hold the same numbers. */
  async equal(a: string, b: string): Promise<boolean> {
    const digest = async (name: string) => {
      const { shape } = this.opened.tensors.get(name)!.info;
      const width = shape[1] ?? 1;
      const step = rowsPerRead(width);
      const out = new Float32Array(step * width);
      const hash = createHash('sha256');
      for (let r = 0; r < shape[0]!; r += step) {
        const part = await this.rows(name, r, Math.min(step, shape[0]! - r), out);
        hash.update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
      }
      return hash.digest('hex');
    };
    return (await digest(a)) === (await digest(b));
  }

  async close(): Promise<void> {
    this.scratch = new Uint8Array(0);
    this.heads = new Float32Array(0);
    this.matrix?.release();
    for (const file of this.opened.files) {
      await file.handle.close().catch((error: unknown) => {
        throw error instanceof RequestError ? error : invalid(`${file.name} cannot be closed: ${reasonOf(error)}.`);
      });
    }
  }
}

/** Rows that are read at a time: about 4 MB of float32. */
export function rowsPerRead(width: number): number {
  return Math.max(1, Math.floor(2 ** 20 / Math.max(1, width)));
}
