/**
 * Shows results of a request that outlives the editor's question. When there is more text than is on the screen, it
 * triggers the editor to ask again. Such a question looks as if the user had asked by hand, so the position is
 * remembered to recognize it.
 */
import * as vscode from '../vscode.ts';
import { carryOver, type Place } from './place.ts';
import type { CompletionRequest } from './completionRequest.ts';
import { silence } from './trigger.ts';

/**
 * VS Code does not ask again where the user has asked by hand, and a refresh counts as that, unless there is a provider
 * that it has not asked there (`UpdateRequest.satisfies` in its InlineCompletionsSource). This one has nothing to say.
 */
const nothing = (): vscode.InlineCompletionItemProvider => ({ provideInlineCompletionItems: () => [] });

/** A refresh ends when all providers have answered the editor. After this time it is given up. */
const MAX_REFRESH_MS = 2000;
/** Time between two updates of a growing text, chosen for reading. */
const REFRESH_MS = 400;

/**
 * Set while a request outlives the editor's question. The keybinding in package.json then gives Escape to `dismiss`.
 * VS Code does not tell an extension that the user has dismissed a text.
 */
const GROWS = 'kvasir.completionGrows';

/** A position in one version of a document. */
export interface Spot {
  docId: string;
  version: number;
  offset: number;
}

interface Watched {
  document: vscode.TextDocument;
  /** What the editor was given last, at the request's place; empty for nothing. */
  returned: string;
  /** When the editor was last given something. */
  at: number;
  timer?: ReturnType<typeof setTimeout>;
  onEnd: () => void;
}

export class LateDisplay implements vscode.Disposable {
  readonly #watched = new Map<CompletionRequest, Watched>();
  /** Where the editor is being triggered to ask, until its question comes. */
  #expected: Spot | null = null;
  /** A refresh has not been answered. Another one would make the editor ask all providers again. */
  #isRefreshing = false;
  /** What is to be shown after that. */
  #due: (() => void) | undefined;
  #grows = false;

  /**
   * Shows what `request` writes from now on. `returned` is what the editor is given now. `onEnd` is called when the
   * request ends, before its text is shown.
   */
  watch(request: CompletionRequest, document: vscode.TextDocument, returned: string, onEnd: () => void): void {
    const known = this.#watched.get(request);
    const at = performance.now();
    if (known) {
      // The last answer is the one on the screen.
      Object.assign(known, { returned, at, onEnd });
      return;
    }
    request.late = true;
    this.#watched.set(request, { document, returned, at, onEnd });
    this.#setContext();
    const subscription = request.onChange(() => {
      if (request.ended) {
        subscription.dispose();
        this.#end(request);
      } else this.#grown(request);
    });
  }

  /** Whether the question at `spot` was triggered here. Each trigger leads to one question. */
  takeRefresh(spot: Spot): boolean {
    const now = this.#expected;
    if (now?.docId !== spot.docId || now.version !== spot.version || now.offset !== spot.offset) return false;
    this.#expected = null;
    return true;
  }

  /** Hides the text on the screen and ends the requests. Otherwise the text would come back when it has grown. */
  async dismiss(): Promise<void> {
    for (const request of [...this.#watched.keys()]) request.abort();
    await vscode.commands.executeCommand('editor.action.inlineSuggest.hide');
  }

  dispose(): void {
    for (const { timer } of this.#watched.values()) clearTimeout(timer);
    this.#watched.clear();
    this.#setContext();
    this.#due = undefined;
  }

  #setContext(): void {
    const grows = this.#watched.size > 0;
    if (grows === this.#grows) return;
    this.#grows = grows;
    void vscode.commands.executeCommand('setContext', GROWS, grows);
  }

  #end(request: CompletionRequest): void {
    const watched = this.#watched.get(request);
    this.#watched.delete(request);
    this.#setContext();
    if (!watched) return;
    clearTimeout(watched.timer);
    watched.onEnd();
    if (request.done && request.done.finishReason !== 'abort') void this.#show(request, watched);
  }

  #grown(request: CompletionRequest): void {
    const watched = this.#watched.get(request);
    if (!watched || watched.timer !== undefined) return;
    watched.timer = setTimeout(
      () => {
        watched.timer = undefined;
        void this.#show(request, watched);
      },
      Math.max(0, watched.at + REFRESH_MS - performance.now()),
    );
  }

  /** Triggers the editor to ask again if there is more to show. */
  async #show(request: CompletionRequest, watched: Watched): Promise<void> {
    if (this.#isRefreshing) {
      this.#due = () => void this.#show(request, watched);
      return;
    }
    const { document, returned } = watched;
    const editor = vscode.window.activeTextEditor;
    if (request.aborted || editor?.document !== document) return;
    const place: Place = {
      docId: request.place.docId,
      text: document.getText(),
      offset: document.offsetAt(editor.selection.active),
    };
    const rest = request.rest(place);
    if (!rest?.text.trim()) return;
    const shown = returned === '' ? '' : (carryOver(request.place, returned, place)?.text ?? '');
    if (rest.text === shown || !rest.text.startsWith(shown)) return;
    this.#expected = { docId: place.docId, version: document.version, offset: place.offset };
    this.#isRefreshing = true;
    const { scheme } = document.uri;
    const unasked = vscode.languages.registerInlineCompletionItemProvider({ scheme }, nothing());
    const limit = new AbortController();
    const command = vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
    try {
      await Promise.race([command, silence(MAX_REFRESH_MS, limit.signal)]);
    } finally {
      limit.abort();
      unasked.dispose();
      this.#expected = null;
      this.#isRefreshing = false;
      const due = this.#due;
      this.#due = undefined;
      due?.();
    }
  }
}
