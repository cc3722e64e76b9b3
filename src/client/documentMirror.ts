/**
 * Keeps the engine's copies of documents equal to the editor's. Sends a document when a request first needs it, and its
 * edits from then on until it closes. Does nothing before the first request.
 */
import * as vscode from '../vscode.ts';
import { RequestError } from '../../engine/protocol/errors.ts';
import { lengthAfter, toEdits, isTooLarge, lengthOf, tooLarge } from './documentText.ts';
import type { EngineClient } from './engineClient.ts';

interface Mirrored {
  version: number;
  length: number;
  eol: vscode.EndOfLine;
  /** The engine may hold another text: the next request sends the whole document. */
  stale: boolean;
  /** What the engine has been told: nothing of this document may be written to disk. */
  secret: boolean;
  /** What the engine has been told: the text is not saved, so nothing of it is written to disk yet. */
  unsaved: boolean;
}

/** Schemes whose paths do not tell the language. */
const WITHOUT_EXTENSION = new Set(['untitled', 'vscode-notebook-cell']);

export class DocumentMirror implements vscode.Disposable {
  readonly #client: EngineClient;
  readonly #isSecret: (document: vscode.TextDocument) => boolean;
  readonly #mirrored = new Map<string, Mirrored>();
  #subscriptions: vscode.Disposable[] = [];
  #epoch = -1;

  /** @param isSecret whether nothing of a document may be written to disk. */
  constructor(client: EngineClient, isSecret: (document: vscode.TextDocument) => boolean = () => false) {
    this.#client = client;
    this.#isSecret = isSecret;
  }

  /**
   * Makes the engine's copy current and returns its id. Call it where the request's task is built. @throws RequestError
   * for a document that is too large.
   */
  sync(document: vscode.TextDocument): string {
    if (isTooLarge(document)) throw new RequestError('badRequest', tooLarge(document, vscode.l10n.t));
    this.#follow();
    const docId = document.uri.toString();
    const known = this.#mirrored.get(docId);
    if (!known || known.stale || known.version !== document.version) this.#sendText(docId, document);
    return docId;
  }

  /** Call it when the rules for secret files have changed. Tells the engine of documents that are secret now. */
  reviewSecrets(): void {
    for (const document of vscode.workspace.textDocuments) {
      const docId = document.uri.toString();
      const known = this.#mirrored.get(docId);
      if (known && !known.stale && !known.secret && this.#isSecret(document)) this.#sendText(docId, document);
    }
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#subscriptions = [];
    this.#mirrored.clear();
  }

  #follow(): void {
    if (this.#epoch !== this.#client.epoch) {
      this.#epoch = this.#client.epoch;
      for (const known of this.#mirrored.values()) known.stale = true;
    }
    if (this.#subscriptions.length) return;
    this.#subscriptions = [
      vscode.workspace.onDidChangeTextDocument((event) => this.#changed(event)),
      vscode.workspace.onDidSaveTextDocument((document) => this.#saved(document)),
      vscode.workspace.onDidCloseTextDocument((document) => this.#closed(document)),
    ];
  }

  #changed({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const docId = document.uri.toString();
    const known = this.#mirrored.get(docId);
    if (!known || known.stale || this.#epoch !== this.#client.epoch) return;
    if (known.version === document.version) return this.#dirty(docId, document, known);
    if (isTooLarge(document)) return this.#closed(document);
    // Several undo steps may come as one event: the version then skips, and the changes are relative to each other.
    const edits = document.version === known.version + 1 && known.eol === document.eol ? toEdits(contentChanges) : null;
    if (!edits || lengthAfter(known.length, edits) !== lengthOf(document)) {
      this.#sendText(docId, document);
      return;
    }
    const unsaved = this.#remember(docId, document, known.secret);
    this.#client.notify({
      type: 'documentChanged',
      docId,
      version: document.version,
      edits,
      ...(unsaved ? { unsaved } : {}),
    });
  }

  /** The editor may report that a document is dirty only after its first edit, as an event without changes. */
  #dirty(docId: string, document: vscode.TextDocument, known: Mirrored): void {
    if (known.unsaved || !document.isDirty) return;
    known.unsaved = true;
    this.#client.notify({ type: 'documentSaved', docId, saved: false });
  }

  /** The save event is the only sign: a document whose changes are discarded is not dirty either. */
  #saved(document: vscode.TextDocument): void {
    const docId = document.uri.toString();
    const known = this.#mirrored.get(docId);
    if (!known?.unsaved || known.stale || document.isDirty) return;
    known.unsaved = false;
    this.#client.notify({ type: 'documentSaved', docId, saved: true });
  }

  #closed(document: vscode.TextDocument): void {
    const docId = document.uri.toString();
    if (this.#mirrored.delete(docId)) this.#client.notify({ type: 'documentClosed', docId });
  }

  #sendText(docId: string, document: vscode.TextDocument): void {
    const secret = this.#isSecret(document);
    const unsaved = this.#remember(docId, document, secret);
    this.#client.notify({
      type: 'documentChanged',
      docId,
      version: document.version,
      path: document.uri.path,
      text: document.getText(),
      ...(WITHOUT_EXTENSION.has(document.uri.scheme) ? { language: document.languageId } : {}),
      ...(secret ? { secret: true } : {}),
      ...(unsaved ? { unsaved } : {}),
    });
  }

  /** Returns whether the text counts as unsaved. */
  #remember(docId: string, document: vscode.TextDocument, secret: boolean): boolean {
    const unsaved = document.isDirty || this.#mirrored.get(docId)?.unsaved === true;
    this.#mirrored.set(docId, {
      version: document.version,
      length: lengthOf(document),
      eol: document.eol,
      stale: false,
      secret,
      unsaved,
    });
    return unsaved;
  }
}
