/** Tests the products that the suite `products` measures outside the runtime: both threads, each number of rows. */
import { expect, test } from 'vitest';
import { WasmProducts } from './wasmProducts.ts';

test('sums of the last layer are those of plain arithmetic', async () => {
  const [width, outputs] = [32, 16];
  const made: Uint8Array[] = [];
  const products = await WasmProducts.open(
    [
      [32, 8],
      [width, outputs],
    ],
    (count) => {
      made.push(Uint8Array.from({ length: count }, (_, i) => Math.imul(i + made.length, 2_654_435_761) >>> 24));
      return made.at(-1)!;
    },
  );
  try {
    const weights = new Int8Array(made[1]!.buffer);
    for (const rows of [1, 4]) {
      for (let run = 0; run < 3; run++) products.run(rows);
      for (let r = 0; r < rows; r++) {
        for (let n = 0; n < outputs; n++) {
          let sum = 0;
          // Four outputs are stored side by side, with sixteen inputs of each at a time.
          for (let k = 0; k < width; k++)
            sum +=
              ((37 * (r * width + k)) % 127) *
              weights[(n - (n % 4)) * width + (k - (k % 16)) * 4 + (n % 4) * 16 + (k % 16)]!;
          expect(products.sums[r * outputs + n], `${rows} rows, row ${r}, output ${n}`).toBe(sum);
        }
      }
    }
  } finally {
    await products.close();
  }
});
