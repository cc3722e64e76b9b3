/**
 * The running completion requests: starts them, finds them again for the next question, and aborts them when the text
 * diverges, the cursor leaves or nobody waits. Listens to the editor only while there are any. Results go into the
 * cache.
 */
import * as vscode from '../vscode.ts';
import type { SamplingParams, Task } from '../../engine/protocol/tasks.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import { lengthOf } from '../client/documentText.ts';
import type { EngineClient } from '../client/engineClient.ts';
import { type CompletionCache, samePlace } from './completionCache.ts';
import { onItsWay, type Place } from './place.ts';
import { type Purpose, CompletionRequest } from './completionRequest.ts';

/** A cancelled question and the edit that caused it arrive shortly after each other. */
const SETTLE_MS = 30;
/** After typing along, the editor pauses before it asks again. */
const REJOIN_MS = 250;

/** What a completion is offered from other files. */
export type CrossFileContext = (
  document: vscode.TextDocument,
  offset: number,
) => Pick<Extract<Task, { kind: 'complete' }>, 'snippets' | 'copySources' | 'packages' | 'folders'>;

export interface RequestOptions {
  purpose: Purpose;
  /** Text taken as already inserted at the place. */
  given?: string;
  sampling?: SamplingParams;
  /** The user asked by hand: also show text of low confidence, or its first `line`. */
  showLowConfidence?: boolean | 'line';
}

interface Live {
  request: CompletionRequest;
  document: vscode.TextDocument;
  version: number;
}

export class CompletionRequests implements vscode.Disposable {
  readonly #client: EngineClient;
  readonly #mirror: DocumentMirror;
  readonly #settings: Settings;
  readonly #cache: CompletionCache;
  readonly #crossFile: CrossFileContext;
  readonly #live = new Map<CompletionRequest, Live>();
  #subscriptions: vscode.Disposable[] = [];
  #grace: ReturnType<typeof setTimeout> | undefined;

  constructor(
    client: EngineClient,
    mirror: DocumentMirror,
    settings: Settings,
    cache: CompletionCache,
    crossFile: CrossFileContext,
  ) {
    this.#client = client;
    this.#mirror = mirror;
    this.#settings = settings;
    this.#cache = cache;
    this.#crossFile = crossFile;
  }

  /**
   * Starts a request at `origin`, the document's current text. A request that answers the editor replaces all others.
   */
  start(
    document: vscode.TextDocument,
    origin: Place,
    { purpose, given = '', sampling = {}, showLowConfidence = false }: RequestOptions,
  ): CompletionRequest {
    const request = new CompletionRequest(origin, given, purpose, lineEnd(document));
    if (purpose === 'ask')
      for (const other of this.#live.keys())
        if (other.purpose !== 'other' || !samePlace(other.place, request.place)) other.abort();
    this.#live.set(request, { request, document, version: document.version });
    this.#follow();
    const { maxTokens } = this.#settings.current.completion;
    void this.#client
      .generate({
        task: () => {
          request.sent = true;
          // If it is sent again because the engine lost the document, the text may have changed.
          if (!this.#isUnchanged(request)) request.abort();
          return {
            kind: 'complete',
            docId: this.#mirror.sync(document),
            offset: origin.offset,
            ...(given ? { inserted: given } : {}),
            ...this.#crossFile(document, origin.offset),
            ...(showLowConfidence || purpose === 'warm' ? { showLowConfidence: showLowConfidence || true } : {}),
          };
        },
        priority: purpose === 'ahead' || purpose === 'warm' ? 'summary' : 'completion',
        sampling: { ...(maxTokens ? { maxTokens } : {}), ...sampling },
        onChunk: (text) => {
          request.add(text);
          // The prompt is in the cache now.
          if (purpose === 'warm') request.abort();
          // The text typed in the meantime may differ from the request's text.
          if (!this.#fits(request)) request.abort();
        },
        signal: request.signal,
        hurry: request.hurry,
      })
      .finally(() => {
        this.#live.delete(request);
        this.#follow();
      })
      .then((done) => {
        request.end(done);
        if (!request.aborted && done.finishReason !== 'abort' && request.text && request.answers)
          this.#cache.add({
            ...request.place,
            insert: request.text,
            ahead: purpose === 'ahead',
            ...(done.suppressed ? { suppressed: true } : {}),
          });
      })
      // The caller that waits for it reports the error, and so does the engine's state.
      .catch((error: unknown) => request.fail(error));
    return request;
  }

  /** The request that serves `place`, preferably one that has already written that far. */
  join(place: Place): CompletionRequest | undefined {
    const running = [...this.#live.keys()].filter((request) => request.answers && !request.aborted);
    return (
      running.find((request) => request.agreement(place) === 'agrees') ??
      running.find((request) => request.agreement(place) === 'undecided')
    );
  }

  /**
   * A question about `version` that waited for `request` was cancelled. Further typing may ask again soon; anything
   * else ends the request. A late one is shown later without a question, as long as the cursor stays.
   */
  leave(request: CompletionRequest, document: vscode.TextDocument, version: number): void {
    if (request.numWaiting > 0 || request.aborted) return;
    clearTimeout(this.#grace);
    this.#grace = setTimeout(() => {
      if (request.numWaiting > 0) return;
      if (request.late) this.#abortIfAway(request, document, vscode.window.activeTextEditor);
      else if (document.version === version) request.abort();
      else
        this.#grace = setTimeout(() => {
          if (request.numWaiting === 0 && !request.late) request.abort();
        }, REJOIN_MS - SETTLE_MS);
    }, SETTLE_MS);
  }

  /** Aborts the requests of one purpose, or all. */
  abortAll(purpose?: Purpose): void {
    for (const request of this.#live.keys()) if (purpose === undefined || request.purpose === purpose) request.abort();
  }

  dispose(): void {
    clearTimeout(this.#grace);
    this.abortAll();
    this.#live.clear();
    this.#follow();
  }

  #follow(): void {
    if (this.#live.size > 0 === this.#subscriptions.length > 0) return;
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#subscriptions = [];
    if (this.#live.size === 0) return;
    this.#subscriptions = [
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.#changed(document)),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.#moved(textEditor)),
      vscode.window.onDidChangeActiveTextEditor((editor) => this.#moved(editor)),
    ];
  }

  #changed(document: vscode.TextDocument): void {
    for (const live of this.#live.values()) {
      if (live.document !== document || live.version === document.version) continue;
      // If it has not been sent, its prompt would be that of another text.
      if (!live.request.sent || !this.#fits(live.request)) live.request.abort();
    }
  }

  /** A request that nobody waits for is useful only where the cursor is. */
  #moved(editor: vscode.TextEditor | undefined): void {
    for (const { request, document } of this.#live.values())
      if (request.numWaiting === 0) this.#abortIfAway(request, document, editor);
  }

  #abortIfAway(request: CompletionRequest, document: vscode.TextDocument, editor: vscode.TextEditor | undefined): void {
    const cursor = editor?.document === document ? document.offsetAt(editor.selection.active) : -1;
    const typedTo = request.origin.offset + lengthOf(document) - request.origin.text.length;
    if (cursor < request.origin.offset || cursor > typedTo) request.abort();
  }

  #isUnchanged(request: CompletionRequest): boolean {
    const live = this.#live.get(request);
    return live !== undefined && !live.document.isClosed && live.version === live.document.version;
  }

  /** Whether the document's text is unchanged or may come from typing along what the request writes. */
  #fits(request: CompletionRequest): boolean {
    const live = this.#live.get(request);
    if (!live || this.#isUnchanged(request)) return true;
    const { document } = live;
    return !document.isClosed && onItsWay(request.origin, request.given + request.text, document.getText());
  }
}

function lineEnd(document: vscode.TextDocument): '\n' | '\r\n' {
  return document.eol === vscode.EndOfLine.CRLF ? '\r\n' : '\n';
}
