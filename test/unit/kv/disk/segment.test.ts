/** Segments as files: names and keys, and damaged files are detected. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  decodeSegment,
  encodeSegment,
  fileName,
  FORMER_NAME,
  ownerOf,
  parseName,
  rootKey,
  segmentKey,
} from '../../../../engine/kv/disk/segment.ts';

test('a key depends on the root, on every token and on their order', () => {
  const root = rootKey('model', 'int8');
  const ids = Array.from({ length: 256 }, (_, i) => 2 ** 24 + i);
  const key = segmentKey(root, ids);
  expect(key).toMatch(/^[0-9a-f]{32}$/);
  expect(segmentKey(root, [...ids])).toBe(key);
  const others = [
    segmentKey(rootKey('model', 'nvfp4'), ids),
    segmentKey(root, ids.slice(1)),
    segmentKey(root, ids.toReversed()),
    segmentKey(root, [...ids, 0]),
    segmentKey(root, ids.with(255, 7)),
  ];
  expect(new Set([key, ...others]).size).toBe(6);
  // Names do not run into each other.
  expect(rootKey('a', 'b')).not.toBe(rootKey('ab', ''));
});

test('names come back, and what is no segment is none', () => {
  const key = segmentKey(rootKey('m'), [1, 2]);
  const name = { parent: rootKey('m'), key, owner: ownerOf(key, 'src/a.ts'), numTokens: 256 };
  expect(parseName(fileName(name))).toEqual(name);
  for (const other of [
    '',
    'a.kv',
    `${fileName(name)}.tmp`,
    fileName({ ...name, numTokens: 257 }),
    fileName({ ...name, numTokens: 0 }),
    fileName({ ...name, key: name.key.slice(1) }),
    fileName({ ...name, owner: '' }),
  ])
    expect(parseName(other)).toBeNull();
  expect([fileName(name), `${name.parent}-${key}-256.kv`].map((each) => FORMER_NAME.test(each))).toEqual([false, true]);
});

test('the owner mark of a segment matches its file path, whatever its key', () => {
  const keys = [segmentKey(rootKey('m'), [1]), segmentKey(rootKey('another'), [2])];
  const owners = keys.flatMap((key) => ['src/a.ts', 'src/b.ts'].map((path) => ownerOf(key, path)));
  expect(new Set(owners).size).toBe(4);
  for (const owner of owners) expect(owner).toMatch(/^[0-9a-f]{16}$/);
  expect(ownerOf(keys[1]!, 'src/b.ts')).toBe(owners[3]);
});

test('a segment reads back its rows; truncated, damaged, foreign, misplaced or outdated data reads as null', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 }),
      fc.nat(255),
      fc.nat(60_000),
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      (runs, numTokens, startIndex, at, change) => {
        const parent = rootKey('model');
        const segment = { parent, key: segmentKey(parent, [at]), numTokens, startIndex };
        const bytes = encodeSegment(runs, segment);
        expect(decodeSegment(bytes, segment)).toEqual(runs);
        expect(decodeSegment(bytes, { ...segment, numTokens: numTokens + 1 })).toBeNull();
        expect(decodeSegment(bytes, { ...segment, startIndex: startIndex + 1 })).toBeNull();
        expect(decodeSegment(bytes, { ...segment, key: segmentKey(parent, [at + 1]) })).toBeNull();
        expect(decodeSegment(bytes.subarray(0, at % bytes.length), segment)).toBeNull();
        const damaged = bytes.slice();
        damaged[at % bytes.length]! ^= change;
        expect(decodeSegment(damaged, segment)).toBeNull();
      },
    ),
  );
});
