/**
 * The requests under way: started, found again by the next question, and given up as soon as the text goes another way, the
 * cursor leaves, or nobody waits any more. Follows the editor only while there are any. Their results go into the cache.
 */
import * as vscode from '../vscode.ts';
import type { SamplingParams, Task } from '../../engine/protocol.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineClient } from '../client/engineClient.ts';
import { type CompletionCache, samePlace } from './cache.ts';
import { onItsWay, type Place } from './place.ts';
import type { CompletionPolicies } from './policies.ts';
import { type Purpose, Run } from './run.ts';

/** A cancelled question and the edit that is its reason arrive one shortly after the other. */
const SETTLE_MS = 30;
/** After typing along, the editor waits for a pause of its own before it asks again. */
const REJOIN_MS = 250;

/** What of other places is offered to a completion. */
export type Beside = (
  document: vscode.TextDocument,
  offset: number,
) => Pick<Extract<Task, { kind: 'complete' }>, 'snippets' | 'copyFrom'>;

export interface RunOptions {
  purpose: Purpose;
  /** Text taken as already inserted at the place. */
  given?: string;
  sampling?: SamplingParams;
  /** The user has asked for it: shown, too, where the model is not sure, or its first `line`. */
  unsure?: boolean | 'line';
}

interface Live {
  run: Run;
  document: vscode.TextDocument;
  version: number;
}

export class Runs implements vscode.Disposable {
  readonly #client: EngineClient;
  readonly #mirror: DocumentMirror;
  readonly #settings: Settings;
  readonly #cache: CompletionCache;
  readonly #beside: Beside;
  readonly #policies: Pick<CompletionPolicies, 'joinRunning'>;
  readonly #live = new Map<Run, Live>();
  #subscriptions: vscode.Disposable[] = [];
  #grace: ReturnType<typeof setTimeout> | undefined;

  constructor(
    client: EngineClient,
    mirror: DocumentMirror,
    settings: Settings,
    cache: CompletionCache,
    beside: Beside,
    policies: Pick<CompletionPolicies, 'joinRunning'>,
  ) {
    this.#client = client;
    this.#mirror = mirror;
    this.#settings = settings;
    this.#cache = cache;
    this.#beside = beside;
    this.#policies = policies;
  }

  /** Starts a request at `origin`, the document's present text. One that answers the editor takes the place of all others. */
  start(
    document: vscode.TextDocument,
    origin: Place,
    { purpose, given = '', sampling = {}, unsure = false }: RunOptions,
  ): Run {
    const run = new Run(origin, given, purpose, lineEnd(document));
    if (purpose === 'ask')
      for (const other of this.#live.keys())
        if (other.purpose !== 'other' || !samePlace(other.place, run.place)) other.abort();
    this.#live.set(run, { run, document, version: document.version });
    this.#follow();
    const { maxTokens } = this.#settings.current.completion;
    void this.#client
      .generate({
        task: () => {
          run.sent = true;
          // Sent a second time (the engine had lost the document), it would be about another text.
          if (!this.#isUnchanged(run)) run.abort();
          return {
            kind: 'complete',
            docId: this.#mirror.sync(document),
            offset: origin.offset,
            ...(given ? { inserted: given } : {}),
            ...this.#beside(document, origin.offset),
            ...(unsure || purpose === 'warm' ? { unsure: unsure || true } : {}),
          };
        },
        priority: purpose === 'ahead' || purpose === 'warm' ? 'summary' : 'completion',
        sampling: { ...(maxTokens ? { maxTokens } : {}), ...sampling },
        onChunk: (text) => {
          run.add(text);
          // Its prompt is in the cache.
          if (purpose === 'warm') run.abort();
          // What has been typed ahead of it may turn out to be another text.
          if (!this.#fits(run)) run.abort();
        },
        signal: run.signal,
        hurry: run.hurry,
      })
      .finally(() => {
        this.#live.delete(run);
        this.#follow();
      })
      .then((done) => {
        run.end(done);
        if (!run.aborted && done.finishReason !== 'abort' && run.text && run.answers)
          this.#cache.add({
            ...run.place,
            insert: run.text,
            ahead: purpose === 'ahead',
            ...(done.heldBack ? { heldBack: true } : {}),
          });
      })
      // Reported where it is waited for, and in any case by the engine's state.
      .catch((error: unknown) => run.fail(error));
    return run;
  }

  /** The request that serves `place`, best one that has written as far already. */
  join(place: Place): Run | undefined {
    const running = [...this.#live.keys()].filter((run) => run.answers && !run.aborted);
    return (
      running.find((run) => run.standing(place) === 'agrees') ??
      running.find((run) => run.standing(place) === 'undecided')
    );
  }

  /** A question about `version` that waited for `run` was cancelled. Further typing may ask again in a moment; anything else ends it. */
  leave(run: Run, document: vscode.TextDocument, version: number): void {
    if (run.numWaiting > 0 || run.aborted) return;
    clearTimeout(this.#grace);
    this.#grace = setTimeout(() => {
      if (run.numWaiting > 0) return;
      if (document.version === version) run.abort();
      else if (!run.late) {
        this.#grace = setTimeout(() => {
          if (run.numWaiting === 0 && !run.late) run.abort();
        }, REJOIN_MS - SETTLE_MS);
      }
    }, SETTLE_MS);
  }

  /** Ends those of one purpose, or all. */
  abortAll(purpose?: Purpose): void {
    for (const run of this.#live.keys()) if (purpose === undefined || run.purpose === purpose) run.abort();
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
      // Before it has been sent, the prompt would be another text's.
      if (!live.run.sent || !this.#fits(live.run)) live.run.abort();
    }
  }

  /** What nobody waits for is of use only where the cursor is. */
  #moved(editor: vscode.TextEditor | undefined): void {
    for (const { run, document } of this.#live.values()) {
      if (run.numWaiting > 0) continue;
      const cursor = editor?.document === document ? document.offsetAt(editor.selection.active) : -1;
      const typedTo = run.origin.offset + lengthOf(document) - run.origin.text.length;
      if (cursor < run.origin.offset || cursor > typedTo) run.abort();
    }
  }

  #isUnchanged(run: Run): boolean {
    const live = this.#live.get(run);
    return live !== undefined && !live.document.isClosed && live.version === live.document.version;
  }

  /** Whether the document's text lies on the way that the request goes. */
  #fits(run: Run): boolean {
    const live = this.#live.get(run);
    return (
      !live ||
      (!live.document.isClosed &&
        (this.#isUnchanged(run) ||
          (this.#policies.joinRunning && onItsWay(run.origin, run.given + run.text, live.document.getText()))))
    );
  }
}

/** In characters, without building the text: the cursor moves with every key. */
function lengthOf(document: vscode.TextDocument): number {
  return document.offsetAt(document.lineAt(document.lineCount - 1).range.end);
}

function lineEnd(document: vscode.TextDocument): '\n' | '\r\n' {
  return document.eol === vscode.EndOfLine.CRLF ? '\r\n' : '\n';
}
