/**
 * Not one byte that a codec writes and not one value that it reads may change: encoded runs lie on disks. The digests were
 * taken from the codecs as first released. Rows and rotations are made by exact arithmetic, so that they are the same everywhere.
 */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  type CodecShape,
  MalformedRun,
  type Rotation,
  type RunPlace,
  HEADER_BYTES,
} from '../../../../../engine/kv/approx/codecs/codecFormat.ts';
import { type CodecName, codecNamed } from '../../../../../engine/kv/approx/codecs/registry.ts';
import { hadamard } from '../../../../../engine/kv/approx/codecs/layerBuffers.ts';
import { arraysOf, type KvRows, newKvRows, rowsToBytes } from '../../../../../engine/kv/kvRows.ts';
import { below, seededRandom } from '../../../../support/engine/workload.ts';

type Random = () => number;

/** What a row's codes and its scale are drawn from. Codes reach -128 in places: the graph never writes that, but a run may hold it. */
const KINDS: Record<string, { code(random: Random): number; scale(random: Random): number }> = {
  // As the graph writes them, but for the largest of each row, which is any.
  bell: { code: (random) => bell(random), scale: (random) => 0.001 + random() / 10 },
  uniform: {
    code: (random) => below(random, 256) - 128,
    scale: (random) => (1 + random()) * 2 ** (below(random, 41) - 20),
  },
  // One scale that is a power of two, and few distinct codes: many values lie midway between two codes.
  ties: { code: (random) => 8 * (below(random, 31) - 15), scale: () => 2 ** -4 },
  smallTies: { code: (random) => below(random, 33) - 16, scale: (random) => 1 + below(random, 2) },
  // Rows of zeros, scales of zero, single values.
  sparse: {
    code: (random) => (below(random, 40) === 0 ? bell(random) : 0),
    scale: (random) => (below(random, 3) === 0 ? 0 : random()),
  },
  positive: { code: (random) => below(random, 128), scale: (random) => random() },
  largest: { code: (random) => (below(random, 2) === 0 ? 127 : -127), scale: () => 0.3 },
  // Products, units and steps become denormal, or 0.
  tiny: { code: (random) => bell(random), scale: (random) => (1 + random()) * 2 ** -(110 + below(random, 42)) },
  // Beyond half precision; the largest sums of a head are still finite.
  huge: { code: (random) => bell(random), scale: (random) => random() * 2 ** below(random, 110) },
  constant: { code: () => -77, scale: () => 0.013 },
};

/** -127 .. 127, dense around 0. */
function bell(random: Random): number {
  return below(random, 85) + below(random, 86) + below(random, 86) - 127;
}

const PLACES: readonly RunPlace[] = [{ startIndex: 500 }, { startIndex: 0 }, { startIndex: 3 }];

/** Every head size, and lengths of runs around what blocks are made of. */
const SIZES: readonly [CodecShape, number][] = [
  [{ numLayers: 1, kvHeads: 2, headSize: 64 }, 32],
  [{ numLayers: 1, kvHeads: 2, headSize: 64 }, 128],
  [{ numLayers: 2, kvHeads: 1, headSize: 128 }, 33],
  [{ numLayers: 1, kvHeads: 3, headSize: 80 }, 31],
  [{ numLayers: 2, kvHeads: 2, headSize: 48 }, 145],
  [{ numLayers: 1, kvHeads: 1, headSize: 32 }, 70],
  [{ numLayers: 2, kvHeads: 2, headSize: 16 }, 21],
  [{ numLayers: 1, kvHeads: 3, headSize: 6 }, 160],
  [{ numLayers: 1, kvHeads: 1, headSize: 2 }, 17],
  [{ numLayers: 1, kvHeads: 2, headSize: 64 }, 1],
  [{ numLayers: 1, kvHeads: 2, headSize: 64 }, 0],
];

function rowsOfKind(kind: (typeof KINDS)[string], shape: CodecShape, numTokens: number, random: Random): KvRows {
  const rows = newKvRows({ ...shape, kv: 'int8' }, numTokens);
  for (const codes of [rows.keys, rows.values])
    codes.forEach((_, i) => {
      codes[i] = kind.code(random);
    });
  for (const scales of [rows.keyScales, rows.valueScales])
    scales.forEach((_, i) => {
      scales[i] = kind.scale(random);
    });
  return rows;
}

/** Turns by angles whose half tangents are fractions. */
function exactRotation(headSize: number): Rotation {
  const half = headSize / 2;
  const tangents = Array.from(
    { length: 700 * half },
    (_, i) => ((Math.floor(i / half) * (2 * (i % half) + 1)) % 257) / 128 - 1,
  );
  const cos = Float32Array.from(tangents, (t) => (1 - t * t) / (1 + t * t));
  const sin = Float32Array.from(tangents, (t) => (2 * t) / (1 + t * t));
  return { half, cos, sin, ensure: () => undefined };
}

/** Encodes and decodes runs of each kind and size, then decodes damaged ones. */
function digestOf(name: CodecName): string {
  const hash = createHash('sha256');
  const random = seededRandom(11);
  for (const kind of Object.values(KINDS)) {
    for (const [shape, numTokens] of SIZES) {
      const codec = codecNamed(name, shape, exactRotation(shape.headSize));
      for (const { startIndex } of PLACES) {
        const rows = rowsOfKind(kind, shape, numTokens, random);
        const place = { startIndex, contextEnd: below(random, 2) === 0 ? startIndex + numTokens + 100 : undefined };
        const bytes = codec.encode(rows, place);
        hash.update(bytes);
        hash.update(decoded(() => codec.decode(bytes).rows));
        // Now and then so many that most formats refuse them, else a few.
        const gap = below(random, 3) === 0 ? 60 : 4000;
        for (let i = bytes.length - below(random, gap); i > HEADER_BYTES; i -= 1 + below(random, gap))
          bytes[i - 1] = below(random, 256);
        hash.update(decoded(() => codec.decode(bytes).rows));
      }
    }
  }
  return hash.digest('hex').slice(0, 16);
}

/** The rows, or that they were refused. A 0 has no sign in the pool. */
function decoded(decode: () => KvRows): Uint8Array {
  try {
    const rows = decode();
    for (const array of arraysOf(rows)) expect(array.every(Number.isFinite)).toBe(true);
    return rowsToBytes(rows);
  } catch (error) {
    expect(error).toBeInstanceOf(MalformedRun);
    return Uint8Array.of(0);
  }
}

test.each<[CodecName, string]>([
  ['int8', 'cd93e43b1cb8f080'],
  ['nvfp4', '5ffada7fe6b2d937'],
  ['int4-kivi', '6e76f60edbd05dbb'],
  ['turboquant', '9ea8581115776d27'],
])('%s: the bytes and rows that are written down here', (name, digest) => {
  expect(digestOf(name)).toBe(digest);
});

test('Hadamard: the floats that are written down here', () => {
  const random = seededRandom(12);
  const hash = createHash('sha256');
  for (const layout of ['byToken', 'byChannel'] as const) {
    for (const headSize of [1, 2, 4, 8, 16, 32, 48, 64, 80, 128, 256]) {
      for (const [kvHeads, n] of [
        [1, 1],
        [2, 3],
        [2, 32],
      ] as const) {
        const x = Float32Array.from(
          { length: kvHeads * headSize * n },
          () => (random() - 0.5) * 2 ** below(random, 20),
        );
        hadamard(x, kvHeads, headSize, n, layout);
        hash.update(new Uint8Array(x.buffer));
      }
    }
  }
  expect(hash.digest('hex').slice(0, 16)).toBe('b37f1e47a7eb26d1');
});
