/** Finds the matrices that GPTQ, AWQ or compressed-tensors store in several tensors. Reads no tensors. */
import { invalid } from './modelFolder.ts';
import { PackedMatrix, type PackedLayout } from './packedMatrix.ts';
import type { Quantisation } from './quantisationConfig.ts';
import type { OwnedTensor } from './tensorFiles.ts';

const PACKED = '_packed';

type Tensors = ReadonlyMap<string, OwnedTensor>;

/** The tensors with each such matrix under the name that it would have without quantisation. */
export function withMatrices(tensors: Tensors, quantisation: Quantisation | null): Tensors {
  if (quantisation === null) return tensors;
  if (quantisation.kind === 'int8')
    return new Map([...tensors].map(([name, tensor]) => bytesOf(name, tensor, tensors)));
  const isPacked = quantisation.kind === 'rows';
  const ending = isPacked ? '.weight_packed' : '.qweight';
  const result = new Map(tensors);
  for (const [name, codes] of tensors) {
    if (!name.endsWith(ending)) continue;
    const module = name.slice(0, -ending.length);
    const take = (part: string): OwnedTensor | null => {
      const tensor = tensors.get(module + part) ?? null;
      result.delete(module + part);
      return tensor;
    };
    const need = (part: string): OwnedTensor => {
      const tensor = take(part);
      if (!tensor)
        throw invalid(
          `${codes.file.name}: tensor ${JSON.stringify(module + part)} is missing: download the model again.`,
        );
      return tensor;
    };
    if (tensors.has(`${module}.weight`)) throw twice(codes, name, `${module}.weight`);
    take(ending);
    take('.weight_shape');
    const { needsOrder, needsZeros, ...layout }: PackedLayout & { needsOrder: boolean; needsZeros: boolean } =
      quantisation;
    const order = isPacked ? '.weight_g_idx' : '.g_idx';
    const zeros = isPacked ? '.weight_zero_point' : '.qzeros';
    const matrix = new PackedMatrix(
      {
        codes,
        scales: need(isPacked ? '.weight_scale' : '.scales'),
        zeros: needsZeros ? need(zeros) : null,
        groups: needsOrder ? need(order) : take(order),
      },
      layout,
    );
    const info = { ...codes.info, name: `${module}.weight`, dtype: 'F32', shape: [matrix.outputs, matrix.inputs] };
    result.set(`${module}.weight`, { file: codes.file, info: { ...info, end: info.start }, matrix, firstRow: 0 });
  }
  return result;
}

/** The error for two tensors in the files that get one name. */
export function twice({ file }: OwnedTensor, ...names: string[]): Error {
  const [first, second] = names.map((name) => JSON.stringify(name.slice(0, 200)));
  return invalid(
    `${file.name}: the tensors ${first} and ${second} are the same part of the model: choose another file.`,
  );
}

/**
 * 8-bit codes that compressed-tensors stores as NAME_packed, int32 [rows, width / 4] (`pack_to_int32` there): the same
 * bytes as int8 [rows, width], but for 128.
 */
function bytesOf(name: string, tensor: OwnedTensor, tensors: Tensors): [name: string, tensor: OwnedTensor] {
  const { info, file } = tensor;
  const [rows, width] = info.shape;
  if (info.dtype !== 'I32' || info.shape.length !== 2 || !name.endsWith(PACKED)) return [name, tensor];
  const plain = name.slice(0, -PACKED.length);
  if (tensors.has(plain))
    throw invalid(`${file.name}: tensor ${JSON.stringify(plain.slice(0, 200))} is there under two names.`);
  return [plain, { file, info: { ...info, dtype: 'I8', shape: [rows!, 4 * width!] }, packed: true }];
}
