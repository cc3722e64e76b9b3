/**
 * File blocks computed while nothing else runs, so that the first question about a file, or the next after an edit,
 * finds it read. At most one at a time, in parts with a pause between them, capped in cost for each version of a text; the
 * scheduler lets it wait while there is any request, an edit of its file ends it.
 */
import type { Documents } from './documents.ts';
import type { FileLedger } from './fileLedger.ts';
import type { LoadedModel } from './loadedModel.ts';
import type { FinishReason } from '../protocol/tasks.ts';
import { Sequence } from '../sequence/sequence.ts';

/** Of a part, in multiply-adds: some seconds of two laptop cores in int8. */
const PART_MULTIPLY_ADDS = 1e12;
/** Of a version of a text: 8,000 tokens of a model of 1.5 billion parameters take half of it, a larger one gets the block's beginning only. */
const MAX_MULTIPLY_ADDS = 25e12;

export class IdleWork {
  /** Without request or edit for this long, the machine counts as idle. */
  static readonly DELAY_MS = 1000;
  enabled = true;
  readonly #documents: Documents;
  readonly #files: FileLedger;
  #numStarted = 0;
  /** The sequence under way and its document. */
  #running: { sequenceId: string; docId: string } | null = null;
  /** By document: the version that was computed last, what that has cost, and the tokens that the last part that was computed whole began behind; -1: none was. */
  readonly #spent = new Map<string, { version: number; multiplyAdds: number; from: number }>();

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
      // The document is the same object at its next version.
      const { version } = document;
      const known = this.#spent.get(docId);
      const isSame = known?.version === version;
      const spent = isSame ? known.multiplyAdds : 0;
      // A block that is longer than memory: what is computed of it is not kept.
      if (isSame && cached <= known.from) continue;
      const promptIds = block.slice(
        0,
        cached + Math.floor(Math.min(PART_MULTIPLY_ADDS, MAX_MULTIPLY_ADDS - spent) / model.info.parameters),
      );
      if (tokens >= promptIds.length || promptIds.length < 2) continue;
      const sequenceId = `idle ${++this.#numStarted}`;
      const ended = () => {
        model.engine.dropApproximate(promptIds);
        if (this.#running?.sequenceId === sequenceId) this.#running = null;
      };
      const finished = (reason: FinishReason) => {
        ended();
        // It was closed meanwhile.
        if (this.#documents.find(docId) !== document) return;
        const isWhole = reason !== 'abort';
        const numComputed = Math.max(0, sequence.numReached - cached);
        // One that was given up says nothing of what is kept: it goes on where it was.
        this.#spent.set(docId, {
          version,
          multiplyAdds: spent + numComputed * model.info.parameters,
          from: isWhole ? cached : isSame ? known.from : -1,
        });
        // The next part, after a pause.
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
        // Does not fit: requests for this file will say so themselves.
        onError: ended,
      });
      model.engine.add(sequence);
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

  /** The document is closed. */
  closed(docId: string): void {
    this.#spent.delete(docId);
  }

  /** The engine was replaced: nothing of the old one's is running, and nothing is computed. */
  forget(): void {
    this.#running = null;
    this.#spent.clear();
    this.#files.touchAll();
  }
}
