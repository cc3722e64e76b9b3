/**
 * Computes file blocks while no request runs, so that the next request for a file finds its rows in the cache. Runs one
 * sequence at a time, in parts, with a cost limit per version of a text. Does not run steps.
 */
import type { Documents } from './documents.ts';
import type { FileLedger } from './fileLedger.ts';
import type { LoadedModel } from './loadedModel.ts';
import type { FinishReason } from '../protocol/tasks.ts';
import { Sequence } from '../sequence/sequence.ts';

/** Cost of one part in multiply-adds: a few seconds on two laptop cores in int8. */
const PART_MULTIPLY_ADDS = 1e12;
/** Most multiply-adds per version of a text. 8,000 tokens with 1.5 billion parameters take half of it. */
const MAX_MULTIPLY_ADDS = 25e12;

export class IdlePrefill {
  /** Time without requests and edits before idle prefill starts. */
  static readonly DELAY_MS = 1000;
  enabled = true;
  readonly #documents: Documents;
  readonly #files: FileLedger;
  #numStarted = 0;
  /** The running sequence and its document. */
  #running: { sequenceId: string; docId: string } | null = null;
  /**
   * By document, the version that was computed last and its cost so far. `from`: cached tokens at the start of the last
   * complete part, -1 without one.
   */
  readonly #spent = new Map<string, { version: number; multiplyAdds: number; from: number }>();

  constructor(documents: Documents, files: FileLedger) {
    this.#documents = documents;
    this.#files = files;
  }

  /** Whether some file has changed since its block was computed. */
  get due(): boolean {
    return this.enabled && this.#running === null && this.#files.hasStale;
  }

  /** Starts the most recently used stale file. @returns false if there is none */
  start(model: LoadedModel): boolean {
    while (this.due) {
      const docId = this.#files.takeStale();
      const document = docId === undefined ? undefined : this.#documents.find(docId);
      if (docId === undefined || !document) continue;
      const block = this.#files.blockIds(document, model.layout);
      if (this.#files.isPinned(docId)) model.engine.blocks.pin(docId, block);
      const { tokens, diskTokens } = model.engine.blocks.describe(block);
      const cached = tokens + diskTokens;
      // A copy, because the document object changes with its next version.
      const { version } = document;
      const known = this.#spent.get(docId);
      const isSame = known?.version === version;
      const spent = isSame ? known.multiplyAdds : 0;
      // The last part left nothing in the cache, because the block does not fit in memory.
      if (isSame && cached <= known.from) continue;
      const promptIds = block.slice(
        0,
        cached + Math.floor(Math.min(PART_MULTIPLY_ADDS, MAX_MULTIPLY_ADDS - spent) / model.info.parameters),
      );
      if (tokens >= promptIds.length || promptIds.length < 2) continue;
      const sequenceId = `idle ${++this.#numStarted}`;
      const ended = () => {
        model.engine.blocks.dropApproximate(promptIds);
        if (this.#running?.sequenceId === sequenceId) this.#running = null;
      };
      const finished = (reason: FinishReason) => {
        ended();
        // The document was closed or replaced.
        if (this.#documents.find(docId) !== document) return;
        const isWhole = reason !== 'abort';
        const numComputed = Math.max(0, sequence.numReached - cached);
        // An aborted part does not show what stays in the cache, so the old value is kept.
        this.#spent.set(docId, {
          version,
          multiplyAdds: spent + numComputed * model.info.parameters,
          from: isWhole ? cached : isSame ? known.from : -1,
        });
        // The next part starts after the idle delay.
        if (isWhole && promptIds.length < block.length) this.#files.touch(docId);
      };
      this.#running = { sequenceId, docId };
      const sequence = new Sequence({
        id: sequenceId,
        priority: 'idle',
        promptIds,
        prefill: [[0, promptIds.length]],
        sampling: { maxTokens: 0 },
        eosIds: [],
        detokenizer: model.text.tokenizer.createDetokenizer(),
        onToken: () => {},
        onFinish: finished,
        // The block does not fit. Requests for this file report the error.
        onError: ended,
      });
      model.engine.add(sequence);
      return true;
    }
    return false;
  }

  /** Stops the running sequence if it is of this document, or of any without `docId`. Its rows stay in the cache. */
  stop(model: LoadedModel | null, docId?: string): void {
    if (!this.#running || (docId !== undefined && docId !== this.#running.docId)) return;
    const { sequenceId } = this.#running;
    this.#files.touch(this.#running.docId);
    model?.engine.abort(sequenceId);
  }

  /** The document was closed. */
  closed(docId: string): void {
    this.#spent.delete(docId);
  }

  /** The engine was replaced. Nothing runs, and all blocks must be computed again. */
  forget(): void {
    this.#running = null;
    this.#spent.clear();
    this.#files.touchAll();
  }
}
