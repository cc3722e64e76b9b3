/** The open files of a model and the tensors in them, by the names of Hugging Face. Does not decode tensors. */
import type { Hash } from 'node:crypto';
import { reasonOf } from '../../protocol/errors.ts';
import { invalid, type OpenFile } from './modelFolder.ts';
import type { TensorInfo } from './safetensors.ts';

/** A matrix that is made from several tensors. */
export interface Matrix {
  readonly inputs: number;
  /** Rows first .. first+count-1. `hash`: takes all bytes of the matrix. */
  rows(first: number, count: number, out: Float32Array, hash?: Hash): Promise<void>;
  /** Forgets what was read. */
  release(): void;
}

/** A tensor and its file. Its name in the file may be another one. */
export interface OwnedTensor {
  readonly file: OpenFile;
  readonly info: TensorInfo;
  /** Four codes of a row are an int32, the first one in its low byte, each with 128 added to it. */
  readonly packed?: boolean;
  /** Its rows come from here, from row `firstRow` on. `info` has only the shape. */
  readonly matrix?: Matrix;
  readonly firstRow?: number;
  /** The rows of each head stand in another order: row r of a head is row order[r] in the file. */
  readonly order?: readonly number[];
  /** What is added to all values. */
  readonly shift?: number;
}

/** Each file stays open. */
export interface TensorFiles {
  readonly files: readonly OpenFile[];
  readonly tensors: ReadonlyMap<string, OwnedTensor>;
  /** For messages: what names the files of the model, and what says which tensors it has. */
  readonly index: string;
  readonly config: string;
  /** For messages: the name of a tensor in the files. */
  nameInFile(tensor: string): string;
}

export async function readExactly(file: OpenFile, target: Uint8Array, position: number): Promise<void> {
  let done = 0;
  while (done < target.length) {
    let count: number;
    try {
      count = (await file.handle.read(target, done, target.length - done, position + done)).bytesRead;
    } catch (error) {
      throw invalid(`${file.name} cannot be read: ${reasonOf(error)}.`);
    }
    if (count === 0) throw invalid(`${file.name} became shorter while it was read.`);
    done += count;
  }
}
