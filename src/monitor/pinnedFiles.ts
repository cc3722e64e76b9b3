/**
 * The files that the user has pinned. The engine forgets pins when it is unloaded or restarted, so they are sent again
 * when such a file is in its cache again. Closing a file ends its pin.
 */
import type { EngineStats } from '../../engine/protocol/stats.ts';
import type { EngineClient } from '../client/engineClient.ts';

export class PinnedFiles {
  readonly #client: Pick<EngineClient, 'notify'>;
  readonly #docIds = new Set<string>();

  constructor(client: Pick<EngineClient, 'notify'>) {
    this.#client = client;
  }

  set(docId: string, pinned: boolean): void {
    if (pinned) this.#docIds.add(docId);
    else this.#docIds.delete(docId);
    this.#client.notify({ type: 'pin', docId, pinned });
  }

  /** Compares with the engine's statistics. */
  review({ files }: Pick<EngineStats, 'files'>): void {
    for (const { docId, open, pinned } of files) {
      if (!this.#docIds.has(docId)) continue;
      if (!open) this.#docIds.delete(docId);
      else if (!pinned) this.#client.notify({ type: 'pin', docId, pinned: true });
    }
  }
}
