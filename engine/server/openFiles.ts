/**
 * Applies the messages about files (edits, pins, evictions) to the mirrored documents, the file ledger and the engine.
 * Does not answer requests.
 */
import type { HostMessage } from '../protocol/messages.ts';
import { indexOf } from '../text/copy/copyPrior.ts';
import type { Syntax } from '../text/syntax/syntax.ts';
import { Documents } from './documents.ts';
import { FileLedger } from './fileLedger.ts';
import { IdlePrefill } from './idlePrefill.ts';
import type { LoadedModel } from './loadedModel.ts';

type Message<T extends HostMessage['type']> = Extract<HostMessage, { type: T }>;

export class OpenFiles {
  readonly documents = new Documents();
  /** Files that are not open. Completions may copy from them. */
  readonly sources = new Documents();
  readonly ledger = new FileLedger();
  readonly idle = new IdlePrefill(this.documents, this.ledger);
  readonly #syntax: Syntax;

  constructor(syntax: Syntax) {
    this.#syntax = syntax;
  }

  changed(message: Message<'documentChanged'>, model: LoadedModel | null): void {
    const { docId, version, unsaved } = message;
    if ('text' in message) this.documents.open(docId, version, message.path, message.text, message.language);
    else this.documents.edit(docId, version, message.edits);
    this.ledger.changed(docId, { secret: 'text' in message && message.secret, unsaved });
    // The user is typing, so idle prefill must stop, whichever file it computes.
    this.idle.stop(model);
    model?.engine.typed();
  }

  closed(docId: string, model: LoadedModel | null): void {
    this.idle.stop(model, docId);
    this.idle.closed(docId);
    model?.engine.blocks.pin(docId, null);
    this.documents.close(docId);
    this.#syntax.forget(docId);
    this.ledger.close(docId);
  }

  sourceChanged({ docId, path, text }: Message<'sourceChanged'>, model: LoadedModel | null): void {
    const source = this.sources.open(docId, 1, path, text);
    // Indexed here, because indexing all files at the next completion would delay it.
    if (model?.info.copiesFiles) indexOf(model.layout.beginning(source));
  }

  /** Pins or unpins an open file. Does nothing for any other file. */
  pin(docId: string, pinned: boolean, model: LoadedModel | null): void {
    const document = this.documents.find(docId);
    if (!document) return;
    this.ledger.pin(docId, pinned);
    model?.engine.blocks.pin(docId, pinned ? this.ledger.blockIds(document, model.layout) : null);
  }

  /**
   * Drops all cached rows that begin as the file does: old and new blocks, and requests about the file. Also on disk,
   * unless `memoryOnly`.
   */
  evict(docId: string, memoryOnly: boolean, { engine, layout }: LoadedModel): void {
    const file = this.ledger.beginningOf(docId, this.documents.find(docId), layout);
    if (!file) return;
    if (!memoryOnly) void engine.blocks.forgetDisk(file.path);
    // An empty list would match everything.
    if (file.tokenIds.length) engine.blocks.evict(file.tokenIds);
  }

  /** Drops all cached rows, in memory and on disk. Keeps pinned files, unless `pinned`. */
  evictAll(pinned: boolean, model: LoadedModel | null): void {
    const kept = pinned ? [] : this.documents.all().filter(({ docId }) => this.ledger.isPinned(docId));
    model?.engine.blocks.evict([], { pinned });
    void model?.engine.blocks.forgetDisk(
      undefined,
      kept.map((document) => document.path),
    );
    if (pinned) this.ledger.forgetClosed();
  }

  /** Number of tokens of a text, or of the block of an open file. */
  countTokens(message: Message<'countTokens'>, { text, layout }: LoadedModel): number {
    return 'docId' in message
      ? this.ledger.blockIds(this.documents.get(message.docId), layout).length
      : text.tokenizer.encode(message.text).length;
  }
}
