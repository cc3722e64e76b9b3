/** Least recently used: the baseline policy. */
import type { Eviction } from '../../../engine/kv/eviction/eviction.ts';

export class Lru implements Eviction {
  worth({ lastUse }: { lastUse: number }): number {
    return lastUse;
  }

  kind(): number {
    return 0;
  }

  hit(): void {}

  gone(): void {}
}
