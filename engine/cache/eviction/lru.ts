/** Least recently used: the baseline. */
import type { Eviction } from './eviction.ts';

export class Lru implements Eviction {
  worth({ lastUse }: { lastUse: number }): number {
    return lastUse;
  }

  hit(): void {}

  gone(): void {}
}
