/** kvquant3's kernels look at few values closely: what they write is what looking at each of them gives. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { kernelMemory } from '../../../engine/kv/approx/codecs/kernels.ts';
import { KVQUANT_VALUES } from '../../../engine/kv/approx/codecs/kvquant3.ts';
import { seededRandom } from '../../engine/workload.ts';
import { kvquantBytes } from './kvquantReference.ts';

/** Areas of the kernels' memory: floats, bytes, what is kept beside them. */
const [X, OUT, SPARE, END] = [0, 1 << 16, 1 << 17, 1 << 18];

/** What values of a row are drawn from: its mean and deviation, and a random number. */
const KINDS: Record<string, (random: () => number, mean: number, deviation: number) => number> = {
  bell: (random, mean, deviation) => mean + deviation * (random() + random() + random() + random() - 2),
  // Nothing is two deviations away.
  flat: (random, mean, deviation) => mean + deviation * random(),
  two: (random, mean, deviation) => mean + deviation * Math.round(random()),
  // Few are far out, and very far.
  rare: (random, mean, deviation) => mean + deviation * (random() < 0.03 ? 1000 * random() : random()),
  // Many alike, midway between codes, too.
  ties: (random) => Math.round(8 * random()) / 4,
  constant: (_, mean) => mean,
};

test.each(Object.keys(KINDS))('%s: the bytes of the definition, value by value', (kind) => {
  const size = fc.oneof(fc.integer({ min: 1, max: 70 }), fc.constantFrom(16, 32, 64));
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2 }),
      size,
      size,
      fc.constantFrom(0, 1, 1000),
      fc.integer(),
      (kvHeads, rows, width, offset, seed) => {
        const random = seededRandom(seed);
        const x = Float32Array.from({ length: kvHeads * rows * width });
        for (let r = 0; r < kvHeads * rows; r++) {
          const [mean, deviation] = [offset * (random() - 0.5), 2 ** (8 * random() - 4)];
          for (let j = 0; j < width; j++) x[r * width + j] = KINDS[kind]!(random, mean, deviation);
        }
        const memory = kernelMemory(END);
        new Float32Array(memory.buffer, X, x.length).set(x);
        KVQUANT_VALUES.encode(X, kvHeads, width, rows, OUT, SPARE);
        const length = KVQUANT_VALUES.bytes(kvHeads, width, rows);
        expect(Array.from(memory.subarray(OUT, OUT + length))).toEqual(kvquantBytes(x, kvHeads, rows, width));
      },
    ),
    { numRuns: 60 },
  );
});
