/** What a cache's window and store take between the beginning and the end of an operation. */
import type { KvCache } from '../../engine/cache/kvCache.ts';
import type { KvWindow } from '../../engine/cache/window.ts';

/** The most bytes that window and store have had together, also within an operation: whatever changes them, here one or the other is read or resized. */
export function watched({ cache, window }: { cache: KvCache; window: KvWindow }): { most: number } {
  const seen = { most: 0 };
  const look = (): void => {
    seen.most = Math.max(seen.most, cache.windowBytes + cache.storeBytes);
  };
  const { read, resize, exchange } = window;
  window.read = (slots) => {
    look();
    return read.call(window, slots);
  };
  window.resize = (...sizes) => {
    // What has left the window since is in the store by now.
    look();
    resize.apply(window, sizes);
    look();
  };
  window.exchange = (from, to) => {
    look();
    exchange.call(window, from, to);
  };
  return seen;
}
