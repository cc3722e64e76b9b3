/** Segments as files: names and keys tell their place, and damaged ones are known. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BEGINNING_BYTES, decodeIds, decodeSegment, encodeSegment, fileName, parseName, rootKey, segmentKey } from '../../engine/cache/disk/segment.ts';

test('a key depends on the root, on every token and on their order', () => {
  const root = rootKey('model', 'int8');
  const ids = Array.from({ length: 256 }, (_, i) => 2 ** 24 + i);
  const key = segmentKey(root, ids);
  expect(key).toMatch(/^[0-9a-f]{32}$/);
  expect(segmentKey(root, [...ids])).toBe(key);
  const others = [segmentKey(rootKey('model', 'int4'), ids), segmentKey(root, ids.slice(1)), segmentKey(root, ids.toReversed()), segmentKey(root, [...ids, 0]), segmentKey(root, ids.with(255, 7))];
  expect(new Set([key, ...others]).size).toBe(6);
  // Names do not run into each other.
  expect(rootKey('a', 'b')).not.toBe(rootKey('ab', ''));
});

test('names come back, and what is no segment is none', () => {
  const name = { parent: rootKey('m'), key: segmentKey(rootKey('m'), [1, 2]), numTokens: 256 };
  expect(parseName(fileName(name))).toEqual(name);
  for (const other of ['', 'a.kv', `${fileName(name)}.tmp`, fileName({ ...name, numTokens: 257 }), fileName({ ...name, numTokens: 0 }), fileName({ ...name, key: name.key.slice(1) })]) expect(parseName(other)).toBeNull();
});

test('runs and token ids come back; cut short, damaged, of another segment, place or version: null', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 }), fc.nat(255), fc.nat(60_000), fc.nat(), fc.integer({ min: 1, max: 255 }), fc.array(fc.nat(2 ** 27), { maxLength: 256 }), (runs, numTokens, startIndex, at, change, ids) => {
      const parent = rootKey('model');
      const segment = { parent, key: segmentKey(parent, [at]), numTokens, startIndex };
      const bytes = encodeSegment(runs, segment, ids);
      expect(decodeIds(bytes.subarray(0, BEGINNING_BYTES))).toEqual(ids);
      expect(decodeIds(bytes.subarray(0, Math.min(47 + 4 * ids.length, at % bytes.length)))).toEqual([]);
      expect(decodeSegment(bytes, segment)).toEqual(runs);
      expect(decodeSegment(bytes, { ...segment, numTokens: numTokens + 1 })).toBeNull();
      expect(decodeSegment(bytes, { ...segment, startIndex: startIndex + 1 })).toBeNull();
      expect(decodeSegment(bytes, { ...segment, key: segmentKey(parent, [at + 1]) })).toBeNull();
      expect(decodeSegment(bytes.subarray(0, at % bytes.length), segment)).toBeNull();
      const damaged = bytes.slice();
      damaged[at % bytes.length]! ^= change;
      expect(decodeSegment(damaged, segment)).toBeNull();
    }),
  );
});
