/**
 * For all tests: whatever changes the bytes of a cache's window or store, they are never more than its ceiling, not for a moment
 * between two changes either. `checkIntegrity` sees what is there after an operation; this sees what is there within it.
 */
import { vi } from 'vitest';
import type { KvMemory as Memory, KvMemoryOptions } from '../engine/cache/kvMemory.ts';
import type { KvWindow } from '../engine/cache/window.ts';

/** A window may be another cache's, once the one before has failed. */
const inCharge = new WeakMap<KvWindow, Memory>();

function watchCeiling(memory: Memory): void {
  const { window, store } = memory;
  const check = ({ bytes, ceiling, store }: Memory): void => {
    if (bytes > Math.max(0, ceiling.maxBytes))
      throw new Error(
        `KV cache: ${window.bytes} bytes of the window and ${store.bytes} of the store exceed the ceiling of ${ceiling.maxBytes}`,
      );
  };
  let { bytes } = store;
  Object.defineProperty(store, 'bytes', {
    get: () => bytes,
    set: (value: number) => {
      bytes = value;
      check(memory);
    },
  });
  const isWatched = inCharge.has(window);
  inCharge.set(window, memory);
  if (isWatched) return;
  const resize = window.resize.bind(window);
  window.resize = (...sizes) => {
    resize(...sizes);
    check(inCharge.get(window)!);
  };
}

vi.mock('../engine/cache/kvMemory.ts', async (original) => {
  const { KvMemory, ...rest } = await original<typeof import('../engine/cache/kvMemory.ts')>();
  class WatchedMemory extends KvMemory {
    constructor(options: KvMemoryOptions) {
      super(options);
      watchCeiling(this);
    }
  }
  return { ...rest, KvMemory: WatchedMemory };
});
