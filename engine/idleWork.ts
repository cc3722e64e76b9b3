/**
 * File blocks computed while nothing else runs, so that the first question about a file, or the next after an edit,
 * finds it read. At most one at a time, one per edit, capped in cost; the scheduler lets it wait while there is any
 * request, an edit of its file ends it.
 */
import type { Documents } from './documents.ts';
import type { FileLedger } from './fileLedger.ts';
import type { LoadedModel } from './loadedModel.ts';
import { Sequence } from './sequence.ts';

/** Per edit, in multiply-adds: about a second of two laptop cores in int8; a large model gets the block's beginning only. */
const MAX_MULTIPLY_ADDS = 1e12;

export class IdleWork {
  /** Without request or edit for this long, the machine counts as idle. */
  static readonly DELAY_MS = 1000;
  enabled = true;
  readonly #documents: Documents;
  readonly #files: FileLedger;
  #numStarted = 0;
  /** The sequence under way and its document. */
  #running: { sequenceId: string; docId: string } | null = null;

  constructor(documents: Documents, files: FileLedger) {
    this.#documents = documents;
    this.#files = files;
  }

  /** Whether some file has changed since its block was computed. */
  get due(): boolean {
    return this.enabled && this.#running === null && this.#files.hasStale;
  }

  /** Puts the stale file used last into the engine; false when there is none. */
  start(model: LoadedModel): boolean {
    while (this.due) {
      const docId = this.#files.takeStale();
      const document = docId === undefined ? undefined : this.#documents.find(docId);
      if (docId === undefined || !document) continue;
      const block = this.#files.blockIds(document, model.layout);
      if (this.#files.isPinned(docId)) model.engine.pin(docId, block);
      const { tokens, diskTokens } = model.engine.describe(block);
      const cached = tokens + diskTokens;
      const promptIds = block.slice(0, cached + Math.floor(MAX_MULTIPLY_ADDS / model.info.parameters));
      if (tokens >= promptIds.length || promptIds.length < 2) continue;
      const sequenceId = `idle ${++this.#numStarted}`;
      const ended = () => {
        model.engine.dropShifted(promptIds);
        if (this.#running?.sequenceId === sequenceId) this.#running = null;
      };
      this.#running = { sequenceId, docId };
      model.engine.add(
        new Sequence({
          id: sequenceId,
          priority: 'idle',
          promptIds,
          prefill: [[0, promptIds.length]],
          sampling: { maxTokens: 0 },
          eosIds: [],
          detokenizer: model.text.tokenizer.createDetokenizer(),
          onToken: () => {},
          onFinish: ended,
          // Does not fit: requests for this file will say so themselves.
          onError: ended,
        }),
      );
      return true;
    }
    return false;
  }

  /** Gives up what is under way, for one document or for any; what it has computed stays cached. */
  stop(model: LoadedModel | null, docId?: string): void {
    if (!this.#running || (docId !== undefined && docId !== this.#running.docId)) return;
    const { sequenceId } = this.#running;
    this.#files.touch(this.#running.docId);
    model?.engine.abort(sequenceId);
  }

  /** The engine was replaced: nothing of the old one's is running, and nothing is computed. */
  forget(): void {
    this.#running = null;
    this.#files.touchAll();
  }
}
