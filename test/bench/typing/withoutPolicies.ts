/** Parts of the completion provider with one policy switched off, to measure what it contributes. */
import { CompletionCache, type Completion, samePlace } from '../../../src/completion/completionCache.ts';
import type { Insertion, Place } from '../../../src/completion/place.ts';
import type { CompletionClasses } from '../../../src/completion/completionProvider.ts';
import { CompletionRequests } from '../../../src/completion/completionRequests.ts';

/** A policy of ghost text that a variant of the benchmark lacks. */
export type Policy = 'joinRunning' | 'carryOver' | 'ahead' | 'warmup';

/** A completion applies at its own position only. */
class CacheWithoutCarryOver extends CompletionCache {
  override left(completion: Completion, place: Place): Insertion | undefined {
    return samePlace(completion, place) ? super.left(completion, place) : undefined;
  }
}

/** Every change of the text aborts a running request. */
class RequestsWithoutJoining extends CompletionRequests {
  protected override agrees(): boolean {
    return false;
  }
}

/** Nothing is computed after the shown completion. */
class NoAhead {
  schedule(): void {}
  dispose(): void {}
}

/** The text around a resting cursor is not read. */
class NoWarmup {
  typed(): void {}
  dispose(): void {}
}

export function without(policies: readonly Policy[]): Partial<CompletionClasses> {
  return {
    ...(policies.includes('carryOver') ? { Cache: CacheWithoutCarryOver } : {}),
    ...(policies.includes('joinRunning') ? { Requests: RequestsWithoutJoining } : {}),
    ...(policies.includes('ahead') ? { Ahead: NoAhead } : {}),
    ...(policies.includes('warmup') ? { Warmup: NoWarmup } : {}),
  };
}
