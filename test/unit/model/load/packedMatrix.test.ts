/** Matrices of packed codes whose number of outputs does not fill the last int32 of zeros. */
import { open, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { PackedMatrix, type PackedTensor } from '../../../../engine/model/load/packedMatrix.ts';
import { seededRandom } from '../../../support/engine/workload.ts';
import { temporaryFolder } from '../../../support/model/fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

test.each([
  [4, 12],
  [8, 6],
] as const)('GPTQ with %i bits and %i outputs: each group has zeros of its own', async (bits, outputs) => {
  const per = 32 / bits;
  const [inputs, numGroups] = [32, 4];
  const zeroWords = Math.ceil(outputs / per);
  const next = seededRandom(11);
  const code = (): number => Math.floor(next() * (2 ** bits - 1));
  const codes = Array.from({ length: outputs }, () => Array.from({ length: inputs }, code));
  const zeros = Array.from({ length: numGroups }, () => Array.from({ length: outputs }, code));
  const words = new Uint32Array((inputs / per) * outputs);
  for (let o = 0; o < outputs; o++)
    for (let i = 0; i < inputs; i++) words[Math.floor(i / per) * outputs + o]! |= codes[o]![i]! << (bits * (i % per));
  const qzeros = new Uint32Array(numGroups * zeroWords);
  for (let g = 0; g < numGroups; g++)
    for (let o = 0; o < outputs; o++)
      qzeros[g * zeroWords + Math.floor(o / per)]! |= zeros[g]![o]! << (bits * (o % per));
  const scales = Float32Array.from({ length: numGroups * outputs }, (_, at) => 1 + at);

  const file = path.join(folder.dir, `${bits}`);
  const parts = [words, scales, qzeros].map((part) => new Uint8Array(part.buffer));
  await writeFile(file, Buffer.concat(parts));
  const handle = await open(file);
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  let at = 0;
  const tensor = (name: string, dtype: string, shape: number[]): PackedTensor => {
    const start = at;
    at += 4 * shape[0]! * shape[1]!;
    return { file: { name: 'm', handle, size, mtimeMs: 0 }, info: { name, dtype, shape, start, end: at } };
  };
  const matrix = new PackedMatrix(
    {
      codes: tensor('qweight', 'I32', [inputs / per, outputs]),
      scales: tensor('scales', 'F32', [numGroups, outputs]),
      zeros: tensor('qzeros', 'I32', [numGroups, zeroWords]),
      groups: null,
    },
    { kind: 'gptq', bits, groupSize: inputs / numGroups, lessOne: false },
  );
  const rows = new Float32Array(outputs * inputs);
  await matrix.rows(0, outputs, rows);
  await handle.close();
  const expected = codes.flatMap((row, o) =>
    row.map((each, i) => {
      const g = Math.floor((i * numGroups) / inputs);
      return (each - zeros[g]![o]!) * scales[g * outputs + o]!;
    }),
  );
  expect([...rows]).toEqual(expected.map((value) => Math.fround(value)));
});
