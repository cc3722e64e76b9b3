/** That test/ceilingWatch.ts looks at all caches: without it the tests of what is there within an operation could not fail. */
import { expect, test } from 'vitest';
import { KvMemory } from '../../engine/cache/kvMemory.ts';
import { kvBytesPerToken } from '../../engine/cache/kvRows.ts';
import { Lru } from '../../engine/cache/eviction/lru.ts';
import { KvWindow } from '../../engine/cache/window.ts';
import { fakeShape } from '../engine/fakeRunner.ts';

const BYTES = kvBytesPerToken(fakeShape());

function opened(slots: number): KvMemory {
  return new KvMemory({
    window: new KvWindow(fakeShape(), 0),
    maxBytes: slots * BYTES,
    softSlots: slots,
    clock: () => 0,
    eviction: new Lru(),
    compression: null,
    spillFile: null,
    staleMs: 0,
  });
}

test('a store that has a byte too many is loud at once', () => {
  const { store, window, ceiling } = opened(100);
  const most = ceiling.maxBytes - window.bytes;
  store.bytes = most;
  expect(() => (store.bytes = most + 1)).toThrow('exceed the ceiling');
});

test('so is a window that is a slot too large', () => {
  const { window } = opened(100);
  window.resize(100, 100);
  expect(() => window.resize(101, 101)).toThrow('exceed the ceiling');
});
