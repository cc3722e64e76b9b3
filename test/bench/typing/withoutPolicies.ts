/** Makes a completion provider with single policies switched off, to measure the contribution of each. */
import { Ahead, Warmup } from '../../../src/completion/ahead.ts';
import { Availability, Battery } from '../../../src/completion/availability.ts';
import { CompletionCache, type Completion, samePlace } from '../../../src/completion/completionCache.ts';
import { CompletionProvider, type CompletionServices } from '../../../src/completion/completionProvider.ts';
import type { CompletionRequest } from '../../../src/completion/completionRequest.ts';
import { CompletionRequests } from '../../../src/completion/completionRequests.ts';
import type { Insertion, Place } from '../../../src/completion/place.ts';
import * as vscode from '../../../src/vscode.ts';

/** A policy of ghost text that a variant of the benchmark lacks. */
export type Policy = 'joinRunning' | 'carryOver' | 'ahead' | 'warmup';

/** A completion applies only at its own position. */
class CacheWithoutCarryOver extends CompletionCache {
  override left(completion: Completion, place: Place): Insertion | undefined {
    return samePlace(completion, place) ? super.left(completion, place) : undefined;
  }
}

/** Every change of the text aborts a running request. */
class RequestsWithoutJoining extends CompletionRequests {
  override start(...[document, ...rest]: Parameters<CompletionRequests['start']>): CompletionRequest {
    const request = super.start(document, ...rest);
    const { version } = document;
    const changed = vscode.workspace.onDidChangeTextDocument((event) => {
      if (event.document === document && document.version !== version) request.abort();
    });
    const ended = request.onChange(() => {
      if (!request.ended) return;
      changed.dispose();
      ended.dispose();
    });
    return request;
  }
}

/** Nothing is computed after the shown completion. */
const NO_AHEAD = { schedule: () => {}, dispose: () => {} };

/** The text around a resting cursor is not read. */
const NO_WARMUP = { typed: () => {}, dispose: () => {} };

/** Like createCompletionProvider, but without `policies`. */
export function providerWithout(policies: readonly Policy[], services: CompletionServices): CompletionProvider {
  const { client, mirror, settings, snooze, crossFile } = services;
  const battery = new Battery(client);
  const availability = new Availability(client, settings, snooze, battery);
  const Cache = policies.includes('carryOver') ? CacheWithoutCarryOver : CompletionCache;
  const Requests = policies.includes('joinRunning') ? RequestsWithoutJoining : CompletionRequests;
  const cache = new Cache();
  const requests = new Requests(client, mirror, settings, cache, crossFile);
  return new CompletionProvider(services, {
    availability,
    cache,
    requests,
    ahead: policies.includes('ahead') ? NO_AHEAD : new Ahead(requests, cache, battery),
    warmup: policies.includes('warmup') ? NO_WARMUP : new Warmup(requests, client, availability, battery),
  });
}
